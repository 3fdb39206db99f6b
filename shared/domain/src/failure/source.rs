//! What the source around a failure adds: which expectation it was, and which
//! texts of a locator were written there and which came from data.

use super::mask;
use crate::locator::{self, Argument, Call, Value};

/// Characters of a source line that go into a fingerprint.
const MAX_LINE_CHARS: usize = 400;
/// Lines of one expectation above the one that failed.
const MAX_LINES_ABOVE: usize = 12;
/// What an expectation begins with.
const EXPECT: &str = "expect";
/// What stands for data.
const ANY: &str = "<*>";
/// Matchers that are told apart by what they expect: a page has one address,
/// and every picture has its name.
const NAMED_BY_VALUE: [&str; 4] = [".toHaveURL(", ".toHaveTitle(", ".toHaveScreenshot(", ".toMatchSnapshot("];

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

    /// The expectation that the failing line is part of, from its first word to
    /// the end of that line. A formatter writes the matcher of a long one on a
    /// line of its own, and that is the line that fails.
    pub(super) fn expectation(&self) -> Option<String> {
        let failing = self.failing_line()?;
        let at = self.line?.checked_sub(self.first_line)? as usize;
        let above: Vec<&str> = self.text.lines().take(at).collect();
        let mut lines = vec![failing];
        let mut open = opened(failing);
        if !failing.contains(EXPECT) {
            for line in above.into_iter().rev().take(MAX_LINES_ABOVE) {
                let goes_on = open < 0 || lines.last()?.trim_start().starts_with('.');
                lines.push(Some(line).filter(|_| goes_on)?);
                open += opened(line);
                if open >= 0 && line.contains(EXPECT) {
                    break;
                }
            }
        }
        let first = lines.pop()?;
        lines.push(&first[first.find(EXPECT)?..]);
        lines.reverse();
        Some(lines.join("\n"))
    }
}

/// How many more brackets a line opens than it closes.
fn opened(line: &str) -> i32 {
    line.chars().map(|one| i32::from("([{".contains(one)) - i32::from(")]}".contains(one))).sum()
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
    /// The calls that find elements, and the text each was read from.
    calls: Vec<(Call, &'a str)>,
}

impl<'a> Source<'a> {
    pub(super) fn of(frames: &'a [SourceText<'a>]) -> Self {
        let calls = |frame: &SourceText<'a>| {
            let text = frame.text;
            let chains = locator::chains(text).into_iter().flat_map(|chain| chain.calls);
            chains.filter(Call::is_finder).map(|call| (call, text)).collect::<Vec<_>>()
        };
        Self { frames, calls: frames.iter().flat_map(calls).collect() }
    }

    /// What is left of a text that a locator was called with when it is data
    /// of the run: it is written nowhere, and the source shows such a call with
    /// a computed argument. Of a template text that fits, the words around the
    /// data stay. (Without such a call the locator is made elsewhere, in a page
    /// object for instance, and its texts say which one it is.)
    pub(super) fn without_data(&self, method: &str, option: Option<&str>, text: &str) -> Option<String> {
        let computed: Vec<(&Argument, &str)> = self
            .calls
            .iter()
            .filter(|(call, _)| call.name == method)
            .filter_map(|(call, source)| {
                let argument = match option {
                    Some(option) => call.option(option),
                    None => call.arguments.first(),
                };
                Some((argument?, *source))
            })
            .filter(|(argument, _)| matches!(argument.value, Value::Expression | Value::Chain(_)))
            .collect();
        if computed.is_empty() || self.frames.iter().any(|frame| frame.text.contains(text)) {
            return None;
        }
        let shapes = computed
            .into_iter()
            .filter_map(|(argument, source)| shape(source.get(argument.range.clone())?, text));
        // Of several that fit, the one that says most; of equal ones the first.
        let said = |shape: &String| shape.len();
        let best = shapes.reduce(|best, next| if said(&next) > said(&best) { next } else { best });
        Some(best.unwrap_or_else(|| ANY.to_owned()))
    }

    /// The expectation of the failing line, without its literals.
    pub(super) fn expectation(&self) -> Option<String> {
        let code = self.frames.iter().find_map(SourceText::expectation)?;
        let code = crate::text::cut_str(&code, MAX_LINE_CHARS);
        let (subject, expected) = code.split_at(expected_from(code).unwrap_or(code.len()));
        Some(without_literals(subject, false) + &without_literals(expected, true))
    }
}

/// Where the arguments begin of a matcher that is told apart by them.
fn expected_from(code: &str) -> Option<usize> {
    NAMED_BY_VALUE.iter().find_map(|matcher| Some(code.find(matcher)? + matcher.len()))
}

/// A template text with its placeholders left open, when `text` can have come
/// from it and it says anything beside them.
fn shape(template: &str, text: &str) -> Option<String> {
    let inner = template.strip_prefix('`')?.strip_suffix('`')?;
    let (mut shape, mut rest, mut is_first) = (String::new(), text, true);
    let mut template = inner;
    loop {
        let (said, placeholder) = template.split_once("${").map_or((template, None), |(a, b)| (a, Some(b)));
        let at = if placeholder.is_none() && !is_first {
            rest.ends_with(said).then(|| rest.len() - said.len())?
        } else {
            rest.find(said)?
        };
        if is_first && at > 0 {
            return None;
        }
        rest = &rest[at + said.len()..];
        shape.push_str(said);
        let Some(placeholder) = placeholder else { break };
        shape.push_str(ANY);
        is_first = false;
        // A placeholder with brackets or texts of its own is not read.
        let (code, after) = placeholder.split_once('}')?;
        if code.contains(['{', '`']) {
            return None;
        }
        template = after;
    }
    let says_something = shape.replace(ANY, "").chars().any(char::is_alphabetic);
    (rest.is_empty() && says_something).then_some(shape)
}

