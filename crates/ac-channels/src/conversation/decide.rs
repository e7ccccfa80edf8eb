//! Clicks and replies that decide something.

use ac_controller::{Answer, ControllerErrorKind, Session};
use ac_core::{event::PendingKind, permission::GrantTarget};
use serde_json::{Value, json};

use super::{Actor, Dirty, inbound::kind_of, waits::waiting};
use crate::{
    ChannelError,
    button::{Action, Bound, Value as ButtonValue},
    event::{Click, NO_LONGER_IN_USE, NO_WORDS, Said, Speaker},
    hooks::Deciding,
    record::{Card, Outcome},
};

/// What a message does to what is asked when it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writing {
    /// Nothing: no approval is asked.
    DecidesNothing,
    /// It declines: its author may decide on the approvals, and wrote instead.
    Declines,
    /// It waits: its author may not decide what is asked.
    Waits,
}

impl Actor {
    /// Somebody pressed something. Everything is checked before anything changes.
    pub(super) async fn click(&mut self, session: &Session, speaker: &Speaker, click: &Click) -> Result<(), ChannelError> {
        let responder = click.responder.as_deref();
        let values: Vec<ButtonValue<'_>> = click.values.iter().filter_map(|value| ButtonValue::read(value)).collect();
        let record = self.record().await?;
        let card = values.first().and_then(|value| record.cards.iter().find(|card| card.n == value.card));
        let (Some(first), Some(card), true) = (values.first(), card, values.len() == click.values.len()) else {
            return self.tell(speaker, responder, NO_LONGER_IN_USE).await;
        };
        let bound = Bound { conversation: &self.conversation.id, pending: &card.pending, shown: &card.shown, card: card.n };
        if !values.iter().all(|value| self.shared.signer.fits(bound, *value)) {
            tracing::warn!(card = card.n, "a button was not signed for this conversation and this call");
            return self.tell(speaker, responder, "This button is not valid here.").await;
        }
        if let Some(outcome) = &card.outcome {
            return self.tell(speaker, responder, &already(outcome)).await;
        }
        if !self.may_decide(speaker, card).await {
            return self.tell(speaker, responder, &only(card)).await;
        }
        let answer = match (first.action, card.kind) {
            (Action::Approve, PendingKind::Approval) => Answer::Approve { grant: None },
            (Action::Always, PendingKind::Approval) => Answer::Approve { grant: Some(GrantTarget::Tool(card.tool.clone())) },
            (Action::Decline, PendingKind::Approval) => Answer::Decline { reason: Some(format!("declined by {}", speaker.shown())) },
            (Action::Approve, PendingKind::Plan) => Answer::Reply { value: json!({ "action": "approved" }) },
            (Action::Decline, PendingKind::Plan) => Answer::Reply { value: json!({ "action": "rejected" }) },
            (Action::Again, PendingKind::InDoubt) => Answer::RunAgain,
            (Action::Failed, PendingKind::InDoubt) => Answer::RecordFailed,
            (Action::Reply, PendingKind::Question | PendingKind::Plan) => {
                match click.text.as_deref().and_then(|text| card.read_reply(text)) {
                    Some(value) => Answer::Reply { value },
                    None => return self.tell(speaker, responder, "Please write your answer as a reply in this conversation.").await,
                }
            }
            (Action::Option(_), PendingKind::Question) => {
                let chosen: Option<Vec<&String>> = values
                    .iter()
                    .map(|value| match value.action {
                        Action::Option(n) => card.options.get(usize::from(n)),
                        _ => None,
                    })
                    .collect();
                match chosen.as_deref() {
                    Some([only]) if !card.several => Answer::Reply { value: json!(only) },
                    Some(chosen) if card.several => Answer::Reply { value: json!(chosen) },
                    _ => return self.tell(speaker, responder, "Please choose one of the options.").await,
                }
            }
            _ => return self.tell(speaker, responder, "This button is not valid here.").await,
        };
        let card = card.clone();
        self.decide(session, speaker, responder, &card, answer).await
    }

    /// Somebody wrote while a question or a plan is open: the words may be the answer. Says whether they were.
    pub(super) async fn reply(&mut self, session: &Session, speaker: &Speaker, said: &Said) -> Result<bool, ChannelError> {
        let record = self.record().await?;
        let mut open: Vec<&Card> =
            record.open_cards().filter(|card| matches!(card.kind, PendingKind::Question | PendingKind::Plan)).collect();
        // A reply to a card means that card; anything else the one that was asked last.
        if let Some(to) = &said.reply_to
            && let Some(exact) = open.iter().find(|card| card.message.as_ref() == Some(to))
        {
            open = vec![exact];
        }
        let Some(card) = open.last().map(|card| Card::clone(card)) else { return Ok(false) };
        // A mention without a word is no answer.
        if !said.files.is_empty() || said.text == NO_WORDS || !self.may_decide(speaker, &card).await {
            return Ok(false);
        }
        let Some(value) = card.read_reply(&said.text) else {
            self.tell(speaker, None, "Please choose one of the options; your message waits until the question is answered.").await?;
            return Ok(false);
        };
        // What the person wrote before the card was seen to be settled elsewhere is a message like any other.
        self.decide_or(session, speaker, None, &card, Answer::Reply { value }).await
    }

