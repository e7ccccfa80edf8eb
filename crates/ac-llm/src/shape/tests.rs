#![cfg(all(feature = "openai", feature = "anthropic", feature = "gemini"))]

use std::{cell::Cell, fs, path::Path, sync::Arc, time::SystemTime};

use ac_core::{Message, ModelEvent, ModelRequest};

use crate::{
    Api, Profile,
    decode::{AnswerHead, AnswerLimits, AnswerReader},
};

thread_local! {
    /// Whether nothing fits, so that every event is read in full.
    pub(super) static IN_FULL: Cell<bool> = const { Cell::new(false) };
}

/// What a body tells, and how it ends.
fn told(api: Api, body: &[u8], in_full: bool) -> (Vec<ModelEvent>, Result<String, String>) {
    IN_FULL.set(in_full);
    let profile = Profile::new("p", api, "http://x");
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&profile, &request, head, AnswerLimits::default());
    let mut events = vec![];
    let end = reader.push(body, &mut events).and_then(|_| reader.end(&mut events));
    IN_FULL.set(false);
    (events, end.map(|finish| format!("{finish:?}")).map_err(|error| error.to_string()))
}

fn same(api: Api, body: &[u8], name: &str) -> bool {
    let (quick, full) = (told(api, body, false), told(api, body, true));
    assert_eq!(quick, full, "{name}: {}", String::from_utf8_lossy(body));
    full.1.is_ok()
}

/// Fields of every kind in and around what is common, each of which either means nothing or must be read in full.
const SEEDS: [(Api, &[&str]); 5] = [
    (
        Api::OpenAiChat,
        &[
            r#"data: {"id":"c1","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}],"usage":null,"obfuscation":"x"}"#,
            r#"data: {"id":"c2","choices":[{"index":0,"delta":{"reasoning_content":"h\u00e9\"","content":null}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"reasoning":"a","reasoning_content":"b","reasoning_details":[],"tool_calls":[]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"s"}]}}]}"#,
            r#"data: {"choices":[{"index":1,"delta":{"content":"no"}},{"index":0,"delta":{"content":"yes"}}]}"#,
            r#"data: {"choices":[{"index":1,"delta":{"content":"no"}}]}"#,
            r#"data: {"choices":[{"delta":{"content":[{"type":"text","text":"list"}]}}]}"#,
            r#"data: {"choices":[{"message":{"content":"whole"},"delta":{"content":"new"}}]}"#,
            r#"data: {"choices":[{"index":0,"message":{"content":"only"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"view","arguments":""}}]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":null,"function":{"name":null,"arguments":"{\"p\":"}},{"index":1,"id":"b","function":{"name":"ls"}}]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"1}"},"extra_content":{"google":{"thought_signature":"t"}}}]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":{"a":1}}}]}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"refusal":"no"}}]}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"x","refusal":""},"finish_reason":""}],"error":null}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":4},"x_groq":{"id":"g"}}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"x","function_call":{"name":"f","arguments":"{}"}}}]}"#,
            r#"data: {"choices":[],"usage":{"prompt_tokens":3}}"#,
            r#"data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}],"id":"c3"}"#,
            "event: error\ndata: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}",
            r#"data: {"choices":[{"index":0,"delta":{"content":"x"}}],"error":{"message":"bad","code":500}}"#,
            "data: [DONE]",
        ],
    ),
    (
        Api::OpenAiResponses,
        &[
            r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}"#,
            r#"data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"hm"}"#,
            r#"data: {"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"so"}"#,
            r#"data: {"type":"response.reasoning_text.delta","output_index":0,"content_index":null,"delta":"raw"}"#,
            r#"data: {"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"view"}}"#,
            r#"data: {"type":"response.function_call_arguments.delta","output_index":1,"delta":"{}"}"#,
            r#"data: {"type":"response.function_call_arguments.delta","item_id":"r","delta":"{}"}"#,
            r#"data: {"delta":"hi","type":"response.output_text.delta","content_index":0,"output_index":2,"logprobs":[]}"#,
            r#"data: {"type":"response.output_text.delta","output_index":2,"content_index":1,"delta":null}"#,
            r#"data: {"type":"response.refusal.delta","output_index":3,"delta":"no"}"#,
            r#"data: {"type":"response.custom_tool_call_input.delta","output_index":1,"delta":"\n"}"#,
            r#"data: {"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","call_id":"c","name":"view","arguments":"{}"}}"#,
            r#"data: {"type":"response.completed","response":{"id":"r","status":"completed","output":[]}}"#,
        ],
    ),
    (
        Api::Anthropic,
        &[
            r#"data: {"type":"message_start","message":{"id":"m","model":"c","usage":{"input_tokens":3}}}"#,
            r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}"#,
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"h\nm"}}"#,
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"s"}}"#,
            r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"not here"}}"#,
            r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":"a"}}"#,
            r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"u":1}}}"#,
            r#"data: {"type":"content_block_delta","delta":{"text":"b","type":"text_delta"},"index":1}            "#,
            r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":null}}"#,
            r#"data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t","name":"view","input":{}}}"#,
            r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}"#,
            r#"data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}"#,
            r#"data: {"type":"content_block_delta","index":9,"delta":{"type":"text_delta","text":"nowhere"}}"#,
            r#"data: {"type":"content_block_start","index":3,"content_block":{"type":"server_tool_use","id":"s","name":"web"}}"#,
            r#"data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"q\":2}"}}"#,
            r#"data: {"type":"content_block_stop","index":1}"#,
            r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}"#,
            r#"data: {"type":"message_stop"}"#,
        ],
    ),
    (
        Api::Gemini,
        &[
            r#"data: {"candidates":[{"content":{"parts":[{"text":"hm","thought":true}],"role":"model"}}],"usageMetadata":{"promptTokenCount":1},"responseId":"r","modelVersion":"g"}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"index":0}],"usageMetadata":{"promptTokenCount":2,"thoughtsTokenCount":1}}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b"}]}}],"usageMetadata":null}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"s","thoughtSignature":"sig"}]}}]}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":""}]}}],"usageMetadata":{"promptTokenCount":3}}"#,
            r#"data: {"candidates":[{"index":1,"content":{"parts":[{"text":"other"}]}}]}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"view","args":{"a":1}},"text":"x"}]}}]}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"MAX_TOKENS","finishMessage":"long"}]}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4,"candidatesTokenCount":9}}"#,
            r#"data: {"candidates":[{"content":{"parts":[{"text":"y"}]},"finishReason":"STOP"}],"promptFeedback":{}}"#,
        ],
    ),
    (
        Api::Ollama,
        &[
            r#"{"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false}"#,
            r#"{"model":"m","message":{"content":"h\u0069","tool_calls":[]},"done":false}"#,
            r#"{"model":"m","message":{"content":"x","tool_calls":[{"function":{"name":"view","arguments":{"a":1}}}]}}"#,
            r#"{"message":{"content":"y"},"error":"bad"}"#,
            r#"{"message":{"content":"z"},"done":true,"done_reason":"stop","eval_count":3}"#,
        ],
    ),
];

