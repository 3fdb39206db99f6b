//! The text of the comment and of the status, made of the facts of a run.

use super::markdown::{code, link, sentence};
use crate::text::{cut, cut_str};
use crate::totals::Totals;

/// Characters of parts that come from tests, branches and people.
const MAX_NAME_CHARS: usize = 200;
const MAX_CAUSE_CHARS: usize = 400;
const MAX_LOCATOR_CHARS: usize = 300;
const MAX_OWNER_CHARS: usize = 100;
/// Violations of a gate that are listed.
const MAX_VIOLATIONS: usize = 10;
/// Characters of the text of a status; GitHub takes no more.
const MAX_STATUS_CHARS: usize = 140;
/// Digits of a commit.
const SHA_DIGITS: usize = 8;
/// Bytes kept for the heading of a section and the line that says how much was left out.
const SECTION_RESERVE: usize = 200;

/// Who reads the comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// People of the repository.
    Repository,
    /// People of a fork too, who may see nothing else of the project: counts and the verdict only.
    Fork,
}

/// A test and where it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedTest {
    /// Describe titles and title.
    pub title: String,
    /// Its file.
    pub file: String,
    /// Browser project, where the run has several.
    pub browser: Option<String>,
    /// Page of its execution.
    pub url: String,
}

/// A test that fails and did not before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewFailure {
    /// The test.
    pub test: NamedTest,
    /// Why it fails, in one sentence with values in backticks.
    pub cause: Option<String>,
    /// Who owns it.
    pub owner: Option<String>,
    /// A locator that works instead.
    pub locator: Option<String>,
    /// Other new failures with the same cause that are not listed by themselves.
    pub same_cause: i64,
}

/// Several tests that fail for one cause.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Incident {
    /// The cause.
    pub cause: String,
    /// Page of its failure cluster.
    pub url: String,
    /// Tests of the run that fail for it.
    pub tests: i64,
}

/// A cause that was known before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// What it is called.
    pub name: String,
    /// Page of its failure cluster.
    pub url: String,
    /// Tests of the run that fail for it.
    pub tests: i64,
}

/// What a gate says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GateVerdict {
    /// Name of its policy.
    pub name: String,
    /// Whether nothing is violated.
    pub passed: bool,
    /// What is violated, one sentence each.
    pub violations: Vec<String>,
}

/// Everything a comment and a status are made of. Lists may be shorter than their counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FeedbackFacts {
    /// Name of the project.
    pub project: String,
    /// Run.
    pub run: i64,
    /// Its page.
    pub run_url: String,
    /// How it ended: `failed`.
    pub ended: String,
    /// Whether it passed.
    pub passed: bool,
    /// Why it is not green beyond its failed tests.
    pub reason: Option<String>,
    /// Why its numbers are not those of the whole suite.
    pub partial: Option<String>,
    /// The run that it repeats.
    pub rerun_of: Option<i64>,
    /// Commit.
    pub commit: Option<String>,
    /// Branch.
    pub branch: Option<String>,
    /// Environment.
    pub environment: Option<String>,
    /// Counts of tests.
    pub totals: Totals,
    /// What the default gate says; `None` where the project has none.
    pub gate: Option<GateVerdict>,
    /// Whether something is known that the run is compared with.
    pub is_compared: bool,
    /// Most of it failed at the same time.
    pub is_mass_failure: bool,
    /// New failures.
    pub new_failures: (Vec<NewFailure>, i64),
    /// Causes of several failures.
    pub incidents: (Vec<Incident>, i64),
    /// Known causes that fail tests again, and the tests they fail.
    pub known: (Vec<Cause>, i64),
    /// Failed tests in quarantine.
    pub quarantined: i64,
    /// Tests that passed after a failed attempt.
    pub flaky: (Vec<NamedTest>, i64),
    /// Tests that failed before and pass now.
    pub fixed: (Vec<NamedTest>, i64),
}

impl FeedbackFacts {
    /// What the gate says, else how the run ended.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.gate.as_ref().map_or(self.passed, |gate| gate.passed)
    }

    fn verdict(&self) -> String {
        let failed = self.totals.failed_tests;
        match self.new_failures.1 {
            0 if failed > 0 => format!("no new failures, {}", counted(failed, "known failure")),
            0 if self.passed => counted(self.totals.passed_tests, "test") + " passed",
            0 => self.ended.clone(),
            new => counted(new, "new failure"),
        }
    }
}

