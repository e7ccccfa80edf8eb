use std::sync::{Arc, Mutex};

use ac_core::tool::Capabilities;

use super::*;
use crate::testing::{context, context_with};

/// Keeps values in memory; the first writes lose, as many as it is told.
#[derive(Default)]
struct Kept {
    values: Mutex<std::collections::HashMap<String, ThreadValue>>,
    lose: Mutex<u32>,
}

#[async_trait::async_trait]
impl ThreadState for Kept {
    async fn get(&self, name: &str) -> Result<Option<ThreadValue>, ToolError> {
        Ok(self.values.lock().unwrap().get(name).cloned())
    }

    async fn put(&self, name: &str, expect: Option<u64>, value: &Value) -> Result<bool, ToolError> {
        let mut lose = self.lose.lock().unwrap();
        if *lose > 0 {
            *lose -= 1;
            return Ok(false);
        }
        let mut values = self.values.lock().unwrap();
        if values.get(name).map(|known| known.version) != expect {
            return Ok(false);
        }
        values.insert(name.into(), ThreadValue { version: expect.unwrap_or(0) + 1, value: value.clone() });
        Ok(true)
    }
}

fn desk() -> (Arc<Kept>, ToolContext) {
    let kept = Arc::new(Kept::default());
    let lent: Arc<dyn ThreadState> = kept.clone();
    (kept, context_with("task", Capabilities::new().with(lent)))
}

async fn call(tool: &dyn Tool, args: Value, cx: &ToolContext) -> Value {
    match tool.call(args, cx).await.unwrap() {
        ac_core::ToolOutcome::Done(output) => output.value,
        other => panic!("{other:?}"),
    }
}

fn ids(result: &Value) -> Vec<&str> {
    result["tasks"].as_array().unwrap().iter().map(|task| task["id"].as_str().unwrap()).collect()
}

fn task(id: Option<&str>, content: &str, status: &str) -> Value {
    let mut task = json!({ "content": content, "status": status, "activeForm": format!("{content}…") });
    if let Some(id) = id {
        task["id"] = id.into();
    }
    task
}

#[tokio::test]
async fn a_list_is_written_changed_and_completed() {
    let (_, cx) = desk();
    let written = call(&TaskWrite, json!({ "tasks": [task(Some("t1"), "Do A", "in_progress"), task(None, "Do B", "pending")] }), &cx).await;
    assert_eq!(
        written["content"],
        "Tasks updated: [0/2 completed]\nCurrently: Do A… (t1)\nTask IDs:\n- t1: Do A (in_progress)\n- task_do_b: Do B (pending)"
    );
    assert_eq!(written["isError"], false);
    let moved = call(&TaskUpdate, json!({ "id": "task_do_b", "status": "in_progress" }), &cx).await;
    assert_eq!((&moved["tasks"][0]["status"], &moved["tasks"][1]["status"]), (&json!("pending"), &json!("in_progress")));
    let done = call(&TaskComplete, json!({ "id": "t1" }), &cx).await;
    assert_eq!(done["tasks"][0]["status"], "completed");
    assert_eq!(call(&TaskComplete, json!({ "id": "t1" }), &cx).await, done, "completing twice is fine");
    let report = call(&TaskCheck, json!({}), &cx).await;
    assert_eq!(
        report["summary"],
        json!({ "total": 2, "completed": 1, "inProgress": 1, "pending": 0, "incomplete": 1, "hasTasks": true, "allCompleted": false })
    );
    assert_eq!(report["incompleteTasks"][0]["id"], "task_do_b");
}

#[tokio::test]
async fn what_cannot_be_done_writes_nothing_and_says_what_there_is() {
    let (kept, cx) = desk();
    call(&TaskWrite, json!({ "tasks": [task(Some("t1"), "Do A", "pending")] }), &cx).await;
    let before = kept.values.lock().unwrap().clone();
    let two = call(&TaskWrite, json!({ "tasks": [task(None, "X", "in_progress"), task(None, "Y", "in_progress")] }), &cx).await;
    assert_eq!((ids(&two), &two["isError"]), (vec!["t1"], &json!(true)), "the list as it stands");
    let unknown = call(&TaskUpdate, json!({ "id": "zzz", "status": "completed" }), &cx).await;
    assert_eq!(unknown["content"], "Task not found: zzz\n\nAvailable task IDs:\n- t1: Do A (pending)");
    assert_eq!(call(&TaskUpdate, json!({ "id": "t1" }), &cx).await["isError"], true, "an update needs something to change");
    assert_eq!(*kept.values.lock().unwrap(), before);
}

#[tokio::test]
async fn ids_stay_where_they_can() {
    let (_, cx) = desk();
    let first =
        json!({ "tasks": [task(Some("x"), "A", "pending"), task(Some("x"), "B", "pending"), task(None, "Fix: the Login!", "pending")] });
    assert_eq!(ids(&call(&TaskWrite, first, &cx).await), ["x", "task_b", "task_fix_the_login"]);
    // The same words keep their id; words that occur twice, or a reserved id, get another one.
    let second = json!({ "tasks": [
        task(None, "A", "completed"), task(None, "same", "pending"), task(None, "same", "pending"), task(None, "B", "pending"),
        task(Some("task_same_2"), "C", "pending"), task(None, "日本", "pending"),
    ] });
    assert_eq!(ids(&call(&TaskWrite, second, &cx).await), ["x", "task_same", "task_same_3", "task_b", "task_same_2", "task_item"]);
    let long = "w".repeat(100);
    let third = call(&TaskWrite, json!({ "tasks": [task(None, &long, "pending")] }), &cx).await;
    assert_eq!(ids(&third)[0].len(), "task_".len() + 48);
}

#[tokio::test]
async fn a_change_that_came_too_late_is_made_again() {
    let (kept, cx) = desk();
    *kept.lose.lock().unwrap() = 3;
    assert_eq!(call(&TaskWrite, json!({ "tasks": [] }), &cx).await["content"], "Tasks updated: [0/0 completed]");
    *kept.lose.lock().unwrap() = u32::MAX;
    assert!(TaskWrite.call(json!({ "tasks": [] }), &cx).await.is_err(), "not for ever");
}

#[tokio::test]
async fn without_a_thread_and_over_a_foreign_value_nothing_is_invented() {
    let nowhere = call(&TaskWrite, json!({ "tasks": [] }), &context("task_write")).await;
    assert_eq!((&nowhere["isError"], ids(&nowhere)), (&json!(true), vec![]));
    assert_eq!(call(&TaskCheck, json!({}), &context("task_check")).await["isError"], true);
    let (kept, cx) = desk();
    kept.values.lock().unwrap().insert(STATE.into(), ThreadValue { version: 1, value: json!("mine") });
    assert!(TaskWrite.call(json!({ "tasks": [] }), &cx).await.is_err());
    assert_eq!(kept.values.lock().unwrap()[STATE].value, json!("mine"));
}
