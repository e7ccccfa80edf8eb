//! OpenAI Responses, stateless: nothing is stored at the provider, and encrypted reasoning travels with the history.

pub mod request;
pub mod stream;
