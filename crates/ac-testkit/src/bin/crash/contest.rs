//! The referee: two processes on one store that want the same runs.

mod judge;
mod ring;
pub(crate) mod rival;

use std::{
    fs::File,
    io::Write,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use ac_controller::Answer;
use ac_core::event::PendingKind;
use ac_testkit::{
    Turn,
    server::{
        Setup,
        turn::{Match, Repeat},
    },
};
use serde_json::json;

use self::{
    ring::{Corner, PATIENCE},
    rival::{Order, Reply, Wait},
};
use crate::{
    Contest, Failure,
    desk::Folder,
    journal::{How, Line, dice},
    tools,
};

/// The job that all runs are of.
pub(crate) const JOB: &str = "contest";
/// Runs for each store. A file that is written as a whole gets slow as it grows.
const RUNS: usize = 4;
/// What the model calls, stage by stage: tool and milliseconds of work. The owner is put to sleep in the middle of the one that takes long.
const STAGES: [&[(&str, u64)]; 4] = [&[("write", 1)], &[("confirm", 1)], &[(LONG, 60)], &[("write", 0), ("save", 0)]];
const LONG: &str = "post";

/// Contests runs until there were enough hand-overs. Says whether all went well.
pub(crate) fn contest(contest: &Contest) -> Result<bool, Failure> {
    let at_once = contest.at_once.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from)).max(1);
    let (made, next, failed) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
    let (errors, broken) = (Mutex::new(Vec::<Failure>::new()), AtomicBool::new(false));
    thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while made.load(Ordering::Relaxed) < contest.hand_overs && !broken.load(Ordering::Relaxed) {
                    let seed = contest.seed.wrapping_add(next.fetch_add(1, Ordering::Relaxed));
                    match store(contest, seed) {
                        Ok(bout) => {
                            let total = made.fetch_add(bout.hand_overs, Ordering::Relaxed) + bout.hand_overs;
                            if !bout.wrong.is_empty() {
                                failed.fetch_add(1, Ordering::Relaxed);
                                println!("FAILED\n  {}\n  again: crash contest --hand-overs 1 --seed {seed}", bout.wrong.join("\n  "));
                            }
                            println!("… {total} hand-overs, {} while the owner was asleep", bout.asleep);
                        }
                        Err(error) => {
                            broken.store(true, Ordering::Relaxed);
                            errors.lock().unwrap_or_else(PoisonError::into_inner).push(error);
                        }
                    }
                }
            });
        }
    });
    if let Some(error) = errors.lock().unwrap_or_else(PoisonError::into_inner).pop() {
        return Err(error);
    }
    let (stores, failed) = (next.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
    println!("{} hand-overs", made.load(Ordering::Relaxed));
    println!("{} passed, {failed} failed", stores - failed);
    Ok(failed == 0)
}

/// What came of one store.
#[derive(Debug, Default)]
struct Bout {
    wrong: Vec<String>,
    hand_overs: u64,
    asleep: u64,
}

fn store(contest: &Contest, seed: u64) -> Result<Bout, Failure> {
    let temp = tempfile::tempdir()?;
    let folder = Folder::new(temp.path());
    let server = Setup::new(turns()).start()?;
    let corner = |name, blind| Corner::enter(&folder, &server.base_url(), name, blind);
    // One after the other, so that both are bound to one thread.
    let mut referee = Referee {
        seed,
        journal: File::create(folder.acknowledged())?,
        corners: [corner("a", false)?, corner("b", contest.blind)?],
        bout: Bout::default(),
    };
    for run in 0..RUNS {
        if let Err(why) = referee.run(run) {
            referee.bout.wrong.push(format!("run {run}: {why}"));
            break;
        }
    }
    let Referee { corners, mut bout, .. } = referee;
    let mut ends = vec![];
    for corner in corners {
        ends.extend(corner.leave(&mut bout.wrong)?);
    }
    let mut requests = File::create(folder.requests())?;
    for exchange in server.requests() {
        writeln!(requests, "{}", exchange.body)?;
    }
    bout.wrong.extend(server.violations().iter().map(|violation| format!("the model server: {violation}")));
    bout.wrong.extend(judge::judge(&folder, &ends)?);
    Ok(bout)
}

struct Referee {
    seed: u64,
    journal: File,
    corners: [Corner; 2],
    bout: Bout,
}

impl Referee {
    fn dice(&self, about: &str) -> u64 {
        dice(self.seed, about)
    }

    fn note(&mut self, line: &Line) -> Result<(), Failure> {
        Ok(writeln!(self.journal, "{}", serde_json::to_string(line)?)?)
    }

