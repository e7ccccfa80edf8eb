use std::fs;

use ac_core::{Part, ToolErrorKind, ToolOutcome, ToolOutput};
use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::testing::context;

struct World {
    temp: TempDir,
    tools: ToolList,
}

fn world() -> World {
    world_with(WorkspaceToolOptions::default())
}

fn world_with(options: WorkspaceToolOptions) -> World {
    let temp = TempDir::new().unwrap();
    let workspace = Arc::new(Workspace::local(temp.path()).unwrap());
    World { temp, tools: tools(workspace, options) }
}

impl World {
    async fn call(&self, tool: &str, args: Value) -> Result<ToolOutput, ToolError> {
        let tool = self.tools.iter().find(|it| it.definition().name == tool).unwrap();
        match tool.call(args, &context(&tool.definition().name)).await? {
            ToolOutcome::Done(output) => Ok(output),
            other => panic!("expected a result, got {other:?}"),
        }
    }

    async fn text(&self, tool: &str, args: Value) -> String {
        self.call(tool, args).await.unwrap().model_text()
    }

    async fn refused(&self, tool: &str, args: Value) -> (ToolErrorKind, String) {
        let error = self.call(tool, args).await.unwrap_err();
        (error.kind(), error.to_string())
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.temp.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, path: &str) -> String {
        fs::read_to_string(self.temp.path().join(path)).unwrap()
    }
}

#[test]
fn each_tool_has_its_name_category_and_effect() {
    let world = world();
    let shown: Vec<String> = world
        .tools
        .iter()
        .map(|tool| {
            let it = tool.definition();
            assert_eq!(it.input_schema["additionalProperties"], false, "{}", it.name);
            format!("{} {} {:?}", it.name, it.category.as_str(), it.effect)
        })
        .collect();
    assert_eq!(
        shown,
        [
            "view read ReadOnly",
            "find_files read ReadOnly",
            "search_content read ReadOnly",
            "diff read ReadOnly",
            "write_file edit Idempotent",
            "string_replace edit Mutating",
            "multi_edit edit Mutating",
            "delete edit Mutating",
            "move edit Mutating",
            "make_dir edit Idempotent",
            "execute_command execute Mutating",
            "list_processes execute ReadOnly",
            "process_output execute ReadOnly",
            "kill_process execute Idempotent",
        ]
    );
}

#[test]
fn tools_are_renamed_switched_off_and_made_to_ask() {
    let options = WorkspaceToolOptions::default()
        .with(WorkspaceTool::View, |it| it.name = Some("read_file".into()))
        .with(WorkspaceTool::ExecuteCommand, |it| it.enabled = false)
        .with(WorkspaceTool::Delete, |it| it.enabled = false)
        .with(WorkspaceTool::FindFiles, |it| it.requires_approval = true);
    let definitions: Vec<_> = world_with(options).tools.iter().map(|tool| tool.definition()).collect();
    assert_eq!(definitions[0].name, "read_file");
    assert!(definitions[1].requires_approval);
    assert!(definitions.iter().all(|it| it.name != "execute_command" && it.name != "delete"));
}

#[tokio::test]
async fn a_file_is_shown_with_numbers_and_by_range() {
    let world = world();
    world.put("f.txt", "one\ntwo\nthree\n");
    assert_eq!(world.text("view", json!({"path": "f.txt"})).await, "1\tone\n2\ttwo\n3\tthree\n");
    let part = world.text("view", json!({"path": "f.txt", "offset": 2, "limit": 1})).await;
    assert_eq!(part, "2\ttwo\n[lines 2-2 of 3; go on with offset 3]\n");
    assert_eq!(world.text("view", json!({"path": "f.txt", "offset": 9})).await, "[the file has 3 lines; line 9 is past its end]");
    world.put("empty", "");
    assert_eq!(world.text("view", json!({"path": "empty"})).await, "[the file is empty]");
    assert_eq!(world.text("view", json!({"path": "."})).await, "empty\nf.txt\n");
    assert_eq!(world.refused("view", json!({"path": "none"})).await.1, "there is nothing at `none`");
    assert_eq!(world.refused("view", json!({"path": "../x"})).await.0, ToolErrorKind::Denied);
}

