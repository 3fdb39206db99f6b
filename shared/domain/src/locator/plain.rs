//! Whether the text of a locator does nothing but name elements. What people
//! and programs send is proposed as an edit of a test and runs there, so
//! nothing may hide in an argument that the reader of chains skips.

/// Properties of the options of locators.
const OPTIONS: [&str; 15] = [
    "name",
    "exact",
    "has",
    "hasNot",
    "hasText",
    "hasNotText",
    "visible",
    "checked",
    "disabled",
    "expanded",
    "includeHidden",
    "level",
    "pressed",
    "selected",
    "description",
];

/// What came last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Last {
    /// An opening bracket, a comma or a colon: a value may follow.
    Open,
    /// A value or a closing bracket.
    Value,
    /// A dot between calls.
    Dot,
    /// A call's name: its bracket must follow.
    Call,
    /// A property's name: its colon must follow.
    Key,
}

/// Whether calls of locators are all that is called, and their arguments are
/// texts, numbers, regular expressions, `true`, `false`, `null`, and objects
/// and lists of those or of further locators. `is_call` knows the names of the
/// calls.
pub(super) fn is_plain(text: &str, is_call: impl Fn(&str) -> bool) -> bool {
    let mut rest = text;
    let mut last = Last::Open;
    while let Some(first) = rest.chars().next() {
        let follows_open = last == Last::Open;
        let taken = match first {
            ' ' => 1,
            '\'' | '"' | '`' if follows_open => {
                last = Last::Value;
                match text_length(rest, first) {
                    Some(length) => length,
                    None => return false,
                }
            }
            '/' if follows_open => {
                last = Last::Value;
                match pattern_length(rest) {
                    Some(length) => length,
                    None => return false,
                }
            }
            '0'..='9' if follows_open => {
                last = Last::Value;
                rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len()
            }
            // `nth(-1)`.
            '-' if follows_open && rest[1..].starts_with(|c: char| c.is_ascii_digit()) => 1,
            '{' | '[' if follows_open => 1,
            '(' if last == Last::Call => {
                last = Last::Open;
                1
            }
            ',' if last == Last::Value => {
                last = Last::Open;
                1
            }
            ':' if last == Last::Key => {
                last = Last::Open;
                1
            }
            '.' if last == Last::Value => {
                last = Last::Dot;
                1
            }
            // `first()`, `{}` and what ends with a comma close right after they open.
            ')' | ']' | '}' if matches!(last, Last::Open | Last::Value) => {
                last = Last::Value;
                1
            }
            'a'..='z' | 'A'..='Z' if matches!(last, Last::Open | Last::Dot) => {
                let length = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).len();
                let (word, behind) = rest.split_at(length);
                let next = behind.trim_start_matches(' ').chars().next();
                last = match next {
                    Some('(') if is_call(word) => Last::Call,
                    Some(':') if follows_open && OPTIONS.contains(&word) => Last::Key,
                    _ if follows_open && matches!(word, "true" | "false" | "null") => Last::Value,
                    _ => return false,
                };
                length
            }
            _ => return false,
        };
        rest = &rest[taken..];
    }
    last == Last::Value
}

/// Bytes of a text in quotes on one line; nothing is put into it.
fn text_length(text: &str, quote: char) -> Option<usize> {
    let mut letters = text.char_indices().skip(1);
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return None,
            '$' if quote == '`' && text[at..].starts_with("${") => return None,
            _ if letter == quote => return Some(at + letter.len_utf8()),
            _ => {}
        }
    }
    None
}

/// Bytes of a regular expression with its flags; comments are none.
fn pattern_length(text: &str) -> Option<usize> {
    if text[1..].starts_with(['/', '*']) {
        return None;
    }
    let mut letters = text.char_indices().skip(1);
    let mut in_class = false;
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => {
                letters.next();
            }
            '\n' | '\r' | '\u{2028}' | '\u{2029}' => return None,
            '[' => in_class = true,
            ']' => in_class = false,
            '/' if !in_class => {
                let flags = &text[at + 1..];
                return Some(text.len() - flags.trim_start_matches(|c: char| c.is_ascii_lowercase()).len());
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::is_only_locator;

    #[test]
    fn locators_are_taken() {
        for text in [
            "getByRole('button', { name: 'Pay', exact: true })",
            "getByRole(\"heading\", { name: /pay (now|later)\\/[/]/i, level: 2 }).first()",
            "locator('css=.a > .b').filter({ hasText: 'x', has: getByText(`it's`) }).nth(-1)",
            "frameLocator('#frame').getByLabel('Name').or(getByTestId('a\\'b'))",
            "page.getByText('Pay')",
            "this.form.getByText('Pay').last()",
        ] {
            assert!(is_only_locator(text), "{text}");
        }
    }

    #[test]
    fn nothing_else_is() {
        for text in [
            "getByRole('button', { name: 'x', ...require('child_process').execSync('id') })",
            "getByText('x').first(process.exit())",
            "getByText('x', { exact: process.exit() })",
            "getByText(`${process.exit()}`)",
            "getByText('x')['constructor']('y')",
            "getByText('x', { has: getByText('y')['constructor'] })",
            "getByText('x'); process.exit()",
            "getByText('x') // process",
            "getByText('x' /* process */)",
            "getByText(//\n)",
            "getByText('x', { [process.exit()]: 1 })",
            "getByText('x', { name })",
            "getByText('x', { get name() { return 1 } })",
            "getByText('x').filter(async () => {})",
            "getByText('x' + 'y')",
            "getByText('x').click()",
            "getByText('a\nb')",
            "getByText`x`",
            "getByText('x').evaluate('y')",
            "getByText('x', { name: 'y' }.z)",
            "getByText('x', (0, eval)('y'))",
            "page/* y */.getByText('x')",
            "page[process.exit()].getByText('x')",
            "evil().page.getByText('x')",
            "new Evil().getByText('x')",
            "",
        ] {
            assert!(!is_only_locator(text), "{text}");
        }
    }
}
