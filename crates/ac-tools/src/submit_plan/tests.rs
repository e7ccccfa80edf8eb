use ac_core::tool::{Capabilities, NoSuspension};

use super::*;
use crate::testing::{context, context_with};

async fn decide(answer: Value) -> Result<Value, ToolError> {
    let with = ToolResume { args: json!({"path": "p.md"}), state: Value::Null, payload: Value::Null, answer };
    match SubmitPlan.resume(with, &context("submit_plan")).await? {
        ToolOutcome::Done(output) => Ok(output.value),
        other => panic!("expected a result, got {other:?}"),
    }
}

#[tokio::test]
async fn a_plan_waits_without_being_read() {
    let outcome = SubmitPlan.call(json!({"path": "no/such/plan.md"}), &context("submit_plan")).await.unwrap();
    let ToolOutcome::Suspend(suspend) = outcome else { panic!("expected a suspension, got {outcome:?}") };
    assert_eq!(suspend.kind, SuspendKind::Plan);
    assert_eq!(suspend.payload, json!({"toolId": "submit_plan", "path": "no/such/plan.md"}));
}

#[tokio::test]
async fn an_approval_echoes_what_the_host_handed_back() {
    let result = decide(json!({"action": "approved", "title": "T", "path": "p.md", "plan": "# T", "other": 1})).await.unwrap();
    assert_eq!(
        result,
        json!({
            "toolId": "submit_plan",
            "content": "Plan approved. Proceed with implementation following the approved plan.",
            "isError": false,
            "submittedPlan": {"title": "T", "path": "p.md", "plan": "# T"}
        })
    );
    assert_eq!(decide(json!({"action": "approved"})).await.unwrap()["submittedPlan"], json!({}));
}

#[tokio::test]
async fn a_rejection_with_feedback_asks_for_a_revision() {
    let result = decide(json!({"action": "rejected", "feedback": "add tests"})).await.unwrap();
    let content = "Plan was not approved. The user wants revisions.\n\nUser feedback: add tests\n\nPlease revise the plan based on the feedback \
                   and submit again with submit_plan.";
    assert_eq!(result["content"], content);
    assert_eq!(result["submittedPlan"], json!({"feedback": "add tests"}));
}

#[tokio::test]
async fn a_plain_rejection_tells_the_model_to_stop() {
    let content = "Plan was not approved. The user will send revision instructions in their next message. Stop now and wait for the user to \
                   provide feedback before revising the plan.";
    for answer in [json!({"action": "rejected"}), json!({"action": "rejected", "feedback": ""})] {
        let result = decide(answer).await.unwrap();
        assert_eq!(result["content"], content);
        assert_eq!(result["submittedPlan"], json!({}));
    }
}

/// SPEC B-17: a malformed decision is no approval.
#[tokio::test]
async fn nothing_but_approved_approves() {
    let schema = SubmitPlan.definition().answer_schema.unwrap();
    assert_eq!(schema["properties"]["action"]["enum"], json!(["approved", "rejected"]));
    assert_eq!(schema["required"], json!(["action"]));
    for answer in [json!({"action": "yes"}), json!({}), json!("approved"), json!(true), json!(null), json!({"action": "Approved"})] {
        assert_eq!(decide(answer).await.unwrap_err().kind(), ToolErrorKind::Failed);
    }
}

/// SPEC B-13.
#[tokio::test]
async fn where_nobody_keeps_the_wait_the_path_is_readable_text() {
    let cx = context_with("submit_plan", Capabilities::new().with(std::sync::Arc::new(NoSuspension)));
    let outcome = SubmitPlan.call(json!({"path": "p.md"}), &cx).await.unwrap();
    assert_eq!(outcome, ToolOutcome::Done(ToolOutput::text("A plan waits for review in p.md.")));
}

#[tokio::test]
async fn a_plan_without_a_path_is_refused() {
    for args in [json!({}), json!({"path": "  "}), json!({"path": 1})] {
        assert_eq!(SubmitPlan.call(args, &context("submit_plan")).await.unwrap_err().kind(), ToolErrorKind::Args);
    }
}

#[test]
fn it_talks_to_the_person_and_changes_nothing() {
    let definition = SubmitPlan.definition();
    assert_eq!((definition.category, definition.effect), (ToolCategory::Interact, ToolEffect::ReadOnly));
}
