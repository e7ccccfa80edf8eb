use proptest::prelude::*;

use super::*;
use crate::adapter::LengthUnit;

const ALL: [Dialect; 5] = [Dialect::Plain, Dialect::Markdown, Dialect::Slack, Dialect::Discord, Dialect::TelegramHtml];

fn whole(markdown: &str, dialect: Dialect) -> String {
    messages(markdown, dialect, 100_000, LengthUnit::Utf16).join("\n<cut>\n")
}

const SAMPLE: &str = "# Title & more\n\nSome **bold _both_** and ~~gone~~ `a<b` [site](https://x.test/?a=1&b=2).\n\n- one\n- two\n  1. in\n\n> said\n> twice\n\n```rust\nfn main() { a < b }\n```\n\n| a | bb |\n|---|---|\n| 1 | 2 |\n";

#[test]
fn each_dialect_writes_the_same_text_its_own_way() {
    assert_eq!(
        whole(SAMPLE, Dialect::Slack),
        "*Title &amp; more*\n\nSome *bold* *_both_* and ~gone~ `a&lt;b` <https://x.test/?a=1&amp;b=2|site>.\n\n• one\n• two\n  1. in\n\n&gt; said\n&gt; twice\n\n```\nfn main() { a &lt; b }\n```\n\n```\na | bb\n--+---\n1 | 2\n```"
    );
    assert_eq!(
        whole(SAMPLE, Dialect::Discord),
        "**Title & more**\n\nSome **bold** ***both*** and ~~gone~~ `a<b` [site](https://x.test/?a=1&b=2).\n\n• one\n• two\n  1. in\n\n> said\n> twice\n\n```rust\nfn main() { a < b }\n```\n\n```\na | bb\n--+---\n1 | 2\n```"
    );
    assert_eq!(
        whole(SAMPLE, Dialect::TelegramHtml),
        "<b>Title &amp; more</b>\n\nSome <b>bold </b><b><i>both</i></b> and <s>gone</s> <code>a&lt;b</code> <a href=\"https://x.test/?a=1&amp;b=2\">site</a>.\n\n• one\n• two\n  1. in\n\n<blockquote>said\ntwice</blockquote>\n\n<pre><code class=\"language-rust\">fn main() { a &lt; b }</code></pre>\n\n<pre>a | bb\n--+---\n1 | 2</pre>"
    );
    assert_eq!(
        whole(SAMPLE, Dialect::Plain),
        "Title & more\n\nSome bold both and gone a<b site (https://x.test/?a=1&b=2).\n\n• one\n• two\n  1. in\n\n> said\n> twice\n\nfn main() { a < b }\n\na | bb\n--+---\n1 | 2"
    );
}

#[test]
fn what_is_not_markup_stays_text() {
    let text = r"\*no\* snake_case <@U1> a*b* \_x\_ & \`t\` <script>";
    assert_eq!(whole(text, Dialect::Slack).replace('\u{200b}', "·"), "·*no·* snake_case &lt;@U1&gt; a_b_ ·_x·_ &amp; ·`t·` &lt;script&gt;");
    assert_eq!(whole(text, Dialect::Discord), "\\*no\\* snake\\_case \\<@U1> a*b* \\_x\\_ & \\`t\\` \\<script>");
    assert_eq!(
        whole(text, Dialect::TelegramHtml).replace('\u{200b}', "·"),
        "*no* snake_case &lt;@·U1&gt; a<i>b</i> _x_ &amp; `t` &lt;script&gt;"
    );
}

#[test]
fn nobody_can_be_called_and_no_tag_smuggled_in() {
    for text in ["<!channel> <@U1>", "`<!here>`", "```\n<!everyone>\n```", "[<!channel>](https://x.test)"] {
        assert!(!whole(text, Dialect::Slack).contains("<!"), "{text}");
    }
    assert!(!whole("[a](javascript:alert(1))", Dialect::TelegramHtml).contains("href"));
    assert!(!whole("</pre><b>x", Dialect::TelegramHtml).contains("<b>"));
    assert!(whole("```\n</code></pre><a href=\"x\">\n```", Dialect::TelegramHtml).contains("&lt;/code&gt;"));
}

#[test]
fn an_address_in_running_text_is_one_in_each_dialect() {
    // Nothing is escaped within it, and what stands behind it in the sentence is no part of it.
    let text = "See https://x.test/a_b_c?q=1&r=[2], (https://y.test/(z)) or xhttps://no.test and https://.";
    let discord = "See https://x.test/a_b_c?q=1&r=[2\\], (https://y.test/(z)) or xhttps://no.test and https://.";
    assert_eq!(whole(text, Dialect::Discord), discord);
    assert_eq!(whole("At https://x.test/a_b/c_d.", Dialect::Slack), "At <https://x.test/a_b/c_d>.");
    assert_eq!(whole("https://x.test/a&b", Dialect::Slack), "<https://x.test/a&amp;b>");
    assert_eq!(whole("https://x.test/a&b", Dialect::TelegramHtml), "<a href=\"https://x.test/a&amp;b\">https://x.test/a&amp;b</a>");
    assert_eq!(whole("https://x.test/a_b", Dialect::Plain), "https://x.test/a_b");
    assert!(!whole("https://x.test/<!channel>", Dialect::Slack).contains("<!"));
    assert!(!whole("https://x.test/\"><b>", Dialect::TelegramHtml).contains("<b>"));
}

