use ac_core::{ToolContext, ToolError, ToolOutcome, ToolOutput};
use ac_tools::AskUser;
use async_trait::async_trait;

use super::*;
use crate::{Mode, config::PreparedMode};

struct Named(&'static str);

#[async_trait]
impl Tool for Named {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(self.0, "Works.", json!({ "type": "object" }))
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::text("done")))
    }
}

fn named(name: &'static str) -> Arc<dyn Tool> {
    Arc::new(Named(name))
}

fn set(names: &[&'static str]) -> ToolSet {
    let mut tools = ToolSet::new();
    tools.extend(names.iter().map(|name| named(name))).unwrap();
    tools
}

fn names(tools: &ToolSet) -> Vec<&str> {
    tools.definitions().map(|definition| definition.name.as_str()).collect()
}

fn prepare(kinds: Vec<Subagent>) -> Result<Subagents, ControllerError> {
    let common = Arc::new(set(&["subagent", "echo", "write", "view", "find"]));
    let mut tools = ToolSet::new();
    tools.extend(common.iter().map(|(_, tool)| tool.clone()).chain([named("of_mode")])).unwrap();
    let mode = PreparedMode { mode: Mode::new("build"), tools: Arc::new(tools), instructions: None };
    Subagents::prepare(kinds, 3, &[mode], &common, &["view".into(), "find".into()])
}

fn refused(kinds: Vec<Subagent>) -> (ControllerErrorKind, String) {
    let error = prepare(kinds).err().unwrap();
    (error.kind(), error.to_string())
}

#[test]
fn ids_are_unique_and_not_empty() {
    let (kind, message) = refused(vec![Subagent::new("a"), Subagent::new("a")]);
    assert_eq!((kind, message.as_str()), (ControllerErrorKind::DuplicateSubagent, "two subagents are called `a`"));
    assert_eq!(refused(vec![Subagent::new("")]).0, ControllerErrorKind::DuplicateSubagent);
}

#[test]
fn a_name_that_is_no_tool_is_found_out_when_the_controller_is_built() {
    let (kind, message) = refused(vec![Subagent::new("a").allowed_controller_tools(["ech"])]);
    assert_eq!(kind, ControllerErrorKind::UnknownTool);
    assert_eq!(message, "subagent `a` is allowed `ech`, which is no tool of the controller; check the name");
    // A tool of the controller is none of the workspace.
    assert_eq!(refused(vec![Subagent::new("a").allowed_workspace_tools(["echo"])]).0, ControllerErrorKind::UnknownTool);
    assert_eq!(refused(vec![Subagent::new("a").allowed_controller_tools(["submit_plan"])]).0, ControllerErrorKind::UnknownTool);
    assert_eq!(refused(vec![Subagent::new("a").tools([named("x"), named("x")])]).0, ControllerErrorKind::DuplicateTool);
}

fn child(tools_of: Option<&str>, forked: bool) -> ChildProfile {
    let json = json!({
        "agent_type": "a", "name": "A", "task": "t", "forked": forked, "depth": 1, "since": 0, "root": "r", "root_thread": "t",
        "tools_of": tools_of,
    });
    let mut profile = ac_engine::Profile::new("a", "build", "p/m");
    profile.host.insert("child".into(), json);
    ChildProfile::of(&profile).unwrap()
}

#[test]
fn a_constrained_one_has_its_own_tools_the_allowed_ones_and_those_of_the_workspace() {
    let all = prepare(vec![
        Subagent::new("a").tools([named("own"), named("echo")]).allowed_controller_tools(["echo", "of_mode"]),
        Subagent::new("b").allowed_controller_tools(["write"]).allowed_workspace_tools(["find"]),
    ])
    .unwrap();
    let build = ModeId::from("build");
    let tools = |of, mode| names(all.tools(&child(Some(of), false), mode).unwrap());
    assert_eq!(tools("a", Some(&build)), ["own", "echo", "of_mode", "view", "find"]);
    // In a mode that is no longer there, what every mode has.
    assert_eq!(tools("a", None), ["own", "echo", "view", "find"]);
    assert_eq!(tools("b", Some(&build)), ["write", "find"]);
}

#[tokio::test]
async fn a_fork_sees_the_same_tools_and_those_that_are_its_parents_only_say_why() {
    let all = prepare(vec![Subagent::new("a").forked()]).unwrap();
    let build = ModeId::from("build");
    let tools = all.tools(&child(None, true), Some(&build)).unwrap();
    assert_eq!(names(tools), ["subagent", "echo", "write", "view", "find", "of_mode"]);
    let subagent = tools.get("subagent").unwrap();
    assert_eq!(*subagent.0, named("subagent").definition());
    let cx = ToolContext::new(ac_core::tool::ToolContextParts {
        run: "r".into(),
        thread: "t".into(),
        resource: "ann".into(),
        call: "c".into(),
        tool: "subagent".into(),
        attempt: 1,
        cancel: ac_core::CancelToken::new(),
        progress: Arc::new(ac_core::tool::NoProgress),
        capabilities: ac_core::tool::Capabilities::new(),
        request_context: Arc::default(),
    });
    let ToolOutcome::Done(output) = subagent.1.call(json!({}), &cx).await.unwrap() else { panic!("it acted") };
    assert_eq!(output.value, json!({ "content": NO_SUBAGENTS, "isError": true }));
    let ToolOutcome::Done(output) = tools.get("echo").unwrap().1.call(json!({}), &cx).await.unwrap() else { panic!("it did not act") };
    assert_eq!(output.value, json!("done"));
}

#[test]
fn the_task_of_a_fork_says_once_what_to_leave_alone() {
    let text = fork_task("Do it.", ["echo", "task_write", "task_check", "subagent"].into_iter());
    assert_eq!(text, format!("Do it.\n\n{NO_TASKS}\n\n{NO_SUBAGENTS}"));
    assert_eq!(fork_task("Do it.", [AskUser::NAME].into_iter()), "Do it.");
}
