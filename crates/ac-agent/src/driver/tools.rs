//! Tools at work.

use std::sync::Arc;

use ac_core::{
    SuspendKind, Tool, ToolCallId, ToolContext, ToolError, ToolErrorKind, ToolOutcome, ToolResume, event::EventBody, tool::ToolContextParts,
};
use ac_engine::{Input, SlotStatus};
use tokio::{
    task::{Id, JoinError},
    time::Instant,
};
use tracing::Instrument as _;

use super::{Driver, Go, Working};
use crate::{RunError, cap::cap, gate, spans};

/// What a tool came to.
pub(crate) struct Report {
    call: ToolCallId,
    attempt: u32,
    outcome: Result<ToolOutcome, ToolError>,
}

impl Driver {
    /// Starts or resumes a call, as its slot says. A tool that is gone or that changed since it was shown does not run.
    pub(super) fn start_tool(&mut self, call: &ToolCallId, attempt: u32) {
        let Some(slot) = self.snapshot.slots().iter().find(|slot| slot.call == *call) else { return };
        let resume = match &slot.status {
            SlotStatus::Resuming { resume, .. } => Some(resume.clone()),
            _ => None,
        };
        let args = self.snapshot.call_part(call).map(|part| part.args.clone()).unwrap_or_default();
        let tools = self.host.tools(&self.snapshot.profile);
        let found = tools.get(&slot.tool).filter(|(definition, _)| gate::definition_hash(definition) == slot.definition);
        let tool: Option<Arc<dyn Tool>> = found.map(|(_, tool)| tool.clone());
        let cancel = self.cancel.child();
        let cx = ToolContext::new(ToolContextParts {
            run: self.run.run.clone(),
            thread: self.run.thread.clone(),
            resource: self.run.resource.clone(),
            call: call.clone(),
            tool: slot.tool.clone(),
            attempt,
            cancel: cancel.clone(),
            progress: self.progress.clone(),
            capabilities: self.host.capabilities(&self.run),
            request_context: Arc::new(self.host.request_context(&self.run, &self.snapshot.profile)),
        });
        let id = call.clone();
        let name = slot.tool.clone();
        let span = spans::tool(&name, call.as_str(), &self.run.thread);
        let shown = span.clone();
        let work = async move {
            let outcome = match (tool, resume) {
                (None, _) => Err(ToolError::failed(format!(
                    "The tool {name} is not there any more, or is not the one that was shown. It was not run. Look at the tools you have now."
                ))),
                (Some(tool), None) => tool.call(args, &cx).await,
                (Some(tool), Some(resume)) => {
                    let with = ToolResume { args, state: resume.state, payload: resume.payload, answer: resume.answer };
                    tool.resume(with, &cx).await
                }
            };
            if let Err(error) = &outcome {
                spans::tool_failed(&shown, error);
            }
            Report { call: id, attempt, outcome }
        };
        let abort = self.tools.spawn(work.instrument(span));
        self.working.insert(call.clone(), Working { attempt, cancel, kill_at: None, abort });
    }

    /// Tells a tool to stop; it has its grace period to end well.
    pub(super) fn stop_tool(&mut self, call: &ToolCallId) {
        if let Some(working) = self.working.get_mut(call) {
            working.cancel.cancel();
            working.kill_at.get_or_insert(Instant::now() + self.shared.settings.grace);
        }
    }

    /// Ends the tools whose grace period is over.
    pub(super) async fn kill_overdue(&mut self) -> Result<Go, RunError> {
        let now = Instant::now();
        let overdue: Vec<_> = self
            .working
            .iter()
            .filter(|(_, working)| working.kill_at.is_some_and(|at| at <= now))
            .map(|(call, working)| (call.clone(), working.attempt))
            .collect();
        for (call, attempt) in overdue {
            if let Some(working) = self.working.remove(&call) {
                working.abort.abort();
            }
            if self.report(Input::ToolInterrupted { call, attempt }).await? == Go::End {
                return Ok(Go::End);
            }
        }
        Ok(Go::On)
    }

    /// A tool is done, waits, goes on as a run of its own, or broke.
    pub(super) async fn tool_reported(&mut self, report: Result<(Id, Report), JoinError>) -> Result<Go, RunError> {
        self.tell_progress();
        let (call, attempt, outcome) = match report {
            Ok((_, Report { call, attempt, outcome })) => (call, attempt, outcome),
            Err(error) => {
                let found = self.working.iter().find(|(_, working)| working.abort.id() == error.id());
                // One that was ended after its grace period has been reported already.
                let Some((call, attempt)) = found.map(|(call, working)| (call.clone(), working.attempt)) else { return Ok(Go::On) };
                (call, attempt, Err(ToolError::failed("The tool crashed. It may have done a part of its work.")))
            }
        };
        let known = self.working.get(&call).is_some_and(|working| working.attempt == attempt);
        if !known {
            return Ok(Go::On);
        }
        let stopped = self.working.remove(&call).is_some_and(|working| working.cancel.is_cancelled());
        let input = self.input_of(call, attempt, outcome, stopped);
        self.report(input).await
    }

    fn input_of(&mut self, call: ToolCallId, attempt: u32, outcome: Result<ToolOutcome, ToolError>, stopped: bool) -> Input {
        let most = self.shared.settings.max_result;
        match outcome {
            Ok(ToolOutcome::Done(output)) => {
                Input::ToolDone { call, attempt, result: ac_engine::ToolResult { output: cap(output, most), is_error: false } }
            }
            Ok(ToolOutcome::Suspend(suspend)) => {
                if suspend.kind == SuspendKind::Plan && self.has_plan(&call) {
                    let result = gate::failure("Only one plan can be submitted in one step. Wait for the decision on the other one.");
                    return Input::ToolDone { call, attempt, result };
                }
                Input::ToolSuspended { call, attempt, suspend }
            }
            Ok(ToolOutcome::Delegate(child)) => Input::ToolDelegated { call, attempt, child },
            Err(_) if stopped => Input::ToolInterrupted { call, attempt },
            Err(error) => {
                if error.kind() == ToolErrorKind::Fatal {
                    tracing::error!(%call, "a tool is broken: {error}");
                    self.teller.tell(EventBody::Error { error: (&error).into(), retry: None });
                }
                let mut result = gate::failure(&error.to_string());
                result.output = cap(result.output, most);
                Input::ToolDone { call, attempt, result }
            }
        }
    }

    fn has_plan(&self, but: &ToolCallId) -> bool {
        self.snapshot.slots().iter().any(|slot| {
            slot.call != *but && matches!(&slot.status, SlotStatus::Suspended { suspend, .. } if suspend.kind == SuspendKind::Plan)
        })
    }
}
