//! Which step failed a test, and which steps of two attempts can be compared:
//! tearing down fails after the test did, and what a worker does once, any of
//! its tests may have.

use std::borrow::Cow;
use std::collections::BTreeSet;

use crate::evidence::{Step, StepCategory};
use crate::text::{cut_str, strip_ansi};

/// Characters of the error of a step that are looked for in that of the test.
const MAX_COMPARED_CHARS: usize = 300;

/// Place of the step that failed the test: the innermost of those with the first
/// of its errors, else the last that failed before tearing down, else the last.
#[must_use]
pub fn failing_step(steps: &[Step], error: Option<&str>) -> Option<usize> {
    let failed = || steps.iter().enumerate().filter(|(_, step)| step.failed);
    let error = error.map(strip_ansi).unwrap_or_default();
    let place_in_error = |step: &Step| {
        let message = strip_ansi(&step.error.as_ref()?.message);
        let message = cut_str(message.trim(), MAX_COMPARED_CHARS);
        if message.is_empty() { None } else { error.find(message) }
    };
    let named = failed().filter_map(|(at, step)| Some((place_in_error(step)?, at)));
    // Of nested steps with one error the innermost comes last.
    let named = named.min_by_key(|&(place, at)| (place, std::cmp::Reverse(at)));
    let teardown = teardown_start(steps);
    named
        .map(|(_, at)| at)
        .or_else(|| failed().map(|(at, _)| at).take_while(|at| *at < teardown).last())
        .or_else(|| failed().map(|(at, _)| at).next_back())
}

/// Titles of the steps of one attempt that another can be compared by. Fixtures
/// and hooks of a worker are left out, with their steps where `other` has no
/// such fixture; so is tearing down. What failed the test is always told.
#[must_use]
pub fn compared_titles<'s>(steps: &'s [Step], other: &[Step], failing: Option<usize>) -> Vec<Cow<'s, str>> {
    let known: BTreeSet<&str> =
        other.iter().filter(|step| is_of_worker(step)).map(|step| &*step.title).collect();
    let teardown = teardown_start(steps);
    let mut titles = Vec::new();
    let mut alone: Option<&Step> = None;
    for (at, step) in steps.iter().enumerate() {
        if alone.is_some_and(|outer| !is_within(step, outer)) {
            alone = None;
        }
        if alone.is_none() && is_of_worker(step) && !known.contains(&*step.title) {
            alone = Some(step);
        }
        let is_compared = at < teardown && alone.is_none() && !is_of_worker(step);
        if is_compared || failing == Some(at) {
            titles.push(step.full_title());
        }
    }
    titles
}

/// Place of the first step that tears down.
fn teardown_start(steps: &[Step]) -> usize {
    let is_teardown = |step: &Step| {
        step.category == StepCategory::Hook && matches!(&*step.title, "After Hooks" | "Worker Cleanup")
    };
    steps.iter().position(is_teardown).unwrap_or(steps.len())
}

fn is_of_worker(step: &Step) -> bool {
    match step.category {
        StepCategory::Fixture => true,
        StepCategory::Hook => step.title.contains("All"),
        _ => false,
    }
}

/// Whether a step happened inside another, which comes before it in the list.
fn is_within(step: &Step, outer: &Step) -> bool {
    let (Some(start), Some(outer_start)) = (step.start_time, outer.start_time) else { return false };
    start >= outer_start && start.saturating_add(step.duration) <= outer_start.saturating_add(outer.duration)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::StepError;

    fn step(title: &str, category: StepCategory, start_time: i64, duration: i64) -> Step {
        let start_time = Some(start_time);
        Step { title: title.to_owned(), category, start_time, duration, ..Step::default() }
    }

    fn failed(title: &str, category: StepCategory, error: &str) -> Step {
        let error = (!error.is_empty()).then(|| StepError { message: error.to_owned() });
        Step { title: title.to_owned(), category, error, failed: true, ..Step::default() }
    }

    fn told(steps: &[Step], error: &str) -> Option<String> {
        failing_step(steps, Some(error)).map(|at| steps[at].title.clone())
    }

    #[test]
    fn the_step_that_failed_the_test_is_told_and_not_its_teardown() {
        use StepCategory::{Action, Assertion, Fixture, Hook, Other};
        let wrong = "Error: expect(locator).toHaveText(expected) failed\n\nExpected: \"1\"";
        let logout = "Error: cannot log out";
        let steps = [
            failed("put a teapot into the cart", Other, wrong),
            step("Click", Action, 0, 1),
            failed("Expect \"toHaveText\"", Assertion, wrong),
            failed("After Hooks", Hook, logout),
            failed("afterEach hook", Hook, logout),
            failed("Fixture \"account\"", Fixture, ""),
        ];
        let colour = format!("\u{1b}[31m{wrong}\u{1b}[39m\n    at a.spec.ts:1:2\n\n{logout}");
        assert_eq!(told(&steps, &colour).as_deref(), Some("Expect \"toHaveText\""));
        assert_eq!(told(&steps[3..], logout).as_deref(), Some("afterEach hook"), "that failed the test");

        let stuck =
            [failed("Click", Action, ""), failed("After Hooks", Hook, ""), failed("Screenshot", Other, "")];
        assert_eq!(told(&stuck, "Test timeout of 1500ms exceeded.").as_deref(), Some("Click"));
        assert_eq!(told(&stuck[1..], "Worker teardown timeout").as_deref(), Some("Screenshot"));
        assert_eq!(told(&[step("Click", Action, 0, 1)], wrong), None);
    }

    #[test]
    fn what_one_worker_did_alone_is_no_part_of_a_comparison() {
        use StepCategory::{Action, Api, Fixture, Hook, Navigation};
        let test =
            |at: i64| [step("Navigate to /", Navigation, at, 30), step("Click Pay", Action, at + 30, 5)];
        let mut first = vec![
            step("Before Hooks", Hook, 100, 300),
            step("Fixture \"browser\"", Fixture, 100, 200),
            step("Launch browser", Api, 101, 190),
            step("Fixture \"account\"", Fixture, 300, 50),
            step("Sign in", Action, 300, 50),
        ];
        first.extend(test(400));
        let mut later = vec![
            step("Before Hooks", Hook, 900, 50),
            step("Fixture \"account\"", Fixture, 900, 50),
            step("Sign in again", Action, 900, 50),
        ];
        later.extend(test(950));
        later.extend([step("After Hooks", Hook, 990, 9), step("Close context", Api, 990, 9)]);
        let titles = |one: &[Step], other: &[Step]| compared_titles(one, other, None).join(" | ");
        assert_eq!(titles(&first, &later), "Before Hooks | Sign in | Navigate to / | Click Pay");
        assert_eq!(titles(&later, &first), "Before Hooks | Sign in again | Navigate to / | Click Pay");
        let failing = compared_titles(&first, &later, Some(2));
        assert_eq!(failing[1], "Launch browser", "it failed the test");
    }
}
