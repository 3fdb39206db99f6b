//! What the source around a failure adds: which expectation it was, and which
//! texts of a locator were written there and which came from data.

use std::sync::LazyLock;

use regex::Regex;

use super::segment::pattern;
use crate::locator::{self, Argument, Call, Value};

/// Lines of one expectation above the one that failed.
const MAX_LINES: usize = 12;
/// Bytes of one expectation after which no further line is read.
const MAX_CODE_BYTES: usize = 2_000;
/// What stands for data.
const ANY: &str = "<*>";
/// Where an expectation begins on a line of its own, which may go on below.
static BEGIN_ON_LINE: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bexpect\s*(?:[.(]|$)"));

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

impl SourceText<'_> {
    /// The expectation that the failing line is part of: a formatter writes the
    /// matcher of a long one on a line of its own, and that is the line that fails.
    pub(super) fn expectation(&self) -> Option<WrittenExpectation> {
        let at = self.line?.checked_sub(self.first_line)? as usize;
        let lines: Vec<&str> = self.text.lines().collect();
        let failing = *lines.get(at)?;
        let mut first = at;
        let mut open = opened(failing);
        while begin_on(lines[first]).is_none() || open < 0 && first < at {
            let goes_on = open < 0 || lines[first].trim_start().starts_with('.');
            if !goes_on || first == 0 || at - first >= MAX_LINES {
                return None;
            }
            first -= 1;
            open += opened(lines[first]);
        }
        let begin = begin_on(lines[first])?;
        let mut code = lines[first][begin..].to_owned();
        let mut open = opened(&code);
        for (number, line) in lines.iter().enumerate().skip(first + 1).take(2 * MAX_LINES) {
            let goes_on = number <= at || open > 0 || line.trim_start().starts_with('.');
            if !goes_on || code.len() > MAX_CODE_BYTES {
                break;
            }
            open += opened(line);
            code.push('\n');
            code.push_str(line);
        }
        let above = lines[..first].iter().copied().chain([&lines[first][..begin]]);
        Some(WrittenExpectation { above: above.collect::<Vec<_>>().join("\n"), code })
    }
}

/// An expectation in the source, and the source above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct WrittenExpectation {
    /// From `expect` on.
    pub(super) code: String,
    /// What stands before it.
    pub(super) above: String,
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
    pub(super) fn from_frames(frames: &'a [SourceText<'a>]) -> Self {
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

    /// The expectation of the failing line.
    pub(super) fn written(&self) -> Option<WrittenExpectation> {
        self.frames.iter().find_map(SourceText::expectation)
    }
}

/// Where on a line an expectation begins.
fn begin_on(line: &str) -> Option<usize> {
    BEGIN_ON_LINE.find(line).map(|found| found.start())
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

#[cfg(test)]
mod tests {
    #[test]
    fn quoted_source_is_read_without_its_marks() {
        let read = super::QuotedSource::read(
            "*   9 | test('a', async () => {\n>  10 |   expect(a | b).toBe(1);\n   11 | })",
        );
        assert_eq!((read.text.lines().nth(1), read.line), (Some("  expect(a | b).toBe(1);"), Some(2)));
        assert!(read.text.starts_with("test('a'"));
        let plain = super::QuotedSource::read("const x = a | b;");
        assert_eq!((plain.text.as_str(), plain.line), ("const x = a | b;\n", None));
    }

    #[test]
    fn an_expectation_over_several_lines_is_read_from_its_first_word() {
        let read = |text: &str| {
            let line = text.lines().position(|line| line.contains("HERE")).and_then(|at| at.try_into().ok());
            let text = text.replace("HERE", "");
            let read = super::SourceText { text: &text, first_line: 0, line }.expectation();
            read.map(|read| (read.code.split_whitespace().collect::<Vec<_>>().join(" "), read.above))
        };
        let code = |text: &str| read(text).map(|(code, _)| code);
        let (total, above) = read("a();\nexpect(\n  cart.total(),\n).toBe(5);HERE").unwrap();
        assert_eq!((total.as_str(), above.as_str()), ("expect( cart.total(), ).toBe(5);", "a();\n"));
        assert_eq!(
            code("  await expect\n    .poll(async () => {\n      return jobs;\n    })\n    .toBe(3);HERE")
                .unwrap(),
            "expect .poll(async () => { return jobs; }) .toBe(3);"
        );
        assert_eq!(
            code("expect(order).toEqual({HERE\n  id: 7,\n});\nnext();").unwrap(),
            "expect(order).toEqual({ id: 7, });"
        );
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
}
