//! Cleans the text of an error and cuts it into its parts: what is said, what
//! was logged, where it happened.

use std::sync::LazyLock;

use regex::Regex;
use unicode_normalization::UnicodeNormalization;

use crate::text::{cut_str, strip_ansi};

/// Bytes kept of the beginning and of the end of a text.
const HEAD_BYTES: usize = 48 * 1024;
const TAIL_BYTES: usize = 16 * 1024;
/// Characters of a site.
const MAX_SITE_CHARS: usize = 200;

/// Normalises a text: bounded, without control sequences, with one kind of
/// line end and one form of every character.
pub(super) fn clean(text: &str) -> String {
    let mut kept = String::new();
    let text = if text.len() > HEAD_BYTES + TAIL_BYTES {
        kept.push_str(&text[..text.floor_char_boundary(HEAD_BYTES)]);
        kept.push('\n');
        kept.push_str(&text[text.ceil_char_boundary(text.len() - TAIL_BYTES)..]);
        kept.as_str()
    } else {
        text
    };
    // Playwright draws a frame around what it asks people to do.
    let drawn = '\u{2500}'..='\u{257f}';
    strip_ansi(text).replace("\r\n", "\n").nfc().filter(|char| !drawn.contains(char)).collect()
}

/// The parts of one error; lines are in their order.
#[derive(Debug, Default)]
pub(super) struct Segments<'a> {
    /// What is said.
    pub(super) head: Vec<&'a str>,
    /// Playwright's log of the call.
    pub(super) log: Vec<&'a str>,
    /// Stack frames.
    pub(super) frames: Vec<&'a str>,
}

// Sentences begin with "at" and end in a parenthesis or a time, too: what
// makes a frame is that it names a place in code.
static FRAME: LazyLock<Regex> = LazyLock::new(|| {
    let within = r"\((?:.*:\d+:\d+|.*:0x[0-9a-f]+|\S+\.\w+:\d+|<anonymous>|native|index \d+)\)";
    let bare = r"(?:async\s)?(?:\S*[/\\<].*|\S+\.[A-Za-z]\w*):\d+:\d+";
    pattern(&format!(r"^\s*(?:at\s.*{within}|at\s{bare}|\S*@\S+:\d+:\d+)$"))
});
static CODE_FRAME: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\s*(?:>?\s*\d+\s*\||\|\s*\^+\s*$)"));
static LOG_BANNER: LazyLock<Regex> = LazyLock::new(|| pattern(r"^=+ logs =+$"));

/// Patterns are constants, tested by being used.
pub(super) fn pattern(text: &str) -> Regex {
    #[expect(clippy::expect_used, reason = "the pattern is a constant")]
    Regex::new(text).expect("the pattern is valid")
}

impl<'a> Segments<'a> {
    pub(super) fn from_text(text: &'a str) -> Self {
        let mut parts = Self::default();
        let mut is_log = false;
        for line in text.lines() {
            let said = line.trim();
            if FRAME.is_match(line) {
                parts.frames.push(said);
                is_log = false;
            } else if CODE_FRAME.is_match(line) {
                is_log = false;
            } else if said.eq_ignore_ascii_case("call log:") || LOG_BANNER.is_match(said) {
                is_log = true;
            } else if said.len() >= 20 && said.bytes().all(|byte| byte == b'=') {
                is_log = false;
            } else if is_log && !ends_log(line) {
                if !said.is_empty() {
                    parts.log.push(said);
                }
            } else {
                is_log = false;
                parts.head.push(line.trim_end());
            }
        }
        parts
    }

    /// The lines of the head that say something.
    pub(super) fn said(&self) -> impl Iterator<Item = &'a str> {
        self.head.iter().map(|line| line.trim()).filter(|line| !line.is_empty())
    }
}

/// A line at the margin that is none of a log's own.
fn ends_log(line: &str) -> bool {
    let is_at_margin = line.starts_with(|first: char| !first.is_whitespace());
    is_at_margin && !["-", "waiting", "navigat", "→", "←"].iter().any(|start| line.starts_with(start))
}

/// File and function of the first frame that is not of a library.
pub(super) fn site(parts: &Segments<'_>) -> Option<String> {
    let is_ours = |frame: &&&str| {
        !["node_modules", "node:", "<anonymous>"].iter().any(|foreign| frame.contains(foreign))
    };
    let frame = parts.frames.iter().find(is_ours)?.trim_start_matches("at ").trim_start_matches("async ");
    let (function, place) = match frame.rsplit_once('(') {
        Some((function, place)) => (function.trim(), place.trim_end_matches(')')),
        None => frame.split_once('@').unwrap_or(("", frame)),
    };
    // Without line and column.
    let file = place.rsplitn(3, ':').nth(2)?;
    let function = function.trim_start_matches("async ");
    let site = if function.is_empty() { file.to_owned() } else { format!("{file}#{function}") };
    Some(cut_str(&site, MAX_SITE_CHARS).to_owned())
}

#[cfg(test)]
mod tests {
    use super::Segments;

    #[test]
    fn a_frame_names_a_place_in_code_and_a_sentence_does_not() {
        for frame in [
            "    at checkout (/home/ci/shop/tests/a.spec.ts:5:9)",
            "    at /home/John Doe/shop/a.spec.ts:5:9",
            "at async file:///home/ci/a.mjs:5:9",
            "at C:\\shop\\a.spec.ts:5:9",
            "at a.spec.ts:5:9",
            "at eval (eval at evaluate (:234:30), <anonymous>:1:20)",
            "at <anonymous>:1:20",
            "at Array.map (<anonymous>)",
            "at async Promise.all (index 0)",
            "at Array.forEach (native)",
            "at com.shop.Till.pay(Till.java:12)",
            "pay@http://127.0.0.1/app.js:5:9",
        ] {
            assert_eq!(Segments::from_text(frame).frames, [frame.trim()], "{frame}");
        }
        for said in [
            "at least 3 items expected (got 2)",
            "at most one order (per customer)",
            "at 2024-07-02T10:20:30",
            "at noon, 12:30:00",
        ] {
            let parts = Segments::from_text(said);
            assert_eq!((parts.head.as_slice(), parts.frames.len()), ([said].as_slice(), 0), "{said}");
        }
    }
}
