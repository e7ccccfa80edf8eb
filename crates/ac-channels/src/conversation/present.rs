//! Bringing the platform to what the thread says.
//!
//! What is to be seen follows from the stored messages (and, for the one that is being written, from the session's view); the record knows
//! what is posted. So an answer is posted by whoever is alive, an answer that was decided on elsewhere too, and posting is never a copy of
//! the events.

use ac_controller::Session;
use ac_core::{MessageId, Part, Role, Timestamp, ToolCallState, display::DisplayPart};
use ac_storage::{domain::MessageQuery, record::MessageCursor};
use bytes::Bytes;
use tokio::time::Instant;

use super::{Actor, Dirty, waits::call_line};
use crate::{
    ChannelError, ChannelErrorKind, ToolDisplay,
    adapter::{BEGINNING, Post, PostKey, Upload},
    cards::name,
    record::{Posted, Slot},
    render,
    signature::digest,
};

/// How many messages of the thread are read at once.
const PAGE: usize = 64;
/// What the slot of a file's first step is called after.
const STAGED: char = '+';
/// A file in an answer that the record of the platform cannot hold is not posted.
const MAX_UPLOAD: usize = 20 * 1024 * 1024;

/// One thing to be seen.
enum Wanted {
    Text { key: String, text: String },
    File { key: String, file: Upload },
}

/// A message of the thread, from the store or as it is being written.
struct Shown {
    id: MessageId,
    at: Timestamp,
    parts: Vec<Part>,
    failed: Option<ac_core::ErrorInfo>,
}

impl Actor {
    /// Posts and changes what is not as it should be.
    pub(super) async fn present(&mut self) -> Result<(), ChannelError> {
        let Some(session) = self.session.clone() else { return Ok(()) };
        // What happens from here on makes it dirty again.
        let dirty = std::mem::take(&mut self.dirty);
        let done = self.present_in(&session, dirty).await;
        if done.is_err() {
            self.dirty = Dirty::ALL;
        }
        done
    }

    async fn present_in(&mut self, session: &Session, dirty: Dirty) -> Result<(), ChannelError> {
        if dirty.text || dirty.thread {
            self.post_messages(session).await?;
        }
        if dirty.waits {
            self.sync_waits(session).await?;
        }
        self.post_notes().await?;
        self.post_cards().await?;
        if dirty.text || dirty.thread {
            // Deltas until then share one change.
            let pause = self.adapter().capabilities().edit_interval;
            self.not_before = self.running.then(|| Instant::now() + pause);
        }
        Ok(())
    }

    async fn post_messages(&mut self, session: &Session) -> Result<(), ChannelError> {
        let Some(thread) = session.thread_id() else { return Ok(()) };
        loop {
            // Asked before the messages are read: what is read afterwards of a run that is over does not change any more.
            let run = session.current_run().await?;
            let open = run.is_some();
            let mut settled = vec![];
            let mut upto = None;
            let record = self.record().await?;
            let query = MessageQuery { after: record.cursor.map(MessageCursor::Position), newest_first: false, limit: PAGE };
            let page = session.messages(Some(&thread), query).await?;
            let (last, more) = (page.items.last().map(|stored| stored.position), page.next.is_some());
            for stored in &page.items {
                let message = &stored.message;
                if message.role == Role::Assistant {
                    if message.meta.error.is_some()
                        && self.failed_run.as_ref().is_some_and(|(run, _)| message.meta.run.as_ref() == Some(run))
                    {
                        self.failed_run = None;
                    }
                    let shown =
                        Shown { id: message.id.clone(), at: message.at, parts: message.parts.clone(), failed: message.meta.error.clone() };
                    self.show(&shown).await?;
                }
                if message.role != Role::Assistant {
                    continue;
                }
                if open && !more && Some(stored.position) == last {
                    break;
                }
                settled.push(message.id.clone());
                upto = Some(stored.position);
            }
            if let Some(upto) = upto {
                self.settle(upto, settled).await?;
            } else if more && let Some(last) = last {
                // A page of people's words alone.
                self.settle(last, vec![]).await?;
            }
            if !more {
                if let Some((run, error)) = self.failed_run.take() {
                    let line = self.line(&self.error_line(Some(&error)));
                    self.add_note(format!("run:{run}"), line).await?;
                }
                self.running = open && self.running;
                if let Some(run) = run
                    && self.registered.settings.streaming
                    && self.adapter().capabilities().edits
                    && let Some(shown) = being_written(session)
                    // The view keeps the last message until there is another one.
                    && shown.id.as_str().strip_prefix(run.as_str()).is_some_and(|rest| rest.starts_with('/'))
                    && !self.settled.contains(&shown.id)
                    && !page.items.iter().any(|stored| stored.message.id == shown.id)
                {
                    self.show(&shown).await?;
                }
                return Ok(());
            }
        }
    }

