//! `Content-Disposition` (RFC 6266): the name a file is saved under. Names
//! come from clients, so whatever they hold, the header stays one line of
//! visible ASCII and the name stays in its folder.

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Longest name, in characters: with an extension and in any script it still
/// fits the 255 bytes of common file systems in most cases.
const MAX_NAME_CHARS: usize = 150;
const NAMELESS: &str = "file";

/// What stands for itself in an extended value (RFC 8187, `attr-char`).
const ATTRIBUTE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What the browser does with the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disposition {
    /// Opens them.
    Inline,
    /// Saves them.
    Attachment,
}

impl Disposition {
    /// The header for a file that its client called `name`.
    pub(crate) fn header(self, name: &str) -> HeaderValue {
        let word = match self {
            Self::Inline => "inline",
            Self::Attachment => "attachment",
        };
        let name = clean(name);
        let plain: String = name.chars().map(plain_char).collect();
        let text = if plain == name {
            format!("{word}; filename=\"{plain}\"")
        } else {
            let extended = utf8_percent_encode(&name, ATTRIBUTE);
            format!("{word}; filename=\"{plain}\"; filename*=UTF-8''{extended}")
        };
        // The text is visible ASCII whatever the name was; the word alone is always right.
        HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
    }
}

/// The last part of a path, without what is invisible or means something to a
/// file system.
fn clean(name: &str) -> String {
    let base = name.rsplit(['/', '\\']).find(|part| !part.trim().is_empty()).unwrap_or_default();
    let visible: String = base.chars().filter(|char| !is_invisible(*char)).take(MAX_NAME_CHARS).collect();
    let name = visible.trim_matches(|char: char| char == '.' || char.is_whitespace());
    if name.is_empty() { NAMELESS.to_owned() } else { name.to_owned() }
}

/// Control characters, and those that turn the direction of text: with them
/// `exe.png` and `gnp.exe` look alike.
fn is_invisible(char: char) -> bool {
    char.is_control()
        || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// A character of the name that old clients read.
fn plain_char(char: char) -> char {
    match char {
        // Some clients decode `%` in the plain form too.
        '"' | '%' => '_',
        ' '..='~' => char,
        _ => '_',
    }
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    fn header(name: &str) -> String {
        Disposition::Attachment.header(name).to_str().unwrap().to_owned()
    }

    #[test]
    fn a_plain_name_is_written_once_and_any_other_in_both_forms() {
        assert_eq!(header("trace.zip"), "attachment; filename=\"trace.zip\"");
        assert_eq!(
            header("Übersicht 1.png"),
            "attachment; filename=\"_bersicht 1.png\"; filename*=UTF-8''%C3%9Cbersicht%201.png"
        );
        assert_eq!(Disposition::Inline.header("a.png"), "inline; filename=\"a.png\"");
    }

    #[test]
    fn a_name_cannot_leave_its_folder_or_its_header() {
        for (name, saved) in [
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("a\r\nSet-Cookie: b", "aSet-Cookie: b"),
            ("..", NAMELESS),
            ("", NAMELESS),
            ("\u{202e}gnp.exe", "gnp.exe"),
            ("dir/", "dir"),
        ] {
            assert_eq!(header(name), format!("attachment; filename=\"{saved}\""), "{name:?}");
        }
        assert_eq!(header("a\";x=\"b"), "attachment; filename=\"a_;x=_b\"; filename*=UTF-8''a%22%3Bx%3D%22b");
    }

    proptest! {
        #[test]
        fn every_name_gives_a_header_that_reads_back_as_a_safe_name(name in any::<String>()) {
            let header = header(&name);
            prop_assert!(header.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
            let plain = header.strip_prefix("attachment; filename=\"").and_then(|rest| rest.split_once('"'));
            let (plain, rest) = plain.unwrap();
            let saved = match rest.strip_prefix("; filename*=UTF-8''") {
                Some(extended) => percent_decode_str(extended).decode_utf8().unwrap().into_owned(),
                None => plain.to_owned(),
            };
            prop_assert!(!saved.is_empty() && saved.chars().count() <= MAX_NAME_CHARS);
            prop_assert!(!saved.contains(['/', '\\']) && !saved.starts_with('.') && !saved.chars().any(is_invisible));
        }
    }
}
