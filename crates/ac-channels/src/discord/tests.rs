use ac_core::Timestamp;
use bytes::Bytes;
use ed25519_dalek::{Signer, SigningKey};
use serde_json::{Value, json};

use super::*;
use crate::{
    adapter::{ChannelAdapter, Received, Refused},
    event::IncomingKind,
};

const AT: i64 = 1_700_000_000;

fn key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

fn discord() -> Discord {
    let public: String = key().verifying_key().to_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    Discord::new("A1", &public, "token").unwrap()
}

fn request(body: &str, key: &SigningKey, at: i64) -> http::Request<Bytes> {
    let signature = key.sign(format!("{at}{body}").as_bytes()).to_bytes();
    let signature: String = signature.iter().map(|byte| format!("{byte:02x}")).collect();
    http::Request::post("/")
        .header("x-signature-timestamp", at)
        .header("x-signature-ed25519", signature)
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

fn read(body: &Value) -> Result<Received, Refused> {
    discord().receive(&request(&body.to_string(), &key(), AT), Timestamp::from_millis(AT * 1000))
}

fn interaction(change: &Value) -> Value {
    let mut body = json!({
        "id": "786008729715212338", "application_id": "A1", "type": 2, "token": "unique", "guild_id": "G1", "channel_id": "645027906669510667",
        "member": { "user": { "id": "53908232506183680", "username": "mason", "global_name": "Mason" }, "nick": null },
        "data": { "id": "771825006014889984", "name": "ask", "options": [{ "name": "prompt", "type": 3, "value": "What is it?" }] },
    });
    body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    body
}

#[test]
fn only_what_the_platform_signed_is_read() {
    let body = interaction(&json!({})).to_string();
    let now = Timestamp::from_millis(AT * 1000);
    assert!(discord().receive(&request(&body, &key(), AT), now).is_ok());
    let other = SigningKey::from_bytes(&[8; 32]);
    assert_eq!(discord().receive(&request(&body, &other, AT), now).unwrap_err(), Refused::Unsigned);
    let mut changed = request(&body, &key(), AT);
    *changed.body_mut() = Bytes::from(body.replace("53908232506183680", "53908232506183681"));
    assert_eq!(discord().receive(&changed, now).unwrap_err(), Refused::Unsigned);
    assert_eq!(discord().receive(&request(&body, &key(), AT - 301), now).unwrap_err(), Refused::Stale);
    assert_eq!(read(&interaction(&json!({ "application_id": "A2" }))).unwrap_err(), Refused::WrongApp);
    assert_eq!(discord().receive(&http::Request::post("/").body(Bytes::from(body)).unwrap(), now).unwrap_err(), Refused::Unsigned);
    assert!(Discord::new("A", "zz", "t").is_err());
}

#[test]
fn a_ping_is_answered_with_a_pong() {
    let received = read(&json!({ "id": "1", "application_id": "A1", "type": 1 })).unwrap();
    assert_eq!(received.response.body().as_ref(), br#"{"type":1}"#);
    assert!(received.events.is_empty());
}

#[test]
fn a_command_is_a_message_of_the_person_who_is_signed() {
    let received = read(&interaction(&json!({}))).unwrap();
    let event = &received.events[0];
    assert_eq!((event.speaker.id.as_str(), event.speaker.name.as_deref()), ("53908232506183680", Some("Mason")));
    assert_eq!(event.conversation.id, "discord:645027906669510667");
    assert_eq!(event.ids, ["interaction 786008729715212338"]);
    let IncomingKind::Message(said) = &event.kind else { panic!() };
    assert_eq!(said.text, "What is it?");
    let answer: Value = serde_json::from_slice(received.response.body()).unwrap();
    assert_eq!(answer["data"]["flags"], 64, "the answer in time is private");
}

#[test]
fn a_button_for_words_opens_a_form_and_the_form_is_a_click_with_text() {
    let pressed = interaction(&json!({ "type": 3, "data": { "custom_id": "1.4.r.mac", "component_type": 2 }, "message": { "id": "9" } }));
    let received = read(&pressed).unwrap();
    let form: Value = serde_json::from_slice(received.response.body()).unwrap();
    assert_eq!((form["type"].as_u64(), form["data"]["custom_id"].as_str()), (Some(9), Some("1.4.r.mac")));
    assert!(received.events.is_empty(), "nothing is decided by opening it");
    let filled = interaction(&json!({
        "type": 5,
        "data": { "custom_id": "1.4.r.mac", "components": [{ "type": 1, "components": [{ "type": 4, "custom_id": "text", "value": "because" }] }] },
    }));
    let received = read(&filled).unwrap();
    let IncomingKind::Click(click) = &received.events[0].kind else { panic!() };
    assert_eq!((click.text.as_deref(), click.values.as_slice()), (Some("because"), ["1.4.r.mac".to_owned()].as_slice()));
}

#[test]
fn a_press_is_deferred_and_names_who_may_be_told_privately() {
    let pressed = interaction(&json!({ "type": 3, "data": { "custom_id": "1.4.a.mac", "component_type": 2 }, "message": { "id": "9" } }));
    let received = read(&pressed).unwrap();
    assert_eq!(received.response.body().as_ref(), br#"{"type":6}"#);
    let IncomingKind::Click(click) = &received.events[0].kind else { panic!() };
    assert_eq!(click.responder.as_deref(), Some("A1/unique"));
}
