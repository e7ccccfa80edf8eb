//! From what a person typed to an answer.

use serde_json::{Value, json};

/// A question, as its tool shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Question {
    /// The text.
    pub(crate) text: String,
    /// Labels and what is said about them.
    pub(crate) options: Vec<(String, String)>,
    /// Several may be chosen.
    pub(crate) several: bool,
    /// Other answers than the options are welcome.
    pub(crate) free: bool,
}

impl Question {
    /// Reads what `ask_user` shows; `None` for another tool's payload.
    pub(crate) fn read(tool: &str, payload: &Value) -> Option<Self> {
        if tool != "ask_user" {
            return None;
        }
        let text = payload.get("question")?.as_str()?.to_owned();
        let options: Vec<_> = payload.get("options").and_then(Value::as_array).into_iter().flatten().filter_map(option).collect();
        let several = payload.get("selectionMode").and_then(Value::as_str) == Some("multi_select");
        let free = options.is_empty() || payload.get("allowFreeText").and_then(Value::as_bool) == Some(true);
        Some(Self { text, options, several, free })
    }

    /// The answer that these values make.
    ///
    /// # Errors
    /// Which value fits nothing, and what would.
    pub(crate) fn answer(&self, values: &[String]) -> Result<Value, String> {
        if self.options.is_empty() {
            return Ok(Value::String(values.join(" ")));
        }
        let mut chosen: Vec<String> = vec![];
        for value in values {
            let label = self.choose(value)?;
            if !chosen.contains(&label) {
                chosen.push(label);
            }
        }
        match (self.several, chosen.as_slice()) {
            (_, []) => Err(format!("choose {}", self.choices())),
            (true, _) => Ok(json!(chosen)),
            (false, [one]) => Ok(json!(one)),
            (false, _) if self.free && values.iter().all(|value| self.find(value).is_none()) => Ok(Value::String(values.join(" "))),
            (false, _) => Err(format!("choose only one of: {}", self.choices())),
        }
    }

    /// The answer in one line: several choices are separated by commas.
    ///
    /// # Errors
    /// As [`Question::answer`].
    pub(crate) fn answer_line(&self, line: &str) -> Result<Value, String> {
        let line = line.trim();
        if self.options.is_empty() {
            return Ok(Value::String(line.to_owned()));
        }
        if line.is_empty() {
            return Err(format!("choose {}", self.choices()));
        }
        if self.several && self.find(line).is_none() {
            let values: Vec<_> = line.split(',').map(str::trim).filter(|value| !value.is_empty()).map(str::to_owned).collect();
            return self.answer(&values);
        }
        self.answer(&[line.to_owned()])
    }

    /// A label as it is written, then a number, then a label in other letters.
    fn find(&self, value: &str) -> Option<&str> {
        let value = value.trim();
        let labels = || self.options.iter().map(|(label, _)| label.as_str());
        labels()
            .find(|label| *label == value)
            .or_else(|| value.parse::<usize>().ok().and_then(|number| labels().nth(number.checked_sub(1)?)))
            .or_else(|| {
                let mut alike = labels().filter(|label| label.to_lowercase() == value.to_lowercase());
                alike.next().filter(|_| alike.next().is_none())
            })
    }

    fn choose(&self, value: &str) -> Result<String, String> {
        match self.find(value) {
            Some(label) => Ok(label.to_owned()),
            None if self.free && !value.trim().is_empty() => Ok(value.trim().to_owned()),
            None => Err(format!("`{value}` is none of the options; choose {}", self.choices())),
        }
    }

    fn choices(&self) -> String {
        let choices: Vec<_> = self.options.iter().enumerate().map(|(n, (label, _))| format!("{} ({label})", n + 1)).collect();
        choices.join(", ")
    }
}

fn option(option: &Value) -> Option<(String, String)> {
    let label = option.get("label")?.as_str()?.to_owned();
    let description = option.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
    Some((label, description))
}

/// The answer to any tool's question.
///
/// # Errors
/// As [`Question::answer`].
pub(crate) fn answer(tool: &str, payload: &Value, values: &[String]) -> Result<Value, String> {
    match Question::read(tool, payload) {
        Some(question) => question.answer(values),
        None => Ok(json_or_text(&values.join(" "))),
    }
}

/// JSON where it is JSON, else the text.
pub(crate) fn json_or_text(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

/// What a person says to a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PlanAnswer {
    /// Build it.
    Approve,
    /// Do not, and perhaps why.
    Reject(Option<String>),
    /// The word for no alone; why is asked next.
    AskWhy,
    /// Nothing was said.
    Unclear,
}

/// Reads a line at the prompt of a plan. Only a clear yes approves; anything that is not a clear no either is what should change.
pub(crate) fn plan(line: &str) -> PlanAnswer {
    let word = line.trim().to_lowercase();
    match word.as_str() {
        "" => PlanAnswer::Unclear,
        "a" | "approve" | "approved" | "y" | "yes" => PlanAnswer::Approve,
        "r" | "reject" | "rejected" | "n" | "no" => PlanAnswer::AskWhy,
        _ => PlanAnswer::Reject(Some(line.trim().to_owned())),
    }
}

/// What a person says to an approval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ApprovalAnswer {
    /// This once.
    Yes,
    /// This tool, in this conversation.
    Always,
    /// No.
    No,
}

/// Reads a line at the prompt of an approval; `None` when it says neither yes nor no.
pub(crate) fn approval(line: &str) -> Option<ApprovalAnswer> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" | "approve" => Some(ApprovalAnswer::Yes),
        "always" => Some(ApprovalAnswer::Always),
        "n" | "no" | "decline" => Some(ApprovalAnswer::No),
        _ => None,
    }
}

/// Reads a line at the prompt of a call in doubt: whether it runs again.
pub(crate) fn in_doubt(line: &str) -> Option<bool> {
    match line.trim().to_lowercase().as_str() {
        "again" | "run again" | "r" => Some(true),
        "failed" | "record as failed" | "f" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
