use std::{io, path::Path};

use ac_core::{ErrorInfo, error::Source};

/// Why something in a workspace did not work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WorkspaceErrorKind {
    /// The path leads outside of the workspace.
    Escape,
    /// There is nothing at the path.
    NotFound,
    /// There is something at the path already.
    Exists,
    /// The path names a folder where a file is needed.
    IsDirectory,
    /// A part of the path is no folder.
    NotDirectory,
    /// The folder still has something in it.
    NotEmpty,
    /// Neither a file nor a folder: a pipe, a socket, a device.
    Special,
    /// The workspace, or this part of it, may only be read.
    ReadOnly,
    /// The system refuses it, or a policy does.
    Denied,
    /// Bigger than the limit.
    TooLarge,
    /// The file changed since it was read.
    Stale,
    /// The path, pattern or command makes no sense.
    Invalid,
    /// It was told to stop and did.
    Cancelled,
    /// This workspace has no such thing.
    Unsupported,
    /// The command could not be started.
    Spawn,
    /// The isolation that the policy demands cannot be had here.
    Isolation,
    /// Anything else that the system reports.
    Io,
}

impl WorkspaceErrorKind {
    /// The stable code: `workspace.escape`, …
    pub const fn code(self) -> &'static str {
        match self {
            Self::Escape => "workspace.escape",
            Self::NotFound => "workspace.not_found",
            Self::Exists => "workspace.exists",
            Self::IsDirectory => "workspace.is_directory",
            Self::NotDirectory => "workspace.not_directory",
            Self::NotEmpty => "workspace.not_empty",
            Self::Special => "workspace.special",
            Self::ReadOnly => "workspace.read_only",
            Self::Denied => "workspace.denied",
            Self::TooLarge => "workspace.too_large",
            Self::Stale => "workspace.stale",
            Self::Invalid => "workspace.invalid",
            Self::Cancelled => "workspace.cancelled",
            Self::Unsupported => "workspace.unsupported",
            Self::Spawn => "workspace.spawn",
            Self::Isolation => "workspace.isolation",
            Self::Io => "workspace.io",
        }
    }
}

/// Something in a workspace did not work. The message is for the model and the person: what went wrong and what to do instead.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct WorkspaceError {
    kind: WorkspaceErrorKind,
    message: String,
    #[source]
    source: Option<Source>,
}

impl WorkspaceError {
    /// A failure of this kind.
    pub fn new(kind: WorkspaceErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Keeps the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl Into<Source>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Why it failed.
    pub fn kind(&self) -> WorkspaceErrorKind {
        self.kind
    }

    /// The stable code: `workspace.escape`, …
    pub fn code(&self) -> &'static str {
        self.kind.code()
    }

    pub(crate) fn escape(path: &Path) -> Self {
        Self::new(
            WorkspaceErrorKind::Escape,
            format!("`{}` leads outside of the workspace; use a path relative to the workspace folder", path.display()),
        )
    }

    pub(crate) fn cancelled() -> Self {
        Self::new(WorkspaceErrorKind::Cancelled, "stopped before it was done")
    }

    /// What the system said about a path, in the words of a workspace.
    pub(crate) fn from_io(path: &Path, error: io::Error) -> Self {
        use WorkspaceErrorKind as Kind;
        let shown = path.display();
        // cap-std reports a path that leaves the folder without an error number of the system.
        if error.raw_os_error().is_none() && error.kind() == io::ErrorKind::PermissionDenied {
            return Self::escape(path).with_source(error);
        }
        let (kind, message) = match error.kind() {
            io::ErrorKind::NotFound => (Kind::NotFound, format!("there is nothing at `{shown}`")),
            io::ErrorKind::AlreadyExists => (Kind::Exists, format!("`{shown}` exists already")),
            io::ErrorKind::IsADirectory => (Kind::IsDirectory, format!("`{shown}` is a folder")),
            io::ErrorKind::NotADirectory => (Kind::NotDirectory, format!("a part of `{shown}` is not a folder")),
            io::ErrorKind::DirectoryNotEmpty => (Kind::NotEmpty, format!("the folder `{shown}` is not empty")),
            io::ErrorKind::ReadOnlyFilesystem => (Kind::ReadOnly, format!("`{shown}` lies on a read-only file system")),
            io::ErrorKind::PermissionDenied => (Kind::Denied, format!("the system does not allow this with `{shown}`")),
            io::ErrorKind::InvalidFilename | io::ErrorKind::InvalidInput => (Kind::Invalid, format!("`{shown}` is not a usable path")),
            io::ErrorKind::CrossesDevices => (Kind::Escape, format!("`{shown}` leads outside of the workspace")),
            _ => match rustix::io::Errno::from_io_error(&error) {
                Some(rustix::io::Errno::LOOP) => {
                    (Kind::Escape, format!("`{shown}` goes through too many links, or through one that may not be followed"))
                }
                _ => (Kind::Io, format!("`{shown}`: {error}")),
            },
        };
        Self::new(kind, message).with_source(error)
    }
}

impl From<&WorkspaceError> for ErrorInfo {
    fn from(error: &WorkspaceError) -> Self {
        Self::new(error.code(), error.message.clone())
    }
}
