use super::{Scope, Words};
use crate::source::SourceFile;

fn words() -> Words {
    Words::parse(
        r#"
        [[word]]
        text = ".await"
        where = ["ac-engine"]
        except = ["crates/ac-engine/src/door.rs"]
        why = "data"
        [[word]]
        text = "static mut"
        in = "code_and_tests"
        why = "pass it"
        [[word]]
        text = "LATER"
        in = "text"
        why = "now"
        "#,
    )
    .unwrap()
}

fn find(path: &str, text: &str) -> Vec<String> {
    words().find(&[SourceFile { path: path.to_owned(), text: text.to_owned() }], |_| true)
}

#[test]
fn a_forbidden_word_is_found_where_it_is_forbidden() {
    let none: Vec<String> = Vec::new();
    assert_eq!(find("crates/ac-engine/src/a.rs", "x\ny.await"), ["crates/ac-engine/src/a.rs:2: `.await` (data)"]);
    assert_eq!(find("crates/ac-agent/src/a.rs", "y.await"), none);
    assert_eq!(find("crates/ac-engine/src/door.rs", "y.await"), none);
    assert_eq!(find("crates/ac-engine/src/a.rs", "// y.await\nlet s = \".await\";"), none);
    assert_eq!(find("crates/ac-engine/src/a.rs", "#[cfg(test)]\nmod tests {\ny.await\n}"), none);
    assert_eq!(find("crates/ac-engine/tests/a.rs", "y.await"), none);
    assert_eq!(find("crates/ac-engine/src/a.rs", "y.awaiting"), none);
}

#[test]
fn the_scope_decides_what_is_searched() {
    let none: Vec<String> = Vec::new();
    assert_eq!(find("crates/ac-core/tests/a.rs", "static mut A"), ["crates/ac-core/tests/a.rs:1: `static mut` (pass it)"]);
    assert_eq!(find("docs/a.md", "do it LATER"), ["docs/a.md:1: `LATER` (now)"]);
    assert_eq!(find("docs/a.md", "TRANSLATER, LATERAL"), none);
    let file = SourceFile { path: "docs/a.md".to_owned(), text: "LATER".to_owned() };
    assert_eq!(words().find(&[file], |scope| scope != Scope::Text), none);
}
