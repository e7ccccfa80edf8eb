use std::collections::BTreeMap;

use super::{code_table, event_table, feature_table, filled};
use crate::source::SourceFile;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

#[test]
fn a_generated_part_is_replaced_and_the_rest_stays() {
    let parts = BTreeMap::from([("n", "new\n".to_owned())]);
    let fresh = "a\n<!-- generated: n -->\n\nnew\n\n<!-- end: n -->\nb\n";
    assert_eq!(filled("a\n<!-- generated: n -->\nold\n<!-- end: n -->\nb\n", &parts).as_deref(), Ok(fresh));
    assert_eq!(filled(fresh, &parts).as_deref(), Ok(fresh));
    assert_eq!(filled("<!-- generated: m -->\n", &parts), Err("nothing generates `m`".to_owned()));
    assert_eq!(filled("<!-- generated: n -->\n", &parts), Err("the part `n` has no end".to_owned()));
    assert_eq!(filled("<!-- end: n -->\n", &parts), Err("the end of `n` has no beginning".to_owned()));
}

#[test]
fn features_come_with_their_comments() {
    let manifest = "[package]\n\n[features]\ndefault = [\"a\"]\n# For who wants a.\na = []\n\n[dependencies]\nb = 1\n";
    let table = "| feature | for whom | turns on |\n|---|---|---|\n| `default` |  | `a` |\n| `a` | For who wants a. | nothing more |\n";
    assert_eq!(feature_table(manifest), table);
}

#[test]
fn codes_and_events_come_with_what_their_variants_say() {
    let kinds = "pub enum Kind {\n    /// It went.\n    #[x]\n    Gone,\n    /// Held by\n    /// another.\n    Held(Other),\n}\n";
    let arms = "match self {\n    K::Gone => \"a.gone\",\n    _ => \"No code. At all.\",\n    Kind::Held(Other::Busy) => \"a.busy\",\n}\nErrorInfo::new(\"a.limit\", \"Too far.\")";
    let other = file("crates/ac-b/src/other.rs", "pub enum Other {\n    /// At work.\n    Busy,\n}\n");
    let table = code_table(&[file("crates/ac-a/src/error.rs", &format!("{kinds}{arms}")), other]);
    for row in ["| `a.gone` | It went. | `ac-a` |", "| `a.busy` | At work. | `ac-a` |", "| `a.limit` | Too far. | `ac-a` |"] {
        assert!(table.contains(row), "{row} is not in\n{table}");
    }
    assert!(!table.contains("No code"));
    let events = "pub enum EventBody {\n    /// It begins.\n    AgentStart,\n}\n        Self::AgentStart => \"agent_start\",\n        Self::Text => \"text\",\n";
    assert_eq!(
        event_table(&[file("crates/ac-core/src/event.rs", events)]),
        "| event | when |\n|---|---|\n| `agent_start` | It begins. |\n"
    );
}
