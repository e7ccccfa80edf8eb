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