fn counted(count: i64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The status of a commit: whether it is a success, and its text.
#[must_use]
pub fn status(facts: &FeedbackFacts) -> (bool, String) {
    let gate = facts.gate.as_ref().filter(|gate| !gate.passed);
    let gate = gate.map(|gate| format!("Gate failed: {}", counted(violations(gate), "violation")));
    let verdict = facts.verdict();
    let partial = facts.partial.as_ref().map(|_| "partial run".to_owned());
    let parts = gate.into_iter().chain([verdict, facts.totals.in_words()]).chain(partial);
    let text = parts.collect::<Vec<_>>().join(" · ");
    (facts.is_success(), cut(text, MAX_STATUS_CHARS))
}

fn violations(gate: &GateVerdict) -> i64 {
    i64::try_from(gate.violations.len()).unwrap_or(i64::MAX)
}

/// The comment, at most `max_bytes` long: what is new first. What does not fit is counted.
#[must_use]
pub fn comment(facts: &FeedbackFacts, audience: Audience, max_bytes: usize) -> String {
    let body = match audience {
        Audience::Fork => head(&public_part(facts)),
        Audience::Repository => head(facts),
    };
    let mut text = Text { body, max_bytes };
    if audience == Audience::Fork {
        text.body
            .push_str("\nTests and causes are shown in Callboard only: this request comes from a fork.\n");
        return text.body;
    }
    let (new, new_count) = &facts.new_failures;
    text.section(
        "New failures",
        *new_count,
        new.iter().map(|failure| (1 + failure.same_cause, new_failure(failure))),
    );
    let (incidents, count) = &facts.incidents;
    let shown = incidents.iter().map(|incident| (1, cause(&incident.cause, &incident.url, incident.tests)));
    text.section("Incidents", *count, shown);
    let (known, count) = &facts.known;
    text.section(
        "Known failures",
        *count,
        known.iter().map(|one| (one.tests, cause(&one.name, &one.url, one.tests))),
    );
    let (flaky, count) = &facts.flaky;
    text.section("Flaky", *count, flaky.iter().map(|test| (1, test_line(test))));
    let (fixed, count) = &facts.fixed;
    text.section("Fixed", *count, fixed.iter().map(|test| (1, test_line(test))));
    let rest = [
        (facts.quarantined, "quarantined test failed", "quarantined tests failed"),
        (facts.totals.did_not_run_tests, "test did not run", "tests did not run"),
        (facts.totals.interrupted_tests, "test was interrupted", "tests were interrupted"),
    ];
    for (count, one, more) in rest.into_iter().filter(|(count, ..)| *count > 0) {
        text.body.push_str(&format!("\n{count} {}.\n", if count == 1 { one } else { more }));
    }
    if !facts.is_compared && facts.totals.failed_tests > 0 {
        text.body.push_str("\nNo earlier run to compare with: what fails here may have failed before.\n");
    }
    text.body
}

/// What everybody who reads a public request may know: counts and verdicts, no text of the run or its settings.
fn public_part(facts: &FeedbackFacts) -> FeedbackFacts {
    let gate =
        facts.gate.clone().map(|gate| GateVerdict { name: String::new(), violations: Vec::new(), ..gate });
    FeedbackFacts { reason: None, environment: None, gate, ..facts.clone() }
}

fn head(facts: &FeedbackFacts) -> String {
    let mark = if facts.is_success() { "✅" } else { "❌" };
    let mut head = format!("### {mark} {}: {}\n\n", code(&facts.project, MAX_NAME_CHARS), facts.verdict());
    let run = link(&format!("Run {}", facts.run), &facts.run_url);
    head.push_str(&format!("{run} {}: {}", facts.ended, facts.totals.in_words()));
    if let Some(commit) = &facts.commit {
        // All of its digits would be masked as a secret.
        head.push_str(&format!(" · commit {}", code(cut_str(commit, SHA_DIGITS), SHA_DIGITS)));
    }
    if let Some(branch) = &facts.branch {
        head.push_str(&format!(" · branch {}", code(branch, MAX_NAME_CHARS)));
    }
    if let Some(environment) = &facts.environment {
        head.push_str(&format!(" · {}", code(environment, MAX_NAME_CHARS)));
    }
    if let Some(run) = facts.rerun_of {
        head.push_str(&format!(" · re-run of run {run}"));
    }
    head.push('\n');
    if let Some(partial) = &facts.partial {
        head.push_str(&format!("\n**Partial run:** {partial}\n"));
    }
    if let Some(reason) = &facts.reason {
        head.push_str(&format!("\n{}\n", sentence(reason, MAX_CAUSE_CHARS)));
    }
    if facts.is_mass_failure {
        head.push_str(
            "\nMost tests failed together, which points to an outage rather than to single tests.\n",
        );
    }
    if let Some(gate) = &facts.gate {
        let word = if gate.passed { "passed" } else { "failed" };
        let name = if gate.name.is_empty() { String::new() } else { code(&gate.name, MAX_NAME_CHARS) + " " };
        head.push_str(&format!("\nGate {name}**{word}**"));
        head.push_str(if gate.violations.is_empty() { ".\n" } else { ":\n\n" });
        for violation in gate.violations.iter().take(MAX_VIOLATIONS) {
            head.push_str(&format!("- {}\n", sentence(violation, MAX_CAUSE_CHARS)));
        }
        if gate.violations.len() > MAX_VIOLATIONS {
            head.push_str(&format!("- and {} more\n", gate.violations.len() - MAX_VIOLATIONS));
        }
    }
    head
}

/// Some renderers end a link at a bracket inside of code, so no text of a test is part of one.
fn test_line(test: &NamedTest) -> String {
    let (title, file) = (code(&test.title, MAX_NAME_CHARS), code(&test.file, MAX_NAME_CHARS));
    let browser = test.browser.as_ref().map(|browser| format!(", {}", code(browser, MAX_NAME_CHARS)));
    format!("- {title} in {file}{} ({})\n", browser.unwrap_or_default(), link("result", &test.url))
}

fn new_failure(failure: &NewFailure) -> String {
    let mut line = test_line(&failure.test);
    if let Some(cause) = &failure.cause {
        line.push_str(&format!("    - {}\n", sentence(cause, MAX_CAUSE_CHARS)));
    }
    if let Some(locator) = &failure.locator {
        line.push_str(&format!("    - This locator works: {}\n", code(locator, MAX_LOCATOR_CHARS)));
    }
    if let Some(owner) = &failure.owner {
        line.push_str(&format!("    - Owner: {}\n", code(owner, MAX_OWNER_CHARS)));
    }
    if failure.same_cause > 0 {
        let more = counted(failure.same_cause, "more new failure");
        line.push_str(&format!("    - {more} with the same cause\n"));
    }
    line
}

fn cause(name: &str, url: &str, tests: i64) -> String {
    format!("- {}: {} ({})\n", code(name, MAX_CAUSE_CHARS), counted(tests, "test"), link("failures", url))
}

/// A comment that grows up to its limit.
struct Text {
    body: String,
    max_bytes: usize,
}

impl Text {
    /// A list with its whole count. Each line says how many of these it stands for; what does not fit is counted.
    fn section(&mut self, title: &str, count: i64, lines: impl Iterator<Item = (i64, String)>) {
        if count == 0 || self.body.len() + SECTION_RESERVE > self.max_bytes {
            return;
        }
        self.body.push_str(&format!("\n#### {title} ({count})\n\n"));
        let mut left = count;
        for (weight, line) in lines {
            if self.body.len() + line.len() + SECTION_RESERVE > self.max_bytes {
                break;
            }
            self.body.push_str(&line);
            left -= weight;
        }
        if left > 0 {
            self.body.push_str(&format!("- and {left} more\n"));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn test(title: &str) -> NamedTest {
        NamedTest {
            title: title.to_owned(),
            file: "tests/checkout.spec.ts".to_owned(),
            browser: Some("chromium".to_owned()),
            url: "https://callboard.example/test-run-cases/9".to_owned(),
        }
    }

    fn facts() -> FeedbackFacts {
        FeedbackFacts {
            project: "shop".to_owned(),
            run: 57,
            run_url: "https://callboard.example/test-runs/57".to_owned(),
            ended: "failed".to_owned(),
            passed: false,
            reason: None,
            partial: Some("2 of 3 shards have reported.".to_owned()),
            rerun_of: None,
            commit: Some("0a1b2c3d4e5f60718293a4b5c6d7e8f901234567".to_owned()),
            branch: Some("feature/@team".to_owned()),
            environment: None,
            totals: Totals {
                total_tests: 9,
                passed_tests: 4,
                failed_tests: 3,
                did_not_run_tests: 2,
                flaky_tests: 1,
                ..Totals::default()
            },
            gate: Some(GateVerdict {
                name: "strict".to_owned(),
                passed: false,
                violations: vec!["3 tests failed; at most 0 may.".to_owned()],
            }),
            is_compared: true,
            is_mass_failure: false,
            new_failures: (
                vec![NewFailure {
                    test: test("checkout › pays `now`"),
                    cause: Some("Locator `getByText('a|b')` was not found. No failed requests.".to_owned()),
                    owner: Some("@acme/web".to_owned()),
                    locator: Some("getByRole('button')".to_owned()),
                    same_cause: 1,
                }],
                2,
            ),
            incidents: (Vec::new(), 0),
            known: (
                vec![Cause { name: "TimeoutError".to_owned(), url: "https://c/1".to_owned(), tests: 1 }],
                1,
            ),
            quarantined: 0,
            flaky: (vec![test("ships")], 1),
            fixed: (Vec::new(), 0),
        }
    }

    #[test]
    fn a_comment_says_what_is_new_first() {
        let expected = "### ❌ `shop`: 2 new failures\n\n\
            [Run 57](https://callboard.example/test-runs/57) failed: 3 failed, 1 flaky, 3 passed, 2 did not run \
            · commit `0a1b2c3d` · branch `feature/@team`\n\n\
            **Partial run:** 2 of 3 shards have reported.\n\n\
            Gate `strict` **failed**:\n\n- 3 tests failed; at most 0 may.\n\n\
            #### New failures (2)\n\n\
            - `` checkout › pays `now` `` in `tests/checkout.spec.ts`, `chromium` ([result](https://callboard.example/test-run-cases/9))\n    \
            - Locator `getByText('a|b')` was not found. No failed requests.\n    \
            - This locator works: `getByRole('button')`\n    - Owner: `@acme/web`\n    \
            - 1 more new failure with the same cause\n\n\
            #### Known failures (1)\n\n- `TimeoutError`: 1 test ([failures](https://c/1))\n\n\
            #### Flaky (1)\n\n\
            - `ships` in `tests/checkout.spec.ts`, `chromium` ([result](https://callboard.example/test-run-cases/9))\n\n\
            2 tests did not run.\n";
        assert_eq!(comment(&facts(), Audience::Repository, 60_000), expected);
        let (is_success, text) = status(&facts());
        assert!(!is_success);
        assert_eq!(
            text,
            "Gate failed: 1 violation · 2 new failures · 3 failed, 1 flaky, 3 passed, 2 did not run · partial run"
        );
    }

    #[test]
    fn a_fork_learns_counts_and_the_verdict() {
        let text = comment(&facts(), Audience::Fork, 60_000);
        assert!(text.contains("2 new failures") && text.contains("3 failed"), "{text}");
        for secret in ["checkout", "pays", "getBy", "@acme", "TimeoutError", "ships"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }

    /// What a hostile test, branch, owner and locator can say; rendered by `tests/messages`.
    #[test]
    fn texts_are_no_markup() {
        let hostile = "](https://evil.example) <img src=x onerror=alert(1)> @team #12 !5 GH-1 **b** `c` ~~~ | \
            https://evil.example www.evil.example deadbeefcafe :tada: [x]: <y> \u{202e}reversed\u{2066}\n\n# heading\n/close\n```";
        let mut facts = facts();
        facts.project = hostile.to_owned();
        facts.branch = Some(hostile.to_owned());
        facts.environment = Some(hostile.to_owned());
        facts.commit = Some(hostile.to_owned());
        facts.reason = Some(hostile.to_owned());
        facts.gate = Some(GateVerdict {
            name: hostile.to_owned(),
            passed: false,
            violations: vec![format!("Tests with `{hostile}` failed."), hostile.to_owned()],
        });
        let test = NamedTest { file: hostile.to_owned(), browser: Some(hostile.to_owned()), ..test(hostile) };
        let failure = NewFailure {
            test: test.clone(),
            cause: Some(format!("Locator `{hostile}` was not found. {hostile}")),
            owner: Some(hostile.to_owned()),
            locator: Some(hostile.to_owned()),
            same_cause: 0,
        };
        facts.new_failures = (vec![failure], 1);
        let cause = Cause {
            name: hostile.to_owned(),
            url: "https://callboard.example/failure-clusters/3".to_owned(),
            tests: 2,
        };
        facts.incidents = (vec![Incident { cause: hostile.to_owned(), url: cause.url.clone(), tests: 3 }], 1);
        facts.known = (vec![cause], 2);
        facts.flaky = (vec![test.clone()], 1);
        facts.fixed = (vec![test], 1);
        insta::assert_snapshot!(comment(&facts, Audience::Repository, 60_000));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn a_comment_stays_below_its_limit(title in "\\PC{0,300}", cause in "(\\PC|`){0,600}", count in 0_usize..60) {
            let mut facts = facts();
            let failure = NewFailure { test: test(&title), cause: Some(cause), ..facts.new_failures.0[0].clone() };
            facts.new_failures = (vec![failure; count], 500);
            facts.flaky = (vec![test(&title); 60], 400);
            let text = comment(&facts, Audience::Repository, 30_000);
            prop_assert!(text.len() <= 30_000, "{}", text.len());
            prop_assert!(text.contains("more\n"));
            // Every line of ours begins as we write it, so no line is a command or a heading of somebody else.
            let begins = ["### ", "#### ", "- ", "    - ", "[Run ", "**Partial", "Gate ", "2 tests", ""];
            prop_assert!(text.lines().all(|line| line.is_empty() || begins[..8].iter().any(|begin| line.starts_with(begin))));
        }
    }
}
