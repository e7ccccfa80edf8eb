//! OpenAI Chat Completions, and the many servers that speak it in their own way.

pub mod request;
pub mod stream;
