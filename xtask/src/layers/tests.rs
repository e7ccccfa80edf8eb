use std::collections::BTreeSet;

use super::{Edge, Member, Table, edges, kit_in_units, never, table, tokio_features};
use crate::source::SourceFile;

fn house() -> Table {
    table(
        r#"
        [crates.ac-core]
        layer = 0
        owns = "data"
        blind_to = "disks"
        externals = ["serde"]
        never = ["sled"]
        tokio = ["sync"]
        [crates.ac-storage]
        layer = 1
        owns = "rows"
        blind_to = "models"
        [crates.ac-llm]
        layer = 1
        owns = "wires"
        blind_to = "rows"
        [crates.ac-agent]
        layer = 3
        owns = "the driver"
        blind_to = "modes"
        [crates.ac-testkit]
        layer = 2
        kind = "dev"
        doors = ["bins"]
        owns = "the kit"
        blind_to = "sessions"
        [crates.agent-controller]
        layer = 7
        owns = "names"
        blind_to = "logic"
        lends = { ac-testkit = "testkit" }
        [crates.ac-bench]
        layer = 9
        kind = "dev"
        owns = "figures"
        blind_to = "nothing"
        [alone]
        sled = ["ac-storage"]
        "#,
    )
    .unwrap()
}

fn ours(to: &str) -> Edge {
    Edge { to: to.to_owned(), alias: to.to_owned(), ours: true, versioned: true, ..Edge::default() }
}

fn foreign(to: &str) -> Edge {
    Edge { ours: false, ..ours(to) }
}

fn check(name: &str, edge: Edge) -> Vec<String> {
    check_with(name, edge, &[])
}

fn check_with(name: &str, edge: Edge, features: &[(&str, &str)]) -> Vec<String> {
    let features = features.iter().map(|(feature, on)| ((*feature).to_owned(), vec![(*on).to_owned()])).collect();
    edges(&house(), &[Member { name: name.to_owned(), edges: vec![edge], published: true, features }])
}

#[test]
fn edges_point_downward() {
    let none: Vec<String> = Vec::new();
    assert_eq!(check("ac-agent", ours("ac-core")), none);
    assert_eq!(check("ac-core", ours("ac-agent")), ["ac-core -> ac-agent: layer 0 may depend on layers below it only, not on layer 3"]);
    assert_eq!(check("ac-llm", ours("ac-storage")), ["ac-llm -> ac-storage: layer 1 may depend on layers below it only, not on layer 1"]);
    assert_eq!(check("ac-new", ours("ac-core")), ["ac-new has no row in xtask/layers.toml"]);
    assert_eq!(
        check("ac-agent", ours("ac-testkit")),
        ["ac-agent -> ac-testkit: the house does not stand on its tools; only dev edges may"]
    );
    let bare = Edge { versioned: false, ..ours("ac-core") };
    assert_eq!(check("ac-agent", bare), ["ac-agent -> ac-core: a path dependency without a version cannot be packaged"]);
}

#[test]
fn dev_edges_reach_the_kit_and_nothing_higher() {
    let none: Vec<String> = Vec::new();
    let dev = |to: &str| Edge { dev: true, ..ours(to) };
    assert_eq!(check("ac-core", dev("ac-testkit")), none);
    assert_eq!(check("ac-agent", dev("ac-storage")), none);
    assert_eq!(
        check("ac-core", dev("ac-agent")),
        ["ac-core -> ac-agent: a dev edge from layer 0 to layer 3 is an upward edge all the same"]
    );
    assert_eq!(check("ac-core", dev("ac-bench")), ["ac-core -> ac-bench: a dev edge may point to ac-testkit alone"]);
    for edge in [Edge { default_features: true, ..dev("ac-testkit") }, Edge { features: vec!["bins".to_owned()], ..dev("ac-testkit") }] {
        assert_eq!(check("ac-core", edge), ["ac-core -> ac-testkit: the kit is taken with default-features = false and nothing on top"]);
    }
}

#[test]
fn the_kit_reaches_higher_through_its_doors_alone() {
    let none: Vec<String> = Vec::new();
    let optional = || Edge { optional: true, ..ours("ac-agent") };
    assert_eq!(check_with("ac-testkit", optional(), &[("bins", "dep:ac-agent")]), none);
    assert_eq!(
        check_with("ac-testkit", optional(), &[("store", "dep:ac-agent")]),
        ["ac-testkit -> ac-agent: only {\"bins\"} may open it, `store` does"]
    );
    assert_eq!(check_with("ac-testkit", ours("ac-agent"), &[]).len(), 1);
    assert_eq!(check("ac-bench", ours("ac-agent")), none);
}

#[test]
fn foreign_crates_stay_where_they_belong() {
    let none: Vec<String> = Vec::new();
    assert_eq!(check("ac-core", foreign("serde")), none);
    assert_eq!(check("ac-core", foreign("tokio")), ["ac-core -> tokio: not among the foreign crates that this crate may name"]);
    assert_eq!(check("ac-storage", foreign("sled")), none);
    assert_eq!(check("ac-agent", foreign("sled")), ["ac-agent -> sled: only ac-storage may name it"]);
}

#[test]
fn a_tree_is_searched_at_every_depth() {
    let house = house();
    let row = &house.crates["ac-core"];
    let on = |features: &[&str]| features.iter().map(|feature| (*feature).to_owned()).collect::<BTreeSet<_>>();
    let tree = vec![("serde".to_owned(), on(&["std"])), ("sled".to_owned(), on(&[])), ("tokio".to_owned(), on(&["sync", "net"]))];
    assert_eq!(never("ac-core", row, &tree), ["ac-core: sled is in its tree (cargo tree -p ac-core --all-features -i sled)"]);
    assert_eq!(tokio_features("ac-core", row, &tree), ["ac-core: tokio is in its tree with the feature `net`"]);
}

#[test]
fn low_crates_use_the_kit_in_integration_tests() {
    let file = |path: &str| SourceFile { path: path.to_owned(), text: "use ac_testkit::Turn;".to_owned() };
    let files = [file("crates/ac-core/src/id/tests.rs"), file("crates/ac-core/tests/a.rs"), file("crates/ac-agent/src/a/tests.rs")];
    assert_eq!(kit_in_units(&house(), &files), ["crates/ac-core/src/id/tests.rs: layers 0 and 1 use the kit in tests/, not in unit tests"]);
}

#[test]
fn the_kit_is_lent_under_a_feature_of_its_own() {
    let kit = || Edge { optional: true, ..ours("ac-testkit") };
    let facade = |edge, features| check_with("agent-controller", edge, features);
    assert!(facade(kit(), &[("testkit", "dep:ac-testkit")]).is_empty());
    assert!(!facade(ours("ac-testkit"), &[]).is_empty(), "always there");
    assert!(!facade(Edge { default_features: true, ..kit() }, &[("testkit", "dep:ac-testkit")]).is_empty(), "with its programs");
    assert!(!facade(kit(), &[("full", "dep:ac-testkit")]).is_empty(), "with another feature");
    assert!(!facade(kit(), &[("testkit", "dep:ac-testkit"), ("full", "testkit")]).is_empty(), "through another feature");
    assert!(!check_with("ac-agent", kit(), &[("testkit", "dep:ac-testkit")]).is_empty(), "by another crate");
}
