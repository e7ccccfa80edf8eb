//! What ordinary people do, in the order in which they do it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use ac_channels::{About, ChannelHooks};
use ac_controller::Session;
use ac_testkit::{
    Turn,
    platforms::{Shown, sign, sign::Delivery},
};
use async_trait::async_trait;
use serde_json::{Value, json};

use crate::desk::{AT, Desk, PATIENCE, group, write};

#[tokio::test(flavor = "multi_thread")]
async fn a_reply_that_comes_before_the_mention_is_answered_in_its_turn() {
    // Slack keeps no order, and a mention may have to be delivered again.
    let desk = Desk::new([Turn::text("one"), Turn::text("two"), Turn::text("three")]);
    let life = desk.open("a").await;
    let reply = sign::slack_message("Ev2", "C1", Some("17.1"), "U2", "and me", "17.2", AT);
    assert_eq!(life.deliver(&reply).await, 200, "nobody listens yet");
    desk.platforms.behave(|manners| {
        let said = [("U2", "and me", "17.2"), ("UBOT", "the agent's own words", "17.3"), ("U1", "before it", "17.0")];
        manners.later = said.map(|(user, text, ts)| (user.to_owned(), text.to_owned(), ts.to_owned())).to_vec();
    });
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> hello")).await, 200);
    desk.see("two").await;
    // Slack tells of it once more.
    assert_eq!(life.deliver(&reply).await, 200);
    tokio::time::sleep(Duration::from_millis(200)).await;
    let requests = desk.model.requests();
    assert_eq!(requests.len(), 2);
    assert!(requests[0].messages.last().unwrap().text().ends_with("hello"));
    assert_eq!(requests[1].messages.last().unwrap().text(), "Name of U2 (U2): and me");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_in_a_conversation_that_is_not_known_is_told_so_and_leaves_no_trace() {
    let desk = Desk::new([]);
    let life = desk.open("a").await;
    let presses = [
        (sign::slack_press("T1", "C9", Some("17.1"), "18.1", "U1", "1.1.a.AAAA", AT), "U1"),
        (sign::telegram_press(1, -99, 7, 3, "1.1.a.AAAA"), "query-1"),
        (sign::discord_press("1", "99", true, "8", "5", "1.1.a.AAAA", AT), "token-1"),
    ];
    for (n, (press, whom)) in presses.iter().enumerate() {
        assert_eq!(life.deliver(press).await, 200);
        let begun = tokio::time::Instant::now();
        while desk.platforms.notices().len() <= n {
            assert!(begun.elapsed() < PATIENCE, "nobody was told: {whom}");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let notice = &desk.platforms.notices()[n];
        assert!(notice.to == *whom && notice.text.contains("no longer in use"), "{notice:?}");
    }
    assert!(desk.platforms.shown().is_empty() && life.channels.controller().sessions().is_empty());
    let rows = desk.storage.sessions().list(&"desk/channels".into(), None, 10).await.unwrap();
    assert!(rows.items.is_empty(), "{rows:?}");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_whose_thread_was_deleted_is_told_so_and_makes_no_thread() {
    let desk = Desk::new([write("c1"), Turn::text("new beginning")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let card = desk.card("Approve").await;
    let session = life.channels.controller().sessions().remove(0);
    let thread = session.thread_id().unwrap();
    session.delete_thread(&thread).await.unwrap();
    life.press("T1", &card, "U1", "Approve").await;
    assert_eq!(desk.noticed("no longer in use").await, "U1");
    assert!(desk.done().is_empty());
    assert_eq!(session.thread_id(), None, "a press makes no thread");
    life.say("Ev2", "again").await;
    desk.see("new beginning").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_says_nothing_but_the_name_is_heard() {
    let desk = Desk::new([Turn::text("one"), Turn::text("two")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT>")).await, 200);
    desk.see("one").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, -55, 7, "@agent_bot", 3, AT)).await, 200);
    desk.see("two").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_without_words_and_for_other_bots_start_nothing() {
    let desk = Desk::new([Turn::text("one")]);
    let life = desk.open("a").await;
    let empty = sign::slack(
        "command=%2Fask&text=&user_id=U1&channel_id=D1&api_app_id=A0FAKE&trigger_id=T".into(),
        "application/x-www-form-urlencoded",
        AT,
    );
    let hint = life.answer(&empty).await;
    assert!(String::from_utf8_lossy(hint.body()).contains("ephemeral"), "{hint:?}");
    let hint = life.answer(&sign::discord_ask("1", "77", true, "8", " ", AT)).await;
    assert!(String::from_utf8_lossy(hint.body()).contains("Write what you want"), "{hint:?}");
    assert_eq!(life.deliver(&sign::telegram_message(1, -55, 7, "/start@other_bot now", 3, AT)).await, 200);
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(desk.model.requests().is_empty());
    // One's own, with a typing error, is a message like any other.
    assert_eq!(life.deliver(&sign::telegram_message(2, -55, 7, "/strat@Agent_Bot now", 4, AT)).await, 200);
    desk.see("one").await;
    assert!(desk.model.requests()[0].messages.last().unwrap().text().ends_with("/strat now"));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_press_that_telegram_tells_without_its_message_is_answered_at_once() {
    let desk = Desk::new([]);
    let life = desk.open("a").await;
    let press = sign::telegram(&json!({
        "update_id": 1, "callback_query": { "id": "Q", "data": "1.1.a.x", "from": { "id": 7, "is_bot": false }, "inline_message_id": "x" },
    }));
    let answer = life.answer(&press).await;
    let body: Value = serde_json::from_slice(answer.body()).unwrap();
    assert_eq!((body["method"].as_str(), body["callback_query_id"].as_str()), (Some("answerCallbackQuery"), Some("Q")), "{body}");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_group_of_people_that_is_no_server_is_not_between_two() {
    // An app that a person brought along sees people's own group messages: no server, and not one person either.
    let desk = Desk::new([write("c1"), Turn::text("written")]);
    let life = desk.open("a").await;
    let in_group = |delivery: Delivery| {
        let mut body: Value = serde_json::from_str(&delivery.body).unwrap();
        body["context"] = 2.into();
        body["channel"] = json!({ "id": "77", "type": 3 });
        sign::discord(&body, AT)
    };
    assert_eq!(life.deliver(&in_group(sign::discord_ask("1", "77", false, "8", "write", AT))).await, 200);
    let card = desk.card("Approve").await;
    let value = crate::desk::value(&card, "Approve");
    assert_eq!(life.deliver(&in_group(sign::discord_press("2", "77", false, "9", &card.id, &value, AT))).await, 200);
    assert_eq!(desk.noticed("Only").await, "token-2");
    // Nor does it count as one because a later request says so.
    assert_eq!(life.deliver(&sign::discord_press("3", "77", false, "9", &card.id, &value, AT)).await, 200);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert!(desk.done().is_empty());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_is_called_by_what_a_model_or_a_name_says() {
    let words = "@everyone <!channel> <@U1> @grace mail@example.org `@code`";
    let desk = Desk::new([Turn::text(words), Turn::text(words), Turn::text(words)]);
    let life = desk.open("a").await;
    life.say("Ev1", "hello").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "hello", 3, AT)).await, 200);
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "hello", AT)).await, 200);
    for channel in ["D1", "55", "77"] {
        let find = |shown: &[Shown]| shown.iter().find(|one| one.channel == channel && one.text.contains("example")).cloned();
        let shown = desk.platforms.until(PATIENCE, find).await.unwrap();
        match channel {
            "55" => assert!(shown.text.contains("@\u{200b}grace") && shown.text.contains("mail@example.org"), "{shown:?}"),
            "D1" => assert!(!shown.text.contains("<!") && !shown.text.contains("<@"), "{shown:?}"),
            _ => {}
        }
    }
    for call in desk.platforms.called() {
        match (call.platform, call.method.as_str()) {
            ("slack", "chat.postMessage" | "chat.update") => {
                assert_eq!((&call.body["parse"], &call.body["link_names"]), (&json!("none"), &json!(false)));
            }
            ("discord", method) if method.ends_with("/messages") && method.starts_with("POST") => {
                assert_eq!(call.body["allowed_mentions"]["parse"], json!([]));
            }
            _ => {}
        }
    }
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mention_without_a_word_answers_no_question() {
    let desk = Desk::new([Turn::tool("q1", "ask_user", json!({ "question": "Which?" })), Turn::text("thanks")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> choose")).await, 200);
    desk.see("Which?").await;
    assert_eq!(life.deliver(&group("Ev2", "U1", "<@UBOT>")).await, 200);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(desk.model.requests().len(), 1, "it is still asked");
    assert_eq!(life.deliver(&group("Ev3", "U1", "blue")).await, 200);
    desk.see("thanks").await;
    let second = format!("{:?}", desk.model.requests()[1].messages);
    assert!(second.contains("blue") && second.contains("without a word"), "{second}");
    life.end().await;
}

struct Counts(Arc<AtomicUsize>);

#[async_trait]
impl ChannelHooks for Counts {
    async fn on_session_start(&self, _: &Session, _: &About<'_>) -> Result<(), ac_core::error::Source> {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_whose_run_is_recovered_is_prepared_before_its_next_message() {
    let desk = Desk::new([Turn::hang(), Turn::text("one"), Turn::text("two")]);
    let started = Arc::<AtomicUsize>::default();
    let life = desk.open_with("a", Counts(started.clone())).await;
    life.say("Ev1", "hello").await;
    desk.told(1).await;
    life.end().await;
    assert_eq!(started.load(Ordering::SeqCst), 1);
    // The controller goes on with the run before any channel looks at the conversation.
    let controller = desk.controller("b");
    controller.init().await.unwrap();
    desk.told(2).await;
    let channels = desk.builder("b", controller.clone()).adapter(desk.slack()).hooks(Counts(started.clone())).build().unwrap();
    channels.start().await.unwrap();
    desk.see("one").await;
    assert_eq!(started.load(Ordering::SeqCst), 2, "once in each process");
    channels.shutdown().await;
    controller.shutdown().await;
}
