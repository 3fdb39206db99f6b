//! Splits a piece of JavaScript or TypeScript into tokens: as much of the
//! language as an expectation in a test's source needs.

use std::ops::Range;

/// A token of code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token<'a> {
    /// A name or keyword.
    Word(&'a str),
    /// A number.
    Number,
    /// A string or template text, without its quotes.
    Text { quote: char, inner: &'a str },
    /// A regular expression, without its slashes.
    Pattern(&'a str),
    /// Blanks or a comment.
    Blank,
    /// Any other character.
    Sign(char),
}

/// The tokens of `code` with the bytes they were read from. Code that was cut
/// is read to its end.
pub(super) fn tokens(code: &str) -> Vec<(Range<usize>, Token<'_>)> {
    let mut found: Vec<(Range<usize>, Token<'_>)> = Vec::new();
    let mut at = 0;
    let mut last = None;
    while let Some(first) = code[at..].chars().next() {
        let rest = &code[at..];
        let (length, token) = match first {
            '\'' | '"' | '`' => {
                let inner = quoted(&rest[1..], first);
                (
                    1 + inner.len() + usize::from(rest[1 + inner.len()..].starts_with(first)),
                    Token::Text { quote: first, inner },
                )
            }
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), Token::Blank),
            '/' if rest.starts_with("/*") => {
                (rest.find("*/").map_or(rest.len(), |end| end + 2), Token::Blank)
            }
            '/' if last.is_none_or(|last| "(,=:[!&|?{;".contains(last)) => {
                let inner = quoted(&rest[1..], '/');
                let end = 1 + inner.len();
                let behind = rest[end..].strip_prefix('/').unwrap_or_default();
                let flags = length_while(behind, |one| one.is_ascii_alphabetic());
                (end + usize::from(rest[end..].starts_with('/')) + flags, Token::Pattern(inner))
            }
            one if one.is_whitespace() => (length_while(rest, char::is_whitespace), Token::Blank),
            '0'..='9' => {
                let is_part = |one: char| one.is_ascii_alphanumeric() || matches!(one, '.' | '_');
                (length_while(rest, is_part), Token::Number)
            }
            one if is_name(one) => {
                let length = length_while(rest, is_name);
                (length, Token::Word(&rest[..length]))
            }
            one => (one.len_utf8(), Token::Sign(one)),
        };
        if token != Token::Blank {
            last = rest[..length].chars().next_back();
        }
        found.push((at..at + length, token));
        at += length;
    }
    found
}

fn is_name(one: char) -> bool {
    one.is_alphanumeric() || matches!(one, '_' | '$')
}

fn length_while(text: &str, accepts: impl Fn(char) -> bool) -> usize {
    text.find(|one| !accepts(one)).unwrap_or(text.len())
}

/// What stands before the closing quote; of a template text its placeholders,
/// with the quotes in them, too.
fn quoted(text: &str, quote: char) -> &str {
    let mut is_escaped = false;
    let mut depth = 0_usize;
    let mut before = ' ';
    for (at, one) in text.char_indices() {
        match one {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '{' if quote == '`' && (depth > 0 || before == '$') => depth += 1,
            '}' if depth > 0 => depth -= 1,
            one if one == quote && depth == 0 => return &text[..at],
            '\n' if quote != '`' => return &text[..at],
            _ => {}
        }
        before = one;
    }
    text
}

/// How many brackets a token opens (1) or closes (−1).
pub(super) const fn depth_of(token: Token<'_>) -> i32 {
    match token {
        Token::Sign('(' | '[' | '{') => 1,
        Token::Sign(')' | ']' | '}') => -1,
        _ => 0,
    }
}

/// The arguments of a call: `code` begins behind its opening bracket. They end
/// at the closing one, whose end is given, or where the code is cut.
pub(super) fn arguments(code: &str) -> (Vec<&str>, Option<usize>) {
    let mut found = Vec::new();
    let mut depth = 0;
    let mut begin = 0;
    let mut end = None;
    for (range, token) in tokens(code) {
        depth += depth_of(token);
        if depth < 0 {
            found.push(&code[begin..range.start]);
            end = Some(range.end);
            break;
        }
        if depth == 0 && token == Token::Sign(',') {
            found.push(&code[begin..range.start]);
            begin = range.end;
        }
    }
    if end.is_none() {
        found.push(&code[begin..]);
    }
    (found.into_iter().map(str::trim).filter(|argument| !argument.is_empty()).collect(), end)
}
