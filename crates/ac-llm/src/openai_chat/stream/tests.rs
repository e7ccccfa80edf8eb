use std::{sync::Arc, time::SystemTime};

use ac_core::{FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Part, assemble::Assembler, model::Finish};
use http::HeaderMap;
use serde_json::{Value, json};

use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    profile::{Api, Profile},
};

fn read(body: &[u8], cut: usize) -> (Vec<ModelEvent>, Result<Finish, ModelError>) {
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let head = AnswerHead::new(200, HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&Profile::new("p", Api::OpenAiChat, "http://x/v1"), &request, head, AnswerLimits::default());
    let mut events = vec![];
    for piece in body.chunks(cut.max(1)) {
        match reader.push(piece, &mut events) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => return (events, Err(error)),
        }
    }
    let finish = reader.end(&mut events);
    (events, finish)
}

fn sse(chunks: &[Value]) -> String {
    chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect()
}

fn delta(delta: Value, finish: Option<&str>) -> Value {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

fn answer(body: &str) -> (Vec<Part>, Finish) {
    let (events, finish) = read(body.as_bytes(), body.len());
    let finish = finish.unwrap();
    for cut in [1, 2, 3, 7] {
        let (again, _) = read(body.as_bytes(), cut);
        assert_eq!(again, events, "pieces of {cut}");
    }
    let mut fold = Assembler::new();
    events.into_iter().for_each(|event| fold.push(event));
    (fold.into_parts().0, finish)
}

fn calls(parts: &[Part]) -> Vec<(String, String, Value)> {
    let call = |part: &Part| match part {
        Part::ToolCall(call) => Some((call.id.to_string(), call.name.clone(), call.args.clone())),
        _ => None,
    };
    parts.iter().filter_map(call).collect()
}

fn call(id: &str, name: &str, args: Value) -> (String, String, Value) {
    (id.into(), name.into(), args)
}

// B-54
#[test]
fn chunks_without_choices_are_no_error_and_usage_counts_once() {
    let body = sse(&[
        json!({"id": "", "choices": [], "prompt_filter_results": [{}], "usage": null}),
        delta(json!({"content": "he"}), None),
        json!({"choices": [{"index": 0, "delta": {"content": "llo"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        json!({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}),
        json!({"object": "x"}),
    ]) + "data: [DONE]\n\n";
    let (parts, finish) = answer(&body);
    assert_eq!(parts, [Part::text("hello")]);
    let usage = finish.usage.unwrap();
    assert_eq!((usage.input, usage.output, usage.total), (3, 2, 5));
}

// B-55
#[test]
fn calls_without_an_index_stay_apart() {
    let both = delta(
        json!({"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": "{\"x\":1}"}}, {"id": "b", "function": {"name": "g", "arguments": "{\"y\":2}"}}]}),
        Some("tool_calls"),
    );
    let expected = [call("a", "f", json!({"x": 1})), call("b", "g", json!({"y": 2}))];
    assert_eq!(calls(&answer(&sse(&[both])).0), expected);
    let pieces = [
        delta(json!({"tool_calls": [{"id": "a", "function": {"name": "f"}}]}), None),
        delta(json!({"tool_calls": [{"function": {"arguments": "{\"x\""}}]}), None),
        delta(json!({"tool_calls": [{"function": {"arguments": ":1}"}}]}), None),
        delta(json!({"tool_calls": [{"id": "b", "function": {"name": "g", "arguments": ""}}]}), None),
        delta(json!({"tool_calls": [{"function": {"arguments": "{\"y\":2}"}}]}), Some("tool_calls")),
    ];
    assert_eq!(calls(&answer(&sse(&pieces)).0), expected);
}

// B-57
#[test]
fn a_new_id_at_a_used_index_is_a_new_call() {
    let one = |id: &str, q: &str| json!({"tool_calls": [{"index": 0, "id": id, "function": {"name": "s", "arguments": format!("{{\"q\":\"{q}\"}}")}}]});
    let body = sse(&[delta(one("x1", "a"), None), delta(one("x2", "b"), Some("tool_calls"))]);
    assert_eq!(calls(&answer(&body).0), [call("x1", "s", json!({"q": "a"})), call("x2", "s", json!({"q": "b"}))]);
    let body = sse(&[delta(one("", "a"), None), delta(one("", "b"), Some("tool_calls"))]);
    assert_eq!(calls(&answer(&body).0), [call("", "s", json!({"q": "a"})), call("", "s", json!({"q": "b"}))]);
}

// B-58
#[test]
fn interleaved_fragments_go_to_their_own_calls() {
    let piece = |index: u32, text: &str| delta(json!({"tool_calls": [{"index": index, "function": {"arguments": text}}]}), None);
    let open =
        |index: u32, id: &str, name: &str| delta(json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name}}]}), None);
    let body = sse(&[
        open(0, "a", "f"),
        open(1, "b", "g"),
        piece(0, "{\"x\""),
        piece(1, "{\"y\""),
        piece(0, ":1}"),
        piece(1, ":2}"),
        delta(json!({}), Some("tool_calls")),
    ]);
    let (events, _) = read(body.as_bytes(), 1);
    let starts = events.iter().filter(|event| matches!(event, ModelEvent::ToolInputStart { .. })).count();
    let ends = events.iter().filter(|event| matches!(event, ModelEvent::PartDone { part: Part::ToolCall(_), .. })).count();
    assert_eq!((starts, ends), (2, 2));
    assert_eq!(calls(&answer(&body).0), [call("a", "f", json!({"x": 1})), call("b", "g", json!({"y": 2}))]);
}

