//! An answer that is still being written: what of it can be read already.

use serde_json::Value;

use super::answer::prose;
use super::words::Category;
use crate::text::cut;

/// Characters of a text that is still being written.
const MAX_TEXT_CHARS: usize = 2_000;
/// Bytes that are read: what people watch stands in the first part of an answer.
const MAX_BYTES: usize = 64 * 1024;
/// Nested values that are followed.
const MAX_DEPTH: usize = 64;

/// What can be read of an answer that is not complete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PartialAnswer {
    /// Category.
    pub category: Option<Category>,
    /// One sentence.
    pub summary: Option<String>,
    /// The cause, as far as it is written.
    pub root_cause: Option<String>,
}

impl PartialAnswer {
    /// Reads the beginning of an answer. Nothing is an error: what cannot be read is not there yet.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        let Some(begin) = text.find('{') else { return Self::default() };
        let mut end = text.len().min(begin + MAX_BYTES);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let Some(value) = closed(&text[begin..end]) else { return Self::default() };
        let text = |key: &str| {
            let text = prose(value[key].as_str()?);
            (!text.is_empty()).then(|| cut(text, MAX_TEXT_CHARS))
        };
        Self {
            category: value["category"].as_str().and_then(Category::parse),
            summary: text("summary"),
            root_cause: text("rootCause"),
        }
    }

    /// The text for people: the sentence, and the cause below it.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let parts: Vec<&str> =
            [&self.summary, &self.root_cause].into_iter().flatten().map(String::as_str).collect();
        (!parts.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// Reads the beginning of an object: open strings, lists and objects are closed at the last place where that gives JSON.
fn closed(text: &str) -> Option<Value> {
    let mut open: Vec<char> = Vec::new();
    let (mut in_string, mut is_escaped) = (false, false);
    // Where the members before the one that is being written end, and what is open there.
    let mut last_member: Option<(usize, Vec<char>)> = None;
    for (at, char) in text.char_indices() {
        if in_string {
            match char {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match char {
            '"' => in_string = true,
            '{' | '[' => {
                open.push(if char == '{' { '}' } else { ']' });
                if open.len() > MAX_DEPTH {
                    return None;
                }
            }
            '}' | ']' => {
                if open.pop() != Some(char) {
                    return None;
                }
                if open.is_empty() {
                    return serde_json::from_str(&text[..=at]).ok();
                }
            }
            ',' => last_member = Some((at, open.clone())),
            _ => {}
        }
    }
    let close = |text: &str, open: &[char]| -> Option<Value> {
        let mut whole = text.to_owned();
        whole.extend(open.iter().rev());
        serde_json::from_str(&whole).ok()
    };
    let written = if in_string {
        // An escape sequence that is not complete is left out.
        let kept = text.rfind('\\').filter(|at| text.len() - at <= 6 && !text[..*at].ends_with('\\'));
        let cut =
            kept.filter(|_| close(&format!("{text}\""), &open).is_none()).map_or(text, |at| &text[..at]);
        close(&format!("{cut}\""), &open)
    } else {
        close(text, &open)
    };
    written.or_else(|| last_member.and_then(|(at, open)| close(&text[..at], &open)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = r#"Sure: {"category":"test-bug","confidenceScore":90,"evidence":[{"section":"a","quote":"b, \"c\""}],
        "rootCause":"The button \u00e4 \n is gone, see https://evil.example","summary":"It has a new name."} Done."#;

    #[test]
    fn every_beginning_of_an_answer_can_be_read() {
        let mut seen = PartialAnswer::default();
        for end in 0..WHOLE.len() {
            let found = PartialAnswer::from_text(&WHOLE[..end]);
            // What was there stays there, and grows.
            assert!(seen.category.is_none() || found.category == seen.category, "{end}");
            let grows = |before: &Option<String>, now: &Option<String>| {
                before.as_ref().is_none_or(|before| {
                    now.as_ref().is_some_and(|now| now.len() >= before.len() || now.contains("[address]"))
                })
            };
            assert!(grows(&seen.root_cause, &found.root_cause), "{end}: {seen:?} {found:?}");
            seen = found;
        }
        assert_eq!(seen.category, Some(Category::TestBug));
        assert_eq!(seen.root_cause.as_deref(), Some("The button ä \n is gone, see [address]"));
        assert_eq!(seen.summary.as_deref(), Some("It has a new name."));
        assert!(seen.text().is_some_and(|text| text.starts_with("It has a new name.\n\nThe button")));
    }

    #[test]
    fn what_is_no_answer_says_nothing() {
        for text in [
            "",
            "I do not know.",
            "{",
            "{]",
            "[1",
            "{\"summary\": 5",
            &"[".repeat(200),
            &"{\"a\":".repeat(200),
        ] {
            assert_eq!(PartialAnswer::from_text(text), PartialAnswer::default(), "{text}");
        }
    }
}
