use std::{sync::Arc, time::SystemTime};

use ac_core::{Message, ModelEvent, ModelRequest, Part, ToolDefinition};
use ac_llm::{
    Api, Profile, ToolCallMode,
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    sse::{SseError, SseFlow, SseLimits, SseParser},
};

/// Reads `body` in pieces, in every tool-call mode, and checks what no answer may do to its reader.
pub(crate) fn answer(api: Api, body: &[u8], piece: usize, status: u16) {
    let mut request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let schema = serde_json::json!({"type": "object"});
    request.tools = Arc::new([ToolDefinition::new("view", "", schema.clone()), ToolDefinition::new("odd.name", "", schema)]);
    for mode in [ToolCallMode::Native, ToolCallMode::JsonAction, ToolCallMode::TextRepair] {
        let profile = Profile::new("p", api, "http://x").tool_calls(mode);
        let head = AnswerHead::new(status, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
        let mut reader = AnswerReader::new(&profile, &request, head, AnswerLimits::default());
        let mut events = vec![];
        let mut failed = false;
        for bytes in body.chunks(piece) {
            match reader.push(bytes, &mut events) {
                Ok(true) => {}
                Ok(false) => break,
                Err(_) => {
                    failed = true;
                    break;
                }
            }
        }
        let finished = !failed && reader.end(&mut events).is_ok();
        inspect(&events, body, finished);
    }
}

fn inspect(events: &[ModelEvent], body: &[u8], finished: bool) {
    let text = String::from_utf8_lossy(body);
    let (mut told, mut done) = (0, vec![]);
    for event in events {
        match event {
            ModelEvent::TextDelta { text, .. } | ModelEvent::ReasoningDelta { text, .. } | ModelEvent::ToolInputDelta { text, .. } => {
                told += text.len()
            }
            ModelEvent::PartDone { index, part } => {
                assert!(!done.contains(index), "part {index} is closed twice");
                done.push(*index);
                if let Part::ToolCall(call) = part {
                    // A name can only come from the wire. Escapes make its text differ from the bytes, so only plain ones are compared.
                    let plain = call.name.chars().all(|c| c.is_ascii_alphanumeric());
                    assert!(!plain || text.contains(&call.name), "the call {} was made up", call.name);
                    assert!(!call.name.is_empty(), "a call without a name");
                }
            }
            ModelEvent::Finish(_) => assert!(finished, "a finish inside the stream"),
            _ => {}
        }
    }
    // An escape is longer than what it says, and the separators between summaries are two bytes each.
    assert!(told <= body.len() * 3 + 64, "{told} bytes were told of {}", body.len());
}

/// The events of one body are the same in one piece and in small ones.
pub(crate) fn parser(body: &[u8], piece: usize) {
    assert_eq!(events(body, body.len().max(1)), events(body, piece));
}

fn events(body: &[u8], piece: usize) -> Vec<(Option<String>, String)> {
    let mut parser = SseParser::new(SseLimits::default());
    let mut seen = vec![];
    let mut each = |event: ac_llm::sse::SseEvent<'_>| {
        seen.push((event.name.map(|name| name.into_owned()), event.data.into_owned()));
        Ok::<_, SseError>(SseFlow::Continue)
    };
    for bytes in body.chunks(piece) {
        parser.push(bytes, &mut each).expect("within the limits");
    }
    parser.end(&mut each).expect("within the limits");
    seen
}
