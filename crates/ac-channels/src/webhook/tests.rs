use super::*;
use crate::event::IncomingKind;

// The example of the Standard Webhooks libraries.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const ID: &str = "msg_p5jXN8AQM9LWM0D4loKWxJek";
const AT: i64 = 1_614_265_330;
const BODY: &str = r#"{"test": 2432232314}"#;
const SIGNATURE: &str = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

fn adapter() -> SignedWebhook {
    SignedWebhook::new("bridge", SECRET, "http://127.0.0.1:9/out").unwrap()
}

fn now() -> Timestamp {
    Timestamp::from_millis(AT * 1000)
}

fn request(body: &str, at: i64, signature: &str) -> http::Request<Bytes> {
    http::Request::post("/")
        .header("webhook-id", ID)
        .header("webhook-timestamp", at)
        .header("webhook-signature", signature)
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .unwrap()
}

fn sign(body: &str) -> String {
    let mac = hmac(adapter().key.expose_secret(), &[ID.as_bytes(), b".", AT.to_string().as_bytes(), b".", body.as_bytes()]);
    format!("v1,{}", STANDARD.encode(mac))
}

#[test]
fn the_official_vector_fits() {
    assert_eq!(sign(BODY), SIGNATURE);
    // It is signed, and no event.
    assert_eq!(adapter().receive(&request(BODY, AT, SIGNATURE), now()).unwrap_err(), Refused::Malformed);
    assert_eq!(adapter().receive(&request("{}", AT, SIGNATURE), now()).unwrap_err(), Refused::Unsigned);
    assert_eq!(adapter().receive(&request(BODY, AT + 1, SIGNATURE), now()).unwrap_err(), Refused::Unsigned);
    assert_eq!(adapter().receive(&request(BODY, AT, "v1,AAAA"), now()).unwrap_err(), Refused::Unsigned);
    assert_eq!(adapter().receive(&request(BODY, AT, SIGNATURE), now().plus_millis(300_001)).unwrap_err(), Refused::Stale);
    assert!(SignedWebhook::new("x", "short", "http://x").is_err());
}

#[test]
fn one_of_several_signatures_is_enough() {
    let body = r#"{"type":"message","conversation":"c1","direct":true,"speaker":{"id":"u1","name":"Ada"},"text":"Hello"}"#;
    let signatures = format!("v1,AAAA v1a,x {}", sign(body));
    let received = adapter().receive(&request(body, AT, &signatures), now()).unwrap();
    let event = &received.events[0];
    assert_eq!((event.conversation.id.as_str(), event.ids.as_slice()), ("bridge:c1", [ID.to_owned()].as_slice()));
    let IncomingKind::Message(said) = &event.kind else { panic!() };
    assert!(said.addressed && said.text == "Hello");
}
