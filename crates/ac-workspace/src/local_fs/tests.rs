use std::{fs, os::unix::fs::symlink};

use tempfile::TempDir;

use super::*;

struct World {
    _temp: TempDir,
    outside: PathBuf,
    base: PathBuf,
    files: LocalFilesystem,
}

fn world() -> World {
    world_with(LocalFilesystemOptions::default())
}

fn world_with(options: LocalFilesystemOptions) -> World {
    let temp = TempDir::new().unwrap();
    let top = temp.path().canonicalize().unwrap();
    let (base, outside) = (top.join("base"), top.join("outside"));
    fs::create_dir_all(&base).unwrap();
    fs::create_dir_all(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    let files = LocalFilesystem::open_with(&base, options).unwrap();
    World { _temp: temp, outside, base, files }
}

fn kind<T: std::fmt::Debug>(result: Result<T, WorkspaceError>) -> Kind {
    result.unwrap_err().kind()
}

impl World {
    async fn read(&self, path: impl AsRef<Path>) -> Result<Vec<u8>, WorkspaceError> {
        self.files.read(path.as_ref(), 1 << 20).await.map(|content| content.bytes)
    }

    async fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<FileVersion, WorkspaceError> {
        self.files.write(path.as_ref(), text.into(), Expect::Anything).await
    }

    async fn found(&self, query: WalkQuery) -> Vec<String> {
        let found = self.files.walk(query, &CancelToken::new()).await.unwrap();
        found.entries.iter().map(|entry| entry.path.display().to_string()).collect()
    }
}

#[tokio::test]
async fn what_is_written_is_read_back_and_folders_appear() {
    let world = world();
    let version = world.write("a/b/c.txt", "hello").await.unwrap();
    assert_eq!(world.read("a/b/c.txt").await.unwrap(), b"hello");
    assert_eq!(world.read(world.base.join("a/b/c.txt")).await.unwrap(), b"hello");
    assert_eq!(world.files.read(Path::new("a/./b/../b/c.txt"), 5).await.unwrap().version, version);
    assert_eq!(kind(world.files.read(Path::new("a/b/c.txt"), 4).await), Kind::TooLarge);
    assert_eq!(kind(world.read("a/b").await), Kind::IsDirectory);
    assert_eq!(kind(world.read("a/x").await), Kind::NotFound);
    assert_eq!(kind(world.read("a/b/c.txt/d").await), Kind::NotDirectory);
}

#[tokio::test]
async fn a_write_that_is_refused_leaves_nothing_behind() {
    let world = world();
    fs::create_dir(world.base.join("there")).unwrap();
    for path in ["new/../../outside/secret", "./new/../../x", "new/../x", "new/deep/../../../x", "there/new/../x"] {
        world.write(path, "x").await.unwrap_err();
        world.files.make_dir(&Path::new(path).join("sub")).await.unwrap_err();
    }
    let names = |folder: &str| fs::read_dir(world.base.join(folder)).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!((names(""), names("there")), (vec!["there".into()], vec![]));
    world.write("there/../new/file", "x").await.unwrap();
    assert_eq!(world.read("new/file").await.unwrap(), b"x");
}

#[tokio::test]
async fn nothing_outside_is_reached() {
    let world = world();
    symlink(&world.outside, world.base.join("abs")).unwrap();
    symlink("../outside", world.base.join("rel")).unwrap();
    symlink("../outside/secret", world.base.join("file")).unwrap();
    for path in ["../outside/secret", "abs/secret", "rel/secret", "file", "/etc/passwd", "x/../../outside/secret"] {
        fs::create_dir_all(world.base.join("x")).unwrap();
        assert_eq!(kind(world.read(path).await), Kind::Escape, "{path}");
        assert_eq!(kind(world.write(path, "x").await), Kind::Escape, "{path}");
        assert_eq!(kind(world.files.stat(Path::new(path)).await), Kind::Escape, "{path}");
    }
    assert_eq!(kind(world.write("abs/new", "x").await), Kind::Escape);
    assert_eq!(kind(world.write("rel/deep/new", "x").await), Kind::Escape);
    assert_eq!(kind(world.files.make_dir(Path::new("rel/new")).await), Kind::Escape);
    assert_eq!(kind(world.files.list(Path::new("rel")).await), Kind::Escape);
    assert_eq!(fs::read_dir(&world.outside).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(world.outside.join("secret")).unwrap(), "secret");
}

#[tokio::test]
async fn a_link_that_stays_inside_works_and_stays_a_link() {
    let world = world();
    world.write("dir/real", "old").await.unwrap();
    symlink("dir/real", world.base.join("link")).unwrap();
    symlink("dir", world.base.join("folder")).unwrap();
    world.write("link", "new").await.unwrap();
    world.write("folder/more", "more").await.unwrap();
    assert_eq!(fs::read_to_string(world.base.join("dir/real")).unwrap(), "new");
    assert!(fs::symlink_metadata(world.base.join("link")).unwrap().is_symlink());
    assert_eq!(world.read("dir/more").await.unwrap(), b"more");
    assert_eq!(world.files.resolve(Path::new("folder/none/x")).await.unwrap(), Path::new("dir/none/x"));
}

#[tokio::test]
async fn a_write_leaves_hard_links_and_modes_alone() {
    use std::os::unix::fs::PermissionsExt;
    let world = world();
    fs::hard_link(world.outside.join("secret"), world.base.join("hard")).unwrap();
    fs::set_permissions(world.base.join("hard"), fs::Permissions::from_mode(0o750)).unwrap();
    world.write("hard", "changed").await.unwrap();
    assert_eq!(fs::read_to_string(world.outside.join("secret")).unwrap(), "secret");
    assert_eq!(fs::metadata(world.base.join("hard")).unwrap().permissions().mode() & 0o777, 0o750);
    assert_eq!(fs::read_dir(&world.base).unwrap().count(), 1, "no temporary file is left");
}

/// A host that runs as root writes files of other people. What was said of their content is not said of another.
#[tokio::test]
async fn a_file_stays_its_owners() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let world = world();
    let path = world.base.join("theirs");
    fs::write(&path, "a").unwrap();
    if std::os::unix::fs::chown(&path, Some(4321), Some(4321)).is_err() {
        println!("skipped: only root may give files away");
        return;
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
    world.write("theirs", "b").await.unwrap();
    let meta = fs::metadata(&path).unwrap();
    assert_eq!((meta.uid(), meta.gid(), meta.permissions().mode() & 0o7777), (4321, 4321, 0o755));
    assert_eq!(fs::read_to_string(&path).unwrap(), "b");
}

#[tokio::test]
async fn a_write_happens_only_when_what_it_expects_holds() {
    let world = world();
    let first = world.write("f", "one").await.unwrap();
    assert_eq!(kind(world.files.write(Path::new("f"), b"x".into(), Expect::Absent).await), Kind::Exists);
    // The same size in the same second (B-88).
    fs::write(world.base.join("f"), "two").unwrap();
    assert_eq!(kind(world.files.write(Path::new("f"), b"x".into(), Expect::Version(first)).await), Kind::Stale);
    // Touched, with the same content.
    fs::write(world.base.join("f"), "one").unwrap();
    world.files.write(Path::new("f"), b"three".into(), Expect::Version(first)).await.unwrap();
    fs::remove_file(world.base.join("f")).unwrap();
    assert_eq!(kind(world.files.write(Path::new("f"), b"x".into(), Expect::Version(first)).await), Kind::Stale);
    world.files.write(Path::new("f"), b"x".into(), Expect::Absent).await.unwrap();
    assert_eq!(fs::read_dir(&world.base).unwrap().count(), 1);
}

#[tokio::test]
async fn pipes_and_devices_are_refused_at_once() {
    let world = world();
    let pipe = world.base.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0).unwrap();
    assert_eq!(kind(world.read("pipe").await), Kind::Special);
    assert_eq!(kind(world.write("pipe", "x").await), Kind::Special);
}

