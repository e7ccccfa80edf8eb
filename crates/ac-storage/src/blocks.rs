//! The index of ids of a copied thread, in blocks.
//!
//! A copy knows all of its messages before anybody sees it. So its ids need no row each: they are distributed over blocks by a hash that is
//! the same for ever, and a block is one row that lists the ids which fall into it, with their positions. The head remembers how many blocks
//! there are. What comes to the thread later has rows of its own ([`Position`](crate::row::Position)), which go before.

use std::num::NonZeroU64;

use ac_core::MessageId;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Ids in a block, on average.
const IDS: u64 = 32;

/// How many blocks the index of a copied thread has. Stored: what it says of an id must never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Blocks(NonZeroU64);

impl Blocks {
    /// Those of so many messages; `None` of none.
    pub(crate) fn of(messages: u64) -> Option<Self> {
        NonZeroU64::new(messages.div_ceil(IDS)).map(Self)
    }

    /// How many there are.
    pub(crate) fn count(self) -> u64 {
        self.0.get()
    }

    /// The block that an id falls into.
    pub(crate) fn of_id(self, id: &MessageId) -> u64 {
        let hash = Sha256::digest(id.as_str().as_bytes());
        hash.iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte)) % self.0
    }
}

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    /// Messages and their positions, in the order of positions.
    pub(crate) ids: Vec<(MessageId, u64)>,
}

impl Block {
    /// Where the message of an id stands.
    pub(crate) fn position(&self, id: &MessageId) -> Option<u64> {
        self.ids.iter().find(|(known, _)| known == id).map(|(_, position)| *position)
    }
}

#[cfg(test)]
mod tests;
