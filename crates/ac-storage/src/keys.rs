//! The key space of [`KvStorage`](crate::KvStorage): one flat space, a two-byte prefix per kind of row, ids escaped so that any text is
//! legal in them and byte order of keys is the order of the ids.

use ac_core::{ControllerId, MessageId, ResourceId, RunId, SessionKey, ThreadId, Timestamp};

use crate::SessionId;

/// Number of the layout of keys. A store with a greater number belongs to a newer program.
///
/// 2: open runs are listed by session too, and long texts stand in rows of their own. 3: the index of ids of a copied thread is in blocks,
/// which a program that does not know them would take for rows of no kind, and their messages for new ones.
pub(crate) const LAYOUT: u32 = 3;

/// `!layout`: the layout row.
pub(crate) fn layout() -> Vec<u8> {
    b"!layout".to_vec()
}

/// `t/` thread.
pub(crate) fn thread(id: &ThreadId) -> Vec<u8> {
    Key::new(b"t/").text(id.as_str()).done()
}

/// All of `t/`.
pub(crate) fn threads() -> Vec<u8> {
    b"t/".to_vec()
}

/// `h/` head of a thread.
pub(crate) fn head(id: &ThreadId) -> Vec<u8> {
    Key::new(b"h/").text(id.as_str()).done()
}

/// `u/` threads of a resource, newest first.
pub(crate) fn recency_of(resource: &ResourceId) -> Vec<u8> {
    Key::new(b"u/").text(resource.as_str()).done()
}

/// Which row a recency entry follows: both the thread's row and its head say when the thread was last written to, and each moves its own
/// entry, so that neither has to be written for the other's sake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Follows {
    /// The head.
    Head,
    /// The thread's row.
    Row,
}

/// `u/` one recency entry.
pub(crate) fn recency(resource: &ResourceId, at: Timestamp, thread: &ThreadId, follows: Follows) -> Vec<u8> {
    let tag = match follows {
        Follows::Head => 0,
        Follows::Row => 1,
    };
    Key::new(b"u/").text(resource.as_str()).newest_first(at).text(thread.as_str()).byte(tag).done()
}

/// Beyond every recency entry of this thread at this time.
pub(crate) fn recency_after(resource: &ResourceId, at: Timestamp, thread: &ThreadId) -> Vec<u8> {
    Key::new(b"u/").text(resource.as_str()).newest_first(at).text(thread.as_str()).byte(u8::MAX).done()
}

/// What a recency key says.
pub(crate) fn read_recency(key: &[u8]) -> Option<(Timestamp, ThreadId, Follows)> {
    let (_, rest) = read_text(key.get(2..)?)?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let (thread, rest) = read_text(rest)?;
    let follows = match rest {
        [0] => Follows::Head,
        [1] => Follows::Row,
        _ => return None,
    };
    Some((unsort_time(!u64::from_be_bytes(*at)), thread.into(), follows))
}

/// `c/` threads of the children of a run.
pub(crate) fn children(run: &RunId) -> Vec<u8> {
    Key::new(b"c/").text(run.as_str()).done()
}

/// `c/` one child thread.
pub(crate) fn child(run: &RunId, thread: &ThreadId) -> Vec<u8> {
    Key::new(b"c/").text(run.as_str()).text(thread.as_str()).done()
}

/// `d/` threads whose deletion is not finished, and copies of threads that are not: those have rows and no head.
pub(crate) fn deletions() -> Vec<u8> {
    b"d/".to_vec()
}

/// `d/` one of them.
pub(crate) fn deletion(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"d/").text(thread.as_str()).done()
}

/// `m/` messages of a thread.
pub(crate) fn messages(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"m/").text(thread.as_str()).done()
}

/// `m/` one message.
pub(crate) fn message(thread: &ThreadId, position: u64) -> Vec<u8> {
    Key::new(b"m/").text(thread.as_str()).number(position).done()
}

/// The position in the key of a message.
pub(crate) fn read_position(key: &[u8]) -> Option<u64> {
    key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes))
}

/// The thread and the position in the key of a message.
pub(crate) fn read_message(key: &[u8]) -> Option<(ThreadId, u64)> {
    read_numbered(key)
}

/// The thread and the message in the key of a position.
pub(crate) fn read_position_of(key: &[u8]) -> Option<(ThreadId, MessageId)> {
    read_pair(key).map(|(thread, id)| (thread.into(), id.into()))
}

