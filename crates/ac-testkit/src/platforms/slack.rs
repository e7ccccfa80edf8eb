use serde_json::{Value, json};

use super::{Notice, Reply, Shown, State, Taken, files, text, utf16};

const NAME: &str = "slack";
/// The token that the fake knows.
pub(super) const TOKEN: &str = "xoxb-fake";

fn refuse(code: &str) -> Reply {
    Reply::new(200, json!({ "ok": false, "error": code }))
}

fn too_fast(seconds: f64) -> Reply {
    let mut reply = Reply::new(429, json!({ "ok": false, "error": "ratelimited" }));
    reply.headers.push(("retry-after", seconds.to_string()));
    reply
}

pub(super) fn answer(method: &str, query: &str, auth: &str, body: &Value, state: &mut State) -> Reply {
    if auth != format!("Bearer {TOKEN}") || state.manners.denied {
        return refuse("invalid_auth");
    }
    let channel = text(body, "channel");
    match method {
        "chat.postMessage" | "chat.update" => {
            let edit = method == "chat.update";
            match state.take(NAME, edit) {
                Taken::Yes => {}
                Taken::Fails => return Reply::new(503, json!({})),
                Taken::Pause(seconds) => return too_fast(seconds),
                Taken::Gone => return refuse("message_not_found"),
            }
            if channel.is_empty() {
                return refuse("channel_not_found");
            }
            let said = text(body, "text");
            if said.is_empty() && body.get("blocks").and_then(Value::as_array).is_none_or(Vec::is_empty) {
                return refuse("no_text");
            }
            if utf16(&said) > 40_000 {
                return refuse("msg_too_long");
            }
            let buttons = match buttons(body) {
                Ok(buttons) => buttons,
                Err(code) => return refuse(code),
            };
            if state.manners.no_buttons && !buttons.is_empty() {
                return refuse("invalid_blocks");
            }
            if edit {
                let ts = text(body, "ts");
                let Some(shown) = state.find(NAME, &channel, &ts) else { return refuse("message_not_found") };
                let before = std::mem::replace(&mut shown.text, said);
                shown.history.push(before);
                shown.buttons = buttons;
                return Reply::new(200, json!({ "ok": true, "channel": channel, "ts": ts }));
            }
            let ts = format!("1700000000.{:06}", state.fresh());
            let thread = Some(text(body, "thread_ts")).filter(|thread| !thread.is_empty());
            let mark = body.pointer("/metadata/event_payload/key").and_then(Value::as_str).map(str::to_owned);
            state.shown.push(Shown {
                platform: NAME,
                channel: channel.clone(),
                thread,
                id: ts.clone(),
                text: said,
                buttons,
                history: vec![],
                file: None,
                mark,
            });
            Reply::new(200, json!({ "ok": true, "channel": channel, "ts": ts }))
        }
        "chat.postEphemeral" => {
            state.notices.push(Notice { platform: NAME, to: text(body, "user"), text: text(body, "text") });
            Reply::new(200, json!({ "ok": true, "message_ts": "1.1" }))
        }
        "conversations.replies" | "conversations.history" => {
            let find =
                |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default().to_owned();
            let (channel, thread) = (find("channel"), find("ts"));
            let (limit, from) = (find("limit").parse().unwrap_or(100), find("cursor").parse().unwrap_or(0));
            let mut messages: Vec<Value> = (0..)
                .zip(&state.manners.earlier)
                .map(|(n, (user, text)): (u32, _)| json!({ "type": "message", "user": user, "text": text, "ts": format!("1600000000.{n:06}") }))
                .collect();
            messages.extend(
                state
                    .shown
                    .iter()
                    .filter(|shown| shown.platform == NAME && shown.channel == channel)
                    .filter(|shown| method == "conversations.history" || shown.thread.as_deref() == Some(thread.as_str()))
                    .map(|shown| {
                        json!({
                            "type": "message", "bot_id": "B1", "text": shown.text, "ts": shown.id, "thread_ts": shown.thread,
                            "metadata": { "event_type": "agent_post", "event_payload": { "key": shown.mark } },
                        })
                    }),
            );
            if method == "conversations.replies" {
                messages.extend(
                    (state.manners.later.iter())
                        .map(|(user, text, ts)| json!({ "type": "message", "user": user, "text": text, "ts": ts, "thread_ts": thread })),
                );
            }
            // A channel is told from its end, a thread from its beginning.
            if method == "conversations.history" {
                messages.reverse();
            }
            let all = messages.len();
            let page: Vec<Value> = messages.into_iter().skip(from).take(limit).collect();
            let next = Some(from + limit).filter(|next| *next < all).map_or_else(String::new, |next| next.to_string());
            Reply::new(
                200,
                json!({ "ok": true, "messages": page, "has_more": !next.is_empty(), "response_metadata": { "next_cursor": next } }),
            )
        }
        "files.getUploadURLExternal" | "files.completeUploadExternal" | "files.info" => files::slack(method, query, body, state),
        "users.info" => {
            let user = query.split('&').find_map(|pair| pair.strip_prefix("user=")).unwrap_or_default();
            Reply::new(
                200,
                json!({ "ok": true, "user": { "id": user, "real_name": format!("Name of {user}"), "profile": { "display_name": "" } } }),
            )
        }
        _ => refuse("unknown_method"),
    }
}

fn buttons(body: &Value) -> Result<Vec<(String, String)>, &'static str> {
    let mut buttons = vec![];
    for block in body.get("blocks").and_then(Value::as_array).into_iter().flatten() {
        if block.pointer("/accessory/options").and_then(Value::as_array).is_some_and(|options| options.len() > 100) {
            return Err("invalid_blocks");
        }
        if block.pointer("/text/text").and_then(Value::as_str).is_some_and(|text| utf16(text) > 3_000) {
            return Err("msg_blocks_too_long");
        }
        for element in block.get("elements").and_then(Value::as_array).into_iter().flatten() {
            let (label, value) = (element.pointer("/text/text"), element.get("value"));
            let (Some(label), Some(value)) = (label.and_then(Value::as_str), value.and_then(Value::as_str)) else {
                return Err("invalid_blocks");
            };
            if label.chars().count() > 75 || value.len() > 2_000 {
                return Err("invalid_blocks");
            }
            buttons.push((label.to_owned(), value.to_owned()));
        }
        for option in block.pointer("/accessory/options").and_then(Value::as_array).into_iter().flatten() {
            let (label, value) = (option.pointer("/text/text"), option.get("value"));
            let (Some(label), Some(value)) = (label.and_then(Value::as_str), value.and_then(Value::as_str)) else {
                return Err("invalid_blocks");
            };
            if value.len() > 75 {
                return Err("invalid_blocks");
            }
            buttons.push((label.to_owned(), value.to_owned()));
        }
    }
    Ok(buttons)
}
