use ac_core::Timestamp;
use ac_storage::{KvStorage, MemoryKv, Storage, ThreadRecord};

use super::*;
use crate::store::{HookedKv, HookedStorage};

#[tokio::test]
async fn calls_are_written_down_at_both_levels() {
    let (calls, batches) = (Recorder::new(), Recorder::new());
    let store = HookedStorage::new(KvStorage::over(HookedKv::new(MemoryKv::default(), batches.clone())), calls.clone());
    let thread = ThreadRecord::new("t".into(), "r".into(), Timestamp::default());
    store.threads().create(&thread).await.unwrap();
    store.threads().create(&thread).await.unwrap_err();
    store.state().put(&"t".into(), "tasks", None, &serde_json::json!("secret")).await.unwrap();
    assert_eq!(calls.count(Op::CreateThread), 2);
    let found = format!("{:?}", calls.take());
    assert_eq!(found, "[CreateThread t, CreateThread t: Exists, PutState t tasks on nothing]");
    let batches = batches.take();
    assert!(format!("{:?}", batches[0]).starts_with("KvWrite +t/t\\x00\\x01@0 +h/t\\x00\\x01@0 "), "{:?}", batches[0]);
    assert!(!format!("{batches:?}").contains("secret"));
    assert!(calls.take().is_empty());
}
