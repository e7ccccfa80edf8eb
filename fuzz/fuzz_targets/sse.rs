//! The parser of server-sent events, fed anything: the first byte says how it is cut.
#![no_main]

#[path = "../../crates/ac-llm/tests/fuzz/check.rs"]
#[allow(dead_code, reason = "shared with the other targets")]
mod check;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    if let Some((first, body)) = data.split_first() {
        check::parser(body, usize::from(*first) + 1);
    }
});
