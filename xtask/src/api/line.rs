//! One item of an API as a line that a person reads.

/// Where the names that need no path are defined.
const PLAIN: [&str; 36] = [
    "alloc::borrow::Cow",
    "alloc::boxed::Box",
    "alloc::collections::btree::map::BTreeMap",
    "alloc::collections::btree::set::BTreeSet",
    "alloc::string::String",
    "alloc::string::ToString",
    "alloc::sync::Arc",
    "alloc::vec::Vec",
    "core::clone::Clone",
    "core::cmp::Eq",
    "core::cmp::Ord",
    "core::cmp::PartialEq",
    "core::cmp::PartialOrd",
    "core::convert::AsRef",
    "core::convert::From",
    "core::convert::Into",
    "core::convert::TryFrom",
    "core::default::Default",
    "core::error::Error",
    "core::fmt::Debug",
    "core::fmt::Display",
    "core::future::future::Future",
    "core::hash::Hash",
    "core::iter::traits::collect::IntoIterator",
    "core::iter::traits::iterator::Iterator",
    "core::marker::Copy",
    "core::marker::Send",
    "core::marker::Sized",
    "core::marker::Sync",
    "core::ops::function::Fn",
    "core::option::Option",
    "core::pin::Pin",
    "core::result::Result",
    "core::str::traits::FromStr",
    "core::time::Duration",
    "std::path::PathBuf",
];

/// The line; `None` for what says nothing to a person.
pub(super) fn shown(item: &str) -> Option<String> {
    if item.contains("core::marker::StructuralPartialEq") {
        return None;
    }
    let mut out = String::new();
    let mut rest = item;
    while let Some(next) = rest.chars().next() {
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(rest.len()).max(next.len_utf8());
        let (word, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        // What comes with a path's last segment stays: `Option::None`.
        let plain = PLAIN.iter().find(|path| word.strip_prefix(**path).is_some_and(|more| more.is_empty() || more.starts_with(':')));
        match plain.and_then(|path| Some((path.rsplit("::").next()?, word.strip_prefix(*path)?))) {
            Some((name, more)) => out.extend([name, more]),
            None => out.push_str(word),
        }
        rest = after;
    }
    Some(awaited(&out).unwrap_or(out))
}

/// A method that `async_trait` wrote, as it was written.
fn awaited(line: &str) -> Option<String> {
    let (head, rest) = line.split_once("<'")?;
    let (lifetimes, rest) = rest.split_once(">(")?;
    let (arguments, rest) = rest.split_once(") -> Pin<Box<(dyn Future<Output = ")?;
    let (output, bounds) = rest.split_once("> + Send + 'async_trait)>>")?;
    if !lifetimes.ends_with("'async_trait") || bounds.contains(['(', ')']) {
        return None;
    }
    let mut arguments = arguments.to_owned();
    for lifetime in lifetimes.split(", ").map(|lifetime| lifetime.trim_start_matches('\'')) {
        arguments = arguments.replace(&format!("&'{lifetime} "), "&");
    }
    Some(format!("{}({arguments}) -> {output}", head.replacen("pub fn", "pub async fn", 1)))
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn names_that_everybody_knows_have_no_path() {
        let item =
            "pub fn a::B::c(&self, &str) -> core::result::Result<core::option::Option<alloc::string::String>, a::core::result::Result>";
        assert_eq!(shown(item).unwrap(), "pub fn a::B::c(&self, &str) -> Result<Option<String>, a::core::result::Result>");
        assert_eq!(shown("impl core::marker::StructuralPartialEq for a::B"), None);
        assert_eq!(shown("impl core::marker::StructuralPartial for a::é").unwrap(), "impl core::marker::StructuralPartial for a::é");
    }

    #[test]
    fn an_asynchronous_method_reads_as_it_was_written() {
        let item = "pub fn a::B::c<'life0, 'life1, 'async_trait>(&'life0 self, &'life1 a::D) -> core::pin::Pin<alloc::boxed::Box<(dyn \
                    core::future::future::Future<Output = core::option::Option<u8>> + core::marker::Send + 'async_trait)>> where Self: \
                    'async_trait, 'life0: 'async_trait, 'life1: 'async_trait";
        assert_eq!(shown(item).unwrap(), "pub async fn a::B::c(&self, &a::D) -> Option<u8>");
    }
}
