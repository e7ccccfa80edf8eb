use serde_json::Value;
use sha2::{Digest, Sha256};

/// A field that is not what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The field.
    pub field: &'static str,
    /// What it should be.
    pub expected: Value,
    /// What it is.
    pub got: Value,
}

/// Compares what a client made of a case with what it must make of it, by the rules of the corpus' own judge: fields that are missing
/// from the result are not looked at, `soft` ones never fail, and what came before an error is only kept, not owed.
pub fn judge(expect: &Value, got: &Value, soft: &[String]) -> Vec<Difference> {
    let mut found = vec![];
    let outcome = text(expect, "outcome");
    let failed = outcome != "ok";
    let is_soft = |field: &str| soft.iter().any(|name| name == field);
    if let Some(mine) = got.get("outcome")
        && failed == (mine == "ok")
        && !is_soft("outcome")
    {
        found.push(difference("outcome", expect, got));
    }
    let soft_now = |field: &str| is_soft(field) || failed && ["text", "reasoning", "tool_calls", "finish_reason", "usage"].contains(&field);
    if !["http_error", "invalid_response", "error_in_200"].contains(&outcome) {
        let mut check = |field: &'static str, same: bool| {
            if got.get(field).is_some() && !same && !soft_now(field) {
                found.push(difference(field, expect, got));
            }
        };
        check("text", text(expect, "text") == text(got, "text"));
        check("refusal", text(expect, "refusal") == text(got, "refusal"));
        let blank = |value: &Value| text(value, "reasoning").split_whitespace().collect::<String>();
        check("reasoning", blank(expect) == blank(got));
        check("tool_calls", same_calls(expect, got));
        check("finish_reason", expect.get("finish_reason").unwrap_or(&Value::Null) == got.get("finish_reason").unwrap_or(&Value::Null));
        check("usage", same_usage(expect.get("usage"), got.get("usage")));
        check("opaque", kept(expect, got));
    }
    if let (Some(status), Some(mine)) = (pointer(expect, "/error/status"), pointer(got, "/error/status"))
        && status != mine
    {
        found.push(Difference { field: "error.status", expected: status.clone(), got: mine.clone() });
    }
    found
}

fn difference(field: &'static str, expect: &Value, got: &Value) -> Difference {
    let of = |value: &Value| value.get(field).cloned().unwrap_or_default();
    Difference { field, expected: of(expect), got: of(got) }
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

fn pointer<'a>(value: &'a Value, at: &str) -> Option<&'a Value> {
    value.pointer(at).filter(|value| !value.is_null())
}

fn list<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value.get(field).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn same_calls(expect: &Value, got: &Value) -> bool {
    let all: Vec<&Value> = list(expect, "tool_calls").iter().collect();
    let whole: Vec<&Value> = all.iter().copied().filter(|call| pointer(call, "/arguments_error").is_none()).collect();
    let mine = list(got, "tool_calls");
    let wanted = if mine.len() == all.len() {
        all
    } else if mine.len() == whole.len() {
        whole
    } else {
        return false;
    };
    let empty = |value: Option<&Value>| match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.is_empty(),
        Some(Value::String(text)) => text.is_empty(),
        Some(_) => false,
    };
    wanted.iter().zip(mine).all(|(wanted, mine)| {
        let arguments = |call: &Value| call.get("arguments").cloned();
        text(wanted, "name") == text(mine, "name")
            && (text(wanted, "id").is_empty() || text(wanted, "id") == text(mine, "id"))
            && (pointer(wanted, "/arguments_error").is_some()
                || arguments(wanted) == arguments(mine)
                || empty(wanted.get("arguments")) && empty(mine.get("arguments")))
    })
}

fn same_usage(expect: Option<&Value>, got: Option<&Value>) -> bool {
    let count = |usage: &Value, field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or(0);
    match (expect.filter(|usage| !usage.is_null()), got.filter(|usage| !usage.is_null())) {
        (None, None) => true,
        (None, Some(mine)) => count(mine, "input") == 0 && count(mine, "output") == 0,
        (Some(_), None) => false,
        (Some(wanted), Some(mine)) => {
            let fields: [(&str, &[&str]); 5] = [
                ("input", &["input", "input_total"]),
                ("output", &["output", "output_total"]),
                ("cached", &["cached"]),
                ("cache_write", &["cache_write"]),
                ("reasoning", &["reasoning"]),
            ];
            fields
                .iter()
                .all(|(field, either)| mine.get(field).is_none() || either.iter().any(|other| count(wanted, other) == count(mine, field)))
        }
    }
}

/// Whether every text that must go back unchanged is among those that were kept.
fn kept(expect: &Value, got: &Value) -> bool {
    let mine: Vec<String> = list(got, "opaque").iter().filter_map(Value::as_str).map(digest).collect();
    list(expect, "opaque").iter().all(|wanted| mine.iter().any(|mine| mine == text(wanted, "sha256_16")))
}

/// The first sixteen hexadecimal digits of a text's SHA-256.
pub(super) fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}
