use std::{sync::Arc, time::SystemTime};

use ac_core::{
    FinishReason, Message, ModelEvent, ModelRequest, Part, Role, ToolDefinition,
    assemble::Assembler,
    message::{ToolCallPart, ToolCallState},
    tool::ToolOutput,
};
use serde_json::{Value, json};

use super::ToolCallMode;
use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    profile::{Api, Profile},
};

fn profile(mode: ToolCallMode) -> Profile {
    Profile::new("p", Api::OpenAiChat, "http://x/v1").tool_calls(mode)
}

fn request() -> ModelRequest {
    let mut request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "set the port", Default::default()))]);
    let schema = json!({"type": "object", "properties": {"path": {"type": "string", "description": "which file"}, "line": {"type": "integer"}}, "required": ["path"]});
    request.tools =
        Arc::new([ToolDefinition::new("view", "Reads a file.", schema), ToolDefinition::new("list", "Lists files.", json!({}))]);
    request
}

/// The parts, the finish, and all text that was told piece by piece, whatever the pieces.
fn answer(mode: ToolCallMode, text: &str) -> (Vec<Part>, FinishReason, String) {
    let mut seen = None;
    for size in [text.len().max(1), 1, 2, 5] {
        let chars: Vec<char> = text.chars().collect();
        let mut body: String = chars
            .chunks(size)
            .map(|piece| format!("data: {}\n\n", json!({"choices": [{"delta": {"content": piece.iter().collect::<String>()}}]})))
            .collect();
        body.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n");
        let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
        let mut reader = AnswerReader::new(&profile(mode), &request(), head, AnswerLimits::default());
        let mut events = vec![];
        reader.push(body.as_bytes(), &mut events).unwrap();
        let finish = reader.end(&mut events).unwrap();
        let told: String = events
            .iter()
            .filter_map(|event| if let ModelEvent::TextDelta { text, .. } = event { Some(text.as_str()) } else { None })
            .collect();
        let mut fold = Assembler::new();
        events.into_iter().for_each(|event| fold.push(event));
        let this = (fold.into_parts().0, finish.reason, told);
        if let Some(before) = seen.replace(this.clone()) {
            assert_eq!(this, before, "pieces of {size}: {text}");
        }
        let whole: String = this.0.iter().filter_map(Part::as_text).collect();
        assert_eq!(whole, this.2, "what was told is what the parts say: {text}");
    }
    seen.unwrap()
}

fn call(repaired: bool) -> Part {
    Part::ToolCall(ToolCallPart { repaired, ..ToolCallPart::new("", "view", json!({"path": "a"})) })
}

