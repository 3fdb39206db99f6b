//! Text hygiene of everything a tool answers. Titles, errors and logs come
//! from the code under test: terminal sequences and control characters are
//! removed, credentials masked, cuts made between graphemes. Keys that say
//! nothing (null, empty, false) are left out.

use std::borrow::Cow;

use callboard_domain::secrets::{Source, masked_from};
use callboard_domain::text::strip_ansi;
use serde_json::Value;
use unicode_segmentation::UnicodeSegmentation;

/// Characters of a caller's own words that an error message repeats.
const QUOTED_CHARS: usize = 80;
/// Fields that hold code of the suite, made to be changed or replaced. What is a
/// secret by its name alone stays in it: whoever has the code has that too, and
/// with `***` the change could not be made.
const CODE: [&str; 6] =
    ["currentLine", "oldLine", "newLine", "sourceLine", "failingLocator", "suggestedLocator"];
/// The fields that hold a patch of such code.
const PATCHES: [&str; 2] = ["unifiedDiff", "patch"];
/// Lists that are shown even when they are empty.
const KEPT_LISTS: [&str; 4] = ["items", "runs", "cases", "projects"];
/// Flags that are shown even when they are false.
const KEPT_FLAGS: [&str; 4] = ["hasBaseline", "ok", "authRequired", "truncated"];

/// An answer without what says nothing, and with clean text.
pub(crate) fn tidy(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain(&text).into_owned()),
        Value::Array(list) => Value::Array(list.into_iter().map(tidy).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(key, value)| {
                let value = match value {
                    Value::String(text) if PATCHES.contains(&&*key) => {
                        patch(&text).map_or(Value::Null, Value::String)
                    }
                    Value::String(text) if CODE.contains(&&*key) => cleaned(&text, Source::Code).into(),
                    value => tidy(value),
                };
                (key, value)
            });
            Value::Object(fields.filter(|(key, value)| says_something(key, value)).collect())
        }
        other => other,
    }
}

/// A patch without what does not belong into text. The carriage returns at the
/// ends of its lines are part of them, and with a masked credential it would not
/// apply any more: then there is none.
fn patch(text: &str) -> Option<String> {
    let lines = text.split('\n').map(|line| {
        let (line, end) = line.strip_suffix('\r').map_or((line, ""), |line| (line, "\r"));
        format!("{}{end}", printable(line))
    });
    let text = lines.collect::<Vec<_>>().join("\n");
    let is_clean = matches!(masked_from(&text, Source::Code), Cow::Borrowed(_));
    is_clean.then_some(text)
}

fn says_something(key: &str, value: &Value) -> bool {
    match value {
        Value::Null => key == "nextCursor",
        Value::Bool(false) => KEPT_FLAGS.contains(&key),
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty() || KEPT_LISTS.contains(&key),
        _ => true,
    }
}

/// Text without terminal sequences, control characters and credentials; line
/// breaks and tabs stay.
pub(crate) fn plain(text: &str) -> Cow<'_, str> {
    cleaned(text, Source::Service)
}

fn cleaned(text: &str, source: Source) -> Cow<'_, str> {
    let text = printable(text);
    match masked_from(&text, source) {
        Cow::Owned(masked) => Cow::Owned(masked),
        Cow::Borrowed(_) => text,
    }
}

/// The text without terminal sequences and control characters.
fn printable(text: &str) -> Cow<'_, str> {
    let text = strip_ansi(text);
    let is_unwanted = |character: char| character.is_control() && !matches!(character, '\n' | '\t');
    if text.contains(is_unwanted) {
        return Cow::Owned(text.chars().filter(|character| !is_unwanted(*character)).collect());
    }
    text
}

/// The first `max_chars` characters, cut between graphemes and marked.
pub(crate) fn shortened(text: &str, max_chars: usize) -> Cow<'_, str> {
    if text.len() <= max_chars || text.chars().nth(max_chars).is_none() {
        return Cow::Borrowed(text);
    }
    let mut left = max_chars.saturating_sub(1);
    let mut end = 0;
    for (at, grapheme) in text.grapheme_indices(true) {
        let Some(rest) = left.checked_sub(grapheme.chars().count()) else { break };
        left = rest;
        end = at + grapheme.len();
    }
    Cow::Owned(format!("{}…", &text[..end]))
}

/// A caller's own words for an error message: short and on one line.
pub(crate) fn quoted(text: &str) -> String {
    let line: String =
        text.chars().take(QUOTED_CHARS * 2).map(|c| if c.is_control() { ' ' } else { c }).collect();
    shortened(&line, QUOTED_CHARS).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn text_loses_colours_and_control_characters_and_keeps_its_lines() {
        assert_eq!(plain("\u{1b}[31mred\u{1b}[0m\r\n\tnext\u{0}\u{7}"), "red\n\tnext");
        assert_eq!(quoted("a\nb\u{1b}"), "a b ");
    }

    #[test]
    fn a_patch_stays_one_and_code_keeps_what_is_secret_by_its_name_alone() {
        let diff =
            "@@ -1,2 +1,2 @@\n const password = 'hunter2';\r\n-await \u{1b}[1mold();\r\n+await new();\r\n";
        let told = |diff: &str| {
            let line = "fill({ password: 'hunter2' })";
            tidy(json!({"unifiedDiff": diff, "newLine": line, "text": line}))
        };
        assert_eq!(
            told(diff),
            json!({
                "unifiedDiff": "@@ -1,2 +1,2 @@\n const password = 'hunter2';\r\n-await old();\r\n+await new();\r\n",
                "newLine": "fill({ password: 'hunter2' })", "text": "fill({ password: '***' })",
            })
        );
        let with_key = told(&format!("{diff} const key = 'pd_{}';\n", "0a".repeat(32)));
        assert!(with_key.get("unifiedDiff").is_none(), "it would not apply: {with_key}");
        let line = tidy(json!({"newLine": "set('Authorization', 'Bearer 0123456789abcdef')"}));
        assert_eq!(line["newLine"], "set('Authorization', 'Bearer ***')");
        let commit = json!({"commit": "0123456789abcdef0123456789abcdef01234567"});
        assert_eq!(tidy(commit.clone()), commit, "a hash of a commit is no key");
    }

    #[test]
    fn keys_that_say_nothing_are_left_out() {
        let answer = json!({
            "items": [{"a": null, "b": "", "c": [], "d": false, "e": 0, "f": {"g": null}}],
            "runs": [], "nextCursor": null, "ok": false, "hasBaseline": false,
        });
        let expected = json!({
            "items": [{"e": 0, "f": {}}], "runs": [], "nextCursor": null, "ok": false, "hasBaseline": false,
        });
        assert_eq!(tidy(answer), expected);
    }

    proptest! {
        #[test]
        fn cuts_never_exceed_the_limit_and_are_marked(text in "\\PC{0,60}", max in 1_usize..40) {
            let short = shortened(&text, max);
            prop_assert!(short.chars().count() <= max);
            if text.chars().count() > max {
                prop_assert!(short.ends_with('…'));
                prop_assert!(text.starts_with(short.trim_end_matches('…')));
            } else {
                prop_assert_eq!(&short, &text);
            }
        }

        #[test]
        fn cleaning_twice_changes_nothing_more(
            text in "(?s)(.|authorization|cookie|password|x-api-key|value|[:=\"', @]|://|Bearer |pd_0123456789|eyJhbGciOiJ9|\u{1b}\\[1m|-----BEGIN PRIVATE KEY-----){0,20}",
        ) {
            let once = plain(&text).into_owned();
            prop_assert_eq!(plain(&once), once.as_str());
        }
    }
}
