//! Diffs as `git diff` writes them, taken apart into files. Two providers give
//! patches only in this form.

use std::collections::HashMap;

/// The hunks of one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct FilePatch {
    /// From the first `@@` on; `None` for binary files, renames and changes of
    /// the mode.
    pub(super) hunks: Option<String>,
    /// Added lines.
    pub(super) additions: u64,
    /// Removed lines.
    pub(super) deletions: u64,
}

/// The files of a diff by path: the new one, or the old one of a removed file.
pub(super) fn by_path(diff: &[u8]) -> HashMap<String, FilePatch> {
    let diff = String::from_utf8_lossy(diff);
    let mut files = HashMap::new();
    let mut section: Option<Section<'_>> = None;
    for line in diff.split_inclusive('\n') {
        if let Some(names) = line.strip_prefix("diff --git ") {
            files.extend(section.take().and_then(Section::finish));
            section = Some(Section::new(names.trim_end_matches(['\r', '\n'])));
        } else if let Some(section) = &mut section {
            section.read(line);
        }
    }
    files.extend(section.and_then(Section::finish));
    files
}

/// Lines that hunks add and remove.
pub(super) fn count_lines(hunks: &str) -> (u64, u64) {
    let (mut additions, mut deletions) = (0, 0);
    for line in hunks.lines() {
        match line.as_bytes().first() {
            Some(b'+') => additions += 1,
            Some(b'-') => deletions += 1,
            _ => {}
        }
    }
    (additions, deletions)
}

/// Whether a diff only says that binary files differ.
pub(super) fn is_binary_note(diff: &str) -> bool {
    diff.starts_with("Binary files ") || diff.starts_with("GIT binary patch")
}

/// The part of a diff that is about one file.
struct Section<'d> {
    /// Behind `diff --git `.
    names: &'d str,
    old: Option<String>,
    new: Option<String>,
    hunks: String,
}

impl<'d> Section<'d> {
    const fn new(names: &'d str) -> Self {
        Self { names, old: None, new: None, hunks: String::new() }
    }

    fn read(&mut self, line: &str) {
        // Inside of hunks a removed line may look like a header.
        if !self.hunks.is_empty() || line.starts_with("@@ ") {
            self.hunks.push_str(line);
            return;
        }
        let line = line.trim_end_matches(['\r', '\n']);
        if let Some(path) = line.strip_prefix("--- ") {
            self.old = path_of(path, "a/");
        } else if let Some(path) = line.strip_prefix("+++ ") {
            self.new = path_of(path, "b/");
        } else if let Some(path) = line.strip_prefix("rename to ") {
            self.new = Some(unquoted(path));
        }
    }

    fn finish(self) -> Option<(String, FilePatch)> {
        let path = self.new.or(self.old).or_else(|| same_path(self.names))?;
        let (additions, deletions) = count_lines(&self.hunks);
        let hunks = self.hunks.strip_suffix('\n').unwrap_or(&self.hunks);
        let hunks = (!hunks.is_empty()).then(|| hunks.to_owned());
        Some((path, FilePatch { hunks, additions, deletions }))
    }
}

/// The path behind `---` or `+++`; `None` for `/dev/null`.
fn path_of(written: &str, prefix: &str) -> Option<String> {
    // A tab ends a path with blanks.
    let path = unquoted(written.trim_end_matches('\t'));
    if path == "/dev/null" { None } else { Some(path.strip_prefix(prefix).unwrap_or(&path).to_owned()) }
}

/// The path of a file without hunks that was not renamed: `a/x b/x` names it
/// twice.
fn same_path(names: &str) -> Option<String> {
    let (old, new) = if names.starts_with('"') {
        names.split_once("\" \"").map(|(old, new)| (format!("{old}\""), format!("\"{new}")))?
    } else {
        let middle = names.len().checked_sub(1)? / 2;
        (names.get(..middle)?.to_owned(), names.get(middle + 1..)?.to_owned())
    };
    let (old, new) = (unquoted(&old), unquoted(&new));
    let new = new.strip_prefix("b/")?;
    (old.strip_prefix("a/")? == new).then(|| new.to_owned())
}

/// A path that git put into quotes, with its escapes resolved.
fn unquoted(path: &str) -> String {
    let Some(inner) = path.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return path.to_owned();
    };
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next() {
            Some(b'n') => bytes.push(b'\n'),
            Some(b't') => bytes.push(b'\t'),
            Some(b'r') => bytes.push(b'\r'),
            Some(b'a') => bytes.push(7),
            Some(b'b') => bytes.push(8),
            Some(b'v') => bytes.push(11),
            Some(b'f') => bytes.push(12),
            Some(first @ b'0'..=b'3') => {
                let digits = [Some(first), rest.next(), rest.next()];
                let value =
                    digits.iter().flatten().fold(0u32, |value, digit| value * 8 + u32::from(digit & 7));
                bytes.push(u8::try_from(value).unwrap_or(b'?'));
            }
            Some(other) => bytes.push(other),
            None => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_is_taken_apart_into_files() {
        let diff = "diff --git a/src/a b.ts b/src/a b.ts\nindex 1..2 100644\n--- a/src/a b.ts\t\n+++ b/src/a b.ts\t\n\
            @@ -1,3 +1,3 @@\n one\n--- two\n+++ three\n four\n\\ No newline at end of file\n\
            diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
            diff --git a/old name b/new name\nsimilarity index 100%\nrename from old name\nrename to new name\n\
            diff --git a/logo.png b/logo.png\nindex 3..4 100644\nBinary files a/logo.png and b/logo.png differ\n\
            diff --git \"a/\\303\\244\\t.txt\" \"b/\\303\\244\\t.txt\"\nold mode 100644\nnew mode 100755\n";
        let files = by_path(diff.as_bytes());
        let mut paths: Vec<&str> = files.keys().map(String::as_str).collect();
        paths.sort_unstable();
        assert_eq!(paths, ["gone", "logo.png", "new name", "src/a b.ts", "ä\t.txt"]);
        let changed = &files["src/a b.ts"];
        assert_eq!((changed.additions, changed.deletions), (1, 1));
        let hunks = "@@ -1,3 +1,3 @@\n one\n--- two\n+++ three\n four\n\\ No newline at end of file";
        assert_eq!(changed.hunks.as_deref(), Some(hunks));
        assert_eq!(files["gone"].deletions, 1);
        for without in ["logo.png", "new name", "ä\t.txt"] {
            assert_eq!(files[without], FilePatch::default(), "{without}");
        }
        assert!(by_path(b"nothing\nof that kind").is_empty());
    }
}
