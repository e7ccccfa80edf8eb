use std::{str::FromStr, time::Duration};

/// How a body is changed and cut before it is served; the names are those of the corpus' own replay server.
#[derive(Clone, Debug, Default)]
pub struct Options {
    pub(super) pieces: Pieces,
    pub(super) line_end: Option<&'static str>,
    pub(super) comments: usize,
    pub(super) blank: usize,
    pub(super) ids: bool,
    pub(super) space: Option<&'static str>,
    pub(super) multiline: bool,
    pub(super) bom: bool,
    pub(super) no_event: bool,
    pub(super) no_end: bool,
    pub(super) cut: Option<Cut>,
    pub(super) cut_end: usize,
    pub(super) reset: bool,
    pub(super) delay: Duration,
    pub(super) stall: Duration,
    pub(super) first_byte: Duration,
    pub(super) length: bool,
    pub(super) status: Option<u16>,
    pub(super) content_type: Option<String>,
    pub(super) fail: Option<(u32, u16, Option<String>)>,
}

/// Into which pieces a body goes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Pieces {
    #[default]
    Whole,
    Bytes(usize),
    /// A seed and the longest piece.
    Random(u64, usize),
    Lines,
    Events,
}

/// Where a body is cut off.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Bytes(usize),
    Percent(f64),
}

/// A text that is no list of options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no option; known: chunk=N|rand:SEED[:MAX]|line|event, crlf, lf, cr, comments=N, blank=N, ids, nospace, space2, multiline, bom, noevent, noend, cut=N|P%, cutend=N, reset, delay=MS, stall=MS, ttfb=MS, length, status=N, ct=TYPE, fail=K:STATUS[:RETRY_AFTER]"
)]
pub struct ParseOptionsError(String);

impl FromStr for Options {
    type Err = ParseOptionsError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut options = Self::default();
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            options.set(option).ok_or_else(|| ParseOptionsError(option.to_owned()))?;
        }
        Ok(options)
    }
}

impl Options {
    fn set(&mut self, option: &str) -> Option<()> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let number = || value.parse::<usize>().ok();
        let count = || if value.is_empty() { Some(1) } else { number() };
        let millis = || Some(Duration::from_millis(value.parse().ok()?));
        match name {
            "chunk" => {
                self.pieces = match value.split(':').collect::<Vec<_>>().as_slice() {
                    ["line"] => Pieces::Lines,
                    ["event"] => Pieces::Events,
                    ["rand"] => Pieces::Random(1, 17),
                    ["rand", seed] => Pieces::Random(seed.parse().ok()?, 17),
                    ["rand", seed, longest] => Pieces::Random(seed.parse().ok()?, longest.parse().ok().filter(|n| *n > 0)?),
                    [bytes] => Pieces::Bytes(bytes.parse().ok().filter(|n| *n > 0)?),
                    _ => return None,
                }
            }
            "crlf" => self.line_end = Some("\r\n"),
            "lf" => self.line_end = Some("\n"),
            "cr" => self.line_end = Some("\r"),
            "comments" => self.comments = count()?,
            "blank" => self.blank = count()?,
            "ids" => self.ids = true,
            "nospace" => self.space = Some(""),
            "space2" => self.space = Some("  "),
            "multiline" => self.multiline = true,
            "bom" => self.bom = true,
            "noevent" => self.no_event = true,
            "noend" => self.no_end = true,
            "cut" => {
                self.cut = Some(match value.strip_suffix('%') {
                    Some(percent) => Cut::Percent(percent.parse().ok()?),
                    None => Cut::Bytes(number()?),
                });
            }
            "cutend" => self.cut_end = number()?,
            "reset" => self.reset = true,
            "delay" => self.delay = millis()?,
            "stall" => self.stall = millis()?,
            "ttfb" => self.first_byte = millis()?,
            "length" => self.length = true,
            "status" => self.status = Some(value.parse().ok()?),
            "ct" => self.content_type = Some(value.to_owned()),
            "fail" => {
                let mut words = value.splitn(3, ':');
                let times = words.next()?.parse().ok()?;
                let status = words.next().map_or(Some(503), |status| status.parse().ok())?;
                self.fail = Some((times, status, words.next().map(str::to_owned)));
            }
            // The adapters never ask for a compressed body.
            "gzip" => {}
            _ => return None,
        }
        Some(())
    }
}
