//! What makes a test the same test from one run to the next: its file, its
//! describe path and its title, all in full. Renamed or moved is new.

use sha2::{Digest, Sha256};

use super::test_case::TestCaseEntry;

/// SHA-256 that names a test case within its project.
pub type IdentityHash = [u8; 32];

/// Separates the levels of a describe path where it is one text.
pub const SUITE_SEPARATOR: char = '\u{1f}';

/// The identity of a test: SHA-256 of file path, describe path (levels joined
/// by U+001F) and title, joined by U+0000.
#[must_use]
pub fn identity_hash(file_path: &str, suite_path: &[String], title: &str) -> IdentityHash {
    let mut hash = Sha256::new();
    hash.update(file_path);
    hash.update([0]);
    for (level, suite) in suite_path.iter().enumerate() {
        if level > 0 {
            hash.update([0x1f]);
        }
        hash.update(suite);
    }
    hash.update([0]);
    hash.update(title);
    hash.finalize().into()
}

/// A describe path as one text, the form SQL stores.
#[must_use]
pub fn join_suite_path(suite_path: &[String]) -> String {
    suite_path.join("\u{1f}")
}

/// Tells apart the tests of a direct submission (no describe path sent) that
/// share file and title but begin on different lines: in ascending order of
/// lines the second gets the describe path `#2`, the third `#3`, whatever
/// order they came in. Entries without a line stay with the first.
pub fn tell_apart_by_line(entries: &mut [TestCaseEntry]) {
    let line = |entry: &TestCaseEntry| entry.line.filter(|_| entry.suite_path.is_none());
    let numbers =
        LineNumbers::from_lines(entries.iter().filter_map(|entry| Some((entry.identity, line(entry)?))));
    for entry in entries {
        if let Some(number) = line(entry).and_then(|line| numbers.number(entry.identity, line)) {
            entry.set_suite_path(vec![format!("#{number}")]);
        }
    }
}

/// The lines on which tests of one identity begin.
pub(super) struct LineNumbers(Vec<(IdentityHash, u32)>);

impl LineNumbers {
    pub(super) fn from_lines(lines: impl Iterator<Item = (IdentityHash, u32)>) -> Self {
        let mut lines: Vec<_> = lines.collect();
        lines.sort_unstable();
        lines.dedup();
        // Where no two lines share an identity, there is nothing to look for.
        if lines.is_sorted_by(|one, next| one.0 < next.0) {
            lines.clear();
        }
        Self(lines)
    }

    /// From 2 on, which of the tests of its identity begins on this line; `None` for the
    /// first.
    pub(super) fn number(&self, identity: IdentityHash, line: u32) -> Option<usize> {
        let first = self.0.partition_point(|(other, _)| *other < identity);
        let own = self.0.partition_point(|place| *place < (identity, line));
        (own > first).then_some(own - first + 1)
    }
}

/// Whether a describe path reads like one that [`tell_apart_by_line`] gave, of
/// which the runner knows nothing.
pub fn is_numbered(suite_path: &[String]) -> bool {
    let number = |suite: &String| suite.strip_prefix('#')?.parse::<usize>().ok();
    matches!(suite_path, [only] if number(only).is_some_and(|number| number > 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(path: &[&str]) -> Vec<String> {
        path.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn identity_is_file_describe_path_and_title() {
        let base = identity_hash("a.ts", &levels(&["Cart", "Sum"]), "adds");
        assert_eq!(base, identity_hash("a.ts", &levels(&["Cart", "Sum"]), "adds"));
        for other in [
            identity_hash("b.ts", &levels(&["Cart", "Sum"]), "adds"),
            identity_hash("a.ts", &levels(&["Cart"]), "adds"),
            identity_hash("a.ts", &levels(&["CartSum"]), "adds"),
            identity_hash("a.ts", &levels(&["Cart", "Sum"]), "adds "),
            identity_hash("a.ts", &levels(&[]), "adds"),
        ] {
            assert_ne!(base, other);
        }
        let spelled_out: IdentityHash = Sha256::digest("a.ts\0Cart\u{1f}Sum\0adds").into();
        assert_eq!(base, spelled_out);
    }
}