#[tokio::test]
async fn a_read_only_workspace_refuses_every_change() {
    let world = world_with(LocalFilesystemOptions { read_only: true, ..Default::default() });
    fs::write(world.base.join("f"), "x").unwrap();
    assert!(world.files.read_only());
    assert_eq!(kind(world.write("f", "y").await), Kind::ReadOnly);
    assert_eq!(kind(world.files.make_dir(Path::new("d")).await), Kind::ReadOnly);
    assert_eq!(kind(world.files.remove(Path::new("f"), false).await), Kind::ReadOnly);
    assert_eq!(kind(world.files.rename(Path::new("f"), Path::new("g")).await), Kind::ReadOnly);
}

#[tokio::test]
async fn further_roots_are_named_by_absolute_paths() {
    let temp = TempDir::new().unwrap();
    let extra = temp.path().canonicalize().unwrap();
    fs::write(extra.join("note"), "n").unwrap();
    let world = world_with(LocalFilesystemOptions { readable: vec![extra.clone()], ..Default::default() });
    assert_eq!(world.read(extra.join("note")).await.unwrap(), b"n");
    assert_eq!(kind(world.write(extra.join("note"), "x").await), Kind::ReadOnly);
    assert_eq!(world.files.resolve(&extra.join("note")).await.unwrap(), extra.join("note"));
    assert_eq!(kind(world.read(extra.join("../x")).await), Kind::Escape);
}

