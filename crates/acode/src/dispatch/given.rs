use clap::ValueEnum as _;
use serde_json::Value;

use crate::{args::Approve, exit::Failure};

/// What came with an op. Anything may come over the socket, and what is not understood must not be taken for a decision.
pub(super) struct Given<'a>(pub(super) &'a Value);

impl<'a> Given<'a> {
    /// What is there; `null` is nothing.
    fn get(&self, name: &str) -> Option<&'a Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn text(&self, name: &str) -> Result<Option<&'a str>, Failure> {
        self.get(name).map(|value| value.as_str().ok_or_else(|| wrong(name, "a text"))).transpose()
    }

    /// The name of what is meant.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn id(&self) -> Result<&'a str, Failure> {
        self.text("id")?.ok_or_else(|| Failure::usage("say which: the request has no `id`"))
    }

    /// Yes or no.
    ///
    /// # Errors
    /// When it is something else.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Failure> {
        self.get(name).map(|value| value.as_bool().ok_or_else(|| wrong(name, "true or false"))).transpose()
    }

    /// The decision on a plan.
    ///
    /// # Errors
    /// When there is none.
    pub(super) fn approves(&self) -> Result<bool, Failure> {
        self.flag("approve")?.ok_or_else(|| wrong("approve", "true or false"))
    }

    /// What is answered.
    ///
    /// # Errors
    /// When that is no list of texts, or an empty one.
    pub(super) fn values(&self) -> Result<Vec<String>, Failure> {
        let texts = || wrong("values", "a list of one or more texts");
        let values = self.get("values").and_then(Value::as_array).filter(|values| !values.is_empty()).ok_or_else(texts)?;
        values.iter().map(|value| value.as_str().map(str::to_owned).ok_or_else(texts)).collect()
    }

    /// Who decides what asks next.
    ///
    /// # Errors
    /// When there is no such mode.
    pub(super) fn mode(&self) -> Result<Approve, Failure> {
        match self.text("mode")? {
            None => Ok(Approve::Ask),
            Some(mode) => Approve::from_str(mode, false).map_err(|_| wrong("mode", "ask, edits, all or none")),
        }
    }
}

fn wrong(name: &str, right: &str) -> Failure {
    Failure::usage(format!("`{name}` must be {right}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_understood_is_no_decision() {
        let usage = |failure: Failure| (failure.code, failure.message);
        for args in [json!({}), json!({"approve": null}), json!({"approve": "yes"}), json!({"approve": 1})] {
            assert_eq!(usage(Given(&args).approves().unwrap_err()).0, "usage", "{args}");
        }
        for args in [json!({}), json!({"values": "1"}), json!({"values": [1]}), json!({"values": []})] {
            assert!(usage(Given(&args).values().unwrap_err()).1.contains("`values`"), "{args}");
        }
        for args in [json!({"mode": "everything"}), json!({"mode": ""}), json!({"mode": "ALL"})] {
            assert!(usage(Given(&args).mode().unwrap_err()).1.contains("edits"), "{args}");
        }
        assert!(Given(&json!({"always": "false"})).flag("always").is_err());
        assert!(Given(&json!({"reason": 5})).text("reason").is_err() && Given(&json!({"mode": true})).mode().is_err());
        let good = json!({"id": "c", "values": ["a", "b"], "approve": false, "mode": "none", "reason": null});
        let given = Given(&good);
        assert_eq!((given.id().unwrap(), given.values().unwrap().len(), given.approves().unwrap()), ("c", 2, false));
        assert_eq!((given.mode().unwrap(), given.text("reason").unwrap()), (Approve::None, None));
    }
}
