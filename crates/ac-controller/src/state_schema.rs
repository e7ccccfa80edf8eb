use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::{ControllerError, ControllerErrorKind};

/// What the state of a session must look like: a JSON Schema of an object, checked at every change of the state as a whole (SPEC A-1, A-3).
///
/// The `default` of each property is its value at the beginning, unless the initial state has another.
///
/// ```
/// use ac_controller::StateSchema;
/// use serde_json::json;
///
/// let schema = StateSchema::new(json!({ "type": "object", "properties": { "count": { "type": "integer", "default": 0 } } }));
/// # let _ = schema;
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct StateSchema {
    schema: Value,
    strip: bool,
}

impl StateSchema {
    /// By a JSON Schema. It is read when the controller is built, and a controller whose schema is none is not built.
    pub fn new(schema: Value) -> Self {
        Self { schema, strip: false }
    }

    /// Keys that the schema does not name are left out of the state instead of being judged.
    pub fn strip_unknown(mut self) -> Self {
        self.strip = true;
        self
    }

    pub(crate) fn compile(self) -> Result<CheckedState, ControllerError> {
        let invalid = |why: String| ControllerError::new(ControllerErrorKind::InvalidSchema, format!("the schema of the state {why}"));
        let validator = jsonschema::validator_for(&self.schema).map_err(|error| invalid(format!("is no JSON Schema: {error}")))?;
        let properties = self.schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
        let defaults = properties.iter().filter_map(|(key, schema)| Some((key.clone(), schema.get("default")?.clone()))).collect();
        let known = self.strip.then(|| properties.keys().cloned().collect());
        Ok(CheckedState { validator, defaults, known })
    }
}

/// A schema that was read.
#[derive(Debug)]
pub(crate) struct CheckedState {
    validator: jsonschema::Validator,
    defaults: Map<String, Value>,
    known: Option<HashSet<String>>,
}

impl CheckedState {
    /// What the state begins with.
    pub(crate) fn initial(&self, initial: Map<String, Value>) -> Result<Map<String, Value>, ControllerError> {
        let mut state = self.defaults.clone();
        state.extend(initial);
        self.check(state)
    }

    /// The state, without what is stripped, if it fits.
    pub(crate) fn check(&self, mut state: Map<String, Value>) -> Result<Map<String, Value>, ControllerError> {
        if let Some(known) = &self.known {
            state.retain(|key, _| known.contains(key));
        }
        let value = Value::Object(state);
        let mut reasons: Vec<String> = self
            .validator
            .iter_errors(&value)
            .take(5)
            .map(|error| {
                let place = error.instance_path().to_string();
                // What the state holds may be anybody's secret: the reason names the place and the rule, not the value.
                let rule = error.schema_path().to_string();
                if place.is_empty() { format!("the state breaks {rule}") } else { format!("{place} breaks {rule}") }
            })
            .collect();
        reasons.dedup();
        match (value, reasons.is_empty()) {
            (Value::Object(state), true) => Ok(state),
            _ => Err(ControllerError::new(ControllerErrorKind::InvalidState, format!("Invalid state update: {}", reasons.join("; ")))),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    fn counter() -> StateSchema {
        StateSchema::new(json!({
            "type": "object",
            "properties": { "count": { "type": "number", "default": 0 }, "name": { "type": "string" } },
            "additionalProperties": false
        }))
    }

    #[test]
    fn a_state_begins_with_the_defaults_and_must_fit() {
        let checked = counter().compile().unwrap();
        assert_eq!(checked.initial(Map::new()).unwrap(), map(json!({ "count": 0 })));
        assert_eq!(checked.initial(map(json!({ "count": 3 }))).unwrap(), map(json!({ "count": 3 })));
        let error = checked.check(map(json!({ "count": "hunter2" }))).unwrap_err();
        assert_eq!(error.code(), "state.invalid");
        assert!(error.to_string().contains("/count") && !error.to_string().contains("hunter2"), "{error}");
        assert!(checked.check(map(json!({ "other": 1 }))).is_err());
        let stripping = counter().strip_unknown().compile().unwrap();
        assert_eq!(stripping.check(map(json!({ "count": 5, "other": 1 }))).unwrap(), map(json!({ "count": 5 })));
    }

    #[test]
    fn a_schema_that_is_none_is_refused() {
        assert_eq!(StateSchema::new(json!({ "type": 7 })).compile().unwrap_err().code(), "config.invalid_schema");
    }
}
