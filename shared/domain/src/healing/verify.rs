//! The command that shows whether a repair holds: the failing tests, nothing
//! else, as often as it takes to tell a repair from luck.

/// What the passes have to add up to, in natural logarithms: a chance of one
/// in twenty that they are luck.
const ENOUGH: f64 = 3.0;
/// Most repetitions.
const MAX_REPEATS: u32 = 20;
/// Tests named in a command.
const MAX_TARGETS: usize = 5;

/// A failing test.
#[derive(Debug, Clone, PartialEq)]
pub struct FailingTest {
    /// File, from where the tests are started.
    pub file_path: String,
    /// Line of its declaration.
    pub line: Option<i64>,
    /// Its describe titles and its own.
    pub titles: Vec<String>,
    /// Browser project; empty for the only one.
    pub project: String,
    /// Executions that failed among the last decided ones, and how many those were.
    pub history: (u32, u32),
}

/// What to run, and what it has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Commands for a shell, one after the other.
    pub command: String,
    /// How often each test has to pass in a row.
    pub repeats: u32,
    /// Tests that the command runs.
    pub tests: usize,
}

/// The commands: one for each browser project. `None` without tests.
#[must_use]
pub fn verification(tests: &[FailingTest]) -> Option<Verification> {
    let tests = &tests[..tests.len().min(MAX_TARGETS)];
    if tests.is_empty() {
        return None;
    }
    let repeats = repeats(tests);
    let mut projects: Vec<&str> = Vec::new();
    for test in tests {
        if !projects.contains(&test.project.as_str()) {
            projects.push(&test.project);
        }
    }
    let mut commands = Vec::new();
    for project in projects {
        let of_project = || tests.iter().filter(|test| test.project == project);
        let by_line: Vec<String> =
            of_project().filter_map(|test| Some(format!("{}:{}", test.file_path, test.line?))).collect();
        if !by_line.is_empty() {
            commands.push(command(&by_line, None, project, repeats));
        }
        // A title picks a test where no line does; it would pick too much of the other files.
        for test in of_project().filter(|test| test.line.is_none()) {
            let title = escaped(&test.titles.join(" "));
            commands.push(command(std::slice::from_ref(&test.file_path), Some(&title), project, repeats));
        }
    }
    Some(Verification { command: commands.join(" && "), repeats, tests: tests.len() })
}

/// Passes needed: each speaks as much for the repair as the test failed before.
fn repeats(tests: &[FailingTest]) -> u32 {
    let per_pass: f64 = tests
        .iter()
        .map(|test| {
            let (failed, runs) = test.history;
            let rate = ((f64::from(failed) + 0.5) / (f64::from(runs) + 1.0)).clamp(0.02, 0.98);
            -(1.0 - rate).ln()
        })
        .sum();
    let needed = (ENOUGH / per_pass).ceil().clamp(1.0, f64::from(MAX_REPEATS));
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped just before")]
    let needed = needed as u32;
    needed
}

fn command(targets: &[String], title: Option<&str>, project: &str, repeats: u32) -> String {
    // Files are regular expressions to the runner.
    let targets: Vec<String> = targets.iter().map(|target| shell(&escaped(target))).collect();
    let mut command = format!("npx playwright test {}", targets.join(" "));
    if let Some(title) = title {
        command.push_str(&format!(" --grep={}", shell(title)));
    }
    if !project.is_empty() {
        command.push_str(&format!(" --project={}", shell(project)));
    }
    command.push_str(&format!(" --repeat-each={repeats} --retries=0"));
    command
}

/// A text as a regular expression that finds it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        if matches!(char, '\\' | '^' | '$' | '*' | '+' | '?' | '(' | ')' | '[' | ']' | '{' | '}' | '|') {
            out.push('\\');
        }
        out.push(char);
    }
    out
}

/// A word for a shell: quoted when it holds anything a shell could read.
fn shell(word: &str) -> String {
    let word: String = word.chars().filter(|char| !char.is_control()).collect();
    let is_plain = |char: char| {
        char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '/' | '@' | ':' | '-' | ',' | '=')
    };
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word;
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn test(file: &str, line: Option<i64>, project: &str, history: (u32, u32)) -> FailingTest {
        let titles = vec!["Shop".to_owned(), "pays (fast)".to_owned()];
        FailingTest { file_path: file.into(), line, titles, project: project.into(), history }
    }

    #[test]
    fn tests_are_picked_by_line_or_title_and_by_project() {
        let tests = [
            test("tests/pay.spec.ts", Some(7), "chromium", (10, 10)),
            test("tests/o'ne [x].spec.ts", Some(3), "chromium", (10, 10)),
            test("tests/pay.spec.ts", None, "Mobile Safari", (10, 10)),
        ];
        let found = verification(&tests).expect("there are tests");
        assert_eq!(
            found.command,
            "npx playwright test tests/pay.spec.ts:7 'tests/o'\\''ne \\[x\\].spec.ts:3' --project=chromium --repeat-each=1 --retries=0 \
             && npx playwright test tests/pay.spec.ts --grep='Shop pays \\(fast\\)' --project='Mobile Safari' --repeat-each=1 --retries=0"
        );
        assert_eq!(verification(&[]), None);
    }

    #[test]
    fn rare_failures_take_more_passes() {
        let repeats = |history| verification(&[test("a", Some(1), "", history)]).map(|found| found.repeats);
        assert_eq!(repeats((10, 10)), Some(1));
        assert_eq!(repeats((2, 10)), Some(12));
        assert_eq!(repeats((0, 30)), Some(20));
        assert!(
            verification(&[test("--x; rm", Some(1), "", (1, 1))])
                .is_some_and(|found| found.command.contains("'--x; rm:1'"))
        );
    }
}
