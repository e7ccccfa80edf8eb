//! Cards for what waits for a person.

use ac_controller::{Answer, Pending, Session};
use ac_core::{Part, PendingId, Timestamp, ToolCallState, event::PendingKind};
use ac_storage::domain::MessageQuery;

use super::Actor;
use crate::{
    ChannelError, ChannelErrorKind, WithoutButtons,
    adapter::{Capabilities, Post, PostKey},
    cards::{code, name},
    record::{Card, Note, Outcome},
    render,
};

/// How many of the last messages are searched for what became of a call.
const LOOK_BACK: usize = 30;

impl Actor {
    /// Compares what waits with the cards: new waits get one, cards of waits that are over learn what came of them.
    pub(super) async fn sync_waits(&mut self, session: &Session) -> Result<(), ChannelError> {
        let pending = waiting(session).await?;
        let record = self.record().await?;
        for open in &pending {
            if !record.cards.iter().any(|card| card.pending == open.id) {
                self.new_wait(session, open).await?;
            }
        }
        let over: Vec<Card> = record.open_cards().filter(|card| !pending.iter().any(|open| open.id == card.pending)).cloned().collect();
        for card in over {
            let said = self.outcome(session, &card.pending).await?;
            let outcome = Outcome { said, by: None };
            self.change(|record| record.settle(card.n, outcome.clone()).then_some(())).await?;
        }
        Ok(())
    }

    async fn new_wait(&mut self, session: &Session, open: &Pending) -> Result<(), ChannelError> {
        let can = self.can();
        let asks = matches!(open.kind, PendingKind::Approval | PendingKind::InDoubt);
        if asks && !can.buttons {
            return self.cannot_ask(session, open).await;
        }
        let mut plan = vec![];
        if open.kind == PendingKind::Plan
            && let Some(path) = open.payload.get("path").and_then(serde_json::Value::as_str)
            && let Some(text) = self.shared.hooks.plan_text(session, path).await
        {
            plan = render::messages(&text, can.dialect, can.max_text, can.unit);
        }
        let at = self.shared.clock.now();
        self.change(|record| {
            if record.cards.iter().any(|card| card.pending == open.id) {
                return None;
            }
            let mut card = Card::of(open, record.next_card, &can);
            card.starter = record.starter_of(&open.run);
            card.after.clone_from(&record.last);
            // What belongs to the card is remembered in the same write, so it is posted once.
            for (n, text) in plan.iter().cloned().chain(card.overflow(&can)).enumerate() {
                record.notes.push(Note { key: format!("ask:{}:{n}", open.id), text, at });
            }
            record.next_card += 1;
            record.cards.push(card);
            Some(())
        })
        .await?;
        Ok(())
    }

    /// An approval where nobody can be shown one.
    async fn cannot_ask(&self, session: &Session, open: &Pending) -> Result<(), ChannelError> {
        let can = self.can();
        let key = format!("wait:{}", open.id);
        let text = match &self.registered.settings.without_buttons {
            WithoutButtons::Decline => {
                let answer = match open.kind {
                    PendingKind::InDoubt => Answer::RecordFailed,
                    _ => Answer::Decline { reason: Some("nobody can be asked in this channel".to_owned()) },
                };
                match session.answer(&open.id, answer).await {
                    // Somebody was faster: that is their decision.
                    Ok(_) | Err(_) => return Ok(()),
                }
            }
            WithoutButtons::Park { answer_at } => {
                format!("🔐 **{}** waits for an approval, which cannot be given here. Answer at: {}", name(&open.tool), name(answer_at))
            }
            // A run of this conversation does not ask. This one was started elsewhere, or is in doubt.
            WithoutButtons::RunWithoutAsking => {
                format!("🔐 **{}** waits for an answer, which cannot be given here. Answer where the session is open.", name(&open.tool))
            }
        };
        let text = self.line(&text);
        let known = self.record().await?.cards.iter().any(|card| card.pending == open.id);
        if known {
            return Ok(());
        }
        self.add_note(key, text).await?;
        // A card that was never shown: it keeps the line from being said twice, and the conversation from falling asleep.
        self.change(|record| {
            let mut card = Card::of(open, record.next_card, &can);
            card.message = Some(String::new());
            record.next_card += 1;
            record.cards.push(card);
            Some(())
        })
        .await?;
        Ok(())
    }

    /// What became of a call that waited, in a few words, from the stored thread.
    async fn outcome(&self, session: &Session, pending: &PendingId) -> Result<String, ChannelError> {
        let query = MessageQuery { after: None, newest_first: true, limit: LOOK_BACK };
        let page = session.messages(None, query).await?;
        let call = page.items.iter().flat_map(|stored| &stored.message.parts).find_map(|part| match part {
            Part::ToolCall(call) if call.id == pending.call => Some(call),
            _ => None,
        });
        Ok(match call.map(|call| (&call.state, call.approved)) {
            Some((ToolCallState::OutputDenied { reason }, _)) if reason.contains("interrupted_by_user_message") => {
                "🚫 Declined, because somebody wrote instead".to_owned()
            }
            Some((ToolCallState::OutputDenied { .. }, _)) => "🚫 Declined".to_owned(),
            Some((_, true)) => "✅ Approved".to_owned(),
            _ => "☑️ Settled".to_owned(),
        })
    }