/// B-82: one result never overflows, whether by many lines or by one.
#[tokio::test]
async fn a_huge_file_is_shown_in_parts() {
    let world = world();
    world.put("long", &"x".repeat(3 << 20));
    world.put("many", &"line\n".repeat(100_000));
    let long = world.text("view", json!({"path": "long"})).await;
    assert!(long.len() < 64 << 10 && long.contains("more bytes in this line"));
    let many = world.text("view", json!({"path": "many"})).await;
    assert!(many.len() < 64 << 10 && many.contains("of 100000; go on with offset"));
}

#[tokio::test]
async fn a_written_file_is_reported_with_its_diff() {
    let world = world();
    world.put("a.txt", "old\n");
    let output = world.call("write_file", json!({"path": "./a.txt", "content": "new\n"})).await.unwrap();
    assert_eq!(output.value, "Wrote 4 bytes to a.txt.");
    let change = &output.changed[0];
    assert_eq!((change.path.as_str(), change.operation.as_str()), ("a.txt", "write_file"));
    assert_eq!(change.diff.as_deref(), Some("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"));
    world.call("write_file", json!({"path": "deep/er/b.txt", "content": "x"})).await.unwrap();
    assert_eq!(world.get("deep/er/b.txt"), "x");
    let refused = world.refused("write_file", json!({"path": "a.txt", "content": "z", "overwrite": false})).await;
    assert_eq!(refused.1, "`a.txt` exists already");
    assert_eq!(world.get("a.txt"), "new\n");
}

#[tokio::test]
async fn a_replacement_needs_exactly_one_place() {
    let world = world();
    world.put("f", "a b a\nc\n");
    let edit = |old: &str, new: &str, all: bool| json!({"path": "f", "old_string": old, "new_string": new, "replace_all": all});
    assert!(world.refused("string_replace", edit("zz", "y", false)).await.1.contains("does not occur"));
    assert!(world.refused("string_replace", edit("a", "y", false)).await.1.contains("occurs 2 times in f (lines 1, 1)"));
    assert!(world.refused("string_replace", edit("c", "c", false)).await.1.contains("the same as new_string"));
    assert_eq!(world.get("f"), "a b a\nc\n");
    let output = world.call("string_replace", edit("c", "d", false)).await.unwrap();
    assert_eq!(output.value, "Replaced in f, first at line 2.");
    assert!(output.changed[0].diff.as_deref().unwrap().contains("-c\n+d\n"));
    assert_eq!(world.text("string_replace", edit("a", "e", true)).await, "Replaced 2 times in f, first at line 1.");
    assert_eq!(world.get("f"), "e b e\nd\n");
}

/// B-85: never U+FFFD in a file.
#[tokio::test]
async fn a_file_that_is_no_text_is_left_alone() {
    let world = world();
    fs::write(world.temp.path().join("bin"), b"a\0b").unwrap();
    let refused = world.refused("string_replace", json!({"path": "bin", "old_string": "a", "new_string": "b"})).await;
    assert!(refused.1.contains("binary"));
    assert_eq!(world.text("view", json!({"path": "bin"})).await, "[`bin` is a binary file of 3 bytes]");
}

#[tokio::test]
async fn a_picture_is_shown_to_the_model_as_a_picture() {
    let world = world();
    fs::write(world.temp.path().join("a.txt"), b"\x89PNG\r\n\x1a\n\0\0").unwrap();
    let output = world.call("view", json!({"path": "a.txt"})).await.unwrap();
    assert_eq!(output.value, "[`a.txt`: image/png, 10 bytes]");
    let Some(Part::File(file)) = output.model.as_ref().and_then(|parts| parts.get(1)) else { panic!("no picture: {output:?}") };
    assert_eq!((file.media_type.as_str(), file.name.as_deref()), ("image/png", Some("a.txt")));
}

