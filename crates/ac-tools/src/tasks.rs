//! The task list of a thread: `task_write`, `task_update`, `task_complete`, `task_check` (SPEC B-20…B-27).
//!
//! The list is kept with the thread, through the [`ThreadState`] that the host lends, and changes by compare-and-set: calls that run at the
//! same time, in one process or in several, do not undo one another (SPEC B-29 does better here). Whoever lends the state tells
//! `task_updated` when [`STATE`] is written.

mod list;
mod tools;

use std::sync::Arc;

use ac_core::{
    Tool, ToolContext, ToolError, ToolOutput,
    event::Task,
    tool::{ThreadState, ThreadValue},
};
pub use list::{NewTask, TaskList, TaskListError};
use serde_json::{Value, json};
pub use tools::{TaskCheck, TaskComplete, TaskUpdate, TaskWrite};

/// The name under which the list is kept with its thread.
pub const STATE: &str = "tasks";

/// How often a change is tried again when another call was faster.
const TRIES: usize = 32;

/// The four tools.
pub fn task_tools() -> [Arc<dyn Tool>; 4] {
    [Arc::new(TaskWrite), Arc::new(TaskUpdate), Arc::new(TaskComplete), Arc::new(TaskCheck)]
}

/// The list in a stored value; nothing stored is an empty list.
///
/// # Errors
/// When the value is no list of tasks. It is left as it is: writing over it could lose what somebody else keeps there.
pub fn read_tasks(value: Option<&Value>) -> Result<Vec<Task>, ToolError> {
    let Some(value) = value else { return Ok(vec![]) };
    serde_json::from_value(value.clone()).map_err(|error| {
        ToolError::failed("what is stored as the task list of this thread cannot be read; it is left as it is").with_source(error)
    })
}

/// The state of the thread, where there is one.
fn state(cx: &ToolContext) -> Result<Arc<dyn ThreadState>, ToolOutput> {
    cx.capability::<dyn ThreadState>()
        .map_err(|_| result("Tasks are kept with a thread, and there is none here. Go on without a task list.", &[], true))
}

async fn load(state: &dyn ThreadState) -> Result<(Option<u64>, Vec<Task>), ToolError> {
    let known = state.get(STATE).await?;
    let tasks = read_tasks(known.as_ref().map(|known| &known.value))?;
    Ok((known.map(|ThreadValue { version, .. }| version), tasks))
}

/// Changes the list, again on what another call wrote where that was faster. What cannot be done writes nothing.
async fn change(cx: &ToolContext, mut edit: impl FnMut(&mut TaskList) -> Result<(), TaskListError>) -> Result<ToolOutput, ToolError> {
    let state = match state(cx) {
        Ok(state) => state,
        Err(refusal) => return Ok(refusal),
    };
    for _ in 0..TRIES {
        let (version, tasks) = load(state.as_ref()).await?;
        let mut list = TaskList::new(tasks);
        if let Err(error) = edit(&mut list) {
            return Ok(result(&error.to_string(), list.tasks(), true));
        }
        if state.put(STATE, version, &json!(list.tasks())).await? {
            return Ok(result(&list.summary(), list.tasks(), false));
        }
    }
    Err(ToolError::failed("other calls keep changing the task list; look at it with task_check and try again"))
}

fn result(content: &str, tasks: &[Task], is_error: bool) -> ToolOutput {
    ToolOutput::new(json!({ "content": content, "tasks": tasks, "isError": is_error }))
}

#[cfg(test)]
mod tests;
