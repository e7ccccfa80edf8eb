use std::{sync::PoisonError, time::Duration};

use ac_core::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use super::Slack;
use crate::{
    ChannelError, ChannelErrorKind,
    adapter::{ButtonStyle, Capabilities, ChannelAdapter, LengthUnit, Post, PostKey, Received, Refused, Upload},
    caller::{Answer, Body, is_below, origin},
    event::{Attachment, Conversation, Earlier, Incoming, Speaker},
    render::Dialect,
    signature::digest,
};

/// How many names are kept.
const NAMES: usize = 10_000;
/// How many pages of a thread are read to find its end.
const THREAD_PAGES: usize = 10;

impl Slack {
    fn bearer(&self) -> String {
        format!("Bearer {}", self.token.expose_secret())
    }

    async fn call(&self, method: &str, body: Value) -> Result<Answer, ChannelError> {
        let (url, bearer) = (format!("{}/{method}", self.base), self.bearer());
        judge(self.caller.call(Method::POST, &url, &[("authorization", &bearer)], Body::Json(&body)).await?)
    }

    async fn ask(&self, method: &str, query: &[(&str, &str)]) -> Result<Answer, ChannelError> {
        let query: String = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
        let (url, bearer) = (format!("{}/{method}?{query}", self.base), self.bearer());
        judge(self.caller.call(Method::GET, &url, &[("authorization", &bearer)], Body::Empty).await?)
    }

    fn body(&self, to: &Conversation, post: &Post) -> Map<String, Value> {
        let mut body = Map::new();
        body.insert("channel".into(), to.channel.clone().into());
        body.insert("text".into(), post.text.clone().into());
        body.insert("blocks".into(), blocks(post).into());
        body.insert("unfurl_links".into(), false.into());
        body.insert("unfurl_media".into(), false.into());
        // Nobody is called by what a model writes.
        body.insert("parse".into(), "none".into());
        body.insert("link_names".into(), false.into());
        body
    }

    /// Whether a file that was brought to Slack is to be seen in the channel.
    async fn is_shared(&self, file: &str, to: &Conversation) -> Result<bool, ChannelError> {
        let answer = match self.ask("files.info", &[("file", file)]).await {
            // Whoever may not ask cannot know; to post it again is better than not at all.
            Err(error) if !error.is_transient() => return Ok(false),
            other => other?,
        };
        let shares = answer.body.pointer("/file/shares").and_then(Value::as_object);
        Ok(shares.into_iter().flatten().any(|(_, channels)| channels.get(&to.channel).is_some()))
    }

    /// A message with the mark of a post, among the last ones of the conversation.
    async fn find(&self, to: &Conversation, key: &PostKey, mark: &str) -> Result<Option<String>, ChannelError> {
        let oldest = format!("{}", key.since.as_millis().saturating_sub(60_000) / 1000);
        let mut query = vec![("channel", to.channel.as_str()), ("oldest", &oldest), ("include_all_metadata", "true"), ("limit", "200")];
        let method = match &to.thread {
            Some(thread) => {
                query.push(("ts", thread));
                "conversations.replies"
            }
            None => "conversations.history",
        };
        let answer = self.ask(method, &query).await?;
        let messages = answer.body.get("messages").and_then(Value::as_array);
        let found = messages
            .into_iter()
            .flatten()
            .find(|message| message.pointer("/metadata/event_payload/key").and_then(Value::as_str) == Some(mark));
        Ok(found.and_then(|message| message.get("ts")?.as_str()).map(str::to_owned))
    }
}

