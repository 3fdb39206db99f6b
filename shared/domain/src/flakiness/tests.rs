//! The filter against an independent slow implementation, and its laws.

use std::io::Read as _;

use flate2::read::GzDecoder;
use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::status::Outcome;
use crate::test_state::RecentOutcome;

const EXPECTED: &[u8] = include_bytes!("../../../../tests/data/flakiness/expected.jsonl.gz");

fn expected() -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(EXPECTED).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn outputs_equal_those_of_the_slow_implementation() {
    let cases = expected();
    assert!(cases.len() > 400, "{} histories", cases.len());
    for (at, case) in cases.iter().enumerate() {
        let skipped: Vec<u64> = case[2].as_array().unwrap().iter().map(|run| run.as_u64().unwrap()).collect();
        let mut filter = Filter::default();
        for (number, run) in (0_u64..).zip(case[1].as_array().unwrap()) {
            let code = if run[0] == 1 { Code::New } else { Code::Same };
            if skipped.contains(&number) {
                filter.skip(code);
            } else {
                filter.run(code, run[1].as_str().unwrap().chars().map(|attempt| attempt == 'F'));
            }
        }
        let found = filter.posterior();
        let numbers = [found.probability, found.rate, found.low, found.high, found.broken];
        for (output, number) in numbers.iter().enumerate() {
            let wanted = case[3 + output].as_f64().unwrap();
            assert!((number - wanted).abs() < 1e-6, "output {output} of history {at}: {number} for {wanted}");
        }
        assert_eq!(found.is_flaky, case[8].as_bool().unwrap(), "history {at}");
    }
}

#[test]
fn a_recent_history_is_judged_like_its_attempts() {
    for case in expected().iter().filter(|case| case[0] == "recent") {
        let runs = case[1].as_array().unwrap();
        let recent: Vec<RecentOutcome> = runs
            .iter()
            .map(|run| match run[1].as_str().unwrap() {
                "P" => outcome(Outcome::Passed),
                "F" => outcome(Outcome::Failed),
                _ => outcome(Outcome::Flaky),
            })
            .collect();
        let window = Window { runs: 200, failures: true };
        match assess(recent.iter().copied(), window) {
            Some(found) => {
                let wanted = case[3].as_f64().unwrap();
                assert!((found.posterior.probability - wanted).abs() < 1e-6);
                assert_eq!(found.posterior.is_flaky, case[8].as_bool().unwrap());
            }
            None => assert!(recent.iter().all(|run| run.outcome == Outcome::Passed)),
        }
    }
}

#[test]
fn attempts_and_commits_are_judged_exactly() {
    for case in expected().iter().filter(|case| case[0] != "recent") {
        let skipped: Vec<u64> = case[2].as_array().unwrap().iter().map(|run| run.as_u64().unwrap()).collect();
        let runs = case[1].as_array().unwrap();
        // A commit for every run that tested new code.
        let mut commits: Vec<String> = Vec::new();
        for run in runs {
            let number = commits.last().map_or(0, |last| last.parse().unwrap()) + i32::from(run[0] == 1);
            commits.push(number.to_string());
        }
        let exact = (0_u64..).zip(runs).zip(&commits).map(|((number, run), commit)| ExactRun {
            commit: Some(commit),
            tries: run[1].as_str().unwrap().chars().map(|attempt| attempt == 'F').collect(),
            has_failed: run[1].as_str().unwrap().ends_with('F'),
            is_mass_failure: skipped.contains(&number),
        });
        let found = judge_exactly(exact, true);
        assert!((found.probability - case[3].as_f64().unwrap()).abs() < 1e-6);
        assert!((found.broken - case[7].as_f64().unwrap()).abs() < 1e-6);
    }
}

#[test]
fn failing_and_passing_on_one_commit_is_chance() {
    let runs = |commits: [Option<&'static str>; 8]| {
        let runs = commits.into_iter().zip([false, true, false, true, false, true, false, true]);
        let exact = runs.map(|(commit, has_failed)| ExactRun {
            commit,
            tries: vec![has_failed],
            has_failed,
            is_mass_failure: false,
        });
        judge_exactly(exact, true)
    };
    let (same, unknown) = (runs([Some("a"); 8]), runs([None; 8]));
    assert!(same.probability > unknown.probability && same.broken < 0.05 && unknown.broken > same.broken);
}

fn outcome(outcome: Outcome) -> RecentOutcome {
    let lost_ms = (outcome != Outcome::Passed).then_some(1_000);
    RecentOutcome { outcome, is_mass_failure: false, browser_slot: 0, duration_ms: Some(100), lost_ms }
}