/// B-84, B-85: encodings, marks and line ends survive an edit and a whole new content.
#[tokio::test]
async fn a_file_stays_written_as_it_was() {
    let world = world();
    let path = world.temp.path().join("f");
    fs::write(&path, b"a\r\nb \xE9\r\n").unwrap();
    assert!(world.text("view", json!({"path": "f"})).await.contains("written in Latin-1"));
    world.call("string_replace", json!({"path": "f", "old_string": "a\nb", "new_string": "x\ny"})).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"x\r\ny \xE9\r\n");
    let refused = world.refused("string_replace", json!({"path": "f", "old_string": "x", "new_string": "\u{4e2d}"})).await;
    assert!(refused.1.contains("cannot hold"), "{}", refused.1);
    world.call("write_file", json!({"path": "f", "content": "new\n\u{e9}\n"})).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new\r\n\xE9\r\n");
    fs::write(&path, b"\xFF\xFEa\0\n\0").unwrap();
    world.text("view", json!({"path": "f"})).await;
    world.call("string_replace", json!({"path": "f", "old_string": "a", "new_string": "b"})).await.unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"\xFF\xFEb\0\n\0");
}

/// B-88: the content decides, not the time.
#[tokio::test]
async fn a_file_that_changed_since_it_was_read_is_not_written_over() {
    let world = world();
    world.put("f", "one\n");
    world.text("view", json!({"path": "f"})).await;
    world.put("f", "two\n");
    for (tool, args) in [
        ("write_file", json!({"path": "f", "content": "x"})),
        ("string_replace", json!({"path": "f", "old_string": "two", "new_string": "x"})),
        ("multi_edit", json!({"path": "./f", "edits": [{"old_string": "two", "new_string": "x"}]})),
    ] {
        let refused = world.refused(tool, args).await;
        assert!(refused.1.contains("changed since it was read"), "{tool}: {}", refused.1);
    }
    assert_eq!(world.get("f"), "two\n");
    // The same content again is no change.
    world.put("f", "one\n");
    world.call("string_replace", json!({"path": "f", "old_string": "one", "new_string": "three"})).await.unwrap();
    // What the tool itself wrote is known.
    world.call("string_replace", json!({"path": "f", "old_string": "three", "new_string": "four"})).await.unwrap();
    fs::remove_file(world.temp.path().join("f")).unwrap();
    assert!(world.refused("write_file", json!({"path": "f", "content": "x"})).await.1.contains("was removed since"));
    world.call("write_file", json!({"path": "f", "content": "x"})).await.unwrap();
    assert_eq!(world.get("f"), "x");
}

#[tokio::test]
async fn a_file_must_be_read_first_where_the_host_says_so() {
    let world = world_with(WorkspaceToolOptions { require_read: true, ..Default::default() });
    world.put("f", "one\n");
    let edit = json!({"path": "f", "old_string": "one", "new_string": "two"});
    assert!(world.refused("string_replace", edit.clone()).await.1.contains("was not read yet"));
    assert!(world.refused("write_file", json!({"path": "f", "content": "x"})).await.1.contains("was not read yet"));
    world.text("view", json!({"path": "f"})).await;
    world.call("string_replace", edit).await.unwrap();
    world.call("write_file", json!({"path": "new", "content": "x"})).await.unwrap();
    world.call("write_file", json!({"path": "new", "content": "y"})).await.unwrap();
}

#[tokio::test]
async fn several_edits_happen_all_or_not_at_all() {
    let world = world();
    world.put("f", "a\nb\nc\n");
    let edits = json!([{"old_string": "a", "new_string": "1"}, {"old_string": "zz", "new_string": "2"}]);
    let refused = world.refused("multi_edit", json!({"path": "f", "edits": edits})).await;
    assert!(refused.1.starts_with("edit 2: old_string does not occur"));
    assert_eq!(world.get("f"), "a\nb\nc\n");
    let edits = json!([{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "x", "replace_all": true}]);
    let output = world.call("multi_edit", json!({"path": "f", "edits": edits})).await.unwrap();
    assert_eq!(output.value, "Replaced 3 times in f, first at line 1.");
    assert_eq!(world.get("f"), "x\nx\nc\n");
    assert_eq!(output.changed.len(), 1);
}

