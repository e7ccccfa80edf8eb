//! Text that others wrote, made harmless for a terminal.
//!
//! A model, a tool, a file or a command may write anything. Escape sequences could move the cursor over what was shown, set the title, or
//! make a command look like another one; so nothing that others wrote reaches the terminal without passing through here.

use std::fmt::{self, Write};

use anstyle_parse::{DefaultCharAccumulator, Parser, Perform};

/// Text in which every control character is visible: what is shown is what is there.
pub(crate) struct Safe<'a>(pub(crate) &'a str);

impl fmt::Display for Safe<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plain = 0;
        for (at, c) in self.0.char_indices() {
            if harmless(c) {
                continue;
            }
            f.write_str(self.0.get(plain..at).unwrap_or_default())?;
            plain = at + c.len_utf8();
            // A line end of other systems is a line end.
            if !(c == '\r' && self.0.get(plain..).is_some_and(|rest| rest.starts_with('\n'))) {
                f.write_str(&visible(c))?;
            }
        }
        f.write_str(self.0.get(plain..).unwrap_or_default())
    }
}

/// A line of JSON that means the same, with every character escaped that a terminal could obey: JSON itself escapes only some of them.
pub(crate) struct Json<'a>(pub(crate) &'a str);

impl fmt::Display for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut plain = 0;
        for (at, c) in self.0.char_indices().filter(|(_, c)| !harmless(*c)) {
            f.write_str(self.0.get(plain..at).unwrap_or_default())?;
            plain = at + c.len_utf8();
            c.encode_utf16(&mut [0; 2]).iter().try_for_each(|unit| write!(f, "\\u{unit:04x}"))?;
        }
        f.write_str(self.0.get(plain..).unwrap_or_default())
    }
}

/// As [`Safe`], on one line and cut at a number of characters.
pub(crate) struct Line<'a>(pub(crate) &'a str, pub(crate) usize);

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (count, c) in self.0.trim().chars().enumerate() {
            if count >= self.1 {
                return f.write_char('…');
            }
            match c {
                '\n' | '\t' => f.write_char(' ')?,
                c if harmless(c) => f.write_char(c)?,
                c => f.write_str(&visible(c))?,
            }
        }
        Ok(())
    }
}

/// Text of a stream: colours and other sequences of a program are taken away, over the borders of its pieces; what is left of control
/// characters is made visible.
#[derive(Default)]
pub(crate) struct Stream {
    parser: Parser<DefaultCharAccumulator>,
}

impl Stream {
    /// The next piece.
    pub(crate) fn next(&mut self, piece: &str) -> String {
        let mut plain = Plain(String::with_capacity(piece.len()));
        piece.bytes().for_each(|byte| self.parser.advance(&mut plain, byte));
        plain.0
    }
}

/// What is left when all sequences are gone.
struct Plain(String);

impl Perform for Plain {
    fn print(&mut self, c: char) {
        if harmless(c) {
            self.0.push(c);
        } else {
            self.0.push_str(&visible(c));
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            // A progress bar goes back to the beginning of its line with it.
            b'\r' => {}
            byte => self.print(char::from(byte)),
        }
    }
}

/// Controls, and characters that reorder or hide what stands around them.
fn harmless(c: char) -> bool {
    match c {
        '\n' | '\t' => true,
        '\u{061c}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' => false,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' | '\u{2028}' | '\u{2029}' => false,
        c => !c.is_control(),
    }
}

fn visible(c: char) -> String {
    match u32::from(c) {
        low @ 0..0x20 => char::from_u32(0x2400 + low).map_or_else(String::new, String::from),
        0x7f => "\u{2421}".into(),
        other => format!("\\u{{{other:x}}}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_control_character_comes_through() {
        for c in (0..0x3000).chain(0xe000..0x1_0000).chain(0xe_0000..0xe_0100).filter_map(char::from_u32) {
            let text = format!("a{c}b");
            for shown in [Safe(&text).to_string(), Line(&text, 9).to_string(), Stream::default().next(&text)] {
                assert!(shown.chars().all(|c| matches!(c, '\n' | '\t') || !c.is_control()), "{c:?} gave {shown:?}");
            }
        }
    }

    #[test]
    fn json_keeps_its_meaning_and_holds_nothing_that_a_terminal_obeys() {
        let text: String = (0..0x3000).chain(0xe000..0x1_0000).chain(0xe_0000..0xe_0100).filter_map(char::from_u32).collect();
        let line = serde_json::json!({ "é": text }).to_string();
        let shown = Json(&line).to_string();
        assert!(shown.chars().all(harmless) && !shown.contains('\n'));
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap()["é"], text);
    }

    #[test]
    fn a_command_shows_what_is_hidden_in_it() {
        assert_eq!(Safe("rm x\u{1b}[2K\rls \u{202e}txt.exe").to_string(), "rm x\u{241b}[2K\u{240d}ls \\u{202e}txt.exe");
        assert_eq!(Safe("one\r\ntwo\n").to_string(), "one\ntwo\n");
        assert_eq!(Line("  one\ntwo three", 9).to_string(), "one two t…");
    }

    #[test]
    fn sequences_of_a_program_vanish_over_the_borders_of_pieces() {
        let mut stream = Stream::default();
        let shown: String = ["\u{1b}[3", "1mred\u{1b}", "[0m \u{1b}]0;title\u{7}end\r\n"].iter().map(|piece| stream.next(piece)).collect();
        assert_eq!(shown, "red end\n");
    }
}
