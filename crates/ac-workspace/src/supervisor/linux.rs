//! The supervisor on Linux.

use std::{
    collections::{HashMap, HashSet},
    ffi::OsString,
    fs,
    io::{self, BufRead, BufReader, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::{net::UnixStream, process::CommandExt},
    },
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitOptions};

use super::confine::Policy;

/// How long what is left may take to end when the host is gone.
const ORPHANED_GRACE: Duration = Duration::from_millis(200);

/// Runs the command to its end, tells the host how it ended and who is left, and stays until nobody is.
///
/// Standard input is the line to the host: `kill MILLISECONDS` or its end mean that all must end. Told are `exit CODE` or `signal N`,
/// then `left PID…`. This process ends when nobody is left.
pub(super) fn supervise(arguments: impl Iterator<Item = OsString>) -> i32 {
    match run(arguments) {
        Ok(()) => 0,
        Err(error) => {
            if let Ok(mut line) = host() {
                let _ = writeln!(line, "failed {error}");
            }
            70
        }
    }
}

fn host() -> io::Result<UnixStream> {
    let line: OwnedFd = io::stdin().as_fd().try_clone_to_owned()?;
    Ok(UnixStream::from(line))
}

fn run(mut arguments: impl Iterator<Item = OsString>) -> io::Result<()> {
    // Away from the terminal of whoever started the host: a command could write to it, type into it, and take it.
    rustix::process::setsid()?;
    let policy = Policy::read(&mut arguments)?;
    let program = arguments.next().ok_or(io::ErrorKind::InvalidInput)?;
    let mut line = host()?;
    let me = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(me))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).process_group(0);
    // In a thread of its own, so that the limits hold for the command and not for who watches over it.
    let start = std::thread::spawn(move || {
        policy.enforce().map_err(io::Error::other)?;
        command.spawn()
    });
    let child = start.join().map_err(|_| io::Error::other("the command could not be started"))??;
    // Only the command shall hold the pipes, so that their end is seen as soon as it closes them.
    drop_output()?;
    let orders = line.try_clone()?;
    std::thread::spawn(move || obey(orders));
    let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == leader => {
                let told = match (status.exit_status(), status.terminating_signal()) {
                    (Some(code), _) => format!("exit {code}"),
                    (None, Some(signal)) => format!("signal {signal}"),
                    (None, None) => "exit -1".to_owned(),
                };
                let left: String = left().iter().map(|pid| format!(" {}", pid.as_raw_nonzero())).collect();
                // The host may be gone; then the other thread is ending everything.
                let _ = writeln!(line, "{told}\nleft{left}");
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // Nobody is left.
            Err(_) => return Ok(()),
        }
    }
}

fn drop_output() -> io::Result<()> {
    let null = fs::OpenOptions::new().write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdout(&null)?;
    rustix::stdio::dup2_stderr(&null)?;
    Ok(())
}

/// Waits for the order to end, or for the end of the host.
fn obey(line: UnixStream) -> ! {
    let mut grace = ORPHANED_GRACE;
    let mut order = String::new();
    if BufReader::new(line).read_line(&mut order).is_ok_and(|count| count > 0)
        && let Some(milliseconds) = order.trim().strip_prefix("kill ").and_then(|number| number.parse().ok())
    {
        grace = Duration::from_millis(milliseconds);
    }
    let started = Instant::now();
    signal_all(Signal::TERM);
    loop {
        std::thread::sleep(Duration::from_millis(10));
        if started.elapsed() >= grace {
            // Stopped first, so that nobody starts another while the others are killed.
            signal_all(Signal::STOP);
            signal_all(Signal::KILL);
        }
    }
}

fn signal_all(signal: Signal) {
    for pid in descendants() {
        rustix::process::kill_process(pid, signal).ok();
    }
}

/// Who is left when the command is over. The first process of a namespace of processes ends a moment after the command that it was for.
fn left() -> Vec<Pid> {
    let keeper = |pid: &Pid| fs::read_to_string(format!("/proc/{}/comm", pid.as_raw_nonzero())).is_ok_and(|name| name.trim() == "bwrap");
    for _ in 0..25 {
        let found = descendants();
        if !found.iter().all(keeper) || found.is_empty() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(4));
    }
    descendants()
}

/// Everybody below this process who still runs.
fn descendants() -> Vec<Pid> {
    let mut children: HashMap<i32, Vec<i32>> = HashMap::new();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let mut running = HashSet::new();
    for pid in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok()) {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { continue };
        let Some((_, rest)) = stat.rsplit_once(") ") else { continue };
        let mut fields = rest.split(' ');
        let (state, parent) = (fields.next(), fields.next().and_then(|parent| parent.parse().ok()));
        if let Some(parent) = parent {
            children.entry(parent).or_default().push(pid);
        }
        if !matches!(state, Some("Z" | "X")) {
            running.insert(pid);
        }
    }
    let mut found = Vec::new();
    let mut below = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = below.pop() {
        for child in children.remove(&parent).unwrap_or_default() {
            below.push(child);
            if running.contains(&child) {
                found.extend(Pid::from_raw(child));
            }
        }
    }
    found
}
