use std::sync::Arc;

use http::{header::AUTHORIZATION, request::Parts};

use crate::{TokenFile, failure::Failure, query::Query};

/// Who may ask.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Auth {
    /// Anybody who reaches the socket, with every right.
    Open,
    /// Who has a token of this file.
    Tokens(Arc<TokenFile>),
    /// Whom the host let in: a layer of its own around [`Server::router`](crate::Server::router) puts a [`Principal`] into the request's
    /// extensions. A request without one is refused.
    Host,
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

/// What somebody was let in by, where that can be taken away while they are in: the digest of their token.
#[derive(Clone)]
pub(crate) struct Pass(Option<Arc<str>>);

impl Pass {
    /// Of somebody who needed none.
    pub(crate) const NONE: Self = Self(None);
}

impl Auth {
    /// Whether somebody would still be let in as who they are. Whom the host let in is in for as long as the request lasts.
    pub(crate) fn lets_in(&self, pass: &Pass, who: &Principal) -> bool {
        match (self, &pass.0) {
            (Self::Tokens(tokens), Some(digest)) => tokens.find(digest).as_ref() == Some(who),
            _ => true,
        }
    }

    /// Who asks: `Authorization: Bearer T`, or `?apiKey=T`, or whom the host let in.
    pub(crate) fn principal(&self, parts: &Parts, query: &Query) -> Result<(Principal, Pass), Failure> {
        let unknown = || Failure::new(http::StatusCode::UNAUTHORIZED, "auth.invalid_token", "Invalid or expired token");
        let tokens = match self {
            Self::Open => return Ok((Principal::anonymous(), Pass::NONE)),
            Self::Host => return parts.extensions.get().cloned().map(|who| (who, Pass::NONE)).ok_or_else(unknown),
            Self::Tokens(tokens) => tokens,
        };
        let bearer = parts.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| {
            let (scheme, token) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
        });
        let digest: Arc<str> = bearer.or_else(|| query.get("apiKey")).map(TokenFile::digest).ok_or_else(unknown)?.into();
        let who = tokens.find(&digest).ok_or_else(unknown)?;
        Ok((who, Pass(Some(digest))))
    }
}

#[cfg(test)]
mod tests {
    use http::{Request, StatusCode};

    use super::{Auth, Principal};
    use crate::query::Query;

    #[test]
    fn who_the_host_did_not_let_in_is_nobody_whatever_the_request_says() {
        let (mut parts, ()) = Request::get("/?apiKey=x").header("authorization", "Bearer x").body(()).unwrap().into_parts();
        let query = Query::read(parts.uri.query());
        let refused = Auth::Host.principal(&parts, &query).err().unwrap();
        assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        parts.extensions.insert(Principal::new("ann"));
        assert_eq!(Auth::Host.principal(&parts, &query).unwrap().0, Principal::new("ann"));
    }
}
