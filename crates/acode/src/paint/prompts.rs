use std::io::{self, Write};

use serde_json::Value;

use super::{BOLD, CYAN, DIM, Painter, RED, WIDTH, YELLOW, str};
use crate::{
    describe,
    reply::Question,
    safe::{Line, Safe},
};

/// What waits for a person, as it is shown: the row of `acode pending`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<'a>(pub(crate) &'a Value);

impl<'a> Shown<'a> {
    /// How it is named on the command line.
    pub(crate) fn id(self) -> &'a str {
        str(self.0, "id")
    }

    /// `approval`, `question`, `plan`, `in_doubt`.
    pub(crate) fn kind(self) -> &'a str {
        str(self.0, "kind")
    }

    /// The tool.
    pub(crate) fn tool(self) -> &'a str {
        str(self.0, "tool")
    }

    /// What the tool shows.
    pub(crate) fn payload(self) -> &'a Value {
        self.0.get("payload").unwrap_or(&Value::Null)
    }

    /// The arguments of the call.
    pub(crate) fn args(self) -> &'a Value {
        self.0.get("args").unwrap_or(&Value::Null)
    }

    /// The file of a plan.
    pub(crate) fn plan_path(self) -> &'a str {
        let path = str(self.payload(), "path");
        if path.is_empty() { str(self.args(), "path") } else { path }
    }
}

impl<W: Write> Painter<W> {
    /// Shows what waits for a person: everything that is needed to decide.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) async fn waiting(&mut self, waiting: Shown<'_>) -> io::Result<()> {
        self.line()?;
        match waiting.kind() {
            "plan" => self.plan(waiting.plan_path()).await,
            "question" => self.question(waiting),
            "in_doubt" => {
                let what = "This call was running when the process ended. It may have done its work, and may still be running:";
                writeln!(self.out, "{YELLOW}{what}{YELLOW:#}")?;
                self.deed(waiting.tool(), waiting.args()).await
            }
            // What a call will do was shown a moment ago, when it was announced.
            _ if self.announced(waiting.id()) => {
                let title = describe::deed(waiting.tool(), waiting.args()).map_or_else(|| waiting.tool().to_owned(), |deed| deed.title);
                writeln!(self.out, "{YELLOW}{} asks for permission:{YELLOW:#} {}", Line(waiting.tool(), 60), Line(&title, WIDTH))
            }
            _ => {
                writeln!(self.out, "{YELLOW}{} asks for permission:{YELLOW:#}", Line(waiting.tool(), 60))?;
                self.deed(waiting.tool(), waiting.args()).await
            }
        }?;
        self.out.flush()
    }

    async fn plan(&mut self, path: &str) -> io::Result<()> {
        writeln!(self.out, "{CYAN}Plan{CYAN:#} {}", Line(path, WIDTH))?;
        match self.files.text(path).await {
            Ok(text) => text.lines().try_for_each(|line| writeln!(self.out, "  {}", Safe(line))),
            Err(why) => writeln!(self.out, "  {RED}file missing: {}{RED:#}", Line(&why, WIDTH)),
        }
    }

    fn question(&mut self, waiting: Shown<'_>) -> io::Result<()> {
        let Some(question) = Question::read(waiting.tool(), waiting.payload()) else {
            writeln!(self.out, "{CYAN}?{CYAN:#} {BOLD}{} asks:{BOLD:#}", Line(waiting.tool(), 60))?;
            let payload = format!("{:#}", waiting.payload());
            return payload.lines().try_for_each(|line| writeln!(self.out, "  {}", Safe(line)));
        };
        writeln!(self.out, "{CYAN}?{CYAN:#} {BOLD}{}{BOLD:#}", Safe(question.text.trim()))?;
        for (n, (label, about)) in question.options.iter().enumerate() {
            write!(self.out, "  {}. {}", n + 1, Line(label, WIDTH))?;
            match about.trim() {
                "" => writeln!(self.out)?,
                about => writeln!(self.out, " {DIM}– {}{DIM:#}", Line(about, WIDTH))?,
            }
        }
        Ok(())
    }

    /// Says how to answer from the command line.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) fn how(&mut self, waiting: Shown<'_>) -> io::Result<()> {
        let id = Line(waiting.id(), 200).to_string();
        let how = match waiting.kind() {
            "plan" => format!("acode plan {id} approve    or    acode plan {id} reject --feedback 'TEXT'"),
            "question" => format!("acode answer {id} 'ANSWER'"),
            "in_doubt" => format!("acode approve {id} (run it again)    or    acode decline {id} (record it as failed)"),
            _ => format!("acode approve {id}    or    acode decline {id}"),
        };
        self.note(DIM, &format!("  {how}"))
    }

    /// The words before the cursor. Without a terminal the line is ended, because what is typed is not echoed.
    ///
    /// # Errors
    /// When nobody reads any more.
    pub(crate) fn prompt(&mut self, text: &str, echoed: bool) -> io::Result<()> {
        self.line()?;
        write!(self.out, "{BOLD}{text}{BOLD:#} ")?;
        // What is typed ends the line itself.
        if !echoed {
            writeln!(self.out)?;
        }
        self.out.flush()
    }
}
