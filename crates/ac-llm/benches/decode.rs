//! How fast answers are read, in bytes of the wire per second, beside what `serde_json` needs to parse the same payloads.
//!
//! `cargo bench -p ac-llm`.

use std::{sync::Arc, time::SystemTime};

use ac_core::{Message, ModelRequest};
use ac_llm::{
    Api, Profile,
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    sse::{SseError, SseFlow, SseLimits, SseParser},
};
use divan::{Bencher, counter::BytesCount};
use serde_json::{Value, json};

fn main() {
    divan::main();
}

/// Pieces as a socket hands them out.
const PIECE: usize = 16 << 10;

const APIS: [Api; 5] = [Api::OpenAiChat, Api::OpenAiResponses, Api::Anthropic, Api::Gemini, Api::Ollama];

fn words(n: usize) -> impl Iterator<Item = String> {
    (0..n).map(|i| format!(" word{}\n", i % 97))
}

fn event(body: &mut String, name: Option<&str>, data: &Value) {
    if let Some(name) = name {
        body.push_str(&format!("event: {name}\n"));
    }
    body.push_str(&format!("data: {data}\n\n"));
}

/// An answer of two thousand pieces of text, in the shape in which each provider sends it.
fn body(api: Api) -> Vec<u8> {
    let mut body = String::new();
    for (n, word) in words(2000).enumerate() {
        match api {
            Api::OpenAiChat => event(&mut body, None, &json!({"id": "chatcmpl-CMKAyUumTn5CnEH23XUT0k1X8mUbu", "object": "chat.completion.chunk", "created": 1_759_436_808, "model": "gpt-4o-2024-08-06", "service_tier": "default", "system_fingerprint": "fp_cbf1785567", "usage": null, "choices": [{"index": 0, "delta": {"content": word}, "logprobs": null, "finish_reason": null}], "obfuscation": "7fIwy"})),
            Api::OpenAiResponses => event(&mut body, Some("response.output_text.delta"), &json!({"type": "response.output_text.delta", "content_index": 0, "delta": word, "item_id": "msg_05f46fd4032c869b0068f966cb", "logprobs": [], "obfuscation": "Zr5", "output_index": 0, "sequence_number": n})),
            Api::Anthropic => {
                if n == 0 {
                    event(&mut body, Some("content_block_start"), &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}));
                }
                event(&mut body, Some("content_block_delta"), &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}}));
            }
            Api::Gemini => event(&mut body, None, &json!({"candidates": [{"content": {"parts": [{"text": word}], "role": "model"}, "index": 0}], "usageMetadata": {"promptTokenCount": 218, "candidatesTokenCount": n, "totalTokenCount": 221, "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 218}]}, "modelVersion": "gemini-2.5-flash", "responseId": "XgCzaazDItHRz7IPmsmB4Qk"})),
            _ => body.push_str(&format!("{}\n", json!({"model": "qwen3:4b", "created_at": "2026-08-05T08:10:56.372032Z", "message": {"role": "assistant", "content": word}, "done": false}))),
        }
    }
    match api {
        Api::OpenAiChat => event(&mut body, None, &json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})),
        Api::OpenAiResponses => {
            event(&mut body, None, &json!({"type": "response.completed", "response": {"status": "completed", "output": []}}))
        }
        Api::Anthropic => event(&mut body, None, &json!({"type": "message_stop"})),
        Api::Gemini => event(&mut body, None, &json!({"candidates": [{"finishReason": "STOP"}]})),
        _ => body.push_str("{\"done\":true}\n"),
    }
    body.into_bytes()
}

fn payloads(body: &[u8]) -> Vec<Vec<u8>> {
    body.split(|byte| *byte == b'\n')
        .map(|line| line.strip_prefix(b"data: ").unwrap_or(line).to_vec())
        .filter(|line| line.first() == Some(&b'{'))
        .collect()
}

/// The limit: the payloads alone, already split, into values.
#[divan::bench(args = APIS)]
fn serde_json_alone(bencher: Bencher<'_, '_>, api: Api) {
    let body = body(api);
    let payloads = payloads(&body);
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        for payload in &payloads {
            divan::black_box(serde_json::from_slice::<Value>(payload).ok());
        }
    });
}

/// The same bytes through the whole stream half: framing, decoding, events.
#[divan::bench(args = APIS)]
fn decode(bencher: Bencher<'_, '_>, api: Api) {
    let body = body(api);
    let profile = Profile::new("p", api, "http://x");
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
        let mut reader = AnswerReader::new(&profile, &request, head, AnswerLimits::default());
        let mut events = Vec::new();
        for piece in body.chunks(PIECE) {
            divan::black_box(reader.push(piece, &mut events).ok());
            divan::black_box(events.drain(..).count());
        }
        reader.end(&mut events).ok()
    });
}

/// Framing alone.
#[divan::bench(args = [PIECE, 64, 1])]
fn sse(bencher: Bencher<'_, '_>, piece: usize) {
    let body = body(Api::Anthropic);
    bencher.counter(BytesCount::new(body.len())).bench(|| {
        let mut parser = SseParser::new(SseLimits::default());
        let mut bytes = 0;
        for piece in body.chunks(piece) {
            let _ = parser.push(piece, |event| {
                bytes += event.data.len();
                Ok::<_, SseError>(SseFlow::Continue)
            });
        }
        bytes
    });
}
