//! Events, as a person reads them.
//!
//! The painter reads the wire form, so that what happens here and what comes from another process over the socket look the same.

mod prompts;

use std::{
    collections::HashMap,
    io::{self, Write},
};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use crate::{
    describe::{self, Detail},
    files::Files,
    safe::{Line, Safe, Stream},
};

pub(crate) use prompts::Shown;

pub(crate) const DIM: Style = Style::new().dimmed();
const BOLD: Style = Style::new().bold();
pub(crate) const RED: Style = AnsiColor::Red.on_default();
const GREEN: Style = AnsiColor::Green.on_default();
pub(crate) const YELLOW: Style = AnsiColor::Yellow.on_default();
const CYAN: Style = AnsiColor::Cyan.on_default();

/// How much of one line of foreign text is shown.
const WIDTH: usize = 160;

/// Writes events as text.
pub(crate) struct Painter<W> {
    out: W,
    files: Files,
    /// Thinking is shown to a person at a terminal only.
    thinking: bool,
    /// The cursor stands at the beginning of a line.
    fresh: bool,
    /// The last thing written was thinking.
    thought: bool,
    /// What was told about each call.
    calls: HashMap<String, Call>,
    /// The call that was announced last, while nothing else was shown since.
    last: Option<String>,
    /// Something was shown in this stretch of a run.
    said: bool,
    text: Stream,
    tokens: (u64, u64),
    failed: Option<String>,
    /// The model that was last named.
    model: String,
}

#[derive(Default)]
struct Call {
    tool: String,
    stream: Stream,
    wrote: bool,
}

impl<W: Write> Painter<W> {
    /// Writes to `out`; reads files that are about to change from `files`.
    pub(crate) fn new(out: W, files: Files, thinking: bool) -> Self {
        Self {
            out,
            files,
            thinking,
            fresh: true,
            thought: false,
            calls: HashMap::new(),
            last: None,
            said: false,
            text: Stream::default(),
            tokens: (0, 0),
            failed: None,
            model: String::new(),
        }
    }

    /// Names the model, so that only another one is worth a line.
    pub(crate) fn answers(&mut self, model: &str) {
        model.clone_into(&mut self.model);
    }

    /// Whether a call is the one that was announced last. Of several that were announced together each is shown again when it asks, so that
    /// nobody says yes to another one than they think.
    fn announced(&mut self, id: &str) -> bool {
        let call = id.rsplit_once('/').map_or(id, |(_, call)| call);
        self.last.take().is_some_and(|last| last == call)
    }

    /// Shows an event.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) async fn event(&mut self, event: &Value) -> io::Result<()> {
        match str(event, "type") {
            "agent_start" => self.said = false,
            "message_update" => self.update(event.get("event").unwrap_or(&Value::Null))?,
            "message_end" => self.line()?,
            "tool_start" => self.tool_start(event).await?,
            "shell_output" => self.shell(str(event, "toolCallId"), str(event, "output"))?,
            "command_exit" => {
                let code = event.get("exitCode").and_then(Value::as_i64).unwrap_or(-1);
                if code != 0 {
                    self.note(RED, &format!("  exit code {code}"))?;
                }
            }
            "tool_end" => self.tool_end(event)?,
            "tool_suspension_cancelled" => self.note(DIM, &format!("  no longer asked: {}", Line(str(event, "reason"), WIDTH)))?,
            "usage_update" => {
                let count = |name| event.get("usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64).unwrap_or(0);
                self.tokens.0 += count("promptTokens");
                self.tokens.1 += count("completionTokens");
            }
            "info" => self.note(DIM, &Line(str(event, "message"), 2 * WIDTH).to_string())?,
            "error" => self.error(event)?,
            "mode_changed" => {
                self.note(CYAN, &format!("mode: {} → {}", Line(str(event, "previousModeId"), 40), Line(str(event, "modeId"), 40)))?
            }
            "model_changed" if self.model != str(event, "modelId") => {
                str(event, "modelId").clone_into(&mut self.model);
                self.note(DIM, &format!("model: {}", Line(str(event, "modelId"), WIDTH)))?;
            }
            "subagent_start" => {
                let task = Line(str(event, "task"), WIDTH).to_string();
                self.note(CYAN, &format!("● Subagent {}: {task}", Line(str(event, "agentType"), 40)))?;
            }
            "subagent_end" if event.get("isError") == Some(&Value::Bool(true)) => {
                self.note(RED, &format!("  the subagent failed: {}", Line(str(event, "result"), WIDTH)))?;
            }
            "subagent_end" => self.note(DIM, "  the subagent is done")?,
            "agent_end" => self.agent_end(event)?,
            _ => return Ok(()),
        }
        self.out.flush()
    }

    fn update(&mut self, update: &Value) -> io::Result<()> {
        let delta = str(update, "delta");
        match str(update, "type") {
            "text-delta" => {
                if std::mem::take(&mut self.thought) {
                    self.line()?;
                }
                let text = self.text.next(delta);
                self.raw(&text)
            }
            "reasoning-delta" if self.thinking => {
                let text = self.text.next(delta);
                if !self.thought {
                    self.line()?;
                }
                self.thought = true;
                self.fresh = text.ends_with('\n') || self.fresh && text.is_empty();
                write!(self.out, "{DIM}{text}{DIM:#}")
            }
            _ => Ok(()),
        }
    }

    async fn tool_start(&mut self, event: &Value) -> io::Result<()> {
        let (call, tool) = (str(event, "toolCallId"), str(event, "toolName"));
        // A second one that waits beside the first: neither is meant alone.
        self.last = if self.calls.is_empty() { Some(call.to_owned()) } else { None };
        self.said = true;
        self.calls.insert(call.to_owned(), Call { tool: tool.to_owned(), ..Call::default() });
        self.deed(tool, event.get("args").unwrap_or(&Value::Null)).await
    }

