use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};

/// One piece of a text that stands for itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Block {
    /// It follows the block before without an empty line.
    pub(crate) tight: bool,
    /// Somebody else's words.
    pub(crate) quoted: bool,
    pub(crate) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Body {
    Text(Vec<Span>),
    Code { language: String, text: String },
}

/// A stretch of one style.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) style: Style,
    pub(crate) link: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    pub(crate) bold: bool,
    pub(crate) italic: bool,
    pub(crate) strike: bool,
    pub(crate) code: bool,
}

impl Span {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self { text: text.into(), style: Style::default(), link: None }
    }
}

/// Reads Markdown.
pub(crate) fn parse(markdown: &str) -> Vec<Block> {
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES | Options::ENABLE_TASKLISTS;
    let mut reader = Reader::default();
    for event in Parser::new_ext(markdown, options) {
        reader.event(event);
    }
    reader.end_text();
    reader.blocks
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    spans: Vec<Span>,
    bold: u32,
    italic: u32,
    strike: u32,
    quotes: u32,
    heading: bool,
    links: Vec<Arc<str>>,
    /// Numbers of ordered lists, outermost first; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// The mark of an item that has no text yet.
    mark: Option<String>,
    /// The next block belongs to the list before it.
    tight: bool,
    code: Option<(String, String)>,
    table: Option<Table>,
}

#[derive(Default)]
struct Table {
    rows: Vec<Vec<String>>,
    cell: String,
}

impl Reader {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) | Event::InlineMath(text) | Event::DisplayMath(text) => self.text(&text, false),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text, false),
            Event::Code(text) => self.text(&text, true),
            Event::SoftBreak | Event::HardBreak => self.text("\n", false),
            Event::Rule => {
                self.end_text();
                self.spans.push(Span::plain("———"));
                self.end_text();
            }
            Event::TaskListMarker(done) => self.text(if done { "☑ " } else { "☐ " }, false),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), false),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Heading { .. } => {
                self.end_text();
                self.heading = true;
            }
            Tag::BlockQuote(_) => {
                self.end_text();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.end_text();
                let language = match kind {
                    CodeBlockKind::Fenced(info) => info.split([' ', ',']).next().unwrap_or_default().to_owned(),
                    CodeBlockKind::Indented => String::new(),
                };
                self.code = Some((language, String::new()));
            }
            Tag::List(first) => {
                self.end_text();
                self.lists.push(first);
            }
            Tag::Item => {
                self.end_text();
                let indent = "  ".repeat(self.lists.len().saturating_sub(1));
                self.mark = Some(match self.lists.last_mut() {
                    Some(Some(number)) => {
                        let mark = format!("{indent}{number}. ");
                        *number = number.saturating_add(1);
                        mark
                    }
                    _ => format!("{indent}• "),
                });
            }
            Tag::Strong => self.bold += 1,
            Tag::Emphasis => self.italic += 1,
            Tag::Strikethrough => self.strike += 1,
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => self.links.push(dest_url.as_ref().into()),
            Tag::Table(_) => {
                self.end_text();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.rows.push(vec![]);
                }
            }
            Tag::Paragraph | Tag::HtmlBlock | Tag::FootnoteDefinition(_) => self.end_text(),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(_) => {
                self.end_text();
                self.heading = false;
            }
            TagEnd::BlockQuote(_) => {
                self.end_text();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => {
                if let Some((language, mut text)) = self.code.take() {
                    if text.ends_with('\n') {
                        text.pop();
                    }
                    self.push(Body::Code { language, text });
                }
            }
            TagEnd::List(_) => {
                self.end_text();
                self.lists.pop();
                self.tight = false;
            }
            TagEnd::Item => {
                self.end_text();
                self.mark = None;
            }
            TagEnd::Strong => self.bold = self.bold.saturating_sub(1),
            TagEnd::Emphasis => self.italic = self.italic.saturating_sub(1),
            TagEnd::Strikethrough => self.strike = self.strike.saturating_sub(1),
            TagEnd::Link | TagEnd::Image => drop(self.links.pop()),
            TagEnd::TableCell => {
                if let Some(table) = &mut self.table {
                    let cell = std::mem::take(&mut table.cell);
                    if let Some(row) = table.rows.last_mut() {
                        row.push(cell);
                    }
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.push(Body::Code { language: String::new(), text: table.aligned() });
                }
            }
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.end_text(),
            _ => {}
        }
    }

    fn text(&mut self, text: &str, code: bool) {
        if let Some((_, block)) = &mut self.code {
            block.push_str(text);
            return;
        }
        if let Some(table) = &mut self.table {
            table.cell.push_str(text);
            return;
        }
        let style = Style { bold: self.bold > 0 || self.heading, italic: self.italic > 0, strike: self.strike > 0, code };
        let link = self.links.last().cloned();
        match self.spans.last_mut() {
            Some(last) if last.style == style && last.link == link => last.text.push_str(text),
            _ => self.spans.push(Span { text: text.to_owned(), style, link }),
        }
    }

    /// What was gathered becomes a block.
    fn end_text(&mut self) {
        if self.spans.iter().all(|span| span.text.is_empty()) {
            self.spans.clear();
            return;
        }
        let mut spans: Vec<Span> = std::mem::take(&mut self.spans).into_iter().flat_map(linked).collect();
        if let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end_matches('\n').len());
        }
        let item = self.mark.take();
        if let Some(mark) = &item {
            spans.insert(0, Span::plain(mark.clone()));
        }
        let tight = self.tight && item.is_some();
        self.push(Body::Text(spans));
        if let Some(block) = self.blocks.last_mut() {
            block.tight = tight;
        }
        self.tight = !self.lists.is_empty();
    }

    fn push(&mut self, body: Body) {
        self.blocks.push(Block { tight: false, quoted: self.quotes > 0, body });
        self.tight = !self.lists.is_empty();
    }
}

