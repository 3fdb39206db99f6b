//! The command that shows whether a repair holds: the failing tests, nothing
//! else, as often as it takes to tell a repair from luck.

use std::collections::BTreeSet;

use callboard_domain::ingest::{
    MAX_PATH_BYTES, MAX_PATH_CHARS, MAX_SUITE_CHARS, MAX_SUITES, MAX_TITLE_CHARS, is_numbered,
};
use callboard_domain::repair::{Series, passes_needed};
use callboard_domain::rerun::{exact_file_pattern, file_pattern, regex_escaped, shell_quoted};

/// Most repetitions of one command.
const MAX_REPEATS: usize = 20;
/// Passes beyond which nobody is told a number.
const MAX_COUNTED: usize = 500;
/// Places of tests named in the commands, as many as a plan lists: a failure
/// counts as repaired once every test that failed for it passes, so what a
/// command leaves out somebody has to run besides.
pub const MAX_TARGETS: usize = 20;
/// What the runner puts behind the title of a suite or test: its tags.
const TAGS: &str = r"(\s+@\S+)*";
/// What stands for a text that is not known, titles and blanks included.
const ANYTHING: &str = r"[\s\S]*";
/// What stands in front of the name of a file: a folder, or the browser project
/// and a blank.
const BEFORE_FILE: &str = r"[\s/\\]";

/// A failing test in one browser project.
#[derive(Debug, Clone, PartialEq)]
pub struct FailingTest {
    /// File, from where the tests are started.
    pub file_path: String,
    /// Line of its declaration as it is now.
    pub line: Option<i64>,
    /// Whether tests that do not fail stand on that line too, as in a loop.
    pub is_line_shared: bool,
    /// Other files that its path alone would find too.
    pub found_too: Vec<String>,
    /// Describe titles, outermost first.
    pub suite_path: Vec<String>,
    /// Its own title.
    pub title: String,
    /// Browser project; empty for the only one.
    pub project: String,
    /// How it did up to now.
    pub series: Series,
}

/// What to run, and what it has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verification {
    /// Commands for a shell, one after the other.
    pub command: String,
    /// How often each test is run.
    pub repeats: usize,
    /// How often each has to pass before the failure counts as repaired, where
    /// that is more; `None` when that is more than anybody waits for.
    pub needed: Option<usize>,
    /// Tests that the commands run, each counted once for all browser projects.
    pub tests: usize,
    /// Tests that they leave out.
    pub left_out: usize,
}

/// What picks tests: the place of one or several, and a title where the place
/// holds others too.
#[derive(PartialEq)]
struct Target {
    place: String,
    title: Option<String>,
}

/// A target with the browser projects in which its tests fail.
struct Failing<'t> {
    target: Target,
    projects: BTreeSet<&'t str>,
}

impl<'t> Failing<'t> {
    /// The projects to name. Without the name of one it may be any: none is.
    fn named(&self) -> BTreeSet<&'t str> {
        if self.projects.contains("") { BTreeSet::new() } else { self.projects.clone() }
    }
}