#[async_trait]
impl ChannelAdapter for Slack {
    fn platform(&self) -> &str {
        "slack"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            buttons: true,
            menus: true,
            edits: true,
            posts_once: true,
            typing: false,
            // The text of a section block.
            max_text: 3_000,
            unit: LengthUnit::Utf16,
            max_buttons: 8,
            max_options: 100,
            edit_interval: Duration::from_millis(1_200),
            dialect: Dialect::Slack,
        }
    }

    fn receive(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused> {
        self.read(request, now)
    }

    async fn post(&self, to: &Conversation, key: &PostKey, post: &Post) -> Result<String, ChannelError> {
        let mark = digest(&key.key);
        if key.again
            && let Some(known) = self.find(to, key, &mark).await?
        {
            // It says what it said then.
            self.edit(to, &known, post).await?;
            return Ok(known);
        }
        let mut body = self.body(to, post);
        if let Some(thread) = &to.thread {
            body.insert("thread_ts".into(), thread.clone().into());
        }
        body.insert("metadata".into(), json!({ "event_type": "agent_post", "event_payload": { "key": mark } }));
        let answer = self.call("chat.postMessage", Value::Object(body)).await?;
        answer.text("/ts").map(str::to_owned).ok_or_else(|| ChannelError::new(ChannelErrorKind::Unavailable, "Slack names no message"))
    }

    async fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Result<(), ChannelError> {
        let mut body = self.body(to, post);
        body.insert("ts".into(), message.into());
        self.call("chat.update", Value::Object(body)).await.map(drop)
    }

    async fn notice(&self, to: &Conversation, person: &Speaker, _: Option<&str>, text: &str) -> Result<(), ChannelError> {
        let mut body = json!({ "channel": to.channel, "user": person.id, "text": text });
        if let (Some(thread), Some(fields)) = (&to.thread, body.as_object_mut()) {
            fields.insert("thread_ts".into(), thread.clone().into());
        }
        self.call("chat.postEphemeral", body).await.map(drop)
    }

    async fn name_of(&self, person: &Speaker) -> Option<String> {
        if person.name.is_some() {
            return person.name.clone();
        }
        if let Some(known) = self.names.lock().unwrap_or_else(PoisonError::into_inner).get(&person.id) {
            return known.clone();
        }
        let answer = self.ask("users.info", &[("user", &person.id)]).await.ok()?;
        let name = ["/user/profile/display_name", "/user/real_name", "/user/name"]
            .iter()
            .find_map(|pointer| answer.text(pointer).filter(|name| !name.is_empty()))
            .map(str::to_owned);
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if names.len() >= NAMES {
            names.clear();
        }
        names.insert(person.id.clone(), name.clone());
        name
    }

    async fn earlier(&self, to: &Conversation, before: Option<&str>, limit: usize) -> Result<Vec<Earlier>, ChannelError> {
        // A thread is told from its beginning, so its end may be some pages away; a channel is told from its end.
        let thread = to.thread.as_deref().filter(|_| to.thread.as_deref() != before);
        let (method, pages, size) = match thread {
            Some(_) => ("conversations.replies", THREAD_PAGES, "200".to_owned()),
            None => ("conversations.history", 1, limit.min(100).to_string()),
        };
        let mut messages: Vec<(String, Earlier)> = vec![];
        let mut cursor = String::new();
        for _ in 0..pages {
            let mut query = vec![("channel", to.channel.as_str()), ("limit", size.as_str())];
            query.extend(before.map(|before| ("latest", before)));
            query.extend(thread.map(|thread| ("ts", thread)));
            query.extend(Some(("cursor", cursor.as_str())).filter(|_| !cursor.is_empty()));
            let answer = self.ask(method, &query).await?;
            messages.extend(answer.body.get("messages").and_then(Value::as_array).into_iter().flatten().filter_map(|message| {
                let text = message.get("text")?.as_str().filter(|text| !text.is_empty())?.to_owned();
                let user = message.get("user").or_else(|| message.get("bot_id"))?.as_str()?;
                let ts = message.get("ts")?.as_str().filter(|ts| Some(*ts) != before)?.to_owned();
                Some((ts, Earlier { speaker: Speaker::new(user), text }))
            }));
            messages.sort_by(|(a, _), (b, _)| a.cmp(b));
            messages.drain(..messages.len().saturating_sub(limit));
            match answer.text("/response_metadata/next_cursor").filter(|next| !next.is_empty()) {
                Some(next) => next.clone_into(&mut cursor),
                None => break,
            }
        }
        let mut earlier: Vec<Earlier> = messages.into_iter().map(|(_, one)| one).collect();
        for one in &mut earlier {
            one.speaker.name = self.name_of(&one.speaker).await;
        }
        Ok(earlier)
    }

    async fn download(&self, file: &Attachment, limit: usize) -> Result<Bytes, ChannelError> {
        // The token goes to Slack and to nobody else.
        let origin = origin(&self.base);
        if !["https://files.slack.com", &origin].iter().any(|base| is_below(&file.reference, base)) {
            return Err(ChannelError::new(ChannelErrorKind::Denied, "the file is not at Slack"));
        }
        self.caller.fetch(&file.reference, &[("authorization", &self.bearer())], limit).await
    }

    async fn later(&self, to: &Conversation, after: &str, limit: usize) -> Result<Vec<Incoming>, ChannelError> {
        let Some(thread) = &to.thread else { return Ok(vec![]) };
        let limit = limit.clamp(1, 200).to_string();
        let query = [("channel", to.channel.as_str()), ("ts", thread), ("oldest", after), ("limit", &limit)];
        let answer = self.ask("conversations.replies", &query).await?;
        let messages = answer.body.get("messages").and_then(Value::as_array);
        Ok(messages.into_iter().flatten().filter_map(|message| self.told_again(&to.channel, message, after)).collect())
    }

    async fn stage(&self, _: &Conversation, file: &Upload) -> Result<Option<String>, ChannelError> {
        let length = file.bytes.len().to_string();
        let place = self.ask("files.getUploadURLExternal", &[("filename", &file.name), ("length", &length)]).await?;
        let missing = || ChannelError::new(ChannelErrorKind::Unavailable, "Slack names no place for the file");
        let (url, id) = (place.text("/upload_url").ok_or_else(missing)?, place.text("/file_id").ok_or_else(missing)?);
        let raw = Body::Raw { media_type: &file.media_type, bytes: file.bytes.clone() };
        let stored = self.caller.call(Method::POST, url, &[], raw).await?;
        if !stored.status.is_success() {
            return Err(ChannelError::new(ChannelErrorKind::Unavailable, "Slack did not take the file"));
        }
        Ok(Some(id.to_owned()))
    }

    async fn upload(&self, to: &Conversation, key: &PostKey, file: &Upload) -> Result<String, ChannelError> {
        let id = match &key.staged {
            Some(id) if key.again && self.is_shared(id, to).await? => return Ok(id.clone()),
            Some(id) => id.clone(),
            None => self.stage(to, file).await?.unwrap_or_default(),
        };
        let mut body = json!({ "files": [{ "id": id, "title": file.name }], "channel_id": to.channel });
        if let (Some(thread), Some(fields)) = (&to.thread, body.as_object_mut()) {
            fields.insert("thread_ts".into(), thread.clone().into());
        }
        self.call("files.completeUploadExternal", body).await?;
        Ok(id)
    }
}

