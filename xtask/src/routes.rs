//! The table of routes, from the description that the server makes of itself, and which status goes with which code, from its sources.
//! A test of the server holds `openapi.json` to the table that serves.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fmt::Write as _,
};

use serde_json::Value;

use crate::{page, source::SourceFile};

/// What every path of a session begins with; written once above the table.
const SESSION: &str = "/api/agent-controller/{controllerId}/sessions/{resourceId}";

/// One row for each route.
pub(crate) fn table(document: &str) -> Result<String, Box<dyn Error>> {
    let document: Value = serde_json::from_str(document)?;
    let (mut general, mut session) = (String::new(), String::new());
    for (path, methods) in document.get("paths").and_then(Value::as_object).into_iter().flatten() {
        for (method, operation) in methods.as_object().into_iter().flatten() {
            let (out, shown) = match path.strip_prefix(SESSION) {
                Some(rest) => (&mut session, format!("…{rest}")),
                None => (&mut general, path.clone()),
            };
            let says = operation.get("summary").and_then(Value::as_str).unwrap_or_default();
            let method = method.to_ascii_uppercase();
            let taken = [query(operation), body(&document, operation)].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
            writeln!(out, "| `{method} {shown}` | {} | {} | {says} |", taken.join("; "), answer(operation)).ok();
        }
    }
    let head = "| route | takes | answers | what |\n|---|---|---|---|\n";
    Ok(format!("{head}{general}\n`…` is `{SESSION}`; each of these takes `?sessionScope=` as well.\n\n{head}{session}"))
}

/// The parameters that are not in the path, but for the one that every route of a session has.
fn query(operation: &Value) -> String {
    let parameters = operation.get("parameters").and_then(Value::as_array).into_iter().flatten();
    let names = parameters.filter_map(|parameter| {
        let name = parameter.get("name")?.as_str()?;
        match parameter.get("in")?.as_str()? {
            "query" if name != "sessionScope" => Some(format!("`?{name}=`")),
            "header" => Some(format!("`{name}:`")),
            _ => None,
        }
    });
    names.collect::<Vec<_>>().join(", ")
}

fn body(document: &Value, operation: &Value) -> String {
    let Some(schema) = operation.pointer("/requestBody/content/application~1json/schema") else { return String::new() };
    let required: BTreeSet<_> = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    // What must be there comes first.
    let mut fields: Vec<_> = fields.map(|(name, of)| (!required.contains(name.as_str()), name, kind(document, of))).collect();
    fields.sort();
    fields.into_iter().map(|(may, name, kind)| format!("`{name}{}`{kind}", if may { "?" } else { "" })).collect::<Vec<_>>().join(", ")
}

/// In a word, where the name does not say it: text needs none.
fn kind(document: &Value, schema: &Value) -> String {
    let schema = schema.get("$ref").and_then(Value::as_str).and_then(|at| document.pointer(at.trim_start_matches('#'))).unwrap_or(schema);
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        let words: Vec<_> = words.iter().filter_map(Value::as_str).map(|word| format!("`{word}`")).collect();
        return format!(" ({})", words.join(", "));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => String::new(),
        Some(kind) => format!(" ({kind})"),
        None => " (any value)".to_owned(),
    }
}

fn answer(operation: &Value) -> String {
    let responses = operation.get("responses").and_then(Value::as_object).into_iter().flatten();
    let good = responses.filter(|(status, _)| status.starts_with('2'));
    let told = good.map(|(status, response)| {
        let content = response.get("content").and_then(Value::as_object).and_then(|content| content.keys().next());
        format!("{status} `{}`", content.map_or("nothing", String::as_str))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// Which codes come with which status.
pub(crate) fn refusals(files: &[SourceFile]) -> Result<String, Box<dyn Error>> {
    let mut codes: BTreeMap<u16, BTreeSet<String>> = BTreeMap::new();
    let server = files.iter().filter(|file| file.is_rust() && !file.is_test() && file.path.starts_with("crates/ac-server/src/"));
    for file in server {
        for (call, fixed) in [("StatusCode::", None), ("not_found(\"", Some("NOT_FOUND")), ("forbidden(\"", Some("FORBIDDEN"))] {
            for made in file.text.split(call).skip(1) {
                let (name, rest) = match fixed {
                    Some(name) => (name, Some(made)),
                    None => made.split_once(", ").map_or((made, None), |(name, rest)| (name, rest.strip_prefix('"'))),
                };
                if let Some(code) = rest.and_then(|rest| rest.split('"').next()).filter(|code| page::is_code(code)) {
                    codes.entry(status(name)?).or_default().insert(code.to_owned());
                }
            }
        }
    }
    for (name, kinds) in mapped(files) {
        codes.entry(status(&name)?).or_default().extend(kinds);
    }
    let mut out = String::from("| status | codes |\n|---|---|\n");
    for (status, codes) in codes {
        let more = if status == 500 { ", and every code that is not named here" } else { "" };
        writeln!(out, "| {status} | {}{more} |", codes.iter().map(|code| format!("`{code}`")).collect::<Vec<_>>().join(", ")).ok();
    }
    Ok(out)
}

/// What the server makes of an error of a controller: the arms of its one match, with the codes of the kinds.
fn mapped(files: &[SourceFile]) -> Vec<(String, Vec<String>)> {
    let kinds = page::kinds(files);
    let failure = files.iter().find(|file| file.path == "crates/ac-server/src/failure.rs").map_or("", |file| file.text.as_str());
    let arms =
        failure.split_once("let status = match error.kind() {").and_then(|(_, rest)| rest.split_once("};")).map_or("", |(arms, _)| arms);
    // An arm with and without a block look the same.
    let arms = arms.replace(['{', '}'], " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let mut out = Vec::new();
    let mut pattern = "";
    for piece in arms.split("=> StatusCode::") {
        let (name, next) = piece.split_at_checked(piece.find(|c| !word(c)).unwrap_or(piece.len())).unwrap_or((piece, ""));
        if !pattern.is_empty() {
            let of = |kind: &str| {
                let (of, variant) = kind.split_once("::")?;
                let of = if of == "K" { "ControllerErrorKind" } else { of };
                kinds.get(&(of, variant)).cloned()
            };
            out.push((name.to_owned(), pattern.split(|c| !word(c) && c != ':').filter_map(of).collect::<Vec<_>>()));
        }
        pattern = if pattern.is_empty() && out.is_empty() { piece } else { next };
    }
    out
}

fn status(name: &str) -> Result<u16, Box<dyn Error>> {
    Ok(match name {
        "BAD_REQUEST" => 400,
        "UNAUTHORIZED" => 401,
        "FORBIDDEN" => 403,
        "NOT_FOUND" => 404,
        "REQUEST_TIMEOUT" => 408,
        "CONFLICT" => 409,
        "PAYLOAD_TOO_LARGE" => 413,
        "MISDIRECTED_REQUEST" => 421,
        "UNPROCESSABLE_ENTITY" => 422,
        "TOO_MANY_REQUESTS" => 429,
        "INTERNAL_SERVER_ERROR" => 500,
        "SERVICE_UNAVAILABLE" => 503,
        "GATEWAY_TIMEOUT" => 504,
        other => return Err(format!("xtask/src/routes.rs does not know the number of StatusCode::{other}").into()),
    })
}

#[cfg(test)]
mod tests;
