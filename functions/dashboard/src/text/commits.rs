//! Commits as people name them.

/// Digits that tell the commits of a repository apart, as `git` shows them.
const DIGITS: usize = 7;

/// The beginning of a commit.
pub(crate) fn short_commit(commit: &str) -> String {
    commit.chars().take(DIGITS).collect()
}
