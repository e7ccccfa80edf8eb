//! Ollama's own chat protocol: lines of JSON.

pub mod request;
pub mod stream;
