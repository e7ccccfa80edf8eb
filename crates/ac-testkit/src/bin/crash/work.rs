//! The child: a person at work in several sessions, who knows what was acknowledged in earlier lives.

use std::{
    collections::BTreeSet,
    io::Read,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use ac_controller::{AgentController, Answer, ControllerError, ControllerErrorKind, Pending, Session};
use ac_core::{ThreadId, event::PendingKind, permission::GrantTarget};
use ac_storage::{
    Storage,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::store::HookedStorage;
use serde_json::json;

use crate::{
    Failure, Work, desk,
    jobs::{self, Job, Step},
    journal::{How, Journal, Line, dice, tell},
    plant::{Killer, Plant, Planted},
    tools,
};

/// How long a life may last. Far more than the jobs take, on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(40);
/// How often a person looks whether something waits.
const LOOK: Duration = Duration::from_millis(4);
/// How many answers of earlier lives are given again, to see whether they are known.
const REPEATS: usize = 3;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
pub(crate) async fn work(work: &Work) -> Result<bool, Failure> {
    // The parent holds the other end: when it is gone, nobody waits for this process.
    std::thread::spawn(|| {
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(3);
    });
    match tokio::time::timeout(PATIENCE, live(work)).await {
        Ok(lived) => lived,
        Err(_) => {
            tell(&Line::Complaint { text: format!("life {} did not come to an end within {PATIENCE:?}", work.life) });
            Ok(false)
        }
    }
}

async fn live(work: &Work) -> Result<bool, Failure> {
    let folder = desk::Folder::new(&work.dir);
    let journal = Arc::new(Journal::read(&folder.acknowledged())?);
    let store = Arc::new(desk::open(&folder, work.power).await?);
    let killer = Arc::new(Killer { at: work.die_at, after: work.die_after, ..Killer::default() });
    let mut storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(Arc::clone(&store), Arc::clone(&killer)));
    if let Some(plant) = work.plant {
        storage = Arc::new(Planted { inner: storage, plant });
    }
    let tools = tools::all(folder.deeds(), work.plant == Some(Plant::Repeat));
    let controller = desk::controller(storage, tools, &work.url, desk::LEASE)?;
    controller.init().await?;
    let persons = work.jobs.iter().filter_map(|name| jobs::job(name)).map(|job| {
        let person = Person { controller: controller.clone(), job, journal: Arc::clone(&journal), seed: work.seed, life: work.life };
        tokio::spawn(async move { (job.name, person.work().await) })
    });
    let mut well = true;
    for ended in futures::future::join_all(persons).await {
        let (job, worked) = ended?;
        if let Err(error) = worked {
            tell(&Line::Complaint { text: format!("{job}: {} ({error})", error.code()) });
            well = false;
        }
    }
    controller.shutdown().await;
    store.close().await?;
    if well {
        tell(&Line::Done { writes: killer.writes.load(Ordering::Relaxed) });
    }
    Ok(well)
}

struct Person {
    controller: AgentController,
    job: &'static Job,
    journal: Arc<Journal>,
    seed: u64,
    life: u32,
}

impl Person {
    async fn work(self) -> Result<(), ControllerError> {
        let session = self.controller.create_session(self.job.name).await?;
        self.repeat_answers(&session).await?;
        for (step, what) in self.job.steps.iter().enumerate() {
            if !self.journal.stepped(self.job.name, step) {
                self.step(&session, step, *what).await?;
            }
        }
        Ok(())
    }

    async fn step(&self, session: &Session, step: usize, what: Step) -> Result<(), ControllerError> {
        let text = jobs::text(self.job.name, step, self.life);
        let job = self.job.name.to_owned();
        let bound = || session.thread_id().map(|thread| thread.to_string()).unwrap_or_default();
        let (how, message, thread, run) = match what {
            Step::Say => {
                let said = session.submit(text.as_str()).await?;
                (How::Direct, said.message, said.thread.to_string(), Some(said.run.to_string()))
            }
            Step::Inject => (How::Direct, session.inject(text.as_str()).await?, bound(), None),
            Step::FollowUp => (How::FollowUp, session.follow_up(text.as_str()).await?.message, bound(), None),
            Step::Steer => {
                tell(&Line::Aborting { job: job.clone() });
                let said = session.steer(text.as_str()).await?;
                (How::Direct, said.message, said.thread.to_string(), Some(said.run.to_string()))
            }
            other => {
                match other {
                    Step::Mode(mode) => session.switch_mode(mode).await?,
                    Step::Abort => {
                        tell(&Line::Aborting { job: job.clone() });
                        session.abort().await?;
                    }
                    Step::Revoke => {
                        for grant in session.grants() {
                            session.revoke(&grant.id).await?;
                        }
                        tell(&Line::Revoked { job: job.clone() });
                    }
                    Step::Fork => self.clone_thread(session).await?,
                    Step::DeleteOthers => {
                        let bound = session.thread_id();
                        for thread in session.threads(ThreadQuery::default()).await?.items {
                            if Some(&thread.id) != bound.as_ref() {
                                self.delete(session, &thread.id).await?;
                            }
                        }
                    }
                    Step::Delete => {
                        let earlier = self.journal.deleting().find(|(of, ..)| *of == self.job.name).map(|(_, thread, _)| thread.into());
                        if let Some(thread) = earlier.or_else(|| session.thread_id()) {
                            self.delete(session, &thread).await?;
                        }
                    }
                    Step::Pause(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
                    _ => self.rest(session).await?,
                }
                tell(&Line::Stepped { job, step });
                return Ok(());
            }
        };
        tell(&Line::Said { job, step, how, text, message: message.to_string(), thread, run });
        Ok(())
    }

    async fn clone_thread(&self, session: &Session) -> Result<(), ControllerError> {
        let from = session.thread_id().map(|thread| thread.to_string()).unwrap_or_default();
        let to = session.clone_thread(None, None, None).await?.id.to_string();
        let messages = session.messages(None, MessageQuery::default()).await?.items.len();
        tell(&Line::Cloned { from, to, messages });
        Ok(())
    }

    async fn delete(&self, session: &Session, thread: &ThreadId) -> Result<(), ControllerError> {
        let runs = self.runs(session, thread).await?;
        tell(&Line::Deleting { job: self.job.name.to_owned(), thread: thread.to_string(), runs });
        match session.delete_thread(thread).await {
            // Killed between the deletion and the word about it.
            Err(error) if error.kind() == ControllerErrorKind::ThreadNotFound => {}
            done => done?,
        }
        tell(&Line::Deleted { thread: thread.to_string() });
        Ok(())
    }

    /// The runs of a thread. One that an earlier life started may be over, though that life died before it could say so.
    async fn runs(&self, session: &Session, thread: &ThreadId) -> Result<Vec<String>, ControllerError> {
        let history = match session.messages(Some(thread), MessageQuery::default()).await {
            Err(error) if error.kind() == ControllerErrorKind::ThreadNotFound => return Ok(vec![]),
            history => history?.items,
        };
        let steps = history.iter().filter_map(|stored| stored.message.id.as_str().rsplit_once('/'));
        let mut runs: BTreeSet<String> = steps.map(|(run, _)| run.to_owned()).collect();
        if session.thread_id().as_ref() == Some(thread) {
            runs.extend(session.current_run().await?.map(|run| run.to_string()));
        }
        Ok(runs.into_iter().collect())
    }

    /// Answers whatever waits, until nothing waits and nothing moves.
    async fn rest(&self, session: &Session) -> Result<(), ControllerError> {
        loop {
            let open = session.pending().await?;
            for wait in &open {
                self.answer(session, wait).await?;
            }
            if open.is_empty() && session.current_run().await?.is_none() && session.queue().await?.is_empty() {
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn answer(&self, session: &Session, wait: &Pending) -> Result<(), ControllerError> {
        if self.journal.answers(self.job.name).any(|(id, _)| *id == wait.id) {
            tell(&Line::Complaint { text: format!("{}: answered, and still pending in life {}", wait.id, self.life) });
        }
        let answer = self.decide(wait);
        let grants = matches!(&answer, Answer::Approve { grant: Some(_) });
        if grants && self.journal.granted(self.job.name) {
            tell(&Line::Complaint { text: format!("{}: asked in spite of a grant, in life {}", wait.id, self.life) });
        }
        tell(&Line::Answering { id: wait.id.clone(), answer: answer.clone() });
        match session.answer(&wait.id, answer.clone()).await {
            Ok(_) => {
                let (job, tool) = (self.job.name.to_owned(), wait.tool.clone());
                if grants {
                    tell(&Line::Granted { job: job.clone() });
                }
                tell(&Line::Answered { job, id: wait.id.clone(), kind: wait.kind, tool, answer });
                Ok(())
            }
            // An abort, or a grant that came with another answer, may have settled it since it was listed.
            Err(error) if (self.may_abort() || grants) && is_settled(error.kind()) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn may_abort(&self) -> bool {
        self.job.steps.iter().any(|step| matches!(step, Step::Abort | Step::Steer))
    }

    /// What the person says to a wait: by seed, and the same in each life.
    fn decide(&self, wait: &Pending) -> Answer {
        let dice = dice(self.seed, &format!("{} {} {:?}", wait.call, wait.id.n, wait.kind));
        match wait.kind {
            PendingKind::Approval if self.job.name == jobs::GRANTS => Answer::Approve { grant: Some(GrantTarget::Tool(wait.tool.clone())) },
            PendingKind::Approval if dice.is_multiple_of(4) => Answer::Decline { reason: Some("not now".to_owned()) },
            PendingKind::Approval => Answer::Approve { grant: None },
            PendingKind::Question => Answer::Reply { value: json!(format!("answer {}", dice % 1_000_000)) },
            PendingKind::Plan if dice.is_multiple_of(4) => Answer::Reply { value: json!({ "action": "rejected", "feedback": "shorter" }) },
            PendingKind::Plan => Answer::Reply { value: json!({ "action": "approved" }) },
            PendingKind::InDoubt if dice.is_multiple_of(2) => Answer::RunAgain,
            PendingKind::InDoubt => Answer::RecordFailed,
        }
    }

    /// What was acknowledged is known (R6): the same again is fine, anything else is refused.
    async fn repeat_answers(&self, session: &Session) -> Result<(), ControllerError> {
        // Answers go with the thread that they were given on.
        if self.journal.deleting().any(|(job, ..)| job == self.job.name) {
            return Ok(());
        }
        for (id, answer) in self.journal.answers(self.job.name).rev().take(REPEATS) {
            match session.answer(id, answer.clone()).await {
                Ok(accepted) if accepted.repeated => {}
                Ok(_) => tell(&Line::Complaint { text: format!("{id}: an acknowledged answer was taken for a new one") }),
                Err(error) => tell(&Line::Complaint { text: format!("{id}: an acknowledged answer is refused: {}", error.code()) }),
            }
            let other = match answer {
                Answer::Decline { .. } => Answer::Approve { grant: None },
                _ => Answer::Decline { reason: Some("another".to_owned()) },
            };
            match session.answer(id, other).await {
                Err(error) if is_settled(error.kind()) || error.kind() == ControllerErrorKind::InvalidAnswer => {}
                Ok(_) => tell(&Line::Complaint { text: format!("{id}: a second, other answer was taken") }),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

fn is_settled(kind: ControllerErrorKind) -> bool {
    matches!(kind, ControllerErrorKind::AlreadyResolved | ControllerErrorKind::NotPending | ControllerErrorKind::Aborting)
}
