//! Values of buttons: opaque, signed, and good for one thing.
//!
//! A value is `1.CARD.ACTION.MAC`, at most 64 bytes, which is what the narrowest platform takes. The card's number and the action are in
//! the open; what they mean is in the store. The MAC covers the controller, the platform, the conversation, the wait, the arguments that
//! were shown and the action: a value that is carried to another conversation, another call, or other arguments does not fit there.

use ac_core::PendingId;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use secrecy::{ExposeSecret, SecretSlice};

use crate::signature;

/// What a button does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Action {
    /// Allow this call, or the plan.
    Approve,
    /// Refuse this call.
    Decline,
    /// Allow this call and later ones of the tool in this conversation.
    Always,
    /// Choose the option of this number.
    Option(u16),
    /// Answer in one's own words.
    Reply,
    /// Run a call in doubt again.
    Again,
    /// Take a call in doubt as failed.
    Failed,
}

impl Action {
    fn code(self) -> String {
        match self {
            Self::Approve => "a".into(),
            Self::Decline => "d".into(),
            Self::Always => "w".into(),
            Self::Option(n) => format!("o{n}"),
            Self::Reply => REPLY.into(),
            Self::Again => "g".into(),
            Self::Failed => "f".into(),
        }
    }

    fn read(code: &str) -> Option<Self> {
        Some(match code {
            "a" => Self::Approve,
            "d" => Self::Decline,
            "w" => Self::Always,
            REPLY => Self::Reply,
            "g" => Self::Again,
            "f" => Self::Failed,
            _ => Self::Option(code.strip_prefix('o')?.parse().ok()?),
        })
    }
}

const VERSION: &str = "1";
const REPLY: &str = "r";

/// Whether a button of this value asks for the person's own words. For adapters whose platform wants a form at once; says nothing about
/// whether the value is genuine.
pub fn wants_reply(value: &str) -> bool {
    value.starts_with("1.") && value.split('.').nth(2) == Some(REPLY)
}

/// A value, as it came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Value<'a> {
    pub(crate) card: u32,
    pub(crate) action: Action,
    mac: &'a str,
}

impl<'a> Value<'a> {
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let mut parts = text.split('.');
        let value = match [parts.next()?, parts.next()?, parts.next()?, parts.next()?] {
            [VERSION, card, action, mac] => Self { card: card.parse().ok()?, action: Action::read(action)?, mac },
            _ => return None,
        };
        parts.next().is_none().then_some(value)
    }
}

/// What a value is bound to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound<'a> {
    pub(crate) conversation: &'a str,
    pub(crate) pending: &'a PendingId,
    /// The digest of what was shown.
    pub(crate) shown: &'a str,
    pub(crate) card: u32,
}

/// Signs values.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    key: SecretSlice<u8>,
    controller: String,
}

impl Signer {
    pub(crate) fn new(key: SecretSlice<u8>, controller: String) -> Self {
        Self { key, controller }
    }

    pub(crate) fn sign(&self, bound: Bound<'_>, action: Action) -> String {
        format!("{VERSION}.{}.{}.{}", bound.card, action.code(), URL_SAFE_NO_PAD.encode(self.mac(bound, action)))
    }

    pub(crate) fn fits(&self, bound: Bound<'_>, value: Value<'_>) -> bool {
        let given = URL_SAFE_NO_PAD.decode(value.mac).unwrap_or_default();
        bound.card == value.card && signature::same(&self.mac(bound, value.action), &given)
    }

    /// 128 bits are enough for a value that is checked online and bound to an open wait.
    fn mac(&self, bound: Bound<'_>, action: Action) -> [u8; 16] {
        let (pending, action, card) = (bound.pending.to_string(), action.code(), bound.card.to_string());
        let mut pieces: Vec<Vec<u8>> = vec![];
        for piece in ["button", &self.controller, bound.conversation, &pending, bound.shown, &card, &action] {
            // With its length before it, no piece can lend a letter to its neighbour.
            pieces.push(u64::try_from(piece.len()).unwrap_or(u64::MAX).to_be_bytes().to_vec());
            pieces.push(piece.as_bytes().to_vec());
        }
        let pieces: Vec<&[u8]> = pieces.iter().map(Vec::as_slice).collect();
        let mac = signature::hmac(self.key.expose_secret(), &pieces);
        mac.first_chunk::<16>().copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signer(key: &str, controller: &str) -> Signer {
        Signer::new(key.as_bytes().to_vec().into(), controller.into())
    }

    fn pending(call: &str) -> PendingId {
        PendingId { run: "run-1".into(), step: 1, call: call.into(), n: 1 }
    }

    #[test]
    fn a_value_fits_what_it_was_made_for_and_nothing_else() {
        let (one, other) = (pending("call"), pending("ca/ll"));
        let signer_ = signer("a key of some length", "desk");
        let bound = Bound { conversation: "slack:C:1", pending: &one, shown: "h", card: 7 };
        let text = signer_.sign(bound, Action::Approve);
        assert!(text.len() <= 64, "{text}");
        let value = Value::read(&text).unwrap();
        assert!(signer_.fits(bound, value));
        for wrong in [
            Bound { conversation: "slack:C:2", ..bound },
            Bound { pending: &other, ..bound },
            Bound { shown: "i", ..bound },
            Bound { card: 8, ..bound },
        ] {
            assert!(!signer_.fits(wrong, value), "{wrong:?}");
        }
        assert!(!signer_.fits(bound, Value { action: Action::Always, ..value }));
        assert!(!signer("another key", "desk").fits(bound, value));
        assert!(!signer("a key of some length", "other").fits(bound, value));
    }

    #[test]
    fn the_longest_value_fits_the_narrowest_platform() {
        let bound = Bound { conversation: &"c".repeat(300), pending: &pending(&"x".repeat(300)), shown: "h", card: u32::MAX };
        assert!(signer("key", "desk").sign(bound, Action::Option(u16::MAX)).len() <= 64);
    }

    #[test]
    fn what_is_no_value_is_not_read() {
        for text in ["", "1", "1.2.a", "2.2.a.x", "1.2.z.x", "1.x.a.x", "1.2.a.x.y", "tool_approve:call"] {
            assert_eq!(Value::read(text), None, "{text}");
        }
        assert!(wants_reply("1.2.r.x") && !wants_reply("1.2.a.x") && !wants_reply("r"));
    }
}