fn history(text: &str) -> Vec<RecentOutcome> {
    let outcomes = text.chars().map(|letter| match letter {
        'P' => outcome(Outcome::Passed),
        'F' => outcome(Outcome::Failed),
        'T' => outcome(Outcome::TimedOut),
        'x' => outcome(Outcome::Flaky),
        'S' => outcome(Outcome::Skipped),
        'M' => RecentOutcome { is_mass_failure: true, ..outcome(Outcome::Failed) },
        other => unreachable!("{other}"),
    });
    outcomes.collect()
}

fn assessed(text: &str) -> Option<Assessment> {
    assess(history(text).into_iter(), Window::standard(true))
}

#[test]
fn a_test_that_was_broken_and_repaired_is_not_flaky() {
    let broken = assessed(&format!("{}FFFFFF", "P".repeat(20))).unwrap();
    assert_eq!(broken.posterior.class, FlakyClass::Broken);
    let repaired = assessed(&format!("{}FFFFFF{}", "P".repeat(20), "P".repeat(10))).unwrap();
    assert_eq!(repaired.posterior.class, FlakyClass::Healthy);
    assert!(repaired.posterior.score() < 30, "{}", repaired.posterior.score());
}

#[test]
fn the_course_of_a_score_ends_with_the_score_and_knows_nothing_of_what_came_later() {
    let text = format!("{}xPxPPxP{}", "P".repeat(60), "P".repeat(90));
    let window = Window::standard(true);
    let course = super::course(history(&text).into_iter(), window, 20);
    assert_eq!(course.len(), 20);
    assert!(course.windows(2).all(|pair| pair[0].behind > pair[1].behind));
    for at in &course {
        let known = &text[..text.len() - at.behind];
        assert_eq!(at.score, assessed(known).map_or(0, |found| found.posterior.score()), "{known}");
    }
    assert_eq!((course[0].behind, course[19].behind), (text.len() - 10, 0));
    assert!(course.iter().any(|at| at.score > 60) && course[0].score == 0);
    assert_eq!(super::course(history(&"P".repeat(50)).into_iter(), window, 20), []);
    assert_eq!(super::course(history("PPxPP").into_iter(), window, 20), []);
}

#[test]
fn passes_on_a_retry_make_a_test_flaky() {
    let found = assessed("PPPPxPPPPPPxPPP").unwrap();
    assert_eq!(found.posterior.class, FlakyClass::Flaky);
    assert!(found.posterior.low > 0.0 && found.posterior.low < found.posterior.high);
    assert!(found.posterior.next_twenty_risk() > 0.5);
    let evidence = Evidence {
        runs: 15,
        failed: 0,
        retry_passes: 2,
        alternations: 0,
        mean_lost_ms: Some(1_000),
        wasted_ms: 2_000,
    };
    assert_eq!((found.evidence, found.evidence.impact()), (evidence, 18));
}

#[test]
fn what_is_lost_is_summed_and_estimated_where_it_is_not_known() {
    let mut runs = history("PxPPxPPFPxPP");
    runs[4].lost_ms = Some(3_000);
    let found = |runs: &[RecentOutcome]| {
        let evidence = assess(runs.iter().copied(), Window::standard(true)).unwrap().evidence;
        (evidence.mean_lost_ms, evidence.wasted_ms)
    };
    assert_eq!(found(&runs), (Some(1_500), 6_000));
    runs[1].lost_ms = None;
    assert_eq!(found(&runs), (Some(1_667), 6_667));
}

#[test]
fn a_failure_of_a_flaky_test_may_still_be_a_regression() {
    let flaky = history("PPxPPPPxPPPPFPPPxPPP");
    let now = |end: &str| {
        let all = [flaky.clone(), history(end)].concat();
        assess(all.into_iter(), Window::standard(true)).unwrap().broken
    };
    assert!(now("F") < 0.2, "{}", now("F"));
    let failing = now(&"F".repeat(10));
    assert!(failing > 0.9, "{failing}");
}

#[test]
fn nothing_is_said_about_a_test_that_never_failed() {
    assert_eq!(assessed("PPPPSPPPP"), None);
    assert_eq!(assessed("PPPMPPP"), None, "a run in which nearly everything failed says nothing");
    assert_eq!(assessed(&format!("x{}", "P".repeat(DEFAULT_WINDOW))), None, "it left the window");
}

#[test]
fn failures_on_other_branches_are_counted_and_not_believed() {
    let across = Window::standard(false);
    assert_eq!(assess(history("PPFFPFPFPPF").into_iter(), across), None);
    let with_retry = assess(history("PPFFPxPFPFxPP").into_iter(), across).unwrap();
    assert_eq!((with_retry.evidence.failed, with_retry.evidence.runs), (4, 13));
    assert!(with_retry.broken < 0.1, "{}", with_retry.broken);
}

#[test]
fn browser_projects_are_judged_apart() {
    let mut all = Vec::new();
    for at in 0..20 {
        all.push(outcome(Outcome::Passed));
        all.push(RecentOutcome {
            browser_slot: 1,
            ..outcome(if at < 10 { Outcome::Passed } else { Outcome::Failed })
        });
    }
    let found = assess(all.iter().copied(), Window::standard(true)).unwrap();
    assert_eq!(found.evidence.alternations, 1, "not nineteen");
    assert!(found.broken > 0.99);
    assert!(found.posterior.score() < 30);
}

