use unicode_segmentation::UnicodeSegmentation;

use super::{Block, Body, Dialect, Span, Style, parse};
use crate::adapter::LengthUnit;

/// Markdown as messages of at most `limit`, in order. Nothing is lost or said twice; a code block that does not fit is closed and opened
/// again; a cut comes between blocks, else lines, else sentences, else words, else letters, and never within a letter.
///
/// The beginning of a longer text gives the same messages, but for the last ones, so a text that grows can be shown by edits.
pub fn messages(markdown: &str, dialect: Dialect, limit: usize, unit: LengthUnit) -> Vec<String> {
    let mut packer = Packer { dialect, limit: limit.max(SMALLEST), unit, done: vec![], open: String::new() };
    for block in parse(markdown) {
        packer.add(block);
    }
    packer.flush();
    packer.done
}

/// Less than this holds no code block with a letter in it.
const SMALLEST: usize = 64;

struct Packer {
    dialect: Dialect,
    limit: usize,
    unit: LengthUnit,
    done: Vec<String>,
    open: String,
}

impl Packer {
    fn add(&mut self, mut block: Block) {
        loop {
            let gap = match (self.open.is_empty(), block.tight) {
                (true, _) => "",
                (false, true) => "\n",
                (false, false) => "\n\n",
            };
            let used = self.unit.measure(&self.open) + gap.len();
            let room = self.limit.saturating_sub(used);
            let text = self.dialect.block(&block);
            let length = self.unit.measure(&text);
            // Asked in this way because a block may be empty, and the gap before it is not.
            if used + length <= self.limit {
                self.open.push_str(gap);
                self.open.push_str(&text);
                return;
            }
            // What fits into a message of its own gets one, unless that would leave most of this one empty.
            let worth = room >= self.limit / 2 || self.open.is_empty();
            if !worth || (length <= self.limit && !self.open.is_empty() && room < self.limit / 4 * 3) {
                self.flush();
                continue;
            }
            match self.cut(&block, room) {
                Some((first, rest)) => {
                    let text = self.dialect.block(&first);
                    self.open.push_str(gap);
                    self.open.push_str(&text);
                    self.flush();
                    block = rest;
                }
                None if !self.open.is_empty() => self.flush(),
                // Markup, or the address of a link, leaves no room for a letter.
                None => match block.bare() {
                    Some(bare) => block = bare,
                    // One letter that is longer than a message.
                    None => {
                        self.open = text;
                        self.flush();
                        return;
                    }
                },
            }
        }
    }

    fn flush(&mut self) {
        if !self.open.is_empty() {
            self.done.push(std::mem::take(&mut self.open));
        }
    }

    /// The longest beginning of a block that fits, cut at the best place, and what is left.
    fn cut(&self, block: &Block, room: usize) -> Option<(Block, Block)> {
        let text = block.text();
        let fits = |at: usize| self.unit.measure(&self.dialect.block(&block.part(0, at))) <= room;
        // Between letters as people see them; one that is longer than a message is cut all the same.
        let letters: Vec<usize> = text.grapheme_indices(true).map(|(at, _)| at).skip(1).collect();
        let longest = |places: &[usize]| {
            let most = places.partition_point(|at| fits(*at));
            // Markup makes the length uneven: step back to where it really fits.
            (0..most).rev().filter_map(|n| places.get(n).copied()).find(|at| fits(*at))
        };
        let most = match longest(&letters) {
            Some(most) => most,
            None => longest(&text.char_indices().map(|(at, _)| at).skip(1).collect::<Vec<_>>())?,
        };
        // Fewer letters can need more room, so the place that looks best is taken only where it fits.
        let at = Some(block.best_cut(&text, most)).filter(|at| fits(*at)).unwrap_or(most);
        Some((block.part(0, at), block.part(at, text.len())))
    }
}

impl Block {
    fn text(&self) -> String {
        match &self.body {
            Body::Code { text, .. } => text.clone(),
            Body::Text(spans) => spans.iter().map(|span| span.text.as_str()).collect(),
        }
    }

    /// The same words without markup; `None` when there is none to be left out.
    fn bare(&self) -> Option<Self> {
        let Body::Text(spans) = &self.body else { return None };
        if spans.iter().all(|span| span.link.is_none() && span.style == Style::default()) {
            return None;
        }
        let mut text = String::new();
        for span in spans {
            text.push_str(&span.text);
            if let Some(link) = span.link.as_deref().filter(|link| *link != span.text) {
                text.push_str(&format!(" ({link})"));
            }
        }
        Some(Self { body: Body::Text(vec![Span::plain(text)]), ..self.clone() })
    }

    /// The bytes from `start` to `end` of its text.
    fn part(&self, start: usize, end: usize) -> Self {
        let body = match &self.body {
            Body::Code { language, text } => {
                let part = text.get(start..end).unwrap_or_default();
                // A line that was cut off is a line of its own already.
                let part = if start > 0 { part.strip_prefix('\n').unwrap_or(part) } else { part };
                Body::Code { language: language.clone(), text: part.to_owned() }
            }
            Body::Text(spans) => {
                let mut at = 0;
                let mut kept = vec![];
                for span in spans {
                    let (from, to) = (start.max(at), end.min(at + span.text.len()));
                    if from < to {
                        let text = span.text.get(from - at..to - at).unwrap_or_default().to_owned();
                        kept.push(Span { text, ..span.clone() });
                    }
                    at += span.text.len();
                }
                if start > 0
                    && let Some(first) = kept.first_mut()
                {
                    first.text = first.text.trim_start_matches('\n').to_owned();
                }
                Body::Text(kept)
            }
        };
        Self { tight: self.tight && start == 0, quoted: self.quoted, body }
    }

    /// The best place to cut at or before `most`.
    fn best_cut(&self, text: &str, most: usize) -> usize {
        let head = text.get(..most).unwrap_or_default();
        // A cut that is too early wastes more than it pleases.
        let earliest = most / 2;
        let after = |found: Option<usize>, length: usize| found.map(|at| at + length).filter(|at| *at > earliest);
        if matches!(self.body, Body::Code { .. }) {
            return head.rfind('\n').filter(|at| *at > earliest).unwrap_or(most);
        }
        after(head.rfind('\n'), 1)
            .or_else(|| after(["! ", "? ", ". "].iter().filter_map(|end| head.rfind(end)).max(), 2))
            .or_else(|| after(head.rfind(' '), 1))
            .unwrap_or(most)
    }
}
