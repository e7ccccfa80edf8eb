//! Results that are longer than a model should read: head and tail are kept, and what is missing is told.
//!
//! A tool knows best what matters in its result and cuts it itself; this is for those that do not, whoever wrote them. One result that
//! fills the model's context would end the thread for good.

use ac_core::{Part, ToolOutput};
use serde_json::Value;

/// The result with at most about `most` bytes of text, for the model and for who is shown it.
pub(crate) fn cap(mut output: ToolOutput, most: usize) -> ToolOutput {
    if let Some(parts) = &output.model
        && parts.iter().filter_map(Part::as_text).map(str::len).sum::<usize>() > most
    {
        let text = shorten(&output.model_text(), most);
        let others = output.model.take().unwrap_or_default().into_iter().filter(|part| part.as_text().is_none());
        output.model = Some(std::iter::once(Part::text(text)).chain(others).collect());
    }
    let long = match &output.value {
        Value::String(text) if text.len() > most => Some(shorten(text, most)),
        Value::Array(_) | Value::Object(_) => {
            Some(output.value.to_string()).filter(|text| text.len() > most).map(|text| shorten(&text, most))
        }
        _ => None,
    };
    if let Some(text) = long {
        output.value = Value::String(text);
    }
    output
}

/// Two thirds from the beginning, one from the end, cut between characters.
fn shorten(text: &str, most: usize) -> String {
    let head = border(text, most / 3 * 2);
    let tail = border(text, text.len().saturating_sub(most / 3)).max(head);
    let (first, last) = (text.get(..head).unwrap_or_default(), text.get(tail..).unwrap_or_default());
    let (all, missing) = (text.len(), tail.saturating_sub(head));
    format!("{first}\n[the result has {all} bytes, of which {missing} are left out here; call again for less of it to see them]\n{last}")
}

/// The last place between two characters at or before `at`.
fn border(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_short_result_stays_as_it_is() {
        for value in [json!("text"), json!({"a": [1, 2]}), json!(null), json!(7)] {
            assert_eq!(cap(ToolOutput::new(value.clone()), 100), ToolOutput::new(value));
        }
    }

    // B-82: whatever tool it comes from, cut on a character border, with the true size.
    #[test]
    fn a_long_result_keeps_head_and_tail_and_says_what_is_missing() {
        let text = format!("begin{}end", "ü".repeat(5_000));
        let value = cap(ToolOutput::text(text.clone()), 1_000).value;
        let short = value.as_str().unwrap();
        assert!(short.len() < 1_200 && short.starts_with("begin") && short.ends_with("end"), "{short}");
        assert!(short.contains("10008 bytes"), "{short}");
        let list = json!({"rows": vec!["x"; 5_000]});
        assert!(cap(ToolOutput::new(list), 1_000).value.as_str().unwrap().starts_with("{\"rows\":[\"x\""));
        let parts = vec![Part::text(text.clone()), Part::Unknown(json!({"kept": true})), Part::text("more")];
        let capped = cap(ToolOutput::new(json!("shown")).for_model(parts), 1_000);
        assert_eq!((capped.value, capped.model.as_ref().map(Vec::len)), (json!("shown"), Some(2)));
        assert!(capped.model.unwrap()[0].as_text().unwrap().ends_with("endmore"));
    }
}
