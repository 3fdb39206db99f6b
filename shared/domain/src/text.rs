//! Text as it comes from outside: repairing JSON before it is parsed, taking
//! out what no column can hold, and cutting what is too long. Every cut falls
//! on a character boundary, "characters" are Unicode scalar values, and every
//! function is linear in its input.

use std::borrow::Cow;

use memchr::{memchr, memchr2};
use serde::de::DeserializeOwned;

/// The bytes are not UTF-8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("The text is not valid UTF-8 (first invalid byte at position {position}).")]
pub struct InvalidUtf8 {
    /// Offset of the first byte that does not belong.
    pub position: usize,
}

/// Prepares a JSON text for parsing: `\u0000` and escapes of lone surrogates
/// become `\ufffd`, in place. Halves of a pair that colour codes stand between
/// are brought together: differences are marked by code unit, so only a half of
/// an emoji may be marked. A byte order mark at the start is blanked.
/// Everything else, broken JSON included, is left for the parser to judge.
///
/// # Errors
/// [`InvalidUtf8`] when the bytes are no text at all.
pub fn repair_json_text(mut bytes: Vec<u8>) -> Result<String, InvalidUtf8> {
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes[..3].fill(b' ');
    }
    let mut at = 0;
    while let Some(found) = memchr(b'\\', &bytes[at..]) {
        at += found;
        let Some(unit) = escaped_unit(&bytes, at) else {
            at += 2;
            if at >= bytes.len() {
                break;
            }
            continue;
        };
        let is_pair = is_high_surrogate(unit) && escaped_unit(&bytes, at + 6).is_some_and(is_low_surrogate);
        if is_pair {
            at += 12;
            continue;
        }
        if is_high_surrogate(unit)
            && let Some(codes) = colours_before_half(&bytes, at + 6)
        {
            let low = at + 6 + codes.length;
            if codes.ends_mark {
                bytes[at + 6..low + 6].rotate_left(codes.length);
            } else {
                bytes[at..low].rotate_left(6);
                at += codes.length;
            }
            at += 12;
            continue;
        }
        if unit == 0 || is_high_surrogate(unit) || is_low_surrogate(unit) {
            bytes[at..at + 6].copy_from_slice(b"\\ufffd");
        }
        at += 6;
    }
    String::from_utf8(bytes).map_err(|error| InvalidUtf8 { position: error.utf8_error().valid_up_to() })
}

/// Escaped colour codes in a JSON text.
struct Colours {
    length: usize,
    /// Whether the first of them ends a mark rather than begins one.
    ends_mark: bool,
}

/// The colour codes at a place, when the second half of a surrogate pair
/// follows them.
fn colours_before_half(bytes: &[u8], begin: usize) -> Option<Colours> {
    const ENDS: [&[u8]; 5] = [b"0", b"22", b"27", b"39", b"49"];
    let mut at = begin;
    let mut ends_mark = None;
    while escaped_unit(bytes, at) == Some(0x1b) && bytes.get(at + 6) == Some(&b'[') {
        let parameters = &bytes[at + 7..];
        let length = parameters.iter().take_while(|byte| byte.is_ascii_digit() || **byte == b';').count();
        if parameters.get(length) != Some(&b'm') {
            return None;
        }
        ends_mark.get_or_insert_with(|| ENDS.contains(&&parameters[..length]));
        at += 7 + length + 1;
    }
    let is_half = escaped_unit(bytes, at).is_some_and(is_low_surrogate);
    ends_mark.filter(|_| is_half).map(|ends_mark| Colours { length: at - begin, ends_mark })
}

/// Reads JSON that somebody sent beside other things; `None` when it cannot be
/// read even after [`repair_json_text`].
#[must_use]
pub fn read_repaired<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_str(&repair_json_text(text.as_bytes().to_vec()).ok()?).ok()
}

/// Puts numbers that no `f64` holds (`1e999`) in quotes, so that a text that
/// is otherwise JSON can be read, and the field is judged like any other value
/// that is no number. `None` when there is no such number.
#[must_use]
pub fn quote_unreadable_numbers(text: &str) -> Option<String> {
    let is_part = |byte: &u8| matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E');
    let mut quoted = String::new();
    let mut taken = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => at = end_of_string(bytes, at + 1),
            b'0'..=b'9' | b'-' => {
                let length = bytes[at..].iter().take_while(|byte| is_part(byte)).count();
                let number = &text[at..at + length];
                if number.parse().is_ok_and(f64::is_infinite) {
                    quoted.push_str(&text[taken..at]);
                    quoted.push('"');
                    quoted.push_str(number);
                    quoted.push('"');
                    taken = at + length;
                }
                at += length;
            }
            _ => at += 1,
        }
    }
    if quoted.is_empty() {
        return None;
    }
    quoted.push_str(&text[taken..]);
    Some(quoted)
}

