/// What a plan file lists. The file is the only thing that the building follows, so an edited plan changes what is built.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Path and content of each file, in order.
    pub(super) files: Vec<(String, String)>,
    /// What is run at the end.
    pub(super) command: Option<String>,
}

impl Plan {
    /// The plan as a Markdown file that [`Plan::read`] reads back.
    pub(super) fn write(&self, title: &str, findings: &[String], changes: &[String]) -> String {
        let mut text = format!("# Plan: {title}\n\n## Findings\n\n");
        findings.iter().for_each(|finding| text.push_str(&format!("- {finding}\n")));
        if !changes.is_empty() {
            text.push_str("\n## Asked for since\n\n");
            changes.iter().for_each(|change| text.push_str(&format!("- {change}\n")));
        }
        text.push_str("\n## Files\n\nExactly these are written. Edit them here before you approve to change what is built.\n");
        for (path, content) in &self.files {
            let fence = fence(content);
            text.push_str(&format!("\n- `{path}`\n\n{fence}\n{content}{}{fence}\n", if content.ends_with('\n') { "" } else { "\n" }));
        }
        if let Some(command) = &self.command {
            text.push_str(&format!("\n## Command\n\n```sh\n{command}\n```\n"));
        }
        text
    }

    /// Reads a plan file, as it stands or as a tool shows it with line numbers. A file without a block of content gets its description.
    pub(super) fn read(shown: &str) -> Self {
        let text = without_numbers(shown);
        let mut plan = Self::default();
        let mut section = Section::Other;
        let mut lines = text.lines();
        while let Some(line) = lines.next() {
            let trimmed = line.trim();
            if let Some(mark) = opening(trimmed) {
                let block = block(&mut lines, mark);
                match section {
                    Section::Files => {
                        if let Some((_, content)) = plan.files.last_mut() {
                            *content = block;
                        }
                    }
                    Section::Command if plan.command.is_none() => {
                        let command = block.trim();
                        plan.command = (!command.is_empty()).then(|| command.to_owned());
                    }
                    _ => {}
                }
            } else if let Some(heading) = trimmed.strip_prefix("## ") {
                let heading = heading.trim().to_ascii_lowercase();
                section = match heading.as_str() {
                    "files" => Section::Files,
                    "command" => Section::Command,
                    _ => Section::Other,
                };
            } else if let (Section::Files, Some((path, description))) = (&section, entry(trimmed)) {
                plan.files.retain(|(known, _)| *known != path);
                plan.files.push((path, description));
            }
        }
        plan
    }
}

enum Section {
    Files,
    Command,
    Other,
}

/// A fence that the content cannot close.
fn fence(content: &str) -> String {
    let longest = content.lines().map(|line| line.trim().chars().take_while(|c| *c == '`').count()).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// The mark and length of an opening fence.
fn opening(line: &str) -> Option<(char, usize)> {
    let mark = line.chars().next().filter(|c| *c == '`' || *c == '~')?;
    let length = line.chars().take_while(|c| *c == mark).count();
    let rest = line.trim_start_matches(mark);
    (length >= 3 && !rest.contains(mark)).then_some((mark, length))
}

fn block(lines: &mut std::str::Lines<'_>, (mark, length): (char, usize)) -> String {
    let mut block = String::new();
    for line in lines.by_ref() {
        let trimmed = line.trim();
        if trimmed.chars().count() >= length && trimmed.chars().all(|c| c == mark) {
            break;
        }
        block.push_str(line);
        block.push('\n');
    }
    block
}

/// A list item that names a file: its path, and what is said about it.
fn entry(line: &str) -> Option<(String, String)> {
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim();
    let (path, rest) = match item.strip_prefix('`') {
        Some(quoted) => quoted.split_once('`')?,
        None => item.split_once([':', ' ']).unwrap_or((item, "")),
    };
    let description = rest.trim_start_matches([':', ' ', '-', '–', '—']).trim();
    let path = path.trim();
    (!path.is_empty()).then(|| (path.to_owned(), if description.is_empty() { String::new() } else { format!("{description}\n") }))
}

/// Takes line numbers away, where every line but a heading of the tool's own has one.
fn without_numbers(shown: &str) -> String {
    let numbered = shown.lines().filter(|line| number(line).is_some()).count();
    let plain = shown.lines().filter(|line| number(line).is_none() && !line.trim().is_empty()).count();
    if numbered == 0 || plain > numbered / 4 + 2 {
        return shown.to_owned();
    }
    shown.lines().filter_map(number).map(|line| format!("{line}\n")).collect()
}

fn number(line: &str) -> Option<&str> {
    let rest = line.trim_start();
    let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
    if after.len() == rest.len() {
        return None;
    }
    ["\t", "→", "| ", "|", ": ", " │ ", "  "].iter().find_map(|sep| after.strip_prefix(sep)).or_else(|| after.is_empty().then_some(""))
}
