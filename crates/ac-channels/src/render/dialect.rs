use super::{Block, Body, Span};

/// How a platform marks up text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// Nothing but text.
    Plain,
    /// CommonMark.
    Markdown,
    /// Slack's mrkdwn.
    Slack,
    /// Discord's Markdown.
    Discord,
    /// The HTML that Telegram takes.
    TelegramHtml,
}

/// What cannot be written, because the platform would read it as markup and knows no escape, is kept apart from its neighbour by this.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

impl Dialect {
    /// A text in which nothing is markup.
    pub fn escape(self, text: &str) -> String {
        let mut out = String::with_capacity(text.len() + 8);
        self.escape_into(text, &mut out);
        out
    }

    fn escape_into(self, text: &str, out: &mut String) {
        let mut before = None;
        let mut letters = text.chars().peekable();
        while let Some(letter) = letters.next() {
            let after = letters.peek().copied();
            match self {
                Self::Plain => out.push(letter),
                Self::TelegramHtml => {
                    html(letter, out);
                    if calls(before, letter, after) {
                        out.push(ZERO_WIDTH_SPACE);
                    }
                }
                Self::Slack => {
                    let outside = |c: Option<char>| c.is_none_or(|c| !c.is_alphanumeric());
                    // Mrkdwn has no escape. A mark between letters is none; any other is kept from opening or closing anything.
                    if letter == '`' || (matches!(letter, '*' | '_' | '~') && (outside(before) || outside(after))) {
                        out.push(ZERO_WIDTH_SPACE);
                    }
                    if letter == '>' && out.ends_with('\n') {
                        out.push(ZERO_WIDTH_SPACE);
                    }
                    entity(letter, out);
                }
                Self::Markdown | Self::Discord => {
                    let at_start = before.is_none_or(|c| c == '\n') && (out.is_empty() || out.ends_with('\n'));
                    let marks = matches!(letter, '\\' | '*' | '_' | '~' | '`' | '|' | '<' | '[' | ']');
                    if marks || (at_start && matches!(letter, '#' | '-' | '+' | '>')) {
                        out.push('\\');
                    }
                    out.push(letter);
                }
            }
            before = Some(letter);
        }
    }

    /// One block, whole in itself.
    pub(crate) fn block(self, block: &Block) -> String {
        let text = match &block.body {
            Body::Code { language, text } => self.code(language, text),
            Body::Text(spans) => {
                let mut out = String::new();
                for span in spans {
                    self.span(span, &mut out);
                }
                out
            }
        };
        if !block.quoted {
            return text;
        }
        match self {
            Self::TelegramHtml => format!("<blockquote>{text}</blockquote>"),
            // A fence inside a quote is a matter that every platform reads differently.
            _ if matches!(block.body, Body::Code { .. }) => text,
            Self::Slack => prefixed(&text, "&gt; "),
            Self::Plain | Self::Markdown | Self::Discord => prefixed(&text, "> "),
        }
    }

    fn code(self, language: &str, text: &str) -> String {
        match self {
            Self::Plain => text.to_owned(),
            Self::TelegramHtml => {
                let mut out = String::new();
                let language: String = language.chars().filter(|c| c.is_ascii_alphanumeric() || "+-#_.".contains(*c)).collect();
                if language.is_empty() {
                    out.push_str("<pre>");
                } else {
                    out.push_str(&format!("<pre><code class=\"language-{language}\">"));
                }
                text.chars().for_each(|c| html(c, &mut out));
                out.push_str(if language.is_empty() { "</pre>" } else { "</code></pre>" });
                out
            }
            Self::Slack => {
                let mut inner = String::new();
                text.replace("```", "`\u{200b}``").chars().for_each(|c| entity(c, &mut inner));
                format!("```\n{inner}\n```")
            }
            Self::Discord => {
                let language: String = language.chars().filter(|c| c.is_ascii_alphanumeric() || "+-#_".contains(*c)).collect();
                format!("```{language}\n{}\n```", text.replace("```", "`\u{200b}``"))
            }
            Self::Markdown => {
                let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
                let fence = "`".repeat(longest.max(2) + 1);
                format!("{fence}{language}\n{text}\n{fence}")
            }
        }
    }

    /// Markup is closed at each end of line, and never touches a blank, which no dialect allows.
    fn span(self, span: &Span, out: &mut String) {
        if self == Self::TelegramHtml {
            return telegram(span, out);
        }
        for (n, line) in span.text.split('\n').enumerate() {
            if n > 0 {
                out.push('\n');
            }
            let core = line.trim();
            if core.is_empty() {
                out.push_str(line);
                continue;
            }
            let lead = line.len() - line.trim_start().len();
            out.extend(line.chars().take(line.get(..lead).map_or(0, |blank| blank.chars().count())));
            self.styled(span, core, out);
            out.extend(line.get(line.trim_end().len()..));
        }
    }

