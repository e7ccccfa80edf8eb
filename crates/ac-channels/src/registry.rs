//! Several controllers, each with its channels, behind one server.

use std::collections::BTreeMap;

use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

use crate::{ChannelError, ChannelErrorKind, Channels, adapter::json};

/// The channels of several controllers, by the controllers' ids. A host's server hands every request for
/// `/api/agent-controllers/{controller}/channels/{platform}/webhook` to [`receive`](Self::receive).
#[derive(Clone, Debug, Default)]
pub struct ChannelRegistry(BTreeMap<String, Channels>);

impl ChannelRegistry {
    /// No channels.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the channels of a controller.
    ///
    /// # Errors
    /// [`Config`](ChannelErrorKind::Config): the controller has its channels already.
    pub fn register(&mut self, channels: Channels) -> Result<(), ChannelError> {
        let id = channels.controller().id().to_string();
        if self.0.contains_key(&id) {
            return Err(ChannelError::new(ChannelErrorKind::Config, format!("the channels of `{id}` are registered already")));
        }
        self.0.insert(id, channels);
        Ok(())
    }

    /// The channels of a controller.
    pub fn get(&self, controller: &str) -> Option<&Channels> {
        self.0.get(controller)
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Channels> {
        self.0.values()
    }

    /// Answers a webhook request: see [`Channels::receive`]. 404 for a controller that has no channels.
    pub async fn receive(&self, controller: &str, platform: &str, request: http::Request<Bytes>) -> http::Response<Bytes> {
        match self.get(controller) {
            Some(channels) => channels.receive(platform, request).await,
            None => json(StatusCode::NOT_FOUND, &json!({ "error": format!("No controller {controller}"), "code": "channel.unknown" })),
        }
    }
}
