//! What a command printed: told while it comes, head and tail kept, all of it in a log.

use std::{
    collections::VecDeque,
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use encoding_rs::{Decoder, UTF_8};
use tokio::{
    io::{AsyncRead, AsyncReadExt},
    sync::Notify,
    task::JoinHandle,
};

use super::LocalSandboxOptions;
use crate::{CommandOutput, OutputSink, OutputStream, WorkspaceError};

pub(super) struct Capture {
    state: Mutex<State>,
    sink: Arc<dyn OutputSink>,
    limits: Limits,
    /// Something came.
    came: Notify,
}

struct Limits {
    head: usize,
    tail: usize,
    stream: usize,
    log: u64,
}

struct State {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    total: u64,
    told: usize,
    log: Option<(File, PathBuf)>,
    decoders: [Decoder; 2],
    finished: bool,
}

impl Capture {
    pub(super) fn new(options: &LocalSandboxOptions, logs: Option<&Path>, sink: Arc<dyn OutputSink>) -> Result<Arc<Self>, WorkspaceError> {
        let log = match logs {
            None => None,
            Some(folder) => {
                let fail = |error| WorkspaceError::from_io(folder, error);
                let made = tempfile::Builder::new().prefix("command-").suffix(".log").tempfile_in(folder).map_err(fail)?;
                Some(made.keep().map_err(|error| fail(error.error))?)
            }
        };
        Ok(Arc::new(Self {
            state: Mutex::new(State {
                head: Vec::new(),
                tail: VecDeque::new(),
                total: 0,
                told: 0,
                log,
                decoders: [UTF_8.new_decoder_without_bom_handling(), UTF_8.new_decoder_without_bom_handling()],
                finished: false,
            }),
            sink,
            limits: Limits { head: options.head, tail: options.tail, stream: options.stream, log: options.log },
            came: Notify::new(),
        }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, stream: OutputStream, bytes: &[u8]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if state.finished {
            return;
        }
        if let Some((file, _)) = &mut state.log {
            let room = self.limits.log.saturating_sub(state.total);
            let part = bytes.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(bytes);
            // A full disk costs the log, not the command.
            if !part.is_empty() && file.write_all(part).is_err() {
                state.log = None;
            }
        }
        state.total += bytes.len() as u64;
        let room = self.limits.head - state.head.len();
        let (head, rest) = bytes.split_at_checked(room).unwrap_or((bytes, &[]));
        state.head.extend_from_slice(head);
        let rest = rest.get(rest.len().saturating_sub(self.limits.tail)..).unwrap_or(rest);
        let over = (state.tail.len() + rest.len()).saturating_sub(self.limits.tail);
        state.tail.drain(..over);
        state.tail.extend(rest);
        self.tell(state, stream, bytes, false);
        drop(guard);
        self.came.notify_one();
    }

    fn tell(&self, state: &mut State, stream: OutputStream, bytes: &[u8], last: bool) {
        if state.told > self.limits.stream {
            return;
        }
        let [out, err] = &mut state.decoders;
        let decoder = if stream == OutputStream::Stdout { out } else { err };
        let mut text = String::with_capacity(decoder.max_utf8_buffer_length(bytes.len()).unwrap_or(bytes.len()));
        let _ = decoder.decode_to_string(bytes, &mut text, last);
        if text.is_empty() {
            return;
        }
        state.told += text.len();
        self.sink.output(stream, &text);
        if state.told > self.limits.stream {
            self.sink.output(stream, "\n[… more output than is shown while it comes …]\n");
        }
    }

    /// Nothing more is told; it is still kept.
    pub(super) fn hush(&self) {
        let mut state = self.lock();
        for stream in [OutputStream::Stdout, OutputStream::Stderr] {
            self.tell(&mut state, stream, &[], true);
        }
        state.told = usize::MAX;
    }

    /// What was kept until now.
    pub(super) fn snapshot(&self) -> CommandOutput {
        let state = self.lock();
        let kept = (state.head.len() + state.tail.len()) as u64;
        let omitted = state.total.saturating_sub(kept);
        let tail: Vec<u8> = state.tail.iter().copied().collect();
        let (head, tail) = if omitted == 0 {
            (text(&[state.head.as_slice(), &tail].concat()), String::new())
        } else {
            (text(whole_end(&state.head)), text(whole_start(&tail)))
        };
        let log = state.log.as_ref().filter(|_| omitted > 0).map(|(_, path)| path.clone());
        CommandOutput { head, tail, total: state.total, omitted, log }
    }

    /// What was kept. Later output is no longer taken, and a log that holds nothing more is removed.
    pub(super) fn finish(&self) -> CommandOutput {
        self.hush();
        let output = self.snapshot();
        let mut state = self.lock();
        state.finished = true;
        if let Some((file, path)) = state.log.take()
            && output.omitted == 0
        {
            drop(file);
            std::fs::remove_file(path).ok();
        }
        output
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Without a character that was cut at the end.
fn whole_end(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => bytes.get(..error.valid_up_to()).unwrap_or(bytes),
        _ => bytes,
    }
}

/// Without a character that was cut at the start.
fn whole_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| (0x80..0xC0).contains(*byte)).count();
    bytes.get(cut..).unwrap_or(bytes)
}

/// Reads a pipe to its end.
pub(super) async fn drain(mut pipe: impl AsyncRead + Unpin, stream: OutputStream, capture: Arc<Capture>) {
    let mut buffer = vec![0; 64 << 10];
    while let Ok(count) = pipe.read(&mut buffer).await {
        if count == 0 {
            break;
        }
        capture.take(stream, buffer.get(..count).unwrap_or_default());
    }
}

/// Waits until the pipes are closed, or nothing came for a while although they are open.
pub(super) async fn settle(readers: &mut Vec<JoinHandle<()>>, capture: &Capture, longest: Duration) {
    let deadline = tokio::time::Instant::now() + longest;
    while let Some(reader) = readers.last_mut() {
        tokio::select! {
            _ = reader => {
                readers.pop();
            }
            // Somebody who talks on is not waited for beyond the deadline, somebody silent much shorter.
            quiet = tokio::time::timeout(Duration::from_millis(150), capture.came.notified()) => if quiet.is_err() { break },
            () = tokio::time::sleep_until(deadline) => break,
        }
    }
}

impl std::fmt::Debug for Capture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Capture").field("total", &self.lock().total).finish_non_exhaustive()
    }
}
