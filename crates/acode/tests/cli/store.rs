use serde_json::json;

use crate::harness::Home;

#[test]
fn a_store_is_checked_mended_and_compacted_and_keeps_what_waits() {
    let home = Home::new();
    assert!(home.run(&["store", "check"], "").exits(0).out.contains("No conversations yet"));
    assert!(!home.data().join("store").exists(), "looking makes nothing");
    home.run(&["exec", "Write notes"], "").exits(2);
    let before = home.pending();
    let checked = home.run(&["store", "check", "--json"], "").exits(0).lines();
    assert_eq!(checked[0]["problems"], json!([]));
    assert!(checked[0]["rows"].as_u64().unwrap() > 3, "{checked:?}");
    let mended = home.run(&["store", "repair", "--json"], "").exits(0).lines();
    assert_eq!((&mended[0]["rows"], &mended[0]["mended"]), (&checked[0]["rows"], &json!(0)));
    let compacted = home.run(&["store", "compact", "--json"], "").exits(0).lines();
    assert_eq!(compacted[0]["rows"], checked[0]["rows"]);
    assert_eq!(home.pending(), before);
}

#[test]
fn a_store_that_somebody_uses_is_left_alone() {
    let home = Home::new();
    let mut live = home.start(&[]);
    live.send("Write notes\n");
    live.wait("Your answer:");
    for command in ["check", "repair", "compact", "set-aside"] {
        let ended = home.run(&["store", command], "").exits(1);
        assert!(ended.err.contains(&format!("process {}", live.id())) && ended.err.contains("storage.locked"), "{command}: {}", ended.err);
    }
    live.close_input();
    live.end().exits(2);
    assert_eq!(home.waiting().1, "question");
}

#[test]
fn a_damaged_store_is_opened_with_what_is_left_or_moved_away_only_when_asked() {
    let home = Home::new();
    home.run(&["exec", "Write notes"], "").exits(2);
    let db = home.data().join("store/sled/db");
    let length = db.metadata().unwrap().len();
    // The disk lost the end of what was written.
    std::fs::File::options().write(true).open(&db).unwrap().set_len(length / 8).unwrap();
    for command in [&["pending"][..], &["store", "check"], &["store", "repair"], &["store", "compact"]] {
        let ended = home.run(command, "").exits(1);
        assert!(ended.err.contains("set-aside") && ended.err.contains("--accept-loss"), "{command:?}: {}", ended.err);
    }
    let ended = home.run(&["store", "set-aside", "--json"], "").exits(0).lines();
    let moved = std::path::PathBuf::from(ended[0]["movedTo"].as_str().unwrap());
    assert!(moved.join("sled/db").exists() && !home.data().join("store").exists());
    assert!(home.pending().is_empty());
    // What was moved away can still be looked into.
    std::fs::remove_dir_all(home.data().join("store")).unwrap();
    std::fs::rename(&moved, home.data().join("store")).unwrap();
    let opened = home.run(&["store", "repair", "--accept-loss", "--json"], "");
    assert!(opened.code == Some(0) || opened.code == Some(1), "{opened:?}");
    assert!(opened.lines()[0]["rows"].is_u64(), "{opened:?}");
    home.run(&["pending"], "").exits(0);
}
