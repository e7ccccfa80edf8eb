//! Attempts by commands. Each one first gets out of a sandbox without isolation; under isolation it must not. Where the kernel cannot
//! isolate, they are skipped by name, and a sandbox that must isolate refuses to open.

use std::{
    fs,
    net::TcpListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use ac_core::CancelToken;
use ac_workspace::{
    CommandRequest, CommandResult, FileLimit, Isolation, LocalSandbox, LocalSandboxOptions, NetworkLimit, NoSink, Sandbox, Supervisor,
    WorkspaceErrorKind as Kind,
};

use crate::Place;

fn sandbox(base: &Path, isolation: Isolation) -> Option<LocalSandbox> {
    let mut options = LocalSandboxOptions::default();
    options.isolation = isolation;
    options.supervisor = Supervisor::Program(PathBuf::from(env!("CARGO_BIN_EXE_ac-supervisor")));
    match LocalSandbox::open_with(base, options) {
        Ok(sandbox) => Some(sandbox),
        Err(error) => {
            assert_eq!(error.kind(), Kind::Isolation);
            println!("skipped: {error}");
            None
        }
    }
}

fn run(sandbox: &LocalSandbox, command: &str) -> CommandResult {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let result = sandbox.run(CommandRequest::new(command), Arc::new(NoSink), CancelToken::new()).await.unwrap();
        sandbox.shutdown().await;
        result
    })
}

/// Commands that change something outside, with `$out` for the folder there.
const CHANGES: [(&str, &str); 16] = [
    ("redirect", "echo pwned > $out/secret"),
    ("append", "echo pwned >> $out/secret"),
    ("empty", "truncate -s 0 $out/secret"),
    ("new file", "touch $out/new"),
    ("new folder", "mkdir $out/new"),
    ("remove", "rm $out/secret"),
    ("remove tree", "rm -r $out/deep"),
    ("rename", "mv $out/secret $out/other"),
    ("move out", "mv own $out/own"),
    ("link", "ln -s x $out/link"),
    ("through a link", "ln -s $out way && echo pwned > way/secret"),
    ("through a hard link", "ln $out/secret hard && echo pwned > hard"),
    ("through the root of a process", "echo pwned > /proc/self/root$out/secret"),
    ("in a session of its own", "setsid sh -c 'echo pwned > $out/secret'; sleep 0.1"),
    ("by a daemon", "(setsid sh -c 'sleep 0.1; echo pwned > $out/secret' >/dev/null 2>&1 &); sleep 0.4"),
    ("pipe to be read", "mkfifo $out/pipe"),
];

#[test]
fn commands_that_change_what_is_outside() {
    for (name, command) in CHANGES {
        println!("{name}");
        let place = Place::new();
        let before = place.state();
        run(&sandbox(&place.base, Isolation::Off).unwrap(), &command.replace("$out", &place.outside.display().to_string()));
        let changed = if name == "pipe to be read" { place.outside.join("pipe").exists() } else { place.changed(&before) };
        assert!(changed, "{name} changes nothing without isolation");

        let place = Place::new();
        let before = place.state();
        let Some(held) = sandbox(&place.base, Isolation::Required) else { return };
        assert_eq!(held.confinement().files, FileLimit::WriteInside);
        run(&held, &command.replace("$out", &place.outside.display().to_string()));
        assert!(!place.outside.join("pipe").exists());
        assert_eq!(place.state(), before, "{name} got out");
    }
}

/// The terminal of whoever started the host is not the command's to write to, to type into, or to take.
#[test]
fn commands_are_away_from_the_terminal_of_the_host() {
    let session_and_terminal = |stat: &str| {
        let fields: Vec<String> = stat.rsplit_once(") ").unwrap().1.split(' ').map(str::to_owned).collect();
        (fields[3].clone(), fields[4].clone())
    };
    let (ours, _) = session_and_terminal(&fs::read_to_string("/proc/self/stat").unwrap());
    for isolation in [Isolation::Off, Isolation::Required] {
        let place = Place::new();
        let Some(held) = sandbox(&place.base, isolation) else { return };
        let (theirs, terminal) = session_and_terminal(&run(&held, "cat /proc/self/stat").output.head);
        assert_ne!(theirs, ours, "a session of its own");
        assert_eq!(terminal, "0", "and no terminal");
        assert!(!run(&held, "echo x > /dev/tty && echo written").output.head.contains("written"));
    }
}

