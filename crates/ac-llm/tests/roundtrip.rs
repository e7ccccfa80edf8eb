//! What goes back to a provider: its own data unchanged and nobody else's, each call with one result, in the provider's form.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;

use ac_core::{
    Message, ModelRequest, Part, Role, ToolDefinition,
    message::{FilePart, FileSource, Opaque, ReasoningPart, TextPart, ToolCallPart, ToolCallState},
    tool::ToolOutput,
};
use ac_llm::{Api, Profile, profile::known, request};
use serde_json::{Value, json};

fn opaque(provider: &str, value: Value) -> Option<Opaque> {
    Some(Opaque { provider: provider.into(), value })
}

fn thought(text: &str, own: Option<Opaque>) -> Part {
    Part::Reasoning(ReasoningPart { text: text.into(), opaque: own })
}

fn done(id: &str, name: &str, output: ToolOutput, own: Option<Opaque>) -> Part {
    let mut call = ToolCallPart::new(id, name, json!({"n": id}));
    call.state = ToolCallState::Result { output, is_error: false };
    call.opaque = own;
    Part::ToolCall(call)
}

/// A conversation in which `model` answered with `parts`, as it comes back from a store.
fn request(model: &str, writer: &str, parts: Vec<Part>) -> ModelRequest {
    let mut answer = Message::new("a1", Role::Assistant, parts, Default::default());
    answer.meta.model = Some(writer.into());
    let stored = serde_json::to_string(&answer).unwrap();
    let answer: Message = serde_json::from_str(&stored).unwrap();
    let mut request = ModelRequest::new(model, vec![Arc::new(Message::user("u1", "go", Default::default())), Arc::new(answer)]);
    request.tools = Arc::new([ToolDefinition::new("ls", "lists", json!({"type": "object"}))]);
    request
}

fn body(profile: &Profile, request: &ModelRequest) -> Value {
    request::build(profile, request).unwrap().body
}

fn profiles() -> Vec<Profile> {
    vec![known::openai(), known::openai_chat(), known::anthropic(), known::google(), known::ollama_native(), known::mistral()]
}

// B-66
#[test]
fn a_thought_signature_goes_back_on_its_own_part_and_siblings_stay_unsigned() {
    let signed = |provider| opaque(provider, json!({"thoughtSignature": "QUJD"}));
    let parts = |provider| {
        vec![
            done("c1", "ls", ToolOutput::text("a"), signed(provider)),
            done("c2", "ls", ToolOutput::text("b"), None),
            Part::Text(TextPart { text: String::new(), opaque: opaque(provider, json!({"thoughtSignature": "REVG"})) }),
        ]
    };
    let own = body(&known::google(), &request("google/gemini-3-pro", "google/gemini-3-pro", parts("google")));
    assert_eq!(
        own["contents"][1]["parts"],
        json!([
            {"functionCall": {"name": "ls", "args": {"n": "c1"}}, "thoughtSignature": "QUJD"},
            {"functionCall": {"name": "ls", "args": {"n": "c2"}}},
            {"text": "", "thoughtSignature": "REVG"},
        ])
    );
    // Calls of another provider carry the documented word for "there is none" where the model checks, on the first call only.
    let foreign = body(&known::google(), &request("google/gemini-3-pro", "openai/gpt-5", parts("openai")));
    assert_eq!(
        foreign["contents"][1]["parts"],
        json!([
            {"functionCall": {"name": "ls", "args": {"n": "c1"}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "ls", "args": {"n": "c2"}}},
        ])
    );
    let old = body(&known::google(), &request("google/gemini-2.5-flash", "openai/gpt-5", parts("openai")));
    assert!(!old.to_string().contains("thoughtSignature"));
}

