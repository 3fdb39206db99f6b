//! The command that runs some tests again.
//!
//! Playwright takes what stands before `:line` as a regular expression over
//! the absolute path of the file, so signs of a path that mean something there
//! are escaped; and a shell takes the line apart, so what it would change is
//! quoted. Whoever sends results chooses these names: none of them may become
//! an option of the runner, or a key that a terminal obeys when the line is
//! pasted.
//!
//! Where the checkout lies is not known, so a path is found below any folder,
//! and in any case of its letters: beside `tests/a.spec.ts` a file
//! `e2e/tests/a.spec.ts` is selected as well. Who knows of such files can leave
//! them out, see [`exact_file_pattern`].

use std::collections::BTreeSet;

use regex::RegexBuilder;

/// A test to run again.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// File of the test.
    pub file_path: String,
    /// Line of the test; the whole file without one.
    pub line: Option<i64>,
    /// Name of its browser project; empty when it has none.
    pub browser_project: String,
}

impl Target {
    /// `file:line`, for people.
    #[must_use]
    pub fn shown(&self) -> String {
        self.located(&self.file_path)
    }

    fn located(&self, path: &str) -> String {
        self.line.map_or_else(|| path.to_owned(), |line| format!("{path}:{line}"))
    }
}

/// The arguments of `npx playwright test` that select these tests, quoted for
/// a shell. Tests of several browser projects are selected in all of them.
#[must_use]
pub fn arguments(targets: &[Target]) -> String {
    words(targets).join(" ")
}

/// [`arguments`] one by one.
#[must_use]
pub fn words(targets: &[Target]) -> Vec<String> {
    let places: BTreeSet<String> =
        targets.iter().map(|target| target.located(&file_pattern(&target.file_path))).collect();
    let projects: BTreeSet<&str> = targets.iter().map(|target| target.browser_project.as_str()).collect();
    let mut words: Vec<String> = places.iter().map(|place| shell_quoted(place)).collect();
    // A test without a project runs in a configuration that has none.
    if !projects.contains("") {
        words.extend(projects.iter().map(|project| shell_quoted(&format!("--project={project}"))));
    }
    words
}

/// The command for [`arguments`]; empty when there is nothing to run, because
/// without arguments everything would.
#[must_use]
pub fn command(targets: &[Target]) -> String {
    if targets.is_empty() { String::new() } else { format!("npx playwright test {}", arguments(targets)) }
}

/// What finds a file by its path. It begins like a path, with any sign and a
/// slash, so that `a.spec.ts` is not found in `extra.spec.ts` and no name is an
/// option of the runner; on Windows the runner also looks at paths with
/// slashes. Nothing in it is obeyed by a terminal: any sign stands for those. A
/// dot finds itself among others, and paths without other signs stay readable.
#[must_use]
pub fn file_pattern(path: &str) -> String {
    let mut pattern = String::with_capacity(path.len() + 8);
    let path = match below(path) {
        Some(below) => {
            pattern.push_str("./");
            below
        }
        None => path,
    };
    for letter in path.chars() {
        match letter {
            '.' => pattern.push('.'),
            _ if letter.is_control() => pattern.push('.'),
            _ => push_escaped(&mut pattern, letter),
        }
    }
    pattern
}

/// Those of some files that [`file_pattern`] of one of them finds as well.
#[must_use]
pub fn found_too(path: &str, files: &[String]) -> Vec<String> {
    let Some(below) = below(path) else { return Vec::new() };
    // A pattern is dear, and hardly any other file has the same words in its path.
    let words = below.split(|letter: char| !letter.is_ascii_alphanumeric());
    let word = words.max_by_key(|word| word.len()).unwrap_or_default().to_ascii_lowercase();
    let is_like = |other: &&String| *other != path && other.to_ascii_lowercase().contains(&word);
    let alike: Vec<&String> = files.iter().filter(is_like).collect();
    if alike.is_empty() {
        return Vec::new();
    }
    let pattern = RegexBuilder::new(&file_pattern(path)).case_insensitive(true).build();
    let Ok(pattern) = pattern else { return Vec::new() };
    // Some folder is above every file.
    alike.into_iter().filter(|other| pattern.is_match(&format!("./{other}"))).cloned().collect()
}

/// What finds a file by its path and none of the others that [`found_too`]
/// tells of: it is not found in other cases of the letters, not with more
/// behind its name, and not in the folders in which the others are. `None` for
/// a path that begins at a root.
#[must_use]
pub fn exact_file_pattern(path: &str, others: &[String]) -> Option<String> {
    let path = below(path)?;
    let name = |text: &str| regex_escaped(text).replace(char::is_control, ".");
    let end = format!("/{path}");
    let folders: BTreeSet<String> = others
        .iter()
        .filter_map(|other| other.strip_suffix(&end))
        .map(|folder| format!("/{}", name(folder)))
        .collect();
    let folders: Vec<String> = folders.into_iter().collect();
    let elsewhere = if folders.is_empty() { String::new() } else { format!("(?<!{})", folders.join("|")) };
    Some(format!("/{elsewhere}/{}$/", name(path)))
}

/// What a relative path says of a place below some folder; `None` for one that
/// begins at a root. How the folders above are called is not known.
fn below(path: &str) -> Option<&str> {
    let mut below = path;
    while let Some(rest) = below.strip_prefix("../").or_else(|| below.strip_prefix("./")) {
        below = rest;
    }
    let is_drive =
        |path: &str| matches!(path.as_bytes(), [letter, b':', b'/', ..] if letter.is_ascii_alphabetic());
    (!below.starts_with('/') && !is_drive(below)).then_some(below)
}

