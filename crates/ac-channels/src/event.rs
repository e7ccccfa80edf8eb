//! What comes in from a platform, once it was verified.

use serde::{Deserialize, Serialize};

/// A conversation on a platform: a direct message, a thread, a group.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Conversation {
    /// Unique among all conversations of all platforms: the platform's name, a colon, and what the platform calls it.
    pub id: String,
    /// Where the platform's API posts to.
    pub channel: String,
    /// The thread in the channel, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// Between the agent and one person.
    #[serde(default)]
    pub direct: bool,
}

impl Conversation {
    /// What a platform calls `channel`: not a thread, and with any number of people.
    pub fn new(platform: &str, channel: impl Into<String>) -> Self {
        let channel = channel.into();
        Self { id: format!("{platform}:{channel}"), channel, thread: None, direct: false }
    }

    /// Between the agent and one person.
    #[must_use]
    pub fn direct(mut self) -> Self {
        self.direct = true;
        self
    }
}

/// Who did something. Taken from what the platform signed, from nowhere else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Speaker {
    /// The platform's id of the person; never empty.
    pub id: String,
    /// How the person is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
}

impl Speaker {
    /// A person of whom only the id is known.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into(), name: None }
    }

    /// With a name.
    #[must_use]
    pub fn named(mut self, name: Option<impl Into<String>>) -> Self {
        self.name = name.map(Into::into).filter(|name| !name.trim().is_empty());
        self
    }

    /// The name, else the id.
    pub fn shown(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// One thing that happened in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Incoming {
    /// What tells it from everything else that ever happens in the conversation. A redelivery carries at least one of the same.
    pub ids: Vec<String>,
    /// Where.
    pub conversation: Conversation,
    /// Who.
    pub speaker: Speaker,
    /// What.
    pub kind: IncomingKind,
}

impl Incoming {
    /// A person said something. `id` is what tells it from all other messages: a redelivery of it carries the same.
    pub fn message(id: impl Into<String>, conversation: Conversation, speaker: Speaker, said: Said) -> Self {
        Self { ids: vec![id.into()], conversation, speaker, kind: IncomingKind::Message(said) }
    }
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum IncomingKind {
    /// Somebody wrote.
    Message(Said),
    /// Somebody pressed a button or chose from a menu.
    Click(Click),
}

/// A message of a person.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Said {
    /// The text, without the mention of the agent.
    pub text: String,
    /// The platform's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The message that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<String>,
    /// It is meant for the agent whatever came before: a direct message, a mention, a command.
    pub addressed: bool,
    /// In a conversation that the agent already takes part in it is meant for the agent too.
    pub follows: bool,
    /// Files that came with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<Attachment>,
}

impl Said {
    /// A text that is meant for the agent.
    pub fn to_agent(text: impl Into<String>) -> Self {
        Self { text: text.into(), addressed: true, follows: true, ..Self::default() }
    }
}

/// What a mention says that says nothing: the person wants the agent's attention.
pub(crate) const NO_WORDS: &str = "(You were mentioned, without a word.)";

/// What whoever presses a button is told that belongs to nothing any more.
pub(crate) const NO_LONGER_IN_USE: &str = "This button is no longer in use.";

/// A button that was pressed, a menu entry that was chosen, a form that was filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Click {
    /// The values of what was pressed or chosen; several where a menu allows it.
    pub values: Vec<String>,
    /// What was written into the form, where it was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The message with the button.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What the platform wants back with a private answer (a callback id, an interaction token).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responder: Option<String>,
}

/// A file on the platform's side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Attachment {
    /// What the adapter needs to fetch it.
    pub reference: String,
    /// What the person calls it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// IANA media type; `application/octet-stream` where the platform says nothing.
    pub media_type: String,
    /// In bytes, where known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

/// What was said in a conversation before the agent was mentioned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// Who.
    pub speaker: Speaker,
    /// What.
    pub text: String,
}
