//! One of the two processes, as the referee has it.

use std::{
    fs::OpenOptions,
    io::{BufRead, BufReader, Write},
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process};

use super::rival::{Order, Reply};
use crate::{Failure, desk::Folder};

/// How long anything may take. Far more than it does, on the slowest machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Corner {
    child: Child,
    orders: ChildStdin,
    replies: Receiver<Reply>,
    /// Tools that it began to work at.
    began: Vec<String>,
    /// Runs whose end it told.
    ends: Vec<String>,
    wrong: Vec<String>,
}

impl Corner {
    /// Starts it, and waits until it is there.
    pub(super) fn enter(folder: &Folder, url: &str, name: &str, blind: bool) -> Result<Self, Failure> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("rival").arg("--dir").arg(&folder.0).args(["--url", url, "--name", name]);
        if blind {
            command.arg("--blind");
        }
        let errors = OpenOptions::new().create(true).append(true).open(folder.errors())?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn()?;
        let (Some(orders), Some(out)) = (child.stdin.take(), child.stdout.take()) else { return Err("the rival has no pipes".into()) };
        let (send, replies) = sync_channel(1024);
        thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                if let Ok(reply) = serde_json::from_str(&line)
                    && send.send(reply).is_err()
                {
                    return;
                }
            }
        });
        let mut corner = Self { child, orders, replies, began: vec![], ends: vec![], wrong: vec![] };
        match corner.reply()? {
            Reply::Ready => Ok(corner),
            other => Err(format!("the rival begins with {other:?}").into()),
        }
    }

    pub(super) fn tell(&mut self, order: &Order) -> Result<(), Failure> {
        writeln!(self.orders, "{}", serde_json::to_string(order)?)?;
        Ok(self.orders.flush()?)
    }

    pub(super) fn ask(&mut self, order: &Order) -> Result<Reply, Failure> {
        self.tell(order)?;
        self.reply()
    }

    pub(super) fn reply(&mut self) -> Result<Reply, Failure> {
        self.reply_within(PATIENCE)?.ok_or_else(|| format!("the rival says nothing for {PATIENCE:?}").into())
    }

    /// The next line that answers an order; those that tell of something are kept.
    pub(super) fn reply_within(&mut self, limit: Duration) -> Result<Option<Reply>, Failure> {
        let begun = Instant::now();
        loop {
            match self.replies.recv_timeout(limit.saturating_sub(begun.elapsed())) {
                Ok(reply) => {
                    if let Some(reply) = self.keep(reply) {
                        return Ok(Some(reply));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err("the rival is gone".into()),
            }
        }
    }

    fn keep(&mut self, reply: Reply) -> Option<Reply> {
        match reply {
            Reply::Began { tool } => self.began.push(tool),
            Reply::Ended { run } => self.ends.push(run),
            Reply::Trouble { text } => self.wrong.push(text),
            other => return Some(other),
        }
        None
    }

    /// Whether it began to work at a tool since that was last asked.
    pub(super) fn began(&mut self, tool: &str) -> bool {
        while let Ok(reply) = self.replies.try_recv() {
            self.keep(reply);
        }
        let began = std::mem::take(&mut self.began);
        began.iter().any(|begun| begun == tool)
    }

    pub(super) fn sleep(&self) -> Result<(), Failure> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::STOP)?)
    }

    pub(super) fn wake(&self) -> Result<(), Failure> {
        Ok(kill_process(Pid::from_child(&self.child), Signal::CONT)?)
    }

    /// Waits until it moves the run no more.
    pub(super) fn lets_go(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(5) {
            match self.ask(&Order::Look)? {
                Reply::Seen { moves: false, .. } => return Ok(()),
                _ => thread::sleep(Duration::from_millis(5)),
            }
        }
        self.wrong.push("a run that was taken over is still moved by its old owner".to_owned());
        Ok(())
    }

    /// Ends it. The runs whose end it told.
    pub(super) fn leave(mut self, wrong: &mut Vec<String>) -> Result<Vec<String>, Failure> {
        let over = self.ask(&Order::End);
        let _ = self.child.kill();
        self.child.wait()?;
        if !matches!(over, Ok(Reply::Over)) {
            wrong.push(format!("a rival ends with {over:?}"));
        }
        wrong.append(&mut self.wrong);
        Ok(self.ends)
    }
}