    /// Says what a call will do.
    pub(crate) async fn deed(&mut self, tool: &str, args: &Value) -> io::Result<()> {
        let Some(deed) = describe::deed(tool, args) else { return Ok(()) };
        self.line()?;
        writeln!(self.out, "{CYAN}●{CYAN:#} {BOLD}{}{BOLD:#}", Line(&deed.title, WIDTH))?;
        match deed.detail {
            Detail::None => Ok(()),
            Detail::Write { path, content } => {
                let before = self.files.text(&path).await.ok();
                self.change(before.as_deref(), &content)
            }
            Detail::Replace { old, new, .. } => self.change(Some(&old), &new),
            Detail::Command(command) => {
                for (n, line) in command.lines().enumerate() {
                    writeln!(self.out, "  {} {BOLD}{}{BOLD:#}", if n == 0 { '$' } else { '>' }, Safe(line))?;
                }
                Ok(())
            }
            Detail::Args(args) => args.lines().try_for_each(|line| writeln!(self.out, "  {DIM}{}{DIM:#}", Safe(line))),
        }
    }

    fn change(&mut self, before: Option<&str>, after: &str) -> io::Result<()> {
        for (mark, line) in describe::change(before, after) {
            match mark {
                '+' => writeln!(self.out, "  {GREEN}+{}{GREEN:#}", Safe(&line))?,
                '-' => writeln!(self.out, "  {RED}-{}{RED:#}", Safe(&line))?,
                '@' => writeln!(self.out, "  {DIM}{}{DIM:#}", Safe(&line))?,
                _ => writeln!(self.out, "   {}", Safe(&line))?,
            }
        }
        Ok(())
    }

    fn shell(&mut self, call: &str, output: &str) -> io::Result<()> {
        let call = self.calls.entry(call.to_owned()).or_default();
        call.wrote = true;
        let text = call.stream.next(output);
        self.raw(&text)
    }

    fn tool_end(&mut self, event: &Value) -> io::Result<()> {
        self.last = None;
        self.said = true;
        let call = self.calls.remove(str(event, "toolCallId")).unwrap_or_default();
        let result = event.get("result").unwrap_or(&Value::Null);
        let is = |name| event.get(name).and_then(Value::as_bool) == Some(true);
        let line = describe::result(&call.tool, result);
        if is("denied") {
            self.note(YELLOW, &format!("  not done: {}", Line(&line, WIDTH)))
        } else if is("isError") || result.get("isError").and_then(Value::as_bool) == Some(true) {
            self.note(RED, &format!("  failed: {}", Line(&line, 2 * WIDTH)))
        } else if call.tool == "execute_command" && call.wrote || line.is_empty() {
            self.line()
        } else {
            self.note(DIM, &format!("  {}", Line(&line, WIDTH)))
        }
    }

    fn error(&mut self, event: &Value) -> io::Result<()> {
        let error = event.get("error").unwrap_or(&Value::Null);
        let (message, code) = (Line(str(error, "message"), 4 * WIDTH).to_string(), Line(str(error, "name"), 60).to_string());
        let number = |name| event.get(name).and_then(Value::as_u64).unwrap_or(0);
        if event.get("retryable").and_then(Value::as_bool) == Some(true) {
            let wait = number("retryDelay").div_ceil(1000);
            let (attempt, of) = (number("retryAttempt"), number("maxRetries"));
            return self.note(YELLOW, &format!("{message} ({code}); again in {wait} s, attempt {attempt} of {of}"));
        }
        self.note(RED, &format!("error: {message} ({code})"))?;
        self.failed = Some(code);
        Ok(())
    }

    fn agent_end(&mut self, event: &Value) -> io::Result<()> {
        self.line()?;
        let failed = self.failed.take();
        match str(event, "reason") {
            "aborted" => self.note(YELLOW, "aborted")?,
            "complete" if !self.said => self.note(DIM, "(the model said nothing)")?,
            "error" => {
                let error = event.get("error").unwrap_or(&Value::Null);
                let code = str(error, "code");
                if failed.as_deref() != Some(code) {
                    self.note(RED, &format!("error: {} ({})", Line(str(error, "message"), 4 * WIDTH), Line(code, 60)))?;
                }
            }
            _ => {}
        }
        let (read, written) = std::mem::take(&mut self.tokens);
        if self.thinking && read + written > 0 {
            self.note(DIM, &format!("{read} tokens read, {written} written"))?;
        }
        Ok(())
    }

    /// A line of its own.
    pub(crate) fn note(&mut self, style: Style, text: &str) -> io::Result<()> {
        self.line()?;
        writeln!(self.out, "{style}{text}{style:#}")
    }

    /// A line without a style.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) fn plain(&mut self, text: &str) -> io::Result<()> {
        self.line()?;
        writeln!(self.out, "{text}")?;
        self.out.flush()
    }

    /// Text as it comes, already made safe.
    fn raw(&mut self, text: &str) -> io::Result<()> {
        if !text.is_empty() {
            self.said = true;
            self.fresh = text.ends_with('\n');
        }
        self.out.write_all(text.as_bytes())
    }

    /// Ends the line that is open.
    pub(crate) fn line(&mut self) -> io::Result<()> {
        self.thought = false;
        if !std::mem::replace(&mut self.fresh, true) {
            writeln!(self.out)?;
        }
        Ok(())
    }
}

fn str<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests;
