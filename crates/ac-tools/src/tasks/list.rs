use std::{
    collections::{HashMap, HashSet},
    fmt,
};

use ac_core::event::{Task, TaskStatus};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// A task as a model writes it: without an id it gets one.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewTask {
    /// Kept where nothing else has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// What is to be done.
    pub content: String,
    /// How far it is.
    pub status: TaskStatus,
    /// The same in the present participle.
    pub active_form: String,
}

/// A list of tasks, in order, at most one of them in progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskList(Vec<Task>);

/// Why a list was not changed. Its text is for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TaskListError {
    /// More than one task would be in progress.
    SeveralInProgress,
    /// There is no task of this id; the text lists those that there are.
    NotFound {
        /// The id that was asked for.
        id: String,
        /// What there is, as text.
        known: String,
    },
    /// An update that changes nothing.
    NothingToChange,
}

impl fmt::Display for TaskListError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SeveralInProgress => f.write_str("Only one task can be in_progress at a time."),
            Self::NotFound { id, known } if known.is_empty() => write!(f, "Task not found: {id}\n\nThe list is empty."),
            Self::NotFound { id, known } => write!(f, "Task not found: {id}\n\nAvailable task IDs:{known}"),
            Self::NothingToChange => f.write_str("Nothing to update: give content, status or activeForm."),
        }
    }
}

impl std::error::Error for TaskListError {}

/// The longest part of an id that comes from a text, in characters.
const SLUG: usize = 48;

impl TaskList {
    /// A list as it is stored.
    pub fn new(tasks: Vec<Task>) -> Self {
        Self(tasks)
    }

    /// The tasks, in order.
    pub fn tasks(&self) -> &[Task] {
        &self.0
    }

    /// Replaces the list (SPEC B-21): given ids stay, a task that was there before under the same words keeps its id, all others get one
    /// from their words.
    ///
    /// # Errors
    /// [`TaskListError::SeveralInProgress`]; the list is as it was.
    pub fn write(&mut self, tasks: Vec<NewTask>) -> Result<(), TaskListError> {
        if tasks.iter().filter(|task| task.status == TaskStatus::InProgress).count() > 1 {
            return Err(TaskListError::SeveralInProgress);
        }
        let ids = self.ids_for(&tasks);
        let named = tasks.into_iter().zip(ids);
        self.0 = named.map(|(NewTask { content, status, active_form, .. }, id)| Task { id, content, status, active_form }).collect();
        Ok(())
    }

    fn ids_for(&self, tasks: &[NewTask]) -> Vec<String> {
        let mut taken: HashSet<String> = HashSet::new();
        let mut ids: Vec<Option<String>> =
            tasks.iter().map(|task| task.id.clone().filter(|id| !id.is_empty() && taken.insert(id.clone()))).collect();
        let (now, before) = (count(tasks.iter().map(|task| task.content.as_str())), count(self.0.iter().map(|task| task.content.as_str())));
        for (id, task) in ids.iter_mut().zip(tasks).filter(|(_, task)| task.id.as_ref().is_none_or(String::is_empty)) {
            let once = |counted: &HashMap<&str, usize>| counted.get(task.content.as_str()) == Some(&1);
            if once(&now) && once(&before) {
                let known = self.0.iter().find(|known| known.content == task.content);
                *id = known.map(|known| known.id.clone()).filter(|known| taken.insert(known.clone()));
            }
        }
        ids.into_iter().zip(tasks).map(|(id, task)| id.unwrap_or_else(|| fresh(&slug(&task.content), &mut taken))).collect()
    }

    /// Changes one task. Setting it in progress takes that from any other (SPEC B-23).
    ///
    /// # Errors
    /// [`TaskListError::NotFound`], [`TaskListError::NothingToChange`]; the list is as it was.
    pub fn update(
        &mut self,
        id: &str,
        content: Option<String>,
        status: Option<TaskStatus>,
        active_form: Option<String>,
    ) -> Result<(), TaskListError> {
        if content.is_none() && status.is_none() && active_form.is_none() {
            return Err(TaskListError::NothingToChange);
        }
        let at =
            self.0.iter().position(|task| task.id == id).ok_or_else(|| TaskListError::NotFound { id: id.into(), known: self.lines() })?;
        for (place, task) in self.0.iter_mut().enumerate() {
            if place != at {
                if status == Some(TaskStatus::InProgress) && task.status == TaskStatus::InProgress {
                    task.status = TaskStatus::Pending;
                }
                continue;
            }
            if let Some(content) = &content {
                task.content.clone_from(content);
            }
            if let Some(status) = status {
                task.status = status;
            }
            if let Some(active_form) = &active_form {
                task.active_form.clone_from(active_form);
            }
        }
        Ok(())
    }