    /// Messages that do not change any more, and are posted as they are.
    async fn settle(&mut self, upto: u64, messages: Vec<MessageId>) -> Result<(), ChannelError> {
        let gone = self
            .change(|record| {
                let (gone, kept) = std::mem::take(&mut record.posts).into_iter().partition(|posted| messages.contains(&posted.message));
                record.posts = kept;
                record.cursor = Some(upto);
                let gone: Vec<Posted> = gone;
                Some(gone)
            })
            .await?;
        for slot in gone.into_iter().flatten().flat_map(|posted| posted.slots) {
            self.says.remove(&slot.at);
        }
        self.settled.extend(messages);
        while self.settled.len() > PAGE {
            self.settled.pop_front();
        }
        Ok(())
    }

    /// Brings the platform to what one message says.
    async fn show(&mut self, shown: &Shown) -> Result<(), ChannelError> {
        let wanted = self.wanted(shown);
        for one in &wanted {
            match one {
                Wanted::Text { key, text } => self.show_text(shown, key, text).await?,
                Wanted::File { key, file } => self.show_file(shown, key, file).await?,
            }
        }
        // A text that was sampled again may have become shorter.
        let record = self.record().await?;
        let left: Vec<Slot> = record
            .posts
            .iter()
            .filter(|posted| posted.message == shown.id)
            .flat_map(|posted| posted.slots.clone())
            .filter(|slot| !slot.key.ends_with(STAGED) && !wanted.iter().any(|one| one.key() == slot.key))
            .collect();
        let edits = self.adapter().capabilities().edits;
        for slot in left.into_iter().filter(|_| edits) {
            match self.edit(shown, &slot.at, BEGINNING).await {
                Err(error) if error.kind() == ChannelErrorKind::Gone => {}
                other => other?,
            }
        }
        Ok(())
    }

    async fn show_text(&mut self, shown: &Shown, key: &str, text: &str) -> Result<(), ChannelError> {
        let can = self.adapter().capabilities();
        let record = self.record().await?;
        let known = record.slot(&shown.id, key).map(|slot| slot.at.clone());
        if let Some(at) = &known {
            if self.says.get(at) == Some(&digest(text)) || !can.edits {
                return Ok(());
            }
            match self.edit(shown, at, text).await {
                // It is gone, or may not be changed any more: the newest text is posted anew.
                Err(error) if error.kind() == ChannelErrorKind::Gone => {}
                other => return other,
            }
        }
        // Where the platform cannot tell whether something was posted, nothing is said by posting.
        if !can.posts_once && can.edits && known.is_none() {
            let at = self.post_text(shown, key, BEGINNING, None).await?;
            match self.edit(shown, &at, text).await {
                Err(error) if error.kind() == ChannelErrorKind::Gone => {}
                other => return other,
            }
        }
        let at = self.post_text(shown, key, text, known.as_deref()).await?;
        self.says.insert(at, digest(text));
        Ok(())
    }

    /// Posts a text and remembers where. `instead` is the message that it takes the place of.
    async fn post_text(&mut self, shown: &Shown, key: &str, text: &str, instead: Option<&str>) -> Result<String, ChannelError> {
        let mut name = format!("{}#{key}", shown.id);
        if let Some(instead) = instead {
            name.push_str(&format!("#{instead}"));
        }
        let post_key = self.post_key(&name, shown.at).await?;
        let posted = match self.adapter().post(&self.conversation, &post_key, &Post::text(text)).await {
            Err(error) if error.kind() == ChannelErrorKind::TooLong => return Err(self.shorten(error)),
            other => other,
        };
        self.remember(shown, key, posted).await
    }

