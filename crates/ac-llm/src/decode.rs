//! The stream half of an adapter: the bytes of an answer become events. Pure: no socket, no clock.
//!
//! [`AnswerReader`] finds out what came, whatever its label says: an event stream, one JSON document, lines of JSON, a web page, or an
//! error under any status. What is inside is then read by the decoder of the protocol.

use std::{sync::Arc, time::SystemTime};

use ac_core::{ModelError, ModelEvent, ModelRequest, model::Finish};
use http::HeaderMap;
use serde_json::Value;

use crate::{
    error::{Origin, is_error, trim_ascii_bom},
    lines::{LineTooLong, Lines},
    mode::Filter,
    name::ToolNames,
    parts::Parts,
    profile::{Api, Profile},
    request::{origin, tool_names},
    sse::{SseError, SseEvent, SseFlow, SseLimits, SseParser},
};

/// Reads the payloads of one protocol.
pub(crate) trait Decode: Send {
    /// Takes one event of the stream.
    fn event(&mut self, name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError>;

    /// Takes an answer that came as one JSON document.
    fn document(&mut self, document: Value, out: &mut Vec<ModelEvent>) -> Result<(), ModelError>;

    /// The body ended. Closes what is open; an error if the answer had not ended.
    fn end(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError>;

    /// The body ended inside an event, which is lost.
    fn lost(&mut self) {}

    /// Whether the end state was seen, so that nothing that follows can matter to the words of the answer.
    fn ended(&self) -> bool;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    /// The answer is complete; the connection need not be read further.
    Stop,
}

/// What a decoder needs to know.
#[derive(Clone, Debug)]
pub(crate) struct Setup {
    pub(crate) origin: Origin,
    pub(crate) names: ToolNames,
    pub(crate) headers: Arc<HeaderMap>,
    pub(crate) now: SystemTime,
    pub(crate) status: u16,
}

impl Setup {
    pub(crate) fn parts(&self) -> Parts {
        Parts::new(self.origin.provider.clone(), self.names.clone())
    }

    pub(crate) fn json(&self, data: &str) -> Result<Value, ModelError> {
        serde_json::from_str(data)
            .map_err(|error| self.origin.protocol("an event of the stream is no JSON; what came before it is kept").with_source(error))
    }

    pub(crate) fn in_answer(&self, value: &Value) -> ModelError {
        self.origin.in_answer(self.status, &self.headers, value, self.now)
    }
}

/// Takes a text out of a field. An empty one is none.
pub(crate) fn take_text(value: &mut Value, field: &str) -> Option<String> {
    match value.get_mut(field).map(Value::take) {
        Some(Value::String(text)) if !text.is_empty() => Some(text),
        _ => None,
    }
}

/// How much of an answer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnswerLimits {
    /// One event of a stream.
    pub event: SseLimits,
    /// A whole answer, in bytes.
    pub answer: usize,
    /// The body of an error, in bytes; what is longer is cut.
    pub error: usize,
}

impl Default for AnswerLimits {
    fn default() -> Self {
        Self { event: SseLimits::default(), answer: 256 << 20, error: 256 << 10 }
    }
}

/// The head of an answer.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnswerHead {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// When it came, for waits that are given as a date.
    pub at: SystemTime,
}

impl AnswerHead {
    /// A head.
    pub fn new(status: u16, headers: HeaderMap, at: SystemTime) -> Self {
        Self { status, headers, at }
    }
}

/// Reads one answer. Feed it the bytes as they come, then tell it that they ended.
pub struct AnswerReader {
    setup: Setup,
    status: u16,
    limits: AnswerLimits,
    decoder: Box<dyn Decode>,
    framing: Framing,
    filter: Filter,
    /// The protocol's own framing is lines of JSON.
    ndjson: bool,
    read: usize,
    done: bool,
}

enum Framing {
    /// Nothing but blanks came so far.
    Unknown(Vec<u8>),
    Events(SseParser),
    Lines(Lines),
    /// A document, or the body of an error.
    Whole(Vec<u8>),
}

/// What travels through the splitters.
enum Fault {
    TooLong,
    Model(Box<ModelError>),
}

impl From<SseError> for Fault {
    fn from(_: SseError) -> Self {
        Self::TooLong
    }
}

impl From<LineTooLong> for Fault {
    fn from(_: LineTooLong) -> Self {
        Self::TooLong
    }
}

impl AnswerReader {
    /// A reader for the answer to `request`, as `profile` answers.
    pub fn new(profile: &Profile, request: &ModelRequest, head: AnswerHead, limits: AnswerLimits) -> Self {
        let setup = Setup {
            origin: origin(profile, request.model.as_str()),
            names: tool_names(request),
            headers: Arc::new(head.headers),
            now: head.at,
            status: head.status,
        };
        let decoder = decoder(profile.api, &setup);
        let failed = !(200..300).contains(&head.status);
        Self {
            framing: if failed { Framing::Whole(Vec::new()) } else { Framing::Unknown(Vec::new()) },
            filter: Filter::new(profile, request),
            ndjson: profile.api.is_ndjson(),
            setup,
            status: head.status,
            limits,
            decoder,
            read: 0,
            done: false,
        }
    }

