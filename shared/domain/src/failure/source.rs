//! What the source around a failure adds: which expectation it was, and which
//! texts of a locator were written there and which came from data.

use crate::locator::{self, Call, Value};

/// Characters of a source line that go into a fingerprint.
const MAX_LINE_CHARS: usize = 400;

/// Lines of source around a place of a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceText<'a> {
    /// The lines.
    pub text: &'a str,
    /// Number of the first one.
    pub first_line: u32,
    /// Number of the line that failed, when it is among them.
    pub line: Option<u32>,
}

impl<'a> SourceText<'a> {
    fn failing_line(&self) -> Option<&'a str> {
        let at = self.line?.checked_sub(self.first_line)?;
        self.text.lines().nth(at as usize)
    }
}

/// Source as reporters quote it: each line behind a mark and its number,
/// `>   12 | await page.click()`. Other text is taken as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotedSource {
    text: String,
    line: Option<u32>,
}

impl QuotedSource {
    /// Takes marks and numbers off.
    #[must_use]
    pub fn read(quoted: &str) -> Self {
        let mut text = String::with_capacity(quoted.len());
        let mut line = None;
        for (number, quoted) in (1..).zip(quoted.lines()) {
            let code = quoted.split_once(" | ").filter(|(mark, _)| {
                let digits = mark.trim_start_matches(['>', '*', ' ']);
                !digits.is_empty() && digits.bytes().all(|one| one.is_ascii_digit())
            });
            if code.is_some_and(|(mark, _)| mark.starts_with('>')) {
                line.get_or_insert(number);
            }
            text.push_str(code.map_or(quoted, |(_, code)| code));
            text.push('\n');
        }
        Self { text, line }
    }

    /// The source without marks.
    #[must_use]
    pub fn as_source(&self) -> SourceText<'_> {
        SourceText { text: &self.text, first_line: 1, line: self.line }
    }
}

/// Source, read once for all questions.
pub(super) struct Source<'a> {
    frames: &'a [SourceText<'a>],
    calls: Vec<Call>,
}

impl<'a> Source<'a> {
    pub(super) fn of(frames: &'a [SourceText<'a>]) -> Self {
        let calls = frames
            .iter()
            .flat_map(|frame| locator::chains(frame.text))
            .flat_map(|chain| chain.calls)
            .filter(Call::is_finder)
            .collect();
        Self { frames, calls }
    }

    /// Whether a text that a locator was called with is data of the run: it is
    /// written nowhere, and the source shows such a call with a computed
    /// argument. (Without such a call the locator is made elsewhere, in a page
    /// object for instance, and its texts say which one it is.)
    pub(super) fn is_data(&self, method: &str, option: Option<&str>, text: &str) -> bool {
        let is_computed = |call: &Call| {
            let argument = match option {
                Some(option) => call.option(option),
                None => call.arguments.first(),
            };
            argument.is_some_and(|argument| matches!(argument.value, Value::Expression | Value::Chain(_)))
        };
        self.calls.iter().any(|call| call.name == method && is_computed(call))
            && !self.frames.iter().any(|frame| frame.text.contains(text))
    }

    /// The expectation of the failing line, without its literals.
    pub(super) fn expectation(&self) -> Option<String> {
        let line =
            self.frames.iter().filter_map(SourceText::failing_line).find(|line| line.contains("expect"))?;
        let start = line.find("expect")?;
        Some(without_literals(crate::text::cut_str(&line[start..], MAX_LINE_CHARS)))
    }
}

/// Strings become `S`, regular expressions `R`, numbers `N`, blanks nothing.
fn without_literals(code: &str) -> String {
    let mut plain = String::with_capacity(code.len());
    let mut rest = code.chars().peekable();
    while let Some(one) = rest.next() {
        let last = plain.chars().next_back();
        let is_glued = last.is_some_and(|last| last.is_alphanumeric() || matches!(last, '_' | '$'));
        match one {
            '\'' | '"' | '`' => {
                skip_quoted(&mut rest, one);
                plain.push('S');
            }
            '/' if last.is_none_or(|last| matches!(last, '(' | ',' | '=' | ':' | '[' | '!' | '&' | '|')) => {
                skip_quoted(&mut rest, '/');
                while rest.next_if(char::is_ascii_alphabetic).is_some() {}
                plain.push('R');
            }
            '0'..='9' if !is_glued => {
                while rest.next_if(|next| next.is_ascii_alphanumeric() || matches!(next, '.' | '_')).is_some()
                {
                }
                plain.push('N');
            }
            one if one.is_whitespace() => {}
            one => plain.push(one),
        }
    }
    plain
}

fn skip_quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) {
    while let Some(one) = rest.next() {
        if one == '\\' {
            rest.next();
        } else if one == quote {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn quoted_source_is_read_without_its_marks() {
        let read = super::QuotedSource::read(
            "*   9 | test('a', async () => {\n>  10 |   expect(a | b).toBe(1);\n   11 | })",
        );
        assert_eq!(read.as_source().failing_line(), Some("  expect(a | b).toBe(1);"));
        assert!(read.text.starts_with("test('a'"));
        let plain = super::QuotedSource::read("const x = a | b;");
        assert_eq!((plain.text.as_str(), plain.line), ("const x = a | b;\n", None));
    }

    #[test]
    fn an_expectation_is_known_by_its_code_and_not_by_its_values() {
        assert_eq!(
            super::without_literals("expect(total2 / 100, 'it\\'s').toBeCloseTo(12.50, /a\\/b/gi, `x`);"),
            "expect(total2/N,S).toBeCloseTo(N,R,S);"
        );
    }
}
