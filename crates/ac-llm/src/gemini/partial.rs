//! Arguments that come as pieces with a path each (`$.recipe.steps[9]`).

use serde_json::{Map, Value};

/// Deeper is no argument of a tool.
const DEPTH: usize = 64;

/// One step of a path.
enum Step<'a> {
    Field(&'a str),
    Item(usize),
}

/// Sets what one piece says; text at the same place grows. A path that makes no sense changes nothing: a list grows by one at a time, so a
/// large index cannot make a large list.
pub(crate) fn apply(args: &mut Value, piece: &Value) {
    let Some(path) = piece.get("jsonPath").and_then(Value::as_str).and_then(steps) else { return };
    let value = ["stringValue", "numberValue", "boolValue"].iter().find_map(|field| piece.get(*field)).cloned().unwrap_or(Value::Null);
    let Some(place) = place(args, &path) else { return };
    match (place, value) {
        (Value::String(text), Value::String(more)) => text.push_str(&more),
        (place, value) => *place = value,
    }
}

fn place<'v>(args: &'v mut Value, path: &[Step<'_>]) -> Option<&'v mut Value> {
    let mut place = args;
    for step in path {
        place = match step {
            Step::Field(name) => {
                if place.is_null() {
                    *place = Value::Object(Map::new());
                }
                place.as_object_mut()?.entry(*name).or_insert(Value::Null)
            }
            Step::Item(at) => {
                if place.is_null() {
                    *place = Value::Array(vec![]);
                }
                let list = place.as_array_mut()?;
                if *at == list.len() {
                    list.push(Value::Null);
                }
                list.get_mut(*at)?
            }
        };
    }
    Some(place)
}

/// `$.a.b[0]['c d']`.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = vec![];
    while !rest.is_empty() && steps.len() < DEPTH {
        if let Some(after) = rest.strip_prefix('.') {
            let end = after.find(['.', '[']).unwrap_or(after.len());
            let (name, tail) = after.split_at_checked(end)?;
            steps.push(Step::Field(name));
            rest = tail;
        } else {
            let inside = rest.strip_prefix('[')?;
            if let Some(quote) = inside.chars().next().filter(|c| matches!(c, '\'' | '"')) {
                let (name, tail) = inside.get(1..)?.split_once(quote)?;
                steps.push(Step::Field(name));
                rest = tail.strip_prefix(']')?;
            } else {
                let (number, tail) = inside.split_once(']')?;
                steps.push(Step::Item(number.parse().ok()?));
                rest = tail;
            }
        }
    }
    rest.is_empty().then_some(steps)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn pieces_build_the_arguments_and_nonsense_builds_nothing() {
        let mut args = json!({});
        for piece in [
            json!({"jsonPath": "$.name", "stringValue": "La"}),
            json!({"jsonPath": "$.name", "stringValue": "sagna"}),
            json!({"jsonPath": "$.list[0].amount", "numberValue": 2}),
            json!({"jsonPath": "$.list[1]['a b']", "boolValue": true}),
            json!({"jsonPath": "$.none", "nullValue": "NULL_VALUE"}),
            json!({"jsonPath": "$.list[999999999999].x", "stringValue": "y"}),
            json!({"jsonPath": "$.name.x", "stringValue": "y"}),
            json!({"jsonPath": "no path", "stringValue": "y"}),
            json!({"stringValue": "y"}),
        ] {
            apply(&mut args, &piece);
        }
        assert_eq!(args, json!({"name": "Lasagna", "list": [{"amount": 2}, {"a b": true}], "none": null}));
        let deep = format!("$.{}", "a.".repeat(1000));
        apply(&mut args, &json!({"jsonPath": deep, "stringValue": "y"}));
        assert!(args.get("a").is_none());
    }
}
