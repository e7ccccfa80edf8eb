use std::{fs, sync::Mutex};

use tempfile::TempDir;

use super::*;
use crate::{CommandOutput, NoSink, OutputStream, WorkspaceErrorKind as Kind};

struct World {
    temp: TempDir,
    sandbox: LocalSandbox,
}

fn world() -> World {
    let temp = TempDir::new().unwrap();
    let sandbox = LocalSandbox::open(temp.path()).unwrap();
    World { temp, sandbox }
}

impl World {
    async fn run(&self, command: &str) -> CommandResult {
        self.request(CommandRequest::new(command)).await.unwrap()
    }

    async fn request(&self, request: CommandRequest) -> Result<CommandResult, WorkspaceError> {
        self.sandbox.run(request, Arc::new(NoSink), CancelToken::new()).await
    }
}

/// B-81: each ends at once and says how.
#[tokio::test]
async fn a_command_tells_how_it_ended() {
    let world = world();
    for (command, exit, output) in [
        ("true", Exit::Code(0), ""),
        ("false", Exit::Code(1), ""),
        ("exit 3", Exit::Code(3), ""),
        (": > f", Exit::Code(0), ""),
        ("kill -9 $$", Exit::Signal(9), ""),
        ("echo out; echo err >&2; exit 7", Exit::Code(7), "out\nerr\n"),
        ("cat", Exit::Code(0), ""),
    ] {
        let result = world.run(command).await;
        assert_eq!(result.exit, exit, "{command}");
        let mut lines: Vec<&str> = result.output.head.lines().collect();
        lines.sort_unstable();
        let mut expected: Vec<&str> = output.lines().collect();
        expected.sort_unstable();
        assert_eq!(lines, expected, "{command}");
        assert!(result.took < Duration::from_secs(1), "{command} took {:?}", result.took);
        assert!(result.left_running.is_empty(), "{command}");
    }
    assert_eq!(world.run("no-such-program-anywhere").await.exit, Exit::Code(127));
}

#[tokio::test]
async fn a_command_runs_in_the_folder_that_was_asked_for_and_only_inside() {
    let world = world();
    fs::create_dir(world.temp.path().join("sub")).unwrap();
    std::os::unix::fs::symlink("/", world.temp.path().join("out")).unwrap();
    let mut request = CommandRequest::new("pwd -P");
    request.cwd = "sub".into();
    let result = world.request(request.clone()).await.unwrap();
    assert_eq!(result.output.head.trim(), world.temp.path().canonicalize().unwrap().join("sub").display().to_string());
    for outside in ["..", "/", "out", "sub/../.."] {
        request.cwd = outside.into();
        assert_eq!(world.request(request.clone()).await.unwrap_err().kind(), Kind::Escape, "{outside}");
    }
    request.cwd = "none".into();
    assert_eq!(world.request(request).await.unwrap_err().kind(), Kind::NotFound);
}

#[tokio::test]
async fn the_environment_holds_nothing_but_what_was_chosen() {
    let temp = TempDir::new().unwrap();
    let mut options = LocalSandboxOptions::default();
    options.env.insert("CHOSEN".into(), "yes".into());
    let sandbox = LocalSandbox::open_with(temp.path(), options).unwrap();
    let result = sandbox.run(CommandRequest::new("env"), Arc::new(NoSink), CancelToken::new()).await.unwrap();
    let names: Vec<&str> = result.output.head.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    assert!(names.contains(&"CHOSEN") && names.contains(&"PATH"));
    // The test runner's own variables are the keys that must not leak.
    assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
    assert!(!names.iter().any(|name| name.starts_with("CARGO")), "{names:?}");
}

