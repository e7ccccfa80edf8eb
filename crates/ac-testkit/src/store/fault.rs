use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ac_storage::{StorageError, StorageErrorKind};
use async_trait::async_trait;
use tokio::sync::Notify;

use super::hooked::{Call, Hook, Op};

/// What goes wrong with a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// It is not made and fails in this way.
    Fail(StorageErrorKind),
    /// It is not made and answered as a conflict.
    Conflict,
    /// It is made late.
    Stall(Duration),
    /// It is made when [`Faults::release`] is called, not before.
    Hang,
    /// It is made, and then reported as [`Unknown`](StorageErrorKind::Unknown), as if the connection broke before the answer came.
    DoneThenUnknown,
    /// It is not made, and reported as [`Unknown`](StorageErrorKind::Unknown), as if the connection broke before the request went out.
    NotDoneThenUnknown,
}

/// Which calls go wrong, and how. Shared by all who hold it; without a script nothing goes wrong.
#[derive(Debug, Default)]
pub struct Faults {
    plan: Mutex<Plan>,
    released: Notify,
}

#[derive(Debug, Default)]
struct Plan {
    /// Faults of the next calls of a method, in order.
    scripted: Vec<(Op, VecDeque<Option<Fault>>)>,
    /// A fault of the n-th write from here on.
    nth_write: Option<(u64, Fault)>,
    /// One of these, with this chance in a thousand, for each write.
    seeded: Option<Seeded>,
    writes: u64,
    hits: u64,
}

#[derive(Debug)]
struct Seeded {
    state: u64,
    per_mille: u64,
    faults: Vec<Fault>,
}

impl Faults {
    /// No faults yet.
    pub fn new() -> Arc<Self> {
        Arc::default()
    }

    /// The next call of `op` that has no fault planned yet goes wrong.
    pub fn next(&self, op: Op, fault: Fault) {
        self.plan(|plan| plan.queue(op).push_back(Some(fault)));
    }

    /// The next call of `op` that has no fault planned yet goes well.
    pub fn skip(&self, op: Op) {
        self.plan(|plan| plan.queue(op).push_back(None));
    }

    /// The `n`-th write from now goes wrong, 0 being the next; to walk through every boundary of a job in turn.
    pub fn nth_write(&self, n: u64, fault: Fault) {
        self.plan(|plan| plan.nth_write = Some((n, fault)));
    }

    /// Each write goes wrong with a chance of `per_mille` in a thousand, in one of these ways. The same seed gives the same choices.
    pub fn seeded(&self, seed: u64, per_mille: u64, faults: &[Fault]) {
        let seeded = (!faults.is_empty()).then(|| Seeded { state: seed, per_mille, faults: faults.to_vec() });
        self.plan(|plan| plan.seeded = seeded);
    }

    /// From here on nothing goes wrong. What hangs goes on.
    pub fn clear(&self) {
        self.plan(|plan| {
            plan.scripted.clear();
            plan.nth_write = None;
            plan.seeded = None;
        });
        self.release();
    }

    /// Lets everything go on that hangs.
    pub fn release(&self) {
        self.released.notify_waiters();
    }

    /// How many writes came by.
    pub fn writes(&self) -> u64 {
        self.plan(|plan| plan.writes)
    }

    /// How many calls went wrong.
    pub fn hits(&self) -> u64 {
        self.plan(|plan| plan.hits)
    }

    fn plan<T>(&self, f: impl FnOnce(&mut Plan) -> T) -> T {
        f(&mut self.plan.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Plan {
    fn queue(&mut self, op: Op) -> &mut VecDeque<Option<Fault>> {
        let at = self.scripted.iter().position(|(known, _)| *known == op).unwrap_or_else(|| {
            self.scripted.push((op, VecDeque::new()));
            self.scripted.len() - 1
        });
        // `at` was found or made above.
        #[expect(clippy::indexing_slicing, reason = "see above")]
        &mut self.scripted[at].1
    }

    fn draw(&mut self, op: Op) -> Option<Fault> {
        let scripted = self.queue(op).pop_front().flatten();
        let mut fault = scripted;
        if op.writes() {
            self.writes += 1;
            match &mut self.nth_write {
                Some((0, planned)) => {
                    fault = fault.or(Some(*planned));
                    self.nth_write = None;
                }
                Some((n, _)) => *n -= 1,
                None => {}
            }
            fault = fault.or_else(|| self.seeded.as_mut()?.draw());
        }
        self.hits += u64::from(fault.is_some());
        fault
    }
}

impl Seeded {
    fn draw(&mut self) -> Option<Fault> {
        let chance = self.random() % 1000;
        let choice = self.random();
        let faults = self.faults.len() as u64;
        (chance < self.per_mille).then(|| self.faults.get(usize::try_from(choice % faults).unwrap_or_default()).copied()).flatten()
    }

    /// SplitMix64.
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

fn planned(kind: StorageErrorKind) -> StorageError {
    StorageError::new(kind, "a planned fault of the test")
}

#[async_trait]
impl Hook for Faults {
    /// The answer gets lost.
    type Note = bool;

    async fn before(&self, call: &Call) -> Result<bool, StorageError> {
        let released = self.released.notified();
        match self.plan(|plan| plan.draw(call.op)) {
            None => Ok(false),
            Some(Fault::Fail(kind)) => Err(planned(kind)),
            Some(Fault::Conflict) => Err(planned(StorageErrorKind::Conflict)),
            Some(Fault::NotDoneThenUnknown) => Err(planned(StorageErrorKind::Unknown)),
            Some(Fault::DoneThenUnknown) => Ok(true),
            Some(Fault::Stall(time)) => {
                tokio::time::sleep(time).await;
                Ok(false)
            }
            Some(Fault::Hang) => {
                released.await;
                Ok(false)
            }
        }
    }

    async fn after(&self, _call: Call, lost: bool, _failure: Option<StorageErrorKind>) -> Result<(), StorageError> {
        if lost { Err(planned(StorageErrorKind::Unknown)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests;
