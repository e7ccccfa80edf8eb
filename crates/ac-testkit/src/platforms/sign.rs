//! Requests as the platforms send them, with genuine signatures.

use ed25519_dalek::{Signer as _, SigningKey};
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;

/// Slack's signing secret of the fakes.
pub const SLACK_SECRET: &str = "8f742231b10e8888abcd99yyyzzz85a5";
/// Slack's bot token of the fakes.
pub const SLACK_TOKEN: &str = super::slack::TOKEN;
/// Slack's app of the fakes.
pub const SLACK_APP: &str = "A0FAKE";
/// Slack's bot user of the fakes.
pub const SLACK_BOT: &str = "UBOT";
/// Telegram's bot token of the fakes.
pub const TELEGRAM_TOKEN: &str = super::telegram::TOKEN;
/// The secret of Telegram's webhook.
pub const TELEGRAM_SECRET: &str = "telegram-secret";
/// Discord's bot token of the fakes.
pub const DISCORD_TOKEN: &str = super::discord::TOKEN;
/// Discord's application of the fakes.
pub const DISCORD_APP: &str = super::discord::APP;
/// The user that Telegram's bot is called by.
pub const TELEGRAM_BOT: &str = "agent_bot";

/// A request to a webhook.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Delivery {
    /// The platform.
    pub platform: String,
    /// Headers.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
}

fn discord_key() -> SigningKey {
    SigningKey::from_bytes(&[7; 32])
}

/// Discord's public key of the fakes, in hexadecimal.
pub fn discord_public_key() -> String {
    hex(&discord_key().verifying_key().to_bytes())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A body that Slack signed at a moment, in seconds since the epoch.
pub fn slack(body: String, content_type: &str, at: i64) -> Delivery {
    let mac = Hmac::<Sha256>::new_from_slice(SLACK_SECRET.as_bytes());
    let signature = mac.map(|mut mac| {
        mac.update(format!("v0:{at}:{body}").as_bytes());
        hex(&mac.finalize().into_bytes())
    });
    let headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("x-slack-request-timestamp".to_owned(), at.to_string()),
        ("x-slack-signature".to_owned(), format!("v0={}", signature.unwrap_or_default())),
    ];
    Delivery { platform: "slack".into(), headers, body }
}

/// A message to another app of Slack's, with a signature that is good here: that of a workspace which has both.
pub fn slack_of_another_app(at: i64) -> Delivery {
    let body = json!({
        "type": "event_callback", "event_id": "E", "api_app_id": "A0OTHER", "team_id": "T",
        "event": { "type": "message", "user": "U1", "text": "x", "ts": "1.1", "channel": "D1", "channel_type": "im" },
    });
    slack(body.to_string(), "application/json", at)
}

/// A message in a direct conversation with Slack's bot (`channel` begins with `D`), or a mention in a channel, or a reply in a thread.
pub fn slack_message(event: &str, channel: &str, thread: Option<&str>, user: &str, text: &str, ts: &str, at: i64) -> Delivery {
    let direct = channel.starts_with('D');
    let mut inner = json!({
        "type": if direct || thread.is_some() { "message" } else { "app_mention" },
        "user": user, "text": text, "ts": ts, "event_ts": ts, "channel": channel, "channel_type": if direct { "im" } else { "channel" },
    });
    if let (Some(thread), Some(fields)) = (thread, inner.as_object_mut()) {
        fields.insert("thread_ts".into(), thread.into());
    }
    let body = json!({
        "token": "legacy", "team_id": "T1", "api_app_id": SLACK_APP, "type": "event_callback", "event_id": event, "event_time": at, "event": inner,
    });
    slack(body.to_string(), "application/json", at)
}

/// A press on a button of a message in Slack.
pub fn slack_press(trigger: &str, channel: &str, thread: Option<&str>, message: &str, user: &str, value: &str, at: i64) -> Delivery {
    let action = json!({ "type": "button", "action_id": "button0", "block_id": "b", "value": value, "action_ts": "1.1" });
    slack_action(trigger, channel, thread, message, user, &action, at)
}

/// A choice from a menu of a message in Slack: of one entry, or of several.
pub fn slack_choice(trigger: &str, channel: &str, message: &str, user: &str, values: &[&str], at: i64) -> Delivery {
    let option = |value: &&str| json!({ "text": { "type": "plain_text", "text": "an entry" }, "value": value });
    let action = match values {
        [value] => {
            json!({ "type": "static_select", "action_id": "menu", "block_id": "b", "selected_option": option(value), "action_ts": "1.1" })
        }
        values => {
            let chosen: Vec<Value> = values.iter().map(option).collect();
            json!({ "type": "multi_static_select", "action_id": "menu", "block_id": "b", "selected_options": chosen, "action_ts": "1.1" })
        }
    };
    slack_action(trigger, channel, None, message, user, &action, at)
}

fn slack_action(trigger: &str, channel: &str, thread: Option<&str>, message: &str, user: &str, action: &Value, at: i64) -> Delivery {
    let payload = json!({
        "type": "block_actions", "api_app_id": SLACK_APP, "trigger_id": trigger, "team": { "id": "T1" },
        "user": { "id": user, "username": user, "name": user, "team_id": "T1" },
        "channel": { "id": channel, "name": if channel.starts_with('D') { "directmessage" } else { "general" } },
        "container": { "type": "message", "message_ts": message, "channel_id": channel },
        "message": { "ts": message, "thread_ts": thread, "bot_id": "B1" },
        "actions": [action],
    });
    let encoded: String = payload.to_string().bytes().map(|byte| format!("%{byte:02X}")).collect();
    slack(format!("payload={encoded}"), "application/x-www-form-urlencoded", at)
}

