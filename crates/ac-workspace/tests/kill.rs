//! Nothing that a command started outlives its end: shells that fork, daemonise, ignore signals, flood, wait for input or attack whoever
//! watches over them. Every test runs under the supervisor, and those that can be held by group and mark alone also without it.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use ac_core::CancelToken;
use ac_workspace::{
    CommandRequest, CommandResult, Exit, Isolation, LocalSandbox, LocalSandboxOptions, NetworkLimit, NoSink, OutputSink, OutputStream,
    Sandbox, Supervisor, WorkspaceError, WorkspaceErrorKind,
};
use tempfile::TempDir;

/// The longest that anything may live after the abort.
const LIMIT: Duration = Duration::from_secs(3);

struct World {
    temp: TempDir,
    sandbox: LocalSandbox,
}

fn world(supervisor: Supervisor) -> World {
    world_with(supervisor, Isolation::Available)
}

fn open(supervisor: Supervisor) -> World {
    world_with(supervisor, Isolation::Off)
}

fn supervisor() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_ac-supervisor"))
}

fn world_with(supervisor: Supervisor, isolation: Isolation) -> World {
    let temp = TempDir::new().unwrap();
    let mut options = LocalSandboxOptions::default();
    options.supervisor = supervisor;
    options.isolation = isolation;
    let sandbox = LocalSandbox::open_with(temp.path(), options).unwrap();
    World { temp, sandbox }
}

fn supervised() -> World {
    world(Supervisor::Program(supervisor()))
}

fn both() -> [World; 2] {
    [supervised(), world(Supervisor::Off)]
}

impl World {
    fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    async fn run(&self, command: &str) -> Result<CommandResult, WorkspaceError> {
        self.sandbox.run(CommandRequest::new(command), Arc::new(NoSink), CancelToken::new()).await
    }

    /// Starts the command, waits until it wrote `ready`, aborts, and checks that it ended in time and that every process whose number it
    /// wrote into `pids` is gone.
    async fn abort(&self, command: &str) {
        let cancel = CancelToken::new();
        let run = self.sandbox.run(CommandRequest::new(command), Arc::new(NoSink), cancel.clone());
        let stop = async {
            wait_for(&self.path("ready")).await;
            assert!(!self.living().is_empty(), "nobody is there to be ended: {command}");
            cancel.cancel();
            Instant::now()
        };
        let (result, aborted) = tokio::join!(run, stop);
        assert!(aborted.elapsed() < LIMIT, "took {:?}: {command}", aborted.elapsed());
        assert_eq!(result.unwrap_err().kind(), WorkspaceErrorKind::Cancelled, "{command}");
        self.all_gone(command);
    }

    fn all_gone(&self, command: &str) {
        if let Some(pid) = self.living().first() {
            panic!("{pid} is still there: {command}\n{}", stat(pid));
        }
    }

    /// The processes that the command told of and that still run.
    fn living(&self) -> Vec<String> {
        living(self.temp.path(), own_numbers(&self.sandbox))
    }
}

/// Whether processes of a command have numbers of their own.
fn own_numbers(sandbox: &LocalSandbox) -> bool {
    sandbox.confinement().network == NetworkLimit::Off
}

/// Those of a folder's `pids` that still run, by their numbers out here.
fn living(folder: &Path, own_numbers: bool) -> Vec<String> {
    let told = fs::read_to_string(folder.join("pids")).unwrap();
    let told: Vec<&str> = told.split_whitespace().collect();
    assert!(!told.is_empty(), "the command told no process");
    if !own_numbers {
        return told.into_iter().filter(|pid| alive(pid)).map(str::to_owned).collect();
    }
    let numbers = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    numbers
        .filter(|pid| {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            let Some(line) = status.lines().find_map(|line| line.strip_prefix("NSpid:")) else { return false };
            let inside: Vec<&str> = line.split_whitespace().skip(1).collect();
            let here = fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.file_name() == folder.file_name());
            inside.last().is_some_and(|last| told.contains(last)) && here && alive(pid)
        })
        .collect()
}

fn stat(pid: &str) -> String {
    fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default()
}

