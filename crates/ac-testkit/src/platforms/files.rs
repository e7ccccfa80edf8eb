//! Files that people send, and files that are posted.

use serde_json::{Value, json};

use super::{Reply, Shown, State, discord, slack, telegram, text};
use crate::server::connection::Incoming;

/// What is about a file and no call of an API in JSON: platform, method and answer.
pub(super) fn answer(request: &Incoming, path: &str, auth: &str, state: &mut State) -> Option<(&'static str, String, Reply)> {
    let get = request.method == "GET";
    if let Some(file) = path.strip_prefix("/slack-files/").filter(|_| get) {
        return Some(("slack", "download".into(), stored(file, auth == format!("Bearer {}", slack::TOKEN), state)));
    }
    if let Some(id) = path.strip_prefix("/slack-upload/") {
        let taken = state.uploads.get_mut(id).filter(|(_, length, _)| *length == request.body.len());
        let status = taken.map_or(400, |(_, _, bytes)| {
            bytes.clone_from(&request.body);
            200
        });
        return Some(("slack", "upload".into(), Reply::new(status, Value::Null)));
    }
    if let Some(rest) = path.strip_prefix("/telegram/file/").filter(|_| get) {
        let (bot, file) = rest.split_once("/documents/").unwrap_or_default();
        return Some(("telegram", "download".into(), stored(file, bot == format!("bot{}", telegram::TOKEN), state)));
    }
    if let Some(file) = path.strip_prefix("/discord-files/").or_else(|| path.strip_prefix("/webhook-files/")).filter(|_| get) {
        // These places ask for no credentials, and are to see none.
        return Some(("discord", "download".into(), stored(file, auth.is_empty(), state)));
    }
    let kind = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-type")).map_or("", |(_, value)| value.as_str());
    let form = form(kind.strip_prefix("multipart/form-data; boundary=")?, &request.body)?;
    if path == format!("/telegram/bot{}/sendDocument", telegram::TOKEN) {
        let channel = form.iter().find(|part| part.field == "chat_id").map(|part| String::from_utf8_lossy(&part.bytes).into_owned());
        let id = post("telegram", channel, form.into_iter().find(|part| part.field == "document"), state);
        let reply = id.map_or_else(
            || {
                Reply::new(
                    400,
                    json!({ "ok": false, "error_code": 400, "description": "Bad Request: there is no document in the request" }),
                )
            },
            |id| Reply::new(200, json!({ "ok": true, "result": { "message_id": id } })),
        );
        return Some(("telegram", "sendDocument".into(), reply));
    }
    if path == format!("/telegram/bot{}/editMessageMedia", telegram::TOKEN) {
        let value = |name: &str| form.iter().find(|part| part.field == name).map(|part| String::from_utf8_lossy(&part.bytes).into_owned());
        let (channel, id) = (value("chat_id").unwrap_or_default(), value("message_id").unwrap_or_default());
        let names = value("media").and_then(|media| serde_json::from_str::<Value>(&media).ok());
        let names = names.as_ref().and_then(|media| media.get("media")?.as_str()?.strip_prefix("attach://"));
        let part = form.iter().find(|part| Some(part.field.as_str()) == names);
        state.edits += 1;
        let refuse = |what: &str| Reply::new(400, json!({ "ok": false, "error_code": 400, "description": format!("Bad Request: {what}") }));
        let takes = !state.manners.no_media_edits;
        let reply = match (state.find("telegram", &channel, &id), part) {
            _ if !takes => refuse("there is no media in the message to edit"),
            (None, _) => refuse("message to edit not found"),
            (_, None) => refuse("wrong file identifier/HTTP URL specified"),
            (Some(shown), Some(part)) => {
                shown.file = Some((part.name.clone(), part.bytes.clone()));
                let before = std::mem::take(&mut shown.text);
                shown.history.push(before);
                Reply::new(200, json!({ "ok": true, "result": { "message_id": id.parse::<i64>().unwrap_or(0) } }))
            }
        };
        return Some(("telegram", "editMessageMedia".into(), reply));
    }
    let channel = path.strip_prefix("/discord/channels/")?.strip_suffix("/messages")?;
    let payload = form.iter().find(|part| part.field == "payload_json").and_then(|part| serde_json::from_slice::<Value>(&part.bytes).ok());
    if state.manners.files_denied {
        return Some(("discord", "file".into(), Reply::new(403, json!({ "code": 50_013, "message": "Missing Permissions" }))));
    }
    let fits = auth == format!("Bot {}", discord::TOKEN)
        && payload.is_some_and(|payload| {
            payload.pointer("/attachments/0/id").and_then(Value::as_u64) == Some(0)
                && payload.pointer("/allowed_mentions/parse") == Some(&json!([]))
        });
    let id = post("discord", Some(channel.to_owned()).filter(|_| fits), form.into_iter().find(|part| part.field == "files[0]"), state);
    let reply = id.map_or_else(|| Reply::new(400, json!({ "code": 50_035 })), |id| Reply::new(200, json!({ "id": id.to_string() })));
    Some(("discord", "file".into(), reply))
}