    /// One run from its message to its end, with both wanting it all the time.
    fn run(&mut self, n: usize) -> Result<(), Failure> {
        let text = text(n);
        let [a, b] = &mut self.corners;
        let starter = if n.is_multiple_of(2) { a } else { b };
        let Reply::Taken { message } = starter.ask(&Order::Say { text: text.clone() })? else {
            return Err("the message was not taken".into());
        };
        self.note(&Line::Said { job: JOB.to_owned(), step: n, how: How::Direct, text, message, thread: String::new(), run: None })?;
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(at) = self.corners.iter_mut().position(|corner| corner.began(LONG)) {
                self.while_asleep(at, n)?;
            }
            let look = self.dice(&format!("look {n} {}", begun.elapsed().as_micros())) % 2;
            let [a, b] = &mut self.corners;
            let Reply::Seen { waits, run, .. } = (if look == 0 { a } else { b }).ask(&Order::Look)? else {
                return Err("it does not look".into());
            };
            if waits.is_empty() && run.is_none() {
                return Ok(());
            }
            for wait in waits {
                self.both_answer(&wait)?;
            }
            thread::sleep(Duration::from_millis(2));
        }
        Err(format!("did not end within {PATIENCE:?}").into())
    }

    /// Both answer at once, in half of the cases differently. One counts.
    fn both_answer(&mut self, wait: &Wait) -> Result<(), Failure> {
        let dice = self.dice(&wait.id.to_string());
        let (first, second) = answers(wait, dice);
        let differ = first != second;
        let [a, b] = &mut self.corners;
        let (x, y) = if dice.is_multiple_of(2) { (a, b) } else { (b, a) };
        x.tell(&Order::Answer { id: wait.id.clone(), answer: first.clone() })?;
        thread::sleep(Duration::from_micros(dice / 8 % 4_000));
        y.tell(&Order::Answer { id: wait.id.clone(), answer: second.clone() })?;
        let replies = [(x.reply()?, first), (y.reply()?, second)];
        self.bout.hand_overs += 1;
        let mut counted = vec![];
        for (reply, answer) in replies {
            match reply {
                Reply::Answered { repeated: Some(false), .. } => counted.push(answer),
                Reply::Answered { repeated: Some(true), .. } if !differ => {}
                Reply::Answered { code: Some(code), .. } if differ && code == "answer.already_resolved" => {}
                other => self.bout.wrong.push(format!("{}: who comes second hears {other:?}", wait.id)),
            }
        }
        match <[Answer; 1]>::try_from(counted) {
            Ok([answer]) => {
                self.note(&Line::Answering { id: wait.id.clone(), answer: answer.clone() })?;
                let (id, kind, tool) = (wait.id.clone(), wait.kind, wait.tool.clone());
                self.note(&Line::Answered { job: JOB.to_owned(), id, kind, tool, answer })
            }
            Err(counted) => Err(format!("{}: {} answers counted", wait.id, counted.len()).into()),
        }
    }

    /// The owner sleeps in the middle of a call, the other takes the run over, and the owner goes on as if nothing had happened.
    fn while_asleep(&mut self, at: usize, n: usize) -> Result<(), Failure> {
        let dice = self.dice(&format!("sleep {n}"));
        let [a, b] = &mut self.corners;
        let (owner, other) = if at == 0 { (a, b) } else { (b, a) };
        thread::sleep(Duration::from_millis(dice % 50));
        owner.sleep()?;
        let begun = Instant::now();
        let mut taken = false;
        // Asleep with the lock of the store's file in its hand it keeps everybody out; then there is no contest.
        while !taken && begun.elapsed() < Duration::from_secs(2) {
            other.tell(&Order::Take)?;
            match other.reply_within(Duration::from_millis(500))? {
                Some(Reply::Took { took }) => taken = took,
                Some(other) => return Err(format!("asked to take the run over, it says {other:?}").into()),
                None => {
                    owner.wake()?;
                    other.reply()?;
                    return Ok(());
                }
            }
            thread::sleep(Duration::from_millis(5));
        }
        owner.wake()?;
        if taken {
            self.bout.hand_overs += 1;
            self.bout.asleep += 1;
            if (dice >> 8).is_multiple_of(2) {
                owner.lets_go()?;
            }
        }
        Ok(())
    }
}

/// What the two say to a wait.
fn answers(wait: &Wait, dice: u64) -> (Answer, Answer) {
    let differ = (dice >> 16).is_multiple_of(2);
    let (first, second) = match wait.kind {
        PendingKind::Approval => (Answer::Approve { grant: None }, Answer::Decline { reason: Some("not now".to_owned()) }),
        PendingKind::Question => {
            let reply = |who: &str| Answer::Reply { value: json!(format!("answer {} {who}", dice % 1_000_000)) };
            (reply("one"), reply("two"))
        }
        PendingKind::Plan => {
            (Answer::Reply { value: json!({ "action": "approved" }) }, Answer::Reply { value: json!({ "action": "rejected" }) })
        }
        PendingKind::InDoubt => (Answer::RunAgain, Answer::RecordFailed),
    };
    match (differ, (dice >> 24).is_multiple_of(2)) {
        (false, true) => (first.clone(), first),
        (false, false) => (second.clone(), second),
        (true, true) => (first, second),
        (true, false) => (second, first),
    }
}

fn text(run: usize) -> String {
    format!("[{JOB} {run} 0]")
}

/// As in the jobs: the call ids in a request show how far the history is.
fn turns() -> Vec<Turn> {
    let mut turns = vec![];
    for run in 0..RUNS {
        let mark = |stage: usize| format!("{JOB}{run}-{stage}-");
        for (at, stage) in STAGES.iter().enumerate() {
            let contains = Some(if at == 0 { text(run) } else { mark(at - 1) });
            let when = Match { contains, not_contains: Some(mark(at)), ..Match::default() };
            let turn = Turn { repeat: Repeat::Forever(true), ..Turn::default() }.when(when);
            let calls = stage.iter().enumerate();
            turns.push(
                calls.fold(turn, |turn, (n, (tool, wait))| turn.then_tool(format!("{}{n}", mark(at)), *tool, json!({ "wait": wait }))),
            );
        }
    }
    let when = Match { contains: Some(format!("[{JOB} ")), ..Match::default() };
    turns.push(Turn { repeat: Repeat::Forever(true), ..Turn::chunks(["That ", "is ", "done."]) }.when(when));
    turns
}

/// Adds what a process noted to the log that the judge reads.
pub(crate) fn note(folder: &Folder, commit: &judge::Noted) -> std::io::Result<()> {
    tools::append(&folder.commits(), commit)
}