fn alive(pid: &str) -> bool {
    stat(pid).rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

async fn wait_for(path: &Path) {
    let started = Instant::now();
    while !path.exists() {
        assert!(started.elapsed() < Duration::from_secs(10), "{} never appeared", path.display());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn a_shell_that_sleeps() {
    for world in both() {
        world.abort("echo $$ > pids; touch ready; sleep 300").await;
    }
}

#[tokio::test]
async fn a_tree_of_shells() {
    for world in both() {
        world
            .abort(
                "for i in 1 2 3; do sh -c 'echo $$ >> pids; (sleep 300 & echo $! >> pids; sleep 300)' & done; sleep 0.3; touch ready; wait",
            )
            .await;
    }
}

/// B-78.
#[tokio::test]
async fn a_tree_that_ignores_every_signal_it_can() {
    for world in both() {
        let ignore = "trap '' TERM INT HUP QUIT USR1 USR2 TSTP;";
        world
            .abort(&format!(
                "{ignore} echo $$ > pids; sh -c \"{ignore} echo \\$\\$ >> pids; touch ready; while :; do sleep 0.05; done\" & while :; do sleep 0.05; done"
            ))
            .await;
    }
}

/// B-79.
#[tokio::test]
async fn a_process_in_a_session_of_its_own() {
    for world in both() {
        world.abort("setsid sh -c 'echo $$ > pids; touch ready; sleep 300' & sleep 300").await;
    }
}

#[tokio::test]
async fn a_daemon_that_forked_twice_and_closed_its_pipes() {
    for world in both() {
        world
            .abort(
                "(setsid sh -c '(sh -c \"echo \\$\\$ > pids; exec sleep 300\" </dev/null >/dev/null 2>&1) & \
                 while [ ! -s pids ]; do sleep 0.01; done; touch ready' &) ; sleep 300",
            )
            .await;
    }
}

/// Such a process carries neither group, session, parent nor mark of its command: only a supervisor finds it.
#[tokio::test]
async fn a_daemon_that_also_cleared_its_environment() {
    const DAEMON: &str = "(setsid env -i /bin/sh -c 'trap \"\" TERM; echo $$ > pids; (setsid env -i /bin/sh -c \"echo \\$\\$ >> pids; exec \
        /bin/sleep 300\" >/dev/null 2>&1 &); /bin/sleep 0.2; : > ready; while :; do /bin/sleep 0.05; done' >/dev/null 2>&1 &) ; sleep 300";
    supervised().abort(DAEMON).await;

    // The attempt is a real one: without a supervisor it gets away.
    let alone = open(Supervisor::Off);
    let cancel = CancelToken::new();
    let stop = async {
        wait_for(&alone.path("ready")).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(alone.sandbox.run(CommandRequest::new(DAEMON), Arc::new(NoSink), cancel.clone()), stop);
    result.unwrap_err();
    let left = alone.living();
    assert!(!left.is_empty());
    for pid in &left {
        std::process::Command::new("kill").args(["-9", pid]).status().unwrap();
    }
}

#[tokio::test]
async fn a_shell_that_waits_for_input_gets_none() {
    for world in both() {
        let result = world.run("cat; read line; echo \"got:$line:\"").await.unwrap();
        assert_eq!((result.exit, result.output.head.as_str()), (Exit::Code(0), "got::\n"));
        world.abort("echo $$ > pids; touch ready; exec tail -f /dev/null").await;
    }
}

#[tokio::test]
async fn a_crowd_that_keeps_forking() {
    let world = supervised();
    world
        .abort(
            "echo $$ > pids; breed() { trap '' TERM; echo $$ >> pids; while :; do (sleep 0.2; sleep 0.2) & sleep 0.02; done; }; \
             breed & breed & sleep 0.3; touch ready; breed",
        )
        .await;
    // Those that were born late are found by the folder in which they work.
    let here = world.temp.path().canonicalize().unwrap();
    let there =
        fs::read_dir("/proc").unwrap().flatten().filter(|entry| fs::read_link(entry.path().join("cwd")).is_ok_and(|cwd| cwd == here));
    assert_eq!(there.count(), 0);
}

/// One gigabyte: the host's memory stays flat, both while it comes and at the end.
#[tokio::test]
async fn a_flood_of_output() {
    struct Count(AtomicU64);
    impl OutputSink for Count {
        fn output(&self, _: OutputStream, text: &str) {
            self.0.fetch_add(text.len() as u64, Ordering::Relaxed);
        }
    }
    let world = supervised();
    let told = Arc::new(Count(AtomicU64::new(0)));
    let before = resident();
    let command = CommandRequest::new("head -c 1073741824 /dev/zero | tr '\\0' 'x'; echo; echo the end");
    let result = world.sandbox.run(command, told.clone(), CancelToken::new()).await.unwrap();
    let grown = resident().saturating_sub(before);
    assert_eq!(result.exit, Exit::Code(0));
    assert_eq!(result.output.total, (1 << 30) + 9);
    assert!(result.output.tail.ends_with("x\nthe end\n"));
    assert!(result.output.head.len() + result.output.tail.len() < 64 << 10);
    assert!(told.0.load(Ordering::Relaxed) < 2 << 20, "events stop after the limit");
    assert!(fs::metadata(result.output.log.unwrap()).unwrap().len() <= 64 << 20);
    assert!(grown < 16 << 20, "the host grew by {grown} bytes");
}

#[tokio::test]
async fn a_flood_that_never_ends() {
    for world in both() {
        let before = resident();
        world.abort("echo $$ > pids; (sleep 0.3; touch ready) & exec cat /dev/zero").await;
        assert!(resident().saturating_sub(before) < 32 << 20);
    }
}

#[tokio::test]
async fn a_command_that_takes_too_long() {
    for world in both() {
        let mut request =
            CommandRequest::new("trap '' TERM; setsid sh -c 'echo $$ > pids; sleep 300' & echo begun; while :; do sleep 0.1; done");
        request.timeout = Some(Duration::from_millis(400));
        let result = world.sandbox.run(request, Arc::new(NoSink), CancelToken::new()).await.unwrap();
        assert_eq!((result.exit, result.output.head.as_str()), (Exit::TimedOut, "begun\n"));
        assert!(result.took < LIMIT);
        world.all_gone("time-out");
    }
}

/// Dropping the future of a call is an abort, too: so ends a run whose host lost patience.
#[tokio::test]
async fn a_command_whose_caller_went_away() {
    for world in both() {
        let run = world.run("setsid sh -c 'echo $$ > pids; touch ready; sleep 300' & sleep 300");
        let ready = world.path("ready");
        tokio::select! {
            _ = run => panic!("it ended by itself"),
            () = wait_for(&ready) => {}
        }
        let started = Instant::now();
        while !world.living().is_empty() {
            assert!(started.elapsed() < LIMIT);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// B-79: it lives on, is told, holds nothing up, and goes with the session.
#[tokio::test]
async fn what_is_left_running_ends_at_shutdown() {
    for world in both() {
        let result = world.run("setsid sh -c 'echo $$ > pids; sleep 300' & sleep 0.2; echo ok").await.unwrap();
        assert_eq!((result.exit, result.output.head.as_str()), (Exit::Code(0), "ok\n"));
        assert!(result.took < Duration::from_millis(1500), "{:?}", result.took);
        let living = world.living();
        assert!(
            !living.is_empty() && living.iter().all(|pid| result.left_running.iter().any(|left| left.to_string() == *pid)),
            "{living:?}"
        );
        let started = Instant::now();
        world.sandbox.shutdown().await;
        assert!(started.elapsed() < LIMIT);
        world.all_gone("shutdown");
    }
}

#[tokio::test]
async fn what_is_left_running_ends_with_a_sandbox_that_was_dropped() {
    for world in both() {
        world.run("setsid sh -c 'echo $$ > pids; sleep 300' & sleep 0.2").await.unwrap();
        let own = own_numbers(&world.sandbox);
        assert!(!world.living().is_empty());
        let World { sandbox, temp } = world;
        drop(sandbox);
        let started = Instant::now();
        while !living(temp.path(), own).is_empty() {
            assert!(started.elapsed() < LIMIT);
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// Without isolation the supervisor may be killed by the command that it watches over: then the mark finds what it watched over.
#[tokio::test]
async fn a_command_that_kills_its_supervisor() {
    let world = open(Supervisor::Program(supervisor()));
    let started = Instant::now();
    let error =
        world.run("echo $$ > pids; setsid sh -c 'echo $$ >> pids; sleep 300' & sleep 0.1; kill -9 $PPID; sleep 300").await.unwrap_err();
    assert_eq!(error.kind(), WorkspaceErrorKind::Spawn);
    assert!(started.elapsed() < LIMIT);
    world.all_gone("kill -9 $PPID");
}

#[tokio::test]
async fn a_command_that_stops_its_supervisor_and_itself() {
    let world = open(Supervisor::Program(supervisor()));
    world.abort("echo $$ > pids; touch ready; kill -STOP $PPID; kill -STOP $$; sleep 300").await;
}

/// A host that dies takes its commands with it.
#[test]
fn a_host_that_was_killed() {
    if let Ok(folder) = std::env::var("AC_KILL_TEST_HOST") {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut options = LocalSandboxOptions::default();
        options.supervisor = Supervisor::Program(supervisor());
        let sandbox = LocalSandbox::open_with(folder, options).unwrap();
        let command = "setsid env -i /bin/sh -c 'echo $$ > pids; : > ready; exec /bin/sleep 300' & sleep 300";
        runtime.block_on(sandbox.run(CommandRequest::new(command), Arc::new(NoSink), CancelToken::new())).ok();
        return;
    }
    let temp = TempDir::new().unwrap();
    let mut host = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_host_that_was_killed"])
        .env("AC_KILL_TEST_HOST", temp.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while !temp.path().join("ready").exists() {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(10));
    }
    let own = own_numbers(&supervised().sandbox);
    assert!(!living(temp.path(), own).is_empty());
    host.kill().unwrap();
    host.wait().unwrap();
    let started = Instant::now();
    while !living(temp.path(), own).is_empty() {
        assert!(started.elapsed() < LIMIT);
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Memory of this process, in bytes.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
