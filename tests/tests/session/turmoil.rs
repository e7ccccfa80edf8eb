//! Everything at once: several people at one session, a model that answers, asks, calls tools, fails and hangs. Nothing hangs with it, and
//! no message that was accepted is lost or doubled.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex},
    time::Duration,
};

use ac_controller::{Answer, ControllerError, Delivery, Session};
use ac_core::{MessageId, ThreadId, event::PendingKind};
use ac_storage::domain::{MessageQuery, OpenRuns, ThreadQuery};
use ac_testkit::Turn;
use futures::StreamExt;
use serde_json::json;

use crate::desk::{Desk, modes};

/// The same numbers for the same seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

/// What a model may do. Calls have ids of their own, as models have.
fn turn(dice: &mut Dice, n: u64) -> Turn {
    let id = format!("c{n}");
    match dice.roll(12) {
        0 | 1 => Turn::tool(id, "look", json!({ "what": "about", "wait": dice.roll(30) })),
        2 => Turn::tool(id, "write", json!({ "what": n.to_string() })),
        3 => Turn::tool(id, "ask_user", json!({ "question": "?" })),
        4 => Turn::tool(id, "look", json!({ "what": "x" })).then_tool(format!("d{n}"), "write", json!({ "what": n.to_string() })),
        5 => Turn::tool(id, "submit_plan", json!({ "path": "p.md" })),
        6 => Turn::error(400, "bad request"),
        7 => Turn::text("hm").then_hang(),
        _ => Turn::chunks(["a", "b", "c"]).slowly(Duration::from_millis(dice.roll(8))),
    }
}

/// What was accepted, and what was taken back of it.
#[derive(Clone, Default)]
struct Accepted {
    taken: Arc<Mutex<Vec<MessageId>>>,
    removed: Arc<Mutex<BTreeSet<MessageId>>>,
}

async fn act(session: &Session, dice: &mut Dice, accepted: &Accepted, text: String) -> Result<(), ControllerError> {
    let take = |id: MessageId| accepted.taken.lock().unwrap().push(id);
    match dice.roll(14) {
        0..=3 => take(session.submit(text).await?.message),
        4 => take(session.inject(text).await?),
        5 | 6 => take(session.follow_up(text).await?.message),
        7 => take(session.steer(text).await?.message),
        8 => drop(session.abort().await?),
        9 => answer_all(session, dice).await?,
        10 => session.switch_mode(if dice.roll(2) == 0 { "plan" } else { "build" }).await?,
        11 => {
            let threads = session.threads(ThreadQuery::default()).await?.items;
            let at = usize::try_from(dice.roll(threads.len() as u64)).unwrap();
            session.switch_thread(&threads[at].id).await?;
        }
        12 if dice.roll(3) == 0 && session.threads(ThreadQuery::default()).await?.items.len() < 3 => {
            session.create_thread(None, "").await?;
        }
        12 => {
            let queue = session.queue().await?;
            if let Some(item) = queue.last() {
                session.remove_queued(&item.id).await?;
                accepted.removed.lock().unwrap().insert(item.id.clone());
            }
        }
        _ => tokio::time::sleep(Duration::from_millis(dice.roll(10))).await,
    }
    Ok(())
}

async fn answer_all(session: &Session, dice: &mut Dice) -> Result<(), ControllerError> {
    for open in session.pending().await? {
        let answer = match open.kind {
            PendingKind::Approval if dice.roll(2) == 0 => Answer::Approve { grant: None },
            PendingKind::Question => Answer::Reply { value: json!("yes") },
            PendingKind::Plan => Answer::Reply { value: json!({ "action": if dice.roll(2) == 0 { "approved" } else { "rejected" } }) },
            PendingKind::InDoubt => panic!("nothing crashed, and yet a call is in doubt: {open:?}"),
            PendingKind::Approval => Answer::Decline { reason: None },
        };
        session.answer(&open.id, answer).await?;
    }
    Ok(())
}

/// What may be refused while others do things, too.
fn is_fair(error: &ControllerError) -> bool {
    ["answer.not_pending", "answer.already_resolved", "answer.aborting", "queue.not_found", "session.contended"].contains(&error.code())
}