/// B-82: head and tail are kept on character borders, the whole is in the log.
#[tokio::test]
async fn long_output_keeps_head_and_tail_and_says_where_the_rest_is() {
    let world = world();
    let result = world.run("echo start; yes 'ä' | head -n 200000; echo end").await;
    let CommandOutput { head, tail, total, omitted, log } = &result.output;
    assert!(head.starts_with("start\n") && tail.ends_with("end\n"));
    assert!(!head.contains('\u{fffd}') && !tail.contains('\u{fffd}'));
    assert_eq!(*total, 200_000 * 3 + 10);
    assert!(*omitted > 500_000 && head.len() + tail.len() <= 40 << 10);
    assert_eq!(fs::metadata(log.as_ref().unwrap()).unwrap().len(), *total);
    assert!(result.output.text().contains("bytes left out"));
}

#[tokio::test]
async fn a_command_that_takes_too_long_is_ended_with_what_it_printed() {
    let world = world();
    let mut request = CommandRequest::new("echo before; sleep 60");
    request.timeout = Some(Duration::from_millis(200));
    let result = world.request(request).await.unwrap();
    assert_eq!((result.exit, result.exit.code()), (Exit::TimedOut, 124));
    assert_eq!(result.output.head, "before\n");
    assert!(result.took < Duration::from_secs(2));
}

/// B-79: a process that inherits the pipes holds nothing up, is told, and is gone after shutdown.
#[tokio::test]
async fn what_a_command_leaves_running_is_told_and_ended_at_shutdown() {
    let world = world();
    for command in ["sleep 300 & echo done", "setsid sleep 300 & echo done", "(while :; do echo x; sleep 0.05; done) & echo done"] {
        let result = world.run(command).await;
        assert!(result.output.head.contains("done"), "{command}");
        assert!(result.took < Duration::from_millis(1500), "{command} took {:?}", result.took);
        assert!(!result.left_running.is_empty(), "{command}");
        world.sandbox.shutdown().await;
        for pid in result.left_running {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(state.is_empty() || state.contains(") Z "), "{command}: {pid} still runs: {state}");
        }
    }
}

/// B-78: nobody goes on writing after the result.
#[tokio::test]
async fn a_grandchild_that_ignores_the_signal_is_gone_before_the_result() {
    let world = world();
    let mut request = CommandRequest::new("trap '' TERM; (trap '' TERM; while :; do date >> out; sleep 0.02; done) & wait");
    request.timeout = Some(Duration::from_millis(300));
    assert_eq!(world.request(request).await.unwrap().exit, Exit::TimedOut);
    let size = || fs::metadata(world.temp.path().join("out")).unwrap().len();
    let before = size();
    assert!(before > 0);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert_eq!(size(), before);
}

#[tokio::test]
async fn a_cancelled_command_ends_as_cancelled_and_a_dropped_one_ends_too() {
    let world = world();
    let cancel = CancelToken::new();
    let run = world.sandbox.run(CommandRequest::new("sleep 60"), Arc::new(NoSink), cancel.clone());
    let stop = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(run, stop);
    assert_eq!(result.unwrap_err().kind(), Kind::Cancelled);

    let run = world.sandbox.run(CommandRequest::new("while :; do date >> out; sleep 0.02; done"), Arc::new(NoSink), CancelToken::new());
    tokio::time::timeout(Duration::from_millis(200), run).await.unwrap_err();
    let size = || fs::metadata(world.temp.path().join("out")).unwrap().len();
    tokio::time::sleep(Duration::from_millis(100)).await;
    let before = size();
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert_eq!(size(), before);
}

#[tokio::test]
async fn output_is_told_while_it_comes() {
    #[derive(Default)]
    struct Told(Mutex<Vec<(OutputStream, String)>>);
    impl OutputSink for Told {
        fn output(&self, stream: OutputStream, text: &str) {
            self.0.lock().unwrap().push((stream, text.to_owned()));
        }
    }
    let world = world();
    let told = Arc::new(Told::default());
    world.sandbox.run(CommandRequest::new("echo a; sleep 0.1; echo b >&2"), told.clone(), CancelToken::new()).await.unwrap();
    let told = told.0.lock().unwrap();
    assert_eq!(*told, [(OutputStream::Stdout, "a\n".to_owned()), (OutputStream::Stderr, "b\n".to_owned())]);
}
