//! Questions with many options, long ones, and cards that a platform does not take.

use ac_testkit::{
    Turn,
    platforms::{Shown, sign},
};
use serde_json::{Value, json};

use crate::desk::{AT, Desk, PATIENCE, group, value, write};

fn ask(id: &str, count: usize, mode: &str) -> Turn {
    let options: Vec<Value> = (1..=count).map(|n| json!({ "label": format!("Choice {n}") })).collect();
    Turn::tool(id, "ask_user", json!({ "question": "Which?", "options": options, "selectionMode": mode }))
}

async fn asked(desk: &Desk, channel: &str) -> Shown {
    let find = |shown: &[Shown]| shown.iter().rev().find(|one| one.channel == channel && one.text.contains("Which?")).cloned();
    desk.platforms.until(PATIENCE, find).await.unwrap_or_else(|| panic!("{:#?}", desk.platforms.shown()))
}

fn told(desk: &Desk, request: usize) -> String {
    format!("{:?}", desk.model.requests()[request].messages)
}

#[tokio::test(flavor = "multi_thread")]
async fn many_options_are_a_menu_where_there_are_menus_and_a_list_of_numbers_elsewhere() {
    let desk = Desk::new([
        ask("q1", 30, "single_select"),
        Turn::text("one"),
        ask("q2", 20, "multi_select"),
        Turn::text("two"),
        ask("q3", 30, "single_select"),
        Turn::text("three"),
        ask("q4", 30, "multi_select"),
        Turn::text("four"),
    ]);
    let life = desk.open("a").await;
    life.say("Ev1", "ask me").await;
    let card = asked(&desk, "D1").await;
    assert_eq!(card.buttons.len(), 30, "all of them in the menu");
    let choice = sign::slack_choice("T1", "D1", &card.id, "U1", &[&value(&card, "Choice 17")], AT);
    assert_eq!(life.deliver(&choice).await, 200);
    desk.see("one").await;
    assert!(told(&desk, 1).contains("User answered: Choice 17"));
    // Several, from Discord's menu.
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "ask me", AT)).await, 200);
    let card = asked(&desk, "77").await;
    let (two, nine) = (value(&card, "Choice 2"), value(&card, "Choice 9"));
    assert_eq!(life.deliver(&sign::discord_choice("2", "77", true, "9", &card.id, &[&two], AT)).await, 200);
    assert_eq!(desk.noticed("Only User 8").await, "token-2");
    assert_eq!(life.deliver(&sign::discord_choice("3", "77", true, "8", &card.id, &[&two, &nine], AT)).await, 200);
    desk.see("two").await;
    assert!(told(&desk, 3).contains("Choice 2, Choice 9"), "{}", told(&desk, 3));
    // More than Discord's menu holds: none is left out, and the words say how to choose.
    assert_eq!(life.deliver(&sign::discord_ask("4", "78", false, "8", "ask me", AT)).await, 200);
    let card = asked(&desk, "78").await;
    assert!(card.buttons.is_empty() && card.text.contains("Choice 30") && card.text.contains("number of your choice"), "{card:?}");
    assert_eq!(life.deliver(&sign::discord_ask("5", "78", false, "8", "29", AT)).await, 200);
    desk.see("three").await;
    assert!(told(&desk, 5).contains("User answered: Choice 29"));
    // Telegram has no menus.
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "ask me", 3, AT)).await, 200);
    let card = asked(&desk, "55").await;
    assert!(card.buttons.is_empty() && card.text.contains("number of your choice"), "{card:?}");
    assert_eq!(life.deliver(&sign::telegram_message(2, 55, 7, "3, choice 5", 4, AT)).await, 200);
    desk.see("four").await;
    assert!(told(&desk, 7).contains("Choice 3, Choice 5"), "{}", told(&desk, 7));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_is_filled_in_by_who_may_answer_and_by_nobody_else() {
    let desk = Desk::new([Turn::tool("p1", "submit_plan", json!({ "path": "plan.md" })), Turn::text("shorter now")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&sign::discord_ask("1", "77", true, "8", "plan it", AT)).await, 200);
    let card = desk.card("Say what to change").await;
    let form = value(&card, "Say what to change");
    assert_eq!(life.deliver(&sign::discord_form("2", "77", true, "9", &form, "make it red", AT)).await, 200);
    assert_eq!(desk.noticed("Only User 8").await, "token-2");
    assert_eq!(life.deliver(&sign::discord_form("3", "77", true, "8", &form, "make it short", AT)).await, 200);
    desk.see("shorter now").await;
    assert!(told(&desk, 1).contains("make it short") && !told(&desk, 1).contains("make it red"));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_who_writes_while_a_question_is_open_is_told_that_it_waits() {
    let desk = Desk::new([Turn::tool("q1", "ask_user", json!({ "question": "Which?" })), Turn::text("thanks, and hello Bob")]);
    let life = desk.open("a").await;
    assert_eq!(life.deliver(&group("Ev1", "U1", "<@UBOT> ask me")).await, 200);
    asked(&desk, "C1").await;
    assert_eq!(life.deliver(&group("Ev2", "U2", "green")).await, 200);
    assert_eq!(desk.noticed("waits until").await, "U2");
    assert_eq!(life.channels.controller().pending().await.unwrap().len(), 1, "it is no answer");
    assert_eq!(life.deliver(&group("Ev3", "U1", "blue")).await, 200);
    desk.see("hello Bob").await;
    assert!(told(&desk, 1).contains("User answered: blue"));
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_that_fits_on_no_card_is_posted_whole_before_it() {
    let question = format!("Which? {} THE END OF IT", "Some words of it. ".repeat(400));
    let options = json!([{ "label": "Red" }, { "label": "Blue" }]);
    let desk = Desk::new([Turn::tool("q1", "ask_user", json!({ "question": question, "options": options })), Turn::text("chosen")]);
    let life = desk.open("a").await;
    life.say("Ev1", "ask me").await;
    let card = desk.card("Blue").await;
    let whole: String = desk.platforms.shown_in("D1").into_iter().filter(|one| one.buttons.is_empty()).map(|one| one.text).collect();
    assert_eq!(whole.matches("Some words of it.").count(), 400);
    assert!(whole.contains("THE END OF IT") && whole.contains("Red"));
    life.press("T1", &card, "U1", "Blue").await;
    desk.see("chosen").await;
    desk.see("Answered: Blue").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_approves_what_looks_like_something_else() {
    // What is cut off is said, on each platform; what came of it stays on the card; letters that nobody sees are spelled out.
    let hidden = format!("ls{} rm -rf", "&&&&<<<<".repeat(140));
    let call = |id: &str, what: &str| Turn::tool(id, "write", json!({ "what": what }));
    let desk =
        Desk::new([call("c1", &hidden), Turn::text("one"), call("c2", &hidden), Turn::text("two"), call("c3", "a\u{202e}fdp.exe\u{200b}")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let slack = desk.card("Approve").await;
    assert!(!slack.text.contains("rm -rf") && slack.text.contains("not all of it"), "{}", slack.text);
    life.press("T1", &slack, "U1", "Decline").await;
    desk.see("one").await;
    desk.see("Declined").await;
    assert_eq!(life.deliver(&sign::telegram_message(1, 55, 7, "write", 3, AT)).await, 200);
    let card = desk.card("Approve").await;
    assert!(card.text.contains("not all of it") || card.text.contains("rm -rf"), "{}", card.text);
    let press = sign::telegram_press(2, 55, 7, card.id.parse().unwrap(), &value(&card, "Decline"));
    assert_eq!(life.deliver(&press).await, 200);
    desk.see("two").await;
    life.say("Ev3", "write").await;
    let card = desk.see("fdp.exe").await;
    assert!(card.text.contains("a\\u202efdp.exe\\u200b"), "{}", card.text);
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_people_reply_to_still_decides() {
    // Slack makes it the root of a thread then, and says so with the press.
    let desk = Desk::new([write("c1"), Turn::text("written")]);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let mut card = desk.card("Approve").await;
    card.thread = Some(card.id.clone());
    life.press("T1", &card, "U1", "Approve").await;
    desk.see("written").await;
    life.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_card_that_the_platform_refuses_holds_up_nothing() {
    let desk = Desk::new([write("c1"), Turn::text("instead")]);
    desk.platforms.behave(|manners| manners.no_buttons = true);
    let life = desk.open("a").await;
    life.say("Ev1", "write").await;
    let card = desk.see("could not be shown").await;
    assert!(card.text.contains("c1"), "{}", card.text);
    assert_eq!(life.channels.controller().pending().await.unwrap().len(), 1, "it is still asked");
    life.say("Ev2", "no, something else").await;
    desk.see("instead").await;
    assert!(desk.done().is_empty());
    life.end().await;
}
