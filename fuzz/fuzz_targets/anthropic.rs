//! The decoder of one protocol, fed anything: the first byte says how it is cut.
#![no_main]

#[path = "../../crates/ac-llm/tests/fuzz/check.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((first, body)) = data.split_first() {
        let status = if first & 0x80 == 0 { 200 } else { 429 };
        check::answer(ac_llm::Api::Anthropic, body, usize::from(first & 0x7f) + 1, status);
    }
});
