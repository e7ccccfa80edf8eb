//! `cargo xtask features`: every crate compiles with none, each, the default and all of its features.

use std::{collections::BTreeSet, error::Error, path::Path};

use crate::{cargo, source};

/// How many features are turned on together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    /// None, each alone, the default, all.
    Each,
    /// Each pair as well.
    Pairs,
}

/// What is checked of one crate: a list of features, or the default.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Set {
    Default,
    Only(Vec<String>),
}

impl Set {
    fn features(&self) -> &[String] {
        match self {
            Self::Default => &[],
            Self::Only(on) => on,
        }
    }

    /// Neither none nor all.
    fn is_part(&self, features: &[(String, Vec<String>)]) -> bool {
        let all = features.iter().filter(|(name, _)| name != "default").count();
        (1..all).contains(&self.features().len())
    }
}

/// Whether a feature only turns on features of other crates, whose own sets are checked. Such a one needs no set of its own, unless the
/// code names it.
fn passes_on(name: &str, features: &[(String, Vec<String>)]) -> bool {
    let on = features.iter().find(|(known, _)| known == name).map(|(_, on)| on.as_slice()).unwrap_or_default();
    !on.is_empty() && on.iter().all(|what| what.contains('/') || (!what.starts_with("dep:") && passes_on(what, features)))
}

/// Runs the checks; answers the number of sets that compiled and what did not.
pub(crate) fn run(root: &Path, depth: Depth) -> Result<(u64, Vec<String>), Box<dyn Error>> {
    let metadata = cargo::metadata(root)?;
    let files = source::read(root)?;
    let (mut passed, mut found) = (0, Vec::new());
    for package in metadata.workspace_packages() {
        let checked = |name: &str| depth == Depth::Pairs || !cargo::OF_THE_SYSTEM.contains(&name);
        let features = package.features.iter().filter(|(name, _)| checked(name));
        let features: Vec<_> = features.map(|(name, on)| (name.clone(), on.clone())).collect();
        let named = |name: &str| {
            let mut own = files.iter().filter(|file| file.member() == package.name.as_str() && file.path.contains("/src/"));
            own.any(|file| file.text.contains(&format!("feature = \"{name}\"")))
        };
        let idle = |name: &String| passes_on(name, &features) && !named(name);
        for set in sets(&features, depth) {
            if set.is_part(&features) && set.features().iter().any(idle) {
                continue;
            }
            let list = match &set {
                Set::Default => "default".to_owned(),
                Set::Only(on) if on.is_empty() => "none".to_owned(),
                Set::Only(on) => on.join(","),
            };
            let mut args = vec!["check", "-q", "-p", &package.name];
            if set != Set::Default {
                args.extend(["--no-default-features", "--features", if list == "none" { "" } else { &list }]);
            }
            println!("    {} ({list})", package.name);
            // A warning in one of the sets (an import that only another feature uses) counts.
            let mut command = cargo::command(root, &args);
            let out = command.output()?;
            let text = String::from_utf8_lossy(&out.stderr);
            if out.status.success() && !text.contains("warning:") {
                passed += 1;
            } else {
                found.push(format!("{} ({list}): {}", package.name, text.trim()));
            }
        }
    }
    Ok((passed, found))
}

/// The sets worth checking; nothing for a crate without features, which the other stages compile.
pub(crate) fn sets(features: &[(String, Vec<String>)], depth: Depth) -> BTreeSet<Set> {
    let names: Vec<_> = features.iter().map(|(name, _)| name).filter(|name| *name != "default").cloned().collect();
    let default = features.iter().find(|(name, _)| name == "default").map(|(_, on)| on.as_slice()).unwrap_or_default();
    if names.is_empty() {
        return BTreeSet::new();
    }
    let mut out = BTreeSet::from([Set::Only(Vec::new()), Set::Only(names.clone())]);
    out.extend(names.iter().map(|name| Set::Only(vec![name.clone()])));
    if default.len() > 1 {
        out.insert(Set::Default);
    }
    if depth == Depth::Pairs {
        for (n, first) in names.iter().enumerate() {
            out.extend(names.iter().skip(n + 1).map(|second| Set::Only(vec![first.clone(), second.clone()])));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Depth, Set, passes_on, sets};

    fn features(list: &[(&str, &[&str])]) -> Vec<(String, Vec<String>)> {
        list.iter().map(|(name, on)| ((*name).to_owned(), on.iter().map(|on| (*on).to_owned()).collect())).collect()
    }

    fn only(list: &[&str]) -> Set {
        Set::Only(list.iter().map(|name| (*name).to_owned()).collect())
    }

    #[test]
    fn each_alone_none_default_and_all() {
        let three = features(&[("default", &["a", "b"]), ("a", &[]), ("b", &[]), ("c", &[])]);
        let each: Vec<_> = sets(&three, Depth::Each).into_iter().collect();
        assert_eq!(each, [Set::Default, only(&[]), only(&["a"]), only(&["a", "b", "c"]), only(&["b"]), only(&["c"])]);
        assert_eq!(sets(&three, Depth::Pairs).len(), each.len() + 3);
    }

    #[test]
    fn what_is_the_same_is_checked_once() {
        assert!(sets(&features(&[("default", &[])]), Depth::Each).is_empty());
        let one = features(&[("default", &["a"]), ("a", &[])]);
        assert_eq!(sets(&one, Depth::Each).into_iter().collect::<Vec<_>>(), [only(&[]), only(&["a"])]);
    }

    #[test]
    fn what_only_passes_on_needs_no_set_of_its_own() {
        let on = features(&[("a", &["dep:x"]), ("b", &["x/b"]), ("c", &["b", "x/c"]), ("d", &["a", "x/d"]), ("e", &[])]);
        let idle: Vec<_> = on.iter().map(|(name, _)| name.as_str()).filter(|name| passes_on(name, &on)).collect();
        assert_eq!(idle, ["b", "c"]);
        assert!(only(&["b"]).is_part(&on) && !only(&[]).is_part(&on) && !only(&["a", "b", "c", "d", "e"]).is_part(&on));
    }
}
