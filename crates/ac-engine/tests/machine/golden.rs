//! Stored snapshots load for ever. Files of a schema version are never changed; a new version gets files of its own.

use std::{collections::BTreeMap, fs, path::PathBuf};

use ac_core::{SuspendKind, ToolEffect, event::PendingKind};
use ac_engine::{Answer, Gate, Input, Phase, Posture, RunSnapshot, SlotStatus, StartRun};
use serde_json::{Value, json};

use crate::support::*;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Runs in which everything that a snapshot can hold is held by one.
fn specimens() -> BTreeMap<&'static str, RunSnapshot> {
    let mut profile = profile();
    profile.instructions = Some("Be brief.".into());
    profile.tools = vec!["tool".into(), "other".into()];
    profile.limits.tokens = Some(10_000);
    profile.limits.millis = Some(60_000);
    profile.request_context.insert("tenant".into(), json!("acme"));
    profile.options.insert("mock".into(), json!({ "effort": "low" }));
    profile.host.insert("note".into(), json!(1));
    let child = StartRun {
        run: "r~0.c".into(),
        thread: "r~0.c".into(),
        parent: Some(("r".into(), "c".into())),
        profile,
        messages: vec![user("f1"), note("n1")],
        from_queue: true,
    };
    let ready = RunSnapshot::start(child, at(5));

    let mut retrying = sampling();
    ok(&mut retrying, message("m1"));
    let input = failed(&retrying, true, "some");
    ok(&mut retrying, input);

    let mut stopping = sampling();
    ok(&mut stopping, message("m1"));
    ok(&mut stopping, Input::Abort { go_on: true });

    let mut calls = tools(&[
        ask("a"),
        run_it("b"),
        run_it("c"),
        Ask("d", Gate::Run, ToolEffect::Idempotent),
        run_it("e"),
        deny("f"),
        Ask("g", Gate::Ask, ToolEffect::ReadOnly),
    ]);
    let input = answer(wait_n("g", 1), grant());
    ok(&mut calls, input);
    ok(&mut calls, Input::Dispatch);
    for (call, kind) in [("b", SuspendKind::Question), ("c", SuspendKind::Plan), ("d", SuspendKind::Question)] {
        let input = suspended(&calls, call, kind);
        ok(&mut calls, input);
    }
    let input = answer(wait_n("d", 1), reply(json!({ "text": "yes" })));
    ok(&mut calls, input);
    let input = delegated(&calls, "e");
    ok(&mut calls, input);
    ok(&mut calls, cancel("g"));

    let mut doubt = tools(&[run_it("a"), run_it("b"), ask("c"), ask("d"), ask("e")]);
    ok(&mut doubt, Input::Dispatch);
    let input = suspended(&doubt, "b", SuspendKind::Question);
    ok(&mut doubt, input);
    let input = answer(wait_n("b", 1), reply(json!(false)));
    ok(&mut doubt, input);
    ok(&mut doubt, Input::Dispatch);
    let input = answer(wait_n("c", 1), Answer::Decline { reason: Some("no".into()) });
    ok(&mut doubt, input);
    let recovery = recover(&doubt);
    ok(&mut doubt, recovery);
    ok(&mut doubt, cancel("d"));
    ok(&mut doubt, message("m1"));
    let input = answer(wait_n("a", 1), Answer::RecordFailed);
    ok(&mut doubt, input);
    let input = answer(wait_n("b", 2), Answer::RunAgain);
    ok(&mut doubt, input);
    ok(&mut doubt, Input::Dispatch);
    let recovery = recover(&doubt);
    ok(&mut doubt, recovery);

    let mut failed_run = sampling();
    let input = failed(&failed_run, false, "some");
    ok(&mut failed_run, input);

    let mut aborted = doubt.clone();
    ok(&mut aborted, Input::Abort { go_on: false });

    BTreeMap::from([
        ("ready", ready),
        ("retrying", retrying),
        ("stopping", stopping),
        ("calls", calls),
        ("doubt", doubt),
        ("failed", failed_run),
        ("aborted", aborted),
    ])
}

