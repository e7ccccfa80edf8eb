//! A command line, taken apart by a shell parser.

use brush_parser::{
    Parser, ParserOptions,
    ast::{
        AndOr, AndOrList, Command, CommandPrefixOrSuffixItem, CompoundCommand, CompoundList, IoFileRedirectKind, IoFileRedirectTarget,
        IoRedirect, Pipeline, SimpleCommand,
    },
    word::{WordPiece, WordPieceWithSource},
};

/// Substitutions within substitutions deeper than this are not looked at, and make a line unclear like the others.
const DEEPEST: usize = 8;
/// A longer line is not parsed, nor one that opens more of what can be nested: the parser's time grows fast with the depth.
const LONGEST: usize = 8 << 10;
const MOST_NESTED: usize = 16;

/// The commands of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    /// The words of each simple command that runs as it is written.
    pub(super) commands: Vec<Vec<String>>,
    /// Commands that run within others: behind `env` or `sudo`, in substitutions, in `sh -c`. Only rules that hold back look at them.
    pub(super) hidden: Vec<Vec<String>>,
    /// Whether the commands are all that happens: nothing is substituted, assigned, redirected to a file, or unreadable.
    pub(super) plain: bool,
}

impl Line {
    pub(super) fn read(text: &str) -> Self {
        let mut line = Self { plain: is_plain_text(text), ..Self::default() };
        line.parse(text, 0);
        line
    }

    fn parse(&mut self, text: &str, depth: usize) {
        if depth > DEEPEST || text.len() > LONGEST || nested(text) > MOST_NESTED {
            self.unreadable(text);
            return;
        }
        let mut parser = Parser::new(std::io::Cursor::new(text.as_bytes()), &options());
        match parser.parse_program() {
            Ok(program) => program.complete_commands.iter().for_each(|list| self.list(list, depth)),
            Err(_) => self.unreadable(text),
        }
    }

    /// What cannot be parsed may still name what is denied: every word counts as a command.
    fn unreadable(&mut self, text: &str) {
        self.plain = false;
        let words = text.split(|c: char| c.is_whitespace() || c.is_control() || "\"'`$(){}[]<>;&|\\=".contains(c));
        self.hidden.extend(words.filter(|word| !word.is_empty()).map(|word| vec![word.to_owned()]));
    }

    fn list(&mut self, list: &CompoundList, depth: usize) {
        for item in &list.0 {
            self.and_or(&item.0, depth);
        }
    }

    fn and_or(&mut self, list: &AndOrList, depth: usize) {
        self.pipeline(&list.first, depth);
        for next in &list.additional {
            match next {
                AndOr::And(pipeline) | AndOr::Or(pipeline) => self.pipeline(pipeline, depth),
            }
        }
    }

    fn pipeline(&mut self, pipeline: &Pipeline, depth: usize) {
        self.plain &= pipeline.timed.is_none();
        for command in &pipeline.seq {
            match command {
                Command::Simple(simple) => self.simple(simple, depth),
                Command::Compound(compound, redirects) => {
                    self.plain = false;
                    self.compound(compound, depth);
                    redirects.iter().flat_map(|list| &list.0).for_each(|redirect| self.redirect(redirect, depth));
                }
                Command::Function(function) => {
                    self.plain = false;
                    self.compound(&function.body.0, depth);
                }
                // A test may hold substitutions: all of its words count.
                Command::ExtendedTest(test, _) => {
                    let text = test.expr.to_string();
                    self.unreadable(&text);
                }
            }
        }
    }

    fn compound(&mut self, compound: &CompoundCommand, depth: usize) {
        match compound {
            CompoundCommand::BraceGroup(group) => self.list(&group.list, depth),
            CompoundCommand::Subshell(subshell) => self.list(&subshell.list, depth),
            CompoundCommand::ForClause(each) => {
                each.values.iter().flatten().for_each(|word| drop(self.word(&word.value, depth)));
                self.list(&each.body.list, depth);
            }
            CompoundCommand::CaseClause(case) => {
                self.word(&case.value.value, depth);
                case.cases.iter().filter_map(|case| case.cmd.as_ref()).for_each(|list| self.list(list, depth));
            }
            CompoundCommand::IfClause(clause) => {
                self.list(&clause.condition, depth);
                self.list(&clause.then, depth);
                for other in clause.elses.iter().flatten() {
                    other.condition.iter().for_each(|list| self.list(list, depth));
                    self.list(&other.body, depth);
                }
            }
            CompoundCommand::WhileClause(clause) | CompoundCommand::UntilClause(clause) => {
                self.list(&clause.0, depth);
                self.list(&clause.1.list, depth);
            }
            other => self.unreadable(&other.to_string()),
        }
    }

    fn simple(&mut self, simple: &SimpleCommand, depth: usize) {
        let mut words = Vec::new();
        if let Some(prefix) = &simple.prefix {
            prefix.0.iter().for_each(|item| self.item(item, depth, &mut words));
        }
        let before = words.len();
        if let Some(name) = &simple.word_or_name {
            let name = self.word(&name.value, depth);
            // A program whose name the shell makes up is not known.
            self.plain &= !name.contains(['*', '?', '[', '{', '~']);
            words.insert(0, name);
        } else {
            self.plain = false;
        }
        debug_assert_eq!(before, 0, "a prefix holds no words");
        if let Some(suffix) = &simple.suffix {
            suffix.0.iter().for_each(|item| self.item(item, depth, &mut words));
        }
        if words.is_empty() {
            return;
        }
        self.behind(&words, depth);
        if depth == 0 { self.commands.push(words) } else { self.hidden.push(words) }
    }

