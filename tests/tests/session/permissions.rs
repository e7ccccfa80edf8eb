//! What people reported of permissions: grants that reach too far, and settings that loosen each other.

use ac_controller::{ApprovalDecision, Session};
use ac_core::{
    Policy, Tool, ToolCategory, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput,
    permission::{Reason, Verdict},
};
use ac_testkit::Turn;
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::desk::{Desk, build_mode, send_and_rest};

fn write(id: &str) -> Turn {
    Turn::tool(id, "write", json!({ "what": id }))
}

async fn waiting(session: &Session) -> Vec<String> {
    session.pending().await.unwrap().iter().map(|wait| wait.call.to_string()).collect()
}

/// B-96: a grant holds in its session, over threads and restarts, until it is taken back; nobody else has it.
#[tokio::test]
async fn a_grant_holds_in_its_session_and_nowhere_else() {
    let desk = Desk::new([
        write("c1"),
        Turn::text("done"),
        write("c2"),
        Turn::text("done"),
        write("other"),
        Turn::text("done"),
        write("c3"),
        Turn::text("done"),
        write("c4"),
        Turn::text("done"),
    ]);
    let first = desk.builder("").modes(build_mode()).build().unwrap();
    let session = first.create_session("ann").await.unwrap();
    send_and_rest(&session, "write").await;
    session.respond_to_tool_approval(ApprovalDecision::AlwaysAllowTool, None).await.unwrap();
    desk.server.wait_for_requests(2).await;
    session.create_thread(None, "another").await.unwrap();
    session.send_message("write").await.unwrap();
    assert_eq!(desk.done(), ["write c1", "write c2"], "the same session on another thread");

    let other = first.create_session("bob").await.unwrap();
    send_and_rest(&other, "write").await;
    assert_eq!((waiting(&other).await, other.grants()), (vec!["other".to_owned()], vec![]));
    other.abort().await.unwrap();
    first.shutdown().await;

    let second = desk.builder("second").modes(build_mode()).build().unwrap();
    second.init().await.unwrap();
    let session = second.create_session("ann").await.unwrap();
    // The turn that the other session did not come to.
    assert_eq!(session.grants().len(), 1);
    session.send_message("say").await.unwrap();
    session.send_message("write").await.unwrap();
    assert_eq!(desk.done(), ["write c1", "write c2", "write c3"], "after a restart");
    session.revoke(&session.grants()[0].id).await.unwrap();
    send_and_rest(&session, "write").await;
    assert_eq!(waiting(&session).await, ["c4"], "taken back");
    second.shutdown().await;
}

/// Asks before each call, whatever its category may do.
struct Careful;

#[async_trait]
impl Tool for Careful {
    fn definition(&self) -> ToolDefinition {
        let schema = json!({ "type": "object", "properties": {} });
        ToolDefinition::new("careful", "Asks first.", schema).category(ToolCategory::Read).requires_approval()
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::text("done")))
    }
}

/// B-99: what a tool asks for itself is not loosened by its category, its default or the host's resolver, alone, in parallel or after an
/// answer; only a rule or a grant that names it, its category's grant, or yolo does that.
#[tokio::test]
async fn a_tool_that_asks_is_not_loosened_by_what_its_category_may_do() {
    let careful = |id: &str| Turn::tool(id, "careful", json!({}));
    let desk = Desk::new([
        careful("c1").then_tool("c2", "careful", json!({})).then_tool("q", "ask_user", json!({ "question": "?" })),
        careful("c3"),
        Turn::text("done"),
    ]);
    let controller = desk
        .builder("")
        .modes(build_mode())
        .tools([std::sync::Arc::new(Careful) as std::sync::Arc<dyn Tool>])
        .tool_category(|_| Some(ToolCategory::Read))
        .build()
        .unwrap();
    let session = controller.create_session("ann").await.unwrap();
    session.set_category_policy(ToolCategory::Read, Some(Policy::Allow)).await.unwrap();
    let decision = session.decide("careful").unwrap();
    assert_eq!((decision.verdict, decision.reason), (Verdict::Ask, Reason::RequiresApproval));

    send_and_rest(&session, "go").await;
    let open = session.pending().await.unwrap();
    let calls: Vec<_> = open.iter().map(|wait| wait.call.as_str()).collect();
    assert_eq!(calls, ["c1", "c2", "q"]);
    session.respond_to_tool_suspension(json!("yes"), None).await.unwrap();
    session.approve(&open[0].id).await.unwrap();
    session.approve(&open[1].id).await.unwrap();
    desk.server.wait_for_requests(2).await;
    session.live_run().await.unwrap().unwrap().resting().await;
    assert_eq!(waiting(&session).await, ["c3"], "one yes is one yes");
    controller.shutdown().await;
}
