//! Where the lines of a command go.

use std::io::{self, Write};

use serde_json::Value;

use crate::{paint::Painter, safe::Json};

/// Takes what a command says, one JSON value at a time.
pub(crate) trait Sink: Send {
    /// Takes the next value.
    ///
    /// # Errors
    /// When nobody reads any more.
    fn put(&mut self, value: &Value) -> impl Future<Output = io::Result<()>> + Send;
}

/// One line of JSON for each.
pub(crate) struct JsonLines<W>(pub(crate) W);

impl<W: Write + Send> Sink for JsonLines<W> {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        writeln!(self.0, "{}", Json(&value.to_string()))?;
        self.0.flush()
    }
}

impl<W: Write + Send> Sink for Painter<W> {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        self.event(value).await
    }
}
