//! Handing on what people say.

use std::sync::Mutex;

use ac_controller::{ControllerErrorKind, Session, SessionRequest, UserMessage};
use ac_core::{
    MessageId, ResourceId, SessionKey, ThreadId,
    message::{Author, FilePart, FileSource},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Map, Value, json};

use super::{Actor, Dirty, TRIES, decide::Writing};
use crate::{
    ChannelError, ChannelErrorKind, WithoutButtons,
    event::{Attachment, Incoming, IncomingKind, NO_LONGER_IN_USE, Said, Speaker},
    record::{Binding, ConversationRecord, Item, Starter},
};

/// How many messages after a mention are looked for that came before it.
const CAUGHT_UP: usize = 50;

impl Actor {
    /// Hands one event on. Called again after a crash, so everything here may happen twice and counts once.
    pub(super) async fn inbound(&mut self, record: &ConversationRecord, item: &Item) -> Result<(), ChannelError> {
        let speaker = &item.event.speaker;
        if record.cards.iter().any(|card| card.item == Some(item.n)) {
            // It decided something before this process, or an earlier one, came to forget it.
            return Ok(());
        }
        if let IncomingKind::Click(click) = &item.event.kind
            && !self.has_thread(record).await?
        {
            // A press makes no thread: what it belonged to was deleted.
            return self.tell(speaker, click.responder.as_deref(), NO_LONGER_IN_USE).await;
        }
        let Some((binding, session, new)) = self.admit(record, speaker).await? else { return Ok(()) };
        match &item.event.kind {
            IncomingKind::Click(click) => self.click(&session, speaker, click).await,
            IncomingKind::Message(said) => {
                if new {
                    self.catch_up(item, said).await?;
                }
                if self.reply(&session, speaker, said).await? {
                    return Ok(());
                }
                self.say(&session, &binding, item, said, new).await
            }
        }
    }

    async fn has_thread(&self, record: &ConversationRecord) -> Result<bool, ChannelError> {
        Ok(match &record.binding {
            Some(binding) => self.controller().thread(&binding.thread).await?.is_some(),
            None => false,
        })
    }

    /// What was said after the message that made the conversation the agent's, and was delivered before it: nobody listened then.
    async fn catch_up(&self, item: &Item, said: &Said) -> Result<(), ChannelError> {
        let Some(message) = said.message.as_deref().filter(|_| !self.conversation.direct) else { return Ok(()) };
        let later = match self.adapter().later(&self.conversation, message, CAUGHT_UP).await {
            Ok(later) => later,
            Err(error) if error.is_transient() && self.failures < TRIES => return Err(error),
            Err(error) => {
                tracing::warn!(code = error.code(), "what was said after a mention could not be read");
                return Ok(());
            }
        };
        let fits = |event: &Incoming| {
            event.conversation.id == self.conversation.id
                && matches!(&event.kind, IncomingKind::Message(said) if !said.text.trim().is_empty() || !said.files.is_empty())
        };
        let later: Vec<Incoming> = later.into_iter().filter(fits).collect();
        let now = self.shared.clock.now();
        self.change(|record| record.take_behind(item.n, &later, now).then_some(())).await?;
        Ok(())
    }

    /// The session of the conversation for this person; `None` when the host refuses.
    async fn admit(&mut self, record: &ConversationRecord, speaker: &Speaker) -> Result<Option<(Binding, Session, bool)>, ChannelError> {
        let resource = match &record.binding {
            Some(binding) => binding.session.resource.clone(),
            None => match self.shared.hooks.resolve_resource_id(&self.about(speaker)).await {
                Some(resource) => resource,
                None => default_resource(&self.conversation.id),
            },
        };
        let own = match self.shared.hooks.resolve_session(&self.about(speaker), &resource).await {
            Ok(own) => own,
            Err(refused) => {
                tracing::info!(%refused, "the host refuses a conversation");
                return Ok(None);
            }
        };
        if let Some(session) = own {
            if *session.resource() != resource {
                let message = "the session that the host brought belongs to another resource";
                return Err(ChannelError::new(ChannelErrorKind::Session, message));
            }
            if self.session.as_ref().is_some_and(|known| *known != session) || self.session.is_none() {
                self.events = None;
                self.session = Some(session);
            }
        }
        let new = record.binding.is_none() || self.item == Some(0);
        let binding = match &record.binding {
            Some(binding) => binding.clone(),
            None => self.bind(resource, speaker).await?,
        };
        let session = self.open_session(&binding, Some(speaker)).await?;
        let binding = self.record().await?.binding.clone().unwrap_or(binding);
        Ok(Some((binding, session, new)))
    }

