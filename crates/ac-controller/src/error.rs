use ac_agent::{RunError, RunErrorKind};
use ac_core::{ErrorInfo, error::Source};
use ac_storage::{StorageError, StorageErrorKind};

/// Why a controller or a session did not do what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ControllerErrorKind {
    /// The controller was built without a mode.
    NoModes,
    /// Two modes have the same id.
    DuplicateMode,
    /// A mode has `tools` and `additional_tools`.
    ConflictingTools,
    /// A mode's plans lead to a mode that does not exist.
    UnknownTransition,
    /// A mode's plans lead to itself.
    SelfTransition,
    /// The default mode does not exist.
    UnknownDefaultMode,
    /// Two tools that are offered together have the same name.
    DuplicateTool,
    /// Two subagents have the same id, or one has none.
    DuplicateSubagent,
    /// A subagent is allowed a tool that does not exist.
    UnknownTool,
    /// The controller was built without a store, or without a way to a model.
    Incomplete,
    /// The schema of the state is no JSON Schema.
    InvalidSchema,
    /// Two controllers of a host have the same id.
    DuplicateController,
    /// The host has no such controller.
    ControllerNotFound,
    /// There is no such mode.
    ModeNotFound,
    /// There is no such type of subagent.
    SubagentNotFound,
    /// There is no such thread, or it belongs to somebody else.
    ThreadNotFound,
    /// A thread of that id exists already.
    ThreadExists,
    /// The thread has no such message.
    MessageNotFound,
    /// A thread cannot be named on which nobody said anything.
    NothingToName,
    /// The models cannot be listed, or the one that was asked did not answer.
    ModelsUnavailable,
    /// No model is selected, and the mode has none of its own.
    NoModel,
    /// The session was deleted. Create it again.
    SessionDeleted,
    /// The session's record was written by a newer version of this program.
    NewerSchema,
    /// The controller was shut down.
    Closed,
    /// A message without text and files.
    EmptyMessage,
    /// The request context, or a message, is larger than it may be.
    TooLarge,
    /// No such item waits in the queue.
    QueueItemNotFound,
    /// There is no such grant.
    GrantNotFound,
    /// A rule for single calls that cannot be read.
    InvalidRule,
    /// Nothing waits under this id (`R6`).
    NotPending,
    /// Another answer came first (`R6`).
    AlreadyResolved,
    /// The id fits several waits; the message lists them (`R6`).
    Ambiguous,
    /// The answer does not fit what was asked (`R6`).
    InvalidAnswer,
    /// The run is being aborted (`R6`).
    Aborting,
    /// The session is bound to no thread.
    NoThread,
    /// A goal without an objective, or with limits that no run fits into.
    InvalidGoal,
    /// A notification without source, kind or summary.
    InvalidNotification,
    /// The state would not fit its schema, or holds what may not be set this way.
    InvalidState,
    /// A key of the state that only the host sets, and callers with that right.
    ProtectedState,
    /// Somebody else changed the same thing over and over; try again.
    Contended,
    /// A run did not take what it was given.
    Run(RunErrorKind),
    /// The store did not do what it was asked.
    Storage(StorageErrorKind),
}

/// A controller or a session that did not do what it was asked.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ControllerError {
    kind: ControllerErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
}

impl ControllerError {
    /// A failure of this kind.
    pub fn new(kind: ControllerErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why.
    pub fn kind(&self) -> ControllerErrorKind {
        self.kind
    }

    /// `answer.not_pending`, `thread.not_found`, … Stable.
    pub fn code(&self) -> &'static str {
        use ControllerErrorKind as K;
        match self.kind {
            K::NoModes => "config.no_modes",
            K::DuplicateMode => "config.duplicate_mode",
            K::ConflictingTools => "config.conflicting_tools",
            K::UnknownTransition => "config.unknown_transition",
            K::SelfTransition => "config.self_transition",
            K::UnknownDefaultMode => "config.unknown_default_mode",
            K::DuplicateTool => "config.duplicate_tool",
            K::DuplicateSubagent => "config.duplicate_subagent",
            K::UnknownTool => "config.unknown_tool",
            K::Incomplete => "config.incomplete",
            K::InvalidSchema => "config.invalid_schema",
            K::DuplicateController => "config.duplicate_controller",
            K::ControllerNotFound => "controller.not_found",
            K::MessageNotFound => "message.not_found",
            K::NothingToName => "title.nothing_to_name",
            K::ModelsUnavailable => "models.unavailable",
            K::ModeNotFound => "mode.not_found",
            K::SubagentNotFound => "subagent.not_found",
            K::ThreadNotFound => "thread.not_found",
            K::ThreadExists => "thread.exists",
            K::NoModel => "model.none_selected",
            K::SessionDeleted => "session.deleted",
            K::NewerSchema => "session.newer_schema",
            K::Closed => "controller.closed",
            K::EmptyMessage => "message.empty",
            K::TooLarge => "message.too_large",
            K::QueueItemNotFound => "queue.not_found",
            K::GrantNotFound => "grant.not_found",
            K::InvalidRule => "rule.invalid",
            K::NotPending => "answer.not_pending",
            K::AlreadyResolved => "answer.already_resolved",
            K::Ambiguous => "answer.ambiguous",
            K::InvalidAnswer => "answer.invalid",
            K::Aborting => "answer.aborting",
            K::NoThread => "session.no_thread",
            K::InvalidGoal => "goal.invalid",
            K::InvalidNotification => "notification.invalid",
            K::InvalidState => "state.invalid",
            K::ProtectedState => "state.protected",
            K::Contended => "session.contended",
            K::Run(kind) => RunError::new(kind, "").code(),
            K::Storage(kind) => StorageError::new(kind, "").code(),
        }
    }

    pub(crate) fn mode_not_found(mode: &ac_core::ModeId) -> Self {
        Self::new(ControllerErrorKind::ModeNotFound, format!("Mode not found: {mode}"))
    }

    pub(crate) fn thread_not_found(thread: &ac_core::ThreadId) -> Self {
        Self::new(ControllerErrorKind::ThreadNotFound, format!("Thread not found: {thread}"))
    }

    pub(crate) fn not_pending(id: impl std::fmt::Display) -> Self {
        let message = format!("nothing waits under `{id}`; list what waits with `pending()`");
        Self::new(ControllerErrorKind::NotPending, message)
    }
}

impl From<StorageError> for ControllerError {
    fn from(error: StorageError) -> Self {
        Self::new(ControllerErrorKind::Storage(error.kind()), error.to_string()).with_source(error)
    }
}

impl From<RunError> for ControllerError {
    fn from(error: RunError) -> Self {
        use ControllerErrorKind as K;
        let kind = match error.code() {
            "answer.not_pending" => K::NotPending,
            "answer.already_resolved" => K::AlreadyResolved,
            "answer.invalid" => K::InvalidAnswer,
            "answer.aborting" => K::Aborting,
            "run.closed" => K::Closed,
            _ => match error.kind() {
                RunErrorKind::Storage(kind) => K::Storage(kind),
                kind => K::Run(kind),
            },
        };
        Self::new(kind, error.to_string()).with_source(error)
    }
}

impl From<&ControllerError> for ErrorInfo {
    fn from(error: &ControllerError) -> Self {
        let mut info = Self::new(error.code(), error.message.clone());
        info.retryable = matches!(
            error.kind,
            ControllerErrorKind::Contended
                | ControllerErrorKind::Storage(StorageErrorKind::Conflict | StorageErrorKind::Unavailable | StorageErrorKind::Unknown)
        );
        info
    }
}
