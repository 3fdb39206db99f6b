//! A unified diff, line by line.

/// A line of a diff with its class.
pub(crate) struct PatchLine {
    /// `patch-add`, `patch-drop`, `patch-head` for what is no line of the file,
    /// or nothing.
    pub class: &'static str,
    /// The line.
    pub text: String,
}

/// Lines of a unified diff.
pub(crate) fn patch_lines(diff: &str) -> Vec<PatchLine> {
    let class = |line: &str| match line.as_bytes() {
        [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'@', b'@', ..] | [b'\\', ..] => "patch-head",
        [b'+', ..] => "patch-add",
        [b'-', ..] => "patch-drop",
        _ => "",
    };
    diff.lines().map(|line| PatchLine { class: class(line), text: line.to_owned() }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_tells_what_comes_and_what_goes() {
        let lines = patch_lines(
            "--- a/x.ts\n+++ b/x.ts\n@@ -1 +1 @@\n-old\n+new\n same\n\\ No newline at end of file",
        );
        let classes: Vec<_> = lines.iter().map(|line| line.class).collect();
        assert_eq!(
            classes,
            ["patch-head", "patch-head", "patch-head", "patch-drop", "patch-add", "", "patch-head"]
        );
    }
}
