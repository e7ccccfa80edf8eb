//! The repository's texts, and what of a Rust file is code.

use std::{
    fs, io,
    ops::Range,
    path::{Path, PathBuf},
};

/// A text of the repository.
#[derive(Clone, Debug, Default)]
pub(crate) struct SourceFile {
    /// Relative to the root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl SourceFile {
    pub(crate) fn is_rust(&self) -> bool {
        Path::new(&self.path).extension().is_some_and(|ext| ext == "rs")
    }

    /// The folder under `crates/`, or `xtask`, `tests`, ….
    pub(crate) fn member(&self) -> &str {
        self.path.strip_prefix("crates/").unwrap_or(&self.path).split('/').next().unwrap_or_default()
    }

    /// Whether it exists for tests alone.
    pub(crate) fn is_test(&self) -> bool {
        let file = Path::new(&self.path);
        let in_tests = |part: &str| matches!(part, "tests" | "benches" | "examples");
        self.path.split('/').rev().skip(1).any(in_tests) || file.file_stem().is_some_and(|stem| stem == "tests")
    }
}

/// Every text under `root` that belongs to the repository, in order of path.
pub(crate) fn read(root: &Path) -> io::Result<Vec<SourceFile>> {
    let mut out = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = entry.path();
            let kind = entry.file_type()?;
            let foreign = matches!(name.as_str(), "target" | ".git" | "node_modules" | ".acode") || name.ends_with(".lock");
            if foreign || kind.is_symlink() {
                continue;
            }
            if kind.is_dir() {
                folders.push(path);
            } else if let Ok(text) = String::from_utf8(fs::read(&path)?) {
                out.push(SourceFile { path: relative(root, &path), text });
            }
        }
    }
    out.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(out)
}

fn relative(root: &Path, path: &Path) -> String {
    let parts = path.strip_prefix(root).unwrap_or(path).components();
    parts.map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_path_buf()
}

/// A Rust text with comments and the insides of literals turned to blanks; line ends stay.
pub(crate) fn code(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out: Vec<char> = chars.clone();
    let mut at = 0;
    while at < chars.len() {
        let end = blank_from(&chars, at);
        match end {
            Some(Range { start, end }) => {
                out.iter_mut().take(end).skip(start).filter(|c| **c != '\n').for_each(|c| *c = ' ');
                at = end.max(at + 1);
            }
            None => at += 1,
        }
    }
    out.into_iter().collect()
}

/// What to blank, if a comment or a literal begins at `at`. The end of the range is where reading goes on.
fn blank_from(chars: &[char], at: usize) -> Option<Range<usize>> {
    let get = |i: usize| chars.get(i).copied().unwrap_or('\0');
    let word_before = at > 0 && (get(at - 1).is_alphanumeric() || get(at - 1) == '_');
    match (get(at), get(at + 1)) {
        ('/', '/') => Some(at..find(chars, at, |i| get(i) == '\n')),
        ('/', '*') => Some(at..block_comment(chars, at)),
        ('r', '"' | '#') if !word_before => raw_string(chars, at + 1),
        ('b' | 'c', 'r') if !word_before && matches!(get(at + 2), '"' | '#') => raw_string(chars, at + 2),
        ('"', _) => Some(at + 1..quoted(chars, at + 1, '"')),
        // A character, not a lifetime: 'x' or '\…'.
        ('\'', '\\') => Some(at + 1..quoted(chars, at + 1, '\'')),
        ('\'', _) if get(at + 2) == '\'' => Some(at + 1..at + 3),
        _ => None,
    }
}

fn find(chars: &[char], from: usize, holds: impl Fn(usize) -> bool) -> usize {
    (from..chars.len()).find(|i| holds(*i)).unwrap_or(chars.len())
}

fn block_comment(chars: &[char], from: usize) -> usize {
    let (mut depth, mut at) = (0_usize, from);
    while at < chars.len() {
        match (chars.get(at), chars.get(at + 1)) {
            (Some('/'), Some('*')) => (depth, at) = (depth + 1, at + 2),
            (Some('*'), Some('/')) => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

/// `hashes` begins at the first `#` or the quote. `None` for a raw identifier.
fn raw_string(chars: &[char], hashes: usize) -> Option<Range<usize>> {
    let quote = find(chars, hashes, |i| chars.get(i) != Some(&'#'));
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let n = quote - hashes;
    let closes = |i: usize| chars.get(i) == Some(&'"') && (1..=n).all(|k| chars.get(i + k) == Some(&'#'));
    Some(quote + 1..(find(chars, quote + 1, closes) + n + 1).min(chars.len()))
}

/// Past the closing quote.
fn quoted(chars: &[char], from: usize, quote: char) -> usize {
    let mut at = from;
    while let Some(c) = chars.get(at) {
        match c {
            '\\' => at += 2,
            c if *c == quote => return at + 1,
            _ => at += 1,
        }
    }
    chars.len()
}

/// The text before an inline test module.
pub(crate) fn without_tests(code: &str) -> &str {
    let mut at = 0;
    let mut lines = code.split_inclusive('\n').peekable();
    while let Some(line) = lines.next() {
        let opens = lines.peek().is_some_and(|next| next.trim_start().starts_with("mod ") && next.trim_end().ends_with('{'));
        if line.trim() == "#[cfg(test)]" && opens {
            return code.get(..at).unwrap_or(code);
        }
        at += line.len();
    }
    code
}

#[cfg(test)]
mod tests;