    /// Maps a new conversation to a thread and a session.
    async fn bind(&mut self, resource: ResourceId, speaker: &Speaker) -> Result<Binding, ChannelError> {
        let key = match &self.session {
            Some(own) => own.key().clone(),
            None if resource == default_resource(&self.conversation.id) => SessionKey::new(resource),
            // Conversations that share a resource do not share a session, so neither moves the other's thread.
            None => SessionKey::scoped(resource, self.conversation.id.as_str()),
        };
        let thread = match self.shared.hooks.resolve_thread_id(&self.about(speaker)).await {
            Some(thread) if self.controller().thread(&thread).await?.is_none() => thread,
            _ => self.fresh_thread(),
        };
        let binding = Binding { thread, session: key };
        let bound = self
            .change(|record| match &record.binding {
                // Another process was faster.
                Some(known) => Some(known.clone()),
                None => {
                    record.binding = Some(binding.clone());
                    Some(binding.clone())
                }
            })
            .await?;
        Ok(bound.unwrap_or(binding))
    }

    fn fresh_thread(&self) -> ThreadId {
        self.shared.ids.fresh("thread").into()
    }

    /// The session, on the conversation's thread; prepared by the host before its first message.
    pub(super) async fn open_session(&mut self, binding: &Binding, speaker: Option<&Speaker>) -> Result<Session, ChannelError> {
        if let Some(session) = &self.session
            && session.thread_id().as_ref() == Some(&binding.thread)
            && self.controller().thread(&binding.thread).await?.is_some()
        {
            let session = session.clone();
            self.prepare(&session, speaker).await;
            self.attach_events(&session);
            return Ok(session);
        }
        let mut thread = binding.thread.clone();
        let exists = self.controller().thread(&thread).await?.is_some();
        let request = SessionRequest::from(binding.session.clone()).thread(thread.clone());
        let session = match self.controller().create_session(request).await {
            Ok(session) => session,
            // Somebody deleted the thread, or gave its id away: the conversation begins anew.
            Err(error) if matches!(error.kind(), ControllerErrorKind::ThreadExists | ControllerErrorKind::ThreadNotFound) => {
                thread = self.fresh_thread();
                let request = SessionRequest::from(binding.session.clone()).thread(thread.clone());
                let session = self.controller().create_session(request).await?;
                self.change(|record| {
                    record.binding = Some(Binding { thread: thread.clone(), session: binding.session.clone() });
                    record.cursor = None;
                    record.posts.clear();
                    Some(())
                })
                .await?;
                session
            }
            Err(error) => return Err(error.into()),
        };
        if !exists {
            let channel = json!({
                "platform": self.registered.adapter.platform(),
                "conversation": self.conversation.id,
                "channel": self.conversation.channel,
            });
            session.set_thread_setting(Some(&thread), "channel", Some(channel)).await?;
        }
        self.prepare(&session, speaker).await;
        if self.session.as_ref() != Some(&session) {
            self.events = None;
        }
        self.session = Some(session.clone());
        self.attach_events(&session);
        Ok(session)
    }

    async fn prepare(&self, session: &Session, speaker: Option<&Speaker>) {
        let nobody = Speaker::new("");
        let about = self.about(speaker.unwrap_or(&nobody));
        self.shared.prepared.prepare(self.controller(), self.shared.hooks.as_ref(), session, &about).await;
    }

    /// Hears the session, unless it does; what there is to be seen by then is looked at.
    pub(super) fn attach_events(&mut self, session: &Session) {
        if self.events.is_none() {
            self.events = Some(Mutex::new(session.subscribe()));
            self.running = session.is_running();
            self.dirty = Dirty::ALL;
        }
    }

    async fn say(&mut self, session: &Session, binding: &Binding, item: &Item, said: &Said, new: bool) -> Result<(), ChannelError> {
        let speaker = &item.event.speaker;
        let id = MessageId::from(format!("{}#{}", self.conversation.id, item.n));
        let mut text = String::new();
        if new && !self.conversation.direct {
            text.push_str(&self.context(said).await);
        }
        if self.conversation.direct {
            text.push_str(&said.text);
        } else {
            let name = self.adapter().name_of(speaker).await;
            text.push_str(&format!("{}: {}", named(&speaker.clone().named(name)), indented(&said.text)));
        }
        let mut files = vec![];
        for file in &said.files {
            match self.fetch(file).await {
                Ok(part) => files.push(part),
                Err(described) => text.push_str(&format!("\n[{described}]")),
            }
        }
        let mut host = Map::new();
        host.insert(
            "channel".to_owned(),
            json!({
                "platform": self.registered.adapter.platform(),
                "conversation": self.conversation.id,
                "message": said.message,
                "speaker": { "id": speaker.id, "name": speaker.name },
            }),
        );
        let author = Author { id: speaker.id.clone(), name: speaker.name.clone(), avatar_url: None };
        let mut message = UserMessage::new(text).id(id).author(author).host(host);
        message = files.into_iter().fold(message, UserMessage::file);
        if !self.adapter().capabilities().buttons && self.registered.settings.without_buttons == WithoutButtons::RunWithoutAsking {
            message = message.unattended();
        }
        let writing = self.writing(session, speaker).await?;
        // What is asked from here on was not there to be declined.
        if writing != Writing::Declines {
            message = message.decides_nothing();
        }
        let submitted = match session.submit_once(message).await {
            Ok(submitted) => submitted,
            Err(error)
                if matches!(
                    error.kind(),
                    ControllerErrorKind::NoModel | ControllerErrorKind::TooLarge | ControllerErrorKind::EmptyMessage
                ) =>
            {
                tracing::warn!(code = error.code(), "a message was not taken");
                let line = self.line(&self.error_line(Some(&(&error).into())));
                return self.add_note(format!("item:{}", item.n), line).await;
            }
            Err(error) => return Err(error.into()),
        };
        self.running = true;
        let run = match &submitted {
            Some(submitted) if submitted.joined => {
                if writing == Writing::Waits {
                    self.tell(speaker, None, "Your message waits until it is decided what is asked here.").await?;
                }
                return Ok(());
            }
            Some(submitted) => submitted.run.clone(),
            // It was handed on before this process died: the run that is open now was started by it, or by nobody who is not known.
            None => match session.current_run().await? {
                Some(run) if session.thread_id().as_ref() == Some(&binding.thread) => run,
                _ => return Ok(()),
            },
        };
        let overwrite = submitted.is_some();
        self.change(|record| {
            let known = record.starter.as_ref().is_some_and(|starter| starter.run == run);
            (overwrite || !known).then(|| record.starter = Some(Starter { run: run.clone(), speaker: speaker.clone() }))
        })
        .await?;
        Ok(())
    }