/// Whether lists and objects of a JSON text lie more than `max_depth` inside
/// each other. Parsers step over what nobody asked for without counting, so
/// the bound has to be checked on the text.
#[must_use]
pub fn is_nested_deeper(text: &str, max_depth: usize) -> bool {
    let mut depth = 0_usize;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        match byte {
            b'[' | b'{' => {
                depth += 1;
                if depth > max_depth {
                    return true;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at = end_of_string(bytes, at),
            _ => {}
        }
    }
    false
}

/// Where a string has ended whose text begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> usize {
    while let Some(found) = memchr2(b'"', b'\\', bytes.get(at..).unwrap_or_default()) {
        if bytes[at + found] == b'"' {
            return at + found + 1;
        }
        at += found + 2;
    }
    bytes.len()
}

/// The code unit of a `\uXXXX` escape that begins at `at`.
fn escaped_unit(bytes: &[u8], at: usize) -> Option<u16> {
    let escape = bytes.get(at..at + 6)?;
    let digits = escape.strip_prefix(b"\\u")?;
    digits.iter().try_fold(0_u16, |unit, digit| {
        let value = char::from(*digit).to_digit(16)?;
        Some(unit << 4 | u16::try_from(value).ok()?)
    })
}

const fn is_high_surrogate(unit: u16) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

const fn is_low_surrogate(unit: u16) -> bool {
    matches!(unit, 0xdc00..=0xdfff)
}

/// Replaces U+0000, which no SQL text column holds, by U+FFFD. For text that
/// did not come through [`repair_json_text`].
#[must_use]
pub fn clean(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { Cow::Owned(text.replace('\0', "\u{fffd}")) } else { Cow::Borrowed(text) }
}

/// Removes terminal escape sequences (colours, cursor movement, links).
#[must_use]
pub fn strip_ansi(text: &str) -> Cow<'_, str> {
    if !text.contains(['\u{1b}', '\u{9b}']) {
        return Cow::Borrowed(text);
    }
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{9b}' => skip_control_sequence(&mut characters),
            '\u{1b}' => match characters.peek() {
                Some('[') => {
                    characters.next();
                    skip_control_sequence(&mut characters);
                }
                Some(']') => {
                    characters.next();
                    skip_operating_system_command(&mut characters);
                }
                Some('(' | ')' | '#') => {
                    characters.next();
                    characters.next();
                }
                Some('@'..='_' | '7' | '8' | '=' | '>' | 'c') => {
                    characters.next();
                }
                _ => {}
            },
            other => plain.push(other),
        }
    }
    Cow::Owned(plain)
}

type Characters<'a> = std::iter::Peekable<std::str::Chars<'a>>;

/// Parameters and intermediates, then one final character. A character that
/// cannot belong to the sequence ends it and is kept.
fn skip_control_sequence(characters: &mut Characters<'_>) {
    while characters.next_if(|character| (' '..='?').contains(character)).is_some() {}
    characters.next_if(|character| ('@'..='~').contains(character));
}

/// Up to BEL or the string terminator; a line break ends it too, so that an
/// unterminated one never swallows the rest of a message.
fn skip_operating_system_command(characters: &mut Characters<'_>) {
    while let Some(character) = characters.next_if(|character| !matches!(character, '\n' | '\u{1b}')) {
        if matches!(character, '\u{7}' | '\u{9c}') {
            return;
        }
    }
    if characters.next_if_eq(&'\u{1b}').is_some() {
        characters.next_if_eq(&'\\');
    }
}

/// Byte offset of the character number `max_chars`, when there is one: where
/// a text of more than `max_chars` characters is cut.
fn cut_position(text: &str, max_chars: usize) -> Option<usize> {
    if text.len() <= max_chars {
        return None;
    }
    text.char_indices().nth(max_chars).map(|(position, _)| position)
}

/// The first `max_chars` characters, without any marker.
#[must_use]
pub fn cut(mut text: String, max_chars: usize) -> String {
    if let Some(position) = cut_position(&text, max_chars) {
        text.truncate(position);
        text.shrink_to_fit();
    }
    text
}