#[tokio::test]
async fn files_are_moved_and_deleted_and_folders_made() {
    let world = world();
    world.put("d/f", "x");
    let output = world.call("move", json!({"from": "d/f", "to": "e/g"})).await.unwrap();
    assert_eq!(output.changed.iter().map(|change| change.path.as_str()).collect::<Vec<_>>(), ["d/f", "e/g"]);
    world.put("h", "y");
    assert!(world.refused("move", json!({"from": "h", "to": "e/g"})).await.1.contains("exists already"));
    assert!(world.refused("delete", json!({"path": "e"})).await.1.contains("is not empty"));
    world.call("delete", json!({"path": "e", "recursive": true})).await.unwrap();
    assert!(world.refused("delete", json!({"path": ".", "recursive": true})).await.1.contains("does not name"));
    assert!(world.refused("delete", json!({"path": "..", "recursive": true})).await.1.contains("does not name"));
    world.call("make_dir", json!({"path": "i/j"})).await.unwrap();
    assert!(world.temp.path().join("i/j").is_dir());
    // A link goes itself, not what it leads to.
    std::os::unix::fs::symlink("h", world.temp.path().join("link")).unwrap();
    world.call("delete", json!({"path": "link"})).await.unwrap();
    assert_eq!(world.get("h"), "y");
}

#[tokio::test]
async fn the_changes_of_a_run_are_shown_against_what_was_before() {
    let world = world();
    world.put("a", "one\ntwo\n");
    world.put("b", "x\n");
    assert_eq!(world.text("diff", json!({})).await, "[no changes]");
    world.call("string_replace", json!({"path": "a", "old_string": "two", "new_string": "2"})).await.unwrap();
    world.call("string_replace", json!({"path": "a", "old_string": "2", "new_string": "three"})).await.unwrap();
    world.call("write_file", json!({"path": "new", "content": "n\n"})).await.unwrap();
    world.call("delete", json!({"path": "b"})).await.unwrap();
    let all = world.text("diff", json!({})).await;
    assert_eq!(all, "--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+three\ndeleted: b\n--- a/new\n+++ b/new\n@@ -0,0 +1 @@\n+n\n");
    assert!(world.text("diff", json!({"path": "new"})).await.starts_with("--- a/new"));
}

#[tokio::test]
async fn changes_are_limited_to_the_allowed_paths_wherever_links_lead() {
    let world = world_with(WorkspaceToolOptions::default().write_only([".acode/plans/**"]));
    world.call("write_file", json!({"path": ".acode/plans/p.md", "content": "x"})).await.unwrap();
    std::os::unix::fs::symlink("..", world.temp.path().join(".acode/plans/up")).unwrap();
    world.put("src.rs", "x");
    for path in ["src.rs", ".acode/other", ".acode/plans/../x", ".acode/plans/up/x", "new/.acode/plans/x"] {
        let refused = world.refused("write_file", json!({"path": path, "content": "y"})).await;
        assert_eq!(refused.0, ToolErrorKind::Denied, "{path}: {}", refused.1);
    }
    let refused = world.refused("string_replace", json!({"path": "src.rs", "old_string": "x", "new_string": "y"})).await;
    assert!(refused.1.contains("allowed are .acode/plans/**"));
    assert_eq!(world.get("src.rs"), "x");
}

