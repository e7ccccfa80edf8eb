use std::sync::Arc;

use ac_core::{
    CancelToken, FinishReason, Message, ModelErrorKind, ModelProvider, ModelRequest, Part, Role, Timestamp, ToolCallPart, ToolCallState,
    ToolDefinition, ToolOutput, assemble::Assembler,
};
use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::{
    Guide,
    content::{named_file, slug},
    folder::Folder,
    plan::Plan,
};

const PLANNING: [&str; 6] = ["view", "find_files", "search_content", "write_file", "ask_user", "submit_plan"];
const BUILDING: [&str; 7] = ["view", "find_files", "search_content", "write_file", "execute_command", "ask_user", "submit_plan"];

/// A conversation that is held by feeding requests; nothing but the request reaches the model.
struct Talk {
    messages: Vec<Arc<Message>>,
    tools: Vec<&'static str>,
}

impl Talk {
    fn new(task: &str, tools: &[&'static str]) -> Self {
        let mut talk = Self { messages: vec![], tools: tools.to_vec() };
        talk.say(task);
        talk
    }

    fn say(&mut self, text: &str) {
        let id = format!("m{}", self.messages.len());
        self.messages.push(Arc::new(Message::user(id, text, Timestamp::from_millis(0))));
    }

    /// Asks the model and keeps its answer.
    fn turn(&mut self) -> Turn {
        let mut request = ModelRequest::new("demo/guide", self.messages.clone());
        request.tools = self.tools.iter().map(|name| ToolDefinition::new(*name, "a tool", json!({"type": "object"}))).collect();
        let (parts, reason) = answer(&request);
        let again = answer(&request);
        assert_eq!((&parts, reason), (&again.0, again.1), "the same request has the same answer");
        let text = parts.iter().filter_map(Part::as_text).collect();
        let calls: Vec<_> = parts
            .iter()
            .filter_map(|part| match part {
                Part::ToolCall(call) => Some(call.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(reason, if calls.is_empty() { FinishReason::Stop } else { FinishReason::ToolCalls });
        let id = format!("m{}", self.messages.len());
        self.messages.push(Arc::new(Message::new(id, Role::Assistant, parts, Timestamp::from_millis(0))));
        Turn { text, calls }
    }

    /// Gives every call of the last answer this result.
    fn settle(&mut self, state: &ToolCallState) {
        let mut message = self.messages.pop().unwrap().as_ref().clone();
        for part in &mut message.parts {
            if let Part::ToolCall(call) = part {
                call.state = state.clone();
            }
        }
        self.messages.push(Arc::new(message));
    }

    fn done(&mut self, value: impl Into<Value>) {
        self.settle(&ToolCallState::Result { output: ToolOutput::new(value.into()), is_error: false });
    }

    fn fail(&mut self, text: &str) {
        self.settle(&ToolCallState::Result { output: ToolOutput::text(text), is_error: true });
    }

    fn deny(&mut self, reason: &str) {
        self.settle(&ToolCallState::OutputDenied { reason: reason.into() });
    }

    /// Answers everything up to the submitted plan; returns its text.
    fn until_submitted(&mut self, listing: &str, wish: &str) -> String {
        let mut plan = String::new();
        for _ in 0..8 {
            let turn = self.turn();
            let call = turn.only();
            match call.name.as_str() {
                "find_files" => self.done(listing),
                "view" => self.done("A thing that does things.\n"),
                "ask_user" => self.done(json!({"content": format!("User answered: {wish}"), "isError": false})),
                "write_file" => {
                    plan = call.args["content"].as_str().unwrap().to_owned();
                    self.done("written");
                }
                "submit_plan" => return plan,
                other => panic!("unexpected call of {other}"),
            }
        }
        panic!("no plan was submitted");
    }

    fn approve(&mut self) {
        let content = "Plan approved. Proceed with implementation following the approved plan.";
        self.done(json!({"toolId": "submit_plan", "content": content, "isError": false}));
        self.tools = BUILDING.to_vec();
    }

    fn reject(&mut self, feedback: Option<&str>) {
        let mut submitted = json!({"path": "p"});
        if let Some(feedback) = feedback {
            submitted["feedback"] = feedback.into();
        }
        self.done(json!({"toolId": "submit_plan", "content": "Plan was not approved.", "isError": false, "submittedPlan": submitted}));
    }
}

struct Turn {
    text: String,
    calls: Vec<ToolCallPart>,
}

impl Turn {
    fn only(&self) -> &ToolCallPart {
        assert_eq!(self.calls.len(), 1, "{}", self.text);
        &self.calls[0]
    }

    fn ends(&self) -> &str {
        assert!(self.calls.is_empty(), "{:?}", self.calls);
        &self.text
    }
}

/// Without a pace nothing in it waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    future.now_or_never().unwrap()
}

fn answer(request: &ModelRequest) -> (Vec<Part>, FinishReason) {
    let mut assembler = Assembler::new();
    for event in now(async {
        let stream = Guide::new().stream(request.clone(), CancelToken::new()).await.unwrap();
        stream.collect::<Vec<_>>().await
    }) {
        assembler.push(event.unwrap());
    }
    let (parts, finish) = assembler.into_parts();
    let finish = finish.unwrap();
    assert!(finish.usage.as_ref().is_some_and(|usage| usage.input > 0 && usage.output > 0), "{finish:?}");
    (parts, finish.reason)
}

#[test]
fn the_whole_job_looks_asks_plans_builds_runs_and_reports() {
    let mut talk = Talk::new("Write a greeting", &PLANNING);
    let first = talk.turn();
    assert!(first.text.lines().next().unwrap().contains("demo/guide"), "{}", first.text);
    assert_eq!(first.only().name, "find_files");
    talk.done("README.md\nsrc/\n  main.rs\n");

    assert_eq!(talk.turn().only().args, json!({"path": "README.md"}));
    talk.done("# Things\n");
    let question = talk.turn();
    assert_eq!(question.only().name, "ask_user");
    assert!(question.only().args["options"].as_array().unwrap().len() > 1);
    talk.done(json!({"content": "User answered: A script", "isError": false}));

    let plan = talk.turn();
    assert_eq!((plan.only().name.as_str(), &plan.only().args["path"]), ("write_file", &json!(".acode/plans/write-a-greeting.md")));
    let text = plan.only().args["content"].as_str().unwrap().to_owned();
    for found in ["README.md", "src/main.rs", "Things", "A script"] {
        assert!(text.contains(found), "{found} is missing in {text}");
    }
    talk.done("written");
    assert_eq!(talk.turn().only().args, json!({"path": ".acode/plans/write-a-greeting.md"}));
    talk.approve();

    assert_eq!(talk.turn().only().name, "view");
    talk.done(text);
    let write = talk.turn();
    assert_eq!(write.only().args["path"], "write-a-greeting.sh");
    talk.done("written");
    let run = talk.turn();
    assert_eq!(run.only().args, json!({"command": "sh write-a-greeting.sh"}));
    talk.done("Write a greeting\n");
    let report = talk.turn();
    assert!(report.ends().starts_with("Done."), "{}", report.text);
    assert!(report.text.contains("write-a-greeting.sh"), "{}", report.text);
}

#[test]
fn two_tasks_in_two_folders_give_two_plans() {
    let one = Talk::new("Describe the parser", &PLANNING).until_submitted("parser.py\n", "A note");
    let other = Talk::new("Make a chart", &PLANNING).until_submitted("data.csv\nREADME.md\n", "Both");
    assert_ne!(Plan::read(&one), Plan::read(&other));
    assert!(one.contains("parser.py") && !other.contains("parser.py"));
}

#[test]
fn what_is_built_is_what_the_plan_file_says_when_it_is_read_back() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    let plan = talk.until_submitted("", "A note");
    talk.approve();
    talk.turn();
    let edited = plan.replace("write-notes.md", "other.md") + "\n## Files\n\n- extra.txt: one more\n";
    talk.done(edited);
    let paths: Vec<_> = talk.turn().calls.iter().map(|call| call.args["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths, ["other.md", "extra.txt"]);
}

#[test]
fn a_long_plan_is_read_to_its_end_with_its_line_numbers() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    let plan = talk.until_submitted("", "A note");
    talk.approve();
    talk.turn();
    let numbered: Vec<_> = plan.lines().enumerate().map(|(n, line)| format!("{:>2}\t{line}\n", n + 1)).collect();
    let (head, tail) = numbered.split_at(10);
    talk.done(format!("{}[lines 1-10 of {}; go on with offset 11]\n", head.concat(), numbered.len()));
    assert_eq!(talk.turn().only().args["offset"], 11);
    talk.done(tail.concat());
    let write = talk.turn();
    let planned = Plan::read(&plan).files;
    assert_eq!((&write.only().args["path"], &write.only().args["content"]), (&json!(planned[0].0), &json!(planned[0].1)));
}

#[test]
fn feedback_changes_the_plan_and_it_is_submitted_again() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    let before = talk.until_submitted("", "A note");
    talk.reject(Some("call it ideas.txt"));
    let again = talk.turn();
    let text = again.only().args["content"].as_str().unwrap();
    assert_eq!(again.only().name, "write_file");
    assert!(text != before && Plan::read(text).files[0].0 == "ideas.txt", "{text}");
    talk.done("written");
    assert_eq!(talk.turn().only().name, "submit_plan");
    talk.reject(Some("and mention tea"));
    let third = talk.turn();
    let text = third.only().args["content"].as_str().unwrap();
    assert!(text.contains("ideas.txt") && text.contains("mention tea"), "{text}");
}

#[test]
fn a_rejection_without_feedback_ends_the_work_and_the_next_message_is_a_new_task() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.until_submitted("", "A note");
    talk.reject(None);
    assert!(talk.turn().ends().contains("not approved"));
    talk.say("Draw a house");
    let next = talk.turn();
    assert_eq!(next.only().name, "find_files");
    assert!(next.text.contains("demo/guide"));
}

#[test]
fn without_a_person_to_ask_it_chooses_and_says_so() {
    let tools: Vec<_> = PLANNING.into_iter().filter(|tool| *tool != "ask_user").collect();
    let mut talk = Talk::new("Write notes", &tools);
    let plan = talk.until_submitted("a.rs\n", "");
    assert!(plan.contains("Nobody answered"), "{plan}");
    assert_eq!(Plan::read(&plan).files.len(), 1);
}

#[test]
fn a_question_that_is_declined_does_not_stop_the_work() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.turn();
    talk.done("");
    assert_eq!(talk.turn().only().name, "ask_user");
    talk.deny("not now");
    assert_eq!(talk.turn().only().name, "write_file");
}