/// Strings become `S`, regular expressions `R`, numbers `N`, blanks nothing.
/// With `keeps_texts` strings and regular expressions stay, without their data.
fn without_literals(code: &str, keeps_texts: bool) -> String {
    let mut plain = String::with_capacity(code.len());
    let mut rest = code.chars().peekable();
    while let Some(one) = rest.next() {
        let last = plain.chars().next_back();
        let is_glued = last.is_some_and(|last| last.is_alphanumeric() || matches!(last, '_' | '$'));
        match one {
            '\'' | '"' | '`' => {
                let text = quoted(&mut rest, one);
                if keeps_texts && !(one == '`' && text.contains("${")) {
                    plain.push_str(&format!("'{}'", mask::location(&text)));
                } else {
                    plain.push('S');
                }
            }
            '/' if last.is_none_or(|last| matches!(last, '(' | ',' | '=' | ':' | '[' | '!' | '&' | '|')) => {
                let text = quoted(&mut rest, '/');
                while rest.next_if(char::is_ascii_alphabetic).is_some() {}
                if keeps_texts {
                    plain.push_str(&format!("/{}/", mask::identifier(&text)));
                } else {
                    plain.push('R');
                }
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

/// What stands up to the closing quote, which is taken, too.
fn quoted(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char) -> String {
    let mut text = String::new();
    while let Some(one) = rest.next() {
        if one == quote {
            break;
        }
        text.push(one);
        if one == '\\' {
            text.extend(rest.next());
        }
    }
    text
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
    fn an_expectation_over_several_lines_is_read_from_its_first_word() {
        let read = |text: &str| {
            let line = text.lines().position(|line| line.contains("HERE")).and_then(|at| at.try_into().ok());
            let text = text.replace("HERE", "");
            super::SourceText { text: &text, first_line: 0, line }.expectation()
        };
        let code = |text: &str| read(text).map(|code| super::without_literals(&code, false));
        assert_eq!(
            code("a();\nexpect(\n  cart.total(),\n).toBe(5);HERE").unwrap(),
            "expect(cart.total(),).toBe(N);"
        );
        assert_eq!(
            code("  await expect\n    .poll(async () => {\n      return jobs;\n    })\n    .toBe(3);HERE")
                .unwrap(),
            "expect.poll(async()=>{returnjobs;}).toBe(N);"
        );
        assert_eq!(code("expect(order).toEqual({HERE\n  id: 7,\n});").unwrap(), "expect(order).toEqual({");
        assert_eq!(code("test('expects', () => {\n  expect(a).toBe(1);\n  await total(7);HERE\n});"), None);
        assert_eq!(code("}).toBe(7);HERE"), None, "its beginning is not known");
    }

    #[test]
    fn of_a_template_text_stays_what_is_written() {
        for (template, text, expected) in [
            ("`product-${id}`", "product-17", Some("product-<*>")),
            ("`Welcome back, ${user.name}!`", "Welcome back, Ann Lee!", Some("Welcome back, <*>!")),
            ("`${a}: row ${b}`", "x: row y", Some("<*>: row <*>")),
            ("`${a}-${b}`", "x-y", None),
            ("`product-${id}`", "order-17", None),
            ("`${a}s and ${f({})}`", "1s and 2", None),
            ("'product-' + id", "product-17", None),
        ] {
            assert_eq!(super::shape(template, text).as_deref(), expected, "{template}");
        }
    }

    #[test]
    fn what_a_page_is_expected_to_be_stays_without_its_data() {
        let read = |code: &str| {
            let frames = [super::SourceText { text: code, first_line: 1, line: Some(1) }];
            super::Source::of(&frames).expectation().unwrap()
        };
        for (code, expected) in [
            (r"expect(page).toHaveURL(/\/orders\/12345$/);", r"expect(page).toHaveURL(/\/orders\/<NUM>$/);"),
            (
                "expect(page).toHaveURL('http://localhost:3000/orders/7?a=1', { timeout: 5 });",
                "expect(page).toHaveURL('<URL>/orders/<*>',{timeout:N});",
            ),
            ("expect(page).toHaveURL(`/orders/${id}`);", "expect(page).toHaveURL(S);"),
            (
                "expect('hello').toMatchSnapshot('greeting.txt');",
                "expect(S).toMatchSnapshot('greeting.txt');",
            ),
        ] {
            assert_eq!(read(code), expected);
        }
    }

    #[test]
    fn an_expectation_is_known_by_its_code_and_not_by_its_values() {
        assert_eq!(
            super::without_literals(
                "expect(total2 / 100, 'it\\'s').toBeCloseTo(12.50, /a\\/b/gi, `x`);",
                false
            ),
            "expect(total2/N,S).toBeCloseTo(N,R,S);"
        );
    }
}
