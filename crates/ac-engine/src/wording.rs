//! What the machine itself tells the model and people. The sentences are fixed: clients and golden transcripts know them.

use ac_core::{ErrorInfo, FinishReason, model::Finish};

use crate::{Budget, Limits};

/// A person said no and gave no reason.
pub(crate) const DECLINED: &str = "Tool call was not approved by the user";
/// The run was aborted before the call ran.
pub(crate) const ABORTED: &str = "Aborted by the user";
/// The call was cancelled before it ran.
pub(crate) const CANCELLED: &str = "Cancelled by the user";
/// A person wrote instead of deciding (`R7`).
pub(crate) const INTERRUPTED_BY_MESSAGE: &str = "interrupted_by_user_message";
/// The call was going on when it was stopped, or when its process died. No store closes the gap between a lease check and an effect, so
/// the sentence does not promise more than is known.
pub(crate) const INTERRUPTED: &str = "Interrupted: the call may have run, and may still be running. Check before doing it again.";
/// A person stopped the run after its calls were done and before the model said what came of them. Without a word about it the model would
/// go on with the job that was stopped.
pub(crate) const STOPPED: &str = "The user stopped the turn here. Do not go on with it unless the user asks for it.";
/// A person recorded a call in doubt as failed.
pub(crate) const RECORDED_FAILED: &str =
    "Failed: the call was interrupted and its outcome is unknown. It may have run; check before doing it again.";
/// Nothing was decided about the call, so it does not run.
pub(crate) const UNDECIDED: &str = "Not run: nothing was decided about this call. Ask for it again.";
/// Another call of the same answer has the same id.
pub(crate) const SAME_ID: &str = "Not run: another call of the same answer has the same id. Ask for it again.";
/// The arguments are no JSON.
pub(crate) const NO_JSON: &str = "Not run: the arguments are not valid JSON. Ask for it again with valid arguments.";

/// Which limit is reached, if one is.
pub(crate) fn exhausted(limits: &Limits, used: &Budget, new_step: bool) -> Option<ErrorInfo> {
    let error = |code: &str, what: String| {
        Some(ErrorInfo::new(
            code,
            format!("The run {what} since the last message of a person. Send a message to go on, or raise the limit."),
        ))
    };
    if new_step && used.steps >= limits.steps {
        return error("run.step_limit", format!("made its {} model calls", limits.steps));
    }
    if new_step && limits.repeats.is_some_and(|most| used.repeats.saturating_add(1) >= most.max(1)) && used.asked.is_some() {
        let times = used.repeats.saturating_add(1);
        return Some(ErrorInfo::new(
            "run.loop",
            format!("The model asked for exactly the same calls {times} times in a row. Tell it what to do instead."),
        ));
    }
    match (limits.tokens, limits.millis) {
        (Some(tokens), _) if used.tokens >= tokens => error("run.token_limit", format!("used its {tokens} tokens")),
        (_, Some(millis)) if used.millis >= millis => error("run.time_limit", format!("worked for its {millis} ms")),
        _ => None,
    }
}

/// What an answer that ended like this means for the run, when it holds nothing to run (SPEC E-13).
pub(crate) fn cut_short(finish: &Finish) -> Option<ErrorInfo> {
    let (code, fixed) = match finish.reason {
        FinishReason::Length => ("model.length", "The answer reached the output limit. Ask the model to go on, or raise the limit."),
        FinishReason::ContentFilter => ("model.content_filter", "The provider's content filter withheld the answer. Ask in other words."),
        FinishReason::Refusal => ("model.refusal", "The model declined to answer. Ask in other words, or ask another model."),
        FinishReason::Error => ("model.finish_error", "The provider failed in the middle of the answer. Send the message again."),
        _ => return None,
    };
    let explained = finish.explanation.as_deref().map(str::trim).filter(|text| !text.is_empty());
    Some(ErrorInfo::new(code, explained.unwrap_or(fixed)))
}
