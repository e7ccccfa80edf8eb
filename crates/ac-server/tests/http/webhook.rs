//! Requests of chat platforms reach whoever the host named.

use ac_server::Limits;

use crate::support::Harness;

const HOOK: &str = "/api/agent-controllers/code/channels/slack/webhook";

#[tokio::test]
async fn a_webhook_request_arrives_with_its_exact_bytes_and_needs_no_token() {
    let server = Harness::with([], Limits::default(), &["ann"]).await;
    let body = b"payload=%7B%22a%22%3A+1%7D&\xff\x00";
    let answer = server.send("POST", HOOK, &[("content-type", "application/x-www-form-urlencoded"), ("x-signature", "v0=ab")], body).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, body.as_slice()));
    assert_eq!((answer.header("x-for"), answer.header("x-signature")), (Some("code slack"), Some("v0=ab")));
    // No other route is open for it.
    assert_eq!(server.send("GET", "/api/agent-controller", &[], b"").await.status, 401);
    assert_eq!(server.send("GET", HOOK, &[], b"").await.status, 404);
}

#[tokio::test]
async fn a_webhook_request_that_is_too_large_is_not_handed_on() {
    let mut limits = Limits::default();
    limits.body = 1000;
    let server = Harness::with([], limits, &[]).await;
    assert_eq!(server.send("POST", HOOK, &[], &[b'x'; 1001]).await.status, 413);
    assert_eq!(server.send("POST", HOOK, &[], &[b'x'; 1000]).await.status, 200);
}
