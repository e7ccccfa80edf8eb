use ac_controller::UserMessage;
use ac_core::message::{FilePart, FileSource};
use serde_json::Value;

use crate::{
    call::{ACCEPTED, Call, Reply},
    failure::Failure,
    query::request_context,
};

/// The message of a body with its files and what came with it.
pub(crate) fn message_of(call: &Call) -> Result<UserMessage, Failure> {
    let text = call.text("message");
    let files = match call.body.get("files") {
        Some(Value::Array(files)) => files.as_slice(),
        _ => &[],
    };
    // Judged here, so that nothing is made for a message that says nothing.
    if text.is_empty() && files.is_empty() {
        return Err(Failure::new(http::StatusCode::BAD_REQUEST, "message.empty", "a message needs text or a file"));
    }
    let context = request_context(&call.query, &call.body).unwrap_or_default();
    if serde_json::to_vec(&context).map_or(0, |json| json.len()) > UserMessage::MAX_REQUEST_CONTEXT {
        let message = format!("the request context may be at most {} bytes of JSON", UserMessage::MAX_REQUEST_CONTEXT);
        return Err(Failure::new(http::StatusCode::PAYLOAD_TOO_LARGE, "message.too_large", message));
    }
    let message = UserMessage::new(text).request_context(context);
    Ok(files.iter().fold(message, |message, file| message.file(file_of(file))))
}

/// `{data, mediaType, filename?}`: `data` is base64, a data URL, or the address of something.
fn file_of(file: &Value) -> FilePart {
    let text = |key: &str| file.get(key).and_then(Value::as_str).unwrap_or_default();
    let data = text("data");
    let source = if let Some((_, encoded)) = data.strip_prefix("data:").and_then(|url| url.split_once(";base64,")) {
        FileSource::Base64(encoded.into())
    } else if data.starts_with("https://") || data.starts_with("http://") || data.starts_with("data:") {
        FileSource::Url(data.to_owned())
    } else {
        FileSource::Base64(data.into())
    };
    let name = file.get("filename").and_then(Value::as_str).filter(|name| !name.is_empty()).map(str::to_owned);
    FilePart { media_type: text("mediaType").to_owned(), source, name, opaque: None }
}

pub(crate) async fn message(call: Call) -> Result<Reply, Failure> {
    let message = message_of(&call)?;
    call.session().await?.submit(message).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn steer(call: Call) -> Result<Reply, Failure> {
    let message = message_of(&call)?;
    call.session().await?.steer(message).await?;
    Ok(Reply::Done(ACCEPTED))
}

pub(crate) async fn follow_up(call: Call) -> Result<Reply, Failure> {
    let message = message_of(&call)?;
    call.session().await?.follow_up(message).await?;
    Ok(Reply::Done(ACCEPTED))
}

/// Where there is nothing to stop, no session begins for it.
pub(crate) async fn abort(call: Call) -> Result<Reply, Failure> {
    let looked = call.look().await?;
    if looked.current_run().await?.is_none() {
        return Ok(Reply::Done("not_pending"));
    }
    let stopped = call.session().await?.abort().await?;
    Ok(Reply::Done(if stopped { ACCEPTED } else { "not_pending" }))
}
