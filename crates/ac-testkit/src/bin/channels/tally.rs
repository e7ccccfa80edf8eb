//! Counting what people can see, and what the tool really did.

use std::{
    collections::{BTreeSet, HashMap},
    path::Path,
};

use crate::{Failure, account, model::named, world::World};

/// Of how many conversations everything is told, where more than that failed.
const ACCOUNTS: usize = 4;

/// Prints what failed, everything about it, and the last line; whether all is well.
pub(crate) async fn report(world: &World, dir: &Path, ended: bool) -> Result<bool, Failure> {
    let written = std::fs::read_to_string(dir.join("written.txt")).unwrap_or_default();
    let (mut passed, mut failures, mut where_) = (0_u64, vec![], BTreeSet::new());
    let mut check = |fine: bool, channel: Option<&str>, what: String| {
        if fine {
            passed += 1;
        } else {
            where_.extend(channel.map(str::to_owned));
            failures.push(what);
        }
    };
    let shown = world.platforms.shown();
    let mut answers: HashMap<(&str, &str), u64> = HashMap::new();
    for one in &shown {
        for id in named(&one.text, "answer:") {
            *answers.entry((&one.channel, id)).or_default() += 1;
        }
    }
    let mut writes: HashMap<&str, u64> = HashMap::new();
    for line in written.lines() {
        *writes.entry(line).or_default() += 1;
    }
    let log = world.log.lock().await;
    let channel_of = |id: &str| log.said.iter().find(|(_, said)| said == id).map(|(channel, _)| channel.as_str());
    for (channel, id) in &log.said {
        let times = answers.get(&(channel.as_str(), id.as_str())).copied().unwrap_or(0);
        check(times == 1, Some(channel), format!("{channel}: {id} was answered {times} times"));
    }
    for ((channel, id), times) in &answers {
        let known = log.said.iter().any(|(where_, said)| where_ == channel && said == id);
        check(known || *times == 0, Some(channel), format!("{channel}: an answer to {id}, which nobody said"));
    }
    for id in &log.approved {
        let times = writes.get(id.as_str()).copied().unwrap_or(0);
        let fine = times == 1 || (times == 0 && log.doubted.contains(id));
        check(fine, channel_of(id), format!("{id} was approved and ran {times} times"));
    }
    for id in &log.declined {
        let times = writes.get(id.as_str()).copied().unwrap_or(0);
        check(times == 0, channel_of(id), format!("{id} was declined and ran {times} times"));
    }
    for id in writes.keys() {
        check(log.approved.iter().any(|known| known == id), channel_of(id), format!("{id} ran, and nobody approved it"));
    }
    let slowest = world.worker.slowest();
    let slow = format!("an answer to a platform took {} ms, without the time in which the process did not run", slowest.own);
    check(slowest.own < 3_000, None, slow);
    check(ended, None, "the last life did not end by itself".to_owned());
    for (channel, complaint) in &log.complaints {
        check(false, channel.as_deref(), complaint.clone());
    }
    println!(
        "{} messages, {} approvals, {} declined, {} in doubt, {} posts, {} notices; the slowest answer took {} ms, {} ms by the clock",
        log.said.len(),
        log.approved.len(),
        log.declined.len(),
        log.doubted.len(),
        shown.len(),
        world.platforms.notices().len(),
        slowest.own,
        slowest.clock,
    );
    for failure in failures.iter().take(50) {
        println!("FAILED {failure}");
    }
    if !where_.is_empty() {
        // What is told of a failure is not to hide that there was one.
        if let Err(error) = account::tell(world, dir, &where_.into_iter().take(ACCOUNTS).collect()).await {
            println!("nothing more can be told of it: {error}");
        }
    }
    println!("{passed} passed, {} failed", failures.len());
    Ok(failures.is_empty())
}
