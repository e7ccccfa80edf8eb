//! The store keeps to every rule, and what it acknowledged is there after it was opened again.

use agent_controller::{
    storage::{Expect, Kv as _, KvStorage, Write},
    testkit::{kv_conformance, storage_conformance},
};
use store::LogKv;

fn fresh() -> LogKv {
    // The file is open; its folder may go.
    LogKv::open(&tempfile::tempdir().unwrap().path().join("log")).unwrap()
}

kv_conformance!(rows, async { fresh() });
storage_conformance!(domain, async { KvStorage::connect(fresh(), "the log").await.unwrap() });

#[tokio::test(flavor = "current_thread")]
async fn a_file_with_half_a_line_opens_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let write = |value: &str| vec![Write { key: b"k".to_vec(), expect: Expect::Any, value: Some(value.as_bytes().to_vec()) }];
    let kv = LogKv::open(&path).unwrap();
    kv.write(write("one")).await.unwrap();
    drop(kv);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.extend_from_slice(br#"[{"key":[107],"exp"#);
    std::fs::write(&path, bytes).unwrap();
    let kv = LogKv::open(&path).unwrap();
    kv.write(write("two")).await.unwrap();
    drop(kv);
    let row = LogKv::open(&path).unwrap().get(b"k").await.unwrap().unwrap();
    assert_eq!((row.version, &*row.value), (2, &b"two"[..]));
}
