use std::time::Duration;

use ac_core::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use super::Telegram;
use crate::{
    ChannelError, ChannelErrorKind,
    adapter::{BEGINNING, Capabilities, ChannelAdapter, LengthUnit, Post, PostKey, Received, Refused, Upload},
    caller::{Answer, Body, multipart},
    event::{Attachment, Conversation, Speaker},
    render::Dialect,
};

/// The longest notice that a click can be answered with.
const NOTICE: usize = 200;

impl Telegram {
    fn url(&self, method: &str) -> String {
        format!("{}/bot{}/{method}", self.base, self.token.expose_secret())
    }

    async fn call(&self, method: &str, body: &Value) -> Result<Answer, ChannelError> {
        judge(self.caller.call(Method::POST, &self.url(method), &[], Body::Json(body)).await?)
    }
}

fn body(to: &Conversation, post: &Post) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("chat_id".into(), to.channel.clone().into());
    body.insert("text".into(), post.text.clone().into());
    body.insert("parse_mode".into(), "HTML".into());
    body.insert("link_preview_options".into(), json!({ "is_disabled": true }));
    let row = |buttons: &[crate::adapter::Button]| -> Vec<Value> {
        buttons.iter().map(|button| json!({ "text": button.label, "callback_data": button.value })).collect()
    };
    let rows: Vec<Vec<Value>> = post.buttons.chunks(2).map(row).collect();
    body.insert("reply_markup".into(), json!({ "inline_keyboard": rows }));
    body
}

fn named(answer: &Answer) -> Result<String, ChannelError> {
    let id = answer.body.pointer("/result/message_id").and_then(Value::as_i64);
    id.map(|id| id.to_string()).ok_or_else(|| ChannelError::new(ChannelErrorKind::Unavailable, "Telegram names no message"))
}

