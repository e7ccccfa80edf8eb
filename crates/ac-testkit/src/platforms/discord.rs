use serde_json::{Value, json};

use super::{Notice, Reply, Shown, State, Taken, text, utf16};

const NAME: &str = "discord";
/// The token that the fake knows.
pub(super) const TOKEN: &str = "discord-fake";
/// The application that the fake knows.
pub(super) const APP: &str = "900";

fn refuse(status: u16, code: u32, message: &str) -> Reply {
    Reply::new(status, json!({ "code": code, "message": message }))
}

pub(super) fn answer(method: &str, path: &str, query: &str, auth: &str, body: &Value, state: &mut State) -> Reply {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    if parts.first() != Some(&"webhooks") && state.manners.denied {
        return refuse(403, 50_001, "Missing Access");
    }
    if parts.first() != Some(&"webhooks") && auth != format!("Bot {TOKEN}") {
        return refuse(401, 0, "401: Unauthorized");
    }
    match (method, parts.as_slice()) {
        ("POST", ["webhooks", app, token]) => {
            if *app != APP {
                return refuse(404, 10_015, "Unknown Webhook");
            }
            state.notices.push(Notice { platform: NAME, to: (*token).to_owned(), text: text(body, "content") });
            Reply::new(200, json!({ "id": "1" }))
        }
        ("POST", ["channels", _, "typing"]) => Reply::new(204, Value::Null),
        ("GET", ["channels", channel, "messages"]) => {
            let after = query.split('&').find_map(|pair| pair.strip_prefix("after=")?.parse::<u64>().ok()).unwrap_or(0);
            let newer = |shown: &&Shown| shown.id.parse::<u64>().is_ok_and(|id| id > after);
            let messages =
                state.shown.iter().rev().filter(|shown| shown.platform == NAME && shown.channel == *channel).filter(newer).map(|shown| {
                    let file = |(name, bytes): &(String, Vec<u8>)| json!({ "id": "1", "filename": name, "size": bytes.len() });
                    let files: Vec<Value> = shown.file.iter().map(file).collect();
                    json!({
                        "id": shown.id, "content": shown.text, "attachments": files,
                        "author": { "id": APP, "username": "agent", "bot": true },
                    })
                });
            let earlier = state
                .manners
                .earlier
                .iter()
                .rev()
                .map(|(user, text)| json!({ "id": "5", "content": text, "author": { "id": user, "username": user } }));
            Reply::new(200, messages.chain(earlier).collect())
        }
        ("POST", ["channels", channel, "messages"]) => write(channel, None, body, state),
        ("PATCH", ["channels", channel, "messages", id]) => write(channel, Some(id), body, state),
        _ => refuse(404, 0, "404: Not Found"),
    }
}

fn write(channel: &str, id: Option<&str>, body: &Value, state: &mut State) -> Reply {
    match state.take(NAME, id.is_some()) {
        Taken::Yes => {}
        Taken::Fails => return refuse(503, 0, "503: Service Unavailable"),
        Taken::Pause(seconds) => {
            let mut reply = Reply::new(429, json!({ "message": "You are being rate limited.", "retry_after": seconds, "global": false }));
            reply.headers.push(("retry-after", seconds.ceil().to_string()));
            return reply;
        }
        Taken::Gone => return refuse(404, 10_008, "Unknown Message"),
    }
    let content = text(body, "content");
    if utf16(&content) > 2_000 {
        let errors =
            json!({ "content": { "_errors": [{ "code": "BASE_TYPE_MAX_LENGTH", "message": "Must be 2000 or fewer in length." }] } });
        return Reply::new(400, json!({ "code": 50_035, "message": "Invalid Form Body", "errors": errors }));
    }
    if content.is_empty() {
        return refuse(400, 50_006, "Cannot send an empty message");
    }
    let Some(buttons) = buttons(body) else { return refuse(400, 50_035, "Invalid Form Body") };
    if let Some(id) = id {
        let Some(shown) = state.find(NAME, channel, id) else { return refuse(404, 10_008, "Unknown Message") };
        let before = std::mem::replace(&mut shown.text, content);
        shown.history.push(before);
        shown.buttons = buttons;
        return Reply::new(200, json!({ "id": id }));
    }
    let nonce = Some(text(body, "nonce")).filter(|nonce| !nonce.is_empty());
    if nonce.as_ref().is_some_and(|nonce| nonce.len() > 25) {
        return refuse(400, 50_035, "Invalid Form Body");
    }
    let enforce = body.get("enforce_nonce").and_then(Value::as_bool).unwrap_or(false);
    let known =
        state.shown.iter().find(|shown| shown.platform == NAME && shown.channel == channel && shown.mark == nonce && nonce.is_some());
    if let Some(known) = known.filter(|_| enforce) {
        return Reply::new(200, json!({ "id": known.id }));
    }
    let id = state.snowflake().to_string();
    state.shown.push(Shown {
        platform: NAME,
        channel: channel.to_owned(),
        thread: None,
        id: id.clone(),
        text: content,
        buttons,
        history: vec![],
        file: None,
        mark: nonce,
    });
    Reply::new(200, json!({ "id": id }))
}

/// `None` for components that the platform does not take.
fn buttons(body: &Value) -> Option<Vec<(String, String)>> {
    let mut buttons = vec![];
    let rows = body.get("components").and_then(Value::as_array).cloned().unwrap_or_default();
    if rows.len() > 5 {
        return None;
    }
    for row in &rows {
        let components = row.get("components")?.as_array()?;
        if components.len() > 5 {
            return None;
        }
        for component in components {
            let id = text(component, "custom_id");
            if id.is_empty() || id.len() > 100 {
                return None;
            }
            match component.get("options").and_then(Value::as_array) {
                Some(options) if options.len() > 25 => return None,
                Some(options) => buttons.extend(options.iter().map(|option| (text(option, "label"), text(option, "value")))),
                None => buttons.push((text(component, "label"), id)),
            }
        }
    }
    Some(buttons)
}