async fn turmoil(seed: u64) {
    let mut dice = Dice(seed);
    let desk = Desk::new((0..300).map(|n| turn(&mut dice, n)).chain([Turn::text("ok").forever()]));
    let controller = desk.builder("").modes(modes()).build().unwrap();
    let session = controller.create_session("ann").await.unwrap();
    let mut events = session.subscribe();
    let reader = tokio::spawn(async move {
        let mut last = None;
        while let Some(delivery) = events.next().await {
            match delivery {
                Delivery::State(state) => last = Some(state.cursor.seq),
                Delivery::Event(event) => {
                    assert_eq!(last.map(|last| last + 1), Some(event.seq), "a number is missing");
                    last = Some(event.seq);
                }
            }
        }
    });
    let accepted = Accepted::default();
    let people = (1..=3).map(|person: u64| {
        let (session, accepted) = (session.clone(), accepted.clone());
        tokio::spawn(async move {
            let mut dice = Dice(seed.wrapping_mul(31).wrapping_add(person));
            for n in 0..30 {
                let doing = act(&session, &mut dice, &accepted, format!("{person}.{n}"));
                match tokio::time::timeout(Duration::from_secs(15), doing).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) if is_fair(&error) => {}
                    Ok(Err(error)) => panic!("seed {seed}, person {person}, step {n}: {} {error}", error.code()),
                    Err(_) => panic!("seed {seed}, person {person}, step {n} hangs"),
                }
            }
        })
    });
    for person in futures::future::join_all(people).await {
        person.unwrap();
    }
    settle(&desk, &session, &mut dice, seed).await;

    let mut stored: BTreeMap<MessageId, usize> = BTreeMap::new();
    let threads: Vec<ThreadId> = session.threads(ThreadQuery::default()).await.unwrap().items.into_iter().map(|info| info.id).collect();
    for thread in &threads {
        for message in session.messages(Some(thread), MessageQuery::default()).await.unwrap().items {
            *stored.entry(message.message.id.clone()).or_default() += 1;
        }
    }
    for id in accepted.taken.lock().unwrap().iter() {
        let expected = if accepted.removed.lock().unwrap().contains(id) { None } else { Some(&1) };
        assert_eq!(stored.get(id), expected, "seed {seed}: message {id} was accepted");
    }
    assert!(stored.values().all(|count| *count == 1), "seed {seed}: no message stands twice");
    assert!(!session.display_state().is_running, "seed {seed}");
    assert!(session.pending().await.unwrap().is_empty());
    let mut done = desk.done();
    let all = done.iter().filter(|what| what.starts_with("write")).count();
    done.retain(|what| what.starts_with("write"));
    done.sort();
    done.dedup();
    assert_eq!(done.len(), all, "seed {seed}: no call ran twice");
    controller.shutdown().await;
    reader.await.unwrap();
}

/// Answers and stops until nothing is open and nothing waits.
async fn settle(desk: &Desk, session: &Session, dice: &mut Dice, seed: u64) {
    for round in 0..400 {
        for thread in session.threads(ThreadQuery::default()).await.unwrap().items {
            session.switch_thread(&thread.id).await.unwrap();
            if let Err(error) = answer_all(session, dice).await {
                assert!(is_fair(&error), "seed {seed}: {error}");
            }
            if round % 3 == 2 {
                session.abort().await.unwrap();
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            if !session.queue().await.unwrap().is_empty() {
                tokio::time::sleep(Duration::from_millis(40)).await;
            }
        }
        let open = desk.storage.runs().open(&OpenRuns::default()).await.unwrap().items;
        if open.is_empty() && all_queues_are_empty(session).await {
            return;
        }
    }
    panic!("seed {seed} does not come to rest: {:#?}", desk.storage.runs().open(&OpenRuns::default()).await.unwrap().items);
}

async fn all_queues_are_empty(session: &Session) -> bool {
    for thread in session.threads(ThreadQuery::default()).await.unwrap().items {
        session.switch_thread(&thread.id).await.unwrap();
        if !session.queue().await.unwrap().is_empty() {
            return false;
        }
    }
    true
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_hangs_and_nothing_is_lost_when_everything_happens_at_once() {
    let seeds: Vec<u64> = match std::env::var("AC_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => vec![seed],
        None => (1..=12).collect(),
    };
    for seed in seeds {
        turmoil(seed).await;
    }
}