/// The commands: one for each set of browser projects in which tests fail, the
/// newest failures first; and of each, one for places that hold nothing but
/// failing tests and one for those that a title has to pick. `None` without
/// tests. `proof` is what the passes have to add up to, see [`callboard_domain::repair`].
#[must_use]
pub fn verification(all: &[FailingTest], proof: f64) -> Option<Verification> {
    let mut failing: Vec<Failing<'_>> = Vec::new();
    let mut series = Vec::new();
    let (mut run, mut known) = (BTreeSet::new(), BTreeSet::new());
    for test in all {
        let identity = (&test.file_path, &test.suite_path, &test.title);
        known.insert(identity);
        let target = Target::from_test(test);
        let place = match failing.iter().position(|other| other.target == target) {
            Some(place) => place,
            None if failing.len() == MAX_TARGETS => continue,
            None => {
                failing.push(Failing { target, projects: BTreeSet::new() });
                failing.len() - 1
            }
        };
        failing[place].projects.insert(test.project.as_str());
        run.insert(identity);
        series.push(test.series);
    }
    if failing.is_empty() {
        return None;
    }
    let needed = passes_needed(&series, proof, MAX_COUNTED);
    // What has passed often enough already is run once more all the same.
    let repeats = needed.unwrap_or(MAX_REPEATS).clamp(1, MAX_REPEATS);
    let mut groups: Vec<(BTreeSet<&str>, Vec<Target>)> = Vec::new();
    for one in failing {
        let projects = one.named();
        match groups.iter_mut().find(|(others, _)| *others == projects) {
            Some((_, targets)) => targets.push(one.target),
            None => groups.push((projects, vec![one.target])),
        }
    }
    let mut commands = Vec::new();
    for (projects, targets) in groups {
        let (by_title, by_place): (Vec<Target>, Vec<Target>) =
            targets.into_iter().partition(|target| target.title.is_some());
        let parts = [by_place, by_title].into_iter().filter(|part| !part.is_empty());
        commands.extend(parts.map(|part| command(&part, &projects, repeats)));
    }
    Some(Verification {
        command: commands.join(" && "),
        repeats,
        needed,
        tests: run.len(),
        left_out: known.len() - run.len(),
    })
}

impl Target {
    fn from_test(test: &FailingTest) -> Self {
        let exact =
            exact_file_pattern(&test.file_path, &test.found_too).filter(|_| !test.found_too.is_empty());
        let file = exact.unwrap_or_else(|| file_pattern(&test.file_path));
        let place = match test.line {
            Some(line) => format!("{file}:{line}"),
            None => file,
        };
        let title = (test.line.is_none() || test.is_line_shared).then(|| title_pattern(test));
        Self { place, title }
    }
}