#[async_trait]
impl ChannelAdapter for Telegram {
    fn platform(&self) -> &str {
        "telegram"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            buttons: true,
            menus: false,
            edits: true,
            // The Bot API has neither a key for posts nor a way to look for them.
            posts_once: false,
            typing: true,
            max_text: 4_096,
            unit: LengthUnit::Utf16,
            max_buttons: 12,
            max_options: 0,
            edit_interval: Duration::from_millis(1_200),
            dialect: Dialect::TelegramHtml,
        }
    }

    fn receive(&self, request: &http::Request<Bytes>, _: Timestamp) -> Result<Received, Refused> {
        self.read(request)
    }

    async fn post(&self, to: &Conversation, _: &PostKey, post: &Post) -> Result<String, ChannelError> {
        let mut body = body(to, post);
        if let Some(thread) = to.thread.as_ref().and_then(|thread| thread.parse::<i64>().ok()) {
            body.insert("message_thread_id".into(), thread.into());
        }
        named(&self.call("sendMessage", &Value::Object(body)).await?)
    }

    async fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Result<(), ChannelError> {
        let mut body = body(to, post);
        body.insert("message_id".into(), message.parse::<i64>().unwrap_or_default().into());
        self.call("editMessageText", &Value::Object(body)).await.map(drop)
    }

    async fn notice(&self, to: &Conversation, _: &Speaker, responder: Option<&str>, text: &str) -> Result<(), ChannelError> {
        if let Some(query) = responder {
            // Plain text there: what was escaped for a message is not.
            let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&");
            let text: String = text.chars().take(NOTICE).collect();
            return self
                .call("answerCallbackQuery", &json!({ "callback_query_id": query, "text": text, "show_alert": true }))
                .await
                .map(drop);
        }
        if !to.direct {
            return Err(ChannelError::unsupported("tell one person something in a group"));
        }
        self.call("sendMessage", &Value::Object(body(to, &Post::text(text)))).await.map(drop)
    }

    async fn acknowledge(&self, responder: &str) -> Result<(), ChannelError> {
        self.call("answerCallbackQuery", &json!({ "callback_query_id": responder })).await.map(drop)
    }

    async fn typing(&self, to: &Conversation) -> Result<(), ChannelError> {
        let mut body = json!({ "chat_id": to.channel, "action": "typing" });
        if let (Some(thread), Some(fields)) = (to.thread.as_ref().and_then(|thread| thread.parse::<i64>().ok()), body.as_object_mut()) {
            fields.insert("message_thread_id".into(), thread.into());
        }
        self.call("sendChatAction", &body).await.map(drop)
    }

    async fn download(&self, file: &Attachment, limit: usize) -> Result<Bytes, ChannelError> {
        let found = self.call("getFile", &json!({ "file_id": file.reference })).await?;
        let path = found.text("/result/file_path").filter(|path| !path.contains(".."));
        let path = path.ok_or_else(|| ChannelError::new(ChannelErrorKind::Gone, "Telegram names no place of the file"))?;
        let url = format!("{}/file/bot{}/{path}", self.base, self.token.expose_secret());
        self.caller.fetch(&url, &[], limit).await
    }

    async fn stage(&self, to: &Conversation, _: &Upload) -> Result<Option<String>, ChannelError> {
        // A message that becomes the file; it may be made into it as often as one likes.
        let key = PostKey::new(String::new(), Timestamp::default());
        self.post(to, &key, &Post::text(BEGINNING)).await.map(Some)
    }

    async fn upload(&self, to: &Conversation, key: &PostKey, file: &Upload) -> Result<String, ChannelError> {
        if let Some(place) = &key.staged {
            let media = json!({ "type": "document", "media": "attach://file" }).to_string();
            let fields = [("chat_id", to.channel.as_str()), ("message_id", place), ("media", &media)];
            let (media_type, bytes) = multipart(&fields, "file", &file.name, &file.media_type, &file.bytes);
            let raw = Body::Raw { media_type: &media_type, bytes };
            match judge(self.caller.call(Method::POST, &self.url("editMessageMedia"), &[], raw).await?) {
                Ok(_) => return Ok(place.clone()),
                Err(error) if error.kind() == ChannelErrorKind::NotModified => return Ok(place.clone()),
                // A server that cannot make a text into a file yet.
                Err(error) if error.kind() == ChannelErrorKind::Rejected => {}
                Err(error) => return Err(error),
            }
        }
        let mut fields = vec![("chat_id", to.channel.as_str())];
        if let Some(thread) = &to.thread {
            fields.push(("message_thread_id", thread));
        }
        let (media_type, bytes) = multipart(&fields, "document", &file.name, &file.media_type, &file.bytes);
        let raw = Body::Raw { media_type: &media_type, bytes };
        let posted = named(&judge(self.caller.call(Method::POST, &self.url("sendDocument"), &[], raw).await?)?)?;
        if let Some(place) = &key.staged {
            let held = json!({ "chat_id": to.channel, "message_id": place.parse::<i64>().ok() });
            if let Err(error) = self.call("deleteMessage", &held).await {
                tracing::debug!(code = error.code(), "what held the place of a file stays");
            }
        }
        Ok(posted)
    }
}

fn judge(answer: Answer) -> Result<Answer, ChannelError> {
    use ChannelErrorKind as K;
    if answer.body.get("ok").and_then(Value::as_bool) == Some(true) {
        return Ok(answer);
    }
    let code = answer.body.get("error_code").and_then(Value::as_u64).unwrap_or_else(|| answer.status.as_u16().into());
    let said = answer.text("/description").unwrap_or_default().to_ascii_lowercase();
    let kind = match code {
        429 => return Err(answer.pause("/parameters/retry_after")),
        500.. => K::Unavailable,
        401 | 403 => K::Denied,
        _ if said.contains("message is not modified") => K::NotModified,
        _ if said.contains("message is too long") || said.contains("message_too_long") => K::TooLong,
        _ if ["message to edit not found", "message can't be edited", "message_id_invalid", "chat not found"]
            .iter()
            .any(|gone| said.contains(gone)) =>
        {
            K::Gone
        }
        _ if answer.body.is_null() => K::Unavailable,
        _ => K::Rejected,
    };
    Err(ChannelError::new(kind, format!("Telegram answered {code}")))
}
