use std::fs;

use ac_core::{Tool, ToolErrorKind, ToolOutcome};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::testing::context;

struct World {
    temp: TempDir,
    workspace: Arc<Workspace>,
}

fn world(files: &[(&str, &str)]) -> World {
    let temp = TempDir::new().unwrap();
    for (path, text) in files {
        let path = temp.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let workspace = Arc::new(Workspace::local(temp.path()).unwrap());
    World { temp, workspace }
}

const PDF: &str = "---\nname: pdf\ndescription: >\n  Fills in\n  PDF forms.\nlicense: x\n---\n# How\nRun it.\n";

async fn call(tools: &ToolList, name: &str, args: Value) -> Result<String, (ToolErrorKind, String)> {
    let tool: &Arc<dyn Tool> = tools.iter().find(|tool| tool.definition().name == name).unwrap();
    match tool.call(args, &context(name)).await {
        Ok(ToolOutcome::Done(output)) => Ok(output.model_text()),
        Ok(other) => panic!("expected a result, got {other:?}"),
        Err(error) => Err((error.kind(), error.to_string())),
    }
}

#[tokio::test]
async fn skills_are_found_told_loaded_and_read() {
    let world = world(&[
        (".agents/skills/pdf/SKILL.md", PDF),
        (".agents/skills/pdf/ref/forms.md", "forms"),
        (".claude/skills/pdf/SKILL.md", "---\nname: pdf\ndescription: another\n---\n"),
        (".claude/skills/other/SKILL.md", "---\r\nname: other\r\ndescription: \"a: b\"\r\n---\r\nbody"),
        (".claude/skills/README.md", "no skill"),
        (".claude/skills/empty/x", "no skill"),
    ]);
    let skills = Arc::new(Skills::discover(&world.workspace, &SKILL_FOLDERS).await);
    assert_eq!(skills.problems(), [] as [&str; 0]);
    assert!(skills.instructions().unwrap().ends_with("- other: a: b\n- pdf: Fills in PDF forms.\n"));
    let tools = skills.tools(&world.workspace);
    assert_eq!(
        call(&tools, "skill", json!({"name": "pdf"})).await.unwrap(),
        "# How\nRun it.\n\n[files in .agents/skills/pdf, for skill_read: ref/forms.md]\n"
    );
    assert_eq!(call(&tools, "skill", json!({"name": "other"})).await.unwrap(), "body");
    assert_eq!(call(&tools, "skill_read", json!({"name": "pdf", "path": "ref/forms.md"})).await.unwrap(), "forms");
    assert!(call(&tools, "skill", json!({"name": "none"})).await.unwrap_err().1.contains("there are: other, pdf"));
    for path in ["../../../x", "/etc/passwd"] {
        assert_eq!(call(&tools, "skill_read", json!({"name": "pdf", "path": path})).await.unwrap_err().0, ToolErrorKind::Args);
    }
    std::os::unix::fs::symlink("/etc/passwd", world.temp.path().join(".agents/skills/pdf/out")).unwrap();
    assert_eq!(call(&tools, "skill_read", json!({"name": "pdf", "path": "out"})).await.unwrap_err().0, ToolErrorKind::Denied);
}

#[tokio::test]
async fn a_skill_that_cannot_be_read_is_left_out_and_told() {
    let world = world(&[
        (".agents/skills/a/SKILL.md", "no front matter"),
        (".agents/skills/b/SKILL.md", "---\nname: c\ndescription: d\n---\n"),
        (".agents/skills/c/SKILL.md", "---\nname: c\n---\n"),
        (".agents/skills/d/SKILL.md", "---\nname: d\ndescription: ''\n---\n"),
        (".agents/skills/E/SKILL.md", "---\nname: E\ndescription: x\n---\n"),
        (".agents/skills/f/SKILL.md", "---\nname: f\ndescription: [\n---\n"),
        (".agents/skills/g/SKILL.md", "---\nname: g\ndescription: never ends\n"),
    ]);
    let skills = Arc::new(Skills::discover(&world.workspace, &SKILL_FOLDERS).await);
    assert_eq!((skills.iter().count(), skills.problems().len()), (0, 7), "{:?}", skills.problems());
    assert_eq!(skills.instructions(), None);
    assert!(skills.tools(&world.workspace).is_empty());
}

#[tokio::test]
async fn agents_files_are_read_from_the_root_to_the_folder() {
    let world = world(&[("AGENTS.md", "root\n"), ("a/AGENTS.md", "\u{feff}a\n"), ("a/b/x", ""), ("c/AGENTS.md", "c")]);
    let read = |folder: &'static str, max| {
        let workspace = Arc::clone(&world.workspace);
        async move { agents_instructions(&workspace, Path::new(folder), max).await.unwrap() }
    };
    assert_eq!(read(".", 1000).await.unwrap(), "From AGENTS.md:\n\nroot\n");
    assert_eq!(read("a/b", 1000).await.unwrap(), "From AGENTS.md:\n\nroot\n\nFrom a/AGENTS.md:\n\na\n");
    assert_eq!(read("a/b", 3).await.unwrap(), "From AGENTS.md:\n\nro\n[… cut: too long …]\n\nFrom a/AGENTS.md:\n\na\n");
    assert!(agents_instructions(&world.workspace, Path::new(".."), 10).await.is_err());
    fs::remove_file(world.temp.path().join("AGENTS.md")).unwrap();
    assert_eq!(read(".", 1000).await, None);
}
