//! The way to an `acode` that holds the store: one JSON line `{op, args}` in, then the lines of `--json`, and last `{"exit": N}`.

use std::{
    fs::{File, Permissions},
    io,
    os::{fd::AsRawFd, unix::fs::PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use agent_controller::core::CancelToken;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{
        UnixListener, UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::Semaphore,
    task::JoinSet,
};

use crate::{exit::Exit, sink::Sink};

/// The longest request.
const LONGEST: u64 = 4 << 20;
/// How long a request may take to arrive, and a line of the answer to be read.
const PATIENCE: Duration = Duration::from_secs(10);
/// So many are served at once.
const AT_ONCE: usize = 16;
/// The longest path of a socket that every system takes.
const SHORT: usize = 100;

/// Something that serves requests.
pub(crate) trait Serve: Send + Sync + 'static {
    /// Does what `op` says and tells `sink` about it.
    fn serve(&self, op: &str, args: &Value, sink: &mut Reply) -> impl Future<Output = Exit> + Send;
}

/// The answer to one request.
pub(crate) struct Reply(OwnedWriteHalf);

impl Sink for Reply {
    async fn put(&mut self, value: &Value) -> io::Result<()> {
        // Who does not read is gone: nothing may wait for them for ever.
        let line = format!("{value}\n");
        tokio::time::timeout(PATIENCE, self.0.write_all(line.as_bytes())).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }
}

/// A socket that is served until this is dropped. The file goes with it.
#[derive(Debug)]
pub(crate) struct Served {
    path: PathBuf,
    stop: CancelToken,
    task: tokio::task::JoinHandle<()>,
}

impl Served {
    /// Serves at this path. Only the process that holds the store may do so: a socket that stands there is a leftover.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub(crate) fn open(path: &Path, serve: Arc<impl Serve>) -> io::Result<Self> {
        // It gets its rights before it gets its name, so nobody else can connect in between.
        let fresh = path.with_extension(format!("{}", std::process::id()));
        let _ = std::fs::remove_file(&fresh);
        let listener = {
            let address = Address::of(&fresh)?;
            UnixListener::bind(&address.path)?
        };
        std::fs::set_permissions(&fresh, Permissions::from_mode(0o600))?;
        std::fs::rename(&fresh, path)?;
        let stop = CancelToken::new();
        Ok(Self { path: path.to_owned(), stop: stop.clone(), task: tokio::spawn(accept(listener, serve, stop)) })
    }

    /// Takes no more requests, and waits until those that were taken are answered.
    pub(crate) async fn finish(mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.stop.cancel();
        // A task that panicked is over too.
        let _ = (&mut self.task).await;
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.task.abort();
        let _ = std::fs::remove_file(&self.path);
    }
}

async fn accept(listener: UnixListener, serve: Arc<impl Serve>, stop: CancelToken) {
    let slots = Arc::new(Semaphore::new(AT_ONCE));
    // Dropped with this task, and all of them with it.
    let mut tasks = JoinSet::new();
    loop {
        let next = async {
            let slot = slots.clone().acquire_owned().await;
            (slot, listener.accept().await)
        };
        let (slot, stream) = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            Some(_) = tasks.join_next() => continue,
            next = next => next,
        };
        match stream {
            Ok((stream, _)) => {
                let (serve, stop) = (serve.clone(), stop.clone());
                tasks.spawn(async move {
                    let _slot = slot;
                    // Who went away needs no answer.
                    let _ = one(stream, serve.as_ref(), &stop).await;
                });
            }
            // Out of file descriptors, most likely: others end.
            Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

async fn one(stream: UnixStream, serve: &impl Serve, stop: &CancelToken) -> io::Result<()> {
    let (read, write) = stream.into_split();
    let mut reply = Reply(write);
    let mut line = String::new();
    let mut reader = BufReader::new(read).take(LONGEST);
    let read = tokio::select! {
        read = tokio::time::timeout(PATIENCE, reader.read_line(&mut line)) => read,
        // What was not asked yet is not waited for.
        () = stop.cancelled() => return Ok(()),
    };
    let request = match read {
        Ok(Ok(_)) => serde_json::from_str::<Value>(&line).ok(),
        _ => None,
    };
    let op = request.as_ref().and_then(|request| request.get("op")).and_then(Value::as_str);
    let exit = match (op, &request) {
        (Some(op), Some(request)) => serve.serve(op, request.get("args").unwrap_or(&Value::Null), &mut reply).await,
        _ => {
            reply.put(&error("usage", "send one line of JSON: {\"op\": …, \"args\": …}")).await?;
            Exit::Usage
        }
    };
    reply.put(&json!({ "exit": exit.code() })).await
}

/// An error in the form of an event.
pub(crate) fn error(code: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "name": code, "message": message }, "errorType": code, "retryable": false })
}

