//! Standard output and standard error.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use crate::{
    args::Json,
    files::Files,
    paint::Painter,
    sink::{JsonLines, Sink},
    talk::complain,
};

type Out = Box<dyn Write + Send>;

/// A stream that may end when nobody reads it any more, but does not lose what was shown for any other reason without a word.
struct Told<W> {
    to: W,
    told: bool,
}

impl<W> Told<W> {
    fn new(to: W) -> Self {
        Self { to, told: false }
    }

    fn tell<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        if let Err(error) = &result
            && !matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::Interrupted)
            && !std::mem::replace(&mut self.told, true)
        {
            complain(&format!("cannot write to standard output: {error}; what goes on is stored, `acode --continue` shows it"));
        }
        result
    }
}

impl<W: Write> Write for Told<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let result = self.to.write(bytes);
        self.tell(result)
    }

    fn flush(&mut self) -> io::Result<()> {
        let result = self.to.flush();
        self.tell(result)
    }
}

/// Where a command shows what happens: text for people, or JSON lines with everything for people on standard error.
pub(crate) struct Screen {
    json: Option<(Json, JsonLines<Out>)>,
    painter: Painter<Out>,
}

impl Screen {
    /// As the flags say.
    pub(crate) fn new(json: Option<Json>, files: Files) -> Self {
        let terminal = io::stdout().is_terminal();
        match json {
            // Not through a filter of colours: JSON has none.
            Some(json) => {
                let out: Out = Box::new(Told::new(io::stdout()));
                let err: Out = Box::new(anstream::stderr());
                Self { json: Some((json, JsonLines(out))), painter: Painter::new(err, files, false) }
            }
            None => Self { json: None, painter: Painter::new(Box::new(Told::new(anstream::stdout())), files, terminal) },
        }
    }

    /// Whether the view is wanted after each event.
    pub(crate) fn views(&self) -> bool {
        matches!(self.json, Some((Json::All, _)))
    }

    /// Whether people read standard output.
    pub(crate) fn is_text(&self) -> bool {
        self.json.is_none()
    }

    /// Where people read.
    pub(crate) fn painter(&mut self) -> &mut Painter<Out> {
        &mut self.painter
    }
}

impl Sink for Screen {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        match &mut self.json {
            Some((_, lines)) => lines.put(value).await,
            None => self.painter.event(value).await,
        }
    }
}

/// Keeps the one value that a listing answers with.
#[derive(Default)]
pub(crate) struct Kept(pub(crate) Option<Value>);

impl Sink for Kept {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        self.0 = Some(value.clone());
        Ok(())
    }
}
