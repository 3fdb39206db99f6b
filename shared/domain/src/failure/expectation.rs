//! An expectation as it stands in a test's source, and what it compares: the
//! thing between the parentheses of `expect`, whatever it is called on the way
//! and however the code is laid out.

use std::sync::LazyLock;

use regex::Regex;

use super::code::{Token, arguments, depth_of, tokens};
use super::segment::pattern;
use super::source::Source;
use super::{mask, target};
use crate::locator;
use crate::text::cut_str;

/// Characters of what is compared that count.
const MAX_CHARS: usize = 400;
/// Characters of a name in quotes.
const MAX_NAME_CHARS: usize = 60;
/// Matchers that are told apart by what they expect: a page has one address,
/// every picture has its name.
const NAMED_BY_VALUE: [&str; 5] =
    ["toHaveURL", "toHaveTitle", "toHaveScreenshot", "toMatchSnapshot", "toHaveProperty"];
/// Matchers whose first argument says which property of an element they look at.
pub(super) const NAMED_BY_PROPERTY: [&str; 3] = ["toHaveAttribute", "toHaveCSS", "toHaveJSProperty"];

/// Where an expectation begins.
static BEGIN: LazyLock<Regex> = LazyLock::new(|| pattern(r"\bexpect\s*(?:\.\s*\w+\s*)?\("));
/// Where names are given to values: `const total = `, `let { total } = `.
static DECLARATION: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\b(?:const|let|var)\s+(?:([\w$]+)|\{([^{}]*)\})\s*(?::[^=;\n]+)?=\s*"));

/// What the expectation of the failing line compares; the matcher is the one
/// that failed.
pub(super) fn compared(source: &Source<'_>, matcher: &str) -> Option<String> {
    let written = source.written()?;
    let read = Expectation::find(&written.code, matcher)?;
    Some(read.compared(&written.above, source))
}

/// The name of the property of an element that the matcher looks at.
pub(super) fn property(source: &Source<'_>, matcher: &str) -> Option<String> {
    Expectation::find(&source.written()?.code, matcher)?.property().map(str::to_owned)
}

/// `expect(subject, message).not.toBe(expected)`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Expectation<'a> {
    /// What is expected of, without a message.
    pub(super) subject: &'a str,
    /// Such as `toBe`.
    pub(super) matcher: &'a str,
    /// What the matcher was called with.
    pub(super) arguments: Vec<&'a str>,
}

impl<'a> Expectation<'a> {
    /// The first expectation in `code` with a matcher of this name.
    pub(super) fn find(code: &'a str, matcher: &str) -> Option<Self> {
        let begins = BEGIN.find_iter(code).map(|found| found.end());
        begins.filter_map(|begin| Self::read(&code[begin..])).find(|read| read.matcher == matcher)
    }

    /// Reads from behind the opening bracket of `expect`.
    fn read(code: &'a str) -> Option<Self> {
        let (given, end) = arguments(code);
        let mut rest = &code[end?..];
        loop {
            rest = rest.trim_start().strip_prefix('.')?.trim_start();
            let length = rest.find(|one: char| !one.is_alphanumeric()).unwrap_or(rest.len());
            let (name, behind) = rest.split_at(length);
            rest = behind.trim_start();
            if let Some(inside) = rest.strip_prefix('(') {
                let subject = given.first()?;
                return Some(Self { subject, matcher: name, arguments: arguments(inside).0 });
            }
        }
    }

    /// What is compared, without values and layout. `above` is the source
    /// before the expectation, which says what a variable stands for.
    pub(super) fn compared(&self, above: &str, source: &Source<'_>) -> String {
        let first = self.arguments.first().copied();
        let expected = match first {
            None => String::new(),
            Some(first) if NAMED_BY_VALUE.contains(&self.matcher) => plain(first, Texts::Kept),
            // Of two values that are written there the expected one says which comparison it is.
            Some(first) if is_scalar(self.subject) && is_scalar(first) => plain(first, Texts::Kept),
            Some(first) if has_keys(first) || is_scalar(self.subject) => plain(first, Texts::Left),
            Some(_) => String::new(),
        };
        let subject = self.subject_in(above, source);
        cut_str(&format!("expect({subject}).{}({expected})", self.matcher), MAX_CHARS).to_owned()
    }