/// A field that is renamed, dropped or written otherwise shows here, before somebody's stored run does not load.
#[test]
fn what_is_written_today_is_the_form_of_its_schema() {
    let folder = folder().join(format!("v{}", RunSnapshot::SCHEMA));
    for (name, run) in specimens() {
        let path = folder.join(format!("{name}.json"));
        let written = serde_json::to_value(&run).unwrap();
        let Ok(kept) = fs::read_to_string(&path) else {
            // Only files that are not there are written: what was released stays as it is.
            assert!(std::env::var_os("NEW_GOLDEN").is_some(), "{path:?} is missing: run with NEW_GOLDEN=1 for a new schema version");
            fs::create_dir_all(&folder).unwrap();
            fs::write(&path, serde_json::to_string_pretty(&written).unwrap() + "\n").unwrap();
            continue;
        };
        let kept: Value = serde_json::from_str(&kept).unwrap();
        assert_eq!(written, kept, "{name}: a field that is new must be left out while it has its default; else raise the schema");
    }
}

#[test]
fn every_snapshot_ever_written_loads_and_goes_on() {
    let mut loaded = 0;
    for version in fs::read_dir(folder()).unwrap() {
        for file in fs::read_dir(version.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let mut run: RunSnapshot =
                serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap_or_else(|e| panic!("{path:?}: {e}"));
            let again: RunSnapshot = serde_json::from_str(&serde_json::to_string(&run).unwrap()).unwrap();
            assert_eq!(run, again, "{path:?}");
            // It is taken over, and stopped: whatever it was doing, it comes to its end.
            let recovery = recover(&run);
            ok(&mut run, recovery);
            ok(&mut run, Input::Abort { go_on: false });
            for slot in run.slots().to_vec() {
                if let SlotStatus::Child { .. } = slot.status {
                    ok(&mut run, child_finished(slot.call.as_str()));
                }
            }
            let upto = run.next_outbox - 1;
            ok(&mut run, Input::Applied { upto });
            assert!(run.is_closed(), "{path:?}: {:?}", run.phase);
            loaded += 1;
        }
    }
    assert!(loaded >= 8);
}

#[test]
fn the_waits_of_a_stored_run_are_what_they_were() {
    let load = |name: &str| -> RunSnapshot {
        serde_json::from_str(&fs::read_to_string(folder().join(format!("v1/{name}.json"))).unwrap()).unwrap()
    };
    let waits = |run: &RunSnapshot| run.waits().iter().map(|wait| (wait.id.to_string(), wait.kind)).collect::<Vec<_>>();
    let calls = load("calls");
    assert_eq!(
        waits(&calls),
        [
            ("r/0/a#1".to_owned(), PendingKind::Approval),
            ("r/0/b#1".to_owned(), PendingKind::Question),
            ("r/0/c#1".to_owned(), PendingKind::Plan)
        ]
    );
    assert_eq!(calls.call_part(&"a".into()).unwrap().args, json!({ "of": "a" }));
    let doubt = load("doubt");
    assert_eq!(waits(&doubt), [("r/0/b#3".to_owned(), PendingKind::InDoubt)]);
    assert_eq!(doubt.posture(), Posture::Parked);
}

/// Written by hand: only what has no default, and fields that nobody knows any more or not yet.
#[test]
fn a_sparse_snapshot_with_unknown_fields_loads() {
    let run: RunSnapshot = serde_json::from_str(&fs::read_to_string(folder().join("v1/sparse.json")).unwrap()).unwrap();
    assert_eq!((run.schema, &run.phase), (1, &Phase::Sampling));
    assert_eq!(run.profile.limits, ac_engine::Limits::default());
}

#[test]
fn a_snapshot_of_a_newer_schema_is_refused_with_what_to_do() {
    let mut newer = serde_json::to_value(ready()).unwrap();
    newer["schema"] = json!(RunSnapshot::SCHEMA + 1);
    let error = serde_json::from_value::<RunSnapshot>(newer).unwrap_err().to_string();
    assert!(error.contains("continue it with the newer version"), "{error}");
}
