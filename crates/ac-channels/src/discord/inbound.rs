use std::collections::BTreeMap;

use ac_core::Timestamp;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::Discord;
use crate::{
    adapter::{Received, Refused, json},
    button::wants_reply,
    event::{Attachment, Click, Conversation, Incoming, IncomingKind, Said, Speaker},
    signature::{ed25519_fits, header, is_fresh, unhex},
};

#[derive(Deserialize)]
struct Interaction {
    id: String,
    application_id: String,
    #[serde(rename = "type")]
    kind: u8,
    #[serde(default)]
    token: String,
    #[serde(default)]
    guild_id: Option<String>,
    #[serde(default)]
    channel_id: Option<String>,
    #[serde(default)]
    channel: Option<Channel>,
    #[serde(default)]
    context: Option<u8>,
    #[serde(default)]
    member: Option<Member>,
    #[serde(default)]
    user: Option<User>,
    #[serde(default)]
    data: Option<Data>,
    #[serde(default)]
    message: Option<Message>,
}

#[derive(Deserialize)]
struct Channel {
    #[serde(rename = "type", default)]
    kind: u8,
}

#[derive(Deserialize)]
struct Member {
    user: User,
    #[serde(default)]
    nick: Option<String>,
}

#[derive(Deserialize)]
struct User {
    id: String,
    #[serde(default)]
    username: Option<String>,
    #[serde(default)]
    global_name: Option<String>,
}

#[derive(Deserialize)]
struct Message {
    id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Data {
    options: Vec<CommandOption>,
    resolved: Resolved,
    custom_id: Option<String>,
    values: Vec<String>,
    components: Vec<Value>,
}

#[derive(Deserialize)]
struct CommandOption {
    #[serde(default)]
    value: Value,
    #[serde(default)]
    options: Vec<CommandOption>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Resolved {
    attachments: BTreeMap<String, File>,
}

#[derive(Deserialize)]
struct File {
    url: String,
    #[serde(default)]
    filename: Option<String>,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    size: Option<u64>,
}

const PING: u8 = 1;
const COMMAND: u8 = 2;
const COMPONENT: u8 = 3;
const FORM: u8 = 5;
/// Where an interaction happens: between the app and one person. People's own direct and group messages are another place.
const WITH_THE_APP: u8 = 1;
/// The type of a channel between two.
const DIRECT: u8 = 1;
/// A message flag: only the person who acted sees it.
const EPHEMERAL: u32 = 64;

impl Discord {
    pub(super) fn read(&self, request: &http::Request<Bytes>, now: Timestamp) -> Result<Received, Refused> {
        let at = header(request, "x-signature-timestamp").ok_or(Refused::Unsigned)?;
        let given = header(request, "x-signature-ed25519").and_then(unhex).ok_or(Refused::Unsigned)?;
        let signed = [at.as_bytes(), request.body()].concat();
        if !ed25519_fits(&self.key, &signed, &given) {
            return Err(Refused::Unsigned);
        }
        if !at.parse().is_ok_and(|at| is_fresh(at, now)) {
            return Err(Refused::Stale);
        }
        let interaction: Interaction = serde_json::from_slice(request.body()).map_err(|_| Refused::Malformed)?;
        if interaction.application_id != self.app {
            return Err(Refused::WrongApp);
        }
        if interaction.kind == PING {
            return Ok(Received::answer(json(StatusCode::OK, &json!({ "type": 1 }))));
        }
        let Interaction { id, kind, token, guild_id, channel_id, channel, context, member, user, data, message, .. } = interaction;
        let (with_the_app, of_two) = (context.map(|context| context == WITH_THE_APP), channel.map(|channel| channel.kind == DIRECT));
        // What does not say that it is between two is not: there anybody decides.
        let direct = guild_id.is_none() && with_the_app.or(of_two) == Some(true) && of_two != Some(false);
        let data = data.unwrap_or_default();
        let speaker = speaker(member, user).ok_or(Refused::Malformed)?;
        let channel = channel_id.ok_or(Refused::Malformed)?;
        let conversation = Conversation { id: format!("discord:{channel}"), channel, thread: None, direct };
        let responder = Some(format!("{}/{token}", self.app));
        let message = message.map(|message| message.id);
        let (response, kind) = match kind {
            COMMAND => {
                let said = command(data);
                if said.text.trim().is_empty() && said.files.is_empty() {
                    let hint = json!({ "type": 4, "data": { "content": "Write what you want with the command.", "flags": EPHEMERAL } });
                    return Ok(Received::answer(json(StatusCode::OK, &hint)));
                }
                let short = json!({ "type": 4, "data": { "content": "👍", "flags": EPHEMERAL } });
                (short, IncomingKind::Message(said))
            }
            COMPONENT => {
                let pressed = data.custom_id.unwrap_or_default();
                if wants_reply(&pressed) {
                    // The form has to be the answer to this very request; nothing is decided yet.
                    return Ok(Received::answer(json(StatusCode::OK, &form(&pressed))));
                }
                let values = if data.values.is_empty() { vec![pressed] } else { data.values };
                (json!({ "type": 6 }), IncomingKind::Click(Click { values, text: None, message, responder }))
            }
            FORM => {
                let text = data.components.iter().find_map(written).unwrap_or_default();
                let values = data.custom_id.into_iter().collect();
                (json!({ "type": 6 }), IncomingKind::Click(Click { values, text: Some(text), message, responder }))
            }
            _ => return Err(Refused::Malformed),
        };
        let event = Incoming { ids: vec![format!("interaction {id}")], conversation, speaker, kind };
        Ok(Received { response: json(StatusCode::OK, &response), events: vec![event] })
    }
}

fn speaker(member: Option<Member>, user: Option<User>) -> Option<Speaker> {
    let (user, nick) = match member {
        Some(member) => (member.user, member.nick),
        None => (user?, None),
    };
    (!user.id.is_empty()).then(|| Speaker::new(user.id).named(nick.or(user.global_name).or(user.username)))
}

/// The words of a command are the values of its options.
fn command(data: Data) -> Said {
    fn words(options: &[CommandOption], out: &mut Vec<String>) {
        for option in options {
            if let Some(text) = option.value.as_str() {
                out.push(text.to_owned());
            }
            words(&option.options, out);
        }
    }
    let mut text = vec![];
    words(&data.options, &mut text);
    // The value of a file's option is the file's id.
    text.retain(|word| !data.resolved.attachments.contains_key(word));
    let files = data.resolved.attachments.into_values().map(|file| Attachment {
        reference: file.url,
        name: file.filename,
        media_type: file.content_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
        size: file.size,
    });
    Said { text: text.join(" "), addressed: true, follows: true, files: files.collect(), ..Said::default() }
}

/// What was written into the first field of a form.
fn written(component: &Value) -> Option<String> {
    if let Some(text) = component.get("value").and_then(Value::as_str) {
        return Some(text.to_owned());
    }
    if let Some(inner) = component.get("component") {
        return written(inner);
    }
    component.get("components")?.as_array()?.iter().find_map(written)
}

fn form(value: &str) -> Value {
    json!({
        "type": 9,
        "data": {
            "custom_id": value,
            "title": "Your answer",
            "components": [{
                "type": 1,
                "components": [{ "type": 4, "custom_id": "text", "style": 2, "label": "Your answer", "min_length": 1, "max_length": 4000 }],
            }],
        },
    })
}
