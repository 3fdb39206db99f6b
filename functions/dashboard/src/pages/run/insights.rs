//! What is remarkable about a run.

use askama::Template;
use axum::response::Response;
use callboard_auth::scope::Authorized;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_http::ApiError;
use callboard_query::insights::{self, InsightTest, KnownCause, RunInsights};

use super::Head;
use crate::components::UnsetDefault;
use crate::filters;
use crate::shell::Shell;
use crate::text::{duration, grouped, points};
use crate::visit::{Visit, answer};

/// Tests under one heading.
struct List {
    id: &'static str,
    heading: &'static str,
    /// What it means to be in it.
    meaning: &'static str,
    class: &'static str,
    /// What its lines tell of each test.
    tells: Tells,
    tests: Vec<Line>,
    /// How many results belong in the list: a test has one in each browser.
    count: i64,
    /// How many of them the lines stand for.
    named: usize,
    /// Where more is to be seen.
    more: Option<More>,
}

/// What a list tells of its tests.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    /// That they are in it; a test is named once for all browsers.
    Nothing,
    /// How often they were tried, in each browser.
    Attempts,
    /// How long they took, in each browser.
    Duration,
}

/// A way on from a list.
struct More {
    /// Parameters of the run's page.
    parameters: &'static str,
    word: &'static str,
}

impl List {
    /// How its number goes with its lines, where one does not count the other.
    fn reach(&self) -> Option<String> {
        let is_cut = self.count > i64::try_from(self.named).unwrap_or(i64::MAX);
        let is_merged = self.count > 0 && self.tests.len() < self.named;
        let part = || format!("{} of {}", self.named, grouped(self.count));
        match (is_cut, is_merged) {
            (true, true) => Some(format!("{}, counted per browser.", part())),
            (true, false) if self.tells == Tells::Duration => {
                Some(format!("Top {} of {}", self.named, grouped(self.count)))
            }
            (true, false) => Some(format!("{}.", part())),
            (false, true) => Some("Counted per browser.".to_owned()),
            (false, false) => None,
        }
    }
}

impl More {
    /// Shows all of the list, and nothing else.
    const fn all(parameters: &'static str) -> Option<Self> {
        Some(Self { parameters, word: "All" })
    }

    /// Durations against those of the last green run, which is another question
    /// than that of the list and has no answer without such a run.
    fn green(found: &RunInsights, parameters: &'static str) -> Option<Self> {
        found.baseline.is_some().then_some(Self { parameters, word: "Against the green run" })
    }
}

/// A test, and the browser projects it is in the list for.
struct Line {
    test: InsightTest,
    browsers: Vec<String>,
}

/// A worker's share of the busiest one's time.
struct Load {
    name: String,
    tests: i64,
    duration: i64,
    width: i64,
}

/// Inputs of `pages/run_insights.html`.
#[derive(Template)]
#[template(path = "pages/run_insights.html")]
struct InsightsTab {
    shell: Shell,
    head: Head,
    found: RunInsights,
    /// Why there is no green run to measure it against, where it is this.
    unset_default: Option<UnsetDefault>,
    lists: Vec<List>,
    loads: Vec<Load>,
    pass_rate_delta: Option<String>,
    duration_delta: Option<String>,
}

/// The insights of a run.
pub(super) async fn tab(
    visit: Visit,
    project: Authorized<ProjectId>,
    run: RunId,
    head: Head,
    shell: Shell,
) -> Result<Response, ApiError> {
    let mut found = insights::of_run(&visit.ctx, project, run).await?;
    let unset_default =
        if found.baseline.is_none() { UnsetDefault::load(&visit, project).await? } else { None };
    answer(&InsightsTab {
        lists: lists(&mut found),
        loads: loads(&found),
        pass_rate_delta: found.pass_rate_delta.map(points),
        duration_delta: found.avg_duration_delta.map(signed_duration),
        found,
        unset_default,
        shell,
        head,
    })
}

impl InsightsTab {
    /// Where a cause was seen first, as far as the run was elsewhere.
    fn elsewhere(&self, cause: &KnownCause) -> String {
        let here = &self.head.run.item.brief;
        let branch = cause.branch.as_ref().filter(|branch| here.branch.as_ref() != Some(branch));
        let place = cause.environment.as_ref().filter(|place| here.environment.as_ref() != Some(place));
        let on = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
        let of = place.map(|place| format!(" in {place}")).unwrap_or_default();
        format!("{on}{of}")
    }
}

