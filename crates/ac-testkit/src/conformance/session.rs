//! Rules for sessions.

use ac_core::SessionKey;
use ac_storage::{SessionId, Storage, StorageErrorKind::Conflict};

use super::{
    Verdict,
    fixture::{create, ensure, ensure_eq, fails, raw},
};

fn id(controller: &str, key: SessionKey) -> SessionId {
    SessionId { controller: controller.into(), key }
}

/// Saving is a compare-and-set on the version.
pub async fn a_session_is_saved_on_its_version_only(store: &dyn Storage) -> Verdict {
    let id = id("c", SessionKey::new("u"));
    let sessions = store.sessions();
    ensure!(sessions.load(&id).await?.is_none(), "there is a session before it was saved");
    fails(Conflict, "a save of a version that never was", sessions.save(&id, Some(1), &raw("0")?).await)?;
    let first = sessions.save(&id, None, &raw("1")?).await?;
    fails(Conflict, "a second first save", sessions.save(&id, None, &raw("2")?).await)?;
    let second = sessions.save(&id, Some(first), &raw("3")?).await?;
    ensure!(first != second, "version {first} came twice");
    fails(Conflict, "a save on an old version", sessions.save(&id, Some(first), &raw("4")?).await)?;
    let stored = sessions.load(&id).await?;
    ensure_eq!(stored.map(|stored| (stored.version, stored.value.get().to_owned())), Some((second, "3".to_owned())), "the session");
    Ok(())
}

/// The body belongs to the controller.
pub async fn a_session_is_kept_as_it_is(store: &dyn Storage) -> Verdict {
    let id = id("c", SessionKey::scoped("u", "s"));
    let body = raw(r#"{ "b" : 1.0, "a": [ ], "n": 12345678901234567890, "b": "\u0000" }"#)?;
    store.sessions().save(&id, None, &body).await?;
    ensure_eq!(store.sessions().load(&id).await?.map(|stored| stored.value.get().to_owned()), Some(body.get().to_owned()), "the body");
    Ok(())
}

/// Every session of a controller, none of another, in pages that fit together.
pub async fn sessions_are_listed_by_controller(store: &dyn Storage) -> Verdict {
    let keys = [
        SessionKey::new(""),
        SessionKey::new("u"),
        SessionKey::scoped("u", ""),
        SessionKey::scoped("u", "s"),
        SessionKey::scoped("u\0", "s"),
        SessionKey::new("u/s"),
        SessionKey::new("v"),
    ];
    for controller in ["c", "c2", ""] {
        for key in &keys {
            store.sessions().save(&id(controller, key.clone()), None, &raw(&format!("{:?}", controller))?).await?;
        }
    }
    for controller in ["c", "c2", ""] {
        let mut all = store.sessions().list(&controller.into(), None, 0).await?.items;
        for limit in [1, 3, 7, 8] {
            let (mut found, mut after) = (Vec::new(), None::<String>);
            loop {
                let page = store.sessions().list(&controller.into(), after.as_deref(), limit).await?;
                ensure!(page.items.len() <= limit, "a page of {limit} has {} sessions", page.items.len());
                found.extend(page.items);
                after = page.next;
                if after.is_none() || found.len() > all.len() {
                    break;
                }
            }
            ensure_eq!(found, all, "pages of {limit}");
        }
        all.sort();
        let mut expected: Vec<_> = keys.iter().map(|key| id(controller, key.clone())).collect();
        expected.sort();
        ensure_eq!(all, expected, "sessions of {controller:?}");
    }
    Ok(())
}

/// Threads belong to the resource, not to the session.
pub async fn a_deleted_session_is_gone_and_its_threads_stay(store: &dyn Storage) -> Verdict {
    let (id, other) = (id("c", SessionKey::new("resource")), id("c", SessionKey::scoped("resource", "s")));
    create(store, "t").await?;
    store.sessions().delete(&id).await?;
    store.sessions().save(&id, None, &raw("1")?).await?;
    store.sessions().save(&other, None, &raw("1")?).await?;
    store.sessions().delete(&id).await?;
    ensure!(store.sessions().load(&id).await?.is_none(), "the session is still there");
    ensure_eq!(store.sessions().list(&"c".into(), None, 0).await?.items, [other], "sessions that are left");
    ensure!(store.threads().get(&"t".into()).await?.is_some(), "the thread went with the session");
    store.sessions().save(&id, None, &raw("2")?).await?;
    Ok(())
}