/// A span in which each address that stands in the text is a link, so that nothing is escaped within it.
fn linked(span: Span) -> Vec<Span> {
    if span.link.is_some() || span.style.code || !span.text.contains("://") {
        return vec![span];
    }
    let mut out = vec![];
    let mut rest = span.text.as_str();
    while let Some((before, address, after)) = address(rest) {
        for (text, link) in [(before, None), (address, Some(address.into()))] {
            if !text.is_empty() {
                out.push(Span { text: text.to_owned(), link, ..span.clone() });
            }
        }
        rest = after;
    }
    if !rest.is_empty() {
        out.push(Span { text: rest.to_owned(), ..span.clone() });
    }
    out
}

/// The first address in a text, and what is before and after it.
fn address(text: &str) -> Option<(&str, &str, &str)> {
    let mut from = 0;
    loop {
        let rest = text.get(from..)?;
        let at = from + ["https://", "http://"].iter().filter_map(|scheme| rest.find(scheme)).min()?;
        let (before, tail) = text.split_at_checked(at)?;
        // What ends it, and what stands behind it in a sentence.
        let end = tail.find(|c: char| c.is_whitespace() || c.is_control() || "<>\"`|\\^{}".contains(c)).unwrap_or(tail.len());
        let mut address = tail.get(..end)?;
        loop {
            let unpaired = address.ends_with(')') && address.matches(')').count() > address.matches('(').count();
            match address.strip_suffix(|c: char| ".,:;!?'*_~]".contains(c) || (c == ')' && unpaired)) {
                Some(shorter) => address = shorter,
                None => break,
            }
        }
        let whole_word = before.chars().next_back().is_none_or(|c| !c.is_alphanumeric());
        let host = address.split_once("://").is_some_and(|(_, host)| host.starts_with(|c: char| c.is_alphanumeric() || c == '['));
        if whole_word && host {
            return Some((before, address, tail.get(address.len()..)?));
        }
        from = at + "http".len();
    }
}

impl Table {
    /// Rows of equal columns: no chat platform draws tables.
    fn aligned(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns).map(width).collect();
        let line = |row: &Vec<String>| {
            let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
            cells.join(" | ").trim_end().to_owned()
        };
        let mut lines: Vec<String> = self.rows.iter().map(line).collect();
        if lines.len() > 1 {
            let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
            lines.insert(1, rule.join("-+-"));
        }
        lines.join("\n")
    }
}
