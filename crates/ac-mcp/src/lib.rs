//! Tools of MCP servers, as tools like any other: category `mcp`, named `server__tool`.
//!
//! A server is a stranger's program. One that dies, hangs or floods costs the call that it was asked for, never the run: a call has a time
//! limit and ends at once when it is cancelled, what comes back is cut to a limit, and the next call starts the server again. What a server
//! says about its own tools (descriptions, hints) is text and gives no right.
//!
//! What it must not know: sessions, models, storage.
#![deny(missing_docs)]

mod group;
mod server;
mod tool;

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

pub use server::McpServer;

/// Where a server is.
#[derive(Clone)]
#[non_exhaustive]
pub enum McpTransport {
    /// A program that speaks over its standard input and output. It gets the environment that is given here, `PATH`,
    /// `HOME`, `USER`, `LANG` and `TMPDIR`, and no more.
    Stdio {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
        /// Its environment.
        env: BTreeMap<String, String>,
        /// Where it runs.
        cwd: Option<PathBuf>,
    },
    /// An address that speaks streamable HTTP.
    Http {
        /// The address.
        url: String,
        /// Sent with each request: keys, for example.
        headers: BTreeMap<String, String>,
    },
}

impl McpTransport {
    /// A program with arguments.
    pub fn stdio(program: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        let args = args.into_iter().map(Into::into).collect();
        Self::Stdio { program: program.into(), args, env: BTreeMap::new(), cwd: None }
    }

    /// A text of the HTTP client without addresses and without what headers say: both may hold keys.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let Self::Http { headers, .. } = self else { return text.to_owned() };
        let mut kept = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = ["http://", "https://"].iter().filter_map(|scheme| rest.find(scheme)).min() {
            let (before, address) = rest.split_at(at);
            let end = address.find(|c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\'' | '>' | '`')).unwrap_or(address.len());
            kept.push_str(before);
            kept.push_str("[address]");
            rest = address.split_at(end).1;
        }
        kept.push_str(rest);
        headers.values().filter(|value| !value.is_empty()).fold(kept, |text, value| text.replace(value, "[key]"))
    }

    /// An address.
    pub fn http(url: impl Into<String>) -> Self {
        Self::Http { url: url.into(), headers: BTreeMap::new() }
    }
}

impl std::fmt::Debug for McpTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Arguments, environment and headers may hold keys.
        match self {
            Self::Stdio { program, .. } => f.debug_struct("Stdio").field("program", program).finish_non_exhaustive(),
            Self::Http { .. } => f.debug_struct("Http").finish_non_exhaustive(),
        }
    }
}

/// A server and how it is treated.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct McpConfig {
    /// What its tools' names begin with.
    pub name: String,
    /// Where it is.
    pub transport: McpTransport,
    /// How long it may take to be ready.
    pub connect_timeout: Duration,
    /// How long a call may take.
    pub call_timeout: Duration,
    /// The longest text of a result, in bytes.
    pub max_result: usize,
    /// Tools that are offered, by the server's own names. `None`: all.
    pub only: Option<Vec<String>>,
    /// Believes a server that calls a tool read-only or idempotent: such a call is repeated after a crash.
    pub trust_hints: bool,
}

impl McpConfig {
    /// A server with 30 s to be ready and 120 s for a call; results of up to 64 KiB; all tools.
    pub fn new(name: impl Into<String>, transport: McpTransport) -> Self {
        Self {
            name: name.into(),
            transport,
            connect_timeout: Duration::from_secs(30),
            call_timeout: Duration::from_secs(120),
            max_result: 64 << 10,
            only: None,
            trust_hints: false,
        }
    }
}

/// Why a server cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum McpErrorKind {
    /// Its name is empty or has other characters than letters, digits, `-` and `_`.
    Name,
    /// It could not be started or reached.
    Connect,
    /// It was not ready in time.
    Timeout,
    /// It answered what this client does not understand.
    Protocol,
    /// [`McpServer::close`] was called.
    Closed,
}

/// A server cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct McpError {
    kind: McpErrorKind,
    message: String,
    #[source]
    source: Option<ac_core::error::Source>,
}

impl McpError {
    pub(crate) fn new(kind: McpErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    pub(crate) fn with_source(mut self, source: impl Into<ac_core::error::Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> McpErrorKind {
        self.kind
    }

    /// The stable code: `mcp.connect`, …
    pub fn code(&self) -> &'static str {
        match self.kind {
            McpErrorKind::Name => "mcp.name",
            McpErrorKind::Connect => "mcp.connect",
            McpErrorKind::Timeout => "mcp.timeout",
            McpErrorKind::Protocol => "mcp.protocol",
            McpErrorKind::Closed => "mcp.closed",
        }
    }
}
