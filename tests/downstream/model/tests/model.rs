//! A session talks to it.

use std::sync::Arc;

use agent_controller::prelude::*;
use model::Shout;

#[tokio::test]
async fn what_it_says_reaches_the_reader() {
    let controller = AgentController::builder()
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Shout)
        .agent(AgentConfig::new("echo"))
        .mode(Mode::new("chat").model("shout/one"))
        .build()
        .unwrap();
    let session = controller.create_session("ada").await.unwrap();
    let mut events = session.subscribe();
    session.submit("is anybody there?").await.unwrap();
    let mut said = String::new();
    while let Some(event) = events.next_event().await {
        match &event.body {
            EventBody::MessageUpdate { update: MessageUpdate::TextDelta(text), .. } => said.push_str(text),
            EventBody::AgentEnd { reason, .. } => {
                assert_eq!(*reason, EndReason::Complete);
                break;
            }
            _ => {}
        }
    }
    assert_eq!(said, "IS ANYBODY THERE?");
    controller.shutdown().await;
}
