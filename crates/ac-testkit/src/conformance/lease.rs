//! Rules for leases (`R3`).

use ac_storage::{Lease, RunStage, Storage};

use super::{
    Verdict, Violation,
    fixture::{at, commit, create, ensure, ensure_eq, record},
};

fn lease(owner: &str, epoch: u64, expires: i64) -> Lease {
    Lease { owner: owner.into(), epoch, expires: at(expires) }
}

async fn take(store: &dyn Storage, wanted: &Lease, now: i64) -> Result<bool, Violation> {
    Ok(store.runs().take_lease(&"r".into(), wanted, at(now)).await?)
}

async fn held(store: &dyn Storage) -> Result<Option<Lease>, Violation> {
    Ok(store.runs().lease(&"r".into()).await?)
}

/// Nobody takes what another one holds.
pub async fn a_lease_has_one_holder(store: &dyn Storage) -> Verdict {
    ensure_eq!(held(store).await?, None, "before anybody took it");
    ensure!(take(store, &lease("a", 3, 100), 0).await?, "a free lease was refused");
    ensure_eq!(held(store).await?, Some(lease("a", 3, 100)), "the lease");
    ensure!(!take(store, &lease("b", 3, 200), 99).await?, "a held lease was given to another owner");
    ensure!(!take(store, &lease("b", 2, 200), 99).await?, "a held lease was given to another owner in an older epoch");
    ensure_eq!(held(store).await?, Some(lease("a", 3, 100)), "the lease after the attempts");
    ensure!(store.runs().take_lease(&"r2".into(), &lease("b", 1, 100), at(0)).await?, "the lease of another run was refused");
    Ok(())
}

/// A holder that died is waited for until its time is over, in whatever epoch.
pub async fn a_lease_ends_with_its_time(store: &dyn Storage) -> Verdict {
    ensure!(take(store, &lease("a", 3, 100), 0).await?, "a free lease was refused");
    ensure!(take(store, &lease("b", 3, 200), 100).await?, "a lease whose time is over was refused");
    ensure_eq!(held(store).await?, Some(lease("b", 3, 200)), "the lease");
    ensure!(take(store, &lease("a", 2, 300), 200).await?, "a lease whose time is over was refused in an older epoch");
    Ok(())
}

/// Who took the run over need not wait for the lease of who had it before.
pub async fn a_lease_of_an_older_epoch_is_void(store: &dyn Storage) -> Verdict {
    ensure!(take(store, &lease("a", 3, 100), 0).await?, "a free lease was refused");
    ensure!(take(store, &lease("b", 4, 100), 1).await?, "a lease of an older epoch was in the way");
    ensure!(!take(store, &lease("a", 3, 300), 2).await?, "an older epoch got the lease back");
    ensure_eq!(held(store).await?, Some(lease("b", 4, 100)), "the lease");
    Ok(())
}

/// Renewing is taking again.
pub async fn a_lease_is_renewed_by_its_holder(store: &dyn Storage) -> Verdict {
    ensure!(take(store, &lease("a", 3, 100), 0).await?, "a free lease was refused");
    ensure!(take(store, &lease("a", 3, 200), 50).await?, "the holder could not renew");
    ensure!(take(store, &lease("a", 4, 300), 60).await?, "the holder could not renew in a newer epoch");
    ensure_eq!(held(store).await?, Some(lease("a", 4, 300)), "the lease");
    ensure!(!take(store, &lease("a", 3, 400), 70).await?, "the holder's own older driver pushed the newer lease aside");
    Ok(())
}

/// Giving back frees the lease at once; who does not hold it changes nothing.
pub async fn only_the_holder_gives_a_lease_back(store: &dyn Storage) -> Verdict {
    store.runs().release_lease(&"r".into(), &"a".into(), 3).await?;
    ensure!(take(store, &lease("a", 3, 100), 0).await?, "a free lease was refused");
    store.runs().release_lease(&"r".into(), &"b".into(), 3).await?;
    store.runs().release_lease(&"r".into(), &"a".into(), 2).await?;
    ensure_eq!(held(store).await?, Some(lease("a", 3, 100)), "the lease after others gave it back");
    store.runs().release_lease(&"r".into(), &"a".into(), 3).await?;
    ensure_eq!(held(store).await?, None, "the lease after its holder gave it back");
    ensure!(take(store, &lease("b", 3, 100), 1).await?, "a lease that was given back was refused");
    Ok(())
}

/// The commit that closes a run gives its lease back, so that no write of its own is needed for that.
pub async fn a_closed_run_has_no_lease(store: &dyn Storage) -> Verdict {
    create(store, "t").await?;
    let version = commit(store, None, &record("r", "t", RunStage::Open, 1)?, &[]).await?;
    ensure!(take(store, &lease("a", 1, 100), 0).await?, "a free lease was refused");
    let version = commit(store, Some(version), &record("r", "t", RunStage::Finished, 2)?, &[]).await?;
    ensure_eq!(held(store).await?, Some(lease("a", 1, 100)), "the lease of a finished run");
    commit(store, Some(version), &record("r", "t", RunStage::Closed, 3)?, &[]).await?;
    ensure_eq!(held(store).await?, None, "the lease of a closed run");
    Ok(())
}

/// At the same moment.
pub async fn of_many_who_want_a_lease_one_gets_it(store: &dyn Storage) -> Verdict {
    for round in 1..=5 {
        let wanted: Vec<_> = (0..16).map(|n| lease(&format!("owner {n}"), round, 100)).collect();
        let outcomes = futures::future::join_all(wanted.iter().map(|wanted| take(store, wanted, 0))).await;
        let mut winners = Vec::new();
        for (wanted, outcome) in wanted.iter().zip(outcomes) {
            if outcome? {
                winners.push(wanted);
            }
        }
        let [winner] = winners[..] else {
            return Err(Violation::new(format!("{} of 16 owners got the lease", winners.len())));
        };
        ensure_eq!(held(store).await?.as_ref(), Some(winner), "the lease");
    }
    Ok(())
}
