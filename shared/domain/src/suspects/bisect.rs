//! The command that finds the culprit on somebody's own machine.

use super::culprit::reds_needed;
use crate::rerun::{file_pattern, regex_escaped, shell_quoted};

/// The test that turned red.
#[derive(Debug, Clone, Copy)]
pub struct BisectedTest<'t> {
    /// Its file, from where the tests are started.
    pub file_path: &'t str,
    /// Describe titles, outermost first.
    pub suite_path: &'t [String],
    /// Its title.
    pub title: &'t str,
    /// Its browser project; empty for the only one.
    pub browser_project: &'t str,
}

/// `git bisect` from the last pass to the failure. Lines move from commit to
/// commit, so the test is chosen by its file and titles. A commit whose
/// dependencies cannot be installed is skipped. Retries keep chance failures of
/// a flaky test from leading astray.
#[must_use]
pub fn bisect_command(good: &str, bad: &str, test: BisectedTest<'_>, flake_rate: f64) -> String {
    let titles = test.suite_path.iter().map(String::as_str).chain([test.title]);
    let words: Vec<String> = titles.flat_map(str::split_whitespace).map(regex_escaped).collect();
    let mut run = format!("npx playwright test {}", shell_quoted(&file_pattern(test.file_path)));
    if !words.is_empty() {
        // Between describe titles and behind each of them the runner puts blanks and tags.
        run.push_str(&format!(" --grep={}", shell_quoted(&words.join(".*"))));
    }
    if !test.browser_project.is_empty() {
        run.push_str(&format!(" --project={}", shell_quoted(test.browser_project)));
    }
    run.push_str(&format!(" --retries={}", reds_needed(flake_rate) - 1));
    let script = shell_quoted(&format!("npm ci || exit 125; {run}"));
    format!(
        "git bisect start {} {} && git bisect run sh -c {script}; git bisect reset",
        shell_quoted(bad),
        shell_quoted(good)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_test_is_chosen_by_titles_and_every_word_is_quoted() {
        let suites = ["Shop's cart".to_owned()];
        let test = BisectedTest {
            file_path: "e2e/cart.spec.ts",
            suite_path: &suites,
            title: "adds $(rm) (twice)",
            browser_project: "Mobile Safari",
        };
        let command = bisect_command("aaaaaaa", "bbbbbbb", test, 0.1);
        let script = command.split("sh -c ").nth(1).and_then(|rest| rest.strip_suffix("; git bisect reset"));
        // What a shell makes of the one word.
        let script = script.expect("a script").trim_matches('\'').replace(r"'\''", "'");
        assert_eq!(
            script,
            r"npm ci || exit 125; npx playwright test ./e2e/cart.spec.ts --grep='Shop'\''s.*cart.*adds.*\$\(rm\).*\(twice\)' --project='Mobile Safari' --retries=1"
        );
        assert!(command.starts_with("git bisect start bbbbbbb aaaaaaa && git bisect run sh -c '"));
    }
}
