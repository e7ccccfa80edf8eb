use super::*;
use crate::{MemoryKv, MemoryStorage, Versioned};

async fn put(store: &MemoryStorage, key: &[u8], value: &[u8]) {
    store.kv().write(vec![Write { key: key.to_vec(), expect: Expect::Absent, value: Some(value.to_vec()) }]).await.unwrap();
}

async fn rows(store: &MemoryStorage) -> Vec<(Vec<u8>, Versioned)> {
    store.kv().scan(Scan { limit: 9999, ..Scan::default() }).await.unwrap()
}

#[tokio::test]
async fn what_is_exported_is_imported_byte_by_byte() {
    let store = MemoryStorage::new();
    let all: Vec<u8> = (0..=255).collect();
    put(&store, &all, b"{\"schema\":1,\"row\":{ \"spaced\" : 1.0 }}").await;
    put(&store, b"a", b"no JSON").await;
    put(&store, b"b", b"{\n}").await;
    put(&store, b"c", &all).await;
    put(&store, b"d", b" 1 ").await;
    put(&store, b"e", b"").await;
    for n in 0..300_u32 {
        put(&store, &n.to_be_bytes(), b"1").await;
    }
    let mut text = Vec::new();
    assert_eq!(store.export(&mut text).await.unwrap(), 306);
    assert_eq!(text.iter().filter(|byte| **byte == b'\n').count(), 307);
    let other = KvStorage::connect(MemoryKv::default(), "the other store").await.unwrap();
    assert_eq!(other.import(&mut &text[..]).await.unwrap(), 306);
    let found: Vec<_> = rows(&other).await.into_iter().filter(|(key, _)| *key != keys::layout()).collect();
    assert_eq!(found, rows(&store).await);
    assert_eq!(other.import(&mut &text[..]).await.unwrap_err().kind(), StorageErrorKind::Exists);
}

#[tokio::test]
async fn what_is_no_export_is_refused_with_its_line() {
    let header = r#"{"agent-controller store layout":1}"#;
    for (text, kind, line) in [
        ("", StorageErrorKind::Corrupt, "line 1"),
        ("nonsense", StorageErrorKind::Corrupt, "line 1"),
        (r#"{"agent-controller store layout":99}"#, StorageErrorKind::NewerSchema, "layout 99"),
        (&format!("{header}\n{{\"key\":\"a\"}}"), StorageErrorKind::Corrupt, "line 2"),
        (&format!("{header}\n{{\"key\":\"a%2\",\"row\":1}}"), StorageErrorKind::Corrupt, "line 2"),
        (&format!("{header}\n{{\"key\":\"a\",\"row\":1,\"bytes\":\"00\"}}"), StorageErrorKind::Corrupt, "line 2"),
        (&format!("{header}\n{{\"key\":\"a\",\"bytes\":\"0\"}}"), StorageErrorKind::Corrupt, "line 2"),
        (&format!("{header}\n{{\"key\":\"a\",\"row\":1}}\n{{\"key\":\"b\",\"bytes\":\"0g\"}}"), StorageErrorKind::Corrupt, "line 3"),
    ] {
        let error = MemoryStorage::new().import(&mut text.as_bytes()).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.to_string().contains(line), "{error}");
    }
}
