//! Diffs of one plan that change neighbouring lines of a file: each shows lines
//! of the others around its own, and a patch applies only where those are as it
//! shows them.

use crate::failures::HealingEdit;

/// A diff of `file` as it applies once some edits were made: the lines around
/// the change are as those edits leave them.
pub(super) fn after(earlier: &[HealingEdit], file: &str, diff: &str) -> String {
    let mut number = 0;
    let mut followed = String::with_capacity(diff.len());
    for line in diff.split_inclusive('\n') {
        let text = line.trim_end_matches('\n');
        if let Some(range) = text.strip_prefix("@@ -") {
            let start = range.split([',', ' ']).next().and_then(|start| start.parse().ok());
            number = start.unwrap_or(0);
        } else if let Some(text) = text.strip_prefix(' ') {
            let mut of_line = earlier.iter().filter(|edit| edit.file_path == file && edit.line == number);
            let edit = of_line.find(|edit| edit.old_line == text);
            number += 1;
            if let Some(edit) = edit {
                followed.push(' ');
                followed.push_str(&edit.new_line);
                followed.push('\n');
                continue;
            }
        } else if text.starts_with('-') {
            number += 1;
        }
        followed.push_str(line);
    }
    followed
}

#[cfg(test)]
mod tests {
    use super::*;

    const DIFF: &str = "--- a/a.ts\n+++ b/a.ts\n@@ -2,5 +2,5 @@\n two\n three\n-four\n+FOUR\n five\n six\n";

    fn edit(file: &str, line: u32, old: &str, new: &str) -> HealingEdit {
        HealingEdit {
            file_path: file.to_owned(),
            line,
            old_line: old.to_owned(),
            new_line: new.to_owned(),
            unified_diff: String::new(),
        }
    }

    #[test]
    fn neighbouring_lines_are_shown_as_the_edits_before_leave_them() {
        let earlier = [edit("a.ts", 3, "three", "THREE"), edit("a.ts", 6, "six", "SIX")];
        assert_eq!(
            after(&earlier, "a.ts", DIFF),
            "--- a/a.ts\n+++ b/a.ts\n@@ -2,5 +2,5 @@\n two\n THREE\n-four\n+FOUR\n five\n SIX\n"
        );
    }

    #[test]
    fn other_lines_files_and_versions_of_a_line_stay() {
        for other in [
            edit("b.ts", 3, "three", "THREE"),
            edit("a.ts", 9, "three", "THREE"),
            edit("a.ts", 3, "3", "THREE"),
            edit("a.ts", 4, "four", "4"),
        ] {
            assert_eq!(after(&[other], "a.ts", DIFF), DIFF);
        }
    }
}
