//! Child cargos: one target folder, one environment, output that says what is going on.

use std::{
    collections::BTreeSet,
    error::Error,
    ffi::OsString,
    io::{BufRead as _, BufReader, Read},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use cargo_metadata::{Metadata, MetadataCommand};

use crate::layers::Tree;

/// Where every child cargo builds: `CARGO_TARGET_DIR`, else a folder under the user's cache, so that a fresh clone builds warm.
pub(crate) fn target_dir() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/agent-controller/target"));
    std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from).or_else(home).unwrap_or_else(|| crate::source::root().join("target"))
}

fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// A cargo with the environment of the checks.
pub(crate) fn command(root: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(cargo());
    command.current_dir(root).args(args).env("CARGO_TARGET_DIR", target_dir()).env("CARGO_TERM_COLOR", "never");
    // Snapshots are compared, never written; no test looks for a model server on this machine.
    command.env("INSTA_UPDATE", "no").env("AC_NO_PROBE", "1");
    command
}

/// What widens the features of a selection to those of the whole workspace. Whoever asks what one crate turns on takes them away.
const UNIFIED: [&str; 2] = ["CARGO_RESOLVER_FEATURE_UNIFICATION", "CARGO_UNSTABLE_FEATURE_UNIFICATION"];

pub(crate) fn metadata(root: &Path) -> Result<Metadata, Box<dyn Error>> {
    let mut command = MetadataCommand::new();
    command.cargo_path(cargo()).current_dir(root);
    for name in UNIFIED {
        command.env_remove(name);
    }
    Ok(command.exec()?)
}

/// Features that need more than Rust to build, so a bare machine cannot check them; `soak` does. `native-tls` takes OpenSSL's headers.
pub(crate) const OF_THE_SYSTEM: [&str; 1] = ["native-tls"];

/// Every feature of every crate but those [`OF_THE_SYSTEM`], as `--features` takes them.
pub(crate) fn every_feature(root: &Path) -> Result<String, Box<dyn Error>> {
    let metadata = metadata(root)?;
    let features = metadata.workspace_packages().into_iter().flat_map(|package| {
        let own = package.features.keys().filter(|name| !OF_THE_SYSTEM.contains(&name.as_str()));
        own.map(|name| format!("{}/{name}", package.name)).collect::<Vec<_>>()
    });
    Ok(features.collect::<Vec<_>>().join(","))
}

/// The packages that a crate is built from, with the features that it alone turns on.
pub(crate) fn tree(root: &Path, name: &str, features: &str) -> Result<Tree, Box<dyn Error>> {
    let out = tree_command(root, name, features).output()?;
    if !out.status.success() {
        return Err(format!("cargo tree -p {name}: {}", String::from_utf8_lossy(&out.stderr)).into());
    }
    let text = String::from_utf8_lossy(&out.stdout);
    let line = |line: &str| {
        let (package, features) = line.split_once('|')?;
        let features = features.trim_end_matches(" (*)").split(',').filter(|feature| !feature.is_empty()).map(str::to_owned);
        Some((package.split_whitespace().next()?.to_owned(), features.collect::<BTreeSet<_>>()))
    };
    Ok(text.lines().filter_map(line).collect())
}

/// Each crate with its own features, whatever this program was started with.
pub(crate) fn apart(command: &mut Command) -> &mut Command {
    for name in UNIFIED {
        command.env_remove(name);
    }
    command
}

fn tree_command(root: &Path, name: &str, features: &str) -> Command {
    let args = ["tree", "-p", name, "-e", "normal,build", "--prefix", "none", "--format", "{p}|{f}", features];
    let mut command = command(root, &args);
    apart(&mut command);
    command
}

/// What a child did.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) success: bool,
    pub(crate) tests_passed: u64,
    pub(crate) tests_failed: u64,
}

