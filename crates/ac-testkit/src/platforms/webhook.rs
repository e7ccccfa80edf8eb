use serde_json::{Value, json};

use super::{Notice, Reply, Shown, State, text};

const NAME: &str = "webhook";

/// The receiver of signed webhooks.
pub(super) fn answer(id: &str, body: &Value, state: &mut State) -> Reply {
    let channel = text(body, "conversation");
    let buttons = body.get("buttons").and_then(Value::as_array).into_iter().flatten();
    let buttons: Vec<(String, String)> = buttons.map(|button| (text(button, "label"), text(button, "value"))).collect();
    match text(body, "type").as_str() {
        "post" => {
            let known = state.shown.iter().find(|shown| shown.platform == NAME && shown.mark.as_deref() == Some(id));
            if let Some(known) = known {
                return Reply::new(200, json!({ "message": known.id }));
            }
            let message = format!("w{}", state.fresh());
            let said = text(body, "text");
            let mark = Some(id.to_owned());
            state.shown.push(Shown {
                platform: NAME,
                channel,
                thread: None,
                id: message.clone(),
                text: said,
                buttons,
                history: vec![],
                file: None,
                mark,
            });
            Reply::new(200, json!({ "message": message }))
        }
        "edit" => {
            let (message, said) = (text(body, "message"), text(body, "text"));
            let Some(shown) = state.find(NAME, &channel, &message) else { return Reply::new(404, json!({})) };
            let before = std::mem::replace(&mut shown.text, said);
            shown.history.push(before);
            shown.buttons = buttons;
            Reply::new(200, json!({}))
        }
        "notice" => {
            state.notices.push(Notice { platform: NAME, to: text(body, "person"), text: text(body, "text") });
            Reply::new(200, json!({}))
        }
        _ => Reply::new(200, json!({})),
    }
}
