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
