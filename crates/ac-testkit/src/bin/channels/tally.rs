//! Counting what people can see, and what the tool really did.

use std::collections::HashMap;

use crate::{Failure, model::named, people::World};

/// Prints what failed and the last line; whether all is well.
pub(crate) async fn report(world: &World, written: &str, ended: bool) -> Result<bool, Failure> {
    let (mut passed, mut failures) = (0_u64, vec![]);
    let mut check = |fine: bool, what: String| {
        if fine {
            passed += 1;
        } else {
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
    for (channel, id) in &log.said {
        let times = answers.get(&(channel.as_str(), id.as_str())).copied().unwrap_or(0);
        check(times == 1, format!("{channel}: {id} was answered {times} times"));
    }
    for ((channel, id), times) in &answers {
        let known = log.said.iter().any(|(where_, said)| where_ == channel && said == id);
        check(known || *times == 0, format!("{channel}: an answer to {id}, which nobody said"));
    }
    for id in &log.approved {
        let times = writes.get(id.as_str()).copied().unwrap_or(0);
        let fine = times == 1 || (times == 0 && log.doubted.contains(id));
        check(fine, format!("{id} was approved and ran {times} times"));
    }
    for id in &log.declined {
        let times = writes.get(id.as_str()).copied().unwrap_or(0);
        check(times == 0, format!("{id} was declined and ran {times} times"));
    }
    for id in writes.keys() {
        check(log.approved.iter().any(|known| known == id), format!("{id} ran, and nobody approved it"));
    }
    check(log.slowest_ms < 3_000, format!("an answer to a platform took {} ms", log.slowest_ms));
    check(ended, "the last life did not end by itself".to_owned());
    for complaint in &log.complaints {
        check(false, complaint.clone());
    }
    println!(
        "{} messages, {} approvals, {} declined, {} in doubt, {} posts, {} notices; the slowest answer took {} ms",
        log.said.len(),
        log.approved.len(),
        log.declined.len(),
        log.doubted.len(),
        shown.len(),
        world.platforms.notices().len(),
        log.slowest_ms
    );
    for failure in failures.iter().take(50) {
        println!("FAILED {failure}");
    }
    println!("{passed} passed, {} failed", failures.len());
    Ok(failures.is_empty())
}
