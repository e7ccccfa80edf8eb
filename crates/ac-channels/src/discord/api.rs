use std::time::Duration;

use ac_core::Timestamp;
use async_trait::async_trait;
use bytes::Bytes;
use http::Method;
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

use super::Discord;
use crate::{
    ChannelError, ChannelErrorKind,
    adapter::{ButtonStyle, Capabilities, ChannelAdapter, LengthUnit, Post, PostKey, Received, Refused, Upload},
    caller::{Answer, Body, is_below, multipart, origin},
    event::{Attachment, Conversation, Earlier, Speaker},
    render::Dialect,
    signature::digest,
};

/// The first moment of Discord's ids, in milliseconds since 1970.
const EPOCH: i64 = 1_420_070_400_000;
/// The most that a menu can hold.
const OPTIONS: usize = 25;

impl Discord {
    async fn call(&self, method: Method, path: &str, body: Body<'_>) -> Result<Answer, ChannelError> {
        let (url, auth) = (format!("{}{path}", self.base), format!("Bot {}", self.token.expose_secret()));
        judge(self.caller.call(method, &url, &[("authorization", &auth)], body).await?)
    }

    /// A message that an earlier attempt at this post made, among those since then.
    async fn find(&self, to: &Conversation, key: &PostKey, is_it: impl Fn(&Value) -> bool) -> Result<Option<String>, ChannelError> {
        let since = key.since.as_millis().saturating_sub(EPOCH + 60_000).max(0) << 22;
        // Ids grow with time. What stands before the last post that is known is an earlier one, even if it says the same.
        let since = key.after.as_deref().and_then(|after| after.parse().ok()).map_or(since, |after: i64| after.max(since));
        let path = format!("/channels/{}/messages?limit=100&after={since}", to.channel);
        let answer = self.call(Method::GET, &path, Body::Empty).await?;
        let messages = answer.body.as_array();
        let ours = messages.into_iter().flatten().filter(|message| {
            let author = message.pointer("/author/id").and_then(Value::as_str);
            let app = message.get("application_id").and_then(Value::as_str);
            author == Some(&self.app) || app == Some(&self.app)
        });
        let found = ours.into_iter().find(|message| is_it(message));
        Ok(found.and_then(|message| message.get("id")?.as_str()).map(str::to_owned))
    }
}

fn says(value: &Value, name: &str, text: &str) -> bool {
    !text.is_empty() && value.get(name).and_then(Value::as_str) == Some(text)
}

fn body(post: &Post) -> Map<String, Value> {
    let mut body = Map::new();
    body.insert("content".into(), post.text.clone().into());
    // Nobody is called by what a model writes.
    body.insert("allowed_mentions".into(), json!({ "parse": [] }));
    body.insert("components".into(), components(post).into());
    body
}