#[test]
fn denied_and_failed_calls_are_reported_and_not_repeated() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.turn();
    talk.fail("no such folder");
    talk.turn();
    talk.done(json!({"content": "User answered: A note"}));
    talk.turn();
    talk.deny("the person said no");
    assert!(talk.turn().ends().contains("the person said no"));

    let mut talk = Talk::new("Write notes", &PLANNING);
    let plan = talk.until_submitted("", "A note");
    talk.approve();
    talk.turn();
    talk.done(plan);
    talk.turn();
    talk.fail("the disk is full");
    // Nothing was made, so there is nothing to run.
    let report = talk.turn();
    assert!(report.ends().contains("the disk is full") && report.text.contains("did not run"), "{}", report.text);
}

#[test]
fn a_denied_command_is_reported() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    let plan = talk.until_submitted("", "A note");
    talk.approve();
    talk.turn();
    talk.done(plan);
    talk.turn();
    talk.done("written");
    assert_eq!(talk.turn().only().name, "execute_command");
    talk.deny("declined by the person");
    let report = talk.turn();
    assert!(report.ends().contains("declined by the person"), "{}", report.text);
}

#[test]
fn a_plan_file_that_is_gone_builds_nothing() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.until_submitted("", "A note");
    talk.approve();
    talk.turn();
    talk.fail("not found");
    assert!(talk.turn().ends().contains("build nothing"));
}

