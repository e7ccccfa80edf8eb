use ac_core::{ModelError, ModelErrorKind, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolOutput};
use ac_storage::MemoryStorage;
use async_trait::async_trait;
use serde_json::json;

use super::*;

struct Named(&'static str);

#[async_trait]
impl Tool for Named {
    fn definition(&self) -> ToolDefinition {
        ToolDefinition::new(self.0, "test", json!({ "type": "object" }))
    }

    async fn call(&self, _: Value, _: &ToolContext) -> Result<ToolOutcome, ToolError> {
        Ok(ToolOutcome::Done(ToolOutput::text("done")))
    }
}

fn tool(name: &'static str) -> [Arc<dyn Tool>; 1] {
    [Arc::new(Named(name))]
}

fn builder() -> ControllerBuilder {
    AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .models(|_: &ModelId| Err(ModelError::new(ModelErrorKind::UnknownProvider, "none")))
}

#[test]
fn each_mistake_has_its_own_error() {
    let cases = [
        (builder(), "config.no_modes"),
        (builder().modes([Mode::new("a"), Mode::new("a")]), "config.duplicate_mode"),
        (builder().mode(Mode::new("a").tools(tool("x")).additional_tools(tool("y"))), "config.conflicting_tools"),
        (builder().mode(Mode::new("a").transitions_to("a")), "config.self_transition"),
        (builder().mode(Mode::new("a").transitions_to("b")), "config.unknown_transition"),
        (builder().mode(Mode::new("a")).default_mode("b"), "config.unknown_default_mode"),
        (builder().mode(Mode::new("a").tools(tool("x"))).tools(tool("x")), "config.duplicate_tool"),
        (builder().mode(Mode::new("a")).tools(tool("x")).agent(AgentConfig::new("a").tools(tool("x"))), "config.duplicate_tool"),
        (AgentController::builder().mode(Mode::new("a")), "config.incomplete"),
    ];
    for (builder, code) in cases {
        assert_eq!(builder.build().unwrap_err().code(), code);
    }
}

/// SPEC C-8: what is wrong with a mode by itself comes before what is wrong between modes.
#[test]
fn a_duplicate_is_found_before_a_wrong_transition() {
    let modes = [Mode::new("a").transitions_to("nowhere"), Mode::new("b"), Mode::new("b")];
    assert_eq!(builder().modes(modes).build().unwrap_err().code(), "config.duplicate_mode");
}

/// SPEC C-9.
#[test]
fn the_default_mode_is_the_named_one_else_the_marked_one_else_the_first() {
    let modes = || [Mode::new("a"), Mode::new("b").default(), Mode::new("c")];
    let default = |builder: ControllerBuilder| builder.build().unwrap().default_mode().to_string();
    assert_eq!(default(builder().modes(modes())), "b");
    assert_eq!(default(builder().modes(modes()).default_mode("c")), "c");
    assert_eq!(default(builder().modes([Mode::new("x"), Mode::new("y")])), "x");
}

/// SPEC C-19.
#[test]
fn instructions_are_joined_by_newlines_and_empty_ones_left_out() {
    let build = |builder: ControllerBuilder| {
        let controller = builder.build().unwrap();
        controller.shared().config.modes.iter().map(|mode| mode.instructions.clone()).collect::<Vec<_>>()
    };
    let all = builder()
        .agent(AgentConfig::new("a").instructions("AGENT"))
        .instructions("")
        .workspace_instructions("FOLDER")
        .modes([Mode::new("a").instructions("MODE"), Mode::new("b")]);
    assert_eq!(build(all), [Some("AGENT\nMODE\nFOLDER".into()), Some("AGENT\nFOLDER".into())]);
    assert_eq!(build(builder().mode(Mode::new("a"))), [None]);
}