#[test]
fn a_release_asks_for_more_clean_runs_the_rarer_the_flake() {
    let settings = QuarantineSettings::default();
    let needed = |dirty: usize, of: usize, clean: usize| {
        let text =
            ["x".repeat(dirty), "P".repeat(of - dirty - 1), "x".to_owned(), "P".repeat(clean)].concat();
        streak(history(&text).into_iter(), clean, &settings)
    };
    // One more flake ends the earlier part.
    let often = needed(3, 20, 13);
    assert_eq!((often.passes, often.needed, often.is_over()), (13, 14, false));
    assert!(needed(3, 20, 14).is_over());
    assert_eq!(needed(0, 20, 5).needed, 59);
    let before = streak(history(&"P".repeat(50)).into_iter(), 3, &settings);
    assert_eq!((before.passes, before.is_over()), (3, false), "what came before does not count");
    let failing = streak(history("xPPPT").into_iter(), 4, &settings);
    assert_eq!((failing.passes, failing.is_failing), (0, true));
}

#[test]
fn a_release_is_judged_where_the_test_failed_and_once_nothing_is_left_by_everything() {
    let settings = QuarantineSettings::default();
    let of = |browser_slot, text: &str| -> Vec<RecentOutcome> {
        history(text).into_iter().map(|seen| RecentOutcome { browser_slot, ..seen }).collect()
    };
    let both = |failed: &str, clean: &str| {
        let each = of(1, failed).into_iter().zip(of(2, clean));
        each.flat_map(|(one, other)| [one, other]).collect::<Vec<_>>()
    };
    let runs = both(&format!("xPPPx{}", "P".repeat(20)), &"P".repeat(25));
    let told = streak(runs.into_iter(), 40, &settings);
    assert_eq!(
        (told.passes, told.is_over()),
        (20, true),
        "what never failed does not hold it back: {told:?}"
    );
    let runs = both(&"P".repeat(100), &"P".repeat(100));
    let told = streak(runs.clone().into_iter(), 200, &settings);
    assert_eq!((told.passes, told.is_over()), (200, true));
    assert!(!streak(runs.into_iter(), 100, &settings).is_over(), "half of that came before");
}

#[test]
fn candidates_are_flaky_costly_and_not_broken() {
    let settings = QuarantineSettings::default();
    let found = |text: &str, lost: i64| {
        let recent =
            history(text).into_iter().map(|run| RecentOutcome { lost_ms: run.lost_ms.map(|_| lost), ..run });
        assess(recent.collect::<Vec<_>>().into_iter(), Window::standard(true)).unwrap()
    };
    let tests = [
        Candidate { test: 1, found: found("PxPPxPPPxPPP", 60_000) },
        Candidate { test: 2, found: found("PxPPxPPPxPPP", 90_000) },
        Candidate { test: 3, found: found("PxPPxPPPxPPP", 1_000) },
        Candidate { test: 4, found: found("PxPPxPPPxFFFF", 90_000) },
    ];
    let proposed: Vec<i32> = candidates(tests, &settings).iter().map(|one| one.test).collect();
    assert_eq!(proposed, [2, 1]);
}

#[test]
fn a_mass_failure_is_most_of_at_least_five() {
    use crate::totals::Totals;
    let run = |passed_tests, failed_tests| Totals { passed_tests, failed_tests, ..Totals::default() };
    let usual = FlakinessSettings::default().mass_failure_rate;
    assert!(is_mass_failure(&run(1, 4), usual));
    assert!(!is_mass_failure(&run(0, 4), usual));
    assert!(!is_mass_failure(&run(3, 10), usual));
    assert!(is_mass_failure(&run(3, 10), 0.75));
    assert!(!is_mass_failure(&run(1, 9), 1.0));
}

proptest! {
    #[test]
    fn every_history_gives_probabilities(letters in "[PFTxSM]{0,200}") {
        if let Some(found) = assessed(&letters) {
            let posterior = found.posterior;
            for share in [posterior.probability, posterior.rate, posterior.broken, posterior.next_twenty_risk()] {
                prop_assert!((-1e-9..=1.0 + 1e-9).contains(&share), "{share}");
            }
            prop_assert!(posterior.low <= posterior.high);
            prop_assert!((0..=100).contains(&posterior.score()));
        }
    }

    #[test]
    fn a_skipped_execution_changes_nothing(letters in "[PFx]{1,60}", at in 0_usize..60) {
        let mut with_skip = letters.clone();
        with_skip.insert(at.min(letters.len()), 'S');
        prop_assert_eq!(assessed(&with_skip), assessed(&letters));
    }
}
