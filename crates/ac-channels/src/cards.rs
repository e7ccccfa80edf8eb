//! What is on a card: words, and what can be pressed.

use ac_controller::Pending;
use ac_core::event::PendingKind;
use serde_json::{Value, json};

use crate::{
    adapter::{Button, ButtonStyle, Capabilities, Menu, Post},
    button::{Action, Bound, Signer},
    record::Card,
    render,
    signature::digest,
};

/// How much of the arguments a card shows, in characters.
const SHOWN: usize = 1_200;
/// What fits on a button everywhere.
const LABEL: usize = 60;
/// What is said where a text does not fit on a card.
const CUT: &str = "✂️ (This is not all of it.)";

/// How a question's options are chosen from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Buttons,
    Menu,
    Words,
}

impl Card {
    /// The card of something that waits.
    pub(crate) fn of(pending: &Pending, n: u32, can: &Capabilities) -> Self {
        let question = pending.payload.get("question").and_then(Value::as_str);
        let options: Vec<String> = pending
            .payload
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|option| option.get("label").and_then(Value::as_str))
            .map(str::to_owned)
            .collect();
        let several = pending.payload.get("selectionMode").and_then(Value::as_str) == Some("multi_select");
        let free_text = pending.kind == PendingKind::Question
            && (options.is_empty() || pending.payload.get("allowFreeText").and_then(Value::as_bool).unwrap_or(false));
        let mut card = Self {
            n,
            pending: pending.id.clone(),
            kind: pending.kind,
            tool: pending.tool.clone(),
            shown: digest(&json!([pending.args, pending.payload]).to_string()),
            text: String::new(),
            options,
            several,
            free_text,
            starter: None,
            at: pending.since,
            after: None,
            message: None,
            outcome: None,
            item: None,
            stale: false,
        };
        card.text = match pending.kind {
            PendingKind::Approval => format!("🔐 **{}** wants to run:\n\n{}", name(&pending.tool), arguments(&pending.args)),
            PendingKind::InDoubt => format!(
                "❓ **{}** was running when the process stopped, and may have had its effect:\n\n{}",
                name(&pending.tool),
                arguments(&pending.args)
            ),
            PendingKind::Plan => match pending.payload.get("path").and_then(Value::as_str) {
                Some(path) => format!("📋 A plan waits for your decision: {}", code(path)),
                None => "📋 A plan waits for your decision.".to_owned(),
            },
            PendingKind::Question => {
                let mut text = format!("💬 {}", question.unwrap_or("A tool asks for an answer."));
                let shown = pending.payload.get("options").and_then(Value::as_array).into_iter().flatten();
                for (n, option) in (1..).zip(shown) {
                    let label = option.get("label").and_then(Value::as_str).unwrap_or_default();
                    match option.get("description").and_then(Value::as_str) {
                        Some(description) => text.push_str(&format!("\n{n}\\. **{}**: {description}", name(label))),
                        None => text.push_str(&format!("\n{n}\\. **{}**", name(label))),
                    }
                }
                text
            }
        };
        if pending.kind == PendingKind::Plan {
            card.text.push_str("\n\nReply with what should change, or press a button.");
        } else if pending.kind == PendingKind::Question && card.options.is_empty() {
            card.text.push_str("\n\nReply with your answer.");
        } else if pending.kind == PendingKind::Question && (card.choice(can) == Choice::Words || card.several) {
            card.text.push_str("\n\nReply with the number of your choice; several with commas between them, where several are welcome.");
        }
        card
    }

    fn choice(&self, can: &Capabilities) -> Choice {
        let count = self.options.len();
        match () {
            () if !can.buttons || count == 0 => Choice::Words,
            () if !self.several && count + usize::from(self.free_text) <= can.max_buttons => Choice::Buttons,
            () if can.menus && count <= can.max_options => Choice::Menu,
            () => Choice::Words,
        }
    }

    /// What does not fit on the card of a question: the messages to be posted before it. The card refers to them from then on.
    pub(crate) fn overflow(&mut self, can: &Capabilities) -> Vec<String> {
        let whole = render::messages(&self.text, can.dialect, can.max_text, can.unit);
        if self.kind != PendingKind::Question || whole.len() < 2 {
            return vec![];
        }
        "💬 What is asked above waits for your answer.".clone_into(&mut self.text);
        whole
    }

    /// The card as it is to be seen now. What came of it is always on it, and that something is cut off as well.
    pub(crate) fn post(&self, can: &Capabilities, signer: &Signer, conversation: &str) -> Post {
        let mut end = String::new();
        if let Some(outcome) = &self.outcome {
            end.push_str(&name(&outcome.said));
            if let Some(by) = &outcome.by {
                end.push_str(&format!(" by {}", name(by.shown())));
            }
        }
        let mut post = Post::text(fitted(&self.text, &end, can));
        if self.outcome.is_some() || !can.buttons {
            return post;
        }
        let bound = Bound { conversation, pending: &self.pending, shown: &self.shown, card: self.n };
        let button = |label: &str, action, style| Button { label: cut(label, LABEL), value: signer.sign(bound, action), style };
        match self.kind {
            PendingKind::Approval => {
                post.buttons = vec![
                    button("Approve", Action::Approve, ButtonStyle::Primary),
                    button("Decline", Action::Decline, ButtonStyle::Danger),
                    button("Always allow", Action::Always, ButtonStyle::Plain),
                ];
            }
            PendingKind::InDoubt => {
                post.buttons = vec![
                    button("Run again", Action::Again, ButtonStyle::Plain),
                    button("Record as failed", Action::Failed, ButtonStyle::Danger),
                ];
            }
            PendingKind::Plan => {
                post.buttons = vec![
                    button("Approve plan", Action::Approve, ButtonStyle::Primary),
                    button("Not like this", Action::Decline, ButtonStyle::Danger),
                    button("Say what to change", Action::Reply, ButtonStyle::Plain),
                ];
            }
            PendingKind::Question => {
                let options = (0_u16..).zip(&self.options);
                match self.choice(can) {
                    Choice::Buttons => {
                        post.buttons = options.map(|(n, label)| button(label, Action::Option(n), ButtonStyle::Plain)).collect();
                    }
                    Choice::Menu => {
                        let options = options.map(|(n, label)| (cut(label, LABEL), signer.sign(bound, Action::Option(n)))).collect();
                        post.menu = Some(Menu { placeholder: "Choose".to_owned(), options, several: self.several });
                    }
                    Choice::Words => {}
                }
                if self.free_text {
                    post.buttons.push(button("Answer in my own words", Action::Reply, ButtonStyle::Plain));
                }
            }
        }
        post
    }

    /// What a reply in words means as an answer; `None` when it is none.
    pub(crate) fn read_reply(&self, text: &str) -> Option<Value> {
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        if self.kind == PendingKind::Plan {
            return Some(json!({ "action": "rejected", "feedback": text }));
        }
        let one = |piece: &str| {
            let piece = piece.trim();
            let by_number = piece.parse::<usize>().ok().and_then(|n| self.options.get(n.checked_sub(1)?));
            by_number.or_else(|| self.options.iter().find(|label| label.trim().eq_ignore_ascii_case(piece))).cloned()
        };
        if let Some(label) = one(text) {
            return Some(if self.several { json!([label]) } else { json!(label) });
        }
        if self.several
            && let Some(labels) = text.split(',').map(one).collect::<Option<Vec<String>>>()
        {
            return Some(json!(labels));
        }
        self.free_text.then(|| json!(text))
    }
}

