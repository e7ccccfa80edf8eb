//! What a chat platform must bring.

use std::time::Duration;

use ac_core::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::StatusCode;

use crate::{
    ChannelError,
    event::{Attachment, Conversation, Earlier, Incoming, Speaker},
    render::Dialect,
};

/// A chat platform: how its requests are verified and read, and how something is posted to it.
///
/// Plain `http` types in, plain `http` types out: whatever server a host has can carry it. Four methods make a channel of text; the others
/// are for platforms that can more, as [`capabilities`](Self::capabilities) says.
#[async_trait]
pub trait ChannelAdapter: Send + Sync + 'static {
    /// What the platform is called in routes and in ids of conversations: `slack`, `telegram`, …
    fn platform(&self) -> &str;

    /// What the platform can do.
    fn capabilities(&self) -> Capabilities;

    /// Verifies a request of the platform and reads it. Pure: nothing is stored and nobody is asked. The comparison of signatures takes
    /// the same time whatever is wrong.
    ///
    /// # Errors
    /// [`Refused`] for everything that the platform did not sign, that is older than five minutes, or that is meant for somebody else.
    fn receive(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused>;

    /// Posts a message and answers with the platform's name for it.
    ///
    /// # Errors
    /// [`RateLimited`](crate::ChannelErrorKind::RateLimited), [`TooLong`](crate::ChannelErrorKind::TooLong),
    /// [`Unavailable`](crate::ChannelErrorKind::Unavailable) where it may have been posted, …
    async fn post(&self, to: &Conversation, key: &PostKey, post: &Post) -> Result<String, ChannelError>;

    /// Replaces a message.
    ///
    /// # Errors
    /// [`NotModified`](crate::ChannelErrorKind::NotModified), [`Gone`](crate::ChannelErrorKind::Gone), and as [`post`](Self::post).
    async fn edit(&self, _to: &Conversation, _message: &str, _post: &Post) -> Result<(), ChannelError> {
        Err(ChannelError::unsupported("change a message"))
    }

    /// Tells one person something that nobody else sees, where the platform can; else nobody is told.
    ///
    /// # Errors
    /// When the platform does not take it.
    async fn notice(&self, _to: &Conversation, _person: &Speaker, _responder: Option<&str>, _text: &str) -> Result<(), ChannelError> {
        Ok(())
    }

    /// Shows that the agent is at work. Nothing, where the platform has no such thing.
    ///
    /// # Errors
    /// When the platform does not take it.
    async fn typing(&self, _to: &Conversation) -> Result<(), ChannelError> {
        Ok(())
    }

    /// Tells the platform that a click was dealt with, where it waits to hear that.
    ///
    /// # Errors
    /// When the platform does not take it.
    async fn acknowledge(&self, _responder: &str) -> Result<(), ChannelError> {
        Ok(())
    }

    /// How a person is called, where the platform's requests do not say it.
    async fn name_of(&self, person: &Speaker) -> Option<String> {
        person.name.clone()
    }

    /// What was said before a message, oldest first. Nothing, where the platform does not tell.
    ///
    /// # Errors
    /// When the platform does not answer.
    async fn earlier(&self, _to: &Conversation, _before: Option<&str>, _limit: usize) -> Result<Vec<Earlier>, ChannelError> {
        Ok(vec![])
    }

    /// The bytes of a file that a person sent, at most `limit`.
    ///
    /// # Errors
    /// [`TooLarge`](crate::ChannelErrorKind::TooLarge), or when the platform does not hand it out.
    async fn download(&self, _file: &Attachment, _limit: usize) -> Result<Bytes, ChannelError> {
        Err(ChannelError::unsupported("fetch files"))
    }

    /// What people said after a message of a conversation, oldest first, as if it were delivered now: with the same ids. A platform that
    /// keeps no order may have delivered it before the message that made the conversation the agent's. Nothing, where that cannot be.
    ///
    /// # Errors
    /// When the platform does not answer.
    async fn later(&self, _to: &Conversation, _after: &str, _limit: usize) -> Result<Vec<Incoming>, ChannelError> {
        Ok(vec![])
    }

    /// The first of two steps of posting a file, where one would not be enough to post it once: brings it to the platform, or holds its place
    /// in the conversation. The answer is remembered before [`upload`](Self::upload) shows the file, and comes back in
    /// [`PostKey::staged`].
    ///
    /// # Errors
    /// As [`post`](Self::post).
    async fn stage(&self, _to: &Conversation, _file: &Upload) -> Result<Option<String>, ChannelError> {
        Ok(None)
    }

    /// Posts a file and answers with the platform's name for the message.
    ///
    /// # Errors
    /// As [`post`](Self::post).
    async fn upload(&self, _to: &Conversation, _key: &PostKey, _file: &Upload) -> Result<String, ChannelError> {
        Err(ChannelError::unsupported("post files"))
    }
}

/// What a platform can do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// Buttons that come back verified, so that approvals can be shown.
    pub buttons: bool,
    /// A menu for questions with many options.
    pub menus: bool,
    /// Messages can be changed after they were posted.
    pub edits: bool,
    /// Posting the same [`PostKey`] twice shows one message.
    pub posts_once: bool,
    /// People see that the agent is at work.
    pub typing: bool,
    /// The longest text of one message.
    pub max_text: usize,
    /// What `max_text` counts.
    pub unit: LengthUnit,
    /// The most buttons on one message.
    pub max_buttons: usize,
    /// The most entries of a menu.
    pub max_options: usize,
    /// The least time between two changes of messages in one conversation.
    pub edit_interval: Duration,
    /// How text is marked up.
    pub dialect: Dialect,
}