    fn subject_in(&self, above: &str, source: &Source<'_>) -> String {
        if let Some(located) = located(self.subject, source) {
            return located;
        }
        let name = bare(self.subject);
        let is_page = NAMED_BY_VALUE.contains(&self.matcher) && self.matcher != "toHaveProperty";
        let is_name =
            !is_page && matches!(tokens(name).as_slice(), [(_, Token::Word(_))]) && !is_literal(name);
        let declared = is_name.then(|| declared(name, above)).flatten();
        match declared.as_deref().filter(|value| !is_literal(value)) {
            Some(value) => located(value, source).unwrap_or_else(|| plain(bare(value), Texts::Names)),
            None => plain(name, Texts::Names),
        }
    }

    /// The name of the property that the matcher looks at, such as `href`.
    pub(super) fn property(&self) -> Option<&'a str> {
        let first = self.arguments.first().filter(|_| NAMED_BY_PROPERTY.contains(&self.matcher))?;
        match tokens(first).as_slice() {
            [(_, Token::Text { inner, .. })] => Some(inner),
            _ => None,
        }
    }
}

/// Code about an element by the element: how a page object calls its page says
/// nothing.
fn located(code: &str, source: &Source<'_>) -> Option<String> {
    let chain = locator::first_chain(code)?;
    let range = chain.locator_range()?;
    let target = Some(target::canonical(&chain, source)).filter(|target| !target.is_empty())?;
    let (before, behind) = (&code[..chain.range.start], &code[range.end..]);
    Some(format!("{}[{target}]{}", plain(before, Texts::Names), plain(behind, Texts::Names)))
}

/// Code without `await` and without the brackets around all of it.
fn bare(code: &str) -> &str {
    let mut code = code.trim();
    loop {
        let inner = code
            .strip_prefix("await")
            .filter(|rest| rest.starts_with(|one: char| one.is_whitespace() || one == '('))
            .or_else(|| {
                let inside = code.strip_prefix('(')?;
                let is_whole = arguments(inside).1 == Some(inside.len()) && !inside.starts_with(')');
                is_whole.then(|| &inside[..inside.len() - 1])
            });
        match inner {
            Some(inner) => code = inner.trim(),
            None => return code,
        }
    }
}

/// What a name was last given above: the rest of its statement.
fn declared(name: &str, above: &str) -> Option<String> {
    let given = |found: &regex::Captures<'_>| {
        let value = &above[found.get(0)?.end()..];
        if let Some(own) = found.get(1) {
            return (own.as_str() == name).then(|| statement(value).to_owned());
        }
        let key = found.get(2)?.as_str().split(',').find_map(|part| {
            let part = part.split('=').next()?.trim();
            let (key, alias) =
                part.split_once(':').map_or((part, part), |(key, alias)| (key.trim(), alias.trim()));
            (alias == name).then_some(key)
        })?;
        Some(format!("({}).{key}", bare(statement(value))))
    };
    DECLARATION.captures_iter(above).filter_map(|found| given(&found)).last()
}

/// The code up to the end of a statement.
fn statement(code: &str) -> &str {
    let mut depth = 0;
    for (range, token) in tokens(code) {
        depth += depth_of(token);
        let is_end = match token {
            Token::Sign(';') => depth == 0,
            Token::Blank => {
                let goes_on = code[range.end..].starts_with(['.', '?']);
                depth == 0 && code[range.clone()].contains('\n') && !goes_on
            }
            _ => depth < 0,
        };
        if is_end {
            return code[..range.start].trim();
        }
    }
    code.trim()
}

/// Whether code names nothing of the test: it is made of values alone.
fn is_literal(code: &str) -> bool {
    const VALUES: [&str; 12] = [
        "true",
        "false",
        "null",
        "undefined",
        "NaN",
        "Infinity",
        "async",
        "return",
        "new",
        "as",
        "any",
        "unknown",
    ];
    let words: Vec<_> = tokens(code).into_iter().filter(|(_, token)| *token != Token::Blank).collect();
    words.iter().enumerate().all(|(at, (_, token))| match token {
        Token::Word(word) => {
            let is_key = words.get(at + 1).is_some_and(|(_, next)| *next == Token::Sign(':'));
            is_key || VALUES.contains(word)
        }
        Token::Text { quote: '`', inner } => !inner.contains("${"),
        _ => true,
    })
}