// B-60
#[test]
fn a_call_is_a_call_whatever_the_finish_reason_says() {
    let one = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "f", "arguments": ""}}]});
    for reason in ["stop", "function_call", "tool_use"] {
        let (parts, finish) = answer(&sse(&[delta(one.clone(), Some(reason))]));
        assert_eq!(calls(&parts), [call("c1", "f", json!({}))]);
        assert!(matches!(finish.reason, FinishReason::Stop | FinishReason::ToolCalls), "{reason}");
    }
    let (parts, finish) = answer(&(sse(&[delta(one, None)]) + "data: [DONE]\n\n"));
    assert_eq!((calls(&parts).len(), finish.reason), (1, FinishReason::ToolCalls));
}

// B-63
#[test]
fn a_stream_cut_inside_a_call_is_an_error_and_the_call_is_never_one() {
    let body = sse(&[delta(
        json!({"tool_calls": [{"index": 0, "id": "c9", "type": "function", "function": {"name": "probe", "arguments": "{\"p"}}]}),
        None,
    )]);
    let (events, finish) = read(body.as_bytes(), 5);
    assert_eq!(finish.unwrap_err().kind, ModelErrorKind::Truncated);
    assert!(!events.iter().any(|event| matches!(event, ModelEvent::PartDone { .. })));
    let mut fold = Assembler::new();
    events.into_iter().for_each(|event| fold.push(event));
    assert_eq!(fold.into_partial(), []);
}

#[test]
fn a_body_cut_at_any_byte_is_whole_or_an_error() {
    let body = sse(&[delta(json!({"content": "hi"}), None), delta(json!({}), Some("stop"))]) + "data: [DONE]\n\n";
    let end = body.find("\"stop\"").unwrap();
    for cut in 0..body.len() {
        let (_, finish) = read(&body.as_bytes()[..cut], 1000);
        match finish {
            Ok(finish) => assert!(cut > end && finish.reason == FinishReason::Stop, "cut at {cut}"),
            Err(error) => assert_eq!(error.kind, ModelErrorKind::Truncated, "cut at {cut}: {error}"),
        }
    }
}

