//! Whether a unified diff that a model wrote fits the files it changes. Nothing
//! is ever written: the check only says what would happen.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

const MAX_FILES: usize = 20;
const MAX_CHANGED_LINES: usize = 200;
/// How far from its place a hunk is looked for, lines.
const MAX_OFFSET: usize = 50;

/// What a check came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PatchStatus {
    /// Every hunk fits where it says.
    Applies,
    /// Every hunk fits, some at another line.
    AppliesWithOffset,
    /// A file is not what the patch expects.
    StaleFile,
    /// It is no patch, changes nothing, or leaves the source tree.
    Invalid,
    /// The files are not stored.
    Unchecked,
}

impl PatchStatus {
    /// The spelling on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Applies => "applies",
            Self::AppliesWithOffset => "applies-with-offset",
            Self::StaleFile => "stale-file",
            Self::Invalid => "invalid",
            Self::Unchecked => "unchecked",
        }
    }
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PatchCheck {
    /// What it came to.
    pub status: PatchStatus,
    /// Files whose contents were compared.
    pub files_checked: usize,
    /// Files the patch changes.
    pub files_in_patch: usize,
    /// Why it does not apply, one sentence each.
    pub errors: Vec<String>,
}

/// A file of a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedFile {
    /// Path before the change; none for a new file.
    pub before: Option<String>,
    /// Path after it; none for a deleted file.
    pub after: Option<String>,
    hunks: Vec<Hunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Hunk {
    /// First line before the change, from 1.
    start: usize,
    /// Lines it expects: context and removed ones.
    expected: Vec<String>,
    /// Added or removed lines.
    changed: usize,
}

/// Reads the files of a unified diff.
///
/// # Errors
/// A sentence for a text that is no patch, leaves the source tree, changes
/// nothing or too much.
pub fn patched_files(patch: &str) -> Result<Vec<PatchedFile>, String> {
    let mut files: Vec<PatchedFile> = Vec::new();
    let mut lines = patch.lines().peekable();
    while let Some(line) = lines.next() {
        let Some(before) = line.strip_prefix("--- ") else {
            if line.starts_with("@@") {
                return Err("A hunk comes before the name of its file.".to_owned());
            }
            // Headers such as `diff --git` and `index` say nothing that is needed.
            continue;
        };
        let after = lines.next().and_then(|line| line.strip_prefix("+++ "));
        let after = after.ok_or_else(|| "A file has no +++ line.".to_owned())?;
        let (before, after) = (path(before, "a/")?, path(after, "b/")?);
        let mut hunks = Vec::new();
        while let Some(header) = lines.next_if(|line| line.starts_with("@@")) {
            hunks.push(hunk(header, &mut lines)?);
        }
        if hunks.is_empty() || before.is_none() && after.is_none() {
            return Err("A file of the patch has no hunks.".to_owned());
        }
        files.push(PatchedFile { before, after, hunks });
    }
    let changed: usize = files.iter().flat_map(|file| &file.hunks).map(|hunk| hunk.changed).sum();
    if files.is_empty() || changed == 0 {
        return Err("The patch changes nothing.".to_owned());
    }
    if files.len() > MAX_FILES || changed > MAX_CHANGED_LINES {
        return Err(format!("The patch changes more than {MAX_FILES} files or {MAX_CHANGED_LINES} lines."));
    }
    Ok(files)
}

/// A path inside of the source tree; none for `/dev/null`.
fn path(text: &str, prefix: &str) -> Result<Option<String>, String> {
    let text = text.split('\t').next().unwrap_or_default().trim();
    if text == "/dev/null" {
        return Ok(None);
    }
    let text = text.strip_prefix(prefix).unwrap_or(text);
    let is_outside = text.is_empty()
        || text.starts_with('/')
        || text.contains(['\\', ':'])
        || text.chars().any(char::is_control)
        || text.split('/').any(|part| matches!(part, "" | "." | ".." | ".git"));
    if is_outside {
        return Err("The patch names a path outside of the source tree.".to_owned());
    }
    Ok(Some(text.to_owned()))
}

fn hunk<'p>(
    header: &str,
    lines: &mut std::iter::Peekable<impl Iterator<Item = &'p str>>,
) -> Result<Hunk, String> {
    let wrong = || "A hunk header cannot be read.".to_owned();
    let ranges = header.split("@@").nth(1).ok_or_else(wrong)?.trim();
    let (old, _) = ranges.split_once(' ').ok_or_else(wrong)?;
    let old = old.strip_prefix('-').ok_or_else(wrong)?;
    let start = old.split(',').next().and_then(|start| start.parse().ok()).ok_or_else(wrong)?;
    let (mut expected, mut changed) = (Vec::new(), 0);
    while let Some(line) = lines.peek() {
        // Counts of headers are wrong more often than lines are; lines decide.
        if line.starts_with("@@") || line.starts_with("--- ") || line.starts_with("diff --git ") {
            break;
        }
        let line = lines.next().unwrap_or_default();
        match line.chars().next() {
            Some('+') => changed += 1,
            Some('-') => {
                changed += 1;
                expected.push(line[1..].to_owned());
            }
            Some(' ') => expected.push(line[1..].to_owned()),
            None => expected.push(String::new()),
            Some('\\') => {}
            Some(_) => return Err("A line of a hunk begins with none of +, - and a space.".to_owned()),
        }
    }
    // Empty lines behind the last hunk belong to no file.
    while expected.last().is_some_and(String::is_empty) && lines.peek().is_none() {
        expected.pop();
    }
    Ok(Hunk { start, expected, changed })
}

