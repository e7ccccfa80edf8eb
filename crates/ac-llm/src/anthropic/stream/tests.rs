use std::{sync::Arc, time::SystemTime};

use ac_core::{FinishReason, Message, ModelError, ModelErrorKind, ModelEvent, ModelRequest, Part, assemble::Assembler, model::Finish};
use serde_json::{Value, json};

use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    profile::{Api, Profile},
};

fn read(events: &[Value]) -> (Vec<ModelEvent>, Result<Finish, ModelError>) {
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&Profile::new("p", Api::Anthropic, "http://x"), &request, head, AnswerLimits::default());
    let mut told = vec![];
    for event in events {
        if let Err(error) = reader.push(format!("data: {event}\n\n").as_bytes(), &mut told) {
            return (told, Err(error));
        }
    }
    let finish = reader.end(&mut told);
    (told, finish)
}

fn parts(told: Vec<ModelEvent>) -> Vec<Part> {
    let mut fold = Assembler::new();
    told.into_iter().for_each(|event| fold.push(event));
    fold.into_parts().0
}

fn start(index: u32, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u32, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn input(index: u32, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn stop(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 5}})
}

// B-58
#[test]
fn interleaved_arguments_go_to_their_own_calls() {
    let (told, finish) = read(&[
        start(1, json!({"type": "tool_use", "id": "a", "name": "f", "input": {}})),
        start(2, json!({"type": "tool_use", "id": "b", "name": "g", "input": {}})),
        input(1, "{\"x\""),
        input(2, "{\"y\""),
        input(1, ":1}"),
        input(2, ":2}"),
        stop("tool_use"),
        json!({"type": "message_stop"}),
    ]);
    let args: Vec<Value> =
        parts(told).iter().filter_map(|part| if let Part::ToolCall(call) = part { Some(call.args.clone()) } else { None }).collect();
    assert_eq!((args, finish.unwrap().reason), (vec![json!({"x": 1}), json!({"y": 2})], FinishReason::ToolCalls));
}

// B-64
#[test]
fn an_error_event_ends_the_answer_and_keeps_what_was_told() {
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let (told, failed) =
        read(&[start(0, json!({"type": "text", "text": ""})), delta(0, json!({"type": "text_delta", "text": "Hel"})), error.clone()]);
    let failed = failed.unwrap_err();
    assert_eq!((failed.kind, failed.is_retryable(), told.len()), (ModelErrorKind::Overloaded, true, 1));
    assert_eq!(read(&[error]).1.unwrap_err().kind, ModelErrorKind::Overloaded);
    assert_eq!(read(&[start(0, json!({"type": "text", "text": "x"}))]).1.unwrap_err().kind, ModelErrorKind::Truncated);
}

#[test]
fn what_the_provider_runs_itself_is_kept_whole_and_is_no_call() {
    let (told, _) = read(&[
        start(0, json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}})),
        input(0, "{\"q\":"),
        input(0, "\"x\"}"),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, json!({"type": "compaction", "content": null})),
        delta(1, json!({"type": "compaction_delta", "content": "short"})),
        json!({"type": "content_block_stop", "index": 1}),
        stop("pause_turn"),
    ]);
    let parts = parts(told);
    let own: Vec<&Value> = parts
        .iter()
        .filter_map(|part| if let Part::Data(data) = part { Some(&data.opaque.as_ref().unwrap().value) } else { None })
        .collect();
    assert_eq!(
        own,
        [
            &json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"q": "x"}}),
            &json!({"type": "compaction", "content": "short"})
        ]
    );
}

#[test]
fn counts_that_come_later_win_and_cache_reads_are_input() {
    let (_, finish) = read(&[
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "output_tokens": 1}}}),
        json!({"type": "message_start", "message": {"id": "other", "usage": {"input_tokens": 3}}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"input_tokens": 4, "cache_creation_input_tokens": 20, "output_tokens": 7}}),
        json!({"type": "message_stop"}),
    ]);
    let finish = finish.unwrap();
    let usage = finish.usage.unwrap();
    assert_eq!(
        (usage.input, usage.output, usage.cached_input, usage.cache_write, finish.response_id.as_deref()),
        (34, 7, Some(10), Some(20), Some("m"))
    );
}
