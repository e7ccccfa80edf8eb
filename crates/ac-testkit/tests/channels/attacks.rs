//! What is forged, replayed, old, or meant for somebody else is refused before anything exists.

use std::time::Instant;

use ac_testkit::platforms::{sign, sign::Delivery};
use serde_json::json;

use crate::desk::{AT, Desk, Life, direct};

async fn untouched(desk: &Desk, life: &Life) {
    assert!(life.channels.controller().sessions().is_empty());
    assert!(desk.platforms.called().is_empty());
    let rows = desk.storage.sessions().list(&"desk/channels".into(), None, 10).await.unwrap();
    assert!(rows.items.is_empty(), "not even remembered: {rows:?}");
}

fn changed(delivery: &Delivery, from: &str, to: &str) -> Delivery {
    let body = delivery.body.replace(from, to);
    assert_ne!(body, delivery.body);
    Delivery { body, ..delivery.clone() }
}

fn without(delivery: &Delivery, header: &str) -> Delivery {
    let headers = delivery.headers.iter().filter(|(name, _)| name != header).cloned().collect();
    Delivery { headers, ..delivery.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_stale_and_foreign_requests_leave_no_trace() {
    let desk = Desk::new([]);
    let life = desk.open("a").await;
    let telegram = sign::telegram_message(1, 55, 7, "hello", 3, AT);
    let discord = |at| sign::discord_ask("1", "77", true, "8", "hello", at);
    let hook = json!({ "type": "message", "conversation": "c", "direct": true, "speaker": { "id": "u" }, "text": "hello" });
    let attacks = [
        ("forged", 401, changed(&direct("Ev1", "hello"), "hello", "rm -rf")),
        ("forged", 401, changed(&telegram_secret(&telegram), "hello", "rm -rf")),
        ("forged", 401, changed(&discord(AT), "hello", "rm -rf")),
        ("forged", 401, changed(&sign::webhook("w1", &hook, AT), "hello", "rm -rf")),
        ("unsigned", 401, without(&direct("Ev1", "hello"), "x-slack-signature")),
        ("unsigned", 401, without(&telegram, "x-telegram-bot-api-secret-token")),
        ("unsigned", 401, without(&discord(AT), "x-signature-ed25519")),
        ("unsigned", 401, without(&sign::webhook("w1", &hook, AT), "webhook-signature")),
        ("stale", 401, sign::slack_message("Ev1", "D1", None, "U1", "hello", "1.1", AT - 400)),
        ("stale", 401, discord(AT - 400)),
        ("stale", 401, sign::webhook("w1", &hook, AT - 400)),
        ("from the future", 401, sign::slack_message("Ev1", "D1", None, "U1", "hello", "1.1", AT + 4_000)),
        ("wrong app", 403, sign::slack_of_another_app(AT)),
        ("wrong app", 403, sign::discord_of_another_app(AT)),
        ("no JSON", 400, sign::slack("{".to_owned(), "application/json", AT)),
        ("another platform", 401, Delivery { platform: "discord".into(), ..direct("Ev1", "hello") }),
        ("no platform", 404, Delivery { platform: "teams".into(), ..direct("Ev1", "hello") }),
    ];
    for (what, status, delivery) in attacks {
        assert_eq!(life.deliver(&delivery).await, status, "{what} at {}", delivery.platform);
    }
    untouched(&desk, &life).await;
    life.end().await;
}

/// With another secret.
fn telegram_secret(delivery: &Delivery) -> Delivery {
    let headers = vec![("x-telegram-bot-api-secret-token".to_owned(), "telegram-secreT".to_owned())];
    Delivery { headers, ..delivery.clone() }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replay_within_the_time_is_recognised() {
    let desk = Desk::new([ac_testkit::Turn::text("one"), ac_testkit::Turn::text("never")]);
    let life = desk.open("a").await;
    let hook = json!({ "type": "message", "conversation": "c", "direct": true, "speaker": { "id": "u" }, "text": "hello" });
    let delivery = sign::webhook("w1", &hook, AT);
    assert_eq!(life.deliver(&delivery).await, 200);
    desk.see("one").await;
    assert_eq!(life.deliver(&delivery).await, 200);
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    assert_eq!(desk.model.requests().len(), 1);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_posts_of_reasonable_size_are_read_and_nothing_before_the_start() {
    let desk = Desk::new([]);
    let life = desk.open("a").await;
    let get = http::Request::get("/").body(bytes::Bytes::new()).unwrap();
    assert_eq!(life.channels.receive("slack", get).await.status().as_u16(), 405);
    let large = Delivery { body: "x".repeat(3 << 20), ..direct("Ev1", "hello") };
    assert_eq!(life.deliver(&large).await, 413);
    let idle = desk.builder("b", desk.controller("b")).adapter(desk.slack()).build().unwrap();
    let request = http::Request::post("/").body(bytes::Bytes::new()).unwrap();
    assert_eq!(idle.receive("slack", request).await.status().as_u16(), 503);
    untouched(&desk, &life).await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn how_much_of_a_signature_is_right_does_not_show_in_time() {
    // Coarse, so that a busy machine does not fail it: a comparison that ends at the first difference over a body of a megabyte would be
    // told apart by orders of magnitude from one that never compares.
    let desk = Desk::new([]);
    let life = desk.open("a").await;
    let good = sign::slack(format!("{{\"pad\":\"{}\"}}", "x".repeat(1 << 20)), "application/json", AT);
    let mut times = vec![];
    for at in [0, 60] {
        let mut bad = good.clone();
        for (name, value) in &mut bad.headers {
            if name == "x-slack-signature" {
                let flipped = if value.as_bytes()[3 + at] == b'0' { "1" } else { "0" };
                value.replace_range(3 + at..4 + at, flipped);
            }
        }
        let mut best = u128::MAX;
        for _ in 0..15 {
            let begun = Instant::now();
            assert_eq!(life.deliver(&bad).await, 401);
            best = best.min(begun.elapsed().as_micros());
        }
        times.push(best.max(1));
    }
    let (fast, slow) = (times[0].min(times[1]), times[0].max(times[1]));
    assert!(slow < fast * 3, "{times:?}");
    life.end().await;
}
