//! Words that must not stand in sources: `words.toml`.

use std::{error::Error, path::Path};

use serde::Deserialize;

use crate::source::{self, SourceFile};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    word: Vec<Word>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Word {
    text: String,
    #[serde(default = "everywhere", rename = "where")]
    members: Vec<String>,
    #[serde(default, rename = "in")]
    scope: Scope,
    #[serde(default)]
    except: Vec<String>,
    why: String,
}

/// What of a file is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    /// Rust without comments, literals and tests.
    #[default]
    Code,
    /// Rust without comments and literals.
    CodeAndTests,
    /// Every text.
    Text,
}

fn everywhere() -> Vec<String> {
    vec!["*".to_owned()]
}

impl Words {
    pub(crate) fn read(root: &Path) -> Result<Self, Box<dyn Error>> {
        Self::parse(&std::fs::read_to_string(root.join("xtask/words.toml"))?)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Box<dyn Error>> {
        Ok(toml::from_str(text)?)
    }

    /// Where forbidden words of the wanted scopes stand.
    pub(crate) fn find(&self, files: &[SourceFile], wanted: impl Fn(Scope) -> bool) -> Vec<String> {
        let mut found = Vec::new();
        for file in files.iter().filter(|file| file.path != "xtask/words.toml") {
            let code = if file.is_rust() { source::code(&file.text) } else { String::new() };
            for word in self.word.iter().filter(|word| wanted(word.scope) && word.is_for(file)) {
                let searched = match word.scope {
                    Scope::Text => file.text.as_str(),
                    Scope::CodeAndTests => &code,
                    Scope::Code if file.is_test() => "",
                    Scope::Code => source::without_tests(&code),
                };
                for (n, _) in searched.lines().enumerate().filter(|(_, line)| holds(line, &word.text)) {
                    found.push(format!("{}:{}: `{}` ({})", file.path, n + 1, word.text, word.why));
                }
            }
        }
        found
    }
}

impl Word {
    fn is_for(&self, file: &SourceFile) -> bool {
        self.members.iter().any(|name| name == "*" || name == file.member()) && !self.except.contains(&file.path)
    }
}

/// Whether `word` stands in `line`, not as a part of a longer word.
fn holds(line: &str, word: &str) -> bool {
    let part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let (first, last) = (part(word.chars().next()), part(word.chars().next_back()));
    line.match_indices(word).any(|(at, _)| {
        let before = line.get(..at).and_then(|text| text.chars().next_back());
        let after = line.get(at + word.len()..).and_then(|text| text.chars().next());
        !(first && part(before) || last && part(after))
    })
}

#[cfg(test)]
mod tests;
