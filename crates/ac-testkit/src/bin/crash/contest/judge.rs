//! Whether two processes moved their runs as one would have.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use ac_core::Role;
use ac_storage::{
    KvStorage, Storage,
    domain::{MessageQuery, ThreadQuery},
};
use ac_testkit::store::FileKv;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Failure, check, desk::Folder};

/// A commit that was made.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Noted {
    /// Which process made it.
    pub(crate) by: String,
    pub(crate) run: String,
    /// The version of the record that it made.
    pub(crate) version: u64,
    pub(crate) epoch: u64,
    /// Who owned the run then.
    pub(crate) owner: String,
}

/// What is wrong. `ends` are the runs whose end was told, by whichever process.
#[tokio::main(flavor = "current_thread")]
pub(super) async fn judge(folder: &Folder, ends: &[String]) -> Result<BTreeSet<String>, Failure> {
    let store = Arc::new(KvStorage::connect(FileKv(folder.shared()), "the shared file").await?);
    let mut wrong = check::whole(&store, folder).await?;
    let commits: Vec<Noted> = check::lines(&folder.commits())?;
    let mut runs: BTreeMap<&str, Vec<&Noted>> = BTreeMap::new();
    for commit in &commits {
        runs.entry(&commit.run).or_default().push(commit);
    }
    let mut taken_over = 0;
    for (run, mut commits) in runs {
        commits.sort_by_key(|commit| commit.version);
        wrong.extend(fenced(run, &commits));
        taken_over += commits.last().map_or(0, |last| last.epoch.saturating_sub(1));
        match ends.iter().filter(|end| *end == run).count() {
            1 => {}
            told => {
                wrong.insert(format!("the end of run {run} was told {told} times"));
            }
        }
    }
    // Only a run that was taken over asks the model again for a step.
    let asked = check::lines::<Value>(&folder.requests())?.len() as u64;
    let steps = steps(&store).await?;
    if asked > steps + taken_over {
        wrong.insert(format!("the model was asked {asked} times for {steps} steps, and runs were taken over {taken_over} times"));
    }
    Ok(wrong)
}

/// No version was written twice, no epoch comes back, and each has one owner.
fn fenced(run: &str, commits: &[&Noted]) -> Vec<String> {
    let mut wrong = vec![];
    let mut owners: BTreeMap<u64, &str> = BTreeMap::new();
    let mut newest = 0;
    for (at, commit) in (1u64..).zip(commits) {
        if commit.version != at {
            wrong.push(format!("commit {at} of run {run} is of version {}: one was lost, or made twice", commit.version));
            break;
        }
        if commit.epoch < newest {
            wrong.push(format!("{} committed run {run} in epoch {} after epoch {newest}", commit.by, commit.epoch));
        }
        newest = newest.max(commit.epoch);
        let owner = owners.entry(commit.epoch).or_insert(&commit.owner);
        if *owner != commit.owner {
            wrong.push(format!("epoch {} of run {run} has two owners", commit.epoch));
        }
    }
    wrong
}

async fn steps(store: &KvStorage<FileKv>) -> Result<u64, Failure> {
    let mut steps = 0;
    for thread in store.threads().list(&ThreadQuery::default()).await?.items {
        let page = store.messages().page(&thread.info.id, &MessageQuery::default()).await?;
        steps += page.items.iter().filter(|stored| stored.message.role == Role::Assistant).count() as u64;
    }
    Ok(steps)
}