// B-64
#[test]
fn an_error_inside_a_stream_is_an_error_with_its_kind() {
    let (events, finish) = read(
        sse(&[delta(json!({"content": "Hel"}), None), json!({"error": {"message": "Overloaded", "type": "overloaded_error"}})]).as_bytes(),
        3,
    );
    assert_eq!(finish.unwrap_err().kind, ModelErrorKind::Overloaded);
    assert_eq!(events.len(), 1);
    let (_, finish) = read(b"event: error\ndata: {\"message\":\"bad call\",\"code\":\"tool_use_failed\"}\n\n", 3);
    assert_eq!(finish.unwrap_err().provider_code.as_deref(), Some("tool_use_failed"));
}

#[test]
fn what_is_no_stream_is_named() {
    for (body, kind) in [
        ("<html><title>502</title></html>", ModelErrorKind::Protocol),
        ("upstream connect error", ModelErrorKind::Protocol),
        ("{\"hello\": 1}", ModelErrorKind::Protocol),
        ("{\"error\": \"nope\"}", ModelErrorKind::Server),
        ("{\"choices\": [", ModelErrorKind::Truncated),
        (": ping\n\n", ModelErrorKind::Truncated),
        ("", ModelErrorKind::Truncated),
        ("data: {]\n\n", ModelErrorKind::Protocol),
    ] {
        let (events, finish) = read(body.as_bytes(), 1);
        assert_eq!((events.len(), finish.unwrap_err().kind), (0, kind), "{body}");
    }
}

#[test]
fn a_plain_json_completion_is_read_like_a_stream() {
    let body = json!({"id": "r", "model": "m-1", "choices": [{"index": 0, "message": {"content": "hi", "refusal": null, "tool_calls": null}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}});
    let (parts, finish) = answer(&body.to_string());
    assert_eq!(parts, [Part::text("hi")]);
    assert_eq!((finish.response_id.as_deref(), finish.model.as_deref()), (Some("r"), Some("m-1")));
}

#[test]
fn a_refusal_is_no_text() {
    let (parts, finish) =
        answer(&sse(&[delta(json!({"content": null, "refusal": "I can't"}), None), delta(json!({"refusal": " help"}), Some("stop"))]));
    assert_eq!((parts.len(), finish.reason, finish.explanation.as_deref()), (0, FinishReason::Refusal, Some("I can't help")));
}

// Old servers fill both places; an empty list of calls is no list of calls.
#[test]
fn a_call_in_the_old_field_counts_beside_an_empty_new_one() {
    for calls in [Value::Null, json!([])] {
        let said = json!({"content": null, "tool_calls": calls, "function_call": {"name": "f", "arguments": "{\"x\":1}"}});
        let (parts, _) = answer(&sse(&[delta(said, Some("function_call"))]));
        assert_eq!(calls_of(&parts), [("f".to_owned(), json!({"x": 1}))]);
    }
}

fn calls_of(parts: &[Part]) -> Vec<(String, Value)> {
    calls(parts).into_iter().map(|(_, name, args)| (name, args)).collect()
}

// Servers that run behind a gateway put their own error bodies into the stream.
#[test]
fn errors_without_an_error_field_are_found_in_a_stream() {
    for error in [
        json!({"object": "error", "message": "too long", "type": "BadRequestError", "param": null, "code": 400}),
        json!({"type": "error", "message": "too long"}),
        json!({"detail": "too long"}),
        json!({"detail": {"message": "too long"}}),
    ] {
        let (events, finish) = read((sse(&[delta(json!({"content": "a"}), None), error.clone()]) + "data: [DONE]\n\n").as_bytes(), 5);
        assert_eq!(events.len(), 1, "{error}: what came before is kept");
        assert_eq!(finish.unwrap_err().provider_message.as_deref(), Some("too long"), "{error}");
    }
}

#[test]
fn an_end_mark_alone_is_no_answer() {
    for body in ["data: [DONE]\n\n", ": keep-alive\n\ndata: [DONE]\n\n", "data: {\"id\":\"x\"}\n\ndata: [DONE]\n\n"] {
        let (events, finish) = read(body.as_bytes(), 4);
        assert_eq!((events.len(), finish.unwrap_err().kind), (0, ModelErrorKind::Truncated), "{body}");
    }
}
