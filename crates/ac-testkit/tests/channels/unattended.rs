//! Platforms that cannot show approvals.

use std::time::Duration;

use ac_channels::{ChannelSettings, Channels, WithoutButtons};
use ac_core::Policy;
use ac_testkit::{Turn, platforms::sign};
use serde_json::json;

use crate::desk::{AT, Desk, Life, write};

async fn open(desk: &Desk, life: &str, what: WithoutButtons) -> Life {
    let controller = desk.controller(life);
    controller.init().await.unwrap();
    let bare = desk.webhook().capabilities(|can| can.buttons = false);
    let channels: Channels =
        desk.builder(life, controller).adapter_with(bare, ChannelSettings::new().without_buttons(what)).build().unwrap();
    channels.start().await.unwrap();
    Life { channels }
}

async fn say(life: &Life, id: &str, text: &str) {
    let body = json!({ "type": "message", "conversation": "c", "direct": true, "speaker": { "id": "u" }, "text": text });
    assert_eq!(life.deliver(&sign::webhook(id, &body, AT)).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_the_conversation_do_not_ask_and_others_of_the_same_owner_do() {
    // SPEC N-15, N-16: the mark belongs to this conversation's runs alone; a rule that denies holds.
    let desk = Desk::new([
        write("c1"),
        Turn::text("one"),
        Turn::tool("c2", "run", json!({ "what": "c2" })),
        Turn::text("two"),
        write("c3"),
        Turn::text("three"),
    ]);
    let life = open(&desk, "a", WithoutButtons::RunWithoutAsking).await;
    say(&life, "w1", "write").await;
    desk.see("one").await;
    assert_eq!(desk.done(), ["write c1"]);
    let session = life.channels.controller().sessions().pop().unwrap();
    session.set_tool_policy("run", Some(Policy::Deny)).await.unwrap();
    say(&life, "w2", "run").await;
    desk.see("two").await;
    assert_eq!(desk.done(), ["write c1"], "denied is denied");
    // Another surface on the very same session asks.
    let submitted = session.submit("write").await.unwrap();
    tokio::time::timeout(Duration::from_secs(10), submitted.handle().unwrap().resting()).await.unwrap();
    let pending = session.pending().await.unwrap();
    assert_eq!(pending.len(), 1, "the mark does not leak");
    desk.see("cannot be given here").await;
    session.approve(&pending[0].id).await.unwrap();
    desk.see("three").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn parked_calls_say_where_to_answer() {
    let desk = Desk::new([write("c1"), Turn::text("one")]);
    let life = open(&desk, "a", WithoutButtons::Park { answer_at: "https://console.test".into() }).await;
    say(&life, "w1", "write").await;
    let line = desk.see("waits for an approval").await;
    assert!(line.text.contains("console"), "{}", line.text);
    assert!(desk.done().is_empty());
    let pending = life.channels.controller().pending().await.unwrap();
    life.channels.controller().session(&pending[0].session).unwrap().approve(&pending[0].id).await.unwrap();
    desk.see("one").await;
    assert_eq!(desk.done(), ["write c1"]);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn declined_calls_tell_the_model() {
    let desk = Desk::new([write("c1"), Turn::text("one")]);
    let life = open(&desk, "a", WithoutButtons::Decline).await;
    say(&life, "w1", "write").await;
    desk.see("one").await;
    assert!(desk.done().is_empty());
    let sent = format!("{:?}", desk.model.requests()[1].messages);
    assert!(sent.contains("nobody can be asked"), "{sent}");
    life.end().await;
}