/// A connection to the process that holds the store.
#[derive(Debug)]
pub(crate) struct Connection {
    lines: BufReader<OwnedReadHalf>,
    write: OwnedWriteHalf,
}

impl Connection {
    /// Connects; `None` where nobody listens.
    pub(crate) async fn open(path: &Path) -> Option<Self> {
        let address = Address::of(path).ok()?;
        let (read, write) = UnixStream::connect(&address.path).await.ok()?.into_split();
        Some(Self { lines: BufReader::new(read), write })
    }

    /// Asks, hands each line to `sink`, and returns how it ended.
    ///
    /// # Errors
    /// When the other process ends in between, or nobody reads `sink` any more.
    pub(crate) async fn ask(mut self, op: &str, args: &Value, sink: &mut impl Sink) -> io::Result<Exit> {
        self.write.write_all(format!("{}\n", json!({ "op": op, "args": args })).as_bytes()).await?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.lines.read_line(&mut line).await? == 0 {
                return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the other acode ended before it answered"));
            }
            let value: Value = serde_json::from_str(&line)?;
            match value.get("exit").and_then(Value::as_u64) {
                Some(code) => return Ok(Exit::from_code(code)),
                None => sink.put(&value).await?,
            }
        }
    }
}

/// A path that is short enough for a socket. A deep folder is reached through its descriptor.
struct Address {
    path: PathBuf,
    _folder: Option<File>,
}

impl Address {
    fn of(path: &Path) -> io::Result<Self> {
        if path.as_os_str().len() <= SHORT {
            return Ok(Self { path: path.to_owned(), _folder: None });
        }
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "this is no path of a file"));
        };
        let folder = File::open(folder)?;
        let short = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name);
        Ok(Self { path: short, _folder: Some(folder) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Echo;

    impl Serve for Echo {
        async fn serve(&self, op: &str, args: &Value, sink: &mut Reply) -> Exit {
            sink.put(&json!({ "op": op, "args": args })).await.unwrap();
            if op == "slow" {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            if op == "wait" { Exit::Waiting } else { Exit::Complete }
        }
    }

    struct Kept(Vec<Value>);

    impl Sink for Kept {
        async fn put(&mut self, value: &Value) -> io::Result<()> {
            self.0.push(value.clone());
            Ok(())
        }
    }

    #[tokio::test]
    async fn a_request_is_answered_line_by_line_and_ends_with_its_exit() {
        let dir = tempfile::tempdir().unwrap();
        // Longer than a socket's path may be.
        let folder = dir.path().join("a".repeat(120));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("socket");
        std::fs::write(&path, "left over").unwrap();
        let served = Served::open(&path, Arc::new(Echo)).unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);

        let mut kept = Kept(vec![]);
        let exit = Connection::open(&path).await.unwrap().ask("wait", &json!({"id": "c"}), &mut kept).await.unwrap();
        assert_eq!((exit, kept.0), (Exit::Waiting, vec![json!({"op": "wait", "args": {"id": "c"}})]));

        // What was taken is answered; nothing more is.
        let asked = Connection::open(&path).await.unwrap();
        let asking = tokio::spawn(async move { asked.ask("slow", &Value::Null, &mut Kept(vec![])).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        served.finish().await;
        assert_eq!(asking.await.unwrap().unwrap(), Exit::Complete);
        assert!(Connection::open(&path).await.is_none());
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn nonsense_is_wrong_usage_and_harms_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _served = Served::open(&path, Arc::new(Echo)).unwrap();
        let mut stream = UnixStream::connect(&path).await.unwrap();
        stream.write_all(b"\xff\xfe{\n").await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("{\"exit\":64}\n"), "{answer}");
        let mut kept = Kept(vec![]);
        assert_eq!(Connection::open(&path).await.unwrap().ask("x", &Value::Null, &mut kept).await.unwrap(), Exit::Complete);
    }
}
