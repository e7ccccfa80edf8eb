use std::borrow::Cow;

use ac_core::{ModelRequest, Role, ToolCallPart, model::ToolChoice};
use serde_json::{Value, json};

use super::{
    content::{self, Brief, one_line},
    folder::Folder,
    order,
    plan::Plan,
    story::{self, Beat, Outcome, OutcomeKind, Story},
};

/// What the model does next.
#[derive(Debug, Default)]
pub(super) struct Step {
    pub(super) say: String,
    pub(super) calls: Vec<Call>,
}

/// A call to make.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) tool: Cow<'static, str>,
    pub(super) args: Value,
}

impl Step {
    fn say(text: impl Into<String>) -> Self {
        Self { say: text.into(), calls: vec![] }
    }

    fn call(text: impl Into<String>, tool: impl Into<Cow<'static, str>>, args: Value) -> Self {
        Self { say: text.into(), calls: vec![Call { tool: tool.into(), args }] }
    }
}

const BANNER: &str = "I am demo/guide, a built-in demonstration without a language model: I follow one recipe and make small files.\n";
const STOPPED: &str = "I stop here. Send a message when you want to go on.";

/// What is known after everything that happened. Each field is the latest of its kind.
#[derive(Default)]
struct Known {
    listing: Option<Outcome>,
    telling: Option<(String, Outcome)>,
    asked: Option<Outcome>,
    wrote_plan: Option<(String, Outcome)>,
    decided: Option<Decision>,
    /// The plan, in as many pieces as the tool showed it.
    read_back: Vec<Outcome>,
    written: Vec<(String, Outcome)>,
    ran: Option<Outcome>,
    changes: Vec<String>,
}

enum Decision {
    Approved,
    Revise,
    Stop,
    Failed(String),
}

/// Decides from the request alone.
pub(super) fn next(request: &ModelRequest) -> Step {
    if !request.messages.iter().any(|message| message.role == Role::User && story::says_something(message)) {
        return Step::say(format!("{BANNER}Tell me what to make."));
    }
    let story = story::read(request);
    let known = know(&story);
    let recipe = Recipe { request, task: one_line(&story.task, 200), known };
    let mut step = recipe.ordered(&story).unwrap_or_else(|| recipe.next());
    if story.beats.is_empty() {
        step.say = format!("{BANNER}{}", step.say);
    }
    step
}

fn know(story: &Story<'_>) -> Known {
    let mut known = Known::default();
    for beat in &story.beats {
        match beat {
            Beat::Said(text) => said(&mut known, text),
            Beat::Called(call) => called(&mut known, call),
        }
    }
    known
}

/// A message in the middle of the work. It changes the plan as long as nothing is built, and gives another chance to what was refused.
fn said(known: &mut Known, text: &str) {
    if !text.trim().is_empty() {
        known.changes.push(one_line(text, 200));
    }
    if !matches!(known.decided, Some(Decision::Approved)) {
        let plan_stands = text.trim().is_empty() && known.wrote_plan.as_ref().is_some_and(|(_, outcome)| outcome.kind == OutcomeKind::Done);
        if !plan_stands {
            known.wrote_plan = None;
        }
        known.decided = None;
    } else {
        known.written.retain(|(_, outcome)| outcome.kind == OutcomeKind::Done);
        known.ran = known.ran.take().filter(|outcome| outcome.kind == OutcomeKind::Done);
    }
}

fn called(known: &mut Known, call: &ToolCallPart) {
    let Some(outcome) = story::result(call) else { return };
    let path = story::arg(call, "path").to_owned();
    match call.name.as_str() {
        "find_files" => known.listing = Some(outcome),
        "view" if known.decided.is_some() => known.read_back.push(outcome),
        "view" => known.telling = Some((path, outcome)),
        "ask_user" => known.asked = Some(outcome),
        "write_file" if matches!(known.decided, Some(Decision::Approved)) || !is_plan(&path) => known.written.push((path, outcome)),
        "write_file" => {
            known.decided = None;
            known.read_back.clear();
            known.wrote_plan = Some((path, outcome));
        }
        "submit_plan" => {
            let decision = decision(call, outcome);
            if let (Decision::Revise, Some(feedback)) = (&decision, story::feedback(call)) {
                known.changes.push(one_line(&feedback, 200));
            }
            known.decided = Some(decision);
        }
        "execute_command" => known.ran = Some(outcome),
        _ => {}
    }
}

fn is_plan(path: &str) -> bool {
    path.starts_with(".acode/plans/")
}

