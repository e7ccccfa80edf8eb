//! Lists, as a person reads them.

use std::io::{self, Write};

use serde_json::Value;

use crate::{
    paint::{Painter, Shown},
    safe::Line,
};

/// Shows a list that an op answered with.
///
/// # Errors
/// When nobody reads any more.
pub(crate) async fn show<W: Write>(op: &str, rows: &Value, painter: &mut Painter<W>) -> io::Result<()> {
    let rows = rows.as_array().map(Vec::as_slice).unwrap_or_default();
    let nothing = match op {
        "threads" => "No conversations yet.",
        "pending" => "Nothing waits for you.",
        "rules" => "There are no rules for single calls.",
        _ => "Nothing was allowed for longer than once.",
    };
    if rows.is_empty() {
        return painter.plain(nothing);
    }
    for row in rows {
        let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
        match op {
            "threads" => {
                let waiting = row.get("pending").and_then(Value::as_u64).unwrap_or(0);
                let waiting = if waiting > 0 { format!("  ({waiting} waiting)") } else { String::new() };
                let title = if text("title").is_empty() { "(no title)" } else { text("title") };
                painter.plain(&format!("{}  {}  {}{waiting}", Line(text("id"), 80), minute(text("updatedAt")), Line(title, 100)))?;
            }
            "pending" => {
                painter.waiting(Shown(row)).await?;
                painter.how(Shown(row))?;
                painter.plain("")?;
            }
            "rules" => {
                let (policy, pattern) = (Line(text("policy"), 10).to_string(), Line(text("pattern"), 200).to_string());
                match row.get("thread").and_then(Value::as_str) {
                    Some(thread) => {
                        painter.plain(&format!("{policy}  {pattern}  in {} ({})", Line(text("title"), 60), Line(thread, 80)))?
                    }
                    None => painter.plain(&format!("{policy}  {pattern}  in the settings"))?,
                }
            }
            _ => {
                let allows = row.get("allows").unwrap_or(&Value::Null);
                let (kind, name) = match (allows.get("tool"), allows.get("category")) {
                    (Some(tool), _) => ("tool", tool),
                    (_, Some(category)) => ("category", category),
                    _ => ("", &Value::Null),
                };
                let title = Line(text("title"), 60).to_string();
                let name = Line(name.as_str().unwrap_or_default(), 60).to_string();
                painter.plain(&format!("{}  {kind} {name}  in {title} ({})", Line(text("id"), 80), Line(text("thread"), 80)))?;
            }
        }
    }
    Ok(())
}

/// A time to the minute.
fn minute(at: &str) -> String {
    at.get(..16).unwrap_or(at).replace('T', " ")
}
