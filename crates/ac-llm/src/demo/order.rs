use serde_json::Value;

/// A message that is nothing but a call: the name of a tool, and its arguments as a JSON object.
pub(super) fn read(message: &str) -> Option<(&str, Value)> {
    let (name, rest) = message.trim().split_once('{')?;
    let args: Value = serde_json::from_str(&format!("{{{rest}")).ok()?;
    let name = name.trim();
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "_-".contains(c));
    is_name.then_some((name, args))
}
