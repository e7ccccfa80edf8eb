//! Telegram: updates by webhook in; Bot API out.

mod api;
mod inbound;

use secrecy::SecretString;

use crate::caller::Caller;

/// A Telegram bot.
///
/// The platform signs nothing: it sends the secret that was set with the webhook, over TLS. Nor does it say when a request was made, so an
/// old request is recognised by its update id alone.
#[derive(Clone, Debug)]
pub struct Telegram {
    token: SecretString,
    secret: SecretString,
    base: String,
    bot: Option<String>,
    caller: Caller,
}

impl Telegram {
    /// A bot with this token and the `secret_token` that its webhook was set with.
    pub fn new(bot_token: impl Into<String>, secret_token: impl Into<String>) -> Self {
        Self {
            token: bot_token.into().into(),
            secret: secret_token.into().into(),
            base: "https://api.telegram.org".to_owned(),
            bot: None,
            caller: Caller::new(),
        }
    }

    /// The bot's user name, without `@`, so that mentions of it are recognised in groups.
    #[must_use]
    pub fn username(mut self, name: impl Into<String>) -> Self {
        self.bot = Some(name.into().trim_start_matches('@').to_owned());
        self
    }

    /// Where the Bot API is; Telegram's own, unless set.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base = url.into().trim_end_matches('/').to_owned();
        self
    }
}

#[cfg(test)]
mod tests;
