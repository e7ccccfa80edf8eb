use std::{
    collections::HashMap,
    fmt, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant, SystemTime},
};

use sha2::{Digest, Sha256};

use crate::{Principal, limits::lock};

/// A file of tokens: one line each, `PRINCIPAL SHA256-HEX [RIGHTS]`, rights `state` and `all`, separated by commas. Lines that begin with
/// `#` say nothing. The tokens themselves are in no file.
///
/// The file is looked at again when it changes, at most once a second, so that a token that is added or taken away counts without a
/// restart.
///
/// ```
/// use ac_server::{TokenFile, new_token};
///
/// # let path = std::env::temp_dir().join(format!("tokens-{}", std::process::id()));
/// // The token is shown once, the line goes into the file.
/// let (token, line) = new_token("ada", &["state"], &[7; 32])?; // random bytes of yours
/// std::fs::write(&path, line)?;
/// let tokens = TokenFile::open(&path)?;
/// # drop((token, tokens));
/// # std::fs::remove_file(path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TokenFile {
    path: PathBuf,
    read: Mutex<Read>,
}

struct Read {
    looked: Instant,
    changed: Option<(SystemTime, u64)>,
    by_digest: Arc<HashMap<String, Principal>>,
}

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

impl TokenFile {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, or a line of it means nothing: a file that is only half understood lets nobody in.
    pub fn open(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        // Before it is read: a change in between is seen the next time.
        let changed = changed(&path);
        let by_digest = Arc::new(parse(&std::fs::read_to_string(&path)?)?);
        let read = Mutex::new(Read { looked: Instant::now(), changed, by_digest });
        Ok(Self { path, read })
    }

    /// What the file has of a token.
    pub(crate) fn digest(token: &str) -> String {
        digest(token)
    }

    /// The principal of a token, by its digest.
    pub(crate) fn find(&self, digest: &str) -> Option<Principal> {
        self.current().get(digest).cloned()
    }

    fn current(&self) -> Arc<HashMap<String, Principal>> {
        let mut read = lock(&self.read);
        if read.looked.elapsed() >= LOOK {
            read.looked = Instant::now();
            let now = changed(&self.path);
            if now != read.changed {
                read.changed = now;
                read.by_digest = match std::fs::read_to_string(&self.path).and_then(|text| parse(&text)) {
                    Ok(tokens) => Arc::new(tokens),
                    Err(error) => {
                        tracing::error!(%error, "the token file cannot be read any more; nobody is let in");
                        Arc::default()
                    }
                };
            }
        }
        read.by_digest.clone()
    }
}

impl fmt::Debug for TokenFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// When it was changed, and its length: two changes may come within one tick of the file's clock.
fn changed(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

fn parse(text: &str) -> io::Result<HashMap<String, Principal>> {
    let mut out = HashMap::new();
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidData, format!("line {} of the token file: {what}", at + 1));
        let mut words = line.split_whitespace();
        let (Some(name), Some(hash)) = (words.next(), words.next()) else { return Err(wrong("expected PRINCIPAL SHA256-HEX [RIGHTS]")) };
        if hash.len() != 64 || !hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(wrong("the second word is no SHA-256 in hexadecimal; write the digest of the token, not the token"));
        }
        let mut principal = Principal::new(name);
        for right in words.flat_map(|word| word.split(',')).filter(|right| !right.is_empty()) {
            match right {
                "state" => principal.state = true,
                "all" => principal.all = true,
                other => return Err(wrong(&format!("`{other}` is no right; there are `state` and `all`"))),
            }
        }
        out.insert(hash.to_ascii_lowercase(), principal);
    }
    Ok(out)
}

fn digest(token: &str) -> String {
    Sha256::digest(token.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The line of a token file that lets a token in. `random` are at least 16 unpredictable bytes; the first result is the token, to be shown
/// once, the second the line.
///
/// # Errors
/// When the name cannot stand in such a file, or too little is random.
pub fn new_token(name: &str, rights: &[&str], random: &[u8]) -> io::Result<(String, String)> {
    let wrong = |what: &str| io::Error::new(io::ErrorKind::InvalidInput, what.to_owned());
    if name.is_empty() || name.starts_with('#') || name.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong("a name is one word that does not begin with #"));
    }
    if random.len() < 16 {
        return Err(wrong("a token needs at least 16 random bytes"));
    }
    if let Some(other) = rights.iter().find(|right| !matches!(**right, "state" | "all")) {
        return Err(wrong(&format!("`{other}` is no right; there are `state` and `all`")));
    }
    let token: String = std::iter::once("ac_".to_owned()).chain(random.iter().map(|byte| format!("{byte:02x}"))).collect();
    let line = format!("{name} {} {}", digest(&token), rights.join(",")).trim_end().to_owned();
    Ok((token, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_found_by_its_digest_and_has_the_rights_of_its_line() {
        let (token, line) = new_token("ada", &["state"], &[7; 32]).unwrap();
        assert!(!line.contains(&token) && line.starts_with("ada ") && line.ends_with(" state"));
        let known = parse(&format!("# people\n\n{line}\n")).unwrap();
        assert_eq!(known.get(&digest(&token)), Some(&Principal { name: "ada".into(), state: true, all: false }));
        assert_eq!(known.get(&digest("ac_other")), None);
    }

    #[test]
    fn a_file_that_is_only_half_understood_lets_nobody_in() {
        for text in ["ada", "ada secret-token", &format!("ada {} root", "0".repeat(64))] {
            assert_eq!(parse(text).unwrap_err().kind(), io::ErrorKind::InvalidData, "{text}");
        }
        assert!(new_token("a b", &[], &[0; 32]).is_err() && new_token("", &[], &[0; 32]).is_err() && new_token("a", &[], &[0; 8]).is_err());
    }

    #[test]
    fn a_token_that_is_taken_away_stops_counting_without_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let (token, line) = new_token("ada", &[], &[1; 32]).unwrap();
        std::fs::write(&path, &line).unwrap();
        let file = TokenFile::open(&path).unwrap();
        assert!(file.find(&digest(&token)).is_some());
        std::fs::write(&path, "# nobody\n").unwrap();
        {
            let mut read = lock(&file.read);
            // As if a second had gone by; the time of the file may be too coarse to tell.
            (read.looked, read.changed) = (Instant::now() - LOOK, None);
        }
        assert!(file.find(&digest(&token)).is_none());
    }
}