/// Runs a child and says what it does: what it tests and what fails at once, a count of what it compiles now and then.
pub(crate) fn run(command: &mut Command) -> Result<Outcome, Box<dyn Error>> {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let (sender, lines) = mpsc::sync_channel(256);
    let readers: Vec<_> = [child.stdout.take().map(boxed), child.stderr.take().map(boxed)]
        .into_iter()
        .flatten()
        .map(|pipe| {
            let sender = sender.clone();
            thread::spawn(move || BufReader::new(pipe).split(b'\n').map_while(Result::ok).try_for_each(|line| sender.send(line)))
        })
        .collect();
    drop(sender);
    let mut shown = Shown::new();
    for line in lines {
        shown.line(String::from_utf8_lossy(&line).trim_end());
    }
    for reader in readers {
        reader.join().ok();
    }
    Ok(Outcome { success: child.wait()?.success(), ..shown.outcome })
}

fn boxed(pipe: impl Read + Send + 'static) -> Box<dyn Read + Send> {
    Box::new(pipe)
}

/// Passes on what a reader wants to see.
struct Shown {
    outcome: Outcome,
    compiled: u32,
    told: Instant,
}

impl Shown {
    fn new() -> Self {
        Self { outcome: Outcome::default(), compiled: 0, told: Instant::now() }
    }

    fn line(&mut self, line: &str) {
        if let Some((passed, failed)) = test_result(line) {
            self.outcome.tests_passed += passed;
            self.outcome.tests_failed += failed;
        }
        let word = line.split_whitespace().next().unwrap_or_default();
        if matches!(word, "Compiling" | "Checking" | "Documenting") {
            self.compiled += 1;
            if self.told.elapsed() > Duration::from_secs(20) {
                println!("    … {} crates, now {}", self.compiled, line.split_whitespace().nth(1).unwrap_or_default());
                self.told = Instant::now();
            }
            return;
        }
        let quiet = matches!(
            word,
            "" | "Downloaded" | "Downloading" | "Generated" | "Finished" | "Locking" | "Adding" | "Blocking" | "Fresh" | "Updating"
        ) || (word == "test"
            && (line.ends_with("... ok") || line.ends_with(" - should panic ... ok") || line.ends_with(" - compile ... ok")))
            || (word == "running" && line.contains(" test"))
            || line.starts_with("all doctests ran in")
            || line.starts_with("test result: ok. 0 passed; 0 failed; 0 ignored");
        if !quiet {
            println!("    {line}");
            self.told = Instant::now();
        }
    }
}

/// The counts of a line that ends the tests of one program.
pub(crate) fn test_result(line: &str) -> Option<(u64, u64)> {
    let rest = line.strip_prefix("test result: ")?;
    let count = |word: &str| rest.split([';', '.']).find_map(|part| part.trim().strip_suffix(word)?.trim().parse().ok());
    Some((count(" passed")?, count(" failed")?))
}

#[cfg(test)]
mod tests {
    use std::{ffi::OsStr, path::Path};

    use super::{OF_THE_SYSTEM, UNIFIED, every_feature, test_result, tree_command};

    #[test]
    fn a_bare_machine_checks_every_feature_but_those_of_the_system() {
        let features = every_feature(&crate::source::root()).unwrap();
        let has = |wanted: &str| features.split(',').any(|feature| feature == wanted);
        assert!(has("agent-controller/full") && has("ac-llm/rustls") && has("ac-storage/sled"), "{features}");
        assert!(OF_THE_SYSTEM.iter().all(|name| !features.contains(name)), "{features}");
    }

    /// Else the features of other crates would count as this one's.
    #[test]
    fn a_crate_is_asked_for_its_own_features_alone() {
        let command = tree_command(Path::new("."), "ac-core", "--all-features");
        for name in UNIFIED {
            assert!(command.get_envs().any(|set| set == (OsStr::new(name), None)), "{name} reaches cargo tree");
        }
    }

    #[test]
    fn test_counts_are_read() {
        assert_eq!(
            test_result("test result: ok. 15 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.82s"),
            Some((15, 0))
        );
        assert_eq!(
            test_result("test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s"),
            Some((3, 2))
        );
        assert_eq!(test_result("test a ... ok"), None);
    }
}
