//! From the model's Markdown to messages that a platform shows as they are meant.
//!
//! Markdown is read into blocks of styled text (`blocks`); a [`Dialect`] writes each stretch of one style on its own, opened, escaped and
//! closed, so a message may be cut anywhere and both halves are whole; `split` packs blocks into messages within the platform's limit.

mod blocks;
mod dialect;
mod split;

use blocks::{Block, Body, Span, Style, parse};
pub use dialect::Dialect;
pub use split::messages;

#[cfg(test)]
mod tests;
