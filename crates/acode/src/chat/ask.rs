use agent_controller::core::EventBody;

use super::{Chat, Next};
use crate::{
    exit::{Exit, Failure},
    follow::Follow,
    input::Line,
    interrupt::Interrupt,
    waits::Wait,
};

/// What came of a prompt.
pub(super) enum Asked {
    /// A line.
    Line(String),
    /// The end of input.
    End,
    /// An interrupt.
    Interrupted(Interrupt),
    /// Nobody reads what is shown.
    Gone,
}

impl Chat<'_> {
    /// A line at the main prompt.
    pub(super) async fn read(&mut self, prompt: &str) -> Asked {
        if self.screen.painter().prompt(prompt, self.echoed).is_err() {
            return Asked::Gone;
        }
        let asked = tokio::select! {
            line = self.lines.next() => match line {
                Line::Text(line) => Asked::Line(line),
                Line::End => Asked::End,
            },
            interrupt = self.interrupts.next() => Asked::Interrupted(interrupt),
        };
        if !matches!(asked, Asked::Line(_)) && self.echoed {
            // The cursor stands behind the prompt.
            let _ = self.screen.painter().plain("");
        }
        asked
    }

    /// A line about a wait; what comes instead of one when the person leaves or somebody else answers. Leaving parks the run.
    pub(super) async fn ask(&mut self, follow: &mut Follow<'_>, wait: &Wait, prompt: &str) -> Result<Result<String, Next>, Failure> {
        if self.screen.painter().prompt(prompt, self.echoed).is_err() {
            return Ok(Err(Next::Leave(Exit::Failed)));
        }
        loop {
            tokio::select! {
                line = self.lines.next() => return Ok(match line {
                    Line::Text(line) => Ok(line),
                    Line::End => {
                        if self.echoed {
                            let _ = self.screen.painter().plain("");
                        }
                        Err(Next::Leave(Exit::Waiting))
                    }
                }),
                interrupt = self.interrupts.next() => {
                    let _ = self.screen.painter().plain("");
                    return Ok(Err(Next::Leave(match interrupt {
                        Interrupt::Leave => Exit::Aborted,
                        Interrupt::Stop | Interrupt::End => Exit::Waiting,
                    })));
                }
                event = follow.event(&mut self.screen) => {
                    let event = match event {
                        Err(_) => return Ok(Err(Next::Leave(Exit::Failed))),
                        Ok(None) => return Ok(Err(Next::Leave(Exit::Waiting))),
                        Ok(Some(event)) => event,
                    };
                    let settles = matches!(event.body, EventBody::PendingResolved { .. } | EventBody::ToolEnd { .. } | EventBody::AgentEnd { .. });
                    if settles && !self.app.open(None).await?.iter().any(|open| open.pending.id == wait.pending.id) {
                        self.note("Answered elsewhere.");
                        return Ok(Err(Next::Go));
                    }
                }
            }
        }
    }
}