#[test]
fn a_message_while_an_approval_waits_changes_the_plan() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.turn();
    talk.done("");
    talk.turn();
    talk.done(json!({"content": "User answered: A note"}));
    assert_eq!(talk.turn().only().name, "write_file");
    talk.deny("interrupted_by_user_message");
    talk.say("use ideas.txt instead");
    let again = talk.turn();
    assert_eq!(Plan::read(again.only().args["content"].as_str().unwrap()).files[0].0, "ideas.txt");
}

#[test]
fn an_aborted_call_is_made_again_when_the_person_says_continue() {
    let mut talk = Talk::new("Write notes", &PLANNING);
    talk.turn();
    talk.deny("aborted");
    talk.say("continue");
    assert_eq!(talk.turn().only().name, "find_files");
    talk.deny("aborted");
    talk.say("Draw a house");
    talk.turn();
    talk.done("");
    assert!(talk.turn().only().args["question"].as_str().unwrap().contains("Draw a house"));
}

#[test]
fn a_building_mode_needs_no_plan() {
    let mut talk = Talk::new("create hello.py that says \"hi\"", &BUILDING);
    talk.turn();
    talk.done("");
    talk.turn();
    talk.done(json!({"content": "User answered: Only the file"}));
    let write = talk.turn();
    assert_eq!(write.only().args["path"], "hello.py");
    assert!(write.only().args["content"].as_str().unwrap().contains("print(\"hi\")"));
}

#[test]
fn without_tools_it_says_what_it_would_do() {
    let mut talk = Talk::new("Write notes", &[]);
    let text = talk.turn();
    assert!(text.ends().contains("demo/guide") && text.text.contains("write-notes.md"), "{}", text.text);
    let parts =
        now(async { Guide::new().stream(ModelRequest::new("demo/guide", vec![]), CancelToken::new()).await.unwrap().count().await });
    assert!(parts > 1, "even an empty request has an answer");
}

#[test]
fn a_path_outside_the_folder_is_tried_as_written_so_that_the_tool_refuses_it() {
    let mut talk = Talk::new("write ../outside.txt", &PLANNING);
    let plan = talk.until_submitted("", "Only the file");
    assert_eq!(Plan::read(&plan).files[0].0, "../outside.txt");
}