#[test]
fn marks_within_code_end_no_code() {
    for dialect in [Dialect::Discord, Dialect::Markdown] {
        assert_eq!(whole("```` a```b``c ````", dialect), "```` a```b``c ````");
        assert_eq!(whole("`` a`b ``", dialect), "`` a`b ``");
    }
}

/// A text of 12,000 characters with a code block over the border and emoji; one word of 5,000 (B-129).
fn long() -> String {
    let mut text = "Words with emoji 👩‍👩‍👧 in them. ".repeat(110);
    text.push_str("\n\n```python\n");
    for n in 0..200 {
        text.push_str(&format!("print({n})  # 🦀\n"));
    }
    text.push_str("```\n\nThen more. ");
    text.push_str(&"x".repeat(5_000));
    text
}

/// What a reader sees: all letters, without blanks and without the marks of the platform.
fn seen(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

#[test]
fn a_long_text_becomes_several_messages_and_nothing_is_lost() {
    // B-129: counted in the platform's unit, fences closed and opened again, in order, nothing twice.
    let plain = messages(&long(), Dialect::Plain, 2_000, LengthUnit::Utf16);
    assert!(plain.iter().all(|message| LengthUnit::Utf16.measure(message) <= 2_000));
    assert_eq!(seen(&plain.concat()), seen(&whole(&long(), Dialect::Plain)));
    for (dialect, limit) in [(Dialect::Discord, 2_000), (Dialect::Slack, 3_000), (Dialect::TelegramHtml, 4_096)] {
        let messages = messages(&long(), dialect, limit, LengthUnit::Utf16);
        for message in &messages {
            assert!(LengthUnit::Utf16.measure(message) <= limit);
            assert_eq!(message.matches("```").count() % 2, 0, "{message}");
            assert_eq!(message.matches("<pre>").count(), message.matches("</pre>").count());
            assert_eq!(message.matches("<code").count(), message.matches("</code>").count());
        }
        assert_eq!(messages.concat().matches('🦀').count(), 200);
        assert_eq!(messages.concat().matches("👩‍👩‍👧").count(), 110, "no letter is cut");
        assert_eq!(messages.concat().matches('x').count(), 5_000);
    }
}

#[test]
fn code_is_cut_between_lines() {
    let code = format!("```\n{}```", "a line of code\n".repeat(40));
    for message in messages(&code, Dialect::Discord, 200, LengthUnit::Chars) {
        assert!(message.starts_with("```\na line") && message.ends_with("code\n```"), "{message}");
    }
}

#[test]
fn a_text_that_grows_keeps_its_first_messages() {
    let text = "One sentence after another. ".repeat(300);
    let all = messages(&text, Dialect::Discord, 500, LengthUnit::Utf16);
    for upto in (0..text.len()).step_by(97) {
        let early = messages(text.split_at(upto).0, Dialect::Discord, 500, LengthUnit::Utf16);
        let settled = early.len().saturating_sub(1);
        assert_eq!(early[..settled], all[..settled]);
    }
}

/// Found at random: a code block without text, for which the gap before it is too much.
#[test]
fn an_empty_block_makes_no_message_too_long() {
    let text = "```\na```\na```\n```\n```\naaé```\n]&-a```\n#]```\n🦀```\n```\na ```\n```\n```\n```\n-```\n```\n>[_[a```\n&a ```\n```\n```\n```\n\
        >a```\n<```\n#```\na```\naa<<\n```\n```\n||```\n```\n[```\n```\na(][]```\n```\n#```\n```\n```\n~```\n```\n```\n(```\n\
        ~ <(```\n]```\n```\naa```\n🦀[```\n((```\n&```\n |```\n   <\n<```\n```\n```\n```\n[|<\n";
    for limit in 64..400 {
        let cut = messages(text, Dialect::Plain, limit, LengthUnit::Utf16);
        let long: Vec<_> = cut.iter().filter(|message| LengthUnit::Utf16.measure(message) > limit).collect();
        assert!(long.is_empty(), "{limit}: {long:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn no_text_breaks_a_message(text in "([a-z*_`~<>&#|\\[\\]()!\\-. \n🦀é]|```\n){0,300}", limit in 64_usize..400) {
        for dialect in ALL {
            let cut = messages(&text, dialect, limit, LengthUnit::Utf16);
            for message in &cut {
                prop_assert!(!message.is_empty());
                if dialect == Dialect::TelegramHtml {
                    for tag in ["b", "i", "s", "code", "pre", "blockquote"] {
                        let open = if tag == "code" { "<code".to_owned() } else { format!("<{tag}>") };
                        prop_assert_eq!(message.matches(&open).count(), message.matches(&format!("</{tag}>")).count());
                    }
                }
            }
            if dialect == Dialect::Plain {
                let whole = messages(&text, dialect, 1_000_000, LengthUnit::Utf16);
                // Quoted lines get their mark again where they are cut.
                let bare = |messages: &[String]| seen(&messages.concat()).replace('>', "");
                prop_assert_eq!(bare(&cut), bare(&whole));
                prop_assert!(cut.iter().all(|message| LengthUnit::Utf16.measure(message) <= limit));
            }
        }
    }
}
