use bytes::Bytes;
use http::StatusCode;
use secrecy::ExposeSecret;
use serde::Deserialize;
use serde_json::json;

use super::Telegram;
use crate::{
    adapter::{Received, Refused, json},
    event::{Attachment, Click, Conversation, Incoming, IncomingKind, NO_LONGER_IN_USE, NO_WORDS, Said, Speaker},
    signature::{header, same_secret},
};

#[derive(Deserialize)]
struct Update {
    update_id: i64,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    callback_query: Option<CallbackQuery>,
}

#[derive(Deserialize)]
struct Message {
    message_id: i64,
    #[serde(default)]
    message_thread_id: Option<i64>,
    #[serde(default)]
    is_topic_message: bool,
    #[serde(default)]
    from: Option<User>,
    chat: Chat,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    caption: Option<String>,
    #[serde(default)]
    reply_to_message: Option<Box<Message>>,
    #[serde(default)]
    photo: Vec<Photo>,
    #[serde(default)]
    document: Option<Document>,
}

#[derive(Deserialize)]
struct User {
    id: i64,
    #[serde(default)]
    is_bot: bool,
    #[serde(default)]
    first_name: Option<String>,
    #[serde(default)]
    last_name: Option<String>,
    #[serde(default)]
    username: Option<String>,
}

#[derive(Deserialize)]
struct Chat {
    id: i64,
    #[serde(rename = "type", default)]
    kind: String,
}

#[derive(Deserialize)]
struct Photo {
    file_id: String,
    #[serde(default)]
    file_size: Option<u64>,
}

#[derive(Deserialize)]
struct Document {
    file_id: String,
    #[serde(default)]
    file_name: Option<String>,
    #[serde(default)]
    mime_type: Option<String>,
    #[serde(default)]
    file_size: Option<u64>,
}

#[derive(Deserialize)]
struct CallbackQuery {
    id: String,
    from: User,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    data: Option<String>,
}

impl Telegram {
    pub(super) fn read(&self, request: &http::Request<Bytes>) -> Result<Received, Refused> {
        let given = header(request, "x-telegram-bot-api-secret-token").unwrap_or_default();
        let own = self.secret.expose_secret();
        if !same_secret(given.as_bytes(), own.as_bytes()) || own.is_empty() {
            return Err(Refused::Unsigned);
        }
        let update: Update = serde_json::from_slice(request.body()).map_err(|_| Refused::Malformed)?;
        let event = match (update.message, update.callback_query) {
            (Some(message), _) => self.message(message, update.update_id),
            (None, Some(query)) => {
                let id = query.id.clone();
                let event = click(query, update.update_id);
                if event.is_none() {
                    // Telegram carries out what it is answered: whoever pressed hears of it, and the button does not wait for ever.
                    let notice = json!({
                        "method": "answerCallbackQuery", "callback_query_id": id, "text": NO_LONGER_IN_USE, "show_alert": true,
                    });
                    return Ok(Received::answer(json(StatusCode::OK, &notice)));
                }
                event
            }
            // Edits, receipts, members who come and go.
            (None, None) => None,
        };
        Ok(Received::events(event.into_iter().collect()))
    }

    fn message(&self, message: Message, update: i64) -> Option<Incoming> {
        let from = message.from.as_ref().filter(|from| !from.is_bot)?;
        let speaker = speaker(from);
        let conversation = conversation(&message);
        let mut text = message.text.or(message.caption).unwrap_or_default();
        let had_words = !text.trim().is_empty();
        let mut addressed = conversation.direct;
        if let Some(bot) = &self.bot {
            let mention = format!("@{bot}");
            if let Some(at) = find_mention(&text, &mention) {
                addressed = true;
                // A command keeps its name: `/ask@bot` is `/ask`.
                text.replace_range(at..at + mention.len(), "");
            }
            let answers = message.reply_to_message.as_ref().and_then(|to| to.from.as_ref());
            addressed |= answers.is_some_and(|from| from.username.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(bot)));
        } else {
            addressed |= message.reply_to_message.as_ref().and_then(|to| to.from.as_ref()).is_some_and(|from| from.is_bot);
        }
        // A command may name the bot that it is for; this bot's name is gone by now.
        let command = text.split_whitespace().next().filter(|word| word.starts_with('/'));
        addressed |= command.is_some_and(|word| self.bot.is_none() || !word.contains('@'));
        let mut text = text.trim().to_owned();
        if text.is_empty() && addressed && had_words && message.photo.is_empty() && message.document.is_none() {
            NO_WORDS.clone_into(&mut text);
        }
        let photo = message.photo.into_iter().next_back().map(|photo| Attachment {
            reference: photo.file_id,
            name: Some("photo.jpg".to_owned()),
            media_type: "image/jpeg".to_owned(),
            size: photo.file_size,
        });
        let document = message.document.map(|document| Attachment {
            reference: document.file_id,
            name: document.file_name,
            media_type: document.mime_type.unwrap_or_else(|| "application/octet-stream".to_owned()),
            size: document.file_size,
        });
        Some(Incoming {
            ids: vec![format!("update {update}"), format!("message {}", message.message_id)],
            speaker,
            kind: IncomingKind::Message(Said {
                text,
                message: Some(message.message_id.to_string()),
                reply_to: message.reply_to_message.map(|to| to.message_id.to_string()),
                addressed,
                follows: conversation.direct,
                files: photo.into_iter().chain(document).collect(),
            }),
            conversation,
        })
    }
}

fn click(query: CallbackQuery, update: i64) -> Option<Incoming> {
    let message = query.message?;
    Some(Incoming {
        ids: vec![format!("update {update}"), format!("callback {}", query.id)],
        speaker: speaker(&query.from),
        conversation: conversation(&message),
        kind: IncomingKind::Click(Click {
            values: vec![query.data?],
            text: None,
            message: Some(message.message_id.to_string()),
            responder: Some(query.id),
        }),
    })
}

fn conversation(message: &Message) -> Conversation {
    let channel = message.chat.id.to_string();
    let thread = message.message_thread_id.filter(|_| message.is_topic_message).map(|id| id.to_string());
    let id = match &thread {
        Some(thread) => format!("telegram:{channel}:{thread}"),
        None => format!("telegram:{channel}"),
    };
    Conversation { id, channel, thread, direct: message.chat.kind == "private" }
}

fn speaker(from: &User) -> Speaker {
    let full: Vec<&str> = [&from.first_name, &from.last_name].into_iter().flatten().map(String::as_str).collect();
    let name = if full.is_empty() { from.username.clone() } else { Some(full.join(" ")) };
    Speaker::new(from.id.to_string()).named(name)
}

/// A mention as a word of its own, whatever its case.
fn find_mention(text: &str, mention: &str) -> Option<usize> {
    // User names are ASCII, so small letters change no lengths where they can match.
    let (text, mention) = (text.to_ascii_lowercase(), mention.to_ascii_lowercase());
    text.match_indices(&mention).map(|(at, _)| at).find(|at| {
        let after = text.get(at + mention.len()..).and_then(|rest| rest.chars().next());
        after.is_none_or(|c| !c.is_ascii_alphanumeric() && c != '_')
    })
}
