use std::sync::Arc;

use crate::{Filesystem, LocalFilesystem, Sandbox, WorkspaceError, WorkspaceErrorKind};
#[cfg(feature = "sandbox")]
use crate::{LocalFilesystemOptions, LocalSandbox, LocalSandboxOptions};

/// Files and commands of one place. A host makes one, or one per session.
///
/// ```
/// use std::path::Path;
///
/// use ac_workspace::{Expect, Workspace, WorkspaceError, WorkspaceErrorKind};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = std::env::temp_dir().join(format!("workspace-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// let workspace = Workspace::files(&folder)?;
/// let files = workspace.filesystem();
/// files.write(Path::new("notes.txt"), b"Lighthouses".to_vec(), Expect::Absent).await?;
/// assert_eq!(files.read(Path::new("notes.txt"), 1024).await?.bytes, b"Lighthouses");
/// // What leads outside is refused, whatever it is that leads there.
/// let outside = files.read(Path::new("../secret"), 1024).await.err().map(|error: WorkspaceError| error.kind());
/// assert_eq!(outside, Some(WorkspaceErrorKind::Escape));
/// # std::fs::remove_dir_all(folder)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Workspace {
    filesystem: Arc<dyn Filesystem>,
    sandbox: Option<Arc<dyn Sandbox>>,
}

impl Workspace {
    /// Files alone.
    pub fn new(filesystem: Arc<dyn Filesystem>) -> Self {
        Self { filesystem, sandbox: None }
    }

    /// The files of a folder of this machine, and no commands.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    pub fn files(folder: impl AsRef<std::path::Path>) -> Result<Self, WorkspaceError> {
        Ok(Self::new(Arc::new(LocalFilesystem::open(folder)?)))
    }

    /// Files and commands.
    #[must_use]
    pub fn with_sandbox(mut self, sandbox: Arc<dyn Sandbox>) -> Self {
        self.sandbox = Some(sandbox);
        self
    }

    /// A folder of this machine: its files, and commands that start there. The logs of commands can be read through the file system.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    #[cfg(feature = "sandbox")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
    pub fn local(folder: impl AsRef<std::path::Path>) -> Result<Self, WorkspaceError> {
        Self::local_with(folder, LocalFilesystemOptions::default(), LocalSandboxOptions::default())
    }

    /// As [`Workspace::local`], with options.
    ///
    /// # Errors
    /// When the folder cannot be opened.
    #[cfg(feature = "sandbox")]
    #[cfg_attr(docsrs, doc(cfg(feature = "sandbox")))]
    pub fn local_with(
        folder: impl AsRef<std::path::Path>,
        mut files: LocalFilesystemOptions,
        commands: LocalSandboxOptions,
    ) -> Result<Self, WorkspaceError> {
        let sandbox = LocalSandbox::open_with(folder.as_ref(), commands)?;
        files.readable.extend(sandbox.logs().map(ToOwned::to_owned));
        let filesystem = LocalFilesystem::open_with(folder, files)?;
        Ok(Self::new(Arc::new(filesystem)).with_sandbox(Arc::new(sandbox)))
    }

    /// The files.
    pub fn filesystem(&self) -> &Arc<dyn Filesystem> {
        &self.filesystem
    }

    /// Where commands run, if they may.
    pub fn sandbox(&self) -> Option<&Arc<dyn Sandbox>> {
        self.sandbox.as_ref()
    }

    /// Where commands run.
    ///
    /// # Errors
    /// `Unsupported` when this workspace runs no commands.
    pub fn commands(&self) -> Result<&Arc<dyn Sandbox>, WorkspaceError> {
        self.sandbox.as_ref().ok_or_else(|| WorkspaceError::new(WorkspaceErrorKind::Unsupported, "this workspace runs no commands"))
    }

    /// Ends everything that runs in it.
    pub async fn shutdown(&self) {
        if let Some(sandbox) = &self.sandbox {
            sandbox.shutdown().await;
        }
    }
}
