use super::*;

#[test]
fn there_is_a_block_for_each_thirty_two_messages() {
    let count = |messages| Blocks::of(messages).map(Blocks::count);
    assert_eq!([0, 1, 32, 33, 1000, 100_000].map(count), [None, Some(1), Some(1), Some(2), Some(32), Some(3125)]);
}

/// It is stored where an id is, so this must never change.
#[test]
fn an_id_falls_into_the_same_block_for_ever() {
    let blocks = Blocks::of(33 * 32).unwrap();
    let found = ["", "m0", "m1", "run/1", "\u{e9}"].map(|id| blocks.of_id(&id.into()));
    // The first eight bytes of the SHA-256 of the id, modulo 33.
    assert_eq!(found, [25, 15, 18, 16, 15]);
}

#[test]
fn ids_are_spread_evenly() {
    let blocks = Blocks::of(32_000).unwrap();
    let mut sizes = vec![0; 1000];
    for n in 0..32_000 {
        sizes[usize::try_from(blocks.of_id(&format!("run-{n}/1").into())).unwrap()] += 1;
    }
    assert!(sizes.iter().all(|size| (8..70).contains(size)), "{sizes:?}");
}

#[test]
fn a_block_knows_where_its_messages_stand() {
    let block = Block { ids: vec![("b".into(), 0), ("a".into(), 7)] };
    assert_eq!(["a", "b", "c"].map(|id| block.position(&id.into())), [Some(7), Some(0), None]);
}
