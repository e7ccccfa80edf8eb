//! What a body must look like: checked, and described, from one table.

use serde_json::{Map, Value, json};

use crate::failure::Issue;

/// The most files that a message may bring (WIRE 2.1).
const MOST_FILES: usize = 20;
/// The longest content of one file, in characters as it is sent.
const LONGEST_FILE: usize = 14 * 1024 * 1024;
/// The longest content of all files together.
const LONGEST_FILES: usize = 28 * 1024 * 1024;
/// The longest id, title, name or tag, in bytes.
pub(crate) const LONGEST_NAME: usize = 1024;

/// The longest objective, in bytes.
const LONGEST_WORDS: usize = 16 * 1024;

/// A field of a body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
}

/// What a field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Kind {
    /// Text of any length.
    Text,
    /// An id, a title, a name.
    Name,
    /// Words, at most 16 KiB.
    Filled,
    /// Yes or no.
    Flag,
    /// Anything but nothing.
    Any,
    /// An object.
    Record,
    /// An object whose values are text.
    TextRecord,
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// A whole number from this on.
    Count(u64),
    /// A list of names.
    Names,
    /// Attached files.
    Files,
}

pub(crate) const fn need(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: true }
}

pub(crate) const fn may(name: &'static str, kind: Kind) -> Field {
    Field { name, kind, required: false }
}

/// What does not fit. An absent body is an empty one where every field is optional (WIRE 1.2).
pub(crate) fn check(fields: &[Field], body: Option<&Value>) -> Vec<Issue> {
    let object = match body {
        Some(Value::Object(object)) => object,
        None if fields.iter().all(|field| !field.required) => return vec![],
        other => return vec![expected("root", "object", other)],
    };
    let mut issues = vec![];
    for field in fields {
        match object.get(field.name) {
            None if !field.required => {}
            None if matches!(field.kind, Kind::Any) => {
                issues.push(Issue::new(field.name, "Invalid input: expected nonoptional, received undefined"));
            }
            value => check_value(field.name, field.kind, value, &mut issues),
        }
    }
    issues
}

fn check_value(name: &str, kind: Kind, value: Option<&Value>, issues: &mut Vec<Issue>) {
    match (kind, value) {
        (Kind::Any, Some(_))
        | (Kind::Text, Some(Value::String(_)))
        | (Kind::Flag, Some(Value::Bool(_)))
        | (Kind::Record, Some(Value::Object(_))) => {}
        (Kind::Name, Some(Value::String(text))) => check_length(name, text, issues),
        (Kind::Filled, Some(Value::String(text))) => {
            if text.trim().is_empty() {
                issues.push(Issue::new(name, "Too small: expected string to have >=1 characters"));
            } else if text.len() > LONGEST_WORDS {
                issues.push(Issue::new(name, format!("Too big: expected string to have <={LONGEST_WORDS} characters")));
            }
        }
        (Kind::Text | Kind::Name | Kind::Filled, other) => issues.push(expected(name, "string", other)),
        (Kind::Flag, other) => issues.push(expected(name, "boolean", other)),
        (Kind::TextRecord, Some(Value::Object(map))) => {
            for (key, value) in map {
                let field = format!("{name}.{key}");
                match value {
                    Value::String(text) => check_length(&field, text, issues),
                    other => issues.push(expected(&field, "string", Some(other))),
                }
                check_length(&format!("{name}.{}", key.chars().take(64).collect::<String>()), key, issues);
            }
            if map.len() > 64 {
                issues.push(Issue::new(name, "Too big: expected record to have <=64 keys"));
            }
        }
        (Kind::Record | Kind::TextRecord, other) => issues.push(expected(name, "record", other)),
        (Kind::OneOf(words), value) => {
            if !value.and_then(Value::as_str).is_some_and(|word| words.contains(&word)) {
                let words: Vec<_> = words.iter().map(|word| format!("\"{word}\"")).collect();
                issues.push(Issue::new(name, format!("Invalid option: expected one of {}", words.join("|"))));
            }
        }
        (Kind::Count(least), Some(Value::Number(number))) => match number.as_u64() {
            Some(count) if count >= least => {}
            None if number.as_f64().is_some_and(|number| number.fract() != 0.0) => {
                issues.push(Issue::new(name, "Invalid input: expected int, received number"));
            }
            _ => issues.push(Issue::new(name, format!("Too small: expected number to be >={least}"))),
        },
        (Kind::Count(_), other) => issues.push(expected(name, "number", other)),
        (Kind::Names, Some(Value::Array(items))) => {
            for (at, item) in items.iter().enumerate() {
                check_value(&format!("{name}.{at}"), Kind::Name, Some(item), issues);
            }
        }
        (Kind::Files, Some(Value::Array(files))) => check_files(name, files, issues),
        (Kind::Names | Kind::Files, other) => issues.push(expected(name, "array", other)),
        (Kind::Any, None) => {}
    }
}

fn check_length(name: &str, text: &str, issues: &mut Vec<Issue>) {
    if text.len() > LONGEST_NAME {
        issues.push(Issue::new(name, format!("Too big: expected string to have <={LONGEST_NAME} characters")));
    }
}

