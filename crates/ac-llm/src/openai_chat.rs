//! OpenAI Chat Completions, and the many servers that speak it in their own way.

mod cache;
pub mod request;
pub mod stream;
