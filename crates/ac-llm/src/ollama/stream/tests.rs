use std::{sync::Arc, time::SystemTime};

use ac_core::{FinishReason, Message, ModelError, ModelErrorKind, ModelRequest, Part, assemble::Assembler};
use serde_json::json;

use crate::{
    decode::{AnswerHead, AnswerLimits, AnswerReader},
    profile::{Api, Profile},
};

fn read(body: &str, piece: usize) -> Result<(Vec<Part>, FinishReason), ModelError> {
    let request = ModelRequest::new("p/m", vec![Arc::new(Message::user("u", "x", Default::default()))]);
    let head = AnswerHead::new(200, http::HeaderMap::new(), SystemTime::UNIX_EPOCH);
    let mut reader = AnswerReader::new(&Profile::new("p", Api::Ollama, "http://x"), &request, head, AnswerLimits::default());
    let mut told = vec![];
    for bytes in body.as_bytes().chunks(piece) {
        if !reader.push(bytes, &mut told)? {
            break;
        }
    }
    let finish = reader.end(&mut told)?;
    let mut fold = Assembler::new();
    told.into_iter().for_each(|event| fold.push(event));
    Ok((fold.into_parts().0, finish.reason))
}

#[test]
fn lines_and_one_document_in_any_layout_are_the_same_answer() {
    let whole =
        json!({"model": "m", "message": {"role": "assistant", "content": "hi"}, "done": true, "done_reason": "stop", "eval_count": 2});
    let pretty = serde_json::to_string_pretty(&whole).unwrap();
    let lines = "{\"model\":\"m\",\"message\":{\"content\":\"h\"},\"done\":false}\n{\"message\":{\"content\":\"i\"},\"done\":true,\"done_reason\":\"stop\"}\n";
    for body in [whole.to_string(), pretty.clone(), pretty.replace('\n', "\r\n"), lines.to_owned(), format!("\n{lines}")] {
        for piece in [1, 2, 5, body.len()] {
            assert_eq!(read(&body, piece).unwrap(), (vec![Part::text("hi")], FinishReason::Stop), "{piece}: {body}");
        }
    }
    for body in ["{", "{\n", "{\"message\":{\"content\":\"h\"},\"done\":false}\n"] {
        assert_eq!(read(body, 1).unwrap_err().kind, ModelErrorKind::Truncated, "{body}");
    }
    assert_eq!(read("{\n \"error\": \"no such model\"\n}", 3).unwrap_err().provider_message.as_deref(), Some("no such model"));
}