impl Capabilities {
    /// Plain messages of at most so many characters, and nothing else: what needs an approval is settled as
    /// [`WithoutButtons`](crate::WithoutButtons) says.
    pub fn text(max_text: usize) -> Self {
        Self {
            buttons: false,
            menus: false,
            edits: false,
            posts_once: false,
            typing: false,
            max_text,
            unit: LengthUnit::Chars,
            max_buttons: 0,
            max_options: 0,
            edit_interval: Duration::ZERO,
            dialect: Dialect::Plain,
        }
    }
}

/// What a limit of a platform counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LengthUnit {
    /// Unicode scalar values.
    Chars,
    /// UTF-16 code units.
    Utf16,
    /// Bytes of UTF-8.
    Bytes,
}

impl LengthUnit {
    /// How long a text is.
    pub fn measure(self, text: &str) -> usize {
        match self {
            Self::Chars => text.chars().count(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
            Self::Bytes => text.len(),
        }
    }
}

/// A verified request.
#[derive(Debug)]
pub struct Received {
    /// What the platform is answered once the events are safe.
    pub response: http::Response<Bytes>,
    /// What happened, in order.
    pub events: Vec<Incoming>,
}

impl Received {
    /// Events, and an empty answer of 200.
    pub fn events(events: Vec<Incoming>) -> Self {
        Self { response: plain(StatusCode::OK, ""), events }
    }

    /// Nothing happened; the platform wants this answer.
    pub fn answer(response: http::Response<Bytes>) -> Self {
        Self { response, events: vec![] }
    }
}

/// A request that is not acted upon. Says little to whoever sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refused {
    /// No signature, or one that does not fit.
    Unsigned,
    /// Older than five minutes, or from the future.
    Stale,
    /// Signed, but meant for another app or workspace.
    WrongApp,
    /// Signed, and not understood.
    Malformed,
}

impl Refused {
    /// The status that the sender gets.
    pub fn status(self) -> StatusCode {
        match self {
            Self::Unsigned | Self::Stale => StatusCode::UNAUTHORIZED,
            Self::WrongApp => StatusCode::FORBIDDEN,
            Self::Malformed => StatusCode::BAD_REQUEST,
        }
    }

    /// `channel.unsigned`, … Stable.
    pub fn code(self) -> &'static str {
        match self {
            Self::Unsigned => "channel.unsigned",
            Self::Stale => "channel.stale",
            Self::WrongApp => "channel.wrong_app",
            Self::Malformed => "channel.malformed",
        }
    }
}

/// What tells a post from all others, so that it is made once whatever dies in between.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostKey {
    /// The same for the same post.
    pub key: String,
    /// An earlier attempt may have arrived: the adapter looks for it first.
    pub again: bool,
    /// The earliest moment at which an earlier attempt can have been made.
    pub since: Timestamp,
    /// The message that was posted before this one, as the platform calls it: an earlier attempt stands behind it.
    pub after: Option<String>,
    /// What [`stage`](ChannelAdapter::stage) answered, for a file.
    pub staged: Option<String>,
}

impl PostKey {
    /// A first attempt, after nothing that is known.
    pub fn new(key: impl Into<String>, since: Timestamp) -> Self {
        Self { key: key.into(), again: false, since, after: None, staged: None }
    }
}

/// What stands where something begins, on platforms that cannot tell whether it was posted.
pub(crate) const BEGINNING: &str = "…";

/// A message to be posted, in the platform's own markup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Post {
    /// The text.
    pub text: String,
    /// What can be pressed.
    pub buttons: Vec<Button>,
    /// What can be chosen.
    pub menu: Option<Menu>,
}

impl Post {
    /// Nothing but text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// Something that can be pressed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Button {
    /// What is on it, plain.
    pub label: String,
    /// What comes back: at most 64 bytes, opaque and signed.
    pub value: String,
    /// How it looks.
    pub style: ButtonStyle,
}

/// How a button looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ButtonStyle {
    /// Like any other.
    #[default]
    Plain,
    /// The way on.
    Primary,
    /// The way out.
    Danger,
}

/// Something to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Menu {
    /// What stands there before anything is chosen, plain.
    pub placeholder: String,
    /// Label and value of each entry.
    pub options: Vec<(String, String)>,
    /// Several may be chosen.
    pub several: bool,
}

/// A file to be posted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upload {
    /// What people call it.
    pub name: String,
    /// IANA media type.
    pub media_type: String,
    /// The file.
    pub bytes: Bytes,
}

/// A plain answer.
pub(crate) fn plain(status: StatusCode, text: &str) -> http::Response<Bytes> {
    let mut response = http::Response::new(Bytes::copy_from_slice(text.as_bytes()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// A JSON answer.
pub(crate) fn json(status: StatusCode, body: &serde_json::Value) -> http::Response<Bytes> {
    let mut response = http::Response::new(Bytes::from(body.to_string()));
    *response.status_mut() = status;
    response.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"));
    response
}
