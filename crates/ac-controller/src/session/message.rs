use std::sync::Arc;

use ac_core::{
    Message, MessageId, Part,
    message::{Author, FilePart, FileSource},
};
use base64::Engine as _;
use serde_json::{Map, Value};

use crate::{ControllerError, ControllerErrorKind, controller::Shared};

/// What a person says: text, files, and what goes with them.
///
/// ```
/// use ac_controller::UserMessage;
/// use ac_core::message::{Author, FilePart, FileSource};
///
/// # let base64 = "";
/// let picture = FilePart { media_type: "image/png".into(), source: FileSource::Base64(base64.into()), name: Some("plan.png".into()), opaque: None };
/// let message = UserMessage::new("Build this").file(picture).id("message-7");
/// # drop(message);
/// ```
#[derive(Clone, Debug, Default)]
#[must_use]
pub struct UserMessage {
    text: String,
    files: Vec<FilePart>,
    author: Option<Author>,
    host: Map<String, Value>,
    id: Option<MessageId>,
    pub(crate) unattended: bool,
    pub(crate) decides_nothing: bool,
    pub(crate) request_context: Map<String, Value>,
}

impl UserMessage {
    /// The most that a request context may be, as JSON, in bytes.
    pub const MAX_REQUEST_CONTEXT: usize = 64 * 1024;

    /// Text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// With a file. Text and JSON files become text that every model reads (SPEC S-8).
    pub fn file(mut self, file: FilePart) -> Self {
        self.files.push(file);
        self
    }

    /// Who says it, where several people speak (SPEC C-49). An author without an id does not count.
    pub fn author(mut self, author: Author) -> Self {
        self.author = Some(author).filter(|author| !author.id.is_empty());
        self
    }

    /// JSON that the tools of the run may read (SPEC C-48): stored with the run, but for the keys that the host marked as
    /// [transient](crate::ControllerBuilder::transient_context_keys). [Reserved](crate::is_reserved_context_key) keys are dropped. A message
    /// that joins an open run leaves that run's as it is.
    pub fn request_context(mut self, context: Map<String, Value>) -> Self {
        self.request_context = context;
        self
    }

    /// What the host keeps with the message.
    pub fn host(mut self, data: Map<String, Value>) -> Self {
        self.host = data;
        self
    }

    /// The id that the message is stored under, for a caller that may come twice with the same one: see
    /// [`submit_once`](crate::Session::submit_once). A fresh one, unless set. Must be unique in its thread: one that is known is refused
    /// (`storage.exists`).
    pub fn id(mut self, id: impl Into<MessageId>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Nobody can be asked where this message comes from: the run that it starts, and that run's subagents, run what is not denied without
    /// asking, to the run's end. `deny` rules and the mode's allow-list hold (SPEC N-15). The mark belongs to that run alone; a message
    /// that joins an open run changes nothing.
    pub fn unattended(mut self) -> Self {
        self.unattended = true;
        self
    }

    /// Whoever says it may not decide what waits: approvals that are open stay open, and the message reaches the model when the run goes on.
    /// Without this a message declines what its author was asked (`R7`). A message that starts a run is like any other.
    pub fn decides_nothing(mut self) -> Self {
        self.decides_nothing = true;
        self
    }

    /// Whether its id may have come before.
    pub(crate) fn is_named(&self) -> bool {
        self.id.is_some()
    }

    /// The message as it is stored, and the context that came with it.
    pub(crate) fn into_message(self, shared: &Shared) -> Result<(Message, Map<String, Value>), ControllerError> {
        if self.text.is_empty() && self.files.is_empty() {
            return Err(ControllerError::new(ControllerErrorKind::EmptyMessage, "a message needs text or a file"));
        }
        if serde_json::to_vec(&self.request_context).map_or(0, |json| json.len()) > Self::MAX_REQUEST_CONTEXT {
            let message = format!("the request context may be at most {} bytes of JSON", Self::MAX_REQUEST_CONTEXT);
            return Err(ControllerError::new(ControllerErrorKind::TooLarge, message));
        }
        let mut message = shared.user_message(self.text);
        if let Some(id) = self.id {
            message.id = id;
        }
        message.parts.extend(self.files.into_iter().map(|file| match inlined(&file) {
            Some(text) => Part::text(text),
            None => Part::File(file),
        }));
        message.meta.author = self.author;
        message.meta.host = self.host;
        Ok((message, self.request_context))
    }
}

impl<T: Into<String>> From<T> for UserMessage {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// The text of a text file, fenced so that nothing in it can end the fence.
fn inlined(file: &FilePart) -> Option<String> {
    if !file.media_type.starts_with("text/") && file.media_type != "application/json" {
        return None;
    }
    let FileSource::Base64(data) = &file.source else { return None };
    let decoded = base64::engine::general_purpose::STANDARD.decode(data.as_bytes()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    // What is no base64 is the text itself.
    let text = decoded.unwrap_or_else(|| data.to_string());
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    let label: Arc<str> = file.name.as_deref().map_or_else(|| "[Attached file]".into(), |name| format!("[File: {name}]").into());
    Some(format!("{label}\n{fence}\n{text}\n{fence}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_is_fenced_by_more_backticks_than_it_holds() {
        let data = base64::engine::general_purpose::STANDARD.encode("a ```` b");
        let file =
            FilePart { media_type: "text/plain".into(), source: FileSource::Base64(data.into()), name: Some("n.txt".into()), opaque: None };
        assert_eq!(inlined(&file).unwrap(), "[File: n.txt]\n`````\na ```` b\n`````");
        assert_eq!(inlined(&FilePart { media_type: "image/png".into(), ..file }), None);
    }
}
