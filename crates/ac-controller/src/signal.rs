use ac_core::{Message, MessageId, Part, Role, RunId, Timestamp, message::SignalInfo};
use serde_json::{Map, Value};

/// Something that happened, for the model to know: not the words of a person (SPEC S-14…S-23).
///
/// It never counts as a person's message: it declines no approval, and does not renew a run's budget.
///
/// ```
/// use ac_controller::{Session, Signal, WhenIdle};
///
/// # async fn run(session: &Session) -> Result<(), ac_controller::ControllerError> {
/// session.send_signal(Signal::new("ci", "The build is red.").if_idle(WhenIdle::Persist)).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct Signal {
    info: Box<SignalInfo>,
    text: String,
    attributes: Map<String, Value>,
    host: Map<String, Value>,
    pub(crate) if_active: WhenActive,
    pub(crate) if_idle: WhenIdle,
}

/// What becomes of a signal while a run is open on the thread, moving or waiting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenActive {
    /// The model reads it at its next step, which there will be.
    #[default]
    Deliver,
    /// It is put into the thread, and no step is made for its sake.
    Persist,
    /// Nothing.
    Discard,
}

/// What becomes of a signal while nothing is open on the thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum WhenIdle {
    /// A run starts with it.
    #[default]
    Wake,
    /// It is put into the thread, for the next run to read.
    Persist,
    /// Nothing.
    Discard,
}

/// What became of a signal.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SignalAction {
    /// The open run takes it.
    Delivered {
        /// The run.
        run: RunId,
    },
    /// A run began with it.
    Woke {
        /// The run.
        run: RunId,
    },
    /// It stands in the thread, or will once the open run puts it there.
    Persisted,
    /// It is gone.
    Discarded,
}

/// A signal and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SignalSent {
    /// The message it is; also when it was discarded.
    pub message: MessageId,
    /// What became of it.
    pub action: SignalAction,
}

impl Signal {
    /// A signal of a kind, with what the model reads of it. The element in which it reads it is called like the kind.
    pub fn new(kind: impl Into<String>, text: impl Into<String>) -> Self {
        let kind = kind.into();
        Self {
            info: Box::new(SignalInfo { tag: kind.clone(), kind, ..SignalInfo::default() }),
            text: text.into(),
            attributes: Map::new(),
            host: Map::new(),
            if_active: WhenActive::default(),
            if_idle: WhenIdle::default(),
        }
    }

    /// Another name for its element: letters, digits, `-` and `_`.
    pub fn tag(mut self, tag: impl Into<String>) -> Self {
        self.info.tag = tag.into();
        self
    }

    /// An attribute of its element.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// What programs read of it and models do not.
    pub fn metadata(mut self, metadata: Map<String, Value>) -> Self {
        self.info.metadata = metadata;
        self
    }

    /// What the host keeps with it.
    pub fn host(mut self, data: Map<String, Value>) -> Self {
        self.host = data;
        self
    }

    /// What becomes of it while a run is open.
    pub fn if_active(mut self, behaviour: WhenActive) -> Self {
        self.if_active = behaviour;
        self
    }

    /// What becomes of it while nothing is open.
    pub fn if_idle(mut self, behaviour: WhenIdle) -> Self {
        self.if_idle = behaviour;
        self
    }

    /// The message as it is stored.
    pub(crate) fn into_message(self, id: impl Into<MessageId>, at: Timestamp) -> Message {
        let mut message = Message::new(id, Role::Signal, vec![Part::text(self.text)], at);
        message.meta.attributes = self.attributes;
        message.meta.host = self.host;
        message.meta.signal = Some(self.info);
        message
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }
}