fn decision(call: &ToolCallPart, outcome: Outcome) -> Decision {
    match outcome.kind {
        OutcomeKind::Denied => Decision::Stop,
        OutcomeKind::Failed => Decision::Failed(outcome.text),
        OutcomeKind::Done if outcome.text.starts_with("Plan approved") => Decision::Approved,
        OutcomeKind::Done if story::feedback(call).is_some() => Decision::Revise,
        OutcomeKind::Done => Decision::Stop,
    }
}

/// The line at which a tool says that a long file goes on.
fn goes_on_at(shown: &str) -> Option<u64> {
    let footer = shown.trim_end().lines().last().filter(|line| line.starts_with('['))?;
    footer.strip_suffix(']')?.rsplit_once("offset ")?.1.parse().ok()
}

fn without_footer(shown: &str) -> String {
    let lines = shown.lines().filter(|line| goes_on_at(line).is_none());
    lines.map(|line| format!("{line}\n")).collect()
}

struct Recipe<'a> {
    request: &'a ModelRequest,
    task: String,
    known: Known,
}

impl Recipe<'_> {
    fn can(&self, tool: &str) -> bool {
        self.request.tool_choice != ToolChoice::None && self.request.tools.iter().any(|offered| offered.name == tool)
    }

    /// The person named a tool and its arguments: it is called as it is, and its answer is told.
    fn ordered(&self, story: &Story<'_>) -> Option<Step> {
        let (tool, args) = order::read(&story.task).filter(|(tool, _)| self.can(tool))?;
        let answered = story.beats.iter().rev().find_map(|beat| match beat {
            Beat::Called(call) if call.name == tool => story::result(call),
            _ => None,
        });
        Some(match answered {
            None => Step::call(format!("I call `{tool}`."), tool.to_owned(), args),
            Some(outcome) => {
                let how = match outcome.kind {
                    OutcomeKind::Done => "says",
                    OutcomeKind::Failed => "failed",
                    OutcomeKind::Denied => "was not allowed",
                };
                Step::say(format!("`{tool}` {how}: {}", outcome.text.trim_end()))
            }
        })
    }

    fn next(&self) -> Step {
        let known = &self.known;
        if let Some(decision) = &known.decided {
            return match decision {
                Decision::Approved => self.build_from_file(),
                Decision::Revise => self.write_plan(),
                Decision::Stop => Step::say(format!("The plan was not approved, so nothing was built. {STOPPED}")),
                Decision::Failed(why) => Step::say(format!("I could not submit the plan: {} {STOPPED}", one_line(why, 300))),
            };
        }
        if let Some((path, outcome)) = &known.wrote_plan {
            return self.submit(path, outcome);
        }
        self.look()
    }

    fn look(&self) -> Step {
        let known = &self.known;
        if known.listing.is_none() && self.can("find_files") {
            return Step::call("First I look at what is in this folder.", "find_files", json!({}));
        }
        let folder = self.folder();
        if let (None, Some(path)) = (&known.telling, folder.telling())
            && self.can("view")
        {
            return Step::call(format!("{} I read `{path}`, which should say most about it.", folder.describe()), "view", self.view(path));
        }
        if known.asked.is_none() && self.can("ask_user") {
            return Step::call("One question before I plan.", "ask_user", self.question());
        }
        if self.can("submit_plan") && !self.builds_at_once() {
            return self.write_plan();
        }
        if self.can("write_file") {
            return self.build(&self.compose());
        }
        let plan = self.compose().write(&self.task, &self.findings(), &known.changes);
        Step::say(format!("I may not write files here, so this is only what I would do.\n\n{plan}"))
    }

    /// Commands are offered before any plan was approved: this is no planning mode.
    fn builds_at_once(&self) -> bool {
        self.can("execute_command") || !self.can("write_file")
    }

    fn write_plan(&self) -> Step {
        if !self.can("write_file") {
            return Step::say(format!("I may not write a plan file here. {STOPPED}"));
        }
        let plan = self.compose().write(&self.task, &self.findings(), &self.known.changes);
        let path = format!(".acode/plans/{}.md", content::slug(&self.task));
        let say = match self.known.changes.last() {
            Some(change) => format!("I revise the plan: {change}"),
            None => format!("I write the plan to `{path}`."),
        };
        Step::call(say, "write_file", json!({ "path": path, "content": plan }))
    }

    fn submit(&self, path: &str, outcome: &Outcome) -> Step {
        match outcome.kind {
            OutcomeKind::Done if self.can("submit_plan") => {
                Step::call("The plan is written. Please decide.", "submit_plan", json!({ "path": path }))
            }
            OutcomeKind::Done => Step::say(format!("The plan is in `{path}`. It cannot be submitted here. {STOPPED}")),
            OutcomeKind::Denied => Step::say(format!("Writing the plan was not allowed ({}). {STOPPED}", one_line(&outcome.text, 200))),
            OutcomeKind::Failed => Step::say(format!("I could not write the plan: {} {STOPPED}", one_line(&outcome.text, 300))),
        }
    }

    fn build_from_file(&self) -> Step {
        let Some((path, _)) = &self.known.wrote_plan else {
            return Step::say(format!("A plan was approved that I did not write. {STOPPED}"));
        };
        let say = match self.known.read_back.last() {
            None => "Approved. I read the plan back, in case it was edited.",
            Some(read) if read.kind != OutcomeKind::Done => {
                return Step::say(format!(
                    "I could not read the plan `{path}`, so I build nothing: {} {STOPPED}",
                    one_line(&read.text, 300)
                ));
            }
            Some(read) if goes_on_at(&read.text).is_some() => "The plan is long; I read on.",
            Some(_) => {
                let text: String = self.known.read_back.iter().map(|read| without_footer(&read.text)).collect();
                if text.contains(" more bytes in this line]") {
                    return Step::say(format!("A line of the plan is too long to be read, so I build nothing. {STOPPED}"));
                }
                return self.build(&Plan::read(&text));
            }
        };
        if !self.can("view") {
            return Step::say(format!("I may not read files here, so I cannot follow the plan. {STOPPED}"));
        }
        let mut args = self.view(path);
        if let (Some(fields), Some(offset)) = (args.as_object_mut(), self.known.read_back.last().and_then(|read| goes_on_at(&read.text))) {
            fields.insert("offset".into(), offset.into());
        }
        Step::call(say, "view", args)
    }

    fn build(&self, plan: &Plan) -> Step {
        if plan.files.is_empty() && plan.command.is_none() {
            return Step::say(format!("The plan lists no files and no command, so there is nothing to build. {STOPPED}"));
        }
        let tried = |path: &str| self.known.written.iter().any(|(known, _)| known == path);
        let open: Vec<_> = plan.files.iter().filter(|(path, _)| !tried(path)).collect();
        if !open.is_empty() {
            if !self.can("write_file") {
                return Step::say(format!("I may not write files here. {STOPPED}"));
            }
            let names: Vec<_> = open.iter().map(|(path, _)| format!("`{path}`")).collect();
            let calls = open.iter().map(|(path, text)| Call { tool: "write_file".into(), args: json!({ "path": path, "content": text }) });
            return Step { say: format!("I write {}.", names.join(", ")), calls: calls.collect() };
        }
        let made = self.known.written.iter().any(|(_, outcome)| outcome.kind == OutcomeKind::Done) || plan.files.is_empty();
        match &plan.command {
            Some(command) if made && self.known.ran.is_none() && self.can("execute_command") => {
                Step::call(format!("I run `{}`.", one_line(command, 200)), "execute_command", json!({ "command": command }))
            }
            command => self.report(command.as_deref()),
        }
    }

    fn report(&self, command: Option<&str>) -> Step {
        let mut lines = vec![];
        for (path, outcome) in &self.known.written {
            let why = one_line(&outcome.text, 200);
            lines.push(match outcome.kind {
                OutcomeKind::Done => format!("- wrote `{path}`"),
                OutcomeKind::Failed => format!("- could not write `{path}`: {why}"),
                OutcomeKind::Denied => format!("- did not write `{path}`: not allowed ({why})"),
            });
        }
        if let Some(command) = command.map(|command| one_line(command, 200)) {
            lines.push(match &self.known.ran {
                None => format!("- did not run `{command}`"),
                Some(outcome) if outcome.kind == OutcomeKind::Done => format!("- ran `{command}`: {}", one_line(&outcome.text, 300)),
                Some(outcome) if outcome.kind == OutcomeKind::Failed => format!("- `{command}` failed: {}", one_line(&outcome.text, 300)),
                Some(outcome) => format!("- did not run `{command}`: not allowed ({})", one_line(&outcome.text, 200)),
            });
        }
        let all = self.known.written.iter().all(|(_, outcome)| outcome.kind == OutcomeKind::Done);
        let head = if all { "Done." } else { "I did what was possible." };
        Step::say(format!("{head}\n{}", lines.join("\n")))
    }

    fn folder(&self) -> Folder {
        match &self.known.listing {
            Some(listing) if listing.kind == OutcomeKind::Done => Folder::read(&listing.text),
            _ => Folder::default(),
        }
    }

    /// Asks for plain text where the tool can number lines.
    fn view(&self, path: &str) -> Value {
        match ["showLineNumbers", "show_line_numbers", "line_numbers"].iter().find(|name| self.takes("view", name)) {
            Some(name) => json!({ "path": path, *name: false }),
            None => json!({ "path": path }),
        }
    }

    fn question(&self) -> Value {
        let options = match content::named_file(&self.task) {
            Some(path) => vec![("Only the file", format!("`{path}`")), ("The file and a note", format!("`{path}` and what it is for"))],
            None => vec![
                ("A note", "a Markdown file about the task".to_owned()),
                ("A script", "a shell script that runs".to_owned()),
                ("Both", "a script and a note about it".to_owned()),
            ],
        };
        let options: Vec<_> =
            options.into_iter().map(|(label, description)| json!({ "label": label, "description": description })).collect();
        let question = format!("What should come out of \"{}\"?", one_line(&self.task, 80));
        let mut args = json!({ "question": question, "options": options, "selectionMode": "single_select" });
        if self.takes("ask_user", "allowFreeText")
            && let Some(fields) = args.as_object_mut()
        {
            fields.insert("allowFreeText".into(), Value::Bool(true));
        }
        args
    }

    /// Whether a tool, as it is offered, has this argument.
    fn takes(&self, tool: &str, argument: &str) -> bool {
        let offered = self.request.tools.iter().find(|offered| offered.name == tool);
        offered.and_then(|offered| offered.input_schema.get("properties")).is_some_and(|known| known.get(argument).is_some())
    }

    /// The person's answer to the question, where there was one.
    fn wish(&self) -> Option<&str> {
        let outcome = self.known.asked.as_ref().filter(|outcome| outcome.kind == OutcomeKind::Done)?;
        let answer = outcome.text.strip_prefix("User answered:").unwrap_or(&outcome.text).trim();
        (!answer.is_empty()).then_some(answer)
    }

    fn findings(&self) -> Vec<String> {
        let mut findings = vec![match &self.known.listing {
            Some(listing) if listing.kind == OutcomeKind::Done => self.folder().describe(),
            Some(listing) => format!("The folder could not be listed: {}", one_line(&listing.text, 200)),
            None => "Nobody looked at the folder: no tool for it was offered.".into(),
        }];
        if let Some((path, outcome)) = self.known.telling.as_ref().filter(|(_, outcome)| outcome.kind == OutcomeKind::Done) {
            // The first words that say something; a heading of the tool's own does not.
            let shown = outcome
                .text
                .lines()
                .find(|line| line.chars().any(char::is_alphabetic) && !line.contains(path.as_str()) && !line.starts_with('['));
            if let Some(line) = shown {
                findings.push(format!("`{path}` begins: {}", one_line(line.trim_start_matches(|c: char| !c.is_alphabetic()), 120)));
            }
        }
        findings.push(match self.wish() {
            Some(wish) => format!("You chose: {}", one_line(wish, 200)),
            None => "Nobody answered my question, so I chose.".into(),
        });
        findings
    }

    /// What is to be built, from everything that is known.
    fn compose(&self) -> Plan {
        let findings = self.findings();
        let brief = Brief { task: &self.task, findings: &findings, changes: &self.known.changes };
        let wish = self.wish().unwrap_or_default();
        // The latest word counts.
        let words = self.known.changes.iter().rev().map(String::as_str).chain([wish, self.task.as_str()]);
        let named = words.filter_map(content::named_file).next();
        let (folder, stem) = (self.folder(), content::slug(&self.task));
        let fresh = |kind| content::fresh(&folder, &stem, kind);
        let wish = wish.to_ascii_lowercase();
        let paths = match named {
            Some(path) if wish.contains("file and a note") => vec![path.to_owned(), fresh("md")],
            Some(path) => vec![path.to_owned()],
            None if wish.contains("both") => vec![fresh("sh"), fresh("md")],
            None if wish.contains("script") => vec![fresh("sh")],
            None => vec![fresh("md")],
        };
        let files: Vec<_> = paths.into_iter().map(|path| (path.clone(), content::content(&path, &brief))).collect();
        let command = files.first().map(|(path, _)| content::command(path));
        Plan { files, command }
    }
}
