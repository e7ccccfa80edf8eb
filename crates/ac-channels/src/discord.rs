//! Discord: interactions in; REST out.

mod api;
mod inbound;

use ed25519_dalek::VerifyingKey;
use secrecy::SecretString;

use crate::{ChannelError, ChannelErrorKind, caller::Caller, signature::unhex};

/// A Discord application.
///
/// What comes in are interactions: slash commands, buttons, menus, forms. Plain messages reach an application over a gateway connection
/// only; a host that keeps one hands its events to [`Channels::accept`](crate::Channels::accept).
#[derive(Clone, Debug)]
pub struct Discord {
    app: String,
    key: VerifyingKey,
    token: SecretString,
    base: String,
    caller: Caller,
}

impl Discord {
    /// An application with this id, public key (hexadecimal) and bot token.
    ///
    /// # Errors
    /// [`Config`](ChannelErrorKind::Config) for a public key that is none.
    pub fn new(app_id: impl Into<String>, public_key: &str, bot_token: impl Into<String>) -> Result<Self, ChannelError> {
        let key = unhex(public_key)
            .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
            .and_then(|bytes| VerifyingKey::from_bytes(&bytes).ok())
            .ok_or_else(|| {
                ChannelError::new(ChannelErrorKind::Config, "the public key of the application is no Ed25519 key in hexadecimal")
            })?;
        Ok(Self {
            app: app_id.into(),
            key,
            token: bot_token.into().into(),
            base: "https://discord.com/api/v10".to_owned(),
            caller: Caller::new(),
        })
    }

    /// Where the REST API is; Discord's own, unless set.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<String>) -> Self {
        self.base = url.into().trim_end_matches('/').to_owned();
        self
    }
}

#[cfg(test)]
mod tests;