/// [`cut`] for borrowed text.
#[must_use]
pub fn cut_str(text: &str, max_chars: usize) -> &str {
    cut_position(text, max_chars).map_or(text, |position| &text[..position])
}

/// [`cut_str`] for texts that an index has to hold, whose keys are bounded in
/// bytes.
#[must_use]
pub fn cut_key(text: &str, max_chars: usize, max_bytes: usize) -> &str {
    let text = cut_str(text, max_chars);
    let mut end = text.len().min(max_bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The first `max_chars` characters; when that is not all, a last line
/// `[truncated N chars]` says how many are missing.
#[must_use]
pub fn truncate_text(mut text: String, max_chars: usize) -> String {
    if let Some(position) = cut_position(&text, max_chars) {
        let missing = text[position..].chars().count();
        text.truncate(position);
        text.push_str(&format!("\n[truncated {missing} chars]"));
    }
    text
}

/// Errors say most at their beginning and at their end: the first three
/// quarters and the last quarter of `max_chars` characters, with
/// `… [truncated N chars] …` between them.
#[must_use]
pub fn truncate_error(text: String, max_chars: usize) -> String {
    let Some(position) = cut_position(&text, max_chars) else {
        return text;
    };
    let missing = text[position..].chars().count();
    let head_chars = max_chars * 3 / 4;
    let head = cut_str(&text, head_chars);
    let tail_start = text
        .char_indices()
        .rev()
        .take(max_chars - head_chars)
        .last()
        .map_or(text.len(), |(position, _)| position);
    format!("{head}… [truncated {missing} chars] …{}", &text[tail_start..])
}

/// The first line of an error that says anything, without colours and control
/// characters, at most `max_chars` characters. Empty when there is none.
#[must_use]
pub fn first_line_summary(error: &str, max_chars: usize) -> String {
    for line in error.lines() {
        let plain = strip_ansi(line);
        let said = plain.trim();
        if !said.is_empty() {
            let short = cut_str(said, max_chars);
            return short
                .chars()
                .map(|character| if character.is_control() { ' ' } else { character })
                .collect();
        }
    }
    String::new()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired(text: &str) -> String {
        repair_json_text(text.as_bytes().to_vec()).expect("is accepted")
    }

    #[test]
    fn nul_and_lone_surrogates_become_the_replacement_character() {
        for (given, expected) in [
            (r#""a\u0000b""#, r#""a\ufffdb""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE00x""#, r#""\ufffdx""#),
            (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
            (r#""\ud83d\u001b[7m\ude00\u001b[27m""#, r#""\u001b[7m\ud83d\ude00\u001b[27m""#),
            (r#""\u001b[7m\ud83d\u001b[27m\ude00""#, r#""\u001b[7m\ud83d\ude00\u001b[27m""#),
            (r#""\ud83d\u001b[7m""#, r#""\ufffd\u001b[7m""#),
            (r#""\ud83d\n\ude00""#, r#""\ufffd\n\ufffd""#),
        ] {
            assert_eq!(repaired(given), expected, "{given}");
        }
    }

    #[test]
    fn what_is_right_already_is_not_touched() {
        for text in [
            r#""\uD83D\uDE00""#,
            r#""\\u0000""#,
            r#""\\\\ud83d""#,
            r#""c:\\users""#,
            r#""\u00"#,
            r#""\"#,
            r#""\\"#,
            "",
            "ä \u{fffd}",
        ] {
            assert_eq!(repaired(text), text);
        }
        assert_eq!(repaired(r#""\\\u0000""#), r#""\\\ufffd""#);
        assert_eq!(repaired("\u{feff}{}").trim(), "{}");
        assert_eq!(repair_json_text(b"ab\xff".to_vec()), Err(InvalidUtf8 { position: 2 }));
    }

    #[test]
    fn nesting_is_counted_outside_of_strings() {
        assert!(!is_nested_deeper(r#"[{"a":[]},{"b":"[[[\"[["}]"#, 3));
        assert!(is_nested_deeper(r#"[{"a":[[]]}]"#, 3));
    }

    #[test]
    fn numbers_beyond_reach_are_quoted_and_nothing_else_is() {
        assert_eq!(
            quote_unreadable_numbers(r#"{"a":1e999,"b":[-1E400, 1e3],"c":"1e999 \"2e999"}"#).as_deref(),
            Some(r#"{"a":"1e999","b":["-1E400", 1e3],"c":"1e999 \"2e999"}"#)
        );
        for text in [r#"{"a":1e-999,"b":-0.5}"#, "1e", "-", "", r#""1e999"#, "ä1ä"] {
            assert_eq!(quote_unreadable_numbers(text), None, "{text}");
        }
    }

    #[test]
    fn long_texts_say_how_much_is_missing() {
        assert_eq!(truncate_text("äöü".into(), 3), "äöü");
        assert_eq!(truncate_text("äöüß!".into(), 3), "äöü\n[truncated 2 chars]");
        assert_eq!(truncate_error("12345678".into(), 8), "12345678");
        assert_eq!(truncate_error("123456789".into(), 8), "123456… [truncated 1 chars] …89");
        assert_eq!(cut("äöü".into(), 2), "äö");
    }

    #[test]
    fn colours_are_removed_and_text_stays() {
        assert_eq!(strip_ansi("\u{1b}[2mexpect(\u{1b}[22m\u{1b}[31mx\u{1b}[39m)"), "expect(x)");
        assert_eq!(strip_ansi("\u{1b}]8;;http://a\u{7}link\u{1b}]8;;\u{1b}\\!"), "link!");
        assert_eq!(strip_ansi("\u{1b}[31"), "");
        assert_eq!(strip_ansi("plain"), "plain");
    }

    #[test]
    fn a_summary_is_the_first_line_that_says_something() {
        assert_eq!(
            first_line_summary("\n \u{1b}[31m\u{1b}[0m\n \u{1b}[31mError:\tno\u{1b}[39m\n  at x", 300),
            "Error: no"
        );
        assert_eq!(first_line_summary(&"x".repeat(400), 300).len(), 300);
        assert_eq!(first_line_summary("\n\n", 300), "");
    }

    proptest! {
        #[test]
        fn repaired_text_parses_whenever_only_escapes_were_wrong(parts in prop::collection::vec(
            prop_oneof![
                Just("\\u0000".to_owned()), Just("\\ud800".to_owned()), Just("\\udc01".to_owned()),
                Just("\\uD83D\\uDE00".to_owned()), Just("\\\\".to_owned()), Just("\\n".to_owned()), Just("u0000".to_owned()),
                "[a-zäß ]{0,4}",
            ], 0..40)) {
            let json = format!("\"{}\"", parts.concat());
            let text = repaired(&json);
            prop_assert_eq!(text.len(), json.len());
            let parsed: Result<String, _> = serde_json::from_str(&text);
            prop_assert!(parsed.is_ok_and(|parsed| !parsed.contains('\0')), "{}", text);
        }

        #[test]
        fn repairing_never_changes_a_text_that_parses(text in any::<String>()) {
            let json = serde_json::to_string(&text.replace('\0', "")).expect("is accepted");
            prop_assert_eq!(repaired(&json), json);
        }

        #[test]
        fn any_bytes_are_repaired_or_refused(bytes in any::<Vec<u8>>()) {
            let _ = repair_json_text(bytes);
        }

        #[test]
        fn cutting_keeps_the_bound_and_the_beginning(text in "\\PC{0,60}", max in 0_usize..50) {
            let short = cut(text.clone(), max);
            prop_assert!(text.starts_with(&short) && short.chars().count() <= max);
            let error = truncate_error(text.clone(), max);
            let count = text.chars().count();
            prop_assert_eq!(error == text, count <= max);
            let shortened = truncate_text(text.clone(), max);
            prop_assert_eq!(shortened == text, count <= max);
        }

        #[test]
        fn stripping_leaves_no_escape(text in "[\u{1b}\u{9b}\\[\\]0-9;mA\n\u{7}]{0,40}") {
            let plain = strip_ansi(&text);
            prop_assert_eq!(plain.find(['\u{1b}', '\u{9b}']), None);
        }
    }

    #[test]
    fn a_key_is_cut_between_characters_within_both_bounds() {
        assert_eq!(cut_key("abc", 3, 3), "abc");
        assert_eq!(cut_key("abcd", 3, 9), "abc");
        for (bytes, expected) in [(3, ""), (4, "\u{1f600}"), (5, "\u{1f600}"), (9, "\u{1f600}\u{e9}")] {
            assert_eq!(cut_key("\u{1f600}\u{e9}\u{1f600}", 9, bytes), expected, "{bytes}");
        }
    }
}
