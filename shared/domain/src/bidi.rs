//! Invisible characters that change the order in which text is shown: with them
//! a name, a path or a line of code reads as something it is not (CVE-2021-42574,
//! "Trojan Source"). They are stored as they came and shown as visible marks.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character changes the direction of text and is not shown itself:
/// the explicit formatting characters of UAX #9 and the deprecated ones of
/// U+206A to U+206F.
#[must_use]
pub const fn is_reordering(char: char) -> bool {
    matches!(
        char,
        '\u{061c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}'
            | '\u{206a}'..='\u{206f}'
    )
}

/// Whether a text has a reordering character. Pages and results are large and
/// nearly never have one: only bytes such a character begins with are looked at
/// more closely.
fn has_reordering(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, 0xd8 | 0xe2)) {
        let mut characters = rest[at..].chars();
        if characters.next().is_some_and(is_reordering) {
            return true;
        }
        rest = characters.as_str();
    }
    false
}

/// Text as people and agents may read it: every reordering character is a mark
/// such as `⟦U+202E⟧`.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !has_reordering(text) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for char in text.chars() {
        if is_reordering(char) {
            // Writing to a String cannot fail.
            let _ = write!(shown, "⟦U+{:04X}⟧", u32::from(char));
        } else {
            shown.push(char);
        }
    }
    Cow::Owned(shown)
}

/// An HTML document in which people see every reordering character of its text
/// and of the attributes that are read out or shown. Values that are sent back
/// or followed (`value`, `href`, `data-…`, the content of a `textarea`) stay as
/// they are. The document has to have `<` and `>` only around its tags.
#[must_use]
pub fn visible_html(html: String) -> String {
    if !has_reordering(&html) {
        return html;
    }
    let mut shown = String::with_capacity(html.len() + 64);
    let mut rest = html.as_str();
    while let Some(start) = rest.find('<') {
        shown.push_str(&visible(&rest[..start]));
        let end = end_of_tag(rest, start);
        let tag = &rest[start..end];
        push_tag(&mut shown, tag);
        rest = &rest[end..];
        if tag.starts_with("<textarea") {
            let content = rest.find("</textarea").unwrap_or(rest.len());
            shown.push_str(&rest[..content]);
            rest = &rest[content..];
        }
    }
    shown.push_str(&visible(rest));
    shown
}

/// The byte after the `>` that ends the tag at `start`.
fn end_of_tag(html: &str, start: usize) -> usize {
    html[start..].find('>').map_or(html.len(), |end| start + end + 1)
}

/// Attributes whose values people see or hear.
const SHOWN_ATTRIBUTES: [&str; 3] = [" title", " aria-label", " alt"];

fn push_tag(shown: &mut String, mut tag: &str) {
    while let Some((name, rest)) = tag.split_once("=\"") {
        shown.push_str(name);
        shown.push_str("=\"");
        let (value, after) = rest.split_at(rest.find('"').unwrap_or(rest.len()));
        if SHOWN_ATTRIBUTES.iter().any(|shown| name.ends_with(shown)) {
            shown.push_str(&visible(value));
        } else {
            shown.push_str(value);
        }
        tag = after;
    }
    shown.push_str(tag);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn reordering_characters_are_marks() {
        assert_eq!(visible("user\u{202e}gpj.exe"), "user⟦U+202E⟧gpj.exe");
        assert_eq!(visible("\u{61c}\u{200e}\u{200f}\u{2069}"), "⟦U+061C⟧⟦U+200E⟧⟦U+200F⟧⟦U+2069⟧");
        // Joiners belong to emoji and to scripts.
        for plain in ["", "שלום", "👩\u{200d}💻", "a\u{200c}b", "⟦U+202E⟧"] {
            assert!(matches!(visible(plain), Cow::Borrowed(shown) if shown == plain), "{plain}");
        }
    }

    #[test]
    fn pages_show_marks_and_send_back_what_is_stored() {
        let page = "<p title=\"a\u{202e}b\" data-x=\"\u{202e}\">x\u{202e}y</p><input value=\"\u{202e}\">\
                    <textarea>\u{202e}</textarea><b aria-label=\"\u{2066}\">\u{2067}</b>";
        let shown = "<p title=\"a⟦U+202E⟧b\" data-x=\"\u{202e}\">x⟦U+202E⟧y</p><input value=\"\u{202e}\">\
                     <textarea>\u{202e}</textarea><b aria-label=\"⟦U+2066⟧\">⟦U+2067⟧</b>";
        assert_eq!(visible_html(page.to_owned()), shown);
        assert_eq!(visible_html("<p>plain</p>".to_owned()), "<p>plain</p>");
        assert_eq!(visible_html("a\u{202e}<p title=\"\u{202e}".to_owned()), "a⟦U+202E⟧<p title=\"⟦U+202E⟧");
    }

    proptest! {
        #[test]
        fn nothing_that_is_shown_reorders(text in "[aع…\u{61c}\u{202e}\u{2066}\u{200e}<>\"= ]{0,40}") {
            prop_assert_eq!(has_reordering(&text), text.contains(is_reordering));
            let shown = visible(&text);
            prop_assert!(!shown.contains(is_reordering));
            prop_assert_eq!(visible(&shown), shown.as_ref());
            let _ = visible_html(text);
        }
    }
}