#[tokio::test]
async fn removing_and_moving_stay_inside_and_replace_nothing() {
    let world = world();
    world.write("d/e/f", "x").await.unwrap();
    world.write("g", "y").await.unwrap();
    symlink("../../outside", world.base.join("d/out")).unwrap();
    assert_eq!(kind(world.files.remove(Path::new("d"), false).await), Kind::NotEmpty);
    assert_eq!(kind(world.files.remove(Path::new("."), true).await), Kind::Denied);
    assert_eq!(kind(world.files.rename(Path::new("g"), Path::new("d/e/f")).await), Kind::Exists);
    assert_eq!(kind(world.files.rename(Path::new("d"), Path::new("d/e/d")).await), Kind::Invalid);
    assert_eq!(kind(world.files.rename(Path::new("g"), Path::new("d/out/g")).await), Kind::Escape);
    world.files.rename(Path::new("g"), Path::new("new/place/g")).await.unwrap();
    assert_eq!(world.read("new/place/g").await.unwrap(), b"y");
    world.files.remove(Path::new("d"), true).await.unwrap();
    assert!(world.outside.join("secret").exists());
    assert_eq!(kind(world.files.remove(Path::new("d"), true).await), Kind::NotFound);
}

#[tokio::test]
async fn a_walk_respects_ignore_files_and_follows_no_link() {
    let world = world();
    for (path, text) in [
        (".gitignore", "*.log\n/target/\n!keep.log\n"),
        ("a.rs", ""),
        ("a.log", ""),
        ("keep.log", ""),
        (".hidden", ""),
        ("target/x.rs", ""),
        ("sub/.gitignore", "b.rs\n"),
        ("sub/b.rs", ""),
        ("sub/target/c.rs", ""),
        (".git/config", ""),
    ] {
        world.write(path, text).await.unwrap();
    }
    symlink("../outside", world.base.join("out")).unwrap();
    assert_eq!(world.found(WalkQuery::new(".")).await, ["a.rs", "keep.log", "out", "sub/target/c.rs"]);
    assert_eq!(world.found(WalkQuery::new("sub")).await, ["sub/target/c.rs"]);
    let globs = |patterns: &[&str]| patterns.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(world.found(WalkQuery { patterns: globs(&["*.rs"]), ..WalkQuery::new(".") }).await, ["a.rs", "sub/target/c.rs"]);
    let all = WalkQuery { patterns: globs(&["*.rs"]), ignored: true, hidden: true, ..WalkQuery::new(".") };
    assert_eq!(world.found(all).await, ["a.rs", "sub/b.rs", "sub/target/c.rs", "target/x.rs"]);
    let shallow = WalkQuery { max_depth: Some(1), dirs: true, exclude: globs(&["out"]), ..WalkQuery::new(".") };
    assert_eq!(world.found(shallow).await, ["a.rs", "keep.log", "sub"]);
    assert_eq!(world.found(WalkQuery::new("a.rs")).await, ["a.rs"]);
    assert_eq!(kind(world.files.walk(WalkQuery::new("out"), &CancelToken::new()).await), Kind::Escape);
    assert_eq!(
        kind(world.files.walk(WalkQuery { patterns: globs(&["[a"]), ..WalkQuery::new(".") }, &CancelToken::new()).await),
        Kind::Invalid
    );
}

#[tokio::test]
async fn a_search_finds_lines_with_their_neighbours() {
    let world = world();
    world.write("a.txt", "one\ntwo\nthree\r\n").await.unwrap();
    world.write("b/c.txt", "Two\n").await.unwrap();
    world.write("bin", "two\0two\n").await.unwrap();
    let search = |query| {
        let files = world.files.clone();
        async move { files.search(query, &CancelToken::new()).await }
    };
    let lines = |result: &SearchResult| {
        result.hits.iter().map(|hit| format!("{}:{}:{}", hit.path.display(), hit.line, hit.text)).collect::<Vec<_>>()
    };
    let found = search(SearchQuery::new("t.*o|thr", ".")).await.unwrap();
    assert_eq!(lines(&found), ["a.txt:2:two", "a.txt:3:three"]);
    let found = search(SearchQuery { ignore_case: true, ..SearchQuery::new("two", ".") }).await.unwrap();
    assert_eq!(lines(&found), ["a.txt:2:two", "b/c.txt:1:Two"]);
    assert_eq!((found.files, found.truncated), (2, false));
    let found = search(SearchQuery { context: 1, ..SearchQuery::new("two", "a.txt") }).await.unwrap();
    assert_eq!(found.hits.iter().map(|hit| (hit.line, hit.context)).collect::<Vec<_>>(), [(1, true), (2, false), (3, true)]);
    assert_eq!(kind(search(SearchQuery::new("(", ".")).await), Kind::Invalid);
    assert!(search(SearchQuery { literal: true, ..SearchQuery::new("(", ".") }).await.unwrap().hits.is_empty());
    let found = search(SearchQuery { limit: 1, ..SearchQuery::new(".", ".") }).await.unwrap();
    assert!(found.truncated && found.hits.len() == 1);
}

#[tokio::test]
async fn a_walk_and_a_search_stop_when_told_to() {
    let world = world();
    world.write("a", "x").await.unwrap();
    let cancel = CancelToken::new();
    cancel.cancel();
    assert_eq!(kind(world.files.walk(WalkQuery::new("."), &cancel).await), Kind::Cancelled);
    assert_eq!(kind(world.files.search(SearchQuery::new("x", "."), &cancel).await), Kind::Cancelled);
}
