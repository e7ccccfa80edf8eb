//! A file system and a sandbox of one's own, with what the crate makes public and nothing else.
#![allow(clippy::unwrap_used)]

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use ac_core::CancelToken;
use ac_workspace::{
    CommandOutput, CommandRequest, CommandResult, Exit, NoSink, OutputSink, OutputStream, ProcessId, ProcessInfo, ProcessState, Sandbox,
    SearchHit, SearchResult, WalkEntry, WalkResult, Workspace, WorkspaceError,
};
use ac_workspace::{
    DirEntry, Expect, FileContent, FileKind, FileStat, FileVersion, Filesystem, SearchQuery, WalkQuery, WorkspaceErrorKind,
};
use async_trait::async_trait;

/// Runs nothing and says what it would have run.
struct Dry(Mutex<Vec<ProcessInfo>>);

#[async_trait]
impl Sandbox for Dry {
    async fn run(&self, request: CommandRequest, sink: Arc<dyn OutputSink>, _cancel: CancelToken) -> Result<CommandResult, WorkspaceError> {
        sink.output(OutputStream::Stdout, &request.command);
        Ok(CommandResult::new(Exit::Code(0), CommandOutput::whole(request.command), Duration::ZERO))
    }

    async fn start(&self, request: CommandRequest) -> Result<ProcessId, WorkspaceError> {
        let id = ProcessId::new("1");
        self.0.lock().unwrap().push(ProcessInfo::new(id.clone(), request.command, Duration::ZERO));
        Ok(id)
    }

    fn processes(&self) -> Vec<ProcessInfo> {
        self.0.lock().unwrap().clone()
    }

    async fn shutdown(&self) {
        for process in self.0.lock().unwrap().iter_mut() {
            process.state = ProcessState::Exited(Exit::Signal(15));
        }
    }
}

/// Notes in memory; one folder, no links.
#[derive(Default)]
struct Notes(Mutex<BTreeMap<String, Vec<u8>>>);

impl Notes {
    fn name(path: &Path) -> Result<String, WorkspaceError> {
        let name = path.to_str().filter(|name| !name.contains(['/', '\\']) && *name != "..");
        name.map(str::to_owned).ok_or_else(|| WorkspaceError::new(WorkspaceErrorKind::Escape, "a note has a name, not a path"))
    }

    fn note(&self, path: &Path) -> Result<Vec<u8>, WorkspaceError> {
        let missing = || WorkspaceError::new(WorkspaceErrorKind::NotFound, "there is no such note");
        self.0.lock().unwrap().get(&Self::name(path)?).cloned().ok_or_else(missing)
    }
}

#[async_trait]
impl Filesystem for Notes {
    fn root(&self) -> Option<&Path> {
        None
    }

    fn read_only(&self) -> bool {
        false
    }

    async fn resolve(&self, path: &Path) -> Result<PathBuf, WorkspaceError> {
        Self::name(path).map(PathBuf::from)
    }

    async fn stat(&self, path: &Path) -> Result<FileStat, WorkspaceError> {
        Ok(FileStat::new(FileKind::File, self.note(path)?.len() as u64))
    }

    async fn read(&self, path: &Path, _max_bytes: u64) -> Result<FileContent, WorkspaceError> {
        self.note(path).map(FileContent::new)
    }

    async fn list(&self, _path: &Path) -> Result<Vec<DirEntry>, WorkspaceError> {
        Ok(self.0.lock().unwrap().keys().map(|name| DirEntry::new(name, FileKind::File)).collect())
    }

    async fn write(&self, path: &Path, bytes: Vec<u8>, _expect: Expect) -> Result<FileVersion, WorkspaceError> {
        let version = FileVersion::of(&bytes);
        self.0.lock().unwrap().insert(Self::name(path)?, bytes);
        Ok(version)
    }

    async fn make_dir(&self, _path: &Path) -> Result<(), WorkspaceError> {
        Err(WorkspaceError::new(WorkspaceErrorKind::Unsupported, "notes have no folders"))
    }

    async fn remove(&self, path: &Path, _recursive: bool) -> Result<(), WorkspaceError> {
        self.note(path)?;
        self.0.lock().unwrap().remove(&Self::name(path)?);
        Ok(())
    }

    async fn rename(&self, from: &Path, to: &Path) -> Result<(), WorkspaceError> {
        let note = self.note(from)?;
        self.write(to, note, Expect::Absent).await?;
        self.remove(from, false).await
    }

    async fn walk(&self, _query: WalkQuery, _cancel: &CancelToken) -> Result<WalkResult, WorkspaceError> {
        let mut found = WalkResult::default();
        found.entries = self.0.lock().unwrap().keys().map(|name| WalkEntry::new(name, FileKind::File)).collect();
        found.total = found.entries.len();
        Ok(found)
    }

    async fn search(&self, query: SearchQuery, _cancel: &CancelToken) -> Result<SearchResult, WorkspaceError> {
        let mut found = SearchResult::default();
        for (name, note) in &*self.0.lock().unwrap() {
            let text = String::from_utf8_lossy(note).into_owned();
            let lines = text.lines().zip(1..).filter(|(line, _)| line.contains(&query.pattern));
            found.hits.extend(lines.map(|(line, n)| SearchHit::new(name, n, line)));
        }
        Ok(found)
    }
}

#[tokio::test]
async fn a_workspace_of_ones_own_needs_nothing_that_is_hidden() {
    let workspace = Workspace::new(Arc::new(Notes::default())).with_sandbox(Arc::new(Dry(Mutex::default())));
    let files = workspace.filesystem();
    files.write(Path::new("a"), b"one\ntwo".to_vec(), Expect::Anything).await.unwrap();
    assert_eq!(files.read(Path::new("a"), 10).await.unwrap().version, FileVersion::of(b"one\ntwo"));
    assert_eq!(files.stat(Path::new("a")).await.unwrap().size, 7);
    let cancel = CancelToken::new();
    let hits = files.search(SearchQuery::new("two", "."), &cancel).await.unwrap().hits;
    assert_eq!(hits.first().map(|hit| (hit.line, hit.text.as_str())), Some((2, "two")));
    assert_eq!(files.walk(WalkQuery::new("."), &cancel).await.unwrap().total, 1);
    assert_eq!(files.list(Path::new(".")).await.unwrap().len(), 1);

    let sandbox = workspace.commands().unwrap();
    let result = sandbox.run(CommandRequest::new("ls"), Arc::new(NoSink), cancel).await.unwrap();
    assert_eq!((result.exit.success(), result.output.text(), result.output.total), (true, "ls".to_owned(), 2));
    let id = sandbox.start(CommandRequest::new("sleep 9")).await.unwrap();
    assert!(sandbox.processes().iter().any(|process| process.id == id && process.state == ProcessState::Running));
    workspace.shutdown().await;
    assert!(sandbox.processes().iter().all(|process| process.state != ProcessState::Running));
}
