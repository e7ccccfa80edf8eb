use std::collections::BTreeMap;

/// What a listing of the folder says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Folder {
    /// Paths of files, in the order of the listing.
    pub(super) files: Vec<String>,
}

/// Files that say what a folder is about, best first.
const TELLING: [&str; 7] = ["readme.md", "readme", "readme.txt", "cargo.toml", "package.json", "pyproject.toml", "makefile"];

impl Folder {
    /// Reads a listing: one path a line, or a tree.
    pub(super) fn read(listing: &str) -> Self {
        let mut files = vec![];
        let mut parents: Vec<(usize, String)> = vec![];
        for line in listing.lines() {
            let name = line.trim_start_matches(|c: char| c.is_whitespace() || "│├└─|`-+".contains(c));
            let depth = line.chars().count() - name.chars().count();
            let name = name.trim_end();
            if name.is_empty() || name == "." || name == "./" || name.contains(['(', '[', '"', ':']) || counts(name) {
                continue;
            }
            parents.retain(|(at, _)| *at < depth);
            let path = parents.last().map_or_else(|| name.to_owned(), |(_, parent)| format!("{parent}{name}"));
            if name.ends_with('/') {
                parents.push((depth, path));
            } else if !path.starts_with(".acode/") {
                files.push(path.strip_prefix("./").unwrap_or(&path).to_owned());
            }
        }
        Self { files }
    }

    /// The file that best says what the folder is about.
    pub(super) fn telling(&self) -> Option<&str> {
        let named = TELLING.iter().find_map(|name| self.files.iter().find(|file| file.to_ascii_lowercase() == **name));
        named.or_else(|| self.files.iter().find(|file| is_text(file))).map(String::as_str)
    }

    /// Whether a file of this name exists.
    pub(super) fn has(&self, path: &str) -> bool {
        self.files.iter().any(|file| file == path)
    }

    /// One sentence.
    pub(super) fn describe(&self) -> String {
        if self.files.is_empty() {
            return "The folder is empty.".into();
        }
        let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
        for file in &self.files {
            *kinds.entry(extension(file).unwrap_or("no extension")).or_default() += 1;
        }
        let mut kinds: Vec<_> = kinds.into_iter().collect();
        kinds.sort_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let kinds: Vec<_> = kinds.iter().take(4).map(|(kind, count)| format!("{count} {kind}")).collect();
        let some: Vec<_> = self.files.iter().take(5).map(|file| format!("`{file}`")).collect();
        let noun = if self.files.len() == 1 { "file" } else { "files" };
        format!("The folder holds {} {noun} ({}), among them {}.", self.files.len(), kinds.join(", "), some.join(", "))
    }
}

/// A line such as `3 directories, 12 files`, or `12 files`.
fn counts(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let number = words.next().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit()));
    number
        && words
            .next()
            .is_some_and(|word| ["director", "file", "entr", "match", "folder", "path"].iter().any(|stem| word.starts_with(stem)))
        || line.to_ascii_lowercase().starts_with("no ") && line.contains(' ')
}

fn is_text(path: &str) -> bool {
    extension(path).is_some_and(|kind| {
        ["md", "txt", "rs", "py", "js", "ts", "go", "c", "h", "java", "rb", "sh", "toml", "json", "yaml", "yml", "html", "css"]
            .contains(&kind)
    })
}

/// What follows the last dot of the file's name.
pub(super) fn extension(path: &str) -> Option<&str> {
    let name = path.rsplit('/').next()?;
    let (stem, kind) = name.rsplit_once('.')?;
    (!stem.is_empty() && !kind.is_empty()).then_some(kind)
}
