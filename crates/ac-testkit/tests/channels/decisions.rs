use std::time::Duration;

use ac_channels::{ChannelHooks, Deciding};
use ac_controller::Session;
use ac_testkit::{
    Turn,
    platforms::{Shown, sign},
};
use async_trait::async_trait;
use serde_json::json;

use crate::desk::{AT, Desk, PATIENCE, group, value, write};

async fn until_edited(desk: &Desk, card: &Shown, text: &str) -> Shown {
    let find =
        |shown: &[Shown]| shown.iter().find(|one| one.id == card.id && one.channel == card.channel && one.text.contains(text)).cloned();
    desk.platforms.until(PATIENCE, find).await.unwrap_or_else(|| panic!("the card does not say `{text}`: {:#?}", desk.platforms.shown()))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_the_person_who_asked_decides_in_a_group() {
    // B-124: a stranger is refused in private and changes nothing; the deciding person is on the card.
    let desk = Desk::new([write("c1"), Turn::text("written")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> write it")).await, 200);
    let card = desk.card("Approve").await;
    assert!(card.text.contains("c1") && card.thread.as_deref() == Some("17.1"), "{card:?}");
    life.press("T1", &card, "U2", "Approve").await;
    assert_eq!(desk.noticed("Only").await, "U2");
    let same = desk.card("Approve").await;
    assert_eq!((same.text.as_str(), same.history.len()), (card.text.as_str(), 0), "the card is as it was");
    assert!(desk.done().is_empty());
    life.press("T2", &card, "U1", "Approve").await;
    desk.see("written").await;
    let card = until_edited(&desk, &card, "Approved").await;
    assert!(card.text.contains("U1") && card.buttons.is_empty(), "{card:?}");
    assert_eq!(desk.done(), ["write c1"]);
    // A second press, of the other button too.
    let mut late = card.clone();
    late.buttons.clone_from(&same.buttons);
    life.press("T3", &late, "U1", "Decline").await;
    desk.noticed("Already decided by U1").await;
    assert_eq!(desk.done(), ["write c1"]);
    life.end().await;
}

struct Admins;

#[async_trait]
impl ChannelHooks for Admins {
    async fn may_decide(&self, decision: &Deciding<'_>) -> bool {
        decision.about.speaker.id == "UADMIN" || decision.by_default()
    }

    async fn plan_text(&self, _: &Session, path: &str) -> Option<String> {
        (path == "plan.md").then(|| "# The plan\n\nFirst **this**.".to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_host_says_who_else_may_decide() {
    let desk = Desk::new([write("c1"), Turn::text("written")]);
    let life = desk.open_with("a", Admins).await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> write it")).await, 200);
    let card = desk.card("Approve").await;
    life.press("T1", &card, "UADMIN", "Decline").await;
    desk.see("written").await;
    until_edited(&desk, &card, "Declined").await;
    assert!(desk.done().is_empty());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_button_decides_after_a_restart() {
    let desk = Desk::new([write("c1"), Turn::text("written")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write it").await;
    let card = desk.card("Approve").await;
    life.end().await;
    let life = desk.open("b").await;
    life.press("T1", &card, "U1", "Approve").await;
    desk.see("written").await;
    until_edited(&desk, &card, "Approved").await;
    assert_eq!(desk.done(), ["write c1"]);
    assert_eq!(desk.platforms.shown().len(), 2, "no second card: {:#?}", desk.platforms.shown());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_decided_elsewhere_is_answered_in_the_conversation_that_asked() {
    // B-132: also after a restart.
    let desk = Desk::new([write("c1"), Turn::text("written"), write("c2"), Turn::text("not written")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write it").await;
    let card = desk.card("Approve").await;
    let pending = life.channels.controller().pending().await.unwrap();
    let session = life.channels.controller().session(&pending[0].session).unwrap();
    session.approve(&pending[0].id).await.unwrap();
    assert_eq!(desk.see("written").await.channel, "D1");
    until_edited(&desk, &card, "Approved").await;
    life.say("Ev2", "write another").await;
    let card = desk.card("Approve").await;
    life.end().await;
    let life = desk.open("b").await;
    let pending = life.channels.controller().pending().await.unwrap();
    let answer = ac_controller::Answer::Decline { reason: None };
    life.channels.controller().answer(&pending[0].id, answer).await.unwrap();
    assert_eq!(desk.see("not written").await.channel, "D1");
    until_edited(&desk, &card, "Declined").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn always_holds_for_this_conversation_and_no_other() {
    let desk = Desk::new([write("c1"), Turn::text("one"), write("c2"), Turn::text("two"), write("c3"), Turn::text("three")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let card = desk.card("Always allow").await;
    life.press("T1", &card, "U1", "Always allow").await;
    desk.see("one").await;
    life.say("Ev2", "write").await;
    desk.see("two").await;
    assert_eq!(desk.done(), ["write c1", "write c2"]);
    assert_eq!(life.deliver(&sign::slack_message("Ev3", "D2", None, "U2", "write", "18.9", AT)).await, 200);
    let find = |shown: &[Shown]| shown.iter().find(|one| one.channel == "D2" && !one.buttons.is_empty()).cloned();
    assert!(desk.platforms.until(PATIENCE, find).await.is_some(), "the other conversation asks");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_button_of_another_conversation_or_of_another_make_is_not_valid() {
    let desk = Desk::new([write("c1"), write("c2"), Turn::text("done")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let first = desk.card("Approve").await;
    assert_eq!(life.deliver(&sign::slack_message("Ev2", "D2", None, "U1", "write", "18.9", AT)).await, 200);
    let find = |shown: &[Shown]| shown.iter().find(|one| one.channel == "D2" && !one.buttons.is_empty()).cloned();
    let second = desk.platforms.until(PATIENCE, find).await.unwrap();
    // Both are card 1 of their conversation; the value of one does not fit the other.
    let stolen = sign::slack_press("T1", "D2", None, &second.id, "U1", &value(&first, "Approve"), AT);
    assert_eq!(life.deliver(&stolen).await, 200);
    desk.noticed("not valid").await;
    let mac = value(&second, "Decline").rsplit('.').next().unwrap().to_owned();
    let forged = sign::slack_press("T2", "D2", None, &second.id, "U1", &format!("1.1.a.{mac}"), AT);
    assert_eq!(life.deliver(&forged).await, 200);
    let unknown = sign::slack_press("T3", "D2", None, &second.id, "U1", "tool_approve:c2", AT);
    assert_eq!(life.deliver(&unknown).await, 200);
    desk.noticed("no longer in use").await;
    assert_eq!(life.channels.controller().pending().await.unwrap().len(), 2);
    assert!(desk.done().is_empty());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_on_top_of_an_approval_declines_it_and_the_card_says_so() {
    let desk = Desk::new([write("c1"), Turn::text("instead")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let card = desk.card("Approve").await;
    life.say("Ev2", "no, something else").await;
    desk.see("instead").await;
    let card_now = until_edited(&desk, &card, "Declined").await;
    assert!(card_now.buttons.is_empty());
    // The button on the old card: a clear word, and nothing else.
    life.press("T1", &card, "U1", "Approve").await;
    desk.noticed("Already decided").await;
    assert!(desk.done().is_empty());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_strangers_message_in_a_group_declines_nothing_and_waits() {
    // R7: who may not press may not decline by writing either.
    let desk = Desk::new([write("c1"), Turn::text("written, and hello Bob")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> write it")).await, 200);
    let card = desk.card("Approve").await;
    assert_eq!(life.deliver(&group("Ev2", "U2", "and greet Bob")).await, 200);
    assert_eq!(desk.noticed("waits until").await, "U2");
    assert_eq!(life.channels.controller().pending().await.unwrap().len(), 1, "it is still asked");
    assert_eq!(desk.card("Approve").await.history.len(), 0, "the card is as it was");
    life.press("T1", &card, "U1", "Approve").await;
    desk.see("hello Bob").await;
    assert_eq!(desk.done(), ["write c1"]);
    let sent = format!("{:?}", desk.model.requests()[1].messages);
    assert!(sent.contains("greet Bob") && !sent.contains("interrupted_by_user_message"), "{sent}");
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_person_who_asked_declines_in_a_group_by_writing() {
    let desk = Desk::new([write("c1"), Turn::text("instead")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> write it")).await, 200);
    let card = desk.card("Approve").await;
    assert_eq!(life.deliver(&group("Ev2", "U1", "no, something else")).await, 200);
    desk.see("instead").await;
    until_edited(&desk, &card, "Declined").await;
    assert!(desk.done().is_empty());
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn questions_are_answered_by_button_or_in_words() {
    let options =
        json!({ "question": "Which *one*?", "options": [{ "label": "Red" }, { "label": "Blue", "description": "like the sky" }] });
    let desk = Desk::new([
        Turn::tool("q1", "ask_user", options),
        Turn::text("chosen"),
        Turn::tool("q2", "ask_user", json!({ "question": "Why?" })),
        Turn::text("understood"),
    ]);
    let life = desk.open("a").await;
    life.say("Ev1", "ask me").await;
    let card = desk.card("Blue").await;
    life.press("T1", &card, "U1", "Blue").await;
    desk.see("chosen").await;
    until_edited(&desk, &card, "Answered: Blue").await;
    life.say("Ev2", "ask again").await;
    desk.see("Why?").await;
    life.say("Ev3", "because").await;
    desk.see("understood").await;
    let results: Vec<String> = desk.model.requests().iter().map(|request| format!("{:?}", request.messages)).collect();
    assert!(results[1].contains("User answered: Blue") && results[3].contains("User answered: because"));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plan_is_shown_sent_back_in_words_and_approved_by_button() {
    let plan = |id: &str| Turn::tool(id, "submit_plan", json!({ "path": "plan.md" }));
    let desk = Desk::new([plan("p1"), plan("p2"), Turn::text("begun")]);
    let life = desk.open_with("a", Admins).await;
    life.say("Ev1", "plan it").await;
    desk.card("Approve plan").await;
    let text = desk.see("The plan").await;
    assert!(text.text.contains("*this*"), "rendered: {}", text.text);
    life.say("Ev2", "shorter, please").await;
    let find = |shown: &[Shown]| {
        (shown.iter().filter(|one| one.buttons.iter().any(|(label, _)| label == "Approve plan")).count() == 1
            && shown.iter().any(|one| one.text.contains("Changes wanted")))
        .then(|| shown.iter().rev().find(|one| !one.buttons.is_empty()).cloned())
        .flatten()
    };
    let second = desk.platforms.until(PATIENCE, find).await.unwrap_or_else(|| panic!("{:#?}", desk.platforms.shown()));
    let sent = format!("{:?}", desk.model.requests()[1].messages);
    assert!(sent.contains("shorter, please"), "{sent}");
    life.press("T1", &second, "U1", "Approve plan").await;
    desk.see("begun").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn telegram_and_discord_decide_by_their_own_buttons() {
    let desk = Desk::new([write("c1"), Turn::text("one"), write("c2"), Turn::text("two")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "write", 3, AT)).await, 200);
    let card = desk.card("Approve").await;
    let press = sign::telegram_press(2, 55, 7, card.id.parse().unwrap(), &value(&card, "Approve"));
    assert_eq!(life.deliver(&press).await, 200);
    desk.see("one").await;
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "write", AT)).await, 200);
    let find = |shown: &[Shown]| shown.iter().find(|one| one.channel == "77" && !one.buttons.is_empty()).cloned();
    let card = desk.platforms.until(PATIENCE, find).await.unwrap();
    let stranger = sign::discord_press("2", "77", true, "9", &card.id, &value(&card, "Approve"), AT);
    assert_eq!(life.deliver(&stranger).await, 200);
    assert_eq!(desk.noticed("Only User 8").await, "token-2");
    let press = sign::discord_press("3", "77", true, "8", &card.id, &value(&card, "Approve"), AT);
    assert_eq!(life.deliver(&press).await, 200);
    desk.see("two").await;
    assert_eq!(desk.done(), ["write c1", "write c2"]);
    tokio::time::sleep(Duration::from_millis(50)).await;
    life.end().await;
}