    /// Takes the next bytes of the body and appends what they tell to `out`. Says whether more is wanted.
    ///
    /// # Errors
    /// An error that the body reports, or a body that is no answer. What was told before stays told; the reader is of no more use.
    pub fn push(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<bool, ModelError> {
        if self.done {
            return Ok(false);
        }
        self.read = self.read.saturating_add(bytes.len());
        if self.is_failure() {
            if let Framing::Whole(body) = &mut self.framing {
                let room = self.limits.error.saturating_sub(body.len());
                body.extend(bytes.iter().take(room));
                return Ok(body.len() < self.limits.error);
            }
            return Ok(false);
        }
        if self.read > self.limits.answer {
            return Err(self.setup.origin.protocol("the answer is longer than the limit; it was stopped"));
        }
        if self.filter.is_idle() {
            let result = self.feed(bytes, out);
            return self.settle(result);
        }
        let mut told = Vec::new();
        let result = self.feed(bytes, &mut told);
        self.filter.pass(told, out);
        self.settle(result)
    }

    fn is_failure(&self) -> bool {
        !(200..300).contains(&self.status)
    }

    fn feed(&mut self, bytes: &[u8], out: &mut Vec<ModelEvent>) -> Result<bool, Fault> {
        let decoder = &mut self.decoder;
        match &mut self.framing {
            Framing::Unknown(start) => {
                start.extend_from_slice(bytes);
                let start = std::mem::take(start);
                self.framing = match self.recognise(&start) {
                    Some(framing) => framing,
                    None => {
                        self.framing = Framing::Unknown(start);
                        return Ok(true);
                    }
                };
                self.feed(&start, out)
            }
            Framing::Events(parser) => {
                let flow = parser.push::<Fault>(bytes, |event| hand_over(decoder.as_mut(), &event, out))?;
                Ok(flow == SseFlow::Continue)
            }
            Framing::Lines(lines) => lines.push::<Fault>(bytes, |line| {
                let line = String::from_utf8_lossy(line);
                if line.trim().is_empty() {
                    return Ok(true);
                }
                decoder.event(None, &line, out).map(|flow| flow == Flow::Continue).map_err(|error| Fault::Model(Box::new(error)))
            }),
            Framing::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(true)
            }
        }
    }

    /// What a body is, by its first byte that is no blank. The label is not asked: too many are wrong.
    fn recognise(&self, start: &[u8]) -> Option<Framing> {
        const BOM: &[u8] = b"\xef\xbb\xbf";
        if start.len() < BOM.len() && BOM.starts_with(start) {
            return None;
        }
        let text = start.strip_prefix(BOM).unwrap_or(start).trim_ascii_start();
        Some(match text.first()? {
            // A brace alone on its line begins one document that is spread over many.
            b'{' if self.ndjson => match text.get(1) {
                None => return None,
                Some(b'\n' | b'\r') => Framing::Whole(Vec::new()),
                Some(_) => Framing::Lines(Lines::new(self.limits.event.line)),
            },
            b'{' | b'[' | b'<' => Framing::Whole(Vec::new()),
            _ => Framing::Events(SseParser::new(self.limits.event)),
        })
    }

    fn settle(&mut self, result: Result<bool, Fault>) -> Result<bool, ModelError> {
        match result {
            Ok(more) => {
                self.done = !more;
                Ok(more)
            }
            Err(Fault::Model(error)) => Err(*error),
            Err(Fault::TooLong) => Err(self.setup.origin.protocol("one event of the stream is longer than the limit; it was stopped")),
        }
    }

    /// The body ended, by itself or because enough was read. The last event, or why there is none.
    ///
    /// # Errors
    /// An error status, a body that is no answer, an answer that had not ended.
    pub fn end(mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        let mut told = Vec::new();
        let finish = self.close(&mut told);
        self.filtered(finish, told, out)
    }

    fn filtered(
        &mut self,
        finish: Result<Finish, ModelError>,
        told: Vec<ModelEvent>,
        out: &mut Vec<ModelEvent>,
    ) -> Result<Finish, ModelError> {
        if self.filter.is_idle() {
            out.extend(told);
            return finish;
        }
        self.filter.pass(told, out);
        finish.map(|finish| self.filter.finish(finish))
    }

