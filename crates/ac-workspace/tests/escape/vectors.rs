//! Attempts without a race: a way out, and something that is done through it.

use std::{
    ffi::OsStr,
    fs,
    os::{
        fd::AsRawFd,
        unix::{ffi::OsStrExt, fs::symlink},
    },
    path::{Path, PathBuf},
    process::Command,
    sync::mpsc,
    time::Duration,
};

use ac_workspace::WorkspaceErrorKind as Kind;

use crate::{Act, Confined, Place, SECRET, Subject, attempt, naive::Naive};

/// A way to the folder outside, planted in a place; its path as an agent would give it.
type Way = (&'static str, fn(&Place) -> PathBuf);

fn link(place: &Place, name: impl AsRef<Path>, target: impl AsRef<Path>) -> PathBuf {
    symlink(target, place.base.join(&name)).unwrap();
    name.as_ref().to_owned()
}

const WAYS: [Way; 24] = [
    ("dots", |_| "../outside".into()),
    ("dots after a folder", |_| "sub/../../outside".into()),
    ("dots between slashes and dots", |_| ".//./sub/.././..//./outside".into()),
    ("absolute path with dots", |place| place.base.join("../outside")),
    ("absolute path with dots after a folder", |place| place.base.join("sub/../../outside")),
    ("thousand detours", |_| PathBuf::from("sub/../".repeat(500)).join("../outside")),
    ("absolute link", |place| link(place, "way", &place.outside)),
    ("relative link", |place| link(place, "way", "../outside")),
    ("link in a folder", |place| link(place, "sub/way", "../../outside")),
    ("link reached by dots", |place| Path::new("sub/..").join(link(place, "way", "../outside"))),
    ("link reached by an absolute path", |place| place.base.join(link(place, "way", "../outside"))),
    ("link to the folder above", |place| link(place, "up", "..").join("outside")),
    ("link to the root", |place| link(place, "root", "/").join(place.outside.strip_prefix("/").unwrap())),
    ("chain of links", |place| {
        link(place, "c", "../outside");
        link(place, "b", "c");
        link(place, "sub/a", "../b")
    }),
    ("link through a link", |place| {
        link(place, "up", "..");
        link(place, "way", "up/outside")
    }),
    ("link that goes out and comes back", |place| link(place, "way", "../base/../outside")),
    ("dots behind a link", |place| link(place, "way", "../outside/deep").join("..")),
    ("link through the process's root", |place| link(place, "root", "/proc/self/root").join(place.outside.strip_prefix("/").unwrap())),
    ("link through the process's folder", |place| {
        let here = std::env::current_dir().unwrap();
        let up = "../".repeat(here.components().count());
        link(place, "cwd", "/proc/self/cwd").join(up).join(place.outside.strip_prefix("/").unwrap())
    }),
    ("link to an open folder", |place| {
        let open = fs::File::open(&place.outside).unwrap();
        let way = link(place, "open", format!("/proc/self/fd/{}", open.as_raw_fd()));
        // Stays open as long as the process: the link leads nowhere otherwise.
        std::mem::forget(open);
        way
    }),
    ("link with a name that is no text", |place| link(place, OsStr::from_bytes(b"\xff\xfe\x80"), "../outside")),
    ("link with a line break in its name", |place| link(place, "a\nb", "../outside")),
    ("link with the longest name", |place| link(place, "n".repeat(255), "../outside")),
    ("link at the end of a deep path", |place| {
        let deep = PathBuf::from("d/".repeat(60));
        fs::create_dir_all(place.base.join(&deep)).unwrap();
        link(place, deep.join("way"), &place.outside)
    }),
];

/// 24 ways times what can be done through them: each pair is an attempt of its own.
#[test]
fn every_way_with_every_act() {
    let acts = [
        (Act::Read, "secret"),
        (Act::List, ""),
        (Act::Overwrite, "secret"),
        (Act::Create, "new"),
        (Act::MakeDir, "new/folder"),
        (Act::Remove, "secret"),
        (Act::RemoveTree, "deep"),
        (Act::MoveOut, "moved"),
        (Act::MoveIn, "secret"),
        (Act::Walk, ""),
        (Act::Search, ""),
    ];
    let mut made = 0;
    for (name, plant) in WAYS {
        for (act, what) in acts {
            println!("{name}: {act:?}");
            attempt(name, act, &[Kind::Escape], &|place| {
                let way = plant(place);
                if what.is_empty() { way } else { way.join(what) }
            });
            made += 1;
        }
    }
    println!("{made} attempts, none got out");
    assert!(made >= 60);
}

#[test]
fn a_folder_whose_name_begins_like_the_workspace() {
    attempt("sibling", Act::Read, &[Kind::Escape], &|place| {
        let sibling = PathBuf::from(format!("{}-evil", place.base.display()));
        fs::create_dir_all(&sibling).unwrap();
        fs::write(sibling.join("secret"), SECRET).unwrap();
        sibling.join("secret")
    });
}

#[test]
fn links_to_files() {
    for (name, target) in [("absolute", None), ("relative", Some("../outside/secret"))] {
        for act in [Act::Read, Act::Overwrite, Act::Search] {
            attempt(&format!("{name} link to a file"), act, &[Kind::Escape], &|place| {
                link(place, "way", target.map_or(place.outside.join("secret"), PathBuf::from))
            });
        }
        attempt(&format!("{name} link to a file that is not there yet"), Act::Overwrite, &[Kind::Escape], &|place| {
            link(place, "way", target.map_or(place.outside.join("new"), |_| PathBuf::from("../outside/new")))
        });
    }
}

#[test]
fn a_link_to_a_device() {
    attempt_device("link to a device", &|place| {
        symlink("/dev/zero", place.base.join("zero")).unwrap();
        true
    });
}

#[test]
fn a_device_in_the_workspace() {
    attempt_device("device", &|place| {
        let made = Command::new("mknod").arg(place.base.join("zero")).args(["c", "1", "5"]).output();
        made.is_ok_and(|made| made.status.success()) && fs::File::open(place.base.join("zero")).is_ok()
    });
}

fn attempt_device(name: &str, plant: &dyn Fn(&Place) -> bool) {
    let place = Place::new();
    if !plant(&place) {
        println!("skipped: {name} (needs the right to make device files)");
        return;
    }
    let seen = Naive::new(&place.base).act(Act::Read, Path::new("zero")).unwrap();
    assert_eq!(seen.len(), 1 << 20, "the device answers without end");
    let confined = Confined::new(&place.base);
    for act in [Act::Read, Act::Overwrite] {
        let kind = confined.act(act, Path::new("zero")).unwrap_err().kind();
        assert!(matches!(kind, Kind::Escape | Kind::Special), "{name}: {act:?}: {kind:?}");
    }
    let found = confined.act(Act::Search, Path::new(".")).unwrap();
    assert_eq!(found, "");
}

/// A pipe holds whoever opens it until somebody opens the other end: a thread for ever.
#[test]
fn a_pipe_that_nobody_writes_to() {
    for act in [Act::Read, Act::Overwrite, Act::Search] {
        let place = Place::new();
        let pipe = place.base.join("sub/pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let path = if act == Act::Search { "sub" } else { "sub/pipe" };

        if act != Act::Search {
            let (base, (done, ended)) = (place.base.clone(), mpsc::channel());
            let thread = std::thread::spawn(move || {
                Naive::new(&base).act(act, Path::new(path)).ok();
                done.send(()).ok();
            });
            ended.recv_timeout(Duration::from_millis(200)).unwrap_err();
            // Lets the naive one go.
            let end = fs::OpenOptions::new().read(act == Act::Overwrite).write(act == Act::Read).open(&pipe).unwrap();
            ended.recv_timeout(Duration::from_secs(5)).ok();
            drop(end);
            thread.join().unwrap();
        }

        let started = std::time::Instant::now();
        match Confined::new(&place.base).act(act, Path::new(path)) {
            Err(error) => assert_eq!(error.kind(), Kind::Special, "{act:?}"),
            Ok(seen) => assert!(act == Act::Search && seen.is_empty()),
        }
        assert!(started.elapsed() < Duration::from_secs(2));
    }
}

/// A file with a second name outside: what is written must not reach it. Its content is inside, so it may be read.
#[test]
fn a_second_name_of_a_file_outside() {
    let plant = |place: &Place| fs::hard_link(place.outside.join("secret"), place.base.join("hard")).unwrap();
    let place = Place::new();
    plant(&place);
    Naive::new(&place.base).act(Act::Overwrite, Path::new("hard")).unwrap();
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), "pwned");

    let place = Place::new();
    plant(&place);
    Confined::new(&place.base).act(Act::Overwrite, Path::new("hard")).unwrap();
    assert_eq!(fs::read_to_string(place.outside.join("secret")).unwrap(), SECRET);
    assert_eq!(fs::read_to_string(place.base.join("hard")).unwrap(), "pwned");
}

