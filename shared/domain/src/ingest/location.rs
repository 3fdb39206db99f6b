//! Where a test lives: paths with forward slashes, without detours, and the
//! line and column behind them.

use std::fmt;

/// A normalised `file:line:column`. The path is complete; what is stored of
/// it is bounded elsewhere, so that identity never depends on a bound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Location {
    /// Normalised path; `unknown` when there was none.
    pub path: String,
    /// Line, when the text named one.
    pub line: Option<u32>,
    /// Column, when the text named one.
    pub column: Option<u32>,
}

/// The path of a test that came without a location.
pub const UNKNOWN_PATH: &str = "unknown";

impl Location {
    /// Splits the last one or two all-digit `:` suffixes off as line and
    /// column and normalises what is before them.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        let text = text.trim();
        let (path, line, column) = match split_number(text) {
            None => (text, None, None),
            Some((front, last)) => match split_number(front) {
                Some((path, line)) => (path, Some(line), Some(last)),
                None => (front, Some(last), None),
            },
        };
        Self { path: normalise_path(path), line, column }
    }
}

impl fmt::Display for Location {
    /// `file`, `file:line` or `file:line:column`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.path)?;
        for number in [self.line, self.column].into_iter().flatten() {
            write!(f, ":{number}")?;
        }
        Ok(())
    }
}

/// `a:12` → (`a`, 12). Numbers beyond what a column holds become the largest.
pub(crate) fn split_number(text: &str) -> Option<(&str, u32)> {
    let (front, digits) = text.rsplit_once(':')?;
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    const LARGEST: u32 = i32::MAX.unsigned_abs();
    is_number.then(|| (front, digits.parse().unwrap_or(LARGEST).min(LARGEST)))
}

/// Forward slashes, no `file://`, no leading `./`, `.` and `a/..` folded.
/// `..` at the beginning of a relative path stays. An empty path is
/// [`UNKNOWN_PATH`]. Normalising twice changes nothing.
#[must_use]
pub fn normalise_path(path: &str) -> String {
    let path = path.trim();
    let is_plain = !path.is_empty()
        && !path.starts_with(['.', 'f', 'F', '/'])
        && !path.contains('\\')
        && !path.contains("/.");
    if is_plain {
        return path.to_owned();
    }
    let slashes = path.replace('\\', "/");
    let mut rest = slashes.as_str();
    while let Some(behind) =
        rest.get(..7).filter(|scheme| scheme.eq_ignore_ascii_case("file://")).map(|_| &rest[7..])
    {
        rest = if starts_with_drive(behind.strip_prefix('/').unwrap_or("")) { &behind[1..] } else { behind };
    }
    let folded = fold(rest);
    match folded.trim() {
        "" => UNKNOWN_PATH.to_owned(),
        // Folding can bring a prefix to the front that has to go as well.
        shorter if shorter != path => normalise_path(shorter),
        same => same.to_owned(),
    }
}

fn starts_with_drive(path: &str) -> bool {
    matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic())
}

fn fold(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "." => {}
            ".." => match kept.last() {
                // The root of an absolute path has no parent.
                Some(&"") if kept.len() == 1 => {}
                Some(&"..") | None => kept.push(segment),
                Some(_) => {
                    kept.pop();
                }
            },
            _ => kept.push(segment),
        }
    }
    kept.join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn locations_of_all_platforms_are_read() {
        for (text, path, line, column) in [
            ("tests/cart.spec.ts:7:5", "tests/cart.spec.ts", Some(7), Some(5)),
            (r"C:\x\a.ts:20:5", "C:/x/a.ts", Some(20), Some(5)),
            (r"C:\x\a.ts", "C:/x/a.ts", None, None),
            ("a.ts:12", "a.ts", Some(12), None),
            ("a.ts", "a.ts", None, None),
            ("a.ts:", "a.ts:", None, None),
            ("a.ts:x:3", "a.ts:x", Some(3), None),
            ("a.ts:1:2:3", "a.ts:1", Some(2), Some(3)),
            ("./tests/a.ts:1:1", "tests/a.ts", Some(1), Some(1)),
            ("file:///home/me/a.ts:3:1", "/home/me/a.ts", Some(3), Some(1)),
            ("file:///C:/x/a.ts:3", "C:/x/a.ts", Some(3), None),
            (r"tests\sub\..\a.ts:4:2", "tests/a.ts", Some(4), Some(2)),
            ("../shared/a.ts", "../shared/a.ts", None, None),
            ("a/../../b.ts", "../b.ts", None, None),
            ("/../b.ts", "/b.ts", None, None),
            ("a/./b.ts", "a/b.ts", None, None),
            ("a/.hidden/b.ts", "a/.hidden/b.ts", None, None),
            ("features/pay.feature:3", "features/pay.feature", Some(3), None),
            ("a.ts:99999999999999999999", "a.ts", Some(2_147_483_647), None),
            ("", "unknown", None, None),
            ("./", "unknown", None, None),
            (":12", "unknown", Some(12), None),
        ] {
            let expected = Location { path: path.into(), line, column };
            assert_eq!(Location::parse(text), expected, "{text}");
        }
    }

    #[test]
    fn a_location_is_written_as_it_was_read() {
        for text in ["a.ts", "a.ts:1", "a/b.ts:1:2"] {
            assert_eq!(Location::parse(text).to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing(path in r"(file://|/|\\|\.|\.\.|a|C:| |:|1){0,12}") {
            let once = normalise_path(&path);
            prop_assert_eq!(normalise_path(&once), once);
        }

        #[test]
        fn any_text_is_a_location(text in any::<String>()) {
            prop_assert!(!Location::parse(&text).path.is_empty());
        }
    }
}