    /// Posts cards that are not on the platform, and changes those that say what is over.
    pub(super) async fn post_cards(&mut self) -> Result<(), ChannelError> {
        let can = self.can();
        let record = self.record().await?;
        for card in &record.cards {
            let settled = card.outcome.is_some();
            if settled && !card.stale {
                continue;
            }
            let post = card.post(&can, &self.shared.signer, &self.conversation.id);
            match &card.message {
                None if settled => self.mark_card(card.n, None, true).await?,
                None => {
                    let key = PostKey { after: card.after.clone(), ..self.post_key(&format!("card{}", card.n), card.at).await? };
                    let message = self.post_card(&key, &post, &can, card.at).await?;
                    self.mark_card(card.n, Some(message), false).await?;
                }
                Some(message) if settled => {
                    if !message.is_empty() && can.edits {
                        match self.adapter().edit(&self.conversation, message, &post).await {
                            Err(error) if !self.waits_for(&error, card.at) => {
                                tracing::debug!(code = error.code(), "a card was not changed");
                            }
                            other => other?,
                        }
                    }
                    self.mark_card(card.n, None, true).await?;
                }
                Some(_) => {}
            }
        }
        Ok(())
    }

    /// Posts a card. One that the platform refuses as it is goes without what can be pressed, so that it holds up nothing: a reply in words
    /// counts there too, and what needs a button is answered elsewhere.
    async fn post_card(&mut self, key: &PostKey, post: &Post, can: &Capabilities, since: Timestamp) -> Result<String, ChannelError> {
        let error = match self.adapter().post(&self.conversation, key, post).await {
            Err(error) if error.kind() == ChannelErrorKind::TooLong => return Err(self.shorten(error)),
            Err(error) if !self.waits_for(&error, since) => error,
            other => return other,
        };
        tracing::error!(code = error.code(), "a card was refused; it goes without buttons");
        let hint =
            can.dialect.escape("🔐 What can be pressed could not be shown here. Reply in words, or answer where the session is open.");
        let fits = can.unit.measure(&post.text) + can.unit.measure(&hint) + 2 <= can.max_text;
        let bare = Post::text(if fits { format!("{}\n\n{hint}", post.text) } else { hint });
        match self.adapter().post(&self.conversation, key, &bare).await {
            Err(error) if !self.waits_for(&error, since) => Ok(String::new()),
            other => other,
        }
    }

    async fn mark_card(&self, n: u32, message: Option<String>, fresh: bool) -> Result<(), ChannelError> {
        self.change(|record| {
            let card = record.card_mut(n)?;
            if fresh {
                card.stale = false;
            }
            if let Some(message) = &message {
                card.message = Some(message.clone());
                if !message.is_empty() {
                    record.last = Some(message.clone());
                }
            }
            Some(())
        })
        .await?;
        Ok(())
    }

    /// Posts the channel's own lines, each once.
    pub(super) async fn post_notes(&mut self) -> Result<(), ChannelError> {
        let record = self.record().await?;
        for note in &record.notes {
            let key = self.post_key(&note.key, note.at).await?;
            let post = Post::text(note.text.clone());
            let message = match self.adapter().post(&self.conversation, &key, &post).await {
                Err(error) if !self.waits_for(&error, note.at) => {
                    tracing::warn!(code = error.code(), "a line could not be posted");
                    None
                }
                other => Some(other?),
            };
            self.change(|record| {
                record.notes.retain(|known| known.key != note.key);
                if message.is_some() {
                    record.last.clone_from(&message);
                }
                Some(())
            })
            .await?;
        }
        Ok(())
    }
}

/// What waits for a person on the conversation's thread, and in the subagents of its runs.
pub(super) async fn waiting(session: &Session) -> Result<Vec<Pending>, ChannelError> {
    let Some(thread) = session.thread_id() else { return Ok(vec![]) };
    Ok(session.pending().await?.into_iter().filter(|open| open.thread == thread || open.parent_call.is_some()).collect())
}

/// One line about a call, in Markdown.
pub(super) fn call_line(tool: &str, args: &serde_json::Value, state: &ToolCallState) -> String {
    let mark = match state {
        ToolCallState::Call => "⏳",
        ToolCallState::OutputDenied { .. } => "🚫",
        ToolCallState::Result { is_error: true, .. } => "⚠️",
        _ => "✅",
    };
    let args = crate::cards::cut(&args.to_string(), 120);
    format!("{mark} **{}** {}", name(tool), code(&args))
}