fn has_keys(code: &str) -> bool {
    tokens(code).iter().any(|(_, token)| matches!(token, Token::Sign('{' | '[')))
}

/// Whether code is one value, such as a text or a number.
fn is_scalar(code: &str) -> bool {
    is_literal(code) && !has_keys(code)
}

/// What becomes of the strings and regular expressions in code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Texts {
    /// They stay, without their data.
    Kept,
    /// Those stay that name what a call or an index asks for: `get('total')`.
    Names,
    /// They become `S` and `R`.
    Left,
}

/// Code without values, blanks, comments and what only layout needs: strings
/// become `S`, regular expressions `R`, numbers `N`.
fn plain(code: &str, texts: Texts) -> String {
    let words: Vec<Token<'_>> =
        tokens(code).into_iter().map(|(_, token)| token).filter(|token| *token != Token::Blank).collect();
    let mut plain = String::with_capacity(code.len());
    // Whether each open bracket is that of a call or an index.
    let mut open: Vec<bool> = Vec::new();
    for (at, token) in words.iter().enumerate() {
        if matches!(token, Token::Word(word) if *word != "await")
            && plain.ends_with(|one: char| one.is_alphanumeric() || matches!(one, '_' | '$'))
        {
            plain.push(' ');
        }
        let before = at.checked_sub(1).map(|at| words[at]);
        let next = words.get(at + 1);
        match *token {
            Token::Word("await") | Token::Blank => {}
            Token::Sign('?' | '!') if next == Some(&Token::Sign('.')) => {}
            Token::Word(word) => plain.push_str(word),
            Token::Number => plain.push('N'),
            Token::Text { quote: '`', inner } if inner.contains("${") => plain.push('S'),
            Token::Text { inner, .. } if texts == Texts::Kept => {
                plain.push_str(&format!("'{}'", mask::location(inner)));
            }
            Token::Text { inner, .. }
                if texts == Texts::Names && open.last() == Some(&true) && is_name(inner) =>
            {
                let name =
                    if inner.contains("://") { mask::location(inner) } else { mask::identifier(inner) };
                plain.push_str(&format!("'{name}'"));
            }
            Token::Text { .. } => plain.push('S'),
            Token::Pattern(inner) if texts == Texts::Kept => {
                plain.push_str(&format!("/{}/", mask::identifier(inner)));
            }
            Token::Pattern(_) => plain.push('R'),
            Token::Sign(sign) => {
                match sign {
                    '(' | '[' | '{' => {
                        let is_of_call = match before {
                            Some(Token::Word(word)) => !matches!(word, "return" | "await" | "async"),
                            Some(Token::Sign(sign)) => matches!(sign, ')' | ']'),
                            _ => false,
                        };
                        open.push(sign != '{' && is_of_call);
                    }
                    ')' | ']' | '}' => {
                        open.pop();
                        if plain.ends_with(',') {
                            plain.pop();
                        }
                    }
                    _ => {}
                }
                plain.push(sign);
            }
        }
    }
    plain
}

/// Whether a text in quotes names something: a key, a selector. What people
/// read has blanks.
fn is_name(text: &str) -> bool {
    let is_selector = text.starts_with(['#', '.', '[']);
    !text.starts_with(|first: char| first.is_ascii_digit())
        && !text.is_empty()
        && text.chars().count() <= MAX_NAME_CHARS
        && (is_selector || !text.contains(char::is_whitespace))
}

#[cfg(test)]
mod tests {
    use super::{Expectation, Source};

    fn compared(matcher: &str, above: &str, code: &str) -> String {
        let source = Source::from_frames(&[]);
        Expectation::find(code, matcher).map(|read| read.compared(above, &source)).unwrap_or_default()
    }