    /// Remembers where something is posted. What the platform will not take at any time is nowhere, and keeps nothing from going on.
    async fn remember(&self, shown: &Shown, key: &str, posted: Result<String, ChannelError>) -> Result<String, ChannelError> {
        let at = match posted {
            Err(error) if !self.waits_for(&error, shown.at) => {
                tracing::error!(code = error.code(), "a part of an answer could not be posted");
                String::new()
            }
            other => other?,
        };
        self.change(|record| {
            record.post(&shown.id, Slot { key: key.to_owned(), at: at.clone() });
            // What was staged is not named like messages are.
            let staged = record.slot(&shown.id, &format!("{key}{STAGED}")).is_some();
            if !staged && !at.is_empty() {
                record.last = Some(at.clone());
            }
            Some(())
        })
        .await?;
        Ok(at)
    }

    async fn show_file(&mut self, shown: &Shown, key: &str, file: &Upload) -> Result<(), ChannelError> {
        let record = self.record().await?;
        if record.slot(&shown.id, key).is_some() {
            return Ok(());
        }
        let place = format!("{key}{STAGED}");
        let mut staged = record.slot(&shown.id, &place).map(|slot| slot.at.clone());
        let again = self.first || staged.is_some();
        if staged.is_none() {
            staged = match self.adapter().stage(&self.conversation, file).await {
                Ok(staged) => staged,
                Err(error) => return self.remember(shown, key, Err(without_file(error))).await.map(drop),
            };
            if let Some(at) = &staged {
                let slot = Slot { key: place.clone(), at: at.clone() };
                self.change(|record| {
                    record.post(&shown.id, slot.clone());
                    Some(())
                })
                .await?;
            }
        }
        let post_key = PostKey { again, staged, ..self.post_key(&format!("{}#{key}", shown.id), shown.at).await? };
        let posted = match self.adapter().upload(&self.conversation, &post_key, file).await {
            // Somebody deleted what held the place: it is posted as if nothing had been.
            Err(error) if error.kind() == ChannelErrorKind::Gone && post_key.staged.is_some() => {
                let bare = PostKey { staged: None, ..post_key };
                self.adapter().upload(&self.conversation, &bare, file).await
            }
            other => other,
        };
        self.remember(shown, key, posted.map_err(without_file)).await.map(drop)
    }

    /// Changes a message, if it does not say so already.
    async fn edit(&mut self, shown: &Shown, at: &str, text: &str) -> Result<(), ChannelError> {
        let says = digest(text);
        if at.is_empty() || self.says.get(at) == Some(&says) {
            return Ok(());
        }
        match self.adapter().edit(&self.conversation, at, &Post::text(text)).await {
            Ok(()) => {}
            Err(error) => match error.kind() {
                ChannelErrorKind::NotModified => {}
                ChannelErrorKind::TooLong => return Err(self.shorten(error)),
                ChannelErrorKind::Gone => return Err(error),
                _ if self.waits_for(&error, shown.at) => return Err(error),
                _ => tracing::error!(code = error.code(), "an answer could not be changed"),
            },
        }
        self.says.insert(at.to_owned(), says);
        Ok(())
    }

    /// The platform counts otherwise than it says: the next try is made with shorter texts, never with the same one.
    pub(super) fn shorten(&mut self, error: ChannelError) -> ChannelError {
        self.limit = (self.limit / 4 * 3).max(64);
        ChannelError::new(ChannelErrorKind::Unavailable, "a text was too long; it is cut shorter").with_source(error)
    }

