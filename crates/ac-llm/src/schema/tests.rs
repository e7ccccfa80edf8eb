use serde_json::json;

use super::{gemini, object};

// B-111
#[test]
fn an_object_schema_always_has_properties() {
    assert_eq!(object(&json!({"type": "object"})), json!({"type": "object", "properties": {}}));
    assert_eq!(object(&json!(null)), json!({"type": "object", "properties": {}}));
    assert_eq!(object(&json!({"$schema": "x", "properties": {"a": {}}})), json!({"type": "object", "properties": {"a": {}}}));
    assert_eq!(gemini(&json!({})), json!({"type": "object", "properties": {}}));
}

#[test]
fn a_schema_is_narrowed_to_what_gemini_takes() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "city": {"$ref": "#/$defs/City", "description": "where"},
            "note": {"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]},
            "mode": {"const": "fast"},
            "level": {"enum": [1, 2]},
            "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            "when": {"type": ["string", "null"], "format": "uri"},
            "list": {"type": "array"},
            "open": {},
            "tree": {"$ref": "#/$defs/Tree"},
        },
        "required": ["city", "gone"],
        "$defs": {
            "City": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"], "additionalProperties": false},
            "Tree": {"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}}},
        },
    });
    let narrowed = gemini(&schema);
    assert_eq!(
        narrowed["properties"]["city"],
        json!({"type": "object", "description": "where", "properties": {"name": {"type": "string"}}, "required": ["name"]})
    );
    assert_eq!(narrowed["properties"]["note"], json!({"type": "string", "minLength": 1, "nullable": true}));
    assert_eq!(narrowed["properties"]["mode"], json!({"type": "string", "enum": ["fast"]}));
    assert_eq!(narrowed["properties"]["either"], json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
    assert_eq!(narrowed["properties"]["when"], json!({"type": "string", "nullable": true}));
    assert_eq!(narrowed["properties"]["list"], json!({"type": "array", "items": {"type": "string"}}));
    assert_eq!(narrowed["properties"]["open"], json!({"type": "string"}));
    assert_eq!(narrowed["required"], json!(["city"]));
    let text = narrowed.to_string();
    for refused in ["$ref", "$defs", "$schema", "additionalProperties", "oneOf", "const"] {
        assert!(!text.contains(refused), "{refused} in {text}");
    }
}
