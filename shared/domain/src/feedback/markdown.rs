//! Markdown that nothing in it can break. Texts of tests, branches and people stand in code: there neither GitHub,
//! GitLab, Gitea nor Bitbucket reads links, HTML, mentions (`@team`), references (`#12`, `!5`), commits or commands.

use crate::bidi::visible;
use crate::secrets::masked;
use crate::text::{clean, cut_str, strip_ansi};

/// Least hexadecimal digits that hosts take for a commit.
const MIN_SHA_DIGITS: usize = 7;

/// A text as one line of code, at most `max_chars` long.
pub(super) fn code(text: &str, max_chars: usize) -> String {
    let line = one_line(text);
    let kept = cut_str(&line, max_chars);
    let cut = if kept.len() < line.len() { "…" } else { "" };
    fenced(&format!("{kept}{cut}"))
}

/// A sentence of ours with values in backticks. Values are code; what stands between them is too, unless it is plain
/// words.
pub(super) fn sentence(text: &str, max_chars: usize) -> String {
    let line = one_line(text);
    let kept = cut_str(&line, max_chars);
    let is_whole = kept.len() == line.len();
    let parts: Vec<&str> = kept.split('`').collect();
    // An odd one was cut, or is not what we write.
    if parts.len().is_multiple_of(2) || !is_whole {
        return code(&line, max_chars);
    }
    let shown = parts.iter().enumerate().filter(|(_, part)| !part.is_empty()).map(|(at, part)| {
        let is_value = at % 2 == 1;
        if is_value || !is_plain(part) { spaced_code(part) } else { (*part).to_owned() }
    });
    shown.collect()
}

/// Code that keeps the blanks around it outside.
fn spaced_code(part: &str) -> String {
    let inner = part.trim();
    if inner.is_empty() {
        return " ".to_owned();
    }
    let before = if part.starts_with(' ') { " " } else { "" };
    let after = if part.ends_with(' ') { " " } else { "" };
    format!("{before}{}{after}", fenced(inner))
}

/// What people see of a text, on one line.
fn one_line(text: &str) -> String {
    let text = strip_ansi(text);
    let text = clean(&text);
    let text = masked(&text);
    let text = visible(&text);
    let mut line = String::with_capacity(text.len());
    for char in text.chars() {
        let char = if is_blank(char) { ' ' } else { char };
        if char != ' ' || !line.ends_with(' ') {
            line.push(char);
        }
    }
    line.trim().to_owned()
}

/// Whether a character ends a line, or is not shown.
fn is_blank(char: char) -> bool {
    char.is_control()
        || char.is_whitespace()
        || matches!(char, '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}' | '\u{00ad}')
}

/// A line in a fence longer than any in it.
fn fenced(line: &str) -> String {
    if line.is_empty() {
        return "`(empty)`".to_owned();
    }
    let longest = line.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest + 1);
    let pad = if line.starts_with('`') || line.ends_with('`') { " " } else { "" };
    format!("{fence}{pad}{line}{pad}{fence}")
}

/// Whether a text means nothing but its words in any dialect: no markup, no link, no mention, no reference, no emoji.
fn is_plain(text: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || " .,;:()'%-".contains(char);
    let ends_clause = |rest: &str| rest.is_empty() || rest.starts_with([' ', '.', ')', ',']);
    let is_sha =
        |word: &str| word.len() >= MIN_SHA_DIGITS && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    // `GH-12` is an issue, `:tada:` an emoji, `example.org` a link.
    let is_quiet = |(at, char): (usize, char)| {
        let rest = &text[at + 1..];
        match char {
            '.' | ':' | ';' => ends_clause(rest),
            // `%12` is a milestone.
            '%' => rest.is_empty() || rest.starts_with([' ', '.', ')', ',', ';']),
            '-' => rest.starts_with(|char: char| char.is_ascii_lowercase()),
            _ => true,
        }
    };
    text.chars().all(is_allowed)
        && text.char_indices().all(is_quiet)
        && !text.split(|char: char| !char.is_ascii_alphanumeric()).any(is_sha)
}

/// A link with a text of ours. The address is ours too, and still kept from ending early.
pub(super) fn link(text: &str, url: &str) -> String {
    let mut escaped = String::with_capacity(url.len());
    for char in url.chars() {
        match char {
            '(' => escaped.push_str("%28"),
            ')' => escaped.push_str("%29"),
            '<' => escaped.push_str("%3C"),
            '>' => escaped.push_str("%3E"),
            char if char.is_whitespace() || char.is_control() => escaped.push_str("%20"),
            char => escaped.push(char),
        }
    }
    format!("[{text}]({escaped})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_one_line_of_code() {
        for (text, expected) in [
            ("pays", "`pays`"),
            ("a `b` c", "``a `b` c``"),
            ("```", "```` ``` ````"),
            ("two\nlines\r\n\tand\u{2028}more", "`two lines and more`"),
            ("@team closes #12 and !5", "`@team closes #12 and !5`"),
            ("\u{202e}evil", "`⟦U+202E⟧evil`"),
            ("\u{1b}[31mred\u{1b}[39m", "`red`"),
            (" \u{200b} ", "`(empty)`"),
        ] {
            assert_eq!(code(text, 80), expected, "{text:?}");
        }
        assert_eq!(code("abcdef", 3), "`abc…`");
    }

    #[test]
    fn a_sentence_keeps_its_words_and_encloses_the_rest() {
        for (text, expected) in [
            ("Locator `getByText('a|b')` was not found.", "Locator `getByText('a|b')` was not found."),
            ("No failed requests.", "No failed requests."),
            ("See www.example.org now", "`See www.example.org now`"),
            ("Commit deadbeef broke it", "`Commit deadbeef broke it`"),
            ("Fixes GH-12", "`Fixes GH-12`"),
            ("A `value", "``A `value``"),
            ("<b>bold</b> `x`", "`<b>bold</b>` `x`"),
            ("hello :tada:", "`hello :tada:`"),
        ] {
            assert_eq!(sentence(text, 200), expected, "{text:?}");
        }
        assert_eq!(sentence("A long `value` here", 10), "``A long `va…``");
    }

    #[test]
    fn an_address_does_not_end_early() {
        assert_eq!(link("`x`", "https://h/a(b) c"), "[`x`](https://h/a%28b%29%20c)");
    }
}
