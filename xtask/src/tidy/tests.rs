use std::collections::BTreeMap;

use super::{code_lines, first_lines, hidden_lines, invariants, links, manifests, names, sizes};
use crate::source::SourceFile;

fn file(path: &str, text: &str) -> SourceFile {
    SourceFile { path: path.to_owned(), text: text.to_owned() }
}

fn long(lines: usize) -> String {
    "let a = 1;\n".repeat(lines)
}

fn none() -> Vec<String> {
    Vec::new()
}

#[test]
fn only_code_counts() {
    assert_eq!(code_lines("//! words\n\n/// words\nfn a() {\n    // words\n}\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\n"), 2);
}

#[test]
fn an_oversized_file_is_found() {
    let path = "crates/ac-core/src/a.rs";
    let check = |lines, allowed: Option<usize>| {
        sizes(&[file(path, &long(lines))], &allowed.map(|n| (path.to_owned(), n)).into_iter().collect::<BTreeMap<_, _>>())
    };
    assert_eq!(check(400, None), none());
    assert_eq!(check(401, None), ["crates/ac-core/src/a.rs: 401 lines of code, 400 are allowed; split it by its nouns"]);
    assert_eq!(check(450, Some(450)), none());
    assert_eq!(check(451, Some(450)), ["crates/ac-core/src/a.rs: 451 lines of code, 450 are allowed; split it by its nouns"]);
    assert_eq!(check(601, Some(700)).len(), 2, "the hard stop, and a number that must go down");
    assert_eq!(check(400, Some(450)), ["xtask/ratchet.toml: crates/ac-core/src/a.rs needs no exception any more"]);
    assert_eq!(sizes(&[file("crates/ac-core/src/a/tests.rs", &long(900))], &BTreeMap::new()), none());
}

#[test]
fn vague_names_and_leftovers_are_found() {
    assert_eq!(names(&[file("crates/ac-core/src/wire.rs", ""), file("docs/common.md", "")]), none());
    let bad = ["crates/ac-core/src/utils.rs", "crates/ac-core/src/wire/mod.rs", "tests/tests/a.snap.new"];
    assert_eq!(names(&bad.map(|path| file(path, ""))).len(), 3);
}

#[test]
fn public_modules_say_what_they_are() {
    let files = [
        file("crates/a/src/lib.rs", "//! A.\npub mod open;\nmod hidden;\npub mod deep;\n"),
        file("crates/a/src/open.rs", "use x;\n"),
        file("crates/a/src/hidden.rs", "use x;\n"),
        file("crates/a/src/deep.rs", "//! Deep.\npub mod er;\n"),
        file("crates/a/src/deep/er.rs", "use x;\n"),
        file("crates/b/src/main.rs", "fn main() {}\n"),
    ];
    assert_eq!(
        first_lines(&files),
        ["crates/a/src/deep/er.rs", "crates/a/src/open.rs", "crates/b/src/main.rs"]
            .map(|path| format!("{path}: the first line says what it is, with `//!`"))
    );
}

#[test]
fn every_member_takes_the_lints() {
    let good = file("crates/a/Cargo.toml", "[package]\n\n[lints]\nworkspace = true\n");
    let bad = file("crates/b/Cargo.toml", "[package]\n");
    assert_eq!(manifests(&[good, bad, file("Cargo.toml", "")]), ["crates/b/Cargo.toml: [lints] workspace = true is missing"]);
}

#[test]
fn an_invariant_needs_a_check_that_exists() {
    let document = "| invariant | held by |\n|---|---|\n| one | `it_holds` in ac-core |\n| two | nothing |\n| three | `it_went` |\n\
                    | four | `xtask layers`, `clippy::panic` |\n\n| other | table |\n|---|---|\n| a | b |\n";
    let files = [file("docs/architecture.md", document), file("crates/a/src/a/tests.rs", "#[tokio::test]\nasync fn it_holds() {}\n")];
    assert_eq!(
        invariants(&files),
        ["docs/architecture.md:4: an invariant without a named check", "docs/architecture.md:5: there is no test `it_went`"]
    );
    assert_eq!(invariants(&[]), ["docs/architecture.md: missing"]);
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let text = "[a](../README.md) [b](b.md#there) [c](https://example.com) [d](../crates) [e](gone.md)";
    let files = [file("README.md", ""), file("docs/a.md", text), file("docs/b.md", ""), file("crates/a/src/lib.rs", "")];
    assert_eq!(links(&files), ["docs/a.md: the link to gone.md leads nowhere"]);
}

#[test]
fn a_hidden_line_of_an_example_is_found() {
    let text = "# Title\n```rust\nlet a = 1;\n# drop(a);\n#[derive(Debug)]\nstruct B;\n```\n# Other\n```sh\n# a comment\n```\n";
    assert_eq!(hidden_lines(&[file("docs/a.md", text)]), ["docs/a.md:4: a hidden line of an example; readers of the page see it"]);
}
