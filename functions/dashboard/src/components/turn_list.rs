//! Where a test broke and where it was repaired: marks on the chart of its
//! reliability, and the runs and commits they stand for as a list below. What
//! they are was decided when the results came in; nothing is guessed here.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::{Day, Timestamp};
use callboard_query::shapes::{ExecutionWithRun, RunBrief};

use crate::components::PointMark;
use crate::filters;

/// The newest ones the list names; the chart marks all.
const LISTED: usize = 5;

/// A change between passing and failing.
struct Turn {
    is_repair: bool,
    run: RunBrief,
    name: String,
    /// In which browser projects.
    browsers: Vec<String>,
}

/// Inputs of `components/turn_list.html`.
#[derive(Template)]
#[template(path = "components/turn_list.html")]
pub(crate) struct TurnList {
    /// Newest first.
    turns: Vec<Turn>,
    names_browsers: bool,
    now: Timestamp,
}

impl HtmlSafe for TurnList {}

impl TurnList {
    /// What its marks on a chart stand for.
    pub(crate) const MARKS: &'static str = "broke or fixed";

    /// The turns of a test, oldest execution first. What happened in one run in
    /// several browser projects is one turn.
    pub(crate) fn of_executions(executions: &[ExecutionWithRun], now: Timestamp) -> Self {
        let mut turns: Vec<Turn> = Vec::new();
        for ExecutionWithRun { execution, run } in executions.iter().rev() {
            let is_repair = execution.is_fixed;
            if !is_repair && !execution.is_new_regression {
                continue;
            }
            let browser = execution.browser_project.clone();
            match turns.iter_mut().find(|turn| turn.run.id == run.id && turn.is_repair == is_repair) {
                Some(turn) => turn.browsers.push(browser),
                None => turns.push(Turn {
                    is_repair,
                    name: match &run.label {
                        Some(label) => format!("Run {}: {label}", run.id),
                        None => format!("Run {}", run.id),
                    },
                    run: run.clone(),
                    browsers: vec![browser],
                }),
            }
        }
        let first = executions.first().map(|each| &each.execution.browser_project);
        let names_browsers = executions.iter().any(|each| Some(&each.execution.browser_project) != first);
        Self { turns, names_browsers, now }
    }

    /// The marks of a chart with a point for each of these days.
    pub(crate) fn marks_by_day(&self, days: &[Day]) -> Vec<PointMark> {
        let mark = |turn: &Turn| {
            let day = turn.run.start_time.day();
            Some((days.iter().position(|each| *each == day)?, turn.spoken()))
        };
        self.turns.iter().rev().filter_map(mark).collect()
    }

    fn listed(&self) -> &[Turn] {
        &self.turns[..self.turns.len().min(LISTED)]
    }
}

impl Turn {
    const fn word(&self) -> &'static str {
        if self.is_repair { "Fixed" } else { "Broke" }
    }

    fn spoken(&self) -> String {
        let branch = self.run.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
        format!("{} in run {}{branch}", self.word(), self.run.id)
    }
}
