//! Broken answers of every kind, the same ones each time: no panic, no call that nobody made, nothing after an error, and memory in
//! proportion to what came in. The open-ended form of the same checks is `fuzz/` for cargo-fuzz.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, reason = "a test")]

#[path = "fuzz/check.rs"]
mod check;

use ac_llm::Api;

/// A small generator of our own: a failure is repeated by its number alone.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % (n.max(1) as u64)) as usize
    }
}

const CHAT: &[&str] = &[
    "data: {\"id\":\"c\",\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"reasoning_content\":\"hm\",\"content\":\"hi\"}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"view\",\"arguments\":\"{\\\"p\\\":\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"1}\"}}]}}]}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":[{\"type\":\"thinking\",\"thinking\":[{\"text\":\"x\"}]}]},\"finish_reason\":\"tool_calls\"}],\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2}}\n\n",
    "data: {\"error\":{\"message\":\"x\",\"code\":429}}\n\n",
    "data: [DONE]\n\n",
];
const RESPONSES: &[&str] = &[
    "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[]}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"summary_index\":0,\"delta\":\"hm\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"r\",\"summary\":[],\"encrypted_content\":\"zz\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"view\",\"arguments\":\"\"}}\n\n",
    "data: {\"type\":\"response.function_call_arguments.delta\",\"output_index\":1,\"delta\":\"{}\"}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":2,\"content_index\":0,\"delta\":\"hi\"}\n\n",
    "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"hi\"}]}],\"usage\":{\"input_tokens\":1}}}\n\n",
];
const ANTHROPIC: &[&str] = &[
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":3}}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"sig\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"view\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\\\"a\\\":1}\"}}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":2,\"content_block\":{\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"web\"}}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":5}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
];
const GEMINI: &[&str] = &[
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"hm\",\"thought\":true},{\"text\":\"hi\"}]}}],\"usageMetadata\":{\"promptTokenCount\":1}}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"view\",\"args\":{\"a\":1}},\"thoughtSignature\":\"s\"}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"name\":\"view\",\"willContinue\":true}}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"functionCall\":{\"partialArgs\":[{\"jsonPath\":\"$.a[0].b\",\"stringValue\":\"x\"}],\"willContinue\":true}}]}}]}\r\n\r\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"\",\"thoughtSignature\":\"s\"},{\"inlineData\":{\"mimeType\":\"image/png\",\"data\":\"QQ==\"}}]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
    "data: {\"promptFeedback\":{\"blockReason\":\"SAFETY\"}}\r\n\r\n",
];
const OLLAMA: &[&str] = &[
    "{\"model\":\"m\",\"message\":{\"role\":\"assistant\",\"content\":\"hi\",\"thinking\":\"hm\"},\"done\":false}\n",
    "{\"model\":\"m\",\"message\":{\"tool_calls\":[{\"function\":{\"name\":\"view\",\"arguments\":{\"a\":1}}}]},\"done\":false}\n",
    "{\"done\":true,\"done_reason\":\"stop\",\"eval_count\":3}\n",
];

/// What is put in between: pieces of syntax, other protocols' ends, numbers at the edge.
const SPICE: &[&str] = &[
    "\n\n",
    "\r",
    "data:",
    "data: ",
    ": c\n",
    "event: error\n",
    "[DONE]",
    "{",
    "}",
    "[",
    "]",
    "\"",
    "\\",
    "null",
    "-1",
    "18446744073709551615",
    "1e999",
    "\u{feff}",
    "\"index\":4294967296",
    "\"name\":\"\"",
    "\"id\":null",
    "\\ud83d",
    "<html>",
    "\u{0}",
];

fn mutate(random: &mut Random, seeds: &[&str]) -> Vec<u8> {
    let mut body: Vec<u8> = vec![];
    for _ in 0..1 + random.below(seeds.len() * 2) {
        // Mostly in order, sometimes not.
        let at = if random.below(4) == 0 { random.below(seeds.len()) } else { body.len() % seeds.len() };
        body.extend_from_slice(seeds[at].as_bytes());
    }
    if random.below(3) == 0 {
        body = seeds.concat().into_bytes();
    }
    for _ in 0..random.below(5) {
        let at = random.below(body.len());
        let end = (at + random.below(40)).min(body.len());
        match random.below(5) {
            0 if at < body.len() => body[at] = random.next() as u8,
            1 => drop(body.drain(at..end)),
            2 => {
                let copy = body[at..end].to_vec();
                let to = random.below(body.len());
                body.splice(to..to, copy);
            }
            3 => drop(body.splice(at..at, SPICE[random.below(SPICE.len())].bytes())),
            _ => body.truncate(at),
        }
    }
    body
}

/// Enough for each test run; `AC_FUZZ_CASES` says otherwise.
fn cases() -> u64 {
    std::env::var("AC_FUZZ_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(800)
}

fn run(api: Api, seeds: &[&str]) {
    for number in 1..=cases() {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        let body = mutate(&mut random, seeds);
        let piece = 1 + random.below(64);
        let status = if random.below(8) == 0 { 429 } else { 200 };
        let outcome = std::panic::catch_unwind(|| check::answer(api, &body, piece, status));
        assert!(outcome.is_ok(), "case {number}: {:?}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn chat_completions_survive_anything() {
    run(Api::OpenAiChat, CHAT);
}

#[test]
fn responses_survive_anything() {
    run(Api::OpenAiResponses, RESPONSES);
}

#[test]
fn anthropic_survives_anything() {
    run(Api::Anthropic, ANTHROPIC);
}

#[test]
fn gemini_survives_anything() {
    run(Api::Gemini, GEMINI);
}

#[test]
fn ollama_survives_anything() {
    run(Api::Ollama, OLLAMA);
}

#[test]
fn the_parser_says_the_same_whatever_the_pieces() {
    for number in 1..=cases() {
        let mut random = Random(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        random.next();
        let body = mutate(&mut random, ANTHROPIC);
        check::parser(&body, 1 + random.below(9));
    }
}
