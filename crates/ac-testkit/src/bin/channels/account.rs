//! Everything about a conversation in which something failed: what its person did and saw, what the platform was asked, what is stored, and
//! what the child told.

use std::{
    collections::BTreeSet,
    path::Path,
    time::{Instant, SystemTime, UNIX_EPOCH},
};

use ac_core::{ControllerId, RunId, ThreadId};
use ac_storage::{SessionId, SledOptions, Storage, domain::MessageQuery};
use serde_json::Value;

use crate::{Failure, work::TOLD, world::World};

/// How much of each thing is printed: the end counts.
const CALLS: usize = 40;
const MESSAGES: usize = 16;
const LINES: usize = 60;
const WIDTH: usize = 400;

/// Prints what is known of these channels. The child is gone.
pub(crate) async fn tell(world: &World, dir: &Path, channels: &BTreeSet<String>) -> Result<(), Failure> {
    let store = SledOptions::new(dir.join("store")).open().await?;
    let told = std::fs::read_to_string(dir.join(TOLD)).unwrap_or_default();
    for channel in channels {
        println!("--- {channel}");
        happened(world, channel);
        for id in conversations(&store, channel).await? {
            let thread = stored(&store, &id).await?;
            let conversation = format!("\"{}\"", id.key.resource);
            let about = |line: &&str| line.contains(&conversation) || thread.as_ref().is_some_and(|thread| line.contains(thread.as_str()));
            let lines: Vec<&str> = told.lines().filter(about).collect();
            for line in lines.iter().skip(lines.len().saturating_sub(LINES)) {
                println!("told    {}", cut(line));
            }
        }
    }
    store.close().await?;
    Ok(())
}

/// What people and platforms did, in the order of the clock.
fn happened(world: &World, channel: &str) {
    let (now, wall) = (Instant::now(), SystemTime::now());
    let mut all: Vec<(SystemTime, String)> = world.story(channel).into_iter().map(|moment| (moment.at, moment.what)).collect();
    let called: Vec<_> = world.platforms.called().into_iter().filter(|call| belongs(&call.body, &call.method, channel)).collect();
    let skip = called.len().saturating_sub(CALLS);
    let first = called.get(skip).and_then(|call| wall.checked_sub(now.duration_since(call.at)));
    all.retain(|(at, _)| first.is_none_or(|first| *at >= first));
    for call in called.into_iter().skip(skip) {
        let Some(at) = wall.checked_sub(now.duration_since(call.at)) else { continue };
        let text = ["text", "content"].iter().find_map(|name| call.body.get(*name)?.as_str()).unwrap_or_default();
        all.push((at, format!("    {} {} -> {} {text:?}", call.platform, call.method, call.status)));
    }
    all.sort_by_key(|(at, _)| *at);
    for (at, what) in all {
        println!("{} {}", clock(at), cut(&what));
    }
    for shown in world.platforms.shown_in(channel).iter().rev().take(6).rev() {
        println!("shown   {} {:?} {:?}", shown.id, shown.text, shown.buttons.iter().map(|(label, _)| label).collect::<Vec<_>>());
    }
}

fn belongs(body: &Value, method: &str, channel: &str) -> bool {
    let named = ["channel", "chat_id"].iter().any(|name| body.get(*name).is_some_and(|value| value == channel));
    named || method.split(['/', '?', '=', '&']).any(|part| part == channel)
}

/// The records of the conversations in a channel.
async fn conversations(store: &dyn Storage, channel: &str) -> Result<Vec<SessionId>, Failure> {
    let controller = ControllerId::from("desk/channels");
    let (mut found, mut after) = (vec![], None::<String>);
    loop {
        let page = store.sessions().list(&controller, after.as_deref(), 256).await?;
        found.extend(page.items.into_iter().filter(|id| id.key.resource.as_str().split(':').nth(1) == Some(channel)));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(found),
        }
    }
}

/// The record of a conversation, and of its thread and run. Answers with the thread.
async fn stored(store: &dyn Storage, id: &SessionId) -> Result<Option<ThreadId>, Failure> {
    let Some(row) = store.sessions().load(id).await? else { return Ok(None) };
    let mut record: Value = serde_json::from_str(row.value.get())?;
    if let Some(fields) = record.as_object_mut() {
        // A long list of digests.
        fields.remove("seen");
    }
    println!("record  {record}");
    let Some(thread) = record.pointer("/binding/thread").and_then(Value::as_str).map(ThreadId::from) else { return Ok(None) };
    let Some(head) = store.runs().head(&thread).await? else { return Ok(Some(thread)) };
    println!("thread  {}", serde_json::to_string(&head.value)?);
    let started = record.pointer("/starter/run").and_then(Value::as_str).map(RunId::from);
    let runs: BTreeSet<RunId> = head.value.active_run.into_iter().chain(started).collect();
    for run in runs {
        let (lease, stored) = (store.runs().lease(&run).await?, store.runs().load(&run).await?);
        println!("lease   {lease:?}");
        if let Some(stored) = stored {
            println!("run     {}", serde_json::to_string(&stored.value)?);
        }
    }
    let query = MessageQuery { newest_first: true, limit: MESSAGES, ..MessageQuery::default() };
    for one in store.messages().page(&thread, &query).await?.items.iter().rev() {
        let message = &one.message;
        println!(
            "message {} {} {:?} {:?} {}",
            one.position,
            message.id,
            message.role,
            message.meta.run,
            cut(&format!("{:?}", message.text()))
        );
    }
    Ok(Some(thread))
}

fn cut(text: &str) -> String {
    text.chars().take(WIDTH).collect()
}

/// The time of day, in the form of what the child tells.
fn clock(at: SystemTime) -> String {
    let millis = at.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    let (seconds, millis) = (millis / 1000 % 86_400, millis % 1000);
    format!("{:02}:{:02}:{:02}.{millis:03}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}