#[test]
fn commands_work_inside_and_have_a_place_for_temporary_files() {
    let place = Place::new();
    let Some(held) = sandbox(&place.base, Isolation::Required) else { return };
    let result = run(
        &held,
        "echo x > sub/new && mkdir -p d && mv own d/ && t=$(mktemp) && echo y > \"$t\" && cat \"$t\" >/dev/null && cat /etc/hostname >/dev/null; echo $?",
    );
    assert!(result.output.head.ends_with("0\n"), "{}", result.output.head);
    assert!(place.base.join("sub/new").exists() && place.base.join("d/own").exists());
}

#[test]
fn commands_that_use_the_network() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let bash = "/bin/bash";
    if !Path::new(bash).exists() {
        println!("skipped: network (needs bash)");
        return;
    }
    let command = format!("{bash} -c 'exec 3<>/dev/tcp/127.0.0.1/{port}' && echo connected");
    let place = Place::new();
    assert_eq!(run(&sandbox(&place.base, Isolation::Off).unwrap(), &command).output.head, "connected\n");
    let Some(held) = sandbox(&place.base, Isolation::Required) else { return };
    assert_ne!(held.confinement().network, NetworkLimit::Open);
    let result = run(&held, &command);
    assert!(!result.output.head.contains("connected"), "{}", result.output.head);

    let mut options = LocalSandboxOptions::default();
    options.isolation = Isolation::Required;
    options.network = true;
    options.supervisor = Supervisor::Program(PathBuf::from(env!("CARGO_BIN_EXE_ac-supervisor")));
    let allowed = LocalSandbox::open_with(&place.base, options).unwrap();
    assert_eq!(allowed.confinement().network, NetworkLimit::Open);
    assert_eq!(run(&allowed, &command).output.head, "connected\n");
}

/// Who is limited may not end those who are not: its supervisor, or the host.
#[test]
fn commands_that_signal_others() {
    let place = Place::new();
    let Some(held) = sandbox(&place.base, Isolation::Required) else { return };
    let mut other = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    let result = run(&held, &format!("kill -9 {} || echo refused; kill -9 $PPID || echo refused", other.id()));
    if result.output.head.matches("refused").count() == 2 {
        assert!(other.try_wait().unwrap().is_none());
    } else {
        println!("skipped: signals (this kernel cannot limit them): {}", result.output.head);
    }
    other.kill().unwrap();
    other.wait().unwrap();

    let naive = sandbox(&place.base, Isolation::Off).unwrap();
    let mut other = std::process::Command::new("sleep").arg("300").spawn().unwrap();
    run(&naive, &format!("kill -9 {}", other.id()));
    assert!(!other.wait().unwrap().success());
}

#[test]
fn a_sandbox_that_cannot_isolate_but_must_does_not_open() {
    let mut options = LocalSandboxOptions::default();
    options.isolation = Isolation::Required;
    options.supervisor = Supervisor::Off;
    let place = Place::new();
    match LocalSandbox::open_with(&place.base, options) {
        Err(error) => assert_eq!(error.kind(), Kind::Isolation),
        // Bubblewrap needs no supervisor.
        Ok(sandbox) => assert_eq!(sandbox.confinement().network, NetworkLimit::Off),
    }
    let mut options = LocalSandboxOptions::default();
    options.isolation = Isolation::Off;
    let open = LocalSandbox::open_with(&place.base, options).unwrap();
    assert_eq!((open.confinement().files, open.confinement().network), (FileLimit::Open, NetworkLimit::Open));
    assert_eq!(open.confinement().to_string(), "files open, network open, not supervised");
    assert_eq!(fs::read_dir(&place.base).unwrap().count(), 2);
}