    fn close(&mut self, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        let origin = &self.setup.origin;
        match &mut self.framing {
            Framing::Whole(body) if !(200..300).contains(&self.status) => {
                return Err(origin.status(self.status, &self.setup.headers, body, self.setup.now));
            }
            Framing::Unknown(_) => return Err(origin.truncated()),
            Framing::Whole(body) => {
                let body = trim_ascii_bom(body);
                if body.starts_with(b"<") {
                    return Err(
                        origin.protocol(format_args!("a web page came instead of an answer; check the base URL {}", origin.base_url))
                    );
                }
                match serde_json::from_slice::<Value>(body) {
                    Ok(document) if is_error(&document) => return Err(self.setup.in_answer(&document)),
                    Ok(document) => self.decoder.document(document, out)?,
                    Err(error) if error.is_eof() => return Err(origin.truncated().with_source(error)),
                    Err(error) => return Err(origin.protocol("the answer is neither an event stream nor JSON").with_source(error)),
                }
            }
            Framing::Lines(lines) => {
                if let Some(line) = lines.end() {
                    last(self.decoder.as_mut(), None, &String::from_utf8_lossy(&line), out)?;
                }
            }
            Framing::Events(parser) if !self.done => {
                let decoder = self.decoder.as_mut();
                let result = parser.end::<Fault>(|event| {
                    last(decoder, event.name.as_deref(), &event.data, out)
                        .map(|()| SseFlow::Continue)
                        .map_err(|error| Fault::Model(Box::new(error)))
                });
                if let Err(Fault::Model(error)) = result {
                    return Err(*error);
                }
                if let Ok(stray) = serde_json::from_slice::<Value>(parser.stray())
                    && is_error(stray.as_array().and_then(|list| list.first()).unwrap_or(&stray))
                {
                    return Err(self.setup.in_answer(&stray));
                }
                if parser.events() == 0 && !self.decoder.ended() && parser.has_unknown_lines() {
                    return Err(origin.protocol(format_args!("what came is no event stream; check the base URL {}", origin.base_url)));
                }
            }
            Framing::Events(_) => {}
        }
        self.decoder.end(out)
    }

    /// Whether the answer has ended, and what may follow is only how the protocol says so.
    pub(crate) fn ended(&self) -> bool {
        self.decoder.ended()
    }

    /// The connection broke before the body ended, or nothing came any more. If the answer had ended already nothing is lost.
    ///
    /// # Errors
    /// What the status says, where it is no success; else `broken`, unless the end state was seen before.
    pub fn broken(mut self, broken: ModelError, out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        if self.is_failure() {
            let body: &[u8] = if let Framing::Whole(body) = &self.framing { body } else { &[] };
            return Err(self.setup.origin.status(self.status, &self.setup.headers, body, self.setup.now).with_source(broken));
        }
        if !self.decoder.ended() {
            return Err(broken);
        }
        let mut told = Vec::new();
        let finish = self.decoder.end(&mut told);
        self.filtered(finish, told, out)
    }
}

/// The stream half of an adapter.
fn decoder(api: Api, setup: &Setup) -> Box<dyn Decode> {
    match api {
        #[cfg(feature = "openai")]
        Api::OpenAiChat => Box::new(crate::openai_chat::stream::Decoder::new(setup.clone())),
        #[cfg(feature = "openai")]
        Api::OpenAiResponses => Box::new(crate::openai_responses::stream::Decoder::new(setup.clone())),
        #[cfg(feature = "openai")]
        Api::Ollama => Box::new(crate::ollama::stream::Decoder::new(setup.clone())),
        #[cfg(feature = "anthropic")]
        Api::Anthropic => Box::new(crate::anthropic::stream::Decoder::new(setup.clone())),
        #[cfg(feature = "gemini")]
        Api::Gemini => Box::new(crate::gemini::stream::Decoder::new(setup.clone())),
        #[cfg(not(all(feature = "openai", feature = "anthropic", feature = "gemini")))]
        api => Box::new(NotBuiltIn(api, setup.origin.clone())),
    }
}

/// Stands where an adapter was left out. No request of its protocol can be built, so nothing comes here but bytes from somewhere else.
#[cfg(not(all(feature = "openai", feature = "anthropic", feature = "gemini")))]
struct NotBuiltIn(Api, Origin);

#[cfg(not(all(feature = "openai", feature = "anthropic", feature = "gemini")))]
impl Decode for NotBuiltIn {
    fn event(&mut self, _name: Option<&str>, _data: &str, _out: &mut Vec<ModelEvent>) -> Result<Flow, ModelError> {
        Err(self.1.not_built_in(self.0))
    }

    fn document(&mut self, _document: Value, _out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
        Err(self.1.not_built_in(self.0))
    }

    fn end(&mut self, _out: &mut Vec<ModelEvent>) -> Result<Finish, ModelError> {
        Err(self.1.not_built_in(self.0))
    }

    fn ended(&self) -> bool {
        false
    }
}

fn hand_over(decoder: &mut dyn Decode, event: &SseEvent<'_>, out: &mut Vec<ModelEvent>) -> Result<SseFlow, Fault> {
    if event.data.trim().is_empty() {
        return Ok(SseFlow::Continue);
    }
    match decoder.event(event.name.as_deref(), &event.data, out) {
        Ok(Flow::Continue) => Ok(SseFlow::Continue),
        Ok(Flow::Stop) => Ok(SseFlow::Stop),
        Err(error) => Err(Fault::Model(Box::new(error))),
    }
}

/// The last event of a body lacks its end: it is whole, or the body was cut inside it. Half an event is dropped, and the decoder then
/// says whether the answer had ended without it.
fn last(decoder: &mut dyn Decode, name: Option<&str>, data: &str, out: &mut Vec<ModelEvent>) -> Result<(), ModelError> {
    let whole = data.trim() == "[DONE]" || serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok();
    if whole {
        decoder.event(name, data, out).map(drop)
    } else {
        decoder.lost();
        Ok(())
    }
}
