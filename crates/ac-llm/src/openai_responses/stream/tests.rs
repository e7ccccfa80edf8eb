use std::{sync::Arc, time::SystemTime};

use ac_core::{FinishReason, Message, ModelErrorKind, ModelRequest, Part, assemble::Assembler};
use serde_json::{Value, json};

use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    profile::{Api, Profile},
};

fn read(events: &[Value]) -> Result<(Vec<Part>, FinishReason), ModelErrorKind> {
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&Profile::new("p", Api::OpenAiResponses, "http://x"), &request, head, AnswerLimits::default());
    let mut told = vec![];
    for event in events {
        reader.push(format!("data: {event}\n\n").as_bytes(), &mut told).map_err(|error| error.kind)?;
    }
    let finish = reader.end(&mut told).map_err(|error| error.kind)?;
    let mut fold = Assembler::new();
    told.into_iter().for_each(|event| fold.push(event));
    Ok((fold.into_parts().0, finish.reason))
}

fn calls(parts: &[Part]) -> Vec<(String, Value)> {
    parts
        .iter()
        .filter_map(|part| if let Part::ToolCall(call) = part { Some((call.id.to_string(), call.args.clone())) } else { None })
        .collect()
}

// B-58
#[test]
fn interleaved_arguments_go_to_their_own_calls_by_place_or_by_id() {
    for by in ["output_index", "item_id"] {
        let key = |n: u32| if by == "output_index" { json!(n) } else { json!(format!("fc_{n}")) };
        let added = |n: u32| json!({"type": "response.output_item.added", "output_index": (by == "output_index").then_some(n), "item": {"type": "function_call", "id": format!("fc_{n}"), "call_id": format!("c{n}"), "name": "f"}});
        let delta = |n: u32, text: &str| json!({"type": "response.function_call_arguments.delta", by: key(n), "delta": text});
        let events = [
            added(0),
            added(1),
            delta(0, "{\"x\""),
            delta(1, "{\"y\""),
            delta(0, ":1}"),
            delta(1, ":2}"),
            json!({"type": "response.completed", "response": {"output": []}}),
        ];
        let (parts, reason) = read(&events).unwrap();
        assert_eq!(
            (calls(&parts), reason),
            (vec![("c0".into(), json!({"x": 1})), ("c1".into(), json!({"y": 2}))], FinishReason::ToolCalls),
            "{by}"
        );
    }
}

#[test]
fn a_server_that_tells_neither_place_nor_id_tells_one_item_after_the_other() {
    let events = [
        json!({"type": "response.output_item.added", "item": {"type": "reasoning"}}),
        json!({"type": "response.reasoning_text.delta", "delta": "hm"}),
        json!({"type": "response.output_item.done", "item": {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]}}),
        json!({"type": "response.output_item.added", "item": {"type": "message"}}),
        json!({"type": "response.output_text.delta", "delta": "hi"}),
        json!({"type": "response.output_item.done", "item": {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}}),
        json!({"type": "response.completed", "response": {"status": "completed", "output": [{"type": "reasoning", "content": [{"text": "hm"}]}, {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}]}}),
    ];
    let (parts, reason) = read(&events).unwrap();
    let texts: Vec<&str> = parts
        .iter()
        .map(|part| match part {
            Part::Text(part) => part.text.as_str(),
            Part::Reasoning(part) => part.text.as_str(),
            _ => "?",
        })
        .collect();
    assert_eq!((texts, reason), (vec!["hm", "hi"], FinishReason::Stop));
}

// B-61: a call that is complete in an answer that was cut is told, with the reason; whoever runs calls looks at the reason.
#[test]
fn an_answer_that_was_cut_says_so_beside_its_calls() {
    let events = |reason: &str| {
        [
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "function_call", "call_id": "c", "name": "f"}}),
            json!({"type": "response.function_call_arguments.delta", "output_index": 0, "delta": "{\"a\":"}),
            json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": reason}, "output": [{"type": "function_call", "status": "incomplete", "call_id": "c", "name": "f", "arguments": "{\"a\":"}]}}),
        ]
    };
    let (parts, reason) = read(&events("max_output_tokens")).unwrap();
    let Some(Part::ToolCall(call)) = parts.first() else { panic!("{parts:?}") };
    assert_eq!((reason, call.raw.as_deref(), &call.args), (FinishReason::Length, Some("{\"a\":"), &Value::Null));
    assert_eq!(read(&events("content_filter")).unwrap().1, FinishReason::ContentFilter);
}

// B-64
#[test]
fn a_failure_inside_the_stream_is_an_error() {
    for event in [
        json!({"type": "error", "code": "server_error", "message": "x"}),
        json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}}}),
    ] {
        assert_eq!(read(&[event]).unwrap_err(), ModelErrorKind::Server);
    }
    assert_eq!(read(&[json!({"type": "response.created", "response": {}})]).unwrap_err(), ModelErrorKind::Truncated);
}

#[test]
fn a_response_that_failed_is_an_error_however_it_is_told() {
    let failed = json!({"status": "failed", "output": [], "error": null});
    assert_eq!(read(&[json!({"type": "response.done", "response": failed})]).unwrap_err(), ModelErrorKind::Server);
    let request = ModelRequest::new("p/m", vec![]);
    let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&Profile::new("p", Api::OpenAiResponses, "http://x"), &request, head, AnswerLimits::default());
    let mut told = vec![];
    reader.push(failed.to_string().as_bytes(), &mut told).unwrap();
    assert_eq!(reader.end(&mut told).unwrap_err().kind, ModelErrorKind::Server);
}
