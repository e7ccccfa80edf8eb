use std::sync::Arc;

use ac_core::{
    CancelToken, Decision, EventBody, Message, ModelError, ModelId, ModelProvider, ResourceId, RunId, ThreadId, ToolDefinition, Usage,
    tool::Capabilities,
};
use ac_engine::{Outbox, Profile, RunSnapshot};
use ac_tools::ToolSet;
use async_trait::async_trait;
use serde_json::{Map, Value};

use crate::{RunError, progress::ProgressBuffer};

/// Which run something is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunRef {
    /// The run.
    pub run: RunId,
    /// The thread it works on.
    pub thread: ThreadId,
    /// Whose thread that is.
    pub resource: ResourceId,
}

/// What was found about the last word of a run. Nothing, by default: the run ends.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Judgement {
    /// The run goes on with another step.
    pub go_on: bool,
    /// Put into the history, for the model to read.
    pub message: Option<Message>,
    /// Told as `goal_evaluation`.
    pub verdict: Option<Value>,
    /// What judging used, added to the thread's tokens.
    pub usage: Option<Usage>,
}

/// What judging may use.
#[derive(Clone, Debug)]
pub struct JudgeContext {
    /// Fires when the verdict is not wanted any more.
    pub cancel: CancelToken,
    pub(crate) progress: Arc<ProgressBuffer>,
}

impl JudgeContext {
    /// Tells whoever listens, within the run's segment. Never waits.
    pub fn tell(&self, body: EventBody) {
        self.progress.event(body);
    }
}

/// What a run needs from whoever it works for.
///
/// The driver asks for live things only (tools, providers, rules); what a run was started with is in its [`Profile`].
#[async_trait]
pub trait RunHost: Send + Sync + 'static {
    /// The provider of a model.
    ///
    /// # Errors
    /// When there is none, or no key for it.
    fn provider(&self, model: &ModelId) -> Result<Arc<dyn ModelProvider>, ModelError>;

    /// All tools that exist for a run with this profile, visible or not.
    fn tools(&self, profile: &Profile) -> Arc<ToolSet>;

    /// Decides about a call of a tool, by the rules and grants of this moment.
    async fn decide(&self, run: &RunRef, profile: &Profile, definition: &ToolDefinition, args: &Value) -> Decision;

    /// What tools of this run may use.
    fn capabilities(&self, run: &RunRef) -> Capabilities;

    /// The profile in which a run goes on after its plan was approved: the target mode, with its instructions, tools and model.
    ///
    /// # Errors
    /// When the target cannot be found out; the decision is then not taken.
    async fn plan_target(&self, profile: &Profile) -> Result<Profile, RunError>;

    /// Does what an outbox item says, once: an item whose number was applied for this run before is skipped (`R1b`).
    ///
    /// # Errors
    /// [`ChildRefused`](crate::RunErrorKind::ChildRefused) for a child run that cannot be started: its call fails with the message. Any
    /// other error: it could not be done, and is tried again.
    async fn apply(&self, snapshot: &RunSnapshot, item: &Outbox) -> Result<(), RunError>;

    /// The JSON that tools of this run read of the request; what the profile holds of it is stored.
    fn request_context(&self, run: &RunRef, profile: &Profile) -> Map<String, Value> {
        let _ = run;
        profile.request_context.clone()
    }

    /// Whether the last word of this run has to be judged before the run ends. Asked of runs whose profile says
    /// [`judged`](Profile::judged) only, before the answer is committed, so it must be quick: where there is nothing to judge by, the run
    /// ends in the same commit.
    ///
    /// # Errors
    /// When it cannot be found out; the run then stops where it is, and is recovered.
    async fn judges(&self, run: &RunRef) -> Result<bool, RunError> {
        let _ = run;
        Ok(false)
    }

    /// Judges the last word of a run. Must end, whatever happens; it is dropped when the run goes on or is stopped meanwhile. Asked again
    /// for the same step after a crash.
    async fn judge(&self, snapshot: &RunSnapshot, cx: JudgeContext) -> Judgement {
        let _ = (snapshot, cx);
        Judgement::default()
    }

    /// A child of this run goes on in this process; so should the run itself, to tell what the child does and to take its result. Whoever
    /// has it already keeps it.
    async fn attend(&self, _parent: &RunId) {}

    /// Tells whoever listens. Never waits.
    ///
    /// What a child run does is told as the activity of its parent's call, so `run` is never a child whose parent this process has.
    fn tell(&self, run: &RunRef, body: EventBody);
}
