//! Recorded answers of providers through the real adapters, over a real socket, cut in every way.
#![allow(clippy::print_stderr, reason = "says that it was skipped")]
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use ac_testkit::wire::{self, Case, Options};

fn corpus() -> Option<Vec<Case>> {
    let Some(folder) = wire::shared_corpus() else {
        eprintln!("skipped: the shared folder with the recorded answers is absent");
        return None;
    };
    Some(wire::load(&folder).unwrap())
}

async fn outcomes(options: &str) -> Vec<wire::Outcome> {
    let Some(cases) = corpus() else { return vec![] };
    wire::run(&cases, &options.parse::<Options>().unwrap()).await.unwrap()
}

async fn all_pass(options: &str) {
    let failed: Vec<_> = outcomes(options).await.into_iter().filter(|outcome| !outcome.differences.is_empty()).collect();
    assert!(failed.is_empty(), "{options}: {failed:#?}");
}

#[tokio::test]
async fn every_recorded_answer_is_read_right() {
    all_pass("").await;
}

#[tokio::test]
async fn every_recorded_answer_is_read_right_byte_by_byte() {
    all_pass("chunk=1").await;
}

#[tokio::test]
async fn every_recorded_answer_is_read_right_in_random_pieces() {
    for seed in [7, 8] {
        all_pass(&format!("chunk=rand:{seed}")).await;
    }
}

// B-52
#[tokio::test]
async fn every_recorded_answer_is_read_right_in_every_legal_framing() {
    for options in
        ["crlf", "comments=1", "cr,chunk=3", "bom,multiline,nospace", "ids,blank=2,space2", "noevent", "noend", "length,chunk=line"]
    {
        all_pass(options).await;
    }
}

/// A stream that ends in its middle is an error, unless what follows the middle says nothing more. No call is ever made up.
#[tokio::test]
async fn a_stream_that_is_cut_is_an_error_and_no_call_is_made_up() {
    let Some(cases) = corpus() else { return };
    for (options, least) in [("cut=50%", 90), ("cut=50%,reset", 90), ("cut=90%,chunk=7", 80), ("cutend=40", 50)] {
        let mut cut = 0;
        for (case, outcome) in cases.iter().zip(wire::run(&cases, &options.parse().unwrap()).await.unwrap()) {
            let names = |value: &serde_json::Value| -> Vec<String> {
                let calls = value["tool_calls"].as_array().cloned().unwrap_or_default();
                calls.iter().map(|call| format!("{}{}", call["name"], call["arguments"])).collect()
            };
            let (recorded, mine) = (names(&case.expect), names(&outcome.result));
            if case.expect["tool_calls"].as_array().into_iter().flatten().any(|call| call.get("arguments_error").is_some()) {
                // Its arguments are cut off in the recording already.
                continue;
            }
            assert!(mine.iter().all(|call| recorded.contains(call)), "{options} {}: {mine:?} of {recorded:?}", case.name);
            if outcome.result["outcome"] == "ok" {
                // The end state had come before the cut: then nothing but padding or counts may be lost.
                let same =
                    |field: &str| outcome.result[field].as_str().unwrap_or_default() == case.expect[field].as_str().unwrap_or_default();
                assert!(same("text") && mine.len() == recorded.len(), "{options} {}: {}", case.name, outcome.result);
            } else {
                cut += 1;
            }
        }
        assert!(cut >= least, "{options}: only {cut} of the cut answers are errors");
    }
}

/// B-66, B-69, B-70: what a provider wants back goes back unchanged, after a restart too.
#[test]
fn the_next_request_carries_the_opaque_texts_of_the_answer() {
    let Some(cases) = corpus() else { return };
    let mut owed = 0;
    for case in &cases {
        let Some((body, missing)) = wire::next_request(case) else { continue };
        assert!(missing.is_empty(), "{}: {missing:?} not in {body}", case.name);
        owed += case.expect["opaque"].as_array().map_or(0, Vec::len);
    }
    assert!(owed >= 15, "only {owed} opaque texts were owed");
}

#[tokio::test]
async fn failures_are_asked_again_as_the_policy_says() {
    all_pass("fail=1:503:0").await;
}