#[test]
fn what_is_read_quickly_means_what_it_means_read_in_full() {
    let mut whole = 0;
    for (api, seeds) in SEEDS {
        let end = if api == Api::Ollama { "\n" } else { "\n\n" };
        // Each event alone between a first and a last one, then all that come before an error.
        for seed in seeds {
            let body = [seeds[0], seed, seeds[seeds.len() - 1]].join(end) + end;
            whole += usize::from(same(api, body.as_bytes(), "alone"));
        }
        for upto in 1..=seeds.len() {
            same(api, (seeds[..upto].join(end) + end).as_bytes(), "upto");
        }
        // Broken in the same ways each time.
        let body = (seeds.join(end) + end).into_bytes();
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..400 {
            let mut broken = body.clone();
            for _ in 0..3 {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                let at = usize::try_from(random >> 32).unwrap() % broken.len();
                match random % 4 {
                    0 => broken[at] = b"0\"{}[]:,an\\\n"[usize::try_from(random >> 8 & 0xff).unwrap() % 12],
                    1 => drop(broken.remove(at)),
                    2 => broken.insert(at, broken[at]),
                    _ => drop(broken.drain(at..(at + 9).min(broken.len()))),
                }
            }
            same(api, &broken, "broken");
        }
    }
    assert!(whole > 40, "only {whole} of the answers were whole");
}

/// The recorded answers, where they are.
#[test]
fn recorded_answers_read_quickly_mean_what_they_mean_read_in_full() {
    let shared =
        std::env::var_os("AC_SHARED").map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"), |path| path.into());
    let Ok(providers) = fs::read_dir(shared.join("wire/corpus")) else {
        eprintln!("skipped: the shared folder with the recorded answers is absent");
        return;
    };
    let mut read = 0;
    for provider in providers.flatten().filter(|entry| entry.path().is_dir()) {
        for case in fs::read_dir(provider.path()).unwrap().flatten() {
            let Ok(meta) = fs::read(case.path().join("meta.json")) else { continue };
            let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
            let api = match meta["api"].as_str().unwrap() {
                "openai-chat" => Api::OpenAiChat,
                "openai-responses" => Api::OpenAiResponses,
                "anthropic-messages" => Api::Anthropic,
                "gemini-generate" => Api::Gemini,
                _ => Api::Ollama,
            };
            let body = fs::read(case.path().join(meta["response_file"].as_str().unwrap())).unwrap();
            same(api, &body, meta["case"].as_str().unwrap());
            read += 1;
        }
    }
    assert!(read >= 100, "only {read} answers were read");
}
