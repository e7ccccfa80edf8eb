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

#[cfg(test)]
mod tests;