fn judge(answer: Answer) -> Result<Answer, ChannelError> {
    if answer.status.as_u16() == 429 {
        return Err(answer.pause("/retry_after"));
    }
    if answer.status.is_server_error() {
        return Err(ChannelError::new(ChannelErrorKind::Unavailable, format!("Slack answered {}", answer.status.as_u16())));
    }
    if answer.body.get("ok").and_then(Value::as_bool) == Some(true) {
        return Ok(answer);
    }
    use ChannelErrorKind as K;
    let code = answer.text("/error").unwrap_or("no answer in JSON");
    let kind = match code {
        "ratelimited" | "rate_limited" => return Err(answer.pause("/retry_after")),
        "message_not_found" | "cant_update_message" | "edit_window_closed" | "thread_not_found" | "file_not_found" => K::Gone,
        "msg_too_long" | "msg_blocks_too_long" => K::TooLong,
        "invalid_auth" | "not_authed" | "account_inactive" | "token_revoked" | "token_expired" | "missing_scope" | "no_permission"
        | "not_in_channel" | "channel_not_found" | "is_archived" | "restricted_action" => K::Denied,
        "internal_error" | "fatal_error" | "service_unavailable" | "request_timeout" | "no answer in JSON" => K::Unavailable,
        _ => K::Rejected,
    };
    // The code is one of a list and holds nothing of the conversation; anything else is not repeated.
    let code: String = code.chars().filter(|c| c.is_ascii_lowercase() || matches!(c, '_' | ' ')).take(60).collect();
    Err(ChannelError::new(kind, format!("Slack answered `{code}`")))
}

fn blocks(post: &Post) -> Vec<Value> {
    if post.buttons.is_empty() && post.menu.is_none() {
        return vec![];
    }
    // Verbatim: Slack makes neither links nor mentions of what is plain text.
    let mut blocks = vec![json!({ "type": "section", "text": { "type": "mrkdwn", "text": post.text, "verbatim": true } })];
    if let Some(menu) = &post.menu {
        let options: Vec<Value> =
            menu.options.iter().map(|(label, value)| json!({ "text": { "type": "plain_text", "text": label }, "value": value })).collect();
        let kind = if menu.several { "multi_static_select" } else { "static_select" };
        blocks.push(json!({
            "type": "section",
            "text": { "type": "plain_text", "text": menu.placeholder },
            "accessory": {
                "type": kind,
                "action_id": "menu",
                "placeholder": { "type": "plain_text", "text": menu.placeholder },
                "options": options,
            },
        }));
    }
    if !post.buttons.is_empty() {
        let elements: Vec<Value> = (0..)
            .zip(&post.buttons)
            .map(|(n, button)| {
                let mut element = json!({
                    "type": "button",
                    "action_id": format!("button{n}"),
                    "text": { "type": "plain_text", "text": button.label },
                    "value": button.value,
                });
                let style = match button.style {
                    ButtonStyle::Plain => None,
                    ButtonStyle::Primary => Some("primary"),
                    ButtonStyle::Danger => Some("danger"),
                };
                if let (Some(style), Some(fields)) = (style, element.as_object_mut()) {
                    fields.insert("style".into(), style.into());
                }
                element
            })
            .collect();
        blocks.push(json!({ "type": "actions", "elements": elements }));
    }
    blocks
}