/// Slack's upload in three steps; the second is a request to the address that the first one names.
pub(super) fn slack(method: &str, query: &str, body: &Value, state: &mut State) -> Reply {
    if state.manners.files_denied {
        return Reply::new(200, json!({ "ok": false, "error": "missing_scope" }));
    }
    if method == "files.getUploadURLExternal" {
        let find = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).unwrap_or_default().to_owned();
        let id = format!("F{}", state.fresh());
        state.uploads.insert(id.clone(), (find("filename"), find("length").parse().unwrap_or(0), vec![]));
        let url = format!("{}/slack-upload/{id}", state.origin);
        return Reply::new(200, json!({ "ok": true, "upload_url": url, "file_id": id }));
    }
    if method == "files.info" {
        let id = query.strip_prefix("file=").unwrap_or_default();
        let shared = state.shown.iter().find(|shown| shown.platform == "slack" && shown.mark.as_deref() == Some(id));
        let shares = shared.map(|shown| json!({ "public": { shown.channel.as_str(): [{ "ts": shown.id }] } }));
        return Reply::new(200, json!({ "ok": true, "file": { "id": id, "shares": shares } }));
    }
    let id = body.pointer("/files/0/id").and_then(Value::as_str).unwrap_or_default();
    let Some((name, _, bytes)) = state.uploads.remove(id).filter(|(_, length, bytes)| *length == bytes.len()) else {
        return Reply::new(200, json!({ "ok": false, "error": "file_not_found" }));
    };
    post("slack", Some(text(body, "channel_id")), Some(Part { field: String::new(), name, bytes }), state);
    if let Some(shown) = state.shown.last_mut() {
        shown.mark = Some(id.to_owned());
    }
    Reply::new(200, json!({ "ok": true, "files": [{ "id": id }] }))
}

fn stored(file: &str, allowed: bool, state: &State) -> Reply {
    match state.manners.files.iter().find(|(name, _)| name == file) {
        _ if !allowed => Reply::new(403, Value::Null),
        Some((_, bytes)) => Reply { file: Some(bytes.clone()), ..Reply::new(200, Value::Null) },
        None => Reply::new(404, Value::Null),
    }
}

fn post(platform: &'static str, channel: Option<String>, part: Option<Part>, state: &mut State) -> Option<u64> {
    let (channel, part) = (channel?, part?);
    let id = if platform == "discord" { state.snowflake() } else { state.fresh() };
    state.shown.push(Shown {
        platform,
        channel,
        thread: None,
        id: id.to_string(),
        text: String::new(),
        buttons: vec![],
        history: vec![],
        file: Some((part.name, part.bytes)),
        mark: None,
    });
    Some(id)
}

/// One part of a form.
struct Part {
    field: String,
    name: String,
    bytes: Vec<u8>,
}

/// The parts of a form, as RFC 7578 says; `None` for what is none.
fn form(boundary: &str, body: &[u8]) -> Option<Vec<Part>> {
    let find = |bytes: &[u8], wanted: &[u8]| bytes.windows(wanted.len()).position(|window| window == wanted);
    let (first, next) = (format!("--{boundary}\r\n"), format!("\r\n--{boundary}"));
    let mut rest = body.strip_prefix(first.as_bytes())?;
    let mut parts = vec![];
    loop {
        let head_end = find(rest, b"\r\n\r\n")?;
        let head = std::str::from_utf8(rest.get(..head_end)?).ok()?;
        let content = rest.get(head_end + 4..)?;
        let end = find(content, next.as_bytes())?;
        let quoted =
            |name: &str| head.split("; ").find_map(|piece| piece.strip_prefix(name)?.split('"').next()).unwrap_or_default().to_owned();
        parts.push(Part { field: quoted("name=\""), name: quoted("filename=\""), bytes: content.get(..end)?.to_vec() });
        let after = content.get(end + next.len()..)?;
        if after == b"--\r\n" {
            return Some(parts);
        }
        rest = after.strip_prefix(b"\r\n")?;
    }
}
