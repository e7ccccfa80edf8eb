//! Command lines that carry a second command past an allow rule. Each one first passes a check of its beginning and does its harm; then the
//! rules judge it, and must not allow it.

use std::{path::PathBuf, sync::Arc};

use ac_core::{CancelToken, Policy};
use ac_workspace::{CommandRequest, Isolation, LocalSandbox, LocalSandboxOptions, NoSink, Sandbox, Supervisor, rules::ToolRules};
use serde_json::json;

use crate::Place;

/// Each begins with what is allowed, `cat own`, and writes outside.
const LINES: [&str; 28] = [
    "cat own; touch $out/pwned",
    "cat own;touch $out/pwned",
    "cat own && touch $out/pwned",
    "cat own || true; touch $out/pwned",
    "cat own | tee $out/pwned",
    "cat own & touch $out/pwned",
    "cat own\ntouch $out/pwned",
    "cat own\n\n  touch $out/pwned",
    "cat own $(touch $out/pwned)",
    "cat own `touch $out/pwned`",
    "cat own \"$(touch $out/pwned)\"",
    "cat own \"`touch $out/pwned`\"",
    "cat own ${x:-$(touch $out/pwned)}",
    "cat own $(($(touch $out/pwned; echo 1)))",
    "cat own > $out/pwned",
    "cat own >> $out/pwned",
    "cat own >| $out/pwned",
    "cat own 1<> $out/pwned",
    "cat own 2> $out/pwned",
    "cat own # comment\ntouch $out/pwned",
    "cat own '\n' 2>/dev/null; touch $out/pwned",
    "cat own \\\n; touch $out/pwned",
    "cat own <<EOF\n$(touch $out/pwned)\nEOF",
    "cat own; eval touch $out/pwned",
    "cat own; sh -c 'touch $out/pwned'",
    "cat own; { touch $out/pwned; }",
    "cat own; if true; then touch $out/pwned; fi",
    "cat own -- ; touch $out/pwned",
];

#[test]
fn nothing_rides_along_behind_an_allowed_command() {
    let rules = ToolRules::new().with("execute_command(cat own*)", Policy::Allow).unwrap();
    assert_eq!(rules.judge("execute_command", &json!({"command": "cat own"})), Some(Policy::Allow));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for line in LINES {
        let place = Place::new();
        let before = place.state();
        let command = line.replace("$out", &place.outside.display().to_string());
        assert!(command.starts_with("cat own"), "the naive check would refuse {line:?}");
        let mut options = LocalSandboxOptions::default();
        options.isolation = Isolation::Off;
        options.supervisor = Supervisor::Program(PathBuf::from(env!("CARGO_BIN_EXE_ac-supervisor")));
        let sandbox = LocalSandbox::open_with(&place.base, options).unwrap();
        runtime.block_on(sandbox.run(CommandRequest::new(&command), Arc::new(NoSink), CancelToken::new())).unwrap();
        for _ in 0..50 {
            if place.changed(&before) {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        assert!(place.changed(&before), "{line:?} does no harm");
        let judged = rules.judge("execute_command", &json!({ "command": command }));
        assert_ne!(judged, Some(Policy::Allow), "{line:?} was allowed");
    }
    println!("{} smuggled commands, none allowed", LINES.len());
}
