//! Shapes of the events that a stream mostly consists of, read without making a tree of values of each.
//!
//! A shape holds every field that its decoder would look at. What does not fit (another type, a field with something in it that is rare) is
//! no error: the decoder then reads the event in full, so that a shape decides how fast an event is read and never what it means.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{Error, IgnoredAny, SeqAccess, Visitor},
};

/// A text, borrowed from the event where nothing in it is escaped. Null is an empty one.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl<'a> Text<'a> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn into_string(self) -> String {
        self.0.into_owned()
    }

    /// Sets what is not known yet.
    pub(crate) fn learn(self, known: &mut Option<String>) {
        if known.is_none() && !self.is_empty() {
            *known = Some(self.into_string());
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or null")
            }

            fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }

            fn visit_unit<E: Error>(self) -> Result<Text<'de>, E> {
                Ok(Text::default())
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// A field that is null or not there.
#[derive(Debug, Default)]
pub(crate) struct Null;

impl<'de> Deserialize<'de> for Null {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <()>::deserialize(deserializer).map(|()| Self)
    }
}

/// A list that holds nothing, or null.
#[derive(Debug, Default)]
pub(crate) struct NoList;

impl<'de> Deserialize<'de> for NoList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = NoList;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an empty list or null")
            }

            fn visit_unit<E: Error>(self) -> Result<NoList, E> {
                Ok(NoList)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NoList, A::Error> {
                match list.next_element::<IgnoredAny>()? {
                    None => Ok(NoList),
                    Some(_) => Err(A::Error::custom("an item")),
                }
            }
        }
        deserializer.deserialize_any(Read)
    }
}

/// Reads `data` if it fits.
pub(crate) fn fit<'a, T: Deserialize<'a>>(data: &'a str) -> Option<T> {
    #[cfg(test)]
    if tests::IN_FULL.get() {
        return None;
    }
    serde_json::from_str(data).ok()
}

#[cfg(test)]
mod tests;
