//! A call that a model wrote as text.

use ac_core::message::ToolCallPart;
use serde_json::Value;

/// What may begin a call.
const MARKS: [&str; 3] = ["```", "<tool_call>", "{"];

/// Takes out of `held` what surely belongs to no call: everything before the first mark, but for a piece of one at the end.
pub(super) fn free_of_calls(held: &mut String) -> String {
    let first = MARKS.iter().filter_map(|mark| held.find(mark)).min();
    let free = first.unwrap_or_else(|| {
        let piece = |mark: &&str| (1..mark.len()).rev().find(|n| mark.get(..*n).is_some_and(|start| held.ends_with(start)));
        held.len().saturating_sub(MARKS.iter().filter_map(piece).max().unwrap_or(0))
    });
    // Blanks before a call are not worth telling.
    let free = held.get(..free).map_or(0, |text| text.trim_end().len());
    let rest = held.split_off(free);
    std::mem::replace(held, rest)
}

/// The one well-formed call in a text, and the text before it. `None` if there is none, if there are several, if it names a tool that was
/// not offered, or if more text follows it: then it is an example or a thought, and nobody asked for it to be done.
pub(super) fn single_call<'t>(text: &'t str, offered: &dyn Fn(&str) -> bool) -> Option<(&'t str, ToolCallPart)> {
    let at = MARKS.iter().filter_map(|mark| text.find(mark)).min()?;
    let (before, mut rest) = text.split_at_checked(at)?;
    let mut close = "";
    if let Some(fenced) = rest.strip_prefix("```") {
        let (label, inside) = fenced.split_once('\n')?;
        if !matches!(label.trim(), "" | "json" | "tool_call" | "tool") {
            return None;
        }
        (rest, close) = (inside, "```");
    } else if let Some(tagged) = rest.strip_prefix("<tool_call>") {
        (rest, close) = (tagged, "</tool_call>");
    }
    let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let value = values.next()?.ok()?;
    let after = rest.get(values.byte_offset()..)?.trim();
    // A model that stops right after its call may leave the closing mark out.
    if !after.strip_prefix(close).unwrap_or(after).trim().is_empty() {
        return None;
    }
    Some((before.trim_end(), call(&value, offered)?))
}

/// A call in one of the forms that models write: a name and an object of arguments.
pub(super) fn call(value: &Value, offered: &dyn Fn(&str) -> bool) -> Option<ToolCallPart> {
    let fields = value.as_object()?;
    let inner = fields.get("function").and_then(Value::as_object).unwrap_or(fields);
    let name = ["name", "action", "tool", "function", "tool_name"].iter().find_map(|field| inner.get(*field)?.as_str())?;
    if !offered(name) {
        return None;
    }
    let args = match ["arguments", "parameters", "args", "input"].iter().find_map(|field| inner.get(*field)) {
        Some(args @ Value::Object(_)) => args.clone(),
        Some(Value::String(text)) => serde_json::from_str(text).ok().filter(Value::is_object)?,
        Some(Value::Null) | None => Value::Object(serde_json::Map::new()),
        Some(_) => return None,
    };
    Some(ToolCallPart::new("", name, args))
}
