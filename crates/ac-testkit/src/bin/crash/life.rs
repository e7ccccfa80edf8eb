//! The parent, over one store: life after life of the child, then the checker.

use std::{
    fs::{self, File, OpenOptions},
    io::{BufRead, BufReader, Write},
    os::unix::process::ExitStatusExt,
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use ac_testkit::server::{ScriptedServer, Setup};

use crate::{Failure, desk::Folder, jobs, journal::Line, plant::Plant};

/// How a life ends before its work does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kill {
    /// At its n-th write.
    Write { n: u64, after: bool },
    /// After this time.
    Moment(Duration),
}

/// One store from its first life to its check.
#[derive(Clone, Debug)]
pub(crate) struct Trial {
    pub(crate) seed: u64,
    pub(crate) jobs: Vec<&'static str>,
    pub(crate) kills: Vec<Kill>,
    pub(crate) plant: Option<Plant>,
    pub(crate) keep: bool,
}

/// How a trial ended.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Empty is good.
    pub(crate) failures: Vec<String>,
    /// How often a child was really killed.
    pub(crate) kills: u64,
    /// The first kill came before the work was done.
    pub(crate) first_hit: bool,
    /// Writes of the last life.
    pub(crate) writes: u64,
    /// How long the first life lasted.
    pub(crate) first_life: Duration,
}

/// How long the parent waits for a child, beyond the child's own patience.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn run(trial: &Trial) -> Result<Outcome, Failure> {
    let temp = tempfile::tempdir()?;
    let folder = Folder::new(temp.path());
    let turns = trial.jobs.iter().filter_map(|name| jobs::job(name)).flat_map(jobs::Job::turns);
    let server = Setup::new(turns).start()?;
    let mut outcome = Outcome::default();
    // One more life than kills: the last one comes to its end.
    for life in 0..=trial.kills.len() {
        let kill = trial.kills.get(life).copied();
        let begun = Instant::now();
        let lived = one(trial, &folder, &server, life, kill)?;
        if life == 0 {
            outcome.first_life = begun.elapsed();
            outcome.first_hit = matches!(lived, Lived::Killed);
        }
        match lived {
            Lived::Killed => outcome.kills += 1,
            Lived::Done { writes } => {
                outcome.writes = writes;
                break;
            }
            Lived::Failed(why) => {
                let said = fs::read_to_string(folder.errors()).unwrap_or_default();
                outcome.failures.push(format!("life {life} {why} {}", said.trim()).trim().to_owned());
                break;
            }
        }
    }
    let mut requests = File::create(folder.requests())?;
    for exchange in server.requests() {
        writeln!(requests, "{}", exchange.body)?;
    }
    outcome.failures.extend(server.violations().iter().map(|violation| format!("the model server: {violation}")));
    drop(server);
    outcome.failures.extend(check(&folder)?);
    if trial.keep && !outcome.failures.is_empty() {
        outcome.failures.push(format!("kept in {}", temp.keep().display()));
    }
    Ok(outcome)
}

enum Lived {
    Killed,
    Done { writes: u64 },
    Failed(String),
}

fn one(trial: &Trial, folder: &Folder, server: &ScriptedServer, life: usize, kill: Option<Kill>) -> Result<Lived, Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("work").arg("--dir").arg(&folder.0).arg("--url").arg(server.base_url());
    command.args(["--seed", &trial.seed.to_string(), "--life", &life.to_string()]);
    for job in &trial.jobs {
        command.args(["--job", job]);
    }
    if let Some(plant) = trial.plant {
        command.args(["--plant", plant.name()]);
    }
    if trial.seed.is_multiple_of(2) {
        command.arg("--power");
    }
    if let Some(Kill::Write { n, after }) = kill {
        command.args(["--die-at", &n.to_string()]);
        if after {
            command.arg("--die-after");
        }
    }
    let errors = OpenOptions::new().create(true).append(true).open(folder.errors())?;
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(errors).spawn()?;
    let Some(out) = child.stdout.take() else { return Err("the child has no pipe".into()) };
    let mut acknowledged = OpenOptions::new().create(true).append(true).open(folder.acknowledged())?;
    let reader = thread::spawn(move || -> Result<Option<u64>, std::io::Error> {
        let mut writes = None;
        for line in BufReader::new(out).lines() {
            let line = line?;
            if let Ok(Line::Done { writes: made }) = serde_json::from_str(&line) {
                writes = Some(made);
            }
            writeln!(acknowledged, "{line}")?;
        }
        Ok(writes)
    });
    let limit = if let Some(Kill::Moment(moment)) = kill { moment } else { PATIENCE };
    let in_time = wait(&mut child, limit)?;
    if !in_time {
        child.kill()?;
    }
    let status = child.wait()?;
    let writes = reader.join().map_err(|_| "the reader of the pipe panicked")??;
    Ok(match (status.signal(), writes) {
        // SIGKILL, by itself or by its parent. One that was done already is done.
        (_, Some(writes)) => Lived::Done { writes },
        (Some(9), None) if in_time || matches!(kill, Some(Kill::Moment(_))) => Lived::Killed,
        (Some(9), None) => Lived::Failed(format!("did not end within {limit:?}")),
        _ => Lived::Failed(format!("ended by itself: {status}")),
    })
}

/// Waits for the end of a child. Says whether it came in time.
fn wait(child: &mut Child, limit: Duration) -> Result<bool, Failure> {
    let begun = Instant::now();
    loop {
        if child.try_wait()?.is_some() {
            return Ok(true);
        }
        let left = limit.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(false);
        }
        thread::sleep(left.min(Duration::from_millis(2)));
    }
}

fn check(folder: &Folder) -> Result<Vec<String>, Failure> {
    let checked = Command::new(std::env::current_exe()?).arg("check").arg(&folder.0).stdin(Stdio::null()).output()?;
    let mut found: Vec<String> = String::from_utf8_lossy(&checked.stdout).lines().map(str::to_owned).collect();
    if !checked.status.success() && found.is_empty() {
        found.push(format!("the checker gave up: {} {}", checked.status, String::from_utf8_lossy(&checked.stderr).trim()));
    }
    Ok(found)
}
