//! A model calls it, and what it answers comes back.

use std::sync::Arc;

use agent_controller::{llm::demo::Guide, prelude::*};

#[tokio::test]
async fn a_model_calls_it() {
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("meter").tools([tool::convert()]))
        .mode(Mode::new("desk").model("demo/guide"))
        .build()
        .unwrap();
    let session = controller.create_session("ada").await.unwrap();
    let mut events = session.subscribe();
    session.submit(r#"convert {"degrees": 212, "to": "celsius"}"#).await.unwrap();
    let mut said = String::new();
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => said.push_str(text),
            EventBody::AgentEnd { .. } => break,
            _ => {}
        }
    }
    assert!(said.contains("100.0"), "{said}");
    controller.shutdown().await;
}

#[test]
fn its_type_is_its_schema() {
    let definition = tool::convert().definition();
    assert_eq!(definition.description, "Converts a temperature.");
    assert_eq!(definition.input_schema["properties"]["to"]["enum"].as_array().map(Vec::len), Some(2));
}
