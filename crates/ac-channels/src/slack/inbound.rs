use ac_core::Timestamp;
use bytes::Bytes;
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Slack;
use crate::{
    adapter::{Received, Refused, json, plain},
    event::{Attachment, Click, Conversation, Incoming, IncomingKind, NO_WORDS, Said, Speaker},
    signature::{header, hmac_fits, is_fresh, unhex},
};

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Outer {
    UrlVerification {
        challenge: String,
    },
    EventCallback {
        event_id: String,
        #[serde(default)]
        api_app_id: Option<String>,
        event: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct MessageEvent {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    subtype: Option<String>,
    #[serde(default)]
    user: Option<String>,
    #[serde(default)]
    bot_id: Option<String>,
    #[serde(default)]
    text: String,
    channel: String,
    #[serde(default)]
    channel_type: Option<String>,
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
    #[serde(default)]
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    mimetype: Option<String>,
    #[serde(default)]
    size: Option<u64>,
    #[serde(default)]
    url_private_download: Option<String>,
    #[serde(default)]
    url_private: Option<String>,
}

#[derive(Deserialize)]
struct Interaction {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    api_app_id: Option<String>,
    #[serde(default)]
    trigger_id: Option<String>,
    user: User,
    #[serde(default)]
    channel: Option<Channel>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    actions: Vec<Value>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Channel {
    id: String,
}

#[derive(Deserialize)]
struct Message {
    ts: String,
    #[serde(default)]
    thread_ts: Option<String>,
}

impl Slack {
    pub(super) fn read(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused> {
        let at = header(request, "x-slack-request-timestamp").ok_or(Refused::Unsigned)?;
        let signature = header(request, "x-slack-signature").ok_or(Refused::Unsigned)?;
        let given = signature.strip_prefix("v0=").and_then(unhex).unwrap_or_default();
        let body = request.body();
        if !hmac_fits(self.secret.expose_secret().as_bytes(), &[b"v0:", at.as_bytes(), b":", body], &given) {
            return Err(Refused::Unsigned);
        }
        if !at.parse().is_ok_and(|at| is_fresh(at, now)) {
            return Err(Refused::Stale);
        }
        let form = header(request, "content-type").is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if !form {
            return self.outer(serde_json::from_slice(body).map_err(|_| Refused::Malformed)?);
        }
        let fields: std::collections::HashMap<String, String> = form_urlencoded::parse(body).into_owned().collect();
        match fields.get("payload") {
            Some(payload) => self.interaction(serde_json::from_str(payload).map_err(|_| Refused::Malformed)?, signature),
            None => self.command(&fields, signature),
        }
    }

    fn check_app(&self, app: Option<&str>) -> Result<(), Refused> {
        match &self.app {
            Some(own) if app != Some(own) => Err(Refused::WrongApp),
            _ => Ok(()),
        }
    }

    fn outer(&self, outer: Outer) -> Result<Received, Refused> {
        match outer {
            Outer::UrlVerification { challenge } => Ok(Received::answer(plain(StatusCode::OK, &challenge))),
            Outer::EventCallback { event_id, api_app_id, event } => {
                self.check_app(api_app_id.as_deref())?;
                let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
                if !matches!(kind, "message" | "app_mention") {
                    return Ok(Received::events(vec![]));
                }
                // Deletions and edits look otherwise, and nobody says anything with them.
                let Ok(event) = serde_json::from_value::<MessageEvent>(event) else { return Ok(Received::events(vec![])) };
                Ok(Received::events(self.message(event, event_id).into_iter().collect()))
            }
            Outer::Other => Ok(Received::events(vec![])),
        }
    }

    /// A message of a thread as the event that tells of it, except for that event's own id.
    pub(super) fn told_again(&self, channel: &str, message: &Value, after: &str) -> Option<Incoming> {
        let mut told = message.clone();
        told.as_object_mut()?.insert("channel".to_owned(), channel.into());
        let event: MessageEvent = serde_json::from_value(told).ok()?;
        // Time stamps of one form, told from the parent of the thread that Slack tells with it.
        let newer = |ts: &str| (ts.len(), ts) > (after.len(), after);
        if !newer(&event.ts) {
            return None;
        }
        let id = format!("thread {}", event.ts);
        self.message(event, id)
    }

    fn message(&self, event: MessageEvent, event_id: String) -> Option<Incoming> {
        let user = event.user.filter(|user| !user.is_empty() && Some(user) != self.bot_user.as_ref())?;
        let spoken = matches!(event.subtype.as_deref(), None | Some("file_share" | "thread_broadcast"));
        if event.bot_id.is_some() || !spoken {
            return None;
        }
        let direct = event.channel_type.as_deref() == Some("im") || event.channel.starts_with('D');
        let mention = self.bot_user.as_ref().map(|user| format!("<@{user}>"));
        let mentioned = event.kind == "app_mention" || mention.as_ref().is_some_and(|mention| event.text.contains(mention));
        let follows = direct || event.thread_ts.is_some();
        let thread = match (event.thread_ts, direct) {
            (Some(thread), _) => Some(thread),
            // A mention in a channel begins a thread.
            (None, false) => Some(event.ts.clone()),
            (None, true) => None,
        };
        let text = match &mention {
            Some(mention) => event.text.replacen(mention, "", 1),
            // The first mention is the bot's.
            None if event.kind == "app_mention" => strip_mention(&event.text),
            None => event.text,
        };
        let ids = vec![format!("event {event_id}"), format!("message {} {}", event.channel, event.ts)];
        let files: Vec<Attachment> = event.files.into_iter().filter_map(attachment).collect();
        let text = match unescape(text.trim()) {
            empty if empty.is_empty() && mentioned && files.is_empty() => NO_WORDS.to_owned(),
            text => text,
        };
        Some(Incoming {
            ids,
            conversation: conversation(event.channel, thread, direct),
            speaker: Speaker::new(user),
            kind: IncomingKind::Message(Said {
                text,
                message: Some(event.ts),
                reply_to: None,
                addressed: direct || mentioned,
                follows,
                files,
            }),
        })
    }

    fn interaction(&self, interaction: Interaction, signature: &str) -> Result<Received, Refused> {
        self.check_app(interaction.api_app_id.as_deref())?;
        let (Some(channel), "block_actions") = (interaction.channel, interaction.kind.as_str()) else {
            return Ok(Received::events(vec![]));
        };
        let mut values = vec![];
        for action in &interaction.actions {
            let one = action.get("value").or_else(|| action.pointer("/selected_option/value")).and_then(Value::as_str);
            values.extend(one.map(str::to_owned));
            let several = action.get("selected_options").and_then(Value::as_array);
            values.extend(several.into_iter().flatten().filter_map(|option| option.get("value")?.as_str()).map(str::to_owned));
        }
        if values.is_empty() {
            return Ok(Received::events(vec![]));
        }
        let (ts, thread) = interaction.message.map_or((None, None), |message| (Some(message.ts), message.thread_ts));
        // A card that people reply to becomes the root of a thread. It was posted outside of any, and belongs to that conversation still.
        let thread = thread.filter(|thread| Some(thread) != ts.as_ref());
        let direct = channel.id.starts_with('D');
        let id = interaction.trigger_id.unwrap_or_else(|| signature.to_owned());
        let speaker = Speaker::new(interaction.user.id).named(interaction.user.name.or(interaction.user.username));
        Ok(Received::events(vec![Incoming {
            ids: vec![format!("action {id}")],
            conversation: conversation(channel.id, thread, direct),
            speaker,
            kind: IncomingKind::Click(Click { values, text: None, message: ts, responder: None }),
        }]))
    }

    fn command(&self, fields: &std::collections::HashMap<String, String>, signature: &str) -> Result<Received, Refused> {
        let field = |name: &str| fields.get(name).map(String::as_str).filter(|value| !value.is_empty());
        self.check_app(field("api_app_id"))?;
        let (Some(user), Some(channel), Some(_)) = (field("user_id"), field("channel_id"), field("command")) else {
            return Err(Refused::Malformed);
        };
        let direct = channel.starts_with('D');
        let id = field("trigger_id").unwrap_or(signature);
        // Nothing comes of a command without words; whoever gave it sees why.
        let response = match field("text").is_none_or(|text| text.trim().is_empty()) {
            true => json(StatusCode::OK, &json!({ "response_type": "ephemeral", "text": "Write what you want after the command." })),
            false => plain(StatusCode::OK, ""),
        };
        let events = vec![Incoming {
            ids: vec![format!("command {id}")],
            conversation: conversation(channel.to_owned(), None, direct),
            speaker: Speaker::new(user).named(field("user_name")),
            kind: IncomingKind::Message(Said {
                text: field("text").unwrap_or_default().to_owned(),
                addressed: true,
                follows: true,
                ..Said::default()
            }),
        }];
        Ok(Received { response, events })
    }
}

fn conversation(channel: String, thread: Option<String>, direct: bool) -> Conversation {
    let id = match &thread {
        Some(thread) => format!("slack:{channel}:{thread}"),
        None => format!("slack:{channel}"),
    };
    Conversation { id, channel, thread, direct }
}

fn attachment(file: File) -> Option<Attachment> {
    Some(Attachment {
        reference: file.url_private_download.or(file.url_private)?,
        name: file.name,
        media_type: file.mimetype.unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: file.size,
    })
}

fn strip_mention(text: &str) -> String {
    let trimmed = text.trim_start();
    match trimmed.strip_prefix("<@").and_then(|rest| rest.split_once('>')) {
        Some((_, rest)) => rest.to_owned(),
        None => text.to_owned(),
    }
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
}