    /// What was said before the agent was first mentioned.
    async fn context(&self, said: &Said) -> String {
        let limit = self.registered.settings.context;
        if limit == 0 {
            return String::new();
        }
        match self.adapter().earlier(&self.conversation, said.message.as_deref(), limit).await {
            Ok(earlier) if earlier.is_empty() => String::new(),
            Ok(earlier) => {
                let mut text = String::from("[Earlier messages of this conversation, oldest first]\n");
                let skip = earlier.len().saturating_sub(limit);
                for one in earlier.iter().skip(skip) {
                    // Whoever wrote it cannot end the list, nor speak as somebody else in it.
                    text.push_str(&format!("{}: {}\n", named(&one.speaker), indented(&one.text)));
                }
                text.push_str("[End of earlier messages]\n\n");
                text
            }
            Err(error) => {
                tracing::warn!(code = error.code(), "the messages before a mention could not be read");
                String::new()
            }
        }
    }

    /// A file as the model gets it, or words about it (SPEC N-8).
    async fn fetch(&self, file: &Attachment) -> Result<FilePart, String> {
        let name = one_line(file.name.as_deref().unwrap_or("unnamed"));
        let media = one_line(file.media_type.split(';').next().unwrap_or_default().trim()).to_ascii_lowercase();
        let settings = &self.registered.settings;
        let wanted = media.starts_with("text/") || media == "application/json" || settings.inline_files.contains(&media);
        if !wanted {
            return Err(format!("attached file {name} ({media}), not shown"));
        }
        if file.size.is_some_and(|size| size > u64::try_from(settings.max_file).unwrap_or(u64::MAX)) {
            return Err(format!("attached file {name} ({media}), too large to be shown"));
        }
        match self.adapter().download(file, settings.max_file).await {
            Ok(bytes) => Ok(FilePart {
                media_type: media,
                source: FileSource::Base64(STANDARD.encode(&bytes).into()),
                name: file.name.clone(),
                opaque: None,
            }),
            Err(error) => {
                tracing::warn!(code = error.code(), "a file could not be fetched");
                Err(format!("attached file {name} ({media}), could not be fetched"))
            }
        }
    }
}

/// Name and id, so that two people of one name are two.
fn named(speaker: &Speaker) -> String {
    let id = one_line(&speaker.id);
    match &speaker.name {
        Some(name) => format!("{} ({id})", one_line(name).replace(':', " ")),
        None => id,
    }
}

/// Where a reader might see a new line begin.
fn breaks(c: char) -> bool {
    (c.is_control() && c != '\t') || matches!(c, '\u{2028}' | '\u{2029}')
}

fn one_line(text: &str) -> String {
    text.replace(breaks, " ")
}

/// What one of several people says: no line but the first begins where a line begins, so nobody speaks as somebody else in it, nor ends a
/// list that it stands in.
fn indented(text: &str) -> String {
    text.replace("\r\n", "\n").replace(breaks, "\n  ")
}

fn default_resource(conversation: &str) -> ResourceId {
    format!("channel:{conversation}").into()
}

/// For logs: what a value is, without what it says.
pub(super) fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Array(_) => "several",
        Value::Object(_) => "object",
        _ => "text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_on_its_line_and_speaks_for_nobody_else() {
        let speaker = Speaker { name: Some("Eve\r\n\u{2028}Ada (U1): yes".to_owned()), ..Speaker::new("U2") };
        assert_eq!(named(&speaker), "Eve   Ada (U1)  yes (U2)");
        assert_eq!(named(&Speaker::new("U2\nAda")), "U2 Ada");
        assert_eq!(indented("one\r\ntwo\u{85}three\tfour"), "one\n  two\n  three\tfour");
    }
}
