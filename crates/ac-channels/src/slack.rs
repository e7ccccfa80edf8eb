//! Slack: Events API, interactivity and slash commands in; Web API out.

mod api;
mod inbound;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
};

use secrecy::SecretString;

use crate::caller::Caller;

/// A Slack app.
///
/// Needs the scopes `app_mentions:read`, `channels:history` (and its siblings), `chat:write`, `commands`, `files:read`, `files:write`,
/// `im:history`, `users:read`.
#[derive(Clone, Debug)]
pub struct Slack {
    secret: SecretString,
    token: SecretString,
    base: String,
    app: Option<String>,
    bot_user: Option<String>,
    caller: Caller,
    /// Names of people, so that each is asked for once.
    names: Arc<Mutex<HashMap<String, Option<String>>>>,
}

impl Slack {
    /// An app with this signing secret and this bot token (`xoxb-…`).
    pub fn new(signing_secret: impl Into<String>, bot_token: impl Into<String>) -> Self {
        Self {
            secret: signing_secret.into().into(),
            token: bot_token.into().into(),
            base: "https://slack.com/api".to_owned(),
            app: None,
            bot_user: None,
            caller: Caller::new(),
            names: Arc::default(),
        }
    }

    /// Only requests of this app id count; others are refused.
    #[must_use]
    pub fn app_id(mut self, id: impl Into<String>) -> Self {
        self.app = Some(id.into());
        self
    }

    /// The user id of the bot, so that mentions of it are recognised in plain messages and taken out of the text.
    #[must_use]
    pub fn bot_user(mut self, id: impl Into<String>) -> Self {
        self.bot_user = Some(id.into());
        self
    }

    /// Where the Web API is; Slack's own, unless set.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base = url.into().trim_end_matches('/').to_owned();
        self
    }
}

#[cfg(test)]
mod tests;