/// Markdown as one message, with a line at its end. Where it does not fit, the message says so.
fn fitted(text: &str, end: &str, can: &Capabilities) -> String {
    let messages = |text: &str, limit: usize| render::messages(text, can.dialect, limit, can.unit);
    let end = messages(end, can.max_text / 2).into_iter().next().unwrap_or_default();
    let below = |text: &str| if text.is_empty() { 0 } else { can.unit.measure(text) + 2 };
    let room = can.max_text.saturating_sub(below(&end));
    let mut whole = messages(text, room);
    let mut lines = vec![];
    if whole.len() > 1 {
        let note = can.dialect.escape(CUT);
        whole = messages(text, room.saturating_sub(below(&note)));
        lines.push(note);
    }
    lines.insert(0, whole.into_iter().next().unwrap_or_default());
    lines.push(end);
    lines.retain(|line| !line.is_empty());
    lines.join("\n\n")
}

/// Arguments as a block of code, cut where they are long. What cannot be seen, and what changes the direction of writing, is spelled out:
/// nobody approves what looks like something else.
pub(crate) fn arguments(args: &Value) -> String {
    let whole = spelled(&serde_json::to_string_pretty(args).unwrap_or_default());
    let shown = cut(&whole, SHOWN);
    let fence = "`".repeat(shown.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1);
    let mut text = format!("{fence}json\n{shown}\n{fence}");
    let hidden = whole.chars().count().saturating_sub(SHOWN);
    if hidden > 0 {
        text.push_str(&format!("\n\n({hidden} more characters are not shown here.)"));
    }
    text
}

/// JSON with escapes for letters that nobody sees.
fn spelled(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        let unseen = matches!(
            letter,
            '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180e}'
                | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'
        );
        if unseen {
            let mut units = [0; 2];
            letter.encode_utf16(&mut units).iter().for_each(|unit| out.push_str(&format!("\\u{unit:04x}")));
        } else {
            out.push(letter);
        }
    }
    out
}

/// A name in running Markdown: nothing in it is markup.
pub(crate) fn name(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_ascii_punctuation() {
            out.push('\\');
        }
        out.push(if letter == '\n' { ' ' } else { letter });
    }
    out
}

/// Inline code in Markdown.
pub(crate) fn code(text: &str) -> String {
    format!("`{}`", text.replace('`', "'").replace('\n', " "))
}

pub(crate) fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(most.saturating_sub(1)).collect();
    short.push('…');
    short
}
