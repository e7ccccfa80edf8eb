//! Who pages the agent is paged back; who does not know the token is not.

use std::{sync::Arc, time::Duration};

use agent_controller::{channels::Channels, llm::demo::Guide, prelude::*};
use channel::Pager;
use http::{Request, StatusCode};
use tokio::{sync::mpsc, time::timeout};

#[tokio::test]
async fn a_page_is_answered() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let controller = AgentController::builder()
        .storage(Arc::clone(&storage))
        .provider(Guide::new())
        .agent(AgentConfig::new("helper"))
        .mode(Mode::new("chat").model("demo/guide"))
        .build()
        .unwrap();
    let (out, mut pages) = mpsc::channel(16);
    let pager = Pager { token: "knock knock".into(), out };
    let channels = Channels::builder(controller.clone()).storage(storage).key([7; 32]).adapter(pager).build().unwrap();
    channels.start().await.unwrap();

    let page = |token: &str| {
        let request = Request::post("/").header("x-pager-token", token);
        request.body(r#"{"id": "1", "from": "ada", "text": "Hello!"}"#.into()).unwrap()
    };
    assert_eq!(channels.receive("pager", page("open sesame")).await.status(), StatusCode::UNAUTHORIZED);
    assert_eq!(channels.receive("pager", page("knock knock")).await.status(), StatusCode::OK);
    // The network delivers twice; the agent answers once.
    assert_eq!(channels.receive("pager", page("knock knock")).await.status(), StatusCode::OK);
    let (to, text) = timeout(Duration::from_secs(20), pages.recv()).await.unwrap().unwrap();
    assert_eq!(to, "ada");
    assert!(text.contains("demo/guide"), "{text}");
    channels.shutdown().await;
    controller.shutdown().await;
    assert!(pages.try_recv().is_err(), "answered twice");
}
