//! Everything else: webhooks that are signed as Standard Webhooks says.
//!
//! In: `POST` with `webhook-id`, `webhook-timestamp` and `webhook-signature`, and a JSON body:
//!
//! ```json
//! {"type": "message", "conversation": "c1", "direct": true, "speaker": {"id": "u1", "name": "Ada"}, "text": "Hello"}
//! {"type": "click", "conversation": "c1", "speaker": {"id": "u1"}, "values": ["1.2.a.…"], "message": "m7"}
//! ```
//!
//! Out: signed the same way, to the configured address: `post`, `edit`, `notice`, `typing`, `file`. `webhook-id` is the same when the same
//! post is sent again, so the receiver shows it once. The receiver may answer `{"message": "its own name for the message"}`.

use std::time::Duration;

use ac_core::Timestamp;
use async_trait::async_trait;
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::Method;
use secrecy::{ExposeSecret, SecretSlice};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    ChannelError, ChannelErrorKind,
    adapter::{Button, ButtonStyle, Capabilities, ChannelAdapter, LengthUnit, Post, PostKey, Received, Refused, Upload},
    caller::{Body, Caller, is_below, origin},
    event::{Attachment, Click, Conversation, Incoming, IncomingKind, Said, Speaker},
    render::Dialect,
    signature::{digest, header, hmac, hmac_fits, is_fresh},
};

/// A platform of the host's own, or a bridge to one: signed webhooks in both directions.
#[derive(Clone, Debug)]
pub struct SignedWebhook {
    platform: String,
    key: SecretSlice<u8>,
    out: String,
    capabilities: Capabilities,
    caller: Caller,
    clock: fn() -> i64,
}

impl SignedWebhook {
    /// A platform of this name. `secret` as Standard Webhooks writes it (`whsec_` and base64), or raw bytes of at least 24; `out` is where
    /// posts go.
    ///
    /// # Errors
    /// [`Config`](ChannelErrorKind::Config) for a secret that is too short or no base64.
    pub fn new(platform: impl Into<String>, secret: &str, out: impl Into<String>) -> Result<Self, ChannelError> {
        let key = match secret.strip_prefix("whsec_") {
            Some(encoded) => STANDARD.decode(encoded).map_err(|error| {
                ChannelError::new(ChannelErrorKind::Config, "the secret of the webhook is no base64 after `whsec_`").with_source(error)
            })?,
            None => secret.as_bytes().to_vec(),
        };
        if key.len() < 24 {
            return Err(ChannelError::new(ChannelErrorKind::Config, "the secret of the webhook is shorter than 24 bytes"));
        }
        let capabilities = Capabilities {
            buttons: true,
            menus: true,
            edits: true,
            posts_once: true,
            typing: true,
            max_text: 8_000,
            unit: LengthUnit::Chars,
            max_buttons: 10,
            max_options: 100,
            edit_interval: Duration::from_millis(500),
            dialect: Dialect::Markdown,
        };
        let clock = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX))
        };
        Ok(Self { platform: platform.into(), key: key.into(), out: out.into(), capabilities, caller: Caller::new(), clock })
    }

    /// What the other side can do: for one without buttons, or without edits.
    #[must_use]
    pub fn capabilities(mut self, change: impl FnOnce(&mut Capabilities)) -> Self {
        change(&mut self.capabilities);
        self
    }

    async fn send(&self, id: &str, body: &Value) -> Result<Value, ChannelError> {
        let at = (self.clock)().to_string();
        let text = body.to_string();
        let mac = hmac(self.key.expose_secret(), &[id.as_bytes(), b".", at.as_bytes(), b".", text.as_bytes()]);
        let signature = format!("v1,{}", STANDARD.encode(mac));
        let headers = [("webhook-id", id), ("webhook-timestamp", at.as_str()), ("webhook-signature", signature.as_str())];
        let raw = Body::Raw { media_type: "application/json", bytes: text.into() };
        let answer = self.caller.call(Method::POST, &self.out, &headers, raw).await?;
        match answer.status.as_u16() {
            200..=299 => Ok(answer.body),
            429 => Err(answer.pause("/retry_after")),
            404 | 410 => Err(ChannelError::new(ChannelErrorKind::Gone, "the receiver does not know the message or the conversation")),
            413 => Err(ChannelError::new(ChannelErrorKind::TooLong, "the receiver found the text too long")),
            401 | 403 => Err(ChannelError::new(ChannelErrorKind::Denied, "the receiver refuses the signature")),
            500.. => Err(ChannelError::new(ChannelErrorKind::Unavailable, "the receiver failed")),
            status => Err(ChannelError::new(ChannelErrorKind::Rejected, format!("the receiver answered {status}"))),
        }
    }
}

#[derive(Deserialize)]
struct Body0 {
    #[serde(rename = "type")]
    kind: Kind,
    conversation: String,
    #[serde(default)]
    direct: bool,
    speaker: Speaker,
    #[serde(default = "yes")]
    addressed: bool,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    message: Option<String>,
    #[serde(default)]
    reply_to: Option<String>,
    #[serde(default)]
    values: Vec<String>,
    #[serde(default)]
    files: Vec<Attachment>,
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Message,
    Click,
}

fn yes() -> bool {
    true
}

#[async_trait]
impl ChannelAdapter for SignedWebhook {
    fn platform(&self) -> &str {
        &self.platform
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities.clone()
    }

