use ac_core::Timestamp;
use bytes::Bytes;
use serde_json::{Value, json};

use super::*;
use crate::{
    adapter::{ChannelAdapter, Refused},
    event::IncomingKind,
    signature::hmac,
};

/// The worked example of Slack's documentation on verifying requests.
const SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
const AT: i64 = 1_531_420_618;
const BODY: &str = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c";
const SIGNATURE: &str = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503";
const FORM: &str = "application/x-www-form-urlencoded";

fn slack() -> Slack {
    Slack::new(SECRET, "xoxb-1").bot_user("UBOT").app_id("A1")
}

fn now() -> Timestamp {
    Timestamp::from_millis(AT * 1000)
}

fn request(body: &str, kind: &str, at: i64, signature: &str) -> http::Request<Bytes> {
    http::Request::post("/")
        .header("content-type", kind)
        .header("x-slack-request-timestamp", at)
        .header("x-slack-signature", signature)
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

fn signed(body: &str, kind: &str) -> http::Request<Bytes> {
    let mac = hmac(SECRET.as_bytes(), &[b"v0:", AT.to_string().as_bytes(), b":", body.as_bytes()]);
    let signature: String = mac.iter().map(|byte| format!("{byte:02x}")).collect();
    request(body, kind, AT, &format!("v0={signature}"))
}

fn event(event: Value) -> http::Request<Bytes> {
    let body = json!({ "type": "event_callback", "event_id": "Ev1", "api_app_id": "A1", "team_id": "T1", "event": event });
    signed(&body.to_string(), "application/json")
}

#[test]
fn the_official_vector_is_accepted_and_its_neighbours_are_not() {
    let slack = Slack::new(SECRET, "xoxb-1");
    let received = slack.receive(&request(BODY, FORM, AT, SIGNATURE), now()).unwrap();
    assert_eq!(received.events[0].speaker.id, "U2CERLKJA");
    assert_eq!(received.events[0].conversation.id, "slack:G8PSS9T3V");
    let other = BODY.replace("roadrunner", "coyote");
    assert_eq!(slack.receive(&request(&other, FORM, AT, SIGNATURE), now()).unwrap_err(), Refused::Unsigned);
    assert_eq!(slack.receive(&request(BODY, FORM, AT + 1, SIGNATURE), now()).unwrap_err(), Refused::Unsigned);
    for signature in ["", "v0=", "v0=00", "v1=a2114d57", SIGNATURE.split_at(SIGNATURE.len() - 2).0, &SIGNATURE.replace("a2", "a3")] {
        assert_eq!(slack.receive(&request(BODY, FORM, AT, signature), now()).unwrap_err(), Refused::Unsigned, "{signature}");
    }
    assert_eq!(Slack::new("", "x").receive(&request(BODY, FORM, AT, SIGNATURE), now()).unwrap_err(), Refused::Unsigned);
    let bare = http::Request::post("/").body(Bytes::from(BODY)).unwrap();
    assert_eq!(slack.receive(&bare, now()).unwrap_err(), Refused::Unsigned);
}

#[test]
fn a_replay_after_five_minutes_is_stale_and_another_app_is_wrong() {
    let slack = slack();
    let later = Timestamp::from_millis((AT + 301) * 1000);
    assert_eq!(slack.receive(&event(json!({ "type": "message" })), later).unwrap_err(), Refused::Stale);
    let body = json!({ "type": "event_callback", "event_id": "E", "api_app_id": "A2", "event": { "type": "message" } }).to_string();
    assert_eq!(slack.receive(&signed(&body, "application/json"), now()).unwrap_err(), Refused::WrongApp);
}

#[test]
fn the_handshake_is_answered_with_its_challenge() {
    let body = json!({ "type": "url_verification", "token": "t", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P" });
    let received = slack().receive(&signed(&body.to_string(), "application/json"), now()).unwrap();
    assert_eq!(received.response.body().as_ref(), b"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P");
    assert!(received.events.is_empty());
}

#[test]
fn a_mention_begins_a_thread_and_replies_follow_it() {
    let mention = json!({ "type": "app_mention", "user": "U1", "text": "<@UBOT> what &amp; why?", "ts": "17.1", "channel": "C1", "event_ts": "17.1" });
    let events = slack().receive(&event(mention), now()).unwrap().events;
    assert_eq!(events[0].conversation.id, "slack:C1:17.1");
    assert_eq!(events[0].ids, ["event Ev1", "message C1 17.1"]);
    let IncomingKind::Message(said) = &events[0].kind else { panic!() };
    assert_eq!((said.text.as_str(), said.addressed), ("what & why?", true));
    let reply = json!({
        "type": "message", "user": "U2", "text": "and then?", "ts": "17.2", "thread_ts": "17.1", "channel": "C1", "channel_type": "channel",
    });
    let events = slack().receive(&event(reply), now()).unwrap().events;
    assert_eq!(events[0].conversation.id, "slack:C1:17.1");
    let IncomingKind::Message(said) = &events[0].kind else { panic!() };
    assert!(!said.addressed && said.follows);
}

#[test]
fn what_no_person_said_is_no_message() {
    for change in [
        json!({ "bot_id": "B1" }),
        json!({ "subtype": "message_changed" }),
        json!({ "subtype": "channel_join" }),
        json!({ "user": "UBOT" }),
        json!({ "user": null }),
    ] {
        let mut message = json!({ "type": "message", "user": "U1", "text": "x", "ts": "1.1", "channel": "D1", "channel_type": "im" });
        message.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        assert!(slack().receive(&event(message), now()).unwrap().events.is_empty(), "{change}");
    }
}

#[test]
fn who_clicked_comes_from_the_envelope_and_not_from_the_button() {
    // B-124: a user in the value of the button is a text like any other.
    let payload = json!({
        "type": "block_actions", "api_app_id": "A1", "trigger_id": "T.1", "user": { "id": "U2", "name": "mallory", "team_id": "T1" },
        "channel": { "id": "C1", "name": "general" }, "message": { "ts": "17.3", "thread_ts": "17.1", "user": "UBOT" },
        "actions": [{ "type": "button", "action_id": "button0", "block_id": "b", "value": "{\"user\":\"U1\"}", "action_ts": "17.9" }],
    });
    let body: String = form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
    let events = slack().receive(&signed(&body, FORM), now()).unwrap().events;
    assert_eq!(events[0].speaker.id, "U2");
    assert_eq!(events[0].conversation.id, "slack:C1:17.1");
    assert_eq!(events[0].ids, ["action T.1"]);
}

#[test]
fn a_card_that_became_the_root_of_a_thread_belongs_to_the_conversation_that_it_was_posted_in() {
    let press = |message: Value| {
        let payload = json!({
            "type": "block_actions", "api_app_id": "A1", "trigger_id": "T.1", "user": { "id": "U1" }, "channel": { "id": "D1" }, "message": message,
            "actions": [{ "type": "button", "value": "v" }],
        });
        let body: String = form_urlencoded::Serializer::new(String::new()).append_pair("payload", &payload.to_string()).finish();
        slack().receive(&signed(&body, FORM), now()).unwrap().events[0].conversation.clone()
    };
    let (bare, root) = (press(json!({ "ts": "17.3" })), press(json!({ "ts": "17.3", "thread_ts": "17.3" })));
    assert_eq!((bare.id.as_str(), root), ("slack:D1", bare.clone()));
    assert_eq!(press(json!({ "ts": "17.4", "thread_ts": "17.1" })).id, "slack:D1:17.1");
}

#[test]
fn nothing_of_the_secrets_shows() {
    let shown = format!("{:?}", slack());
    assert!(!shown.contains(SECRET) && !shown.contains("xoxb-1"));
}
