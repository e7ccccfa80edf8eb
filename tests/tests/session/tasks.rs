//! Task lists: kept with the thread, shown, restored.

use std::sync::Arc;

use ac_controller::{AgentConfig, AgentController};
use ac_core::{EventBody, Tool, event::TaskStatus};
use ac_testkit::Turn;
use ac_tools::task_tools;
use serde_json::json;

use crate::desk::{Desk, build_mode, drain, names};

fn open(desk: &Desk, life: &str) -> AgentController {
    let tools = task_tools().into_iter().collect::<Vec<_>>();
    desk.builder(life).agent(AgentConfig::new("agent").instructions("AGENT").tools(tools)).modes(build_mode()).build().unwrap()
}

fn list() -> serde_json::Value {
    json!({ "tasks": [
        { "id": "t1", "content": "Do A", "status": "in_progress", "activeForm": "Doing A" },
        { "content": "Do B", "status": "pending", "activeForm": "Doing B" },
    ] })
}

#[tokio::test]
async fn tasks_are_told_shown_and_restored() {
    let desk = Desk::new([
        Turn::tool("c1", "task_write", list()),
        Turn::tool("c2", "task_complete", json!({ "id": "t1" })),
        Turn::tool("c3", "task_check", json!({})),
        Turn::text("done"),
    ]);
    let first = open(&desk, "a");
    let session = first.create_session("ann").await.unwrap();
    let thread = session.thread_id().unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let all = drain(&mut events);
    let told: Vec<_> = names(&all).into_iter().filter(|name| name.starts_with("task_") || *name == "tool_end").collect();
    assert_eq!(told, ["task_updated", "tool_end", "task_updated", "tool_end", "tool_end"], "none asks, checking tells nothing");
    let view = session.display_state();
    assert_eq!(view.tasks.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["t1", "task_do_b"]);
    assert_eq!((view.tasks[0].status, view.previous_tasks[0].status), (TaskStatus::Completed, TaskStatus::InProgress));

    session.create_thread(None, "").await.unwrap();
    assert!(session.display_state().tasks.is_empty(), "tasks belong to their thread");
    assert_eq!(session.tasks(Some(&thread)).await.unwrap().len(), 2);
    session.switch_thread(&thread).await.unwrap();
    assert_eq!(session.display_state().tasks.len(), 2);
    first.shutdown().await;

    let second = open(&desk, "b");
    let session = second.create_session("ann").await.unwrap();
    let view = session.display_state();
    assert_eq!(view.tasks.len(), 2, "a new process reads what is stored");
    assert!(view.previous_tasks.is_empty());
    let bob = second.create_session("bob").await.unwrap();
    assert_eq!(bob.tasks(Some(&thread)).await.unwrap_err().code(), "thread.not_found");
    session.delete_thread(&thread).await.unwrap();
    assert!(second.tasks(&thread).await.unwrap().is_empty(), "deleted with its thread");
    assert!(desk.server.violations().is_empty());
    second.shutdown().await;
}

/// SPEC B-29 does better: changes that happen at once do not undo each other, and the view shows the last one.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_changes_all_count() {
    let many: Vec<_> = (0..8).map(|n| json!({ "id": format!("t{n}"), "content": "x", "status": "pending", "activeForm": "x" })).collect();
    let mut turn = Turn::tool("d0", "task_complete", json!({ "id": "t0" }));
    for n in 1..8 {
        turn = turn.then_tool(format!("d{n}"), "task_complete", json!({ "id": format!("t{n}") }));
    }
    let desk = Desk::new([Turn::tool("c1", "task_write", json!({ "tasks": many })), turn, Turn::text("done")]);
    let controller = open(&desk, "");
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let all = drain(&mut events);
    assert_eq!(all.iter().filter(|event| matches!(event.body, EventBody::TaskUpdated { .. })).count(), 9);
    let view = session.display_state();
    assert!(view.tasks.iter().all(|task| task.status == TaskStatus::Completed), "{:?}", view.tasks);
    assert_eq!(session.tasks(None).await.unwrap(), view.tasks.to_vec());
    controller.shutdown().await;
}

/// The host's own names are out of a tool's reach.
#[tokio::test]
async fn a_tool_keeps_its_own_things_and_not_the_hosts() {
    use ac_core::{ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput, tool::ThreadState};
    struct Keep;
    #[async_trait::async_trait]
    impl Tool for Keep {
        fn definition(&self) -> ToolDefinition {
            ToolDefinition::new("keep", "Keeps.", json!({ "type": "object" })).category(ac_core::ToolCategory::Read)
        }
        async fn call(&self, args: serde_json::Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
            let state = cx.capability::<dyn ThreadState>()?;
            let name = args["name"].as_str().unwrap();
            let known = state.get(name).await?.map(|known| known.version);
            let kept = state.put(name, known, &args["value"]).await?;
            Ok(ToolOutcome::Done(ToolOutput::new(json!(kept))))
        }
    }
    let desk = Desk::new([
        Turn::tool("c1", "keep", json!({ "name": "mine", "value": 1 })),
        Turn::tool("c2", "keep", json!({ "name": "goal", "value": { "objective": "mischief" } })),
        Turn::tool("c3", "keep", json!({ "name": "tasks", "value": "no list" })),
        Turn::text("done"),
    ]);
    let controller = desk.builder("").tools([Arc::new(Keep) as Arc<dyn Tool>]).modes(build_mode()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    session.send_message("go").await.unwrap();
    let ends: Vec<_> = drain(&mut events)
        .iter()
        .filter_map(|event| match &event.body {
            EventBody::ToolEnd { is_error, .. } => Some(*is_error),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [false, true, true]);
    controller.shutdown().await;
}