    #[test]
    fn an_expectation_is_known_by_what_is_compared() {
        for (code, expected) in [
            ("expect(total2 / 100, 'it\\'s').toBe(12.50);", "expect(total2/N).toBe()"),
            ("expect.soft( await cart.total() ).toBe(\n  5, // five\n);})", "expect(cart.total()).toBe()"),
            ("expect((await cart.read()).total).toBe(a + b)", "expect((cart.read()).total).toBe()"),
            ("expect(a?.b!.c).toBe(x)", "expect(a.b.c).toBe()"),
            ("expect('a 🎉 b').toBe('a 🎊 b');})", "expect(S).toBe('a 🎊 b')"),
            ("expect('refunded 5').toBe('paid 17');})", "expect(S).toBe('paid <NUM>')"),
            ("expect(1).toBe(2);})", "expect(N).toBe(N)"),
            ("expect(json['total'], `of ${x}`).toBe(1)", "expect(json['total']).toBe()"),
            ("expect(res.headers()['x-id']).toBe(1)", "expect(res.headers()['x-id']).toBe()"),
            ("expect(t('Pay now')).toBe('a')", "expect(t(S)).toBe()"),
            (
                "expect(await page.textContent('#total')).toBe('a')",
                "expect(page.textContent('#total')).toBe()",
            ),
            (
                "expect(await this.page.getByTestId('row-17').innerText()).toBe('a')",
                "expect([testid=row-<NUM>].innerText()).toBe()",
            ),
            ("expect(page).toHaveURL(/\\/a\\/17$/);expect(b).toBe(5)", "expect(b).toBe()"),
            ("const expected = 5; expect(n).toBe(expected)", "expect(n).toBe()"),
            ("expect(async () => {\n  expect(n).toBe(5);\n}).toPass()", "expect(n).toBe()"),
            ("await pay(cart);", ""),
        ] {
            assert_eq!(compared("toBe", "", code), expected, "{code}");
        }
        assert_eq!(
            compared("toEqual", "", "expect(order).toEqual({\n  id: 7,\n  'lines': [{ sku: 'a' }],\n});"),
            "expect(order).toEqual({id:N,S:[{sku:S}]})"
        );
        assert_eq!(
            compared("toEqual", "", "expect(['ann', 'read']).toEqual(['bob'])"),
            "expect([S,S]).toEqual([S])"
        );
        assert_eq!(
            compared("toContain", "", "expect('Globex invoice 7').toContain('receipt')"),
            "expect(S).toContain('receipt')"
        );
    }

    #[test]
    fn a_variable_stands_for_what_it_was_given() {
        for (above, expected) in [
            ("const n = await cart.count();\n", "expect(cart.count()).toBe()"),
            ("const n: number = (await api.get('x'))\n  .total;\n", "expect((api.get('x')).total).toBe()"),
            ("const { items, total: n = 0 } = await cart.read();", "expect((cart.read()).total).toBe()"),
            ("const n = undefined as any;", "expect(n).toBe()"),
            ("const n = new Cart(await load());", "expect(new Cart(load())).toBe()"),
            ("let n = 3; let other = f();", "expect(n).toBe()"),
            ("const n = a();\nconst n = b()\nc();", "expect(b()).toBe()"),
            ("const n = page.locator('.card').count();", "expect([css=.card].count()).toBe()"),
            ("", "expect(n).toBe()"),
        ] {
            assert_eq!(compared("toBe", above, "expect(n).toBe(5);"), expected, "{above}");
        }
    }

    #[test]
    fn what_a_page_is_expected_to_be_stays_without_its_data() {
        for (matcher, code, expected) in [
            (
                "toHaveURL",
                r"expect(page).toHaveURL(/\/orders\/12345$/);",
                r"expect(page).toHaveURL(/\/orders\/<NUM>$/)",
            ),
            (
                "toHaveURL",
                "expect(page).toHaveURL('http://localhost:3000/orders/7?a=1', { timeout: 5 });",
                "expect(page).toHaveURL('<URL>/orders/<*>')",
            ),
            ("toHaveURL", "expect(page).toHaveURL(`/orders/${id}`);", "expect(page).toHaveURL(S)"),
            (
                "toMatchSnapshot",
                "expect('hello').toMatchSnapshot('greeting.txt');",
                "expect(S).toMatchSnapshot('greeting.txt')",
            ),
        ] {
            assert_eq!(compared(matcher, "", code), expected);
        }
        let read = Expectation::find("await expect(link).toHaveAttribute('href', '/a');", "toHaveAttribute");
        assert_eq!(read.and_then(|read| read.property()), Some("href"));
    }
}
