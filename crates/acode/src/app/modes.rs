use std::sync::Arc;

use agent_controller::{
    controller::{Mode, Subagent},
    core::{Tool, ToolContext, ToolDefinition, ToolError, ToolOutcome, ToolResume, tool::ToolList},
    tools::{
        AskUser, SubmitPlan,
        workspace::{WorkspaceTool, WorkspaceToolOptions, tools},
    },
    workspace::Workspace,
};
use async_trait::async_trait;
use serde_json::{Value, json};

/// Where plans live, as a pattern that a path must match.
const PLANS: &str = r"^(\./)?\.acode/plans/[^/\\]+\.md$";
/// The same as a glob, checked again where the file is written.
const PLANS_GLOB: &str = ".acode/plans/*.md";

const PLAN: &str = "You plan a change to the project in the current folder. You may look at everything; you change nothing but the plan. \
    Look first: find and read what the task is about. Ask the person when a decision is theirs. Then write the plan as Markdown to \
    .acode/plans/<short-name>.md: what you found, which files change and how, and which commands you will run. Submit it with submit_plan. \
    Do not build anything before it is approved.";
const BUILD: &str = "You build what was agreed on in the current folder. Follow the approved plan if there is one; read it again, because the \
    person may have edited it. Make small changes, run what proves that they work, and say at the end what you did.";

const EXPLORE: &str = "You find something out about the project in the current folder for somebody else, who sees only your last answer. Look \
    with a few well chosen searches, read what matters, and answer with what you found: paths, line numbers, and the lines themselves where \
    they matter. Change nothing and guess nothing; say what you did not find.";

/// What looks and changes nothing.
const LOOKING: [WorkspaceTool; 3] = [WorkspaceTool::View, WorkspaceTool::FindFiles, WorkspaceTool::SearchContent];

/// `plan` and `build`. Where nobody can answer, `ask_user` is not offered.
pub(super) fn modes(workspace: &Arc<Workspace>, asks: bool) -> [Mode; 2] {
    let everywhere = tools(workspace.clone(), WorkspaceToolOptions::default());
    let plans = tools(workspace.clone(), WorkspaceToolOptions::default().write_only([PLANS_GLOB]));
    let looking = LOOKING.map(WorkspaceTool::default_name);
    let mut planning: ToolList = everywhere.iter().filter(|tool| looking.contains(&tool.definition().name.as_str())).cloned().collect();
    let write = WorkspaceTool::WriteFile.default_name();
    planning
        .extend(plans.into_iter().filter(|tool| tool.definition().name == write).map(|tool| Arc::new(PlanWriter(tool)) as Arc<dyn Tool>));
    let mut building = everywhere;
    if asks {
        planning.push(Arc::new(AskUser));
        building.push(Arc::new(AskUser));
    }
    planning.push(Arc::new(SubmitPlan));
    [
        Mode::new("plan").name("Plan").instructions(PLAN).tools(planning).transitions_to("build").default(),
        Mode::new("build").name("Build").instructions(BUILD).tools(building),
    ]
}

/// Looks around so that what it reads does not fill the conversation. In both modes, and with nothing that changes anything.
pub(super) fn explore() -> Subagent {
    Subagent::new("explore")
        .name("Explore")
        .description("Looks through the project and reports what it finds. Changes nothing.")
        .instructions(EXPLORE)
        .allowed_controller_tools(LOOKING.map(WorkspaceTool::default_name))
        .max_steps(20)
}

/// Writes plans and nothing else. A path elsewhere does not fit its schema, so it is refused before anybody is asked.
struct PlanWriter(Arc<dyn Tool>);

#[async_trait]
impl Tool for PlanWriter {
    fn definition(&self) -> ToolDefinition {
        let mut definition = self.0.definition();
        definition.description =
            "Write a plan: a Markdown file .acode/plans/<short-name>.md, replaced if it exists. Other files cannot be \
                                  written before a plan is approved."
                .into();
        if let Some(path) = definition.input_schema.pointer_mut("/properties/path").and_then(Value::as_object_mut) {
            path.insert("pattern".into(), json!(PLANS));
            path.insert("description".into(), json!("`.acode/plans/<short-name>.md`; any other path is refused in this mode."));
        }
        definition
    }

    async fn call(&self, args: Value, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.0.call(args, cx).await
    }

    async fn resume(&self, with: ToolResume, cx: &ToolContext) -> Result<ToolOutcome, ToolError> {
        self.0.resume(with, cx).await
    }
}