/// Checks a patch against the contents of files, by path. Files that are not
/// among them stay unchecked.
#[must_use]
pub fn check_patch(patch: &str, sources: &BTreeMap<String, String>) -> PatchCheck {
    let files = match patched_files(patch) {
        Ok(files) => files,
        Err(error) => {
            let status = PatchStatus::Invalid;
            return PatchCheck { status, files_checked: 0, files_in_patch: 0, errors: vec![error] };
        }
    };
    let (mut checked, mut has_offset, mut errors) = (0, false, Vec::new());
    for file in &files {
        let Some(name) = &file.before else { continue };
        let Some(source) = sources.get(name) else { continue };
        checked += 1;
        let lines: Vec<&str> = source.lines().collect();
        for hunk in &file.hunks {
            match place_of(hunk, &lines) {
                Some(0) => {}
                Some(_) => has_offset = true,
                None => errors.push(format!("{name} has other lines near line {}.", hunk.start)),
            }
        }
    }
    let status = match (errors.is_empty(), checked) {
        (false, _) => PatchStatus::StaleFile,
        (true, 0) => PatchStatus::Unchecked,
        (true, checked) if checked < files.len() => PatchStatus::Unchecked,
        (true, _) if has_offset => PatchStatus::AppliesWithOffset,
        (true, _) => PatchStatus::Applies,
    };
    errors.truncate(10);
    PatchCheck { status, files_checked: checked, files_in_patch: files.len(), errors }
}

/// How many lines from where it says a hunk fits; none when it fits nowhere near,
/// or at several places.
fn place_of(hunk: &Hunk, lines: &[&str]) -> Option<usize> {
    let fits = |at: usize| {
        let found = lines.get(at..at + hunk.expected.len());
        let same = |(one, other): (&&str, &String)| one.trim_end() == other.trim_end();
        found.is_some_and(|found| found.iter().zip(&hunk.expected).all(same))
    };
    let wanted = hunk.start.saturating_sub(1);
    if fits(wanted) {
        return Some(0);
    }
    let from = wanted.saturating_sub(MAX_OFFSET);
    let mut places = (from..=wanted + MAX_OFFSET).filter(|at| fits(*at));
    let found = places.next()?;
    if places.next().is_some() { None } else { Some(found.abs_diff(wanted)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "import { test } from 'x';\n\ntest('pay', async ({ page }) => {\n  await page.getByTestId('pay').click();\n});\n";

    fn patch(path: &str, line: usize) -> String {
        format!(
            "diff --git a/x b/x\n--- a/{path}\n+++ b/{path}\n@@ -{line},3 +{line},3 @@\n test('pay', async ({{ page }}) => {{\n-  await page.getByTestId('pay').click();\n+  await page.getByRole('button').click();\n }});\n"
        )
    }

    fn status(patch: &str) -> PatchStatus {
        check_patch(patch, &BTreeMap::from([("tests/pay.spec.ts".to_owned(), SOURCE.to_owned())])).status
    }

    #[test]
    fn a_patch_fits_at_its_place_near_it_or_nowhere() {
        assert_eq!(status(&patch("tests/pay.spec.ts", 3)), PatchStatus::Applies);
        assert_eq!(status(&patch("tests/pay.spec.ts", 9)), PatchStatus::AppliesWithOffset);
        assert_eq!(status(&patch("tests/pay.spec.ts", 99)), PatchStatus::StaleFile);
        assert_eq!(status(&patch("tests/pay.spec.ts", 3).replace("'pay'", "'buy'")), PatchStatus::StaleFile);
        assert_eq!(status(&patch("tests/other.spec.ts", 3)), PatchStatus::Unchecked);
    }

    #[test]
    fn what_leaves_the_tree_or_is_no_patch_is_invalid() {
        for path in ["/etc/passwd", "../x", "tests/../../x", "C:/x", "a//b", ".git/config"] {
            assert_eq!(status(&patch(path, 3)), PatchStatus::Invalid, "{path}");
        }
        for text in [
            "",
            "rm -rf /",
            "--- a/x\n+++ b/x\n",
            "@@ -1 +1 @@\n-a\n+b\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n a\n",
        ] {
            assert_eq!(status(text), PatchStatus::Invalid, "{text}");
        }
        let long = format!("--- a/x\n+++ b/x\n@@ -1 +1 @@\n{}", "+a\n".repeat(201));
        assert_eq!(status(&long), PatchStatus::Invalid);
    }
}