/// The thread and the run in the entry of a thread.
pub(crate) fn read_run_of(key: &[u8]) -> Option<(ThreadId, RunId)> {
    read_pair(key).map(|(thread, run)| (thread.into(), run.into()))
}

/// The run and the thread in the entry of a child.
pub(crate) fn read_child(key: &[u8]) -> Option<(RunId, ThreadId)> {
    read_pair(key).map(|(run, thread)| (run.into(), thread.into()))
}

/// `i/` blocks of the index of ids, of a copied thread.
pub(crate) fn blocks(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"i/").text(thread.as_str()).done()
}

/// `i/` one of them.
pub(crate) fn block(thread: &ThreadId, number: u64) -> Vec<u8> {
    Key::new(b"i/").text(thread.as_str()).number(number).done()
}

/// The thread and the number in the key of a block.
pub(crate) fn read_block(key: &[u8]) -> Option<(ThreadId, u64)> {
    read_numbered(key)
}

/// `n/` positions by message id, of a thread: of messages that did not come with a copy.
pub(crate) fn positions(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"n/").text(thread.as_str()).done()
}

/// `n/` position of one message.
pub(crate) fn position(thread: &ThreadId, message: &MessageId) -> Vec<u8> {
    Key::new(b"n/").text(thread.as_str()).text(message.as_str()).done()
}

/// `r/` run.
pub(crate) fn run(id: &RunId) -> Vec<u8> {
    Key::new(b"r/").text(id.as_str()).done()
}

/// `o/` headers of runs that are not closed.
pub(crate) fn open_runs() -> Vec<u8> {
    b"o/".to_vec()
}

/// `o/` one of them.
pub(crate) fn open_run(id: &RunId) -> Vec<u8> {
    Key::new(b"o/").text(id.as_str()).done()
}

/// `q/` open runs of a session.
pub(crate) fn open_runs_of(id: &SessionId) -> Vec<u8> {
    session_key(b"q/", id).done()
}

/// `q/` one of them.
pub(crate) fn open_run_of(id: &SessionId, run: &RunId) -> Vec<u8> {
    session_key(b"q/", id).text(run.as_str()).done()
}

/// The run in the entry of a session.
pub(crate) fn read_open_run_of(key: &[u8]) -> Option<RunId> {
    let (_, rest) = read_session_key(key)?;
    match read_text(rest)? {
        (run, []) => Some(run.into()),
        _ => None,
    }
}

/// `b/` long texts of the messages of a thread.
pub(crate) fn large_texts(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"b/").text(thread.as_str()).done()
}

/// `b/` one of them, by the hash of its JSON.
pub(crate) fn large_text(thread: &ThreadId, hash: &str) -> Vec<u8> {
    Key::new(b"b/").text(thread.as_str()).text(hash).done()
}

/// The thread and the hash in the key of a long text.
pub(crate) fn read_large_text(key: &[u8]) -> Option<(ThreadId, String)> {
    read_pair(key).map(|(thread, hash)| (thread.into(), hash))
}

/// `x/` runs of a thread.
pub(crate) fn runs_of(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"x/").text(thread.as_str()).done()
}

/// `x/` one of them.
pub(crate) fn run_of(thread: &ThreadId, run: &RunId) -> Vec<u8> {
    Key::new(b"x/").text(thread.as_str()).text(run.as_str()).done()
}

/// `z/` closed runs, oldest end first.
pub(crate) fn closed_runs() -> Vec<u8> {
    b"z/".to_vec()
}

/// `z/` one of them.
pub(crate) fn closed_run(at: Timestamp, run: &RunId) -> Vec<u8> {
    Key::new(b"z/").number(sort_time(at)).text(run.as_str()).done()
}

/// What the key of a closed run says.
pub(crate) fn read_closed_run(key: &[u8]) -> Option<(Timestamp, RunId)> {
    let (at, rest) = key.get(2..)?.split_first_chunk::<8>()?;
    let (run, _) = read_text(rest)?;
    Some((unsort_time(u64::from_be_bytes(*at)), run.into()))
}

/// `l/` lease of a run.
pub(crate) fn lease(run: &RunId) -> Vec<u8> {
    Key::new(b"l/").text(run.as_str()).done()
}

/// `s/` sessions of a controller.
pub(crate) fn sessions(controller: &ControllerId) -> Vec<u8> {
    Key::new(b"s/").text(controller.as_str()).done()
}