#[tokio::test]
async fn files_and_lines_are_found() {
    let world = world();
    world.put("src/a.rs", "fn main() {}\n");
    world.put("b.txt", "main\n");
    assert_eq!(world.text("find_files", json!({"pattern": "*.rs"})).await, "src/a.rs\n");
    assert_eq!(world.text("find_files", json!({"pattern": "*.py"})).await, "[no files]");
    assert_eq!(world.text("search_content", json!({"pattern": "main"})).await, "b.txt\n1: main\n\nsrc/a.rs\n1: fn main() {}\n");
    assert_eq!(world.text("search_content", json!({"pattern": "main", "files": "*.rs"})).await, "src/a.rs\n1: fn main() {}\n");
    assert_eq!(world.text("search_content", json!({"pattern": "nowhere"})).await, "[no matches]");
    assert_eq!(world.refused("search_content", json!({"pattern": "("})).await.0, ToolErrorKind::Args);
}

#[tokio::test]
async fn a_command_tells_its_output_and_its_end() {
    let world = world();
    assert_eq!(world.text("execute_command", json!({"command": "echo hi"})).await, "hi\n");
    assert_eq!(world.text("execute_command", json!({"command": "true"})).await, "[no output]\n");
    assert_eq!(world.text("execute_command", json!({"command": "echo x; exit 3"})).await, "x\n[exit code 3]\n");
    assert_eq!(world.text("execute_command", json!({"command": "kill -9 $$"})).await, "[no output]\n[ended by signal 9]\n");
    let late = world.text("execute_command", json!({"command": "sleep 30", "timeout": 0.2})).await;
    assert!(late.contains("it took too long"), "{late}");
    assert_eq!(world.refused("execute_command", json!({"command": " "})).await.0, ToolErrorKind::Args);
    assert_eq!(world.refused("execute_command", json!({"command": "ls", "cwd": ".."})).await.0, ToolErrorKind::Denied);
}

#[tokio::test]
async fn a_read_only_workspace_offers_no_changing_tools() {
    let temp = TempDir::new().unwrap();
    let mut options = ac_workspace::LocalFilesystemOptions::default();
    options.read_only = true;
    let files = ac_workspace::LocalFilesystem::open_with(temp.path(), options).unwrap();
    let names: Vec<String> = tools(Arc::new(Workspace::new(Arc::new(files))), WorkspaceToolOptions::default())
        .iter()
        .map(|tool| tool.definition().name)
        .collect();
    assert_eq!(names, ["view", "find_files", "search_content"]);
}

#[tokio::test]
async fn a_process_in_the_background_is_listed_read_and_ended() {
    let world = world();
    assert_eq!(world.text("list_processes", json!({})).await, "[no processes]");
    let started = world.call("execute_command", json!({"command": "echo up; sleep 300", "background": true})).await.unwrap();
    assert_eq!(started.value["process"], "p1");
    let mut output = String::new();
    for _ in 0..100 {
        output = world.text("process_output", json!({"id": "p1", "wait": 0.05})).await;
        if output.starts_with("up") {
            break;
        }
    }
    assert!(output.starts_with("up\n[p1  running"), "{output}");
    assert!(world.text("list_processes", json!({})).await.contains("p1  running"));
    assert!(world.text("kill_process", json!({"id": "p1"})).await.contains("ended by signal 15"));
    assert!(world.text("list_processes", json!({})).await.contains("ended by signal"));
    assert!(world.refused("process_output", json!({"id": "p9"})).await.1.contains("known are: p1"));
    let done = world.call("execute_command", json!({"command": "exit 3", "background": true})).await.unwrap();
    let output = world.text("process_output", json!({"id": done.value["process"], "wait": 10})).await;
    assert!(output.starts_with("[no output]\n[p2  exit code 3"), "{output}");
}

/// B-79.
#[tokio::test]
async fn what_a_command_leaves_running_goes_on_as_a_process() {
    let world = world();
    let text = world.text("execute_command", json!({"command": "sleep 300 & echo ok"})).await;
    assert!(text.starts_with("ok\n[what it started still runs, as process p1"), "{text}");
    world.text("kill_process", json!({"id": "p1"})).await;
}

#[tokio::test]
async fn the_model_sees_no_control_sequences() {
    let world = world();
    assert_eq!(world.text("execute_command", json!({"command": "printf '\\033[31mred\\033[0m\\n'"})).await, "red\n");
}