/// What Telegram sends, with the secret of the webhook.
pub fn telegram(body: &Value) -> Delivery {
    let headers = vec![("x-telegram-bot-api-secret-token".to_owned(), TELEGRAM_SECRET.to_owned())];
    Delivery { platform: "telegram".into(), headers, body: body.to_string() }
}

/// A message in a chat of Telegram; chats with negative ids are groups.
pub fn telegram_message(update: i64, chat: i64, user: i64, text: &str, message: i64, at: i64) -> Delivery {
    let kind = if chat < 0 { "supergroup" } else { "private" };
    telegram(&json!({
        "update_id": update,
        "message": {
            "message_id": message, "date": at, "text": text, "chat": { "id": chat, "type": kind },
            "from": { "id": user, "is_bot": false, "first_name": format!("User {user}") },
        },
    }))
}

/// A press on a button of a message in Telegram.
pub fn telegram_press(update: i64, chat: i64, user: i64, message: i64, data: &str) -> Delivery {
    let kind = if chat < 0 { "supergroup" } else { "private" };
    telegram(&json!({
        "update_id": update,
        "callback_query": {
            "id": format!("query-{update}"), "data": data, "chat_instance": "1",
            "from": { "id": user, "is_bot": false, "first_name": format!("User {user}") },
            "message": { "message_id": message, "date": 1, "chat": { "id": chat, "type": kind } },
        },
    }))
}

/// A command to another application of Discord's, with a signature that is good here.
pub fn discord_of_another_app(at: i64) -> Delivery {
    let body = json!({
        "id": "1", "application_id": "901", "type": 2, "token": "t", "channel_id": "77", "user": { "id": "8" },
        "data": { "options": [{ "value": "hello" }] },
    });
    discord(&body, at)
}

/// An interaction that Discord signed at a moment.
pub fn discord(body: &Value, at: i64) -> Delivery {
    let body = body.to_string();
    let signature = discord_key().sign(format!("{at}{body}").as_bytes()).to_bytes();
    let headers = vec![
        ("content-type".to_owned(), "application/json".to_owned()),
        ("x-signature-timestamp".to_owned(), at.to_string()),
        ("x-signature-ed25519".to_owned(), hex(&signature)),
    ];
    Delivery { platform: "discord".into(), headers, body }
}

fn interaction(id: &str, channel: &str, guild: bool, user: &str, rest: &Value) -> Value {
    let person = json!({ "id": user, "username": user, "global_name": format!("User {user}") });
    let mut body = json!({ "id": id, "application_id": DISCORD_APP, "token": format!("token-{id}"), "version": 1, "channel_id": channel });
    if let Some(fields) = body.as_object_mut() {
        if guild {
            fields.insert("guild_id".into(), "G1".into());
            fields.insert("member".into(), json!({ "user": person }));
        } else {
            fields.insert("user".into(), person);
            fields.insert("context".into(), 1.into());
            fields.insert("channel".into(), json!({ "id": channel, "type": 1 }));
        }
        fields.extend(rest.as_object().cloned().unwrap_or_default());
    }
    body
}

/// The slash command `/ask` in Discord.
pub fn discord_ask(id: &str, channel: &str, guild: bool, user: &str, text: &str, at: i64) -> Delivery {
    let data =
        json!({ "type": 2, "data": { "id": "1", "name": "ask", "type": 1, "options": [{ "name": "prompt", "type": 3, "value": text }] } });
    discord(&interaction(id, channel, guild, user, &data), at)
}

/// The secret of signed webhooks: 24 bytes at least.
pub const WEBHOOK_SECRET: &str = "a secret of twenty-four bytes and more";

/// A signed webhook, as Standard Webhooks says.
pub fn webhook(id: &str, body: &Value, at: i64) -> Delivery {
    let body = body.to_string();
    let mac = Hmac::<Sha256>::new_from_slice(WEBHOOK_SECRET.as_bytes());
    let signature = mac.map(|mut mac| {
        mac.update(format!("{id}.{at}.{body}").as_bytes());
        base64(&mac.finalize().into_bytes())
    });
    let headers = vec![
        ("webhook-id".to_owned(), id.to_owned()),
        ("webhook-timestamp".to_owned(), at.to_string()),
        ("webhook-signature".to_owned(), format!("v1,{}", signature.unwrap_or_default())),
    ];
    Delivery { platform: "webhook".into(), headers, body }
}

fn base64(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A press on a button of a message in Discord.
pub fn discord_press(id: &str, channel: &str, guild: bool, user: &str, message: &str, value: &str, at: i64) -> Delivery {
    let data = json!({ "type": 3, "data": { "custom_id": value, "component_type": 2 }, "message": { "id": message } });
    discord(&interaction(id, channel, guild, user, &data), at)
}

/// A choice from a menu of a message in Discord.
pub fn discord_choice(id: &str, channel: &str, guild: bool, user: &str, message: &str, values: &[&str], at: i64) -> Delivery {
    let data = json!({ "type": 3, "data": { "custom_id": "menu", "component_type": 3, "values": values }, "message": { "id": message } });
    discord(&interaction(id, channel, guild, user, &data), at)
}

/// A form that was filled in, in Discord.
pub fn discord_form(id: &str, channel: &str, guild: bool, user: &str, form: &str, text: &str, at: i64) -> Delivery {
    let field = json!({ "type": 1, "components": [{ "type": 4, "custom_id": "text", "value": text }] });
    discord(&interaction(id, channel, guild, user, &json!({ "type": 5, "data": { "custom_id": form, "components": [field] } })), at)
}
