//! Whether a last word was the last.

use ac_core::{CancelToken, Timestamp};
use ac_engine::{Effect, Input, Phase, RunSnapshot};
use futures::{FutureExt, future::BoxFuture};

use super::{Driver, Go};
use crate::{JudgeContext, Judgement, RunError};

/// A verdict on its way. Dropping it ends it.
pub(crate) struct Judging {
    step: u32,
    cancel: CancelToken,
    verdict: BoxFuture<'static, Judgement>,
}

impl Drop for Judging {
    fn drop(&mut self) {
        self.cancel.cancel();
    }
}

/// Waits for the verdict; for ever where none is on its way.
pub(super) async fn judged(judging: &mut Option<Judging>) -> Judgement {
    match judging {
        Some(judging) => (&mut judging.verdict).await,
        None => std::future::pending().await,
    }
}

impl Driver {
    /// Ends a run whose last word nobody has to judge, in the commit that stores it.
    pub(super) async fn pass_unjudged(&mut self, at: Timestamp, next: &mut RunSnapshot, effects: &mut Vec<Effect>) -> Result<(), RunError> {
        if next.phase == (Phase::Judging { asked: false }) && !self.parking && !self.host.judges(&self.run).await? {
            let step = next.step;
            effects.extend(next.step(at, Input::Judged { step, go_on: false, message: None, verdict: None, usage: None })?);
        }
        Ok(())
    }

    /// Asks the host, which has all the time it takes: the answer is stored, and whatever else comes goes before.
    pub(super) fn start_judge(&mut self, step: u32) {
        let (host, snapshot, cancel) = (self.host.clone(), self.snapshot.clone(), self.cancel.child());
        let cx = JudgeContext { cancel: cancel.clone(), progress: self.progress.clone() };
        let verdict = async move { host.judge(&snapshot, cx).await }.boxed();
        self.judging = Some(Judging { step, cancel, verdict });
    }

    /// The host said what it thinks of the last word.
    pub(super) async fn judged(&mut self, judgement: Judgement) -> Result<Go, RunError> {
        let Some(judging) = self.judging.take() else { return Ok(Go::On) };
        self.tell_progress();
        let Judgement { go_on, message, verdict, usage } = judgement;
        self.report(Input::Judged { step: judging.step, go_on, message: message.map(Box::new), verdict, usage }).await
    }
}