    fn receive(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused> {
        let id = header(request, "webhook-id").ok_or(Refused::Unsigned)?;
        let at = header(request, "webhook-timestamp").ok_or(Refused::Unsigned)?;
        let signatures = header(request, "webhook-signature").ok_or(Refused::Unsigned)?;
        let pieces: [&[u8]; 5] = [id.as_bytes(), b".", at.as_bytes(), b".", request.body()];
        // Several while a secret is being changed. Each is compared, whatever the others are.
        let mut fits = false;
        for signature in signatures.split(' ') {
            let given = signature.strip_prefix("v1,").and_then(|text| STANDARD.decode(text).ok()).unwrap_or_default();
            fits |= hmac_fits(self.key.expose_secret(), &pieces, &given);
        }
        if !fits {
            return Err(Refused::Unsigned);
        }
        if !at.parse().is_ok_and(|at| is_fresh(at, now)) {
            return Err(Refused::Stale);
        }
        let body: Body0 = serde_json::from_slice(request.body()).map_err(|_| Refused::Malformed)?;
        if body.speaker.id.is_empty() || body.conversation.is_empty() {
            return Err(Refused::Malformed);
        }
        let conversation = Conversation {
            id: format!("{}:{}", self.platform, body.conversation),
            channel: body.conversation,
            thread: None,
            direct: body.direct,
        };
        let kind = match body.kind {
            Kind::Message => IncomingKind::Message(Said {
                text: body.text.unwrap_or_default(),
                message: body.message,
                reply_to: body.reply_to,
                addressed: body.addressed || body.direct,
                follows: true,
                files: body.files,
            }),
            Kind::Click => {
                IncomingKind::Click(Click { values: body.values, text: body.text, message: body.message, responder: Some(id.to_owned()) })
            }
        };
        Ok(Received::events(vec![Incoming { ids: vec![id.to_owned()], conversation, speaker: body.speaker, kind }]))
    }

    async fn post(&self, to: &Conversation, key: &PostKey, post: &Post) -> Result<String, ChannelError> {
        let id = digest(&key.key);
        let mut body = shown(post);
        body.insert("type".into(), "post".into());
        body.insert("conversation".into(), to.channel.clone().into());
        let answer = self.send(&id, &Value::Object(body)).await?;
        let message = answer.get("message").and_then(Value::as_str).map_or(id, str::to_owned);
        if key.again && self.capabilities.edits {
            // The receiver may know it from an earlier attempt, which said what it said then.
            self.edit(to, &message, post).await?;
        }
        Ok(message)
    }

    async fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Result<(), ChannelError> {
        let mut body = shown(post);
        body.insert("type".into(), "edit".into());
        body.insert("conversation".into(), to.channel.clone().into());
        body.insert("message".into(), message.into());
        let body = Value::Object(body);
        self.send(&digest(&body.to_string()), &body).await.map(drop)
    }

    async fn notice(&self, to: &Conversation, person: &Speaker, responder: Option<&str>, text: &str) -> Result<(), ChannelError> {
        let body = json!({ "type": "notice", "conversation": to.channel, "person": person.id, "responder": responder, "text": text });
        self.send(&digest(&body.to_string()), &body).await.map(drop)
    }

    async fn typing(&self, to: &Conversation) -> Result<(), ChannelError> {
        let body = json!({ "type": "typing", "conversation": to.channel });
        self.send(&digest(&format!("{body}{}", (self.clock)())), &body).await.map(drop)
    }

    async fn download(&self, file: &Attachment, limit: usize) -> Result<Bytes, ChannelError> {
        // Only from where the posts go: a webhook is not to make this process fetch whatever it likes.
        let origin = origin(&self.out);
        if !is_below(&file.reference, &origin) {
            return Err(ChannelError::new(ChannelErrorKind::Denied, "the file is not where the posts go"));
        }
        self.caller.fetch(&file.reference, &[], limit).await
    }

    async fn upload(&self, to: &Conversation, key: &PostKey, file: &Upload) -> Result<String, ChannelError> {
        let id = digest(&key.key);
        let body = json!({
            "type": "file",
            "conversation": to.channel,
            "name": file.name,
            "mediaType": file.media_type,
            "data": STANDARD.encode(&file.bytes),
        });
        let answer = self.send(&id, &body).await?;
        Ok(answer.get("message").and_then(Value::as_str).map_or(id, str::to_owned))
    }
}

fn shown(post: &Post) -> serde_json::Map<String, Value> {
    let style = |button: &Button| match button.style {
        ButtonStyle::Plain => "plain",
        ButtonStyle::Primary => "primary",
        ButtonStyle::Danger => "danger",
    };
    let buttons: Vec<Value> =
        post.buttons.iter().map(|button| json!({ "label": button.label, "value": button.value, "style": style(button) })).collect();
    let mut body = serde_json::Map::new();
    body.insert("text".into(), post.text.clone().into());
    body.insert("buttons".into(), buttons.into());
    if let Some(menu) = &post.menu {
        let options: Vec<Value> = menu.options.iter().map(|(label, value)| json!({ "label": label, "value": value })).collect();
        body.insert("menu".into(), json!({ "placeholder": menu.placeholder, "options": options, "several": menu.several }));
    }
    body
}

#[cfg(test)]
mod tests;
