use super::*;

const KEYS: [&[u8]; 7] = [b"", b"a", b"a\0", b"a\xff", b"b", b"\xff", b"\xff\xff"];

#[tokio::test]
async fn a_scan_is_what_filtering_all_keys_by_hand_gives() {
    let kv = MemoryKv::default();
    for key in KEYS {
        kv.write(vec![Write { key: key.to_vec(), expect: crate::Expect::Any, value: Some(Vec::new()) }]).await.unwrap();
    }
    for prefix in KEYS {
        for after in std::iter::once(None).chain(KEYS.map(Some)) {
            for reverse in [false, true] {
                for limit in [0, 1, 9] {
                    let mut expected: Vec<_> = KEYS
                        .into_iter()
                        .filter(|key| {
                            key.starts_with(prefix) && after.is_none_or(|after| if reverse { *key < after } else { *key > after })
                        })
                        .collect();
                    if reverse {
                        expected.reverse();
                    }
                    expected.truncate(limit);
                    let scan = Scan { prefix: prefix.to_vec(), after: after.map(<[u8]>::to_vec), limit, reverse };
                    let found = kv.scan(scan.clone()).await.unwrap();
                    assert_eq!(found.iter().map(|(key, _)| &key[..]).collect::<Vec<_>>(), expected, "{scan:?}");
                }
            }
        }
    }
}
