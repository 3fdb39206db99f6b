//! Names of branches and commits, judged before they are sent anywhere.

/// Bytes of the longest branch name that git writes to a file.
const MAX_BRANCH_BYTES: usize = 255;
/// Digits of a commit, by which hosts tell commits apart.
const SHA_DIGITS: std::ops::RangeInclusive<usize> = 7..=64;

/// Whether a text is a commit hash or the beginning of one.
#[must_use]
pub fn is_sha(text: &str) -> bool {
    SHA_DIGITS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text can be the name of a branch, by the rules of
/// `git check-ref-format`.
#[must_use]
pub fn is_branch(name: &str) -> bool {
    let is_component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    let has_forbidden =
        name.chars().any(|char| char.is_control() || " ~^:?*[\\".contains(char)) || name.contains("..");
    name.len() <= MAX_BRANCH_BYTES
        && name != "@"
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !name.contains("@{")
        && !has_forbidden
        && name.split('/').all(is_component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_branches_by_the_rules_of_git() {
        for name in ["main", "feature/x", "release/1.2", "a%2fb", "🚀/launch", "fix#7", "a@b", "ärger"] {
            assert!(is_branch(name), "{name}");
        }
        for name in [
            "", "@", "a..b", "..", "/a", "a/", "a//b", ".a", "a/.b", "a.lock", "a/b.lock", "a.", "-a", "a b",
            "a~1", "a^", "a:b", "a?", "a*", "a[", "a\\b", "a@{1}", "a\u{7}b",
        ] {
            assert!(!is_branch(name), "{name}");
        }
        assert!(!is_branch(&"x".repeat(256)));
        assert!(is_sha("0a1b2c3") && is_sha(&"F".repeat(64)));
        assert!(!is_sha("0a1b2c") && !is_sha("main123") && !is_sha(&"0".repeat(65)));
    }
}