// B-67
#[test]
fn results_for_gemini_are_one_content_in_the_order_of_the_calls() {
    let picture =
        Part::File(FilePart { media_type: "image/png".into(), source: FileSource::Base64("QQ==".into()), name: None, opaque: None });
    let parts = vec![
        done("g~3", "ls", ToolOutput::text("one"), None),
        done("g~1", "ls", ToolOutput::text("two").for_model(vec![Part::text("two"), picture]), None),
        done("g~2", "ls", ToolOutput::text("three"), None),
    ];
    let body = body(&known::google(), &request("google/gemini-2.5-flash", "google/gemini-2.5-flash", parts));
    let contents = body["contents"].as_array().unwrap();
    let answers: Vec<&str> = contents[2]["parts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|part| part["functionResponse"]["response"]["output"].as_str().unwrap())
        .collect();
    assert_eq!((contents[2]["role"].as_str(), answers), (Some("user"), vec!["one", "two", "three"]));
    assert_eq!(contents[3]["parts"], json!([{"inlineData": {"mimeType": "image/png", "data": "QQ=="}}]));
    assert_eq!(contents.len(), 4);
}

// B-69
#[test]
fn own_thinking_goes_back_unchanged_and_in_order_and_any_other_stays_behind() {
    let parts = || {
        vec![
            thought("first  \n", opaque("anthropic", json!({"signature": "s1"}))),
            thought("", opaque("anthropic", json!({"redacted": "r1"}))),
            thought("", opaque("anthropic", json!({"signature": "s2"}))),
            thought("unsigned", None),
            thought("foreign", opaque("google", json!({"thoughtSignature": "x"}))),
            done("c1", "ls", ToolOutput::text("a"), None),
        ]
    };
    let own = body(&known::anthropic(), &request("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5", parts()));
    let content = own["messages"][1]["content"].as_array().unwrap();
    assert_eq!(
        content[..3],
        [
            json!({"type": "thinking", "thinking": "first  \n", "signature": "s1"}),
            json!({"type": "redacted_thinking", "data": "r1"}),
            json!({"type": "thinking", "thinking": "", "signature": "s2"}),
        ]
    );
    assert_eq!((content[3]["type"].as_str(), content.len()), (Some("tool_use"), 4));
    let other = body(&known::anthropic(), &request("anthropic/claude-sonnet-4-5", "anthropic/claude-opus-4-1", parts()));
    assert_eq!(other["messages"][1]["content"].as_array().unwrap().len(), 1);
    // Thinking that was cut off before anything followed is no message.
    let cut = body(
        &known::anthropic(),
        &request("anthropic/m", "anthropic/m", vec![thought("x", opaque("anthropic", json!({"signature": "s"})))]),
    );
    assert_eq!(cut["messages"].as_array().unwrap().len(), 1);
}

// B-70
#[test]
fn reasoning_items_keep_their_place_and_one_without_its_item_is_dropped() {
    let item = |n: u32| {
        opaque(
            "openai",
            json!({"item": {"type": "reasoning", "id": format!("rs_{n}"), "summary": [], "encrypted_content": format!("e{n}")}}),
        )
    };
    let parts = vec![
        thought("", item(1)),
        done("call_1", "ls", ToolOutput::text("a"), None),
        thought("", opaque("openai", json!({"item": {"type": "reasoning", "id": "rs_x", "summary": []}}))),
        thought("", item(2)),
        Part::text("so"),
        thought("", item(3)),
    ];
    let sent = body(&known::openai(), &request("openai/gpt-5", "openai/gpt-5", parts));
    let kinds: Vec<String> = sent["input"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| format!("{}{}", item["type"].as_str().unwrap(), item["id"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(kinds, ["message", "reasoningrs_1", "function_call", "reasoningrs_2", "message", "function_call_output"]);
    assert_eq!(sent["input"][1], json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "e1"}));
    assert_eq!((sent["store"].as_bool(), &sent["include"]), (Some(false), &json!(["reasoning.encrypted_content"])));
    let old = body(&known::openai(), &request("openai/gpt-4o", "openai/gpt-4o", vec![]));
    assert!(old.get("include").is_none(), "a model that does not reason refuses the question");
}

// B-72
#[test]
fn a_result_with_schema_keys_reaches_gemini_as_text() {
    let schema = json!({"schema": {"$defs": {"A": {}}, "$ref": "#/$defs/A"}});
    let parts = || vec![done("c1", "ls", ToolOutput::new(schema.clone()), None)];
    let sent = body(&known::google(), &request("google/gemini-2.5-flash", "google/gemini-2.5-flash", parts()));
    assert_eq!(sent["contents"][2]["parts"][0]["functionResponse"]["response"], json!({"output": schema.to_string()}));
    let other = body(&known::openai_chat(), &request("openai-chat/m", "openai-chat/m", parts()));
    assert_eq!(other["messages"][2]["content"], schema.to_string());
}

// B-111
#[test]
fn a_history_with_calls_stays_legal_without_tools() {
    for profile in profiles() {
        let model = format!("{}/m", profile.name);
        let mut summary = request(&model, &model, vec![done("c1", "ls", ToolOutput::text("a"), None)]);
        summary.tools = Arc::new([]);
        let body = body(&profile, &summary);
        if profile.api == Api::Anthropic {
            assert_eq!(
                body["tools"],
                json!([{"name": "ls", "input_schema": {"type": "object", "properties": {}}, "cache_control": {"type": "ephemeral"}}])
            );
            assert_eq!(body["tool_choice"], json!({"type": "none"}));
        } else {
            assert!(body.get("tools").is_none(), "{}", profile.name);
        }
    }
}

// B-112, and ids that one provider made and another refuses.
#[test]
fn names_and_ids_are_legal_everywhere_and_the_same_for_call_and_result() {
    for profile in profiles() {
        let model = format!("{}/m", profile.name);
        let long = "i".repeat(90);
        let parts =
            ["functions.add:0", "call_0~2", &long, ""].iter().map(|id| done(id, "db.query/größe", ToolOutput::text("a"), None)).collect();
        let mut asked = request(&model, "elsewhere/m", parts);
        asked.tools = Arc::new([ToolDefinition::new("db.query/größe", "d", json!({}))]);
        let body = body(&profile, &asked).to_string();
        assert!(!body.contains("db.query/größe"), "{}: {body}", profile.name);
        let value: Value = serde_json::from_str(&body).unwrap();
        let (mut calls, mut results) = (vec![], vec![]);
        ids(&value, &mut calls, &mut results);
        assert_eq!(calls, results, "{}", profile.name);
        for id in &calls {
            let legal = match (profile.api, &*profile.name) {
                (Api::Anthropic, _) => !id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-'),
                (_, "mistral") => id.len() == 9 && id.chars().all(|c| c.is_ascii_alphanumeric()),
                _ => (1..=64).contains(&id.len()),
            };
            assert!(legal, "{}: {id}", profile.name);
        }
    }
}

fn ids(value: &Value, calls: &mut Vec<String>, results: &mut Vec<String>) {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(str::to_owned);
    match (text("type").as_deref(), text("role").as_deref()) {
        (Some("function_call"), _) => calls.extend(text("call_id")),
        (Some("function_call_output"), _) => results.extend(text("call_id")),
        (Some("tool_use"), _) => calls.extend(text("id")),
        (Some("tool_result"), _) => results.extend(text("tool_use_id")),
        (Some("function"), _) if value.get("id").is_some() => calls.extend(text("id")),
        (_, Some("tool")) => results.extend(text("tool_call_id")),
        _ => {}
    }
    match value {
        Value::Array(list) => list.iter().for_each(|value| ids(value, calls, results)),
        Value::Object(fields) => fields.values().for_each(|value| ids(value, calls, results)),
        _ => {}
    }
}

// R4: whatever a store holds, each call that is sent has exactly one result, right after it.
#[test]
fn every_call_that_is_sent_has_its_result() {
    for profile in profiles() {
        let model = format!("{}/m", profile.name);
        let mut denied = ToolCallPart::new("c2", "ls", json!({}));
        denied.state = ToolCallState::OutputDenied { reason: "not now".into() };
        let mut cut = ToolCallPart::new("c3", "ls", Value::Null);
        cut.raw = Some("{\"a\":".into());
        let parts = vec![done("c1", "ls", ToolOutput::text("a"), None), Part::ToolCall(denied), Part::ToolCall(cut)];
        let body = body(&profile, &request(&model, &model, parts)).to_string();
        for said in ["not now", "No result: the call did not finish."] {
            assert_eq!(body.matches(said).count(), 1, "{}: {body}", profile.name);
        }
        assert!(!body.contains("{\\\"a\\\":\""), "half arguments are no arguments");
    }
}

#[test]
fn the_prefix_that_may_be_cached_is_marked_and_does_not_move() {
    let mut first = request("anthropic/m", "anthropic/m", vec![done("c1", "ls", ToolOutput::text("a"), None)]);
    first.instructions = Some("be good".into());
    let mut second = first.clone();
    second.messages.push(Arc::new(Message::new("a2", Role::Assistant, vec![Part::text("ok")], Default::default())));
    second.messages.push(Arc::new(Message::user("u2", "more", Default::default())));
    let (first, second) = (body(&known::anthropic(), &first), body(&known::anthropic(), &second));
    let marks = |body: &Value| body.to_string().matches("cache_control").count();
    assert_eq!((marks(&first), marks(&second)), (3, 3));
    // The second request reads from the cache up to where the first one ended.
    assert_eq!(first["messages"][2], second["messages"][2]);
    assert_eq!(first["system"], second["system"]);
    assert_eq!(first["system"][0]["cache_control"], json!({"type": "ephemeral"}));
}

#[test]
fn files_reach_each_provider_in_its_form() {
    let file = |kind: &str, source| Part::File(FilePart { media_type: kind.into(), source, name: Some("f.pdf".into()), opaque: None });
    let parts = vec![
        Part::text("look"),
        file("image/png", FileSource::Base64("QQ==".into())),
        file("application/pdf", FileSource::Base64("Qg==".into())),
        file("image/png", FileSource::Url("https://x/y.png".into())),
    ];
    let message = Message::new("u1", Role::User, parts, Default::default());
    for (profile, field, expected) in [
        (
            known::openai_chat(),
            "/messages/0/content",
            json!([
                {"type": "text", "text": "look"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QQ=="}},
                {"type": "file", "file": {"filename": "f.pdf", "file_data": "data:application/pdf;base64,Qg=="}},
                {"type": "image_url", "image_url": {"url": "https://x/y.png"}},
            ]),
        ),
        (
            known::openai(),
            "/input/0/content",
            json!([
                {"type": "input_text", "text": "look"},
                {"type": "input_image", "image_url": "data:image/png;base64,QQ=="},
                {"type": "input_file", "filename": "f.pdf", "file_data": "data:application/pdf;base64,Qg=="},
                {"type": "input_image", "image_url": "https://x/y.png"},
            ]),
        ),
        (
            known::anthropic(),
            "/messages/0/content",
            json!([
                {"type": "text", "text": "look"},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QQ=="}},
                {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "Qg=="}, "title": "f.pdf"},
                {"type": "image", "source": {"type": "url", "url": "https://x/y.png"}, "cache_control": {"type": "ephemeral"}},
            ]),
        ),
        (
            known::google(),
            "/contents/0/parts",
            json!([
                {"text": "look"},
                {"inlineData": {"mimeType": "image/png", "data": "QQ=="}},
                {"inlineData": {"mimeType": "application/pdf", "data": "Qg=="}},
                {"fileData": {"mimeType": "image/png", "fileUri": "https://x/y.png"}},
            ]),
        ),
    ] {
        let sent = body(&profile, &ModelRequest::new("p/m", vec![Arc::new(message.clone())]));
        assert_eq!(sent.pointer(field), Some(&expected), "{}", profile.name);
    }
}

/// A file that a provider refuses stands in the thread: each later request would be refused with it.
#[test]
fn a_file_that_a_provider_does_not_take_is_a_line_of_text() {
    let file = |kind: &str| {
        Part::File(FilePart { media_type: kind.into(), source: FileSource::Base64("QQ==".into()), name: Some("f".into()), opaque: None })
    };
    for profile in [known::openai_chat(), known::openai(), known::anthropic(), known::ollama_native()] {
        for kind in ["image/heic", "image/svg+xml", "application/zip", "video/mp4", ""] {
            let message = Message::new("u1", Role::User, vec![file(kind)], Default::default());
            let sent = body(&profile, &ModelRequest::new("p/m", vec![Arc::new(message)])).to_string();
            assert!(sent.contains(&format!("[a file that cannot be shown here: f, {kind}]")), "{}: {sent}", profile.name);
            assert!(!sent.contains("QQ=="), "{}: {sent}", profile.name);
        }
        let message = Message::new("u1", Role::User, vec![file("IMAGE/jpg; q=1")], Default::default());
        let sent = body(&profile, &ModelRequest::new("p/m", vec![Arc::new(message)])).to_string();
        assert!(sent.contains("QQ==") && !sent.contains("jpg"), "{}: {sent}", profile.name);
    }
}

#[test]
fn models_that_do_not_reason_are_not_asked_for_their_reasoning() {
    for (model, reasons) in [("o4-mini", true), ("gpt-5", true), ("ft:gpt-4o-mini-2024-07-18:org::id", false), ("gpt-5-chat-latest", false)]
    {
        let message = Message::user("u1", "hi", Default::default());
        let sent = body(&known::openai(), &ModelRequest::new(format!("openai/{model}"), vec![Arc::new(message)]));
        assert_eq!(sent.get("include").is_some(), reasons, "{model}");
    }
}

#[test]
fn claude_behind_a_gateway_is_marked_and_nobody_else_there() {
    let parts = vec![done("c1", "ls", ToolOutput::text("a"), None), done("c2", "ls", ToolOutput::text("b"), None)];
    let asked = |model: &str| {
        let mut request = request(model, model, parts.clone());
        request.instructions = Some("Be brief.".into());
        body(&known::openrouter(), &request)
    };
    let marked = asked("openrouter/anthropic/claude-sonnet-4.5");
    let mark = json!({"type": "ephemeral"});
    assert_eq!(marked["messages"][0], json!({"role": "system", "content": [{"type": "text", "text": "Be brief.", "cache_control": mark}]}));
    assert_eq!(marked["messages"][1], json!({"role": "user", "content": [{"type": "text", "text": "go", "cache_control": mark}]}));
    assert_eq!(marked["messages"][4]["cache_control"], mark, "the last result is the end of this request: {marked}");
    assert_eq!(marked.to_string().matches("cache_control").count(), 3);
    // Marks do not move what they mark: the prefix of the next request is the same.
    let plain = asked("openrouter/openai/gpt-5");
    assert_eq!(plain.to_string().matches("cache_control").count(), 0);
    assert_eq!(plain["messages"][1], json!({"role": "user", "content": "go"}));
    let mut direct = known::openai_chat();
    direct.cache_marks = false;
    assert!(!body(&direct, &request("openai-chat/claude", "x", vec![])).to_string().contains("cache_control"));
}
