use serde_json::{Value, json};

use super::{Notice, Reply, Shown, State, Taken, text, utf16};

const NAME: &str = "telegram";
/// The bot that the fake knows, as it stands in paths.
pub(super) const TOKEN: &str = "123:fake";
const TAGS: [&str; 8] = ["b", "i", "s", "u", "code", "pre", "a", "blockquote"];

fn refuse(code: u16, description: &str) -> Reply {
    Reply::new(code, json!({ "ok": false, "error_code": code, "description": description }))
}

fn ok(result: &Value) -> Reply {
    Reply::new(200, json!({ "ok": true, "result": result }))
}

pub(super) fn answer(bot: &str, method: &str, body: &Value, state: &mut State) -> Reply {
    if bot != format!("bot{TOKEN}") || state.manners.denied {
        return refuse(401, "Unauthorized");
    }
    let channel = text(body, "chat_id");
    match method {
        "sendMessage" | "editMessageText" => {
            let edit = method == "editMessageText";
            match state.take(NAME, edit) {
                Taken::Yes => {}
                Taken::Fails => return refuse(502, "Bad Gateway"),
                Taken::Pause(seconds) => {
                    let seconds = seconds.ceil();
                    let description = format!("Too Many Requests: retry after {seconds}");
                    let parameters = json!({ "retry_after": seconds });
                    let body = json!({ "ok": false, "error_code": 429, "description": description, "parameters": parameters });
                    return Reply::new(429, body);
                }
                Taken::Gone => return refuse(400, "Bad Request: message to edit not found"),
            }
            let said = text(body, "text");
            let plain = match entities(&said) {
                Ok(plain) => plain,
                Err(at) => return refuse(400, &format!("Bad Request: can't parse entities: {at}")),
            };
            if plain.trim().is_empty() {
                return refuse(400, "Bad Request: message text is empty");
            }
            if utf16(&plain) > 4_096 {
                return refuse(400, "Bad Request: message is too long");
            }
            let buttons = buttons(body);
            if buttons.iter().any(|(_, data)| data.is_empty() || data.len() > 64) {
                return refuse(400, "Bad Request: BUTTON_DATA_INVALID");
            }
            if edit {
                let id = text(body, "message_id");
                let Some(shown) = state.find(NAME, &channel, &id) else { return refuse(400, "Bad Request: message to edit not found") };
                if shown.text == said && shown.buttons == buttons {
                    return refuse(
                        400,
                        "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a \
                         current content and reply markup of the message",
                    );
                }
                let before = std::mem::replace(&mut shown.text, said);
                shown.history.push(before);
                shown.buttons = buttons;
                return ok(&json!({ "message_id": id.parse::<i64>().unwrap_or(0) }));
            }
            let id = state.fresh();
            let thread = Some(text(body, "message_thread_id")).filter(|thread| !thread.is_empty());
            state.shown.push(Shown {
                platform: NAME,
                channel,
                thread,
                id: id.to_string(),
                text: said,
                buttons,
                history: vec![],
                file: None,
                mark: None,
            });
            ok(&json!({ "message_id": id }))
        }
        "answerCallbackQuery" => {
            let said = text(body, "text");
            if said.chars().count() > 200 {
                return refuse(400, "Bad Request: MESSAGE_TOO_LONG");
            }
            if !said.is_empty() {
                state.notices.push(Notice { platform: NAME, to: text(body, "callback_query_id"), text: said });
            }
            ok(&json!(true))
        }
        "deleteMessage" => {
            let id = text(body, "message_id");
            state.shown.retain(|shown| shown.platform != NAME || shown.channel != channel || shown.id != id);
            ok(&json!(true))
        }
        "sendChatAction" => ok(&json!(true)),
        "getFile" => ok(&json!({ "file_id": text(body, "file_id"), "file_path": format!("documents/{}", text(body, "file_id")) })),
        _ => refuse(404, "Not Found"),
    }
}

fn buttons(body: &Value) -> Vec<(String, String)> {
    let rows = body.pointer("/reply_markup/inline_keyboard").and_then(Value::as_array);
    rows.into_iter()
        .flatten()
        .filter_map(Value::as_array)
        .flatten()
        .map(|button| (text(button, "text"), text(button, "callback_data")))
        .collect()
}

/// The text without its tags; what is wrong with them.
fn entities(html: &str) -> Result<String, String> {
    let (mut plain, mut open, mut rest) = (String::new(), vec![], html);
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        plain.push_str(before);
        let end = tag.find('>').ok_or("an open tag")?;
        let (inside, after) = tag.split_at(end);
        let inside = inside.trim_start_matches('<');
        let name = inside.trim_start_matches('/').split(' ').next().unwrap_or_default();
        if !TAGS.contains(&name) {
            return Err(format!("Unsupported start tag \"{name}\""));
        }
        if inside.starts_with('/') {
            if open.pop() != Some(name) {
                return Err(format!("Unmatched end tag \"{name}\""));
            }
        } else {
            open.push(name);
        }
        rest = after.trim_start_matches('>');
    }
    plain.push_str(rest);
    if let Some(name) = open.pop() {
        return Err(format!("Can't find end tag corresponding to start tag \"{name}\""));
    }
    Ok(plain.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&"))
}
