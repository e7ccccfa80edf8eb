//! How a model asks for tools.

use serde::{Deserialize, Serialize};

/// How a model asks for tools. The rest of the runtime does not see the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCallMode {
    /// In the provider's own form for calls.
    #[default]
    Native,
}
