use ac_core::{SessionKey, permission::GrantTarget};
use ac_storage::{MemoryStorage, Storage};

use super::*;

fn id() -> SessionId {
    SessionId { controller: "c".into(), key: SessionKey::new("r") }
}

fn fresh() -> SessionRecord {
    SessionRecord::new("plan".into(), Timestamp::from_millis(1))
}

async fn set_mode(cell: &mut Cell, store: &dyn SessionStore, mode: &str) -> Result<(), ControllerError> {
    cell.update(store, &id(), |record| {
        record.mode = mode.into();
        Ok(Change::Write(()))
    })
    .await
}

#[tokio::test]
async fn two_processes_change_one_record_and_lose_nothing() {
    let storage = MemoryStorage::new();
    let store = storage.sessions();
    let mut a = Cell::load(store, &id(), fresh()).await.unwrap();
    let mut b = Cell::load(store, &id(), fresh()).await.unwrap();
    set_mode(&mut a, store, "build").await.unwrap();
    b.update(store, &id(), |record| {
        record.grant(&GrantTarget::Tool("t".into()), "g".into(), Timestamp::default());
        Ok(Change::Write(()))
    })
    .await
    .unwrap();
    a.refresh(store, &id()).await.unwrap();
    assert_eq!(a.record, b.record);
    assert_eq!((a.record.mode.as_str(), a.record.grants.len()), ("build", 1));
}

#[tokio::test]
async fn a_record_of_a_newer_version_and_a_broken_one_are_refused_and_kept() {
    let storage = MemoryStorage::new();
    let store = storage.sessions();
    for (body, code) in [
        (r#"{"schema":2,"mode":{"new":"form"}}"#, "session.newer_schema"),
        (r#"{"schema":1}"#, "storage.corrupt"),
        ("[]", "storage.corrupt"),
    ] {
        let raw = RawValue::from_string(body.to_owned()).unwrap();
        let version = store.load(&id()).await.unwrap().map(|stored| stored.version);
        store.save(&id(), version, &raw).await.unwrap();
        let error = Cell::load(store, &id(), fresh()).await.unwrap_err();
        assert_eq!(error.code(), code);
        assert_eq!(store.load(&id()).await.unwrap().unwrap().value.get(), body);
    }
}

#[test]
fn an_outbox_item_counts_once_and_the_memory_of_it_is_bounded() {
    let mut record = fresh();
    let run = RunId::from("r");
    record.mark_applied(&run, 2);
    assert!(record.is_applied(&run, 1) && record.is_applied(&run, 2) && !record.is_applied(&run, 3));
    (0..1000).for_each(|n| record.mark_applied(&format!("r{n}").into(), 1));
    assert_eq!(record.applied.len(), SessionRecord::APPLIED);
}

#[test]
fn the_stored_form_of_schema_1() {
    let mut record = fresh();
    record.thread = Some("t".into());
    record.choose(&"t".into(), |choice| {
        choice.models.insert("plan".into(), "p/m".into());
    });
    record.choose(&"left".into(), |choice| choice.mode = Some("build".into()));
    record.choose(&"nothing".into(), |_| {});
    record.grant(&GrantTarget::Category(ac_core::ToolCategory::Edit), "g".into(), Timestamp::from_millis(5));
    record.queue.push(FollowUp {
        thread: "t".into(),
        message: Message::user("m", "later", Timestamp::from_millis(6)),
        request_context: Map::new(),
        unattended: false,
    });
    record.mark_applied(&"r".into(), 3);
    let raw = raw(&record).unwrap();
    insta::assert_snapshot!(raw.get(), @r#"{"schema":1,"thread":"t","mode":"plan","mode_at":1,"threads":{"left":{"mode":"build"},"t":{"models":{"plan":"p/m"}}},"rules":{"categories":{},"tools":{}},"grants":[{"id":"g","target":{"category":"edit"},"width":"session","at":5}],"queue":[{"thread":"t","message":{"id":"m","role":"user","parts":[{"type":"text","text":"later"}],"at":6}}],"applied":[["r",3]]}"#);
    assert_eq!(read(&raw).unwrap(), record);
}
