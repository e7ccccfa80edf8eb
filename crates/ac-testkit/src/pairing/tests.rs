use serde_json::{Value, json};

use super::chat;

fn call(ids: &[&str]) -> Value {
    let calls: Vec<_> =
        ids.iter().map(|id| json!({ "id": id, "type": "function", "function": { "name": "view", "arguments": "{}" } })).collect();
    json!({ "role": "assistant", "content": null, "tool_calls": calls })
}

fn result(id: &str) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": "ok" })
}

fn says(role: &str) -> Value {
    json!({ "role": role, "content": "words" })
}

fn check(messages: &[Value]) -> Vec<String> {
    chat(&json!({ "messages": messages }))
}

#[test]
fn a_legal_history_passes() {
    let none: Vec<String> = Vec::new();
    assert_eq!(check(&[says("system"), says("user"), says("assistant")]), none);
    assert_eq!(check(&[says("user"), call(&["a", "b"]), result("b"), result("a"), says("assistant"), says("user")]), none);
    // An id that a provider uses again in a later step is legal.
    assert_eq!(check(&[call(&["a"]), result("a"), call(&["a"]), result("a")]), none);
}

#[test]
fn a_call_without_its_result_is_found() {
    assert_eq!(check(&[says("user"), call(&["a"])]), ["message 2: call `a` has no result before it"]);
    assert_eq!(
        check(&[call(&["a", "b"]), result("a"), says("user"), result("b")]),
        ["message 2: call `b` has no result before it", "message 3: a result of `b`, which the message before it did not call"]
    );
}

#[test]
fn a_result_too_many_is_found() {
    assert_eq!(check(&[call(&["a"]), result("a"), result("a")]), ["message 2: a second result of call `a`"]);
    assert_eq!(check(&[result("a")]), ["message 0: a result of `a`, which the message before it did not call"]);
}

#[test]
fn ids_that_cannot_be_answered_are_found() {
    assert_eq!(check(&[call(&["a", "a"]), result("a")]), ["message 0: two calls with the id `a`"]);
    assert_eq!(check(&[call(&[""])]), ["message 0: a call without an id"]);
    assert_eq!(chat(&json!({})), ["the request has no list of messages"]);
}
