//! `submit_plan`: a plan for the person to decide on.

use ac_core::{
    Suspend, SuspendKind, Tool, ToolCategory, ToolContext, ToolDefinition, ToolEffect, ToolError, ToolErrorKind, ToolOutcome, ToolOutput,
    ToolResume,
};
use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Hands a plan file to the person and waits for the decision (SPEC B-8…B-13).
///
/// The tool never reads the file: whoever shows the plan reads it, and may hand title and text back with the decision. `resume` is pure, so
/// that its result is known before the commit that settles plan, profile and mode.
#[derive(Clone, Copy, Debug, Default)]
pub struct SubmitPlan;

impl SubmitPlan {
    /// The name under which models know it.
    pub const NAME: &'static str = "submit_plan";
}

#[derive(Deserialize)]
struct Args {
    path: String,
}

#[derive(Deserialize)]
struct Decided {
    action: Action,
    #[serde(flatten)]
    plan: SubmittedPlan,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Action {
    Approved,
    Rejected,
}

#[derive(Deserialize, Serialize)]
struct SubmittedPlan {
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    feedback: Option<String>,
}

#[async_trait]
impl Tool for SubmitPlan {
    fn definition(&self) -> ToolDefinition {
        let description = "Submit a plan for the user's approval. Write the plan to a Markdown file first, then give its path. The call waits for \
                           the user: after approval carry the plan out, after a rejection follow what the result says.";
        ToolDefinition::new(Self::NAME, description, input_schema())
            .category(ToolCategory::Interact)
            .effect(ToolEffect::ReadOnly)
            .answer_schema(answer_schema())
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Args { path } =
            serde_json::from_value(args).map_err(|error| ToolError::args(format!("submit_plan: {error}")).with_source(error))?;
        if path.trim().is_empty() {
            return Err(ToolError::args("submit_plan: the path is empty; write the plan to a file and give its path"));
        }
        if !cx.can_suspend() {
            return Ok(ToolOutcome::Done(ToolOutput::text(format!("A plan waits for review in {path}."))));
        }
        Ok(ToolOutcome::Suspend(Suspend {
            kind: SuspendKind::Plan,
            payload: json!({ "toolId": Self::NAME, "path": path }),
            ..Suspend::default()
        }))
    }

    async fn resume(&self, with: ToolResume, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        let Decided { action, mut plan } = serde_json::from_value(with.answer).map_err(|error| {
            // Never read as an approval (SPEC B-17): what is neither yes nor no fails.
            ToolError::new(ToolErrorKind::Failed, "the decision on the plan could not be read; submit the plan again").with_source(error)
        })?;
        let feedback = plan.feedback.take().filter(|feedback| !feedback.is_empty());
        let content = match (action, &feedback) {
            (Action::Approved, _) => "Plan approved. Proceed with implementation following the approved plan.".to_owned(),
            (Action::Rejected, Some(feedback)) => format!(
                "Plan was not approved. The user wants revisions.\n\nUser feedback: {feedback}\n\nPlease revise the plan based on the feedback and \
                 submit again with submit_plan."
            ),
            (Action::Rejected, None) => {
                "Plan was not approved. The user will send revision instructions in their next message. Stop now and \
                                         wait for the user to provide feedback before revising the plan."
                    .to_owned()
            }
        };
        plan.feedback = feedback.filter(|_| matches!(action, Action::Rejected));
        Ok(ToolOutcome::Done(ToolOutput::new(json!({
            "toolId": Self::NAME,
            "content": content,
            "isError": false,
            "submittedPlan": plan,
        }))))
    }
}

fn input_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "path": { "type": "string", "minLength": 1, "description": "Where the plan file is, relative to the workspace." } },
        "required": ["path"],
        "additionalProperties": false
    })
}

/// `action` is required and closed; further fields are ignored, as SPEC B-9 says.
fn answer_schema() -> Value {
    let text = json!({ "type": "string" });
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "action": { "type": "string", "enum": ["approved", "rejected"] },
            "feedback": text, "path": text, "title": text, "plan": text
        },
        "required": ["action"]
    })
}

#[cfg(test)]
mod tests;
