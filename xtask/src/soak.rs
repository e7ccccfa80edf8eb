//! `cargo xtask soak`: what is too long or too heavy for every change.

use std::{error::Error, path::Path};

use crate::{
    browser, cargo, downstream, features,
    report::{Report, Verdict},
};

/// A step: its name, what it does, the program it needs (`package/bin`), how it is called.
struct Step {
    name: &'static str,
    what: &'static str,
    needs: Option<(&'static str, &'static str)>,
    args: &'static [&'static str],
    envs: &'static [(&'static str, &'static str)],
}

const STEPS: &[Step] = &[
    Step { name: "release", what: "everything builds for release", needs: None, args: &["build", "--release", "--workspace"], envs: &[] },
    Step {
        name: "crash",
        what: "a thousand random kills",
        needs: Some(("ac-testkit", "crash")),
        args: &["run", "-q", "--release", "-p", "ac-testkit", "--bin", "crash", "--", "--runs", "1000", "--seed", "1"],
        envs: &[],
    },
    Step {
        name: "contest",
        what: "two processes, a thousand contested hand-overs",
        needs: Some(("ac-testkit", "crash")),
        args: &["run", "-q", "--release", "-p", "ac-testkit", "--bin", "crash", "--", "contest", "--hand-overs", "1000"],
        envs: &[],
    },
    Step {
        name: "channels",
        what: "ten thousand deliveries of chat platforms, five kills",
        needs: Some(("ac-testkit", "channels")),
        args: &["run", "-q", "--release", "-p", "ac-testkit", "--bin", "channels", "--", "--deliveries", "10000", "--seed", "1"],
        envs: &[],
    },
    Step {
        name: "machine",
        what: "the run machine, a million interleavings",
        needs: None,
        args: &["test", "--release", "-p", "ac-engine"],
        envs: &[("CASES", "1000000")],
    },
    Step {
        name: "client",
        what: "the published client from npm, against the acceptance fixture",
        needs: None,
        args: &["test", "-p", "ac-server", "the_published_client", "--", "--nocapture"],
        envs: &[("AC_CLIENT", "1")],
    },
    Step {
        name: "bench",
        what: "every row of the benchmarks",
        needs: Some(("ac-bench", "ac-bench")),
        args: &["run", "-q", "--release", "-p", "ac-bench", "--", "--json"],
        envs: &[],
    },
    Step {
        name: "benches",
        what: "the benches of single crates: they come to their end",
        needs: None,
        args: &[
            "bench",
            "-p",
            "ac-engine",
            "-p",
            "ac-storage",
            "-p",
            "ac-llm",
            "-p",
            "ac-workspace",
            "-p",
            "tests",
            "--features",
            "ac-storage/sled",
            "--benches",
        ],
        envs: &[],
    },
];

/// Runs the steps, but for those named after `--skip`; only those named after `--only`, if any.
pub(crate) fn run(root: &Path, args: &[String], report: &mut Report) -> Result<(), Box<dyn Error>> {
    let metadata = cargo::metadata(root)?;
    let there = |package: &str, bin: &str| {
        let found = metadata.workspace_packages().into_iter().find(|found| *found.name == package);
        found.is_some_and(|package| package.targets.iter().any(|target| target.is_bin() && target.name == bin))
    };
    for step in STEPS {
        if !wanted(args, step.name) {
            report.stage(step.name, step.what, || Ok(Verdict::skipped("left out on request")));
        } else if let Some((package, bin)) = step.needs.filter(|(package, bin)| !there(package, bin)) {
            report.stage(step.name, step.what, || Ok(Verdict::skipped(format!("there is no program {package}/{bin}"))));
        } else {
            let mut command = cargo::command(root, step.args);
            command.envs(step.envs.iter().copied());
            report.stage(step.name, step.what, || Ok(Verdict::child(&cargo::run(&mut command)?)));
        }
    }
    let what = "the console in a real browser";
    if wanted(args, "console") {
        report.stage("console", what, || browser::run(root));
    } else {
        report.stage("console", what, || Ok(Verdict::skipped("left out on request")));
    }
    if wanted(args, "downstream") {
        downstream::run(root, report);
    } else {
        report.stage("downstream", "crates outside of the workspace", || Ok(Verdict::skipped("left out on request")));
    }
    let what = "every crate with each pair of its features";
    if wanted(args, "powerset") {
        report.stage("powerset", what, || {
            let (passed, found) = features::run(root, features::Depth::Pairs)?;
            Ok(Verdict { passed, failed: found.len() as u64, found, skipped: false })
        });
    } else {
        report.stage("powerset", what, || Ok(Verdict::skipped("left out on request")));
    }
    Ok(())
}

/// The names of the steps.
pub(crate) fn names() -> String {
    STEPS.iter().map(|step| step.name).chain(["console", "downstream", "powerset"]).collect::<Vec<_>>().join(", ")
}

fn wanted(args: &[String], name: &str) -> bool {
    let listed = |flag: &str| {
        args.windows(2).filter(|pair| pair.first().is_some_and(|arg| arg == flag)).any(|pair| pair.last().is_some_and(|arg| arg == name))
    };
    let some = args.iter().any(|arg| arg == "--only");
    !listed("--skip") && (!some || listed("--only"))
}

#[cfg(test)]
mod tests {
    use super::wanted;

    #[test]
    fn steps_are_chosen_by_name() {
        let args = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert!(wanted(&args(""), "crash"));
        assert!(!wanted(&args("--skip crash"), "crash"));
        assert!(wanted(&args("--skip crash"), "bench"));
        assert!(wanted(&args("--only crash --only bench"), "bench"));
        assert!(!wanted(&args("--only crash"), "bench"));
    }
}
