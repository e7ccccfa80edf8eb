use std::sync::Arc;

use http::{HeaderMap, header::AUTHORIZATION};

use crate::{TokenFile, failure::Failure, query::Query};

/// Who may ask.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Auth {
    /// Anybody who reaches the socket, with every right.
    Open,
    /// Who has a token of this file.
    Tokens(Arc<TokenFile>),
}

/// Who asks, and what that allows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Principal {
    /// The name that resources are kept under.
    pub name: Arc<str>,
    /// May set the keys of a session's state that decide permissions: `yolo`, `permissionRules`.
    pub state: bool,
    /// May use every resource, whoever owns it.
    pub all: bool,
}

impl Principal {
    /// Somebody with no rights but over what they own.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), state: false, all: false }
    }

    /// Anybody, where nobody must say who they are.
    pub fn anonymous() -> Self {
        Self { name: "anonymous".into(), state: true, all: true }
    }
}

impl Auth {
    /// Who asks: `Authorization: Bearer T`, or `?apiKey=T`.
    pub(crate) fn principal(&self, headers: &HeaderMap, query: &Query) -> Result<Principal, Failure> {
        let tokens = match self {
            Self::Open => return Ok(Principal::anonymous()),
            Self::Tokens(tokens) => tokens,
        };
        let bearer = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        bearer
            .or_else(|| query.get("apiKey"))
            .and_then(|token| tokens.find(token))
            .ok_or_else(|| Failure::new(http::StatusCode::UNAUTHORIZED, "auth.invalid_token", "Invalid or expired token"))
    }
}