fn lists(found: &mut RunInsights) -> Vec<List> {
    let counts = found.counts;
    let slower = More::green(found, "tab=compare&change=slower");
    let faster = More::green(found, "tab=compare&change=faster");
    let of = |id, heading, meaning, class, tests: Option<Vec<InsightTest>>, count: Option<i64>, more| {
        let tests = tests.unwrap_or_default();
        let tells = match id {
            "slower" | "faster" | "slowest" => Tells::Duration,
            "flaky" | "newly-flaky" => Tells::Attempts,
            _ => Tells::Nothing,
        };
        List {
            tells,
            id,
            heading,
            meaning,
            class,
            named: tests.len(),
            tests: lines(tests, tells),
            count: count.unwrap_or(0),
            more,
        }
    };
    let all = [
        of(
            "new",
            "New failures",
            "Passed last run on this branch and environment.",
            "failed-text",
            found.new_regressions.take(),
            counts.new_regressions,
            More::all("change=regression"),
        ),
        of(
            "recurring",
            "Still failing",
            "Also failed last run on this branch and environment.",
            "failed-text",
            found.recurrences.take(),
            counts.recurrences,
            More::all("change=recurring"),
        ),
        of(
            "newly-flaky",
            "Newly flaky",
            "Passed first time last run; needed a retry this time.",
            "flaky-text",
            found.new_flaky.take(),
            counts.new_flaky,
            More::all("change=flaky"),
        ),
        of(
            "recovered",
            "Recovered",
            "Failed last run on this branch and environment.",
            "passed-text",
            found.recovered.take(),
            counts.recovered,
            More::all("change=fixed"),
        ),
        of(
            "slower",
            "Slower",
            "Compared with their median passing duration",
            "",
            found.most_regressed.take(),
            counts.regressed,
            slower,
        ),
        of(
            "faster",
            "Faster",
            "Compared with their median passing duration",
            "",
            found.most_improved.take(),
            counts.improved,
            faster,
        ),
        of(
            "flaky",
            "Passed on a retry",
            "",
            "flaky-text",
            Some(std::mem::take(&mut found.flaky_on_retry)),
            Some(counts.flaky_on_retry),
            More::all("outcome=flaky"),
        ),
        of(
            "slowest",
            "Slowest",
            "By last attempt, any outcome",
            "",
            Some(std::mem::take(&mut found.slowest_tests)),
            None,
            More::all("sort=duration"),
        ),
    ];
    all.into_iter().filter(|list| !list.tests.is_empty()).collect()
}

/// One line for each test, in the order of the list; for each of its browsers,
/// where the line tells what may differ between them.
fn lines(tests: Vec<InsightTest>, tells: Tells) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::with_capacity(tests.len());
    for test in tests {
        let is_same =
            |line: &&mut Line| tells == Tells::Nothing && line.test.test_case_id == test.test_case_id;
        match lines.iter_mut().find(is_same) {
            Some(line) => line.browsers.push(test.browser_project),
            None => lines.push(Line { browsers: vec![test.browser_project.clone()], test }),
        }
    }
    lines
}

fn loads(found: &RunInsights) -> Vec<Load> {
    let most = found.workers.iter().map(|worker| worker.duration).max().unwrap_or(0).max(1);
    let number = |worker: &insights::WorkerLoad| worker.parallel_index.unwrap_or(worker.worker_index) + 1;
    let load = |worker: &insights::WorkerLoad| Load {
        name: match worker.shard_index {
            Some(shard) => format!("Shard {shard}, worker {}", number(worker)),
            None => format!("Worker {}", number(worker)),
        },
        tests: worker.tests,
        duration: worker.duration,
        width: (worker.duration * 1_000 / most).max(4),
    };
    found.workers.iter().take(16).map(load).collect()
}

fn signed_duration(delta: i64) -> String {
    let sign = match delta {
        0 => "±",
        1.. => "+",
        _ => "−",
    };
    format!("{sign}{}", duration(delta.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_carry_their_sign() {
        assert_eq!(signed_duration(1_300).replace('\u{a0}', " "), "+1.3 s");
    }
}
