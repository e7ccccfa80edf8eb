//! Tool schemas, made into what a provider takes.

use serde_json::{Map, Value, json};

/// A schema of arguments that every provider takes as an object: with a type, and with properties even if there are none.
pub(crate) fn object(schema: &Value) -> Value {
    let mut fields = schema.as_object().cloned().unwrap_or_else(Map::new);
    fields.entry("type").or_insert_with(|| json!("object"));
    fields.entry("properties").or_insert_with(|| json!({}));
    // Says nothing to a model, and some servers refuse it.
    fields.remove("$schema");
    Value::Object(fields)
}

/// The schema without references, so that it can stand inside another one.
pub(crate) fn inlined(schema: &Value) -> Value {
    let root = object(schema);
    inline(&root, &root, 0)
}

fn inline(schema: &Value, root: &Value, depth: usize) -> Value {
    match schema {
        _ if depth > DEPTH => json!({}),
        Value::Object(fields) => match fields.get("$ref").and_then(Value::as_str) {
            Some(path) => match path.strip_prefix('#').and_then(|path| root.pointer(path)) {
                Some(named) => inline(named, root, depth.saturating_add(1)),
                None => json!({}),
            },
            None => {
                let deeper = |(name, value): (&String, &Value)| (name.clone(), inline(value, root, depth.saturating_add(1)));
                Value::Object(fields.iter().filter(|(name, _)| !matches!(name.as_str(), "$defs" | "definitions")).map(deeper).collect())
            }
        },
        Value::Array(list) => list.iter().map(|value| inline(value, root, depth.saturating_add(1))).collect(),
        other => other.clone(),
    }
}

/// What Gemini takes: an OpenAPI schema without references. References are replaced by what they name, null becomes `nullable`, a constant
/// becomes an enumeration of one, and what it does not know is left out: a wider schema is better than a refused request, and arguments
/// are checked against the tool's own schema anyway.
pub(crate) fn gemini(schema: &Value) -> Value {
    let root = object(schema);
    let mut narrowed = narrow(&root, &root, 0);
    // An object without properties is refused, but for a tool without arguments no schema at all is right.
    if narrowed.get("properties").and_then(Value::as_object).is_none_or(Map::is_empty)
        && let Value::Object(fields) = &mut narrowed
    {
        fields.insert("properties".into(), json!({}));
    }
    narrowed
}

/// A schema that names itself ends here.
const DEPTH: usize = 24;

const KEPT: &[&str] = &[
    "title",
    "description",
    "format",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "pattern",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "required",
    "default",
    "propertyOrdering",
];

fn narrow(schema: &Value, root: &Value, depth: usize) -> Value {
    let Value::Object(fields) = schema else { return json!({"type": "object"}) };
    if depth > DEPTH {
        return json!({"type": "object"});
    }
    if let Some(named) = fields.get("$ref").and_then(Value::as_str).and_then(|path| root.pointer(path.strip_prefix('#')?)) {
        let mut inlined = narrow(named, root, depth.saturating_add(1));
        if let (Some(description), Value::Object(out)) = (fields.get("description"), &mut inlined) {
            out.insert("description".into(), description.clone());
        }
        return inlined;
    }
    let mut out = Map::new();
    for name in KEPT {
        if let Some(value) = fields.get(*name) {
            out.insert((*name).into(), value.clone());
        }
    }
    // Only these formats are known.
    if out
        .get("format")
        .and_then(Value::as_str)
        .is_some_and(|format| !matches!(format, "enum" | "date-time" | "int32" | "int64" | "float" | "double"))
    {
        out.remove("format");
    }
    let deeper = |value: &Value| narrow(value, root, depth.saturating_add(1));
    match fields.get("type") {
        Some(Value::String(kind)) => drop(out.insert("type".into(), kind.clone().into())),
        Some(Value::Array(kinds)) => {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            if kinds.contains(&"null") {
                out.insert("nullable".into(), true.into());
            }
            match kinds.iter().filter(|kind| **kind != "null").collect::<Vec<_>>().as_slice() {
                [kind] => drop(out.insert("type".into(), (**kind).into())),
                many => drop(out.insert("anyOf".into(), many.iter().map(|kind| json!({"type": kind})).collect())),
            }
        }
        _ => {}
    }
    let choices = fields.get("enum").and_then(Value::as_array).cloned().or_else(|| fields.get("const").map(|value| vec![value.clone()]));
    if let Some(choices) = choices {
        // Enumerations are of texts only.
        if choices.iter().all(Value::is_string) {
            out.insert("enum".into(), choices.into());
            out.entry("type").or_insert_with(|| "string".into());
        }
    }
    for name in ["anyOf", "oneOf"] {
        if let Some(Value::Array(variants)) = fields.get(name) {
            let (nulls, rest): (Vec<_>, Vec<_>) =
                variants.iter().partition(|variant| variant.get("type").and_then(Value::as_str) == Some("null"));
            if !nulls.is_empty() {
                out.insert("nullable".into(), true.into());
            }
            match rest.as_slice() {
                [] => {}
                [one] => {
                    if let Value::Object(inner) = deeper(one) {
                        for (name, value) in inner {
                            out.entry(name).or_insert(value);
                        }
                    }
                }
                many => drop(out.insert("anyOf".into(), many.iter().map(|variant| deeper(variant)).collect())),
            }
        }
    }
    if let Some(Value::Array(all)) = fields.get("allOf") {
        for part in all {
            if let Value::Object(inner) = deeper(part) {
                merge(&mut out, inner);
            }
        }
    }
    if let Some(Value::Object(properties)) = fields.get("properties") {
        let narrowed: Map<String, Value> = properties.iter().map(|(name, value)| (name.clone(), deeper(value))).collect();
        out.insert("properties".into(), narrowed.into());
    }
    match fields.get("items").or_else(|| fields.get("prefixItems").and_then(|items| items.get(0))) {
        Some(items) => drop(out.insert("items".into(), deeper(items))),
        // A list has to say of what.
        None if out.get("type").and_then(Value::as_str) == Some("array") => drop(out.insert("items".into(), json!({"type": "string"}))),
        None => {}
    }
    // A required property has to exist.
    if let Some(Value::Array(required)) = out.get("required") {
        let known =
            |name: &Value| name.as_str().is_some_and(|name| out.get("properties").and_then(|properties| properties.get(name)).is_some());
        let required: Vec<Value> = required.iter().filter(|name| known(name)).cloned().collect();
        if required.is_empty() {
            out.remove("required");
        } else {
            out.insert("required".into(), required.into());
        }
    }
    if !out.contains_key("type") && !out.contains_key("anyOf") {
        out.insert(
            "type".into(),
            if out.contains_key("items") {
                "array"
            } else if out.contains_key("properties") {
                "object"
            } else {
                "string"
            }
            .into(),
        );
    }
    Value::Object(out)
}

fn merge(into: &mut Map<String, Value>, more: Map<String, Value>) {
    for (name, value) in more {
        match (into.get_mut(&name), value) {
            (Some(Value::Object(before)), Value::Object(more)) => before.extend(more),
            (Some(Value::Array(before)), Value::Array(more)) => before.extend(more),
            (Some(_), _) => {}
            (None, value) => drop(into.insert(name, value)),
        }
    }
}

#[cfg(test)]
mod tests;
