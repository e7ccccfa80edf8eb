//! Both answer on one port: the application's own route, and the controller's.

use std::sync::Arc;

use agent_controller::{llm::demo::Guide, prelude::*};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

#[tokio::test]
async fn own_routes_and_the_controllers_stand_side_by_side() {
    let controller = AgentController::builder()
        .id("clerks")
        .storage(Arc::new(MemoryStorage::new()))
        .provider(Guide::new())
        .agent(AgentConfig::new("clerk"))
        .mode(Mode::new("desk").model("demo/guide"))
        .build()
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(axum::serve(listener, host::app(controller.clone()).unwrap()).into_future());

    let get = async |path: &str, badge: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: shop\r\n{badge}connection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer
    };
    assert!(get("/door", "").await.ends_with("visit 1 of the shop of clerks"));
    assert!(get("/door", "").await.ends_with("visit 2 of the shop of clerks"));
    assert!(get("/agents/agent-controller", "").await.starts_with("HTTP/1.1 401"));
    let listed = get("/agents/agent-controller", "x-badge: ann\r\n").await;
    assert!(listed.starts_with("HTTP/1.1 200") && listed.contains("clerks"), "{listed}");
    serving.abort();
    controller.shutdown().await;
}
