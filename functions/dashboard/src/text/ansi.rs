//! Terminal text as HTML. Errors of test runners come with colour codes; they
//! become spans with classes, every other control sequence is dropped, and
//! everything is escaped. One pass, no matter what the text holds.

use std::fmt::{self, Display, Formatter, Write};

use askama::filters::HtmlSafe;

const ESCAPE: char = '\u{1b}';

/// Writes terminal text as HTML.
pub(crate) struct AnsiHtml<'t>(pub &'t str);

/// Safe because every character outside of our own tags passes [`escaped`].
impl HtmlSafe for AnsiHtml<'_> {}

/// How the following text looks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Pen {
    colour: Option<u8>,
    bold: bool,
    dim: bool,
}

/// Classes of the sixteen colours, by code.
const COLOURS: [&str; 16] = [
    "black", "red", "green", "yellow", "blue", "magenta", "cyan", "white", "black", "red", "green", "yellow",
    "blue", "magenta", "cyan", "white",
];

impl Display for AnsiHtml<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        let mut pen = Pen::default();
        // The pen of the span that is open; the plain pen needs none.
        let mut open = Pen::default();
        let mut rest = self.0;
        while let Some(char) = rest.chars().next() {
            if char == ESCAPE {
                let (after, colours) = skip_sequence(rest);
                if let Some(parameters) = colours {
                    pen = pen.after(parameters);
                }
                rest = after;
                continue;
            }
            let end = rest.find(ESCAPE).unwrap_or(rest.len());
            if pen != open {
                close(open, out)?;
                pen.open(out)?;
                open = pen;
            }
            escaped(&rest[..end], out)?;
            rest = &rest[end..];
        }
        close(open, out)
    }
}

fn close(pen: Pen, out: &mut Formatter<'_>) -> fmt::Result {
    if pen == Pen::default() { Ok(()) } else { out.write_str("</span>") }
}

fn escaped(text: &str, out: &mut Formatter<'_>) -> fmt::Result {
    for char in text.chars() {
        match char {
            '&' => out.write_str("&amp;")?,
            '<' => out.write_str("&lt;")?,
            '>' => out.write_str("&gt;")?,
            '"' => out.write_str("&quot;")?,
            '\'' => out.write_str("&#39;")?,
            '\n' | '\t' => out.write_char(char)?,
            _ if char.is_control() => {}
            _ => out.write_char(char)?,
        }
    }
    Ok(())
}

impl Pen {
    fn open(self, out: &mut Formatter<'_>) -> fmt::Result {
        if self == Self::default() {
            return Ok(());
        }
        out.write_str("<span class=\"")?;
        let mut gap = "";
        for class in [
            self.colour.map(|code| COLOURS[usize::from(code) % COLOURS.len()]),
            self.bold.then_some("bold"),
            self.dim.then_some("dim"),
        ]
        .into_iter()
        .flatten()
        {
            write!(out, "{gap}ansi-{class}")?;
            gap = " ";
        }
        out.write_str("\">")
    }

    /// The pen after the parameters of one `SGR` sequence.
    fn after(mut self, parameters: &str) -> Self {
        let codes = parameters.split([';', ':']).map(|code| code.parse().unwrap_or(0_u16));
        for code in codes {
            match code {
                0 => self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                22 => (self.bold, self.dim) = (false, false),
                30..=37 => self.colour = u8::try_from(code - 30).ok(),
                90..=97 => self.colour = u8::try_from(code - 90 + 8).ok(),
                39 => self.colour = None,
                // Colours out of a palette or of their own: what follows is not ours to read.
                38 | 48 => break,
                _ => {}
            }
        }
        self
    }
}

/// The text behind the escape sequence that `text` begins with, and its
/// parameters when it sets colours.
fn skip_sequence(text: &str) -> (&str, Option<&str>) {
    let body = &text[ESCAPE.len_utf8()..];
    match body.as_bytes().first() {
        Some(b'[') => skip_control_sequence(&body[1..]),
        // A string sequence, such as a link, ends with BEL or ESC and a backslash.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = body.find(['\u{7}', ESCAPE]).unwrap_or(body.len());
            let after = &body[end..];
            let after =
                after.strip_prefix('\u{7}').or_else(|| after.strip_prefix("\u{1b}\\")).unwrap_or(after);
            (after, None)
        }
        Some(byte) if byte.is_ascii() && *byte != 0x1b && !byte.is_ascii_control() => (&body[1..], None),
        _ => (body, None),
    }
}

fn skip_control_sequence(body: &str) -> (&str, Option<&str>) {
    // Parameters and intermediates are 0x20..=0x3f, the final byte 0x40..=0x7e.
    let end = body.bytes().position(|byte| !(0x20..=0x3f).contains(&byte)).unwrap_or(body.len());
    let (parameters, after) = body.split_at(end);
    match after.as_bytes().first() {
        Some(b'm') => (&after[1..], Some(parameters)),
        Some(0x40..=0x7e) => (&after[1..], None),
        _ => (after, None),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn html(text: &str) -> String {
        AnsiHtml(text).to_string()
    }

    #[test]
    fn colours_become_classes_and_text_is_escaped() {
        assert_eq!(
            html("Error: \u{1b}[31mexpect(\u{1b}[39m\u{1b}[2m<b>&\u{1b}[22m)"),
            "Error: <span class=\"ansi-red\">expect(</span><span class=\"ansi-dim\">&lt;b&gt;&amp;</span>)"
        );
        assert_eq!(html("\u{1b}[1;91mx\u{1b}[0my"), "<span class=\"ansi-red ansi-bold\">x</span>y");
        assert_eq!(html("\u{1b}[38;5;31mx"), "x");
    }

    #[test]
    fn other_sequences_and_control_characters_vanish() {
        assert_eq!(html("a\u{1b}]8;;http://x\u{7}b\u{1b}[2Kc\r\n\td\u{8}\u{1b}(Be\u{1b}"), "abc\n\tdBe");
        assert_eq!(html("\u{1b}[31"), "");
    }

    proptest! {
        #[test]
        fn nothing_from_the_text_is_markup(text in "(\\x1b|\\[|\\]|[0-9;]|m|<|>|&|\"|'|\\PC){0,60}") {
            let shown = html(&text);
            let without_ours = shown
                .replace("</span>", "")
                .split("<span class=\"")
                .enumerate()
                .map(|(index, part)| if index == 0 { part } else { part.split_once("\">").map_or("", |(_, rest)| rest) })
                .collect::<String>();
            let is_plain = !without_ours.contains(['<', '>', '"', '\'', '\u{1b}']);
            prop_assert!(is_plain, "{}", shown);
            prop_assert_eq!(shown.matches("<span").count(), shown.matches("</span>").count());
        }

        #[test]
        fn text_without_codes_survives(text in "[a-zA-Z0-9 \\n]{0,80}") {
            prop_assert_eq!(html(&text), text);
        }
    }

    #[test]
    fn a_million_sequences_take_no_more_than_their_length() {
        let text = "\u{1b}[31m\u{1b}]".repeat(500_000);
        assert!(html(&text).len() < 100);
    }
}