/// `s/` one session.
pub(crate) fn session(id: &SessionId) -> Vec<u8> {
    session_key(b"s/", id).done()
}

fn session_key(prefix: &[u8; 2], id: &SessionId) -> Key {
    let key = Key::new(prefix).text(id.controller.as_str()).text(id.key.resource.as_str());
    match &id.key.scope {
        None => key.byte(0),
        Some(scope) => key.byte(1).text(scope),
    }
}

/// The session that a key names.
pub(crate) fn read_session(key: &[u8]) -> Option<SessionId> {
    match read_session_key(key)? {
        (id, []) => Some(id),
        _ => None,
    }
}

/// The session that a key begins with, and what follows it.
fn read_session_key(key: &[u8]) -> Option<(SessionId, &[u8])> {
    let (controller, rest) = read_text(key.get(2..)?)?;
    let (resource, rest) = read_text(rest)?;
    let (key, rest) = match rest.split_first()? {
        (0, rest) => (SessionKey::new(resource), rest),
        (1, rest) => {
            let (scope, rest) = read_text(rest)?;
            (SessionKey::scoped(resource, scope), rest)
        }
        _ => return None,
    };
    Some((SessionId { controller: controller.into(), key }, rest))
}

/// `v/` state of a thread.
pub(crate) fn states(thread: &ThreadId) -> Vec<u8> {
    Key::new(b"v/").text(thread.as_str()).done()
}

/// `v/` one value.
pub(crate) fn state(thread: &ThreadId, name: &str) -> Vec<u8> {
    Key::new(b"v/").text(thread.as_str()).text(name).done()
}

/// The one id that follows `prefix` in `key`.
pub(crate) fn read_id(prefix: &[u8], key: &[u8]) -> Option<String> {
    match read_text(key.strip_prefix(prefix)?)? {
        (id, []) => Some(id),
        _ => None,
    }
}

fn read_numbered(key: &[u8]) -> Option<(ThreadId, u64)> {
    let (thread, rest) = read_text(key.get(2..)?)?;
    Some((thread.into(), u64::from_be_bytes(rest.try_into().ok()?)))
}

fn read_pair(key: &[u8]) -> Option<(String, String)> {
    let (first, rest) = read_text(key.get(2..)?)?;
    match read_text(rest)? {
        (second, []) => Some((first, second)),
        _ => None,
    }
}

/// Text ends with `00 01`; a NUL in it is `00 FF`. So no escaped text is the prefix of another, and byte order stays the order of texts.
fn read_text(bytes: &[u8]) -> Option<(String, &[u8])> {
    let mut text = Vec::new();
    let mut rest = bytes;
    loop {
        match rest {
            [0, 0x01, after @ ..] => return Some((String::from_utf8(text).ok()?, after)),
            [0, 0xff, after @ ..] => {
                text.push(0);
                rest = after;
            }
            [0, ..] | [] => return None,
            [byte, after @ ..] => {
                text.push(*byte);
                rest = after;
            }
        }
    }
}

/// Signed time in the order of unsigned numbers.
fn sort_time(at: Timestamp) -> u64 {
    at.as_millis().cast_unsigned() ^ (1 << 63)
}

fn unsort_time(sorted: u64) -> Timestamp {
    Timestamp::from_millis((sorted ^ (1 << 63)).cast_signed())
}

struct Key(Vec<u8>);

impl Key {
    fn new(prefix: &[u8; 2]) -> Self {
        // Room for two ids of the usual length: keys are made for every row of every commit.
        let mut key = Vec::with_capacity(96);
        key.extend_from_slice(prefix);
        Self(key)
    }

    fn text(mut self, text: &str) -> Self {
        for (n, piece) in text.as_bytes().split(|byte| *byte == 0).enumerate() {
            if n > 0 {
                self.0.extend([0, 0xff]);
            }
            self.0.extend_from_slice(piece);
        }
        self.0.extend([0, 1]);
        self
    }

    fn number(mut self, number: u64) -> Self {
        self.0.extend(number.to_be_bytes());
        self
    }

    fn newest_first(self, at: Timestamp) -> Self {
        self.number(!sort_time(at))
    }

    fn byte(mut self, byte: u8) -> Self {
        self.0.push(byte);
        self
    }

    fn done(self) -> Vec<u8> {
        self.0
    }
}

#[cfg(test)]
mod tests;
