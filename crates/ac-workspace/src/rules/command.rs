//! A command line, taken apart by the lexer of a shell.
//!
//! The lexer is a library's; what stands between operators is read here, strictly: whatever is not a plain word makes the line unclear. A
//! whole grammar would tell more and costs more: the parsers at hand take time that grows with a power of what a line leaves open.

use brush_parser::{Token, TokenizerOptions, uncached_tokenize_str};

/// Substitutions within substitutions deeper than this are not looked at.
const DEEPEST: usize = 8;
/// A longer line is not read.
const LONGEST: usize = 16 << 10;
/// Nor one that holds more of what can be nested: the lexer goes down with each level.
const MOST_OPENED: usize = 128;

/// Words that a shell understands itself where a command begins. A line with one of them is not plain; the command begins after it.
const RESERVED: [&str; 22] = [
    "!", "{", "}", "if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "select", "function",
    "time", "coproc", "[[", "]]",
];

/// The commands of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The words of each simple command that runs as it is written.
    pub(super) commands: Vec<Vec<String>>,
    /// Commands that run within others: behind `env` or `sudo`, in substitutions, in `sh -c`. Only rules that hold back look at them.
    pub(super) hidden: Vec<Vec<String>>,
    /// Whether the commands are all that happens: nothing is substituted, assigned, redirected to a file, or unreadable.
    pub(super) plain: bool,
    /// Something runs, or may run, that is not among the commands: which program it is cannot be told.
    pub(super) unread: bool,
    /// Programs that get words which cannot be told.
    pub(super) open: Vec<String>,
    /// The word that was read last holds signs that stand for files.
    pattern: bool,
}

impl Line {
    pub(super) fn read(text: &str) -> Self {
        let mut line = Self { plain: is_plain_text(text), unread: has_other_quotes(text), ..Self::default() };
        line.lex(text, 0);
        line
    }

