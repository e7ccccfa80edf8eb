//! Which files a provider is given as they are.

use ac_core::message::{FilePart, FileSource};
use base64::Engine as _;

/// What a file is to a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Media {
    /// A picture of a kind that all providers take.
    Picture,
    Pdf,
    Audio,
    Text,
    Office,
    /// Whatever else. A file that a provider refuses stands in the thread, and would have each later request refused with it.
    Other,
}

/// What a file is, and its media type as providers want it: without parameters, in lower case.
pub(crate) fn media(part: &FilePart) -> (Media, String) {
    let kind = part.media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind.as_str() {
        "image/jpg" => (Media::Picture, "image/jpeg".to_owned()),
        "image/png" | "image/jpeg" | "image/gif" | "image/webp" => (Media::Picture, kind),
        "application/pdf" => (Media::Pdf, kind),
        "application/msword" | "application/rtf" => (Media::Office, kind),
        _ if kind.starts_with("application/vnd.openxmlformats-officedocument.") => (Media::Office, kind),
        _ if kind.starts_with("audio/") => (Media::Audio, kind),
        _ if kind.starts_with("text/") || kind == "application/json" => (Media::Text, kind),
        _ => (Media::Other, kind),
    }
}

/// What is said in place of a file that is not given.
pub(crate) fn described(part: &FilePart) -> String {
    let name = part.name.as_deref();
    match &part.source {
        FileSource::Url(url) => format!("[{}: {url}]", name.unwrap_or(&part.media_type)),
        _ => match name {
            Some(name) => format!("[a file that cannot be shown here: {name}, {}]", part.media_type),
            None => format!("[a file that cannot be shown here: {}]", part.media_type),
        },
    }
}

/// A file of text.
pub(crate) fn decode_text(data: &str) -> Option<String> {
    String::from_utf8(base64::engine::general_purpose::STANDARD.decode(data).ok()?).ok()
}
