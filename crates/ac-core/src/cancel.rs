//! Cancellation as a tree of tokens: controller > session > run > step > call.

use tokio_util::sync::CancellationToken;

/// A request to stop, shared by everybody who should hear it. Cancelling a token cancels its children, never its parent.
///
/// The token only wakes whoever waits. That a run was aborted is a stored fact of the run, so it survives the process.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(CancellationToken);

impl CancelToken {
    /// A token of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// A token that is cancelled with this one and can be cancelled alone.
    pub fn child(&self) -> Self {
        Self(self.0.child_token())
    }

    /// Asks everybody who holds this token, or a child of it, to stop. Irrevocable.
    pub fn cancel(&self) {
        self.0.cancel();
    }

    /// Whether stopping was asked for.
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Waits until stopping is asked for; at once if it was already.
    pub async fn cancelled(&self) {
        self.0.cancelled().await;
    }
}
