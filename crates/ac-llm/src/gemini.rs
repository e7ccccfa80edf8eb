//! Google Gemini, `streamGenerateContent`.

mod partial;
pub mod request;
pub mod stream;
