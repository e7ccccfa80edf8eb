use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Part;

/// What came out of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolOutput {
    /// What the host shows; also what the model reads unless `model` says otherwise.
    pub value: Value,
    /// What the model reads, where that differs (a picture, a shorter text).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<Vec<Part>>,
    /// Files that the call changed, as the tool itself reports them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<FileChange>,
}

impl ToolOutput {
    /// A value that host and model both read.
    pub fn new(value: Value) -> Self {
        Self { value, ..Self::default() }
    }

    /// A text that host and model both read.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Value::String(text.into()))
    }

    /// What the model reads instead of the value.
    #[must_use]
    pub fn for_model(mut self, parts: Vec<Part>) -> Self {
        self.model = Some(parts);
        self
    }

    /// Reports changed files.
    #[must_use]
    pub fn changed(mut self, changes: impl IntoIterator<Item = FileChange>) -> Self {
        self.changed.extend(changes);
        self
    }

    /// What the model reads, as text: the text parts of `model`, else the value (text as it is, anything else as JSON).
    pub fn model_text(&self) -> String {
        match &self.model {
            Some(parts) => parts.iter().filter_map(Part::as_text).collect(),
            None => match &self.value {
                Value::String(text) => text.clone(),
                value => value.to_string(),
            },
        }
    }
}

/// A file that a call changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Relative to the workspace.
    pub path: String,
    /// The exposed name of the tool, or another word for what was done.
    pub operation: String,
    /// A unified diff, where it is short enough to show.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
}