#[test]
fn a_note_beside_a_named_file_is_made_only_when_it_was_chosen() {
    let files = |wish| Plan::read(&Talk::new("write a.txt", &PLANNING).until_submitted("", wish)).files.len();
    assert_eq!((files("Only the file"), files("The file and a note"), files("A note")), (1, 2, 1));
}

#[test]
fn an_existing_file_is_not_overwritten_unless_it_was_named() {
    let plan = Talk::new("notes", &PLANNING).until_submitted("notes.md\n", "A note");
    assert_eq!(Plan::read(&plan).files[0].0, "notes-2.md");
}

#[test]
fn another_model_is_unknown_and_a_cancelled_one_stops() {
    let request = ModelRequest::new("demo/other", vec![]);
    let error = now(Guide::new().stream(request, CancelToken::new())).err().unwrap();
    assert_eq!(error.kind, ModelErrorKind::UnknownModel);

    let cancel = CancelToken::new();
    let events = now(async {
        let mut stream = Guide::new().stream(ModelRequest::new("demo/guide", vec![]), cancel.clone()).await.unwrap();
        let first = stream.next().await.unwrap();
        cancel.cancel();
        let rest: Vec<_> = stream.collect().await;
        (first, rest)
    });
    assert!(events.0.is_ok());
    assert_eq!(events.1.len(), 1);
    assert_eq!(events.1[0].as_ref().err().unwrap().kind, ModelErrorKind::Cancelled);
}

#[test]
fn text_comes_word_by_word() {
    let request = ModelRequest::new("demo/guide", vec![]);
    let events = now(async { Guide::new().stream(request, CancelToken::new()).await.unwrap().collect::<Vec<_>>().await });
    assert!(events.len() > 10, "{}", events.len());
}

#[test]
fn a_plan_reads_back_as_it_was_written_also_with_line_numbers_and_fences_inside() {
    let plan = Plan {
        files: vec![("a b.md".into(), "one\n```sh\nls\n```\n\n## Command\n".into()), ("c.sh".into(), "echo\n".into())],
        command: Some("sh c.sh\nls".into()),
    };
    let text = plan.write("t", &["f".into()], &["g".into()]);
    assert_eq!(Plan::read(&text), plan);
    let numbered: String = text.lines().enumerate().map(|(n, line)| format!("{:>6}\t{line}\n", n + 1)).collect();
    assert_eq!(Plan::read(&format!(".acode/plans/t.md (30 lines)\n{numbered}")), plan);
    assert_eq!(Plan::read("garbage\n```"), Plan::default());
}

#[test]
fn a_listing_is_read_flat_or_as_a_tree() {
    let flat = Folder::read("Cargo.toml\nsrc/main.rs\n2 files\n");
    let tree = Folder::read(".\n├── Cargo.toml\n└── src/\n    └── main.rs\n\n1 directory, 2 files\n");
    assert_eq!(flat.files, ["Cargo.toml", "src/main.rs"]);
    assert_eq!(flat, tree);
    assert!(Folder::read("No files found").files.is_empty());
}

#[test]
fn names_are_taken_from_running_text() {
    assert_eq!(named_file("please write src/hello.py."), Some("src/hello.py"));
    assert_eq!(named_file("see https://example.com/a.b and stop. Now"), None);
    assert_eq!(named_file("version 1.2"), None);
    assert_eq!((slug("Füge das hinzu!"), slug("!!!")), ("f-ge-das-hinzu".into(), "task".into()));
}

#[test]
fn a_message_that_names_a_tool_and_its_arguments_is_a_call_of_it() {
    let order = r#"weather {"city": "Oslo"}"#;
    let mut talk = Talk::new(order, &["weather", "ask_user", "find_files"]);
    let call = talk.turn().only().clone();
    assert_eq!((call.name.as_str(), call.args), ("weather", json!({"city": "Oslo"})));
    talk.done("Sunny in Oslo.");
    assert_eq!(talk.turn().ends(), "`weather` says: Sunny in Oslo.");
    talk.say(order);
    talk.turn();
    talk.deny("not today");
    assert_eq!(talk.turn().ends(), "`weather` was not allowed: not today");
    talk.say(order);
    talk.turn();
    talk.fail("no such city");
    assert_eq!(talk.turn().ends(), "`weather` failed: no such city");

    for other in [r#"weather {"city": "#, r#"weather [1]"#, r#"tell the weather {"city": "Oslo"}"#, r#"tides {"city": "Oslo"}"#] {
        let mut talk = Talk::new(other, &["weather", "ask_user"]);
        assert_eq!(talk.turn().only().name, "ask_user", "{other}");
    }
}