    fn wanted(&self, shown: &Shown) -> Vec<Wanted> {
        let can = self.adapter().capabilities();
        let display = self.registered.settings.tools;
        let mut out = vec![];
        let mut text = String::new();
        let mut run = 0;
        let mut flush = |text: &mut String, out: &mut Vec<Wanted>| {
            let whole = std::mem::take(text);
            if whole.trim().is_empty() {
                return;
            }
            for (n, piece) in (0..).zip(render::messages(&whole, can.dialect, self.limit, can.unit)) {
                out.push(Wanted::Text { key: format!("t{run}.{n}"), text: piece });
            }
            run += 1;
        };
        for part in &shown.parts {
            match part {
                Part::Text(part) => text.push_str(&part.text),
                Part::ToolCall(call) if display == ToolDisplay::Text => {
                    paragraph(&mut text);
                    text.push_str(&call_line(&call.name, &call.args, &call.state));
                    text.push_str("\n\n");
                }
                Part::ToolCall(call) if display == ToolDisplay::Cards => {
                    flush(&mut text, &mut out);
                    let line = call_line(&call.name, &call.args, &call.state);
                    let line = render::messages(&line, can.dialect, self.limit, can.unit).into_iter().next().unwrap_or_default();
                    out.push(Wanted::Text { key: format!("c{}", call.id), text: line });
                }
                Part::File(file) => {
                    if let ac_core::message::FileSource::Base64(data) = &file.source
                        && let Some(bytes) = unbase64(data)
                    {
                        flush(&mut text, &mut out);
                        let name = file.name.clone().unwrap_or_else(|| "file".to_owned());
                        let file = Upload { name, media_type: file.media_type.clone(), bytes };
                        out.push(Wanted::File { key: format!("f{}", out.len()), file });
                    }
                }
                _ => {}
            }
        }
        if display == ToolDisplay::Grouped
            && let Some(line) = grouped(&shown.parts)
        {
            paragraph(&mut text);
            text.push_str(&line);
        }
        if let Some(error) = &shown.failed {
            paragraph(&mut text);
            text.push_str(&self.error_line(Some(error)));
        }
        flush(&mut text, &mut out);
        out
    }
}

impl Wanted {
    fn key(&self) -> &str {
        match self {
            Self::Text { key, .. } | Self::File { key, .. } => key,
        }
    }
}

fn paragraph(text: &mut String) {
    if !text.is_empty() && !text.ends_with("\n\n") {
        text.push_str("\n\n");
    }
}

/// The calls of a step in one line: `🔧 view ×2, edit (1 failed)`.
fn grouped(parts: &[Part]) -> Option<String> {
    let mut counted: Vec<(&str, usize)> = vec![];
    let (mut failed, mut open) = (0, 0);
    for part in parts {
        let Part::ToolCall(call) = part else { continue };
        match counted.iter_mut().find(|(tool, _)| *tool == call.name) {
            Some((_, count)) => *count += 1,
            None => counted.push((&call.name, 1)),
        }
        match &call.state {
            ToolCallState::Call => open += 1,
            ToolCallState::Result { is_error: false, .. } => {}
            _ => failed += 1,
        }
    }
    if counted.is_empty() {
        return None;
    }
    let tools: Vec<String> =
        counted.into_iter().map(|(tool, count)| if count > 1 { format!("{} ×{count}", name(tool)) } else { name(tool) }).collect();
    let mut line = format!("🔧 {}", tools.join(", "));
    if open > 0 {
        line.push_str(" …");
    }
    if failed > 0 {
        line.push_str(&format!(" ({failed} failed or declined)"));
    }
    Some(line)
}

/// The message that is being written, as the session's view has it.
fn being_written(session: &Session) -> Option<Shown> {
    let state = session.display_state();
    let message = state.current_message.as_ref().filter(|message| message.role == Role::Assistant)?;
    if message.thread != session.thread_id() {
        return None;
    }
    let parts = message
        .parts
        .iter()
        .filter_map(|part| match part {
            DisplayPart::Text(text) => Some(Part::text(text.to_string())),
            DisplayPart::Reasoning(_) => None,
            DisplayPart::Part(part) => Some(part.as_ref().clone()),
        })
        .collect();
    Some(Shown { id: message.id.clone(), at: message.at, parts, failed: None })
}

fn unbase64(data: &str) -> Option<Bytes> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(data).ok()?;
    (bytes.len() <= MAX_UPLOAD).then(|| bytes.into())
}

/// Where a bot may write and may not bring files, an answer does not wait for its file: the words behind it are worth more.
fn without_file(error: ChannelError) -> ChannelError {
    match error.kind() {
        ChannelErrorKind::Denied => {
            ChannelError::new(ChannelErrorKind::Rejected, "the platform does not let the agent post files here; give it the right to")
                .with_source(error)
        }
        _ => error,
    }
}