/// A text that stands for itself in a regular expression of JavaScript.
#[must_use]
pub fn regex_escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len() + 8);
    text.chars().for_each(|letter| push_escaped(&mut escaped, letter));
    escaped
}

fn push_escaped(pattern: &mut String, letter: char) {
    if matches!(letter, '.' | '*' | '+' | '?' | '^' | '$' | '{' | '}' | '(' | ')' | '|' | '[' | ']' | '\\') {
        pattern.push('\\');
    }
    pattern.push(letter);
}

/// A text as one word of a POSIX shell, without what a terminal obeys.
#[must_use]
pub fn shell_quoted(text: &str) -> String {
    let text = text.replace(char::is_control, "");
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/_-.:=@%+,".contains(letter);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn target(file_path: &str, line: Option<i64>, browser_project: &str) -> Target {
        Target { file_path: file_path.to_owned(), line, browser_project: browser_project.to_owned() }
    }

    #[test]
    fn paths_are_escaped_for_the_expression_and_quoted_for_the_shell() {
        let targets = [
            target("tests/pay (new)/[id]+.spec.ts", Some(7), ""),
            target("tests/plain_spec", Some(3), ""),
            target("tests/it's.spec.ts", None, ""),
        ];
        assert_eq!(
            command(&targets),
            r"npx playwright test './tests/it'\''s.spec.ts' './tests/pay \(new\)/\[id\]\+.spec.ts:7' ./tests/plain_spec:3"
        );
        assert_eq!(targets[0].shown(), "tests/pay (new)/[id]+.spec.ts:7");
    }

    #[test]
    fn no_name_becomes_an_option_or_a_key() {
        let targets = [
            target("--output=src", None, ""),
            target("-c", Some(3), ""),
            target("x\u{3}\u{1b}[201~\ntouch me\n#", None, ""),
        ];
        assert_eq!(command(&targets), r"npx playwright test ./--output=src ./-c:3 './x..\[201~.touch me.#'");
        assert_eq!(arguments(&[target("a", None, "web\u{1b}[0m\n-x")]), "./a '--project=web[0m-x'");
    }

    #[test]
    fn a_path_begins_at_a_folder_wherever_that_is() {
        for (path, pattern) in [
            ("pay.spec.ts", "./pay.spec.ts"),
            ("./tests/pay.spec.ts", "./tests/pay.spec.ts"),
            ("../../shared/pay.spec.ts", "./shared/pay.spec.ts"),
            ("/srv/shop/pay.spec.ts", "/srv/shop/pay.spec.ts"),
            ("C:/shop/pay.spec.ts", "C:/shop/pay.spec.ts"),
        ] {
            assert_eq!(file_pattern(path), pattern);
        }
    }

    #[test]
    fn files_that_are_found_too_can_be_left_out() {
        let path = "tests/a.spec.ts";
        let found = ["e2e/tests/a.spec.ts", "Tests/A.spec.ts", "tests/a.spec.tsx", "x/tests/a_spec.ts"]
            .map(str::to_owned);
        let others = [path, "tests/b.spec.ts", "e2etests/a.spec.ts", "a.spec.ts"].map(str::to_owned);
        let files = [found.as_slice(), &others].concat();
        assert_eq!(found_too(path, &files), found);
        assert_eq!(found_too("../tests/a.spec.ts", &files)[..4], found);
        assert_eq!(found_too("/srv/tests/a.spec.ts", &["e2e/srv/tests/a.spec.ts".to_owned()]), [""; 0]);
        let exact = |path: &str, others: &[&str]| {
            exact_file_pattern(path, &others.iter().map(|other| (*other).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(exact(path, &["Tests/a.spec.ts"]).as_deref(), Some(r"//tests/a\.spec\.ts$/"));
        assert_eq!(
            exact(path, &["e2e/tests/a.spec.ts", "b (2)/tests/a.spec.ts", "e2e/tests/a.spec.tsx"]).as_deref(),
            Some(r"/(?<!/b \(2\)|/e2e)/tests/a\.spec\.ts$/")
        );
        assert_eq!(exact("/srv/a.spec.ts", &[]), None);
    }

    #[test]
    fn projects_are_named_once_and_only_when_every_test_has_one() {
        let one = target("a", Some(1), "Mobile Safari");
        let two = target("a", Some(1), "chromium");
        assert_eq!(
            arguments(&[two.clone(), one.clone(), one]),
            "./a:1 '--project=Mobile Safari' --project=chromium"
        );
        assert_eq!(arguments(&[two, target("b", None, "")]), "./a:1 ./b");
        assert_eq!(command(&[]), "");
    }

    proptest! {
        #[test]
        fn a_quoted_word_holds_no_bare_quote(text in "[a-z' $\"\\\\;&|<>*?(){}\\n-]{0,30}") {
            let quoted = shell_quoted(&text);
            // Undo it the way a shell would.
            let mut read = String::new();
            let mut inside = false;
            let mut letters = quoted.chars();
            while let Some(letter) = letters.next() {
                match letter {
                    '\'' => inside = !inside,
                    '\\' if !inside => read.extend(letters.next()),
                    other => {
                        prop_assert!(inside || other.is_ascii_alphanumeric() || "/_-.:=@%+,".contains(other));
                        read.push(other);
                    }
                }
            }
            prop_assert!(!inside);
            prop_assert_eq!(read, text.replace('\n', ""));
        }
    }
}
