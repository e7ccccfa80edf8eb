use super::*;
use crate::testing::context;

fn kinds() -> Vec<SubagentKind> {
    let kind = |id: &str, forked| SubagentKind { id: id.into(), name: id.to_uppercase(), description: format!("Does {id}."), forked };
    vec![kind("explore", false), kind("think", true)]
}

#[test]
fn there_is_no_tool_for_no_types() {
    assert!(SubagentTool::new(&[]).is_none());
}

#[test]
fn the_model_reads_every_type_and_may_name_no_other() {
    let definition = SubagentTool::new(&kinds()).unwrap().definition();
    assert!(definition.description.contains("explore (EXPLORE): Does explore."), "{}", definition.description);
    assert!(definition.description.contains("think (THINK): Does think. Knows this conversation."));
    assert_eq!(definition.input_schema["properties"]["agentType"]["enum"], json!(["explore", "think"]));
    assert_eq!((definition.category, definition.effect), (ToolCategory::Other, ToolEffect::Idempotent));
}

#[tokio::test]
async fn a_call_becomes_a_run_of_its_own() {
    let tool = SubagentTool::new(&kinds()).unwrap();
    let args = json!({ "agentType": "explore", "task": "look", "modelId": "p/m", "forked": false });
    let ToolOutcome::Delegate(child) = tool.call(args, &context("subagent")).await.unwrap() else { panic!("no run") };
    let options = json!({ "modelId": "p/m", "forked": false });
    assert_eq!(child, ChildRun { task: "look".into(), agent: "explore".into(), options });
}

#[test]
fn the_result_has_the_shape_that_clients_know() {
    assert_eq!(completed("found").value, json!({ "content": "found", "isError": false }));
    assert_eq!(aborted("").value, json!({ "content": "[Aborted by user]", "isError": false }));
    assert_eq!(aborted("a").value, json!({ "content": "[Aborted by user]\n\nPartial output:\na", "isError": false }));
    assert_eq!(failed("Explore", "bad", "").value, json!({ "content": "Subagent \"Explore\" failed: bad", "isError": true }));
}