    /// Counts and the current task, and every id, as text (SPEC B-26).
    pub fn summary(&self) -> String {
        let mut text = format!("Tasks updated: [{}/{} completed]", self.of(TaskStatus::Completed).count(), self.0.len());
        if let Some(current) = self.of(TaskStatus::InProgress).next() {
            text.push_str(&format!("\nCurrently: {} ({})", current.active_form, current.id));
        }
        if !self.0.is_empty() {
            text.push_str("\nTask IDs:");
            text.push_str(&self.lines());
        }
        text
    }

    /// How far everything is: the result of `task_check` (SPEC B-25).
    pub fn report(&self) -> Value {
        let counted = |status| self.of(status).count();
        let (total, completed) = (self.0.len(), counted(TaskStatus::Completed));
        let incomplete: Vec<&Task> = self.of(TaskStatus::InProgress).chain(self.of(TaskStatus::Pending)).collect();
        json!({
            "content": self.status(),
            "tasks": self.0,
            "isError": false,
            "summary": {
                "total": total,
                "completed": completed,
                "inProgress": counted(TaskStatus::InProgress),
                "pending": counted(TaskStatus::Pending),
                "incomplete": incomplete.len(),
                "hasTasks": total > 0,
                "allCompleted": total > 0 && completed == total,
            },
            "incompleteTasks": incomplete,
        })
    }

    fn status(&self) -> String {
        if self.0.is_empty() {
            return "There are no tasks. For work of several steps, lay them down with task_write first.".to_owned();
        }
        let counted = |status| self.of(status).count();
        let (total, completed) = (self.0.len(), counted(TaskStatus::Completed));
        let mut text = format!(
            "Task Status: [{completed}/{total} completed]\n- Completed: {completed}\n- In Progress: {}\n- Pending: {}\n\nAll tasks completed: {}",
            counted(TaskStatus::InProgress),
            counted(TaskStatus::Pending),
            if completed == total { "YES" } else { "NO" },
        );
        if completed < total {
            text.push_str("\n\nIncomplete tasks:");
            for (title, status) in [("In Progress", TaskStatus::InProgress), ("Pending", TaskStatus::Pending)] {
                if counted(status) > 0 {
                    text.push_str(&format!("\n\n{title}:"));
                    self.of(status).for_each(|task| text.push_str(&format!("\n- {}: {}", task.id, task.content)));
                }
            }
            text.push_str("\n\nThey are still to be done.");
        }
        text
    }

    fn of(&self, status: TaskStatus) -> impl Iterator<Item = &Task> {
        self.0.iter().filter(move |task| task.status == status)
    }

    fn lines(&self) -> String {
        self.0.iter().map(|task| format!("\n- {}: {} ({})", task.id, task.content, name(task.status))).collect()
    }
}

const fn name(status: TaskStatus) -> &'static str {
    match status {
        TaskStatus::Pending => "pending",
        TaskStatus::InProgress => "in_progress",
        TaskStatus::Completed => "completed",
    }
}

fn count<'a>(texts: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    texts.fold(HashMap::new(), |mut counted, text| {
        *counted.entry(text).or_default() += 1;
        counted
    })
}

/// `task_` and the words of a text: lower-case letters and digits, everything between them one `_`.
fn slug(content: &str) -> String {
    let mut words = String::new();
    for c in content.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => words.push(c),
            _ if words.is_empty() || words.ends_with('_') => {}
            _ => words.push('_'),
        }
    }
    // All of it is ASCII.
    words.truncate(SLUG);
    let words = words.trim_end_matches('_');
    format!("task_{}", if words.is_empty() { "item" } else { words })
}

fn fresh(base: &str, taken: &mut HashSet<String>) -> String {
    let mut id = base.to_owned();
    let mut n = 1u32;
    while !taken.insert(id.clone()) {
        n += 1;
        id = format!("{base}_{n}");
    }
    id
}
