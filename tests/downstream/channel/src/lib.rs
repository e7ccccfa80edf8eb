//! A channel of one's own: a pager network that posts JSON with a shared token, and is answered through a queue.

use agent_controller::{async_trait, channels::*, core::Timestamp};
use tokio::sync::mpsc::Sender;

pub struct Pager {
    pub token: String,
    pub out: Sender<(String, String)>,
}

#[derive(serde::Deserialize)]
struct Page {
    id: String,
    from: String,
    text: String,
}

#[async_trait]
impl ChannelAdapter for Pager {
    fn platform(&self) -> &str {
        "pager"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::text(2_000)
    }

    fn receive(&self, request: &http::Request<bytes::Bytes>, _now: Timestamp) -> Result<Received, Refused> {
        let given = request.headers().get("x-pager-token").ok_or(Refused::Unsigned)?;
        if !same_secret(given.as_bytes(), self.token.as_bytes()) {
            return Err(Refused::Unsigned);
        }
        let Page { id, from, text } = serde_json::from_slice(request.body()).map_err(|_| Refused::Malformed)?;
        let conversation = Conversation::new(self.platform(), &from).direct();
        Ok(Received::events(vec![Incoming::message(id, conversation, Speaker::new(from), Said::to_agent(text))]))
    }

    async fn post(&self, to: &Conversation, key: &PostKey, post: &Post) -> Result<String, ChannelError> {
        let page = (to.channel.clone(), post.text.clone());
        let down = |_| ChannelError::new(ChannelErrorKind::Unavailable, "the pager network is down");
        self.out.send(page).await.map_err(down).map(|()| key.key.clone())
    }
}
