//! The console's tests in a browser: `crates/ac-server/console/test`, run by Node against a real `acode serve`.

use std::{
    error::Error,
    ffi::OsStr,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{cargo, report::Verdict};

/// Where the tests are.
const FOLDER: &str = "crates/ac-server/console/test";
/// Names under which a Chromium is found; `AC_CHROMIUM` may name another.
const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// Builds acode, installs what the lock file names, and runs the tests. Where Node or a browser is missing, says so and runs nothing.
pub(crate) fn run(root: &Path) -> Result<Verdict, Box<dyn Error>> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if let Some(program) = ["node", "npm"].into_iter().find(|program| find(&path, program).is_none()) {
        return Ok(Verdict::skipped(format!("{program} is not installed")));
    }
    let browser = std::env::var_os("AC_CHROMIUM").map(PathBuf::from).or_else(|| BROWSERS.iter().find_map(|name| find(&path, name)));
    let Some(browser) = browser else { return Ok(Verdict::skipped("there is no Chromium; AC_CHROMIUM may name one")) };
    let built = cargo::run(&mut cargo::command(root, &["build", "-p", "acode"]))?;
    if !built.success {
        return Ok(Verdict::child(&built));
    }
    let folder = root.join(FOLDER);
    let installed = Command::new("npm").args(["ci", "--no-audit", "--no-fund"]).current_dir(&folder).status()?;
    if !installed.success() {
        return Err("npm ci failed".into());
    }
    let acode = cargo::target_dir().join("debug").join(format!("acode{}", std::env::consts::EXE_SUFFIX));
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-concurrency=1", "--test-force-exit", "--test-reporter=spec", "console.test.mjs"]).current_dir(&folder);
    tests.env("AC_ACODE", acode).env("AC_CHROMIUM", browser).env("AC_NO_PROBE", "1");
    Ok(Verdict::check(if tests.status()?.success() { vec![] } else { vec!["tests of the console failed".to_owned()] }))
}

/// A program, in the folders where programs are.
fn find(path: &OsStr, name: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tests_are_where_they_are_looked_for() {
        let folder = crate::source::root().join(FOLDER);
        assert!(folder.join("package-lock.json").is_file() && folder.join("console.test.mjs").is_file());
    }

    #[test]
    fn a_program_is_found_in_the_folders_of_the_path() {
        let root = crate::source::root();
        let path = std::env::join_paths([Path::new("/nowhere"), &root]).unwrap();
        assert_eq!(find(&path, "Cargo.toml"), Some(root.join("Cargo.toml")));
        assert_eq!(find(&path, "other"), None);
    }
}
