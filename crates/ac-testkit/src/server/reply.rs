//! Renders a turn as a Chat Completions answer, streamed or whole.

use std::{io, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    connection::Connection,
    framing::{Framer, Framing},
    turn::{Turn, TurnPart},
};

/// How an answer ended on the server's side.
pub(super) enum Ending {
    /// Complete; the connection goes on.
    Complete,
    /// As the script said; the connection is gone.
    Broken,
    /// The client left first.
    Left,
}

/// What every chunk of an answer repeats.
pub(super) struct Frame {
    pub(super) id: String,
    pub(super) model: Value,
}

impl Frame {
    fn whole(&self, object: &str, choices: Value, usage: Option<Value>) -> Value {
        let mut out = json!({ "id": self.id, "object": object, "created": 1_767_225_600, "model": self.model, "choices": choices });
        if let (Value::Object(map), Some(usage)) = (&mut out, usage) {
            map.insert("usage".to_owned(), usage);
        }
        out
    }

    fn event(&self, delta: Value, finish: Option<&str>) -> Vec<u8> {
        sse(&self.whole("chat.completion.chunk", json!([{ "index": 0, "delta": delta, "finish_reason": finish }]), None))
    }
}

fn sse(value: &Value) -> Vec<u8> {
    format!("data: {value}\n\n").into_bytes()
}

/// Answers one request.
pub(super) async fn send(mut to: Connection, turn: &Turn, frame: &Frame, stream: bool, framing: Framing) -> (Option<Connection>, Ending) {
    let sent = if stream { streamed(&mut to, turn, frame, framing).await } else { whole(&mut to, turn, frame).await };
    let fails = turn.error.clone().unwrap_or_default();
    match sent {
        Err(_) => (None, Ending::Left),
        Ok(()) if fails.hang => {
            to.left().await;
            (None, Ending::Left)
        }
        // A reset that cannot be set is still a close, which is broken enough.
        Ok(()) if fails.reset => (to.reset().ok().and(None), Ending::Broken),
        Ok(()) if fails.cut => (None, Ending::Broken),
        Ok(()) => (Some(to), Ending::Complete),
    }
}

async fn streamed(to: &mut Connection, turn: &Turn, frame: &Frame, framing: Framing) -> io::Result<()> {
    let fails = turn.error.as_ref().is_some_and(|error| error.cut || error.reset || error.hang);
    if let Some(error) = &turn.error
        && !fails
    {
        return refuse(to, turn, error).await;
    }
    if fails && turn.parts.is_empty() && turn.raw.is_none() {
        return Ok(());
    }
    let mut framer = Framer::new(framing);
    if let Some(raw) = &turn.raw {
        to.begin(&raw.content_type);
        wait(to, &mut framer, turn.delay).await?;
        // Recorded bytes know no events of ours: they go out as lines, or as the framing says.
        for line in raw.body.split_inclusive(|byte| *byte == b'\n') {
            to.write(&mut framer, line).await?;
        }
    } else {
        to.begin("text/event-stream");
        to.write(&mut framer, &frame.event(json!({ "role": "assistant", "content": "" }), None)).await?;
        parts(to, &mut framer, turn, frame).await?;
        if !fails {
            to.write(&mut framer, &frame.event(json!({}), Some(turn.finish_reason()))).await?;
            to.write(&mut framer, &sse(&frame.whole("chat.completion.chunk", json!([]), Some(turn.usage_or_default())))).await?;
            to.write(&mut framer, b"data: [DONE]\n\n").await?;
        }
    }
    if fails { to.settle(&mut framer).await } else { to.end(&mut framer).await }
}

async fn parts(to: &mut Connection, framer: &mut Framer, turn: &Turn, frame: &Frame) -> io::Result<()> {
    let mut index = 0;
    for part in &turn.parts {
        match part {
            TurnPart::Delay(millis) => wait(to, framer, *millis).await?,
            TurnPart::Text(pieces) => {
                for piece in pieces {
                    wait(to, framer, turn.delay).await?;
                    to.write(framer, &frame.event(json!({ "content": piece }), None)).await?;
                }
            }
            TurnPart::Reasoning(pieces) => {
                for piece in pieces {
                    wait(to, framer, turn.delay).await?;
                    to.write(framer, &frame.event(json!({ "reasoning_content": piece }), None)).await?;
                }
            }
            TurnPart::Tool(tool) => {
                wait(to, framer, turn.delay).await?;
                let head = json!({ "index": index, "id": tool.id, "type": "function", "function": { "name": tool.name, "arguments": "" } });
                to.write(framer, &frame.event(json!({ "tool_calls": [head] }), None)).await?;
                for piece in tool.pieces() {
                    wait(to, framer, turn.delay).await?;
                    let more = json!({ "index": index, "function": { "arguments": piece } });
                    to.write(framer, &frame.event(json!({ "tool_calls": [more] }), None)).await?;
                }
                index += 1;
            }
        }
    }
    Ok(())
}

async fn wait(to: &mut Connection, framer: &mut Framer, millis: u64) -> io::Result<()> {
    if millis == 0 {
        return Ok(());
    }
    to.settle(framer).await?;
    to.pause(Duration::from_millis(millis)).await
}

async fn refuse(to: &mut Connection, turn: &Turn, error: &super::turn::Reply) -> io::Result<()> {
    if turn.delay > 0 {
        to.pause(Duration::from_millis(turn.delay)).await?;
    }
    let headers: Vec<_> = error.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let status = error.status.unwrap_or(500);
    let body = error.body.clone().unwrap_or_else(|| json!({ "error": { "message": format!("scripted error {status}") } }));
    to.json(status, &headers, &body).await
}

async fn whole(to: &mut Connection, turn: &Turn, frame: &Frame) -> io::Result<()> {
    if let Some(error) = &turn.error {
        return if error.cut || error.reset || error.hang { Ok(()) } else { refuse(to, turn, error).await };
    }
    if let Some(raw) = &turn.raw {
        let mut framer = Framer::new(Framing::Whole);
        to.begin(&raw.content_type);
        to.write(&mut framer, &raw.body).await?;
        return to.end(&mut framer).await;
    }
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for part in &turn.parts {
        match part {
            TurnPart::Delay(millis) => to.pause(Duration::from_millis(*millis)).await?,
            TurnPart::Text(pieces) => text.extend(pieces.iter().map(String::as_str)),
            TurnPart::Reasoning(pieces) => reasoning.extend(pieces.iter().map(String::as_str)),
            TurnPart::Tool(tool) => calls.push(json!({
                "id": tool.id, "type": "function", "function": { "name": tool.name, "arguments": tool.text() },
            })),
        }
    }
    let mut message = Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), json!(text))]);
    if !reasoning.is_empty() {
        message.insert("reasoning_content".to_owned(), json!(reasoning));
    }
    if !calls.is_empty() {
        message.insert("tool_calls".to_owned(), json!(calls));
    }
    let choices = json!([{ "index": 0, "message": message, "finish_reason": turn.finish_reason() }]);
    to.json(200, &[], &frame.whole("chat.completion", choices, Some(turn.usage_or_default()))).await
}