    fn item(&mut self, item: &CommandPrefixOrSuffixItem, depth: usize, words: &mut Vec<String>) {
        match item {
            CommandPrefixOrSuffixItem::Word(word) => {
                let word = self.word(&word.value, depth);
                words.push(word);
            }
            CommandPrefixOrSuffixItem::IoRedirect(redirect) => self.redirect(redirect, depth),
            CommandPrefixOrSuffixItem::AssignmentWord(_, word) => {
                // It may change what the command is, or what it loads.
                self.plain = false;
                self.word(&word.value, depth);
            }
            CommandPrefixOrSuffixItem::ProcessSubstitution(_, subshell) => {
                self.plain = false;
                self.list(&subshell.list, depth + 1);
            }
        }
    }

    /// Plain are only copies of what is open already, and what goes nowhere.
    fn redirect(&mut self, redirect: &IoRedirect, depth: usize) {
        match redirect {
            IoRedirect::File(_, IoFileRedirectKind::DuplicateOutput, IoFileRedirectTarget::Fd(_)) => {}
            IoRedirect::File(_, kind, IoFileRedirectTarget::Duplicate(word)) => {
                let word = self.word(&word.value, depth);
                self.plain &= matches!(kind, IoFileRedirectKind::DuplicateOutput) && word.bytes().all(|byte| byte.is_ascii_digit());
            }
            IoRedirect::File(_, IoFileRedirectKind::Write | IoFileRedirectKind::Append, IoFileRedirectTarget::Filename(word)) => {
                self.plain &= self.word(&word.value, depth) == "/dev/null";
            }
            IoRedirect::OutputAndError(word, _) => self.plain &= self.word(&word.value, depth) == "/dev/null",
            other => self.unreadable(&other.to_string()),
        }
    }

    /// What a word says when nothing in it is expanded; what is substituted in it is looked into.
    fn word(&mut self, raw: &str, depth: usize) -> String {
        match brush_parser::word::parse(raw, &options()) {
            Ok(pieces) => self.pieces(&pieces, depth),
            Err(_) => {
                self.unreadable(raw);
                raw.to_owned()
            }
        }
    }

    fn pieces(&mut self, pieces: &[WordPieceWithSource], depth: usize) -> String {
        let mut text = String::new();
        for piece in pieces {
            match &piece.piece {
                WordPiece::Text(part) | WordPiece::SingleQuotedText(part) => text.push_str(part),
                WordPiece::EscapeSequence(part) => text.push_str(part.strip_prefix('\\').unwrap_or(part)),
                WordPiece::DoubleQuotedSequence(inner) => {
                    let inner = self.pieces(inner, depth);
                    text.push_str(&inner);
                }
                WordPiece::CommandSubstitution(inner) | WordPiece::BackquotedCommandSubstitution(inner) => {
                    self.plain = false;
                    self.parse(inner, depth + 1);
                }
                // A home folder, a variable, a sum, a quote that only some shells know.
                _ => {
                    self.plain = false;
                }
            }
        }
        text
    }

    /// Commands that run another command: what they run counts for rules that hold back.
    fn behind(&mut self, words: &[String], depth: usize) {
        let Some((program, rest)) = words.split_first() else { return };
        let program = base(program);
        if depth > DEEPEST {
            return;
        }
        if matches!(program, "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash" | "fish" | "su" | "eval" | "script" | "watch" | "ssh" | "trap")
        {
            // One of the words is a script; which one does not matter to a rule that holds back.
            for word in rest.iter().filter(|word| !word.starts_with('-')) {
                self.script(word, depth);
            }
        }
        if program == "find" {
            for (at, _) in rest.iter().enumerate().filter(|(_, word)| matches!(word.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir")) {
                self.runs(rest.get(at + 1..).unwrap_or_default(), depth);
            }
        }
        let wrapper = matches!(
            program,
            "env"
                | "sudo"
                | "doas"
                | "nohup"
                | "nice"
                | "ionice"
                | "time"
                | "timeout"
                | "xargs"
                | "command"
                | "exec"
                | "builtin"
                | "setsid"
                | "stdbuf"
                | "chroot"
                | "unshare"
                | "parallel"
                | "busybox"
                | "flock"
                | "chrt"
                | "taskset"
        );
        if wrapper {
            // Where its own words end is not known for each of them: the command may begin at any word that could be a program.
            for at in 0..rest.len() {
                if rest.get(at).is_some_and(|word| !word.starts_with('-') && !word.contains('=')) {
                    self.runs(rest.get(at..).unwrap_or_default(), depth);
                }
            }
        }
    }

    fn runs(&mut self, words: &[String], depth: usize) {
        if words.is_empty() {
            return;
        }
        self.hidden.push(words.to_vec());
        self.behind(words, depth + 1);
    }

    fn script(&mut self, script: &str, depth: usize) {
        // Whether the line is plain is decided by what runs the script, which is no secret.
        let plain = self.plain;
        self.parse(script, depth + 1);
        self.plain = plain;
    }
}

/// How much in a line could hold something else.
fn nested(text: &str) -> usize {
    let signs = text.bytes().filter(|byte| matches!(byte, b'(' | b'{' | b'`' | b'[')).count();
    let words =
        text.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| matches!(*word, "if" | "for" | "while" | "until" | "case")).count();
    signs + words
}

fn options() -> ParserOptions {
    ParserOptions::default()
}

/// Shells read some characters differently from one another: a line that holds them is not plain.
fn is_plain_text(text: &str) -> bool {
    let odd = |c: char| (c.is_control() && c != '\n' && c != '\t') || (c.is_whitespace() && !c.is_ascii()) || c == '\u{feff}';
    !text.chars().any(odd) && !text.contains("\\\n") && !text.contains("$'") && !text.contains("$\"")
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
