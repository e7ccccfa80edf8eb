use serde_json::json;

use super::*;

#[test]
fn every_part_survives_the_store() {
    let call = ToolCallPart {
        approved: true,
        state: ToolCallState::Result { output: ToolOutput::new(json!({"n": 1})), is_error: true },
        opaque: Some(Opaque { provider: "anthropic".into(), value: json!("sig") }),
        ..ToolCallPart::new("c1", "view", json!({"path": "a"}))
    };
    let denied =
        ToolCallPart { state: ToolCallState::OutputDenied { reason: "no".into() }, ..ToolCallPart::new("c2", "view", Value::Null) };
    let message = Message::new(
        "m",
        Role::Assistant,
        vec![
            Part::text("hi"),
            Part::Reasoning(ReasoningPart { text: "hm".into(), opaque: None }),
            Part::File(FilePart {
                media_type: "image/png".into(),
                source: FileSource::Base64("AA==".into()),
                name: Some("a.png".into()),
                opaque: None,
            }),
            Part::ToolCall(call),
            Part::ToolCall(denied),
            Part::Data(DataPart { name: "x".into(), data: json!([1]), opaque: None }),
        ],
        Timestamp::from_millis(5),
    );
    let text = serde_json::to_string(&message).unwrap();
    assert_eq!(serde_json::from_str::<Message>(&text).unwrap(), message);
}

#[test]
fn a_part_from_a_newer_version_is_written_back_unchanged() {
    let newer = json!({"type": "hologram", "depth": [1, 2]});
    let part: Part = serde_json::from_value(newer.clone()).unwrap();
    assert_eq!(part, Part::Unknown(newer.clone()));
    assert_eq!(serde_json::to_value(part).unwrap(), newer);
}

#[test]
fn a_known_part_with_a_broken_body_is_an_error_and_not_unknown() {
    assert!(serde_json::from_value::<Part>(json!({"type": "text", "text": 1})).is_err());
    assert!(serde_json::from_value::<Part>(json!({"type": "tool_call", "id": "c"})).is_err());
}