fn command(targets: &[Target], projects: &BTreeSet<&str>, repeats: usize) -> String {
    let mut places: Vec<String> = Vec::new();
    for target in targets {
        let place = shell_quoted(&target.place);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let mut command = format!("npx playwright test {}", places.join(" "));
    let titles: Vec<&str> = targets.iter().filter_map(|target| target.title.as_deref()).collect();
    match titles.as_slice() {
        [] => {}
        [only] => command.push_str(&format!(" --grep={}", shell_quoted(&format!("/{only}$/")))),
        several => {
            command.push_str(&format!(" --grep={}", shell_quoted(&format!("/({})$/", several.join("|")))))
        }
    }
    for project in projects {
        command.push_str(&format!(" --project={}", shell_quoted(project)));
    }
    command.push_str(&format!(" --repeat-each={repeats} --retries=0"));
    command
}

/// What finds a test in what the runner holds against `--grep`, which between
/// slashes does not take a letter for its capital: browser
/// project, file, describe titles and title, each with its tags, with blanks
/// between. It begins with the name of the file, so that no longer title ends
/// with it.
fn title_pattern(test: &FailingTest) -> String {
    let path = test.file_path.as_str();
    let file = path.rsplit(['/', '\\']).next().unwrap_or_default();
    let mut pattern = format!("{BEFORE_FILE}{}", words_pattern(file, is_path_cut(path)));
    let suites: &[String] = if is_numbered(&test.suite_path) {
        // Where such a test stands was not sent.
        pattern.push_str(ANYTHING);
        &[]
    } else {
        &test.suite_path
    };
    for suite in suites.iter().filter(|suite| !suite.trim().is_empty()) {
        pattern.push_str(r"\s+");
        pattern.push_str(&words_pattern(suite, is_cut(suite, MAX_SUITE_CHARS)));
    }
    if suites.len() >= MAX_SUITES {
        pattern.push_str(ANYTHING);
    }
    if !test.title.trim().is_empty() {
        pattern.push_str(r"\s+");
        pattern.push_str(&words_pattern(&test.title, is_cut(&test.title, MAX_TITLE_CHARS)));
    }
    pattern
}

/// Whether a stored text may be the beginning of a longer one.
fn is_cut(text: &str, most: usize) -> bool {
    text.chars().count() >= most
}

/// [`is_cut`] for a path: it is cut between characters, of four bytes at most.
fn is_path_cut(path: &str) -> bool {
    is_cut(path, MAX_PATH_CHARS) || path.len() > MAX_PATH_BYTES - 4
}

/// One title and the tags behind it; of one that is cut, whatever follows. A
/// blank may be any: a line break cannot stand in a command.
fn words_pattern(title: &str, is_cut: bool) -> String {
    let words: Vec<String> = title.split_whitespace().map(regex_escaped).collect();
    let words = words.join(r"\s+").replace(char::is_control, ".");
    format!("{words}{}", if is_cut { ANYTHING } else { TAGS })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROOF: f64 = 3.0;

    fn test(file: &str, line: Option<i64>, project: &str, (failures, before): (usize, usize)) -> FailingTest {
        let series = Series { browser_slot: 0, failures, before, clean: 0 };
        FailingTest {
            file_path: file.to_owned(),
            line,
            is_line_shared: false,
            found_too: Vec::new(),
            suite_path: vec!["Shop".to_owned()],
            title: "pays (fast)".to_owned(),
            project: project.to_owned(),
            series,
        }
    }

    fn command_of(tests: &[FailingTest]) -> String {
        verification(tests, PROOF).expect("there are tests").command
    }

    #[test]
    fn tests_are_picked_by_line_once_for_all_browser_projects() {
        let tests = [
            test("tests/pay.spec.ts", Some(7), "chromium", (10, 10)),
            test("tests/pay.spec.ts", Some(7), "Mobile Safari", (10, 10)),
        ];
        let found = verification(&tests, PROOF).expect("there are tests");
        assert_eq!(
            found.command,
            "npx playwright test ./tests/pay.spec.ts:7 --project='Mobile Safari' --project=chromium \
             --repeat-each=1 --retries=0"
        );
        assert_eq!((found.tests, found.left_out), (1, 0));
        let unnamed = [tests[0].clone(), test("tests/pay.spec.ts", Some(7), "", (10, 10))];
        assert!(!command_of(&unnamed).contains("--project"));
        assert_eq!(verification(&[], PROOF), None);
    }

    #[test]
    fn a_test_is_run_only_where_it_fails() {
        let tests = [
            test("a.spec.ts", Some(1), "webkit", (10, 10)),
            test("b.spec.ts", Some(2), "chromium", (10, 10)),
            test("c.spec.ts", Some(3), "webkit", (10, 10)),
            test("d.spec.ts", Some(4), "webkit", (10, 10)),
            test("d.spec.ts", Some(4), "chromium", (10, 10)),
            test("o'ne [x].spec.ts", Some(5), "", (10, 10)),
        ];
        let ending = "--repeat-each=1 --retries=0";
        assert_eq!(
            command_of(&tests),
            format!(
                "npx playwright test ./a.spec.ts:1 ./c.spec.ts:3 --project=webkit {ending} && \
                 npx playwright test ./b.spec.ts:2 --project=chromium {ending} && \
                 npx playwright test ./d.spec.ts:4 --project=chromium --project=webkit {ending} && \
                 npx playwright test './o'\\''ne \\[x\\].spec.ts:5' {ending}"
            )
        );
    }

    #[test]
    fn a_title_picks_where_a_line_does_not() {
        let without_line = test("tests/pay.spec.ts", None, "", (10, 10));
        let pattern = r"[\s/\\]pay\.spec\.ts(\s+@\S+)*\s+Shop(\s+@\S+)*\s+pays\s+\(fast\)(\s+@\S+)*";
        let ending = "--repeat-each=2 --retries=0";
        assert_eq!(
            command_of(std::slice::from_ref(&without_line)),
            format!("npx playwright test ./tests/pay.spec.ts --grep='/{pattern}$/' {ending}")
        );
        let shared = FailingTest {
            is_line_shared: true,
            suite_path: vec![],
            title: "adds 1.5\n\tand\u{7}2".to_owned(),
            ..test("b.ts", Some(9), "", (10, 10))
        };
        let other = r"[\s/\\]b\.ts(\s+@\S+)*\s+adds\s+1\.5\s+and.2(\s+@\S+)*";
        let alone = test("c.ts", Some(3), "", (10, 10));
        let ending = "--repeat-each=1 --retries=0";
        assert_eq!(
            command_of(&[without_line, shared, alone]),
            format!(
                "npx playwright test ./c.ts:3 {ending} && \
                 npx playwright test ./tests/pay.spec.ts ./b.ts:9 --grep='/({pattern}|{other})$/' {ending}"
            )
        );
    }

    #[test]
    fn files_that_a_path_finds_too_are_left_out() {
        let found_too = vec!["e2e/tests/pay.spec.ts".to_owned()];
        let test = FailingTest { found_too, ..test("tests/pay.spec.ts", Some(7), "", (10, 10)) };
        assert_eq!(
            command_of(&[test]),
            r"npx playwright test '/(?<!/e2e)/tests/pay\.spec\.ts$/:7' --repeat-each=2 --retries=0"
        );
    }

    #[test]
    fn a_title_says_no_more_than_what_is_known_of_it() {
        let pattern = |suite_path: Vec<String>, title: &str| {
            title_pattern(&FailingTest {
                suite_path,
                title: title.to_owned(),
                ..test("a.ts", None, "", (1, 1))
            })
        };
        let file = r"[\s/\\]a\.ts(\s+@\S+)*";
        let long = "x".repeat(MAX_SUITE_CHARS);
        assert_eq!(pattern(vec![long.clone()], "pays"), format!(r"{file}\s+{long}[\s\S]*\s+pays(\s+@\S+)*"));
        assert_eq!(pattern(vec!["S".to_owned()], &long), format!(r"{file}\s+S(\s+@\S+)*\s+{long}(\s+@\S+)*"));
        let deep = vec!["S".to_owned(); MAX_SUITES];
        assert!(pattern(deep, "pays").ends_with(r"\s+S(\s+@\S+)*[\s\S]*\s+pays(\s+@\S+)*"));
        assert_eq!(pattern(vec!["#2".to_owned()], "pays"), format!(r"{file}[\s\S]*\s+pays(\s+@\S+)*"));
        assert_eq!(
            pattern(vec!["#two".to_owned()], "pays"),
            format!(r"{file}\s+#two(\s+@\S+)*\s+pays(\s+@\S+)*")
        );
    }

    #[test]
    fn tests_on_one_line_are_one_target() {
        let of_loop = |number: i64| FailingTest {
            title: format!("adds {number}"),
            ..test("a.ts", Some(5), "", (10, 10))
        };
        let all: Vec<FailingTest> = (0..25).map(of_loop).collect();
        let found = verification(&all, PROOF).expect("there are tests");
        assert!(found.command.starts_with("npx playwright test ./a.ts:5 --repeat-each"), "{}", found.command);
        assert_eq!((found.tests, found.left_out), (25, 0));
        let some: Vec<FailingTest> =
            all.into_iter().map(|test| FailingTest { is_line_shared: true, ..test }).collect();
        let found = verification(&some, PROOF).expect("there are tests");
        assert_eq!((found.command.matches("adds").count(), found.tests, found.left_out), (20, 20, 5));
    }

    #[test]
    fn rare_failures_take_more_passes() {
        let repeats = |history| {
            let found = verification(&[test("a", Some(1), "", history)], PROOF).expect("a test");
            (found.repeats, found.needed)
        };
        assert_eq!(repeats((30, 30)), (1, Some(1)));
        assert_eq!(repeats((10, 10)), (2, Some(2)));
        assert_eq!(repeats((6, 30)), (20, Some(20)));
        assert_eq!(repeats((1, 30)), (20, Some(149)));
        let titled =
            |line: i64| FailingTest { title: format!("test {line}"), ..test("a", Some(line), "", (10, 10)) };
        let found = verification(&(1..=22).map(titled).collect::<Vec<_>>(), PROOF).expect("tests");
        assert_eq!((found.repeats, found.tests, found.left_out), (1, 20, 2));
        assert!(command_of(&[test("--x; rm", Some(1), "", (1, 1))]).contains("'./--x; rm:1'"));
    }
}
