use ac_core::Timestamp;
use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::{
    adapter::{ChannelAdapter, Refused},
    event::{Incoming, IncomingKind},
};

fn telegram() -> Telegram {
    Telegram::new("123:abc", "s3cret").username("@agent_bot")
}

fn read(update: &Value) -> Vec<Incoming> {
    let request =
        http::Request::post("/").header("x-telegram-bot-api-secret-token", "s3cret").body(Bytes::from(update.to_string())).unwrap();
    telegram().receive(&request, Timestamp::default()).unwrap().events
}

fn message(change: &Value) -> Value {
    let mut message = json!({
        "message_id": 365, "from": { "id": 1111, "is_bot": false, "first_name": "Test", "last_name": "Lastname", "username": "Testusername" },
        "chat": { "id": -55, "type": "supergroup", "title": "Group" }, "date": 1_441_645_532, "text": "Hello",
    });
    message.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    json!({ "update_id": 10_000, "message": message })
}

fn said(events: &[Incoming]) -> &crate::event::Said {
    match &events[0].kind {
        IncomingKind::Message(said) => said,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_the_secret_opens_the_door() {
    for given in [None, Some(""), Some("s3cre"), Some("s3cret "), Some("s3cretx"), Some("S3CRET")] {
        let mut request = http::Request::post("/");
        if let Some(given) = given {
            request = request.header("x-telegram-bot-api-secret-token", given);
        }
        let request = request.body(Bytes::from(message(&json!({})).to_string())).unwrap();
        assert_eq!(telegram().receive(&request, Timestamp::default()).unwrap_err(), Refused::Unsigned, "{given:?}");
    }
    let open = Telegram::new("1:a", "");
    let request = http::Request::post("/").header("x-telegram-bot-api-secret-token", "").body(Bytes::new()).unwrap();
    assert_eq!(open.receive(&request, Timestamp::default()).unwrap_err(), Refused::Unsigned, "no secret is no secret");
}

#[test]
fn a_private_chat_is_direct_and_a_group_needs_a_mention() {
    let events = read(&message(&json!({ "chat": { "id": 1111, "type": "private" } })));
    assert_eq!(events[0].conversation.id, "telegram:1111");
    assert!(events[0].conversation.direct && said(&events).addressed);
    assert_eq!(events[0].speaker.name.as_deref(), Some("Test Lastname"));
    assert_eq!(events[0].ids, ["update 10000", "message 365"]);
    assert!(!said(&read(&message(&json!({})))).addressed);
    let mentioned = read(&message(&json!({ "text": "hey @Agent_Bot do it" })));
    assert_eq!((said(&mentioned).text.as_str(), said(&mentioned).addressed), ("hey  do it", true));
    assert!(!said(&read(&message(&json!({ "text": "@agent_bottom" })))).addressed);
    let reply = json!({ "reply_to_message": { "message_id": 9, "from": { "id": 1, "is_bot": true, "username": "agent_bot" }, "chat": { "id": -55 } } });
    let reply = read(&message(&reply));
    assert!(said(&reply).addressed);
    assert_eq!(said(&reply).reply_to.as_deref(), Some("9"));
}

#[test]
fn topics_are_conversations_of_their_own() {
    let events = read(&message(&json!({ "message_thread_id": 7, "is_topic_message": true })));
    assert_eq!(events[0].conversation.id, "telegram:-55:7");
}

#[test]
fn a_press_and_what_is_no_message() {
    let update = json!({
        "update_id": 10_001,
        "callback_query": {
            "id": "4382bfdwdsb323b2d9", "from": { "id": 1111, "is_bot": false, "first_name": "Test" }, "data": "1.2.a.mac",
            "message": { "message_id": 7, "chat": { "id": -55, "type": "group" }, "date": 1 },
        },
    });
    let events = read(&update);
    let IncomingKind::Click(click) = &events[0].kind else { panic!() };
    assert_eq!((click.values.as_slice(), click.responder.as_deref()), (["1.2.a.mac".to_owned()].as_slice(), Some("4382bfdwdsb323b2d9")));
    assert!(read(&json!({ "update_id": 1, "edited_message": { "message_id": 1 } })).is_empty());
    assert!(read(&message(&json!({ "from": { "id": 1, "is_bot": true } }))).is_empty());
}
