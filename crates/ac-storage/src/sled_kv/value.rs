//! How rows stand in sled.

use sha2::{Digest, Sha256};

/// Under which key the number of the format stands.
pub(super) const FORMAT_KEY: &[u8] = b"!format";

/// Under which key the number of the last group of writes stands.
pub(super) const GROUPS_KEY: &[u8] = b"!groups";

/// A [`Kv`](crate::Kv) key in sled.
pub(super) fn key(key: &[u8]) -> Vec<u8> {
    let mut stored = Vec::with_capacity(key.len() + 1);
    stored.push(b'k');
    stored.extend(key);
    stored
}

/// Where the number of rows that refer to a file stands.
pub(super) fn count_key(blob: &BlobRef) -> Vec<u8> {
    let mut stored = Vec::with_capacity(33);
    stored.push(b'b');
    stored.extend(blob.hash);
    stored
}

/// A stored row: version, then what it is, then the value or the name of its file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row<'a> {
    pub(super) version: u64,
    pub(super) body: Body<'a>,
}

/// Where the value of a row is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Body<'a> {
    /// Here.
    Inline(&'a [u8]),
    /// In a file.
    File(BlobRef),
}

const INLINE: u8 = 0;
const FILE: u8 = 1;

impl<'a> Row<'a> {
    pub(super) fn decode(stored: &'a [u8]) -> Option<Self> {
        let (version, rest) = stored.split_first_chunk::<8>()?;
        let version = u64::from_be_bytes(*version);
        let body = match rest.split_first()? {
            (&INLINE, value) => Body::Inline(value),
            (&FILE, rest) => {
                let (hash, rest) = rest.split_first_chunk::<32>()?;
                Body::File(BlobRef { hash: *hash, len: u64::from_be_bytes(rest.try_into().ok()?) })
            }
            _ => return None,
        };
        Some(Self { version, body })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let long = match &self.body {
            Body::Inline(value) => value.len(),
            Body::File(_) => 40,
        };
        let mut stored = Vec::with_capacity(9 + long);
        stored.extend(self.version.to_be_bytes());
        match &self.body {
            Body::Inline(value) => {
                stored.push(INLINE);
                stored.extend(*value);
            }
            Body::File(blob) => {
                stored.push(FILE);
                stored.extend(blob.hash);
                stored.extend(blob.len.to_be_bytes());
            }
        }
        stored
    }

    /// The file that it refers to.
    pub(super) fn blob(&self) -> Option<BlobRef> {
        match self.body {
            Body::Inline(_) => None,
            Body::File(blob) => Some(blob),
        }
    }
}

/// Names a file by what is in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BlobRef {
    pub(super) hash: [u8; 32],
    pub(super) len: u64,
}

impl BlobRef {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self { hash: Sha256::digest(bytes).into(), len: bytes.len() as u64 }
    }

    /// Whether these bytes are the ones it names.
    pub(super) fn names(&self, bytes: &[u8]) -> bool {
        *self == Self::of(bytes)
    }

    /// Its file's name.
    pub(super) fn file_name(&self) -> String {
        use std::fmt::Write as _;
        self.hash.iter().fold(String::with_capacity(64), |mut name, byte| {
            let _infallible = write!(name, "{byte:02x}");
            name
        })
    }
}
