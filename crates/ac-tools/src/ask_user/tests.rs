use ac_core::tool::NoSuspension;

use super::*;
use crate::testing::{context, context_with};

async fn call(args: Value) -> ToolOutcome {
    AskUser.call(args, &context("ask_user")).await.unwrap()
}

async fn suspended(args: Value) -> Suspend {
    match call(args).await {
        ToolOutcome::Suspend(suspend) => suspend,
        other => panic!("expected a suspension, got {other:?}"),
    }
}

fn done(outcome: ToolOutcome) -> Value {
    match outcome {
        ToolOutcome::Done(output) => output.value,
        other => panic!("expected a result, got {other:?}"),
    }
}

async fn answered(answer: Value) -> Value {
    let with = ToolResume { args: json!({}), state: Value::Null, payload: Value::Null, answer };
    done(AskUser.resume(with, &context("ask_user")).await.unwrap())
}

#[tokio::test]
async fn a_free_question_suspends_with_the_question_alone() {
    let suspend = suspended(json!({"question": "Your name?"})).await;
    assert_eq!(suspend.kind, ac_core::SuspendKind::Question);
    assert_eq!(suspend.payload, json!({"question": "Your name?"}));
    assert_eq!(suspend.answer_schema, Some(free_text_schema()));
}

#[tokio::test]
async fn options_fill_in_single_select() {
    let suspend = suspended(json!({"question": "Pick", "options": [{"label": "A"}, {"label": "B", "description": "the second"}]})).await;
    assert_eq!(
        suspend.payload,
        json!({"question": "Pick", "options": [{"label": "A"}, {"label": "B", "description": "the second"}], "selectionMode": "single_select"})
    );
    let schema = suspend.answer_schema.unwrap();
    assert_eq!(schema["anyOf"][0], json!({"type": "string", "enum": ["A", "B"]}));
    assert_eq!(schema["anyOf"][1]["maxItems"], 1);
}

#[tokio::test]
async fn several_options_may_be_chosen_in_multi_select() {
    let suspend =
        suspended(json!({"question": "Pick", "options": [{"label": "A"}, {"label": "B"}], "selectionMode": "multi_select"})).await;
    assert_eq!(suspend.payload["selectionMode"], "multi_select");
    assert_eq!(suspend.answer_schema.unwrap()["anyOf"][1]["uniqueItems"], true);
}

#[tokio::test]
async fn free_text_beside_options_must_be_allowed_and_is_shown() {
    let suspend = suspended(json!({"question": "Pick", "options": [{"label": "A"}], "allowFreeText": true})).await;
    assert_eq!(suspend.payload["allowFreeText"], true);
    assert_eq!(suspend.answer_schema, Some(free_text_schema()));
}

/// SPEC B-2, and questions that nobody could answer.
#[tokio::test]
async fn a_question_that_cannot_be_answered_is_an_error_result() {
    for (args, reason) in [
        (json!({"question": "Pick", "selectionMode": "multi_select"}), "Failed to ask user: selectionMode requires options."),
        (
            json!({"question": "Pick", "options": [], "selectionMode": "single_select"}),
            "Failed to ask user: selectionMode requires options.",
        ),
        (json!({"question": " "}), "Failed to ask user: the question is empty."),
        (json!({"question": "Pick", "options": [{"label": ""}]}), "Failed to ask user: an option has no label."),
        (json!({"question": "Pick", "options": [{"label": "A"}, {"label": "A"}]}), "Failed to ask user: two options have the same label."),
    ] {
        assert_eq!(done(call(args).await), json!({"content": reason, "isError": true}));
    }
}

#[tokio::test]
async fn arguments_of_another_shape_are_refused() {
    let error = AskUser.call(json!({"question": 7}), &context("ask_user")).await.unwrap_err();
    assert_eq!(error.kind(), ToolErrorKind::Args);
}

#[tokio::test]
async fn an_answer_is_told_as_text_and_a_list_is_joined() {
    assert_eq!(answered(json!("Bob")).await, json!({"content": "User answered: Bob", "isError": false}));
    assert_eq!(answered(json!(["A", "C"])).await, json!({"content": "User answered: A, C", "isError": false}));
    assert_eq!(answered(json!("")).await, json!({"content": "User answered: ", "isError": false}));
}

#[tokio::test]
async fn an_answer_that_is_no_text_fails() {
    for answer in [json!(42), json!(null), json!({"x": 1}), json!(["A", 1])] {
        let with = ToolResume { args: json!({}), state: Value::Null, payload: Value::Null, answer };
        assert_eq!(AskUser.resume(with, &context("ask_user")).await.unwrap_err().kind(), ToolErrorKind::Failed);
    }
}

/// SPEC B-5.
#[tokio::test]
async fn where_nobody_keeps_the_wait_the_question_is_readable_text() {
    let cx = context_with("ask_user", ac_core::tool::Capabilities::new().with(std::sync::Arc::new(NoSuspension)));
    let args =
        json!({"question": "Which?", "options": [{"label": "A", "description": "first"}, {"label": "B"}], "selectionMode": "multi_select"});
    let text = done(AskUser.call(args, &cx).await.unwrap());
    assert_eq!(text, json!("Which?\n- A: first\n- B\n(choose any number)"));
}

#[test]
fn it_talks_to_the_person_and_changes_nothing() {
    let definition = AskUser.definition();
    assert_eq!((definition.category, definition.effect), (ToolCategory::Interact, ToolEffect::ReadOnly));
    assert!(!definition.requires_approval);
    assert_eq!(definition.answer_schema, Some(free_text_schema()));
}