#[test]
fn a_constrained_answer_is_a_call_or_words() {
    let read = |text: &str| answer(ToolCallMode::JsonAction, text);
    // A server that does not hold its model to the schema gets other words for the same.
    for word in ["action", "tool", "name"] {
        let (parts, reason, told) = read(&format!(r#"{{"{word}": "view", "arguments": {{"path": "a"}}}}"#));
        assert_eq!((parts, reason, told.as_str()), (vec![call(false)], FinishReason::ToolCalls, ""));
    }
    let (parts, reason, told) = read(" {\n \"answer\" : \"Port \\\"80\\\" \\u00e9 \\ud83d\\ude00 \\n done\" }");
    assert_eq!(
        (parts, reason, told.as_str()),
        (vec![Part::text("Port \"80\" é 😀 \n done")], FinishReason::Stop, "Port \"80\" é 😀 \n done")
    );
    // A server that ignores the schema, an unknown tool, an answer that was cut off.
    assert_eq!(read("Just words.").0, [Part::text("Just words.")]);
    let unknown = r#"{"action": "rm", "arguments": {}}"#;
    assert_eq!(read(unknown).0, [Part::text(unknown)]);
    assert_eq!(read(r#"{"answer": "half of it \u00"#).0, [Part::text("half of it ")]);
    assert_eq!(read(r#"{"action": "view", "argum"#).0, [Part::text(r#"{"action": "view", "argum"#)]);
    // One that is no JSON inside of its string is read as well as it can be.
    let broken = "{\"answer\": \"one\ntwo \\\"C:\\dir\\\" \\u00e9 \\ud83d\\ude00 \\udc00 \\uzz three\"}";
    assert_eq!(read(broken).0, [Part::text("one\ntwo \"C:\\dir\" é 😀 \u{fffd} \\uzz three")]);
}

#[test]
fn one_well_formed_call_in_text_is_repaired_and_nothing_else_is() {
    let read = |text| answer(ToolCallMode::TextRepair, text);
    for text in [
        "```json\n{\"name\": \"view\", \"arguments\": {\"path\": \"a\"}}\n```",
        "{\"name\": \"view\", \"arguments\": \"{\\\"path\\\": \\\"a\\\"}\"}",
        "<tool_call>\n{\"name\": \"view\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>",
        "<tool_call>{\"name\": \"view\", \"parameters\": {\"path\": \"a\"}}",
    ] {
        assert_eq!(read(text), (vec![call(true)], FinishReason::ToolCalls, String::new()), "{text}");
    }
    let (parts, _, told) = read("I look. \n\n```json\n{\"name\": \"view\", \"arguments\": {\"path\": \"a\"}}\n```\n");
    assert_eq!((parts, told.as_str()), (vec![Part::text("I look."), call(true)], "I look."));
    for text in [
        "No call, {braces} and ``ticks``.",
        "```json\n{\"name\": \"rm\", \"arguments\": {}}\n```",
        "```json\n{\"name\": \"view\", \"arguments\": {\"path\": \"a\"}}\n```\nWould do it.",
        "{\"name\": \"view\", \"arguments\": {\"path\": \"a\"}} {\"name\": \"list\"}",
        "```json\n{\"name\": \"view\", \"arguments\": [1]}\n```",
        "```rust\nfn main() {}\n```",
        "{\"name\": \"view\", \"argu",
    ] {
        assert_eq!(read(text).0, [Part::text(text)], "{text}");
    }
    assert_eq!(answer(ToolCallMode::Native, "{\"name\": \"view\", \"arguments\": {}}").0.len(), 1);
}

#[test]
fn a_constrained_request_has_a_schema_instead_of_tools_and_a_history_of_text() {
    let mut request = request();
    let mut done = ToolCallPart::new("c1", "view", json!({"path": "a"}));
    done.state = ToolCallState::Result { output: ToolOutput::text("port=1"), is_error: false };
    let mut denied = ToolCallPart::new("c2", "list", json!({}));
    denied.state = ToolCallState::OutputDenied { reason: "not now".into() };
    let parts = vec![Part::text("I look"), Part::ToolCall(done), Part::ToolCall(denied)];
    request.messages.push(Arc::new(Message::new("a", Role::Assistant, parts, Default::default())));
    request.instructions = Some("Be brief.".into());
    let body = crate::request::build(&profile(ToolCallMode::JsonAction), &request).unwrap().body;
    assert!(body.get("tools").is_none());
    let forms = body["response_format"]["json_schema"]["schema"]["anyOf"].as_array().unwrap();
    assert_eq!(forms.len(), 3);
    assert_eq!(forms[0]["properties"]["action"], json!({"const": "view"}));
    assert_eq!(forms[2]["required"], json!(["answer"]));
    let messages = body["messages"].as_array().unwrap();
    let system = messages[0]["content"].as_str().unwrap();
    assert!(
        system.starts_with("Be brief.")
            && system.contains("- view: Reads a file. Arguments: line (integer, optional); path (string): which file."),
        "{system}"
    );
    let told: Vec<(&str, &str)> = messages[1..].iter().map(|m| (m["role"].as_str().unwrap(), m["content"].as_str().unwrap())).collect();
    assert_eq!(
        told,
        [
            ("user", "set the port"),
            ("assistant", r#"{"action":"view","arguments":{"path":"a"}}"#),
            ("user", "view returned:\nport=1"),
            ("assistant", r#"{"action":"list","arguments":{}}"#),
            ("user", "list was not run: not now"),
        ]
    );
    let native = crate::request::build(&profile(ToolCallMode::Native), &request).unwrap().body;
    assert_eq!(native["tools"].as_array().map(Vec::len), Some(2));
    let constrained: Value =
        crate::request::build(&Profile::new("o", Api::Ollama, "http://x").tool_calls(ToolCallMode::JsonAction), &request).unwrap().body;
    assert!(constrained["format"]["anyOf"].is_array());
}

#[test]
fn an_action_that_brings_nothing_new_says_so() {
    let mut request = request();
    for (n, (path, result)) in [("a", "port=1"), ("a", "port=1"), ("b", "port=1"), ("a", "port=2")].into_iter().enumerate() {
        let mut call = ToolCallPart::new(format!("c{n}").as_str(), "view", json!({"path": path}));
        call.state = ToolCallState::Result { output: ToolOutput::text(result), is_error: false };
        request.messages.push(Arc::new(Message::new(
            format!("a{n}").as_str(),
            Role::Assistant,
            vec![Part::ToolCall(call)],
            Default::default(),
        )));
    }
    let body = crate::request::build(&profile(ToolCallMode::JsonAction), &request).unwrap().body;
    let results: Vec<bool> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|message| {
            let text = message["content"].as_str()?;
            (message["role"] == "user" && text.starts_with("view returned")).then(|| text.contains("brought before"))
        })
        .collect();
    assert_eq!(results, [false, true, false, false]);
}

/// Servers let a model write properties in the order of the schema, so what decides comes first: the tool, then what is required.
#[test]
fn a_schema_is_sent_in_the_order_in_which_it_is_to_be_filled_in() {
    let mut request = request();
    let schema = json!({"type": "object", "properties": {"content": {"type": "string"}, "mode": {"type": "string"}, "path": {"type": "string"}}, "required": ["path", "content"]});
    request.tools = Arc::new([ToolDefinition::new("write", "Writes.", schema)]);
    for mode in [ToolCallMode::JsonAction, ToolCallMode::Native] {
        let sent = String::from_utf8(crate::request::build(&profile(mode), &request).unwrap().bytes().unwrap()).unwrap();
        let at = |text: &str| sent.find(text).unwrap_or_else(|| panic!("{text} is not in {sent}"));
        assert!(at("\"path\":{") < at("\"content\":{") && at("\"content\":{") < at("\"mode\":{"), "{sent}");
        let read: Value = serde_json::from_str(&sent).unwrap();
        assert_eq!(read, crate::request::build(&profile(mode), &request).unwrap().body);
    }
    let sent = String::from_utf8(crate::request::build(&profile(ToolCallMode::JsonAction), &request).unwrap().bytes().unwrap()).unwrap();
    assert!(sent.find("\"action\":{\"const\"") < sent.find("\"arguments\":{"), "{sent}");
}