    fn lex(&mut self, text: &str, depth: usize) {
        let opened = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'`')).count();
        if depth > DEEPEST || text.len() > LONGEST || opened > MOST_OPENED {
            (self.plain, self.unread) = (false, true);
            return;
        }
        let Some(tokens) = tokens(text) else {
            (self.plain, self.unread) = (false, true);
            return;
        };
        let mut command = Command::default();
        let mut tokens = tokens.iter().peekable();
        while let Some(token) = tokens.next() {
            match token {
                Token::Word(word, at) => self.word(&mut command, word, at.end.index, depth),
                Token::Operator(operator, at) => match operator.as_str() {
                    ";" | "&" | "&&" | "||" | "|" | "|&" | "\n" => self.end(&mut command, depth),
                    ">" | ">>" | ">&" => {
                        command.drop_number(at.start.index);
                        let target = match tokens.peek() {
                            Some(Token::Word(word, _)) => self.value(word, depth),
                            _ => None,
                        };
                        if target.is_some() {
                            tokens.next();
                        }
                        let copy = operator == ">&" && target.as_ref().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                        self.plain &= copy || target.as_deref() == Some("/dev/null");
                    }
                    // To one shell a redirection, to another the end of a command and a redirection of the next.
                    "&>" | "&>>" => {
                        (self.plain, self.unread) = (false, true);
                        self.end(&mut command, depth);
                        if let Some(Token::Word(word, _)) = tokens.peek() {
                            self.value(word, depth);
                            tokens.next();
                        }
                    }
                    "<" | "<>" | ">|" | "<&" => {
                        command.drop_number(at.start.index);
                        self.plain = false;
                        if let Some(Token::Word(word, _)) = tokens.peek() {
                            self.value(word, depth);
                            tokens.next();
                        }
                    }
                    // What the command is given stands among the words.
                    "<<" | "<<-" | "<<<" => {
                        (self.plain, self.unread) = (false, true);
                        self.end(&mut command, depth);
                        if let Some(Token::Word(..)) = tokens.peek() {
                            tokens.next();
                        }
                    }
                    // Subshells, the ends of cases: what follows may be a command.
                    _ => {
                        self.plain = false;
                        self.end(&mut command, depth);
                    }
                },
            }
        }
        self.end(&mut command, depth);
    }

    fn word(&mut self, command: &mut Command, raw: &str, end: usize, depth: usize) {
        if command.words.is_empty() {
            if RESERVED.contains(&raw) {
                self.plain = false;
                return;
            }
            if is_assignment(raw) {
                // It may change what the command is, or what it loads.
                self.plain = false;
                self.value(raw, depth);
                return;
            }
            // A program whose name the shell makes up is not known.
            let made_up = raw.contains(['*', '?', '[', '{', '~']);
            self.plain &= !made_up;
            self.unread |= made_up && raw != "[";
        }
        self.pattern = false;
        let value = self.value(raw, depth);
        self.unread |= value.is_none() && command.words.is_empty();
        // What a pattern becomes depends on the files that are there.
        command.unknown |= value.is_none() || (self.pattern && raw != "{}" && !command.words.is_empty());
        command.words.push(value.unwrap_or_default());
        command.last = raw.bytes().all(|byte| byte.is_ascii_digit()).then_some(end);
    }

    fn end(&mut self, command: &mut Command, depth: usize) {
        let Command { words, unknown, .. } = std::mem::take(command);
        let Some(first) = words.first() else { return };
        if unknown {
            let program = base(first);
            // What cannot be told may be the command that it runs.
            self.unread |= is_wrapper(program) || runs_scripts(program) || program == "find";
            self.open.push(program.to_lowercase());
        }
        self.behind(&words, depth);
        if depth == 0 { self.commands.push(words) } else { self.hidden.push(words) }
    }

    /// What a word says when nothing in it is expanded. `None`, and no plain line, when the shell would put something else in its place; what
    /// is substituted is looked into.
    fn value(&mut self, raw: &str, depth: usize) -> Option<String> {
        let mut text = String::new();
        let mut known = !raw.starts_with('~');
        let mut quoted = false;
        let mut rest = raw.chars();
        while let Some(sign) = rest.next() {
            match sign {
                '\'' if !quoted => match rest.as_str().split_once('\'') {
                    Some((inner, after)) => {
                        text.push_str(inner);
                        rest = after.chars();
                    }
                    None => known = false,
                },
                '"' => quoted = !quoted,
                '\\' => match rest.next() {
                    // Between double quotes a backslash stands for itself but before these.
                    Some(next) if quoted && !matches!(next, '$' | '`' | '"' | '\\') => text.extend(['\\', next]),
                    Some(next) => text.push(next),
                    None => known = false,
                },
                '`' => {
                    known = false;
                    let (inner, after) = rest.as_str().split_once('`').unwrap_or((rest.as_str(), ""));
                    self.lex(inner, depth + 1);
                    rest = after.chars();
                }
                '$' => {
                    known = false;
                    if let Some(after) = rest.as_str().strip_prefix(['(', '{']) {
                        // Everything up to the end of the word is looked at as if it were substituted: that is too much and never too little.
                        self.lex(after, depth + 1);
                        self.plain = false;
                        return None;
                    }
                }
                // A pattern to one shell, a command of its own to another.
                '(' | ')' if !quoted => {
                    (self.plain, self.unread, known) = (false, true, false);
                }
                other => {
                    self.pattern |= !quoted && matches!(other, '*' | '?' | '[' | '{');
                    text.push(other);
                }
            }
        }
        self.plain &= known && !quoted;
        (known && !quoted).then_some(text)
    }

    /// Commands that run another command: what they run counts for rules that hold back.
    fn behind(&mut self, words: &[String], depth: usize) {
        let Some((program, rest)) = words.split_first() else { return };
        let program = base(program);
        if depth > DEEPEST {
            self.unread = true;
            return;
        }
        // A shell without a script reads one from elsewhere; a name may be given to any command.
        self.unread |= runs_scripts(program) && rest.iter().all(|word| word.starts_with('-'));
        self.unread |= program == "alias" && !rest.is_empty();
        if runs_scripts(program) {
            // One of the words is a script; which one does not matter to a rule that holds back.
            for word in rest.iter().filter(|word| !word.starts_with('-')) {
                self.script(word, depth);
            }
        }
        if matches!(program, "eval" | "builtin" | "command" | "exec") {
            self.script(&rest.join(" "), depth);
        }
        if program == "find" {
            for (at, _) in rest.iter().enumerate().filter(|(_, word)| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")) {
                self.runs(rest.get(at + 1..).unwrap_or_default(), depth);
            }
        }
        if is_wrapper(program) {
            // Where its own words end is not known for each of them: the command may begin at any word that could be a program.
            self.unread |= rest.len() > MOST_STARTS;
            for at in (0..rest.len()).take(MOST_STARTS) {
                if rest.get(at).is_some_and(|word| !word.starts_with('-') && !word.contains('=')) {
                    self.runs(rest.get(at..).unwrap_or_default(), depth);
                }
            }
        }
    }

    fn runs(&mut self, words: &[String], depth: usize) {
        if words.is_empty() || self.hidden.len() > MOST_HIDDEN {
            self.unread |= !words.is_empty();
            return;
        }
        self.hidden.push(words.to_vec());
        self.behind(words, depth + 1);
    }

    fn script(&mut self, script: &str, depth: usize) {
        if self.hidden.len() > MOST_HIDDEN {
            self.unread = true;
            return;
        }
        // Whether the line is plain is decided by what runs the script, which is no secret.
        let plain = self.plain;
        self.lex(script, depth + 1);
        self.plain = plain;
    }
}

