//! What happens to the calls of an answer, decided before the answer is committed.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use ac_core::{
    Decision, FinishReason, Part, ToolCallId, ToolCallPart, ToolCategory, ToolDefinition, ToolEffect, ToolOutput,
    permission::{Reason, Verdict},
};
use ac_engine::{CallPlan, Gate, Profile, ToolResult};
use jsonschema::Validator;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{RunHost, RunRef};

/// Checks values against JSON Schemas; each schema is compiled once. Clones share what was compiled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Schemas {
    compiled: Arc<Mutex<HashMap<String, Option<Arc<Validator>>>>>,
}

impl Schemas {
    /// Schemas that are kept. Those of tools are few and come back; one that a tool made up for a single question goes some time.
    const KEPT: usize = 256;

    fn compile(&self, schema: &Value) -> Option<Arc<Validator>> {
        let text = schema.to_string();
        let lock = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&text) {
            return known.clone();
        }
        let fresh = jsonschema::validator_for(schema).ok().map(Arc::new);
        let mut compiled = lock();
        if compiled.len() >= Self::KEPT {
            compiled.clear();
        }
        compiled.insert(text, fresh.clone());
        fresh
    }

    /// Why `value` does not fit, in words for whoever made it; `None` when it fits. A schema that is none is no reason to refuse.
    pub(crate) fn misfit(&self, schema: &Value, value: &Value) -> Option<String> {
        let validator = self.compile(schema)?;
        let mut reasons: Vec<_> = validator
            .iter_errors(value)
            .take(5)
            .map(|error| {
                let place = error.instance_path().to_string();
                if place.is_empty() { error.to_string() } else { format!("{place}: {error}") }
            })
            .collect();
        reasons.dedup();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

/// The first 16 hex digits of the hash of what a tool says about itself.
pub(crate) fn definition_hash(definition: &ToolDefinition) -> String {
    let text = serde_json::to_vec(definition).unwrap_or_default();
    Sha256::digest(&text).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Decides about each call among `parts` of an answer that ended like this.
pub(crate) async fn plan_calls(
    host: &dyn RunHost,
    run: &RunRef,
    profile: &Profile,
    schemas: &Schemas,
    parts: &[Part],
    ended: FinishReason,
) -> Vec<CallPlan> {
    let tools = host.tools(profile);
    let mut plans = vec![];
    for part in parts {
        let Part::ToolCall(call) = part else { continue };
        plans.push(match tools.get(&call.name) {
            Some((definition, _)) => {
                let decision = host.decide(run, profile, definition, &call.args).await;
                plan_call(decision, profile, schemas, call, definition, ended)
            }
            None => unknown(profile, call),
        });
    }
    plans
}

fn plan_call(
    decision: Decision,
    profile: &Profile,
    schemas: &Schemas,
    call: &ToolCallPart,
    definition: &ToolDefinition,
    ended: FinishReason,
) -> CallPlan {
    let offered = profile.tools.iter().any(|name| name.as_ref() == call.name);
    let gate = match decision.verdict {
        Verdict::Deny => Gate::Deny { reason: decision.reason.explain().to_owned() },
        Verdict::Hidden => return unknown(profile, call),
        _ if !offered => return unknown(profile, call),
        verdict => match cut_short(call, ended).or_else(|| unusable(schemas, call, definition)) {
            Some(reason) => refuse(&reason),
            None if verdict == Verdict::Ask => Gate::Ask,
            None => Gate::Run,
        },
    };
    CallPlan {
        call: call.id.clone(),
        gate,
        decision,
        effect: definition.effect,
        category: definition.category,
        answer_schema: definition.answer_schema.clone(),
        definition: definition_hash(definition),
    }
}

/// A call is run for an answer that was meant as it stands. One that was cut off or stopped was not: what would have followed may have
/// been the condition, or the word that takes it back.
fn cut_short(call: &ToolCallPart, ended: FinishReason) -> Option<String> {
    let why = match ended {
        FinishReason::Length => "The answer was cut off at its output limit",
        FinishReason::ContentFilter => "The provider's content filter stopped the answer",
        FinishReason::Refusal => "The answer ended with a refusal",
        FinishReason::Error => "The provider failed in the middle of the answer",
        _ => return None,
    };
    Some(format!("{why}, so {} was not run. Call it again if it is still wanted.", call.name))
}

fn unusable(schemas: &Schemas, call: &ToolCallPart, definition: &ToolDefinition) -> Option<String> {
    if call.raw.is_some() {
        return Some(format!("The arguments of {} were not valid JSON, so it was not run. Call it again with a JSON object.", call.name));
    }
    let reason = schemas.misfit(&definition.input_schema, &call.args)?;
    Some(format!("The arguments of {} do not fit its schema, so it was not run: {reason}", call.name))
}

/// A tool that does not exist, or that this mode does not offer: the model learns what does (SPEC T-40).
fn unknown(profile: &Profile, call: &ToolCallPart) -> CallPlan {
    let names: Vec<_> = profile.tools.iter().map(AsRef::as_ref).collect();
    let offer = if names.is_empty() { "No tools are available.".to_owned() } else { format!("Available tools: {}.", names.join(", ")) };
    CallPlan {
        call: call.id.clone(),
        gate: refuse(&format!("There is no tool named \"{}\". {offer} Use exact names.", call.name)),
        decision: Decision { verdict: Verdict::Hidden, reason: Reason::NotInMode },
        effect: ToolEffect::ReadOnly,
        category: ToolCategory::Other,
        answer_schema: None,
        definition: String::new(),
    }
}

fn refuse(text: &str) -> Gate {
    Gate::Refuse { result: failure(text) }
}

/// A result that says what went wrong.
pub(crate) fn failure(text: &str) -> ToolResult {
    ToolResult { output: ToolOutput::text(text), is_error: true }
}

/// An id for a call that is new in the thread: the provider's where it can be, else suffixed.
pub(crate) fn fresh_call(wanted: &str, step: u32, index: usize, child: Option<&str>, taken: impl Fn(&ToolCallId) -> bool) -> ToolCallId {
    let base = if wanted.is_empty() { format!("call_{step}_{index}") } else { wanted.to_owned() };
    let base = match child {
        Some(ordinal) => format!("{base}~{ordinal}"),
        None => base,
    };
    let first = ToolCallId::from(base.as_str());
    if !taken(&first) {
        return first;
    }
    // The thread is finite, so this ends.
    (2u64..).map(|n| ToolCallId::from(format!("{base}~{n}"))).find(|id| !taken(id)).unwrap_or(first)
}
