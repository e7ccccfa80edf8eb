use serde_json::json;

use super::*;

fn question(mode: &str, free: bool) -> Question {
    let payload = json!({
        "question": "Which?",
        "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}, {"label": "2"}],
        "selectionMode": mode,
        "allowFreeText": free,
    });
    Question::read("ask_user", &payload).unwrap()
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn one_option_is_chosen_by_label_or_number() {
    let question = question("single_select", false);
    assert_eq!(question.answer_line("1").unwrap(), json!("Red"));
    assert_eq!(question.answer_line(" blue ").unwrap(), json!("Blue"));
    // A label that is a number is that label, not the option of that number.
    assert_eq!(question.answer_line("2").unwrap(), json!("2"));
    assert_eq!(question.answer_line("3").unwrap(), json!("2"));
    for wrong in ["", "0", "4", "green", "Red, Blue"] {
        let error = question.answer_line(wrong).unwrap_err();
        assert!(error.contains("1 (Red), 2 (Blue)"), "{error}");
    }
    assert!(question.answer(&strings(&["Red", "Blue"])).unwrap_err().contains("only one"));
    assert!(question.answer(&[]).is_err());
}

#[test]
fn several_options_come_as_a_list_without_repetitions() {
    let question = question("multi_select", false);
    assert_eq!(question.answer_line("1, blue,1").unwrap(), json!(["Red", "Blue"]));
    assert_eq!(question.answer(&strings(&["Blue", "Red"])).unwrap(), json!(["Blue", "Red"]));
    assert!(question.answer_line("red, green").is_err());
    assert!(question.answer_line(" , ").is_err());
}

#[test]
fn free_text_counts_only_where_it_is_welcome() {
    assert_eq!(question("single_select", true).answer_line("a deep green").unwrap(), json!("a deep green"));
    assert_eq!(question("single_select", true).answer(&strings(&["deep", "green"])).unwrap(), json!("deep green"));
    assert_eq!(question("multi_select", true).answer_line("Red, teal").unwrap(), json!(["Red", "teal"]));
    let open = Question::read("ask_user", &json!({"question": "Why?"})).unwrap();
    assert_eq!(open.answer_line("because, well").unwrap(), json!("because, well"));
    assert_eq!(open.answer_line("").unwrap(), json!(""));
    assert_eq!(open.answer(&strings(&["two", "words"])).unwrap(), json!("two words"));
}

#[test]
fn another_tool_gets_json_where_it_is_json() {
    assert_eq!(answer("deploy", &json!({}), &strings(&["{\"go\":true}"])).unwrap(), json!({"go": true}));
    assert_eq!(answer("deploy", &json!({}), &strings(&["not", "json"])).unwrap(), json!("not json"));
}

#[test]
fn only_a_clear_yes_approves() {
    for yes in ["a", "Approve", " yes ", "Y"] {
        assert_eq!(plan(yes), PlanAnswer::Approve);
    }
    for no in ["n", "reject", "NO"] {
        assert_eq!(plan(no), PlanAnswer::AskWhy);
    }
    assert_eq!(plan("yes but shorter"), PlanAnswer::Reject(Some("yes but shorter".into())));
    assert_eq!(plan("  "), PlanAnswer::Unclear);
    assert_eq!(
        (approval("y"), approval("Always"), approval("n")),
        (Some(ApprovalAnswer::Yes), Some(ApprovalAnswer::Always), Some(ApprovalAnswer::No))
    );
    assert_eq!((approval(""), approval("a"), approval("yes please")), (None, None, None));
    assert_eq!((in_doubt("again"), in_doubt("failed"), in_doubt("y")), (Some(true), Some(false), None));
}