#[async_trait]
impl ChannelAdapter for Discord {
    fn platform(&self) -> &str {
        "discord"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            buttons: true,
            menus: true,
            edits: true,
            posts_once: true,
            typing: true,
            max_text: 2_000,
            unit: LengthUnit::Utf16,
            max_buttons: 10,
            max_options: OPTIONS,
            edit_interval: Duration::from_millis(1_200),
            dialect: Dialect::Discord,
        }
    }

    fn receive(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused> {
        self.read(request, now)
    }

    async fn post(&self, to: &Conversation, key: &PostKey, post: &Post) -> Result<String, ChannelError> {
        let nonce = digest(&key.key);
        // The nonce holds for some minutes; after a longer pause the message is looked for.
        if key.again
            && let Some(known) =
                self.find(to, key, |message| says(message, "nonce", &nonce) || says(message, "content", &post.text)).await?
        {
            self.edit(to, &known, post).await?;
            return Ok(known);
        }
        let mut body = body(post);
        body.insert("nonce".into(), nonce.into());
        body.insert("enforce_nonce".into(), true.into());
        let body = Value::Object(body);
        let answer = self.call(Method::POST, &format!("/channels/{}/messages", to.channel), Body::Json(&body)).await?;
        let id = named(&answer)?;
        if key.again {
            // By its nonce it may be an earlier one, which says what it said then.
            self.edit(to, &id, post).await?;
        }
        Ok(id)
    }

    async fn edit(&self, to: &Conversation, message: &str, post: &Post) -> Result<(), ChannelError> {
        let body = Value::Object(body(post));
        self.call(Method::PATCH, &format!("/channels/{}/messages/{message}", to.channel), Body::Json(&body)).await.map(drop)
    }

    async fn notice(&self, to: &Conversation, _: &Speaker, responder: Option<&str>, text: &str) -> Result<(), ChannelError> {
        let body = match responder {
            Some(_) => json!({ "content": text, "flags": 64, "allowed_mentions": { "parse": [] } }),
            None if to.direct => json!({ "content": text, "allowed_mentions": { "parse": [] } }),
            None => return Err(ChannelError::unsupported("tell one person something who did not act")),
        };
        let path = match responder {
            Some(responder) => format!("/webhooks/{responder}"),
            None => format!("/channels/{}/messages", to.channel),
        };
        self.call(Method::POST, &path, Body::Json(&body)).await.map(drop)
    }

    async fn typing(&self, to: &Conversation) -> Result<(), ChannelError> {
        self.call(Method::POST, &format!("/channels/{}/typing", to.channel), Body::Json(&json!({}))).await.map(drop)
    }

    async fn earlier(&self, to: &Conversation, before: Option<&str>, limit: usize) -> Result<Vec<Earlier>, ChannelError> {
        let before = before.map_or_else(String::new, |before| format!("&before={before}"));
        let path = format!("/channels/{}/messages?limit={}{before}", to.channel, limit.clamp(1, 100));
        let answer = self.call(Method::GET, &path, Body::Empty).await?;
        let mut earlier: Vec<Earlier> = answer
            .body
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|message| {
                let text = message.get("content")?.as_str().filter(|text| !text.is_empty())?.to_owned();
                let id = message.pointer("/author/id")?.as_str()?;
                let name = message.pointer("/author/global_name").or_else(|| message.pointer("/author/username")).and_then(Value::as_str);
                Some(Earlier { speaker: Speaker::new(id).named(name), text })
            })
            .collect();
        earlier.reverse();
        Ok(earlier)
    }

    async fn download(&self, file: &Attachment, limit: usize) -> Result<Bytes, ChannelError> {
        let origin = origin(&self.base);
        let places = ["https://cdn.discordapp.com", "https://media.discordapp.net", &origin];
        if !places.iter().any(|base| is_below(&file.reference, base)) {
            return Err(ChannelError::new(ChannelErrorKind::Denied, "the file is not at Discord"));
        }
        self.caller.fetch(&file.reference, &[], limit).await
    }

    async fn upload(&self, to: &Conversation, key: &PostKey, file: &Upload) -> Result<String, ChannelError> {
        let nonce = digest(&key.key);
        let is_it = |message: &Value| {
            says(message, "nonce", &nonce)
                || message.pointer("/attachments/0").is_some_and(|attached| {
                    says(attached, "filename", &file.name)
                        && attached.get("size").and_then(Value::as_u64) == u64::try_from(file.bytes.len()).ok()
                })
        };
        if key.again
            && let Some(known) = self.find(to, key, is_it).await?
        {
            return Ok(known);
        }
        let payload = json!({
            "nonce": nonce,
            "enforce_nonce": true,
            "allowed_mentions": { "parse": [] },
            "attachments": [{ "id": 0, "filename": file.name }],
        });
        let payload = payload.to_string();
        let (media_type, bytes) = multipart(&[("payload_json", &payload)], "files[0]", &file.name, &file.media_type, &file.bytes);
        let raw = Body::Raw { media_type: &media_type, bytes };
        named(&self.call(Method::POST, &format!("/channels/{}/messages", to.channel), raw).await?)
    }
}

fn named(answer: &Answer) -> Result<String, ChannelError> {
    answer.text("/id").map(str::to_owned).ok_or_else(|| ChannelError::new(ChannelErrorKind::Unavailable, "Discord names no message"))
}

fn judge(answer: Answer) -> Result<Answer, ChannelError> {
    use ChannelErrorKind as K;
    if answer.status.is_success() {
        return Ok(answer);
    }
    let code = answer.body.get("code").and_then(Value::as_u64).unwrap_or(0);
    let kind = match (answer.status.as_u16(), code) {
        (429, _) => return Err(answer.pause("/retry_after")),
        // Unknown channel, unknown message.
        (404, _) | (_, 10_003 | 10_008) => K::Gone,
        (_, 50_035) if answer.body.to_string().contains("BASE_TYPE_MAX_LENGTH") => K::TooLong,
        (401 | 403, _) => K::Denied,
        (500.., _) => K::Unavailable,
        _ => K::Rejected,
    };
    Err(ChannelError::new(kind, format!("Discord answered {} ({code})", answer.status.as_u16())))
}

fn components(post: &Post) -> Vec<Value> {
    let button = |button: &crate::adapter::Button| {
        let style = match button.style {
            ButtonStyle::Plain => 2,
            ButtonStyle::Primary => 3,
            ButtonStyle::Danger => 4,
        };
        json!({ "type": 2, "style": style, "label": button.label, "custom_id": button.value })
    };
    let mut rows: Vec<Value> = vec![];
    if let Some(menu) = &post.menu {
        let options: Vec<Value> = menu.options.iter().map(|(label, value)| json!({ "label": label, "value": value })).collect();
        let most = if menu.several { options.len() } else { 1 };
        rows.push(json!({
            "type": 1,
            "components": [{
                "type": 3, "custom_id": "menu", "placeholder": menu.placeholder, "options": options, "min_values": 1, "max_values": most,
            }],
        }));
    }
    rows.extend(post.buttons.chunks(5).map(|row| json!({ "type": 1, "components": row.iter().map(button).collect::<Vec<_>>() })));
    rows
}