const FILE: [Field; 3] = [need("data", Kind::Text), need("mediaType", Kind::Name), may("filename", Kind::Name)];

fn check_files(name: &str, files: &[Value], issues: &mut Vec<Issue>) {
    if files.len() > MOST_FILES {
        issues.push(Issue::new(name, format!("Too big: expected array to have <={MOST_FILES} items")));
        return;
    }
    let mut sum = 0;
    for (at, file) in files.iter().enumerate() {
        let inner = check(&FILE, Some(file));
        issues.extend(inner.into_iter().map(|issue| match issue.field.as_str() {
            "root" => Issue::new(format!("{name}.{at}"), issue.message),
            field => Issue::new(format!("{name}.{at}.{field}"), issue.message),
        }));
        let length = file.get("data").and_then(Value::as_str).map_or(0, str::len);
        if length > LONGEST_FILE {
            let message = format!("Too big: expected string to have <={LONGEST_FILE} characters");
            issues.push(Issue::new(format!("{name}.{at}.data"), message));
        }
        sum += length;
    }
    if sum > LONGEST_FILES {
        issues.push(Issue::new(name, format!("Too big: expected all files to have <={LONGEST_FILES} characters")));
    }
}

/// The words of the reference's validator.
pub(crate) fn expected(field: &str, what: &str, found: Option<&Value>) -> Issue {
    let found = match found {
        None => "undefined",
        Some(Value::Null) => "null",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Array(_)) => "array",
        Some(Value::Object(_)) => "object",
    };
    Issue::new(field, format!("Invalid input: expected {what}, received {found}"))
}

/// The same table as JSON Schema.
pub(crate) fn schema(fields: &[Field]) -> Value {
    let properties: Map<_, _> = fields.iter().map(|field| (field.name.to_owned(), kind_schema(field.kind))).collect();
    let required: Vec<_> = fields.iter().filter(|field| field.required).map(|field| field.name).collect();
    let mut out = json!({ "type": "object", "properties": properties });
    if !required.is_empty()
        && let Value::Object(map) = &mut out
    {
        map.insert("required".into(), json!(required));
    }
    out
}

fn kind_schema(kind: Kind) -> Value {
    match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Name => json!({ "type": "string", "maxLength": LONGEST_NAME }),
        Kind::Filled => json!({ "type": "string", "minLength": 1, "maxLength": LONGEST_WORDS }),
        Kind::Count(least) => json!({ "type": "integer", "minimum": least }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Any => json!({}),
        Kind::Record => json!({ "type": "object", "additionalProperties": true }),
        Kind::TextRecord => {
            json!({ "type": "object", "additionalProperties": { "type": "string", "maxLength": LONGEST_NAME }, "maxProperties": 64 })
        }
        Kind::OneOf(words) => json!({ "type": "string", "enum": words }),
        Kind::Names => json!({ "type": "array", "items": { "type": "string", "maxLength": LONGEST_NAME } }),
        Kind::Files => json!({ "type": "array", "maxItems": MOST_FILES, "items": schema(&FILE) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn issues(fields: &[Field], body: Value) -> Vec<String> {
        check(fields, Some(&body)).into_iter().map(|issue| format!("{}: {}", issue.field, issue.message)).collect()
    }

    #[test]
    fn a_body_that_does_not_fit_is_told_in_the_words_of_the_reference() {
        let fields = [need("message", Kind::Text), may("files", Kind::Files), may("policy", Kind::OneOf(&["allow", "ask"]))];
        assert_eq!(issues(&fields, json!({})), ["message: Invalid input: expected string, received undefined"]);
        assert_eq!(issues(&fields, json!({ "message": 1 })), ["message: Invalid input: expected string, received number"]);
        assert_eq!(
            issues(&fields, json!({ "message": "x", "files": [{ "data": "eA==" }], "policy": "maybe" })),
            [
                "files.0.mediaType: Invalid input: expected string, received undefined",
                "policy: Invalid option: expected one of \"allow\"|\"ask\""
            ]
        );
        let many: Vec<_> = (0..21).map(|_| json!({ "data": "", "mediaType": "image/png" })).collect();
        assert_eq!(issues(&fields, json!({ "message": "x", "files": many })), ["files: Too big: expected array to have <=20 items"]);
        assert_eq!(check(&fields, None), [Issue::new("root", "Invalid input: expected object, received undefined")]);
        assert_eq!(check(&[may("title", Kind::Name)], None), []);
    }

    #[test]
    fn a_null_is_a_value_and_not_an_absence() {
        assert_eq!(issues(&[may("title", Kind::Name)], json!({ "title": null })), ["title: Invalid input: expected string, received null"]);
        assert_eq!(issues(&[need("resumeData", Kind::Any)], json!({ "resumeData": null })), Vec::<String>::new());
        assert_eq!(
            issues(&[need("resumeData", Kind::Any)], json!({})),
            ["resumeData: Invalid input: expected nonoptional, received undefined"]
        );
    }
}
