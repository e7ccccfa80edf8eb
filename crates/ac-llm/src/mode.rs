//! How a model asks for tools.

mod action;
mod filter;
mod repair;

pub(crate) use action::{asks_in_json, rewrite, schema};
pub(crate) use filter::Filter;
use serde::{Deserialize, Serialize};

/// How a model asks for tools. The rest of the runtime does not see the difference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolCallMode {
    /// In the provider's own form for calls.
    #[default]
    Native,
    /// The whole answer is one JSON object that a schema of the tools constrains: an action or the final words. This makes small local
    /// models usable that know no form for calls. The server must take a schema for its answer (Ollama, LM Studio, vLLM, llama.cpp do).
    JsonAction,
    /// In the provider's own form; and where a model writes a call as text instead, one well-formed call of a tool that it was offered is
    /// taken out of the text and marked as repaired.
    TextRepair,
}

/// Families of small models that have no form for calls of their own, or do not keep to it.
const WITHOUT_CALLS: [&str; 12] = [
    "qwen2.5-coder",
    "qwen2.5coder",
    "smollm",
    "gemma2",
    "gemma-2",
    "gemma3",
    "gemma-3",
    "phi3",
    "phi-3",
    "codellama",
    "deepseek-coder",
    "tinyllama",
];

/// Whether a model, by its name at a server of the user's own, is known to be of no use with calls in the provider's form.
pub(crate) fn lacks_calls(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    WITHOUT_CALLS.iter().any(|family| name.contains(family))
}

impl ToolCallMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Native, Self::JsonAction, Self::TextRepair];

    /// The name in settings and flags.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::JsonAction => "json-action",
            Self::TextRepair => "text-repair",
        }
    }
}

impl std::str::FromStr for ToolCallMode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        let wanted = text.replace('_', "-");
        Self::ALL.into_iter().find(|mode| mode.as_str() == wanted).ok_or_else(|| UnknownMode { text: text.to_owned() })
    }
}

/// A word that names no [`ToolCallMode`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no way to ask for tools; there are native, json-action and text-repair")]
pub struct UnknownMode {
    /// What was given.
    pub text: String,
}

#[cfg(test)]
#[cfg(feature = "openai")]
mod tests;