/// Links below the place where a walk starts, and below what is removed.
#[test]
fn trees_that_hold_links() {
    for act in [Act::Walk, Act::Search, Act::RemoveTree] {
        for (name, target) in [("folder", "../../outside"), ("loop and folder", "../../outside"), ("file", "../../outside/secret")] {
            // The naive one does not find a file by walking, and loses itself in the loop when it removes.
            if (act != Act::Search && name == "file") || (act == Act::RemoveTree && name.starts_with("loop")) {
                continue;
            }
            attempt(&format!("tree with a link to a {name}"), act, &[], &|place| {
                if name.starts_with("loop") {
                    link(place, "sub/loop", ".");
                }
                link(place, "sub/way", target);
                "sub".into()
            });
        }
    }
}

/// A bind mount is the folder outside itself, whatever the path says. In a mount namespace of its own, so that nobody else sees it.
#[test]
fn a_folder_of_the_machine_that_is_mounted_inside() {
    if std::env::var_os("AC_ESCAPE_MOUNTED").is_none() {
        let mut again = Command::new("unshare");
        if !rustix::process::geteuid().is_root() {
            again.args(["--user", "--map-root-user"]);
        }
        again.args(["--mount", "--"]).arg(std::env::current_exe().unwrap());
        again.args(["--exact", "vectors::a_folder_of_the_machine_that_is_mounted_inside", "--nocapture"]).env("AC_ESCAPE_MOUNTED", "1");
        match again.output() {
            Ok(out) if out.status.success() => print!("{}", String::from_utf8_lossy(&out.stdout)),
            Ok(out) if String::from_utf8_lossy(&out.stderr).starts_with("unshare:") => {
                println!("skipped: bind mount (needs the right to mount): {}", String::from_utf8_lossy(&out.stderr));
            }
            Err(error) => println!("skipped: bind mount (no unshare here: {error})"),
            Ok(out) => panic!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr)),
        }
        return;
    }
    let bind = |place: &Place| {
        for (from, to) in [(place.outside.clone(), place.base.join("sub")), (place.outside.join("secret"), place.base.join("own"))] {
            let done = Command::new("mount").arg("--bind").args([&from, &to]).output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
    };
    let acts = [
        (Act::Read, "sub/secret"),
        (Act::Read, "sub/deep/secret"),
        (Act::Read, "own"),
        (Act::Overwrite, "own"),
        (Act::List, "sub"),
        (Act::Overwrite, "sub/secret"),
        (Act::Create, "sub/new"),
        (Act::MakeDir, "sub/new/folder"),
        (Act::Remove, "sub/secret"),
        (Act::Walk, "sub"),
        (Act::Search, "sub"),
        (Act::RemoveTree, "sub/deep"),
    ];
    for (act, path) in acts {
        attempt("bind mount", act, &[Kind::Escape], &|place| {
            bind(place);
            path.into()
        });
    }
    for act in [Act::Walk, Act::Search] {
        attempt("tree with a bind mount", act, &[], &|place| {
            bind(place);
            ".".into()
        });
    }
    println!("{} attempts through mounts, none got out", acts.len() + 2);
}
