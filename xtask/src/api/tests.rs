use std::collections::BTreeSet;

use super::{Allowed, Listing, differences, unlisted};

fn listing(foreign: &[&str]) -> Listing {
    Listing { name: "a".to_owned(), lines: vec![], foreign: foreign.iter().map(|path| (*path).to_owned()).collect::<BTreeSet<_>>() }
}

#[test]
fn a_foreign_type_is_listed_and_the_list_is_not_longer_than_the_api() {
    let allowed: Allowed = toml::from_str("[foreign.json]\nwhy = 'values'\nitems = ['json::Value']").unwrap();
    assert!(unlisted(&allowed, &[listing(&["json::Value"])]).is_empty());
    let found = unlisted(&allowed, &[listing(&["json::Value", "json::Map", "web::Url"])]);
    assert!(found.len() == 2 && found.iter().any(|line| line.contains("`json::Map`")), "{found:?}");
    let found = unlisted(&allowed, &[listing(&[])]);
    assert_eq!(found, ["xtask/api.toml: `json::Value` is in no API any more"]);
}

#[test]
fn what_came_and_what_went_is_shown() {
    assert!(differences("a.txt", "one\n", "one\n").is_empty());
    let found = differences("a.txt", "one\ntwo\n", "two\nthree\n");
    assert!(found.first().is_some_and(|line| line.contains("cargo xtask api --write")), "{found:?}");
    assert_eq!(found.get(1..), Some(["  - one".to_owned(), "  + three".to_owned()].as_slice()));
}