    /// What it means for what is asked that somebody writes. Only who may decide all of it declines the approvals in it (`R7`).
    pub(super) async fn writing(&self, session: &Session, speaker: &Speaker) -> Result<Writing, ChannelError> {
        let record = self.record().await?;
        let mut writing = Writing::DecidesNothing;
        for open in &waiting(session).await? {
            let starter = match record.cards.iter().find(|card| card.pending == open.id) {
                Some(card) => card.starter.clone(),
                // It is asked since a moment ago.
                None => record.starter_of(&open.run),
            };
            let deciding = Deciding { about: self.about(speaker), kind: open.kind, tool: &open.tool, starter: starter.as_ref() };
            if !self.shared.hooks.may_decide(&deciding).await {
                return Ok(Writing::Waits);
            }
            if open.kind == PendingKind::Approval {
                writing = Writing::Declines;
            }
        }
        Ok(writing)
    }

    async fn may_decide(&self, speaker: &Speaker, card: &Card) -> bool {
        let deciding = Deciding { about: self.about(speaker), kind: card.kind, tool: &card.tool, starter: card.starter.as_ref() };
        self.shared.hooks.may_decide(&deciding).await
    }

    async fn decide(
        &mut self,
        session: &Session,
        speaker: &Speaker,
        responder: Option<&str>,
        card: &Card,
        answer: Answer,
    ) -> Result<(), ChannelError> {
        if !self.decide_or(session, speaker, responder, card, answer).await? {
            self.tell(speaker, responder, "This was decided elsewhere, or is no longer asked.").await?;
        }
        Ok(())
    }

    /// Answers. Says whether the answer counts, now or when it came the first time.
    async fn decide_or(
        &mut self,
        session: &Session,
        speaker: &Speaker,
        responder: Option<&str>,
        card: &Card,
        answer: Answer,
    ) -> Result<bool, ChannelError> {
        let said = describe(&answer);
        match session.answer(&card.pending, answer).await {
            Ok(accepted) => {
                tracing::info!(tool = card.tool, by = speaker.id, repeated = accepted.repeated, "a person decided");
                let outcome = Outcome { said, by: Some(speaker.clone()) };
                let item = self.item;
                self.change(|record| {
                    let settled = record.settle(card.n, outcome.clone());
                    if let Some(card) = record.card_mut(card.n) {
                        card.item = item;
                    }
                    settled.then_some(())
                })
                .await?;
                if let Some(responder) = responder
                    && let Err(error) = self.adapter().acknowledge(responder).await
                {
                    tracing::debug!(code = error.code(), "the platform was not told that a click was dealt with");
                }
                self.running = true;
                self.dirty = Dirty::ALL;
                Ok(true)
            }
            Err(error) => match error.kind() {
                ControllerErrorKind::AlreadyResolved | ControllerErrorKind::NotPending | ControllerErrorKind::Aborting => {
                    // The card says what happened as soon as the thread was looked at.
                    self.dirty = Dirty::ALL;
                    Ok(false)
                }
                ControllerErrorKind::InvalidAnswer => {
                    self.tell(speaker, responder, "That answer does not fit the question; please choose one of the options.").await?;
                    Ok(true)
                }
                _ => Err(error.into()),
            },
        }
    }

    /// A private word. That it does not arrive keeps nothing from going on.
    pub(super) async fn tell(&self, speaker: &Speaker, responder: Option<&str>, text: &str) -> Result<(), ChannelError> {
        let text = self.adapter().capabilities().dialect.escape(text);
        match self.adapter().notice(&self.conversation, speaker, responder, &text).await {
            Err(error) => tracing::warn!(code = error.code(), "a private notice did not arrive"),
            Ok(()) => tracing::debug!("a private notice was sent"),
        }
        Ok(())
    }
}

fn describe(answer: &Answer) -> String {
    match answer {
        Answer::Approve { grant: None } => "✅ Approved".to_owned(),
        Answer::Approve { grant: Some(_) } => "✅ Always allowed in this conversation".to_owned(),
        Answer::Decline { .. } => "🚫 Declined".to_owned(),
        Answer::RunAgain => "🔁 To be run again".to_owned(),
        Answer::RecordFailed => "🚫 Recorded as failed".to_owned(),
        Answer::Reply { value } => match (value.get("action").and_then(Value::as_str), value) {
            (Some("approved"), _) => "✅ Plan approved".to_owned(),
            (Some(_), _) => "✏️ Changes wanted".to_owned(),
            (None, Value::String(text)) => format!("💬 Answered: {}", cut(text)),
            (None, Value::Array(texts)) => {
                let texts: Vec<&str> = texts.iter().filter_map(Value::as_str).collect();
                format!("💬 Answered: {}", cut(&texts.join(", ")))
            }
            (None, other) => format!("💬 Answered ({})", kind_of(other)),
        },
    }
}

fn cut(text: &str) -> String {
    let mut short: String = text.chars().take(120).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn already(outcome: &Outcome) -> String {
    match &outcome.by {
        Some(by) => format!("Already decided by {}: {}.", by.shown(), outcome.said),
        None => format!("Already decided: {}.", outcome.said),
    }
}

fn only(card: &Card) -> String {
    match &card.starter {
        Some(starter) => format!("Only {} can decide this.", starter.shown()),
        None => "You cannot decide this here.".to_owned(),
    }
}
