use agent_controller::core::EventBody;

use super::{Chat, Next};
use crate::{
    exit::{Exit, Failure},
    follow::Follow,
    input::Line,
    interrupt::Interrupt,
    waits::Wait,
};

/// What is said about a line that is not taken.
const LONG: &str = "A line has at most 1 MiB, and this one is longer: nothing of it was taken. Put it into a file and name that.";

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
                Line::Long => {
                    self.warn(LONG);
                    Asked::Line(String::new())
                }
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
        self.ask_for(follow, wait, prompt, false).await
    }

    /// As [`Chat::ask`], about something that may be left out, after the decision was made: the end of input does not take that back.
    pub(super) async fn ask_more(&mut self, follow: &mut Follow<'_>, wait: &Wait, prompt: &str) -> Result<Result<String, Next>, Failure> {
        self.ask_for(follow, wait, prompt, true).await
    }

    async fn ask_for(
        &mut self,
        follow: &mut Follow<'_>,
        wait: &Wait,
        prompt: &str,
        optional: bool,
    ) -> Result<Result<String, Next>, Failure> {
        if self.screen.painter().prompt(prompt, self.echoed).is_err() {
            return Ok(Err(Next::Leave(Exit::Failed)));
        }
        loop {
            tokio::select! {
                line = self.lines.next() => match line {
                    Line::Text(line) => return Ok(Ok(line)),
                    Line::Long => {
                        self.warn(LONG);
                        if self.screen.painter().prompt(prompt, self.echoed).is_err() {
                            return Ok(Err(Next::Leave(Exit::Failed)));
                        }
                    }
                    Line::End => {
                        if self.echoed {
                            let _ = self.screen.painter().plain("");
                        }
                        return Ok(if optional { Ok(String::new()) } else { Err(Next::Leave(Exit::Waiting)) });
                    }
                },
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