/// The words and operators of a line. The lexer panics on some that are left open; whoever wrote one of those must not end the run by it.
fn tokens(text: &str) -> Option<Vec<Token>> {
    std::panic::catch_unwind(|| uncached_tokenize_str(text, &TokenizerOptions::default())).ok()?.ok()
}

/// Programs of which a word is a script.
fn runs_scripts(program: &str) -> bool {
    matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" | "su" | "eval" | "script" | "watch" | "ssh" | "trap")
}

/// Programs whose further words are a command.
fn is_wrapper(program: &str) -> bool {
    const WRAPPERS: [&str; 33] = [
        "env",
        "sudo",
        "doas",
        "nohup",
        "nice",
        "ionice",
        "timeout",
        "xargs",
        "command",
        "exec",
        "builtin",
        "setsid",
        "stdbuf",
        "chroot",
        "unshare",
        "parallel",
        "busybox",
        "flock",
        "chrt",
        "taskset",
        "time",
        "strace",
        "ltrace",
        "setpriv",
        "runuser",
        "pkexec",
        "systemd-run",
        "prlimit",
        "nsenter",
        "toybox",
        "fakeroot",
        "proot",
        "gdb",
    ];
    WRAPPERS.contains(&program)
}

/// How many words behind a wrapper are tried, and how many hidden commands are kept. More of them is no command that anybody wrote.
const MOST_STARTS: usize = 16;
const MOST_HIDDEN: usize = 512;

/// A command that is being read.
#[derive(Default)]
struct Command {
    words: Vec<String>,
    /// Where the last word ended, if it is a number: one that stands against a redirection belongs to it.
    last: Option<usize>,
    /// One of the words cannot be told.
    unknown: bool,
}

impl Command {
    fn drop_number(&mut self, at: usize) {
        if self.last == Some(at) {
            self.words.pop();
            self.last = None;
        }
    }
}

/// `NAME=…` or `NAME+=…` before a command.
fn is_assignment(raw: &str) -> bool {
    raw.split_once('=').is_some_and(|(name, _)| {
        let name = name.strip_suffix('+').unwrap_or(name);
        let name = name.split_once('[').map_or(name, |(name, _)| name);
        !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// Shells read some characters differently from one another: a line that holds them is not plain.
fn is_plain_text(text: &str) -> bool {
    let odd = |c: char| (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii()) || c == '\u{feff}';
    !text.chars().any(odd) && !text.contains("\\\n") && !text.contains("$'") && !text.contains("$\"")
}

/// Quotes that some shells know and others read as two words.
fn has_other_quotes(text: &str) -> bool {
    text.contains("$'")
}

/// The name of a program without the folder that it is in.
fn base(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a pattern means a command. `wide`: it also covers further words, other folders of the program, and another case.
pub(super) fn fits(pattern: &str, words: &[String], wide: bool) -> bool {
    let pattern: Vec<&str> = pattern.split_whitespace().collect();
    if !wide {
        return glob(&pattern.join(SEPARATOR), &words.join(SEPARATOR));
    }
    let fold = |text: &str| text.to_lowercase();
    let wanted = fold(&pattern.join(SEPARATOR));
    let open = format!("{wanted}{SEPARATOR}*");
    let mut names = vec![words.join(SEPARATOR)];
    if let Some((program, rest)) = words.split_first() {
        let short: Vec<&str> = std::iter::once(base(program)).chain(rest.iter().map(String::as_str)).collect();
        names.push(short.join(SEPARATOR));
    }
    // `kill *` also means `kill` alone.
    let bare = wanted.strip_suffix(&format!("{SEPARATOR}*")).unwrap_or(&wanted).to_owned();
    names.iter().map(|name| fold(name)).any(|name| glob(&wanted, &name) || glob(&open, &name) || name == bare)
}

/// Whether a pattern may mean a command of this program, whatever its further words are. `program` is in lower case.
pub(super) fn may_fit(pattern: &str, program: &str) -> bool {
    pattern.split_whitespace().next().is_some_and(|first| glob(&first.to_lowercase(), program))
}

/// Whether a command may be what a pattern names, with options before the word by which the pattern names it (`git -C . push`).
pub(super) fn may_fit_behind_options(pattern: &str, words: &[String]) -> bool {
    let mut wanted = pattern.split_whitespace();
    let (Some(program), Some(second), Some(given)) = (wanted.next(), wanted.next(), words.get(1)) else { return false };
    let named = !second.starts_with(['-', '*']);
    named && given.starts_with('-') && words.first().is_some_and(|first| glob(&program.to_lowercase(), &base(first).to_lowercase()))
}

/// Between words: no word holds it, or the line would not be plain.
const SEPARATOR: &str = "\u{1f}";

/// Whether a text fits a pattern in which `*` stands for anything, in time proportional to the product of their lengths.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(first) = parts.next() else { return false };
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    true
}
