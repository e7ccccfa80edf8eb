use super::*;

fn lease(owner: &str, epoch: u64, expires: i64) -> Lease {
    Lease { owner: owner.into(), epoch, expires: Timestamp::from_millis(expires) }
}

#[test]
fn who_bars_whom_from_a_lease() {
    let now = Timestamp::from_millis(100);
    for (held, wanted, barred) in [
        (lease("a", 3, 101), lease("b", 3, 200), true),
        (lease("a", 4, 101), lease("b", 3, 200), true),
        (lease("a", 2, 101), lease("b", 3, 200), false),
        (lease("a", 3, 100), lease("b", 3, 200), false),
        (lease("a", 4, 100), lease("b", 3, 200), false),
        (lease("a", 3, 101), lease("a", 3, 200), false),
        (lease("a", 2, 101), lease("a", 3, 200), false),
        (lease("a", 4, 101), lease("a", 3, 200), true),
    ] {
        assert_eq!(bars(&held, &wanted, now), barred, "{held:?} {wanted:?}");
    }
}

/// B-36: a message that does not read in the middle of a thread is told; the thread is not cut there, and what can be read is all there.
#[tokio::test]
async fn a_damaged_message_in_the_middle_cuts_no_thread_in_silence() {
    let store = crate::MemoryStorage::new();
    crate::ThreadStore::create(&store, &crate::ThreadRecord::new("t".into(), "u".into(), Timestamp::default())).await.unwrap();
    for n in 0..5_u64 {
        let message = ac_core::Message::user(format!("m{n}"), "words", Timestamp::default());
        crate::MessageStore::put(&store, &"t".into(), &message, n + 1).await.unwrap();
    }
    let damage = Write { key: keys::message(&"t".into(), 2), expect: Expect::Any, value: Some(vec![0; 512]) };
    store.kv().write(vec![damage]).await.unwrap();
    let page = crate::MessageStore::page(&store, &"t".into(), &crate::domain::MessageQuery::default()).await;
    assert_eq!(page.unwrap_err().kind(), StorageErrorKind::Corrupt);
    let after = crate::domain::MessageQuery { after: Some(crate::record::MessageCursor::Position(2)), ..Default::default() };
    assert_eq!(crate::MessageStore::page(&store, &"t".into(), &after).await.unwrap().items.len(), 2, "what stands behind it is there");
    assert_eq!(store.verify().await.unwrap().problems.len(), 3, "the row, its entry in the index, the count of the head");
}