    fn styled(self, span: &Span, core: &str, out: &mut String) {
        let (bold, italic, strike) = match self {
            Self::Slack => ("*", "_", "~"),
            Self::Markdown | Self::Discord => ("**", "*", "~~"),
            Self::Plain | Self::TelegramHtml => ("", "", ""),
        };
        let open: Vec<&str> = [(span.style.bold, bold), (span.style.italic, italic), (span.style.strike, strike)]
            .into_iter()
            .filter_map(|(on, mark)| on.then_some(mark))
            .collect();
        out.extend(open.iter().copied());
        let text = if span.style.code { self.inline_code(core) } else { self.escape_at(core, out) };
        match &span.link {
            None => out.push_str(&text),
            Some(link) => self.link(&text, core, link, out),
        }
        out.extend(open.iter().rev().copied());
    }

    /// Escaped for the place where it will stand.
    fn escape_at(self, core: &str, out: &str) -> String {
        let mut text = String::new();
        let starts_line = out.is_empty() || out.ends_with('\n');
        if !starts_line {
            // A mark in the middle of a line begins no list and no heading.
            text.push('x');
            self.escape_into(core, &mut text);
            text.remove(0);
            return text;
        }
        self.escape_into(core, &mut text);
        text
    }

    fn inline_code(self, core: &str) -> String {
        match self {
            Self::Plain | Self::TelegramHtml => core.to_owned(),
            Self::Slack => {
                let mut out = String::from("`");
                core.replace('`', "'").chars().for_each(|c| entity(c, &mut out));
                out.push('`');
                out
            }
            Self::Markdown | Self::Discord if core.contains('`') => {
                // Longer than any run of marks in it, so that none of them ends it.
                let marks = "`".repeat(core.split(|c| c != '`').map(str::len).max().unwrap_or(0) + 1);
                format!("{marks} {core} {marks}")
            }
            Self::Markdown | Self::Discord => format!("`{core}`"),
        }
    }

    fn link(self, text: &str, core: &str, link: &str, out: &mut String) {
        let safe = is_web(link);
        match self {
            Self::Slack if safe => {
                let same = core == link;
                let link = link.replace('&', "&amp;").replace('|', "%7C").replace('>', "%3E").replace('<', "%3C");
                match same {
                    true => out.push_str(&format!("<{link}>")),
                    false => out.push_str(&format!("<{link}|{}>", text.replace('\n', " "))),
                }
            }
            Self::Markdown | Self::Discord if safe && core != link => {
                let link = link.replace('(', "%28").replace(')', "%29").replace(' ', "%20");
                out.push_str(&format!("[{text}]({link})"));
            }
            Self::Markdown | Self::Discord if safe => out.push_str(link),
            _ => {
                out.push_str(text);
                if core != link && !link.is_empty() {
                    out.push_str(&format!(" ({})", self.escape(link)));
                }
            }
        }
    }
}

fn telegram(span: &Span, out: &mut String) {
    if span.text.trim().is_empty() {
        out.push_str(&span.text);
        return;
    }
    let link = span.link.as_deref().filter(|link| is_web(link));
    let marks = [(span.style.bold, "b"), (span.style.italic, "i"), (span.style.strike, "s"), (span.style.code, "code")];
    if let Some(link) = link {
        out.push_str("<a href=\"");
        link.chars().for_each(|c| html(c, out));
        out.push_str("\">");
    }
    for (_, tag) in marks.iter().filter(|(on, _)| *on) {
        out.push_str(&format!("<{tag}>"));
    }
    match span.style.code {
        true => span.text.chars().for_each(|c| html(c, out)),
        false => out.push_str(&Dialect::TelegramHtml.escape(&span.text)),
    }
    for (_, tag) in marks.iter().rev().filter(|(on, _)| *on) {
        out.push_str(&format!("</{tag}>"));
    }
    if link.is_some() {
        out.push_str("</a>");
    }
}

/// Whether Telegram would call somebody here: it knows a name after an `@` that begins a word, and no way to say that none is meant.
fn calls(before: Option<char>, letter: char, after: Option<char>) -> bool {
    let word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    letter == '@' && !word(before) && word(after)
}

fn is_web(link: &str) -> bool {
    ["https://", "http://", "mailto:"].iter().any(|scheme| link.starts_with(scheme))
}

/// The three that Slack knows; it shows any other entity as it stands.
fn entity(letter: char, out: &mut String) {
    match letter {
        '&' => out.push_str("&amp;"),
        '<' => out.push_str("&lt;"),
        '>' => out.push_str("&gt;"),
        letter => out.push(letter),
    }
}

fn html(letter: char, out: &mut String) {
    match letter {
        '"' => out.push_str("&quot;"),
        letter => entity(letter, out),
    }
}

fn prefixed(text: &str, prefix: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| format!("{prefix}{line}")).collect();
    lines.join("\n")
}
