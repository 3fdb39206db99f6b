//! Where durations changed for good: marks on the charts, and what they stand
//! for as a list below.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::shifts::{Shift, shifts};
use callboard_domain::status::TestStatus;
use callboard_domain::time::{Day, Timestamp};
use callboard_query::shapes::{ExecutionWithRun, RunBrief, RunItem};

use crate::components::PointMark;
use crate::components::run_table::name_of;
use crate::filters;
use crate::text::{duration, percent};

/// A lasting change.
struct Row {
    /// Index of the point of the chart from which on it holds.
    at: usize,
    is_slower: bool,
    /// `52 % slower`.
    words: String,
    shift: Shift,
    /// Of what, where a chart shows several things.
    of: Option<String>,
    /// The first run with it.
    run: RunBrief,
    name: String,
}

/// Inputs of `components/shift_list.html`.
#[derive(Template)]
#[template(path = "components/shift_list.html")]
pub(crate) struct ShiftList {
    rows: Vec<Row>,
    now: Timestamp,
}

impl HtmlSafe for ShiftList {}

impl ShiftList {
    /// What its marks on a chart stand for.
    pub(crate) const MARKS: &'static str = "lasting change";

    /// The changes of one test, oldest execution first, in each browser
    /// project by itself.
    pub(crate) fn of_executions(executions: &[ExecutionWithRun], now: Timestamp) -> Self {
        let passed: Vec<(usize, &ExecutionWithRun)> = executions
            .iter()
            .enumerate()
            .filter(|(_, each)| each.execution.status == TestStatus::Passed && each.execution.duration > 0)
            .collect();
        let mut browsers: Vec<&str> =
            passed.iter().map(|(_, each)| each.execution.browser_project.as_str()).collect();
        browsers.sort_unstable();
        browsers.dedup();
        let of = |browser: &str| (browsers.len() > 1).then(|| browser.to_owned());
        let mut rows = Vec::new();
        for browser in &browsers {
            let series: Vec<&(usize, &ExecutionWithRun)> =
                passed.iter().filter(|(_, each)| each.execution.browser_project == *browser).collect();
            let durations: Vec<i64> = series.iter().map(|(_, each)| each.execution.duration).collect();
            rows.extend(shifts(&durations).into_iter().map(|shift| {
                let (at, each) = series[shift.at];
                let name = each.run.label.clone().unwrap_or_else(|| format!("Run {}", each.run.id));
                Row::new(shift, *at, of(browser), each.run.clone(), name)
            }));
        }
        Self::newest_first(rows, now)
    }

    /// The changes of a number of runs, oldest run first.
    pub(crate) fn of_runs(
        runs: &[RunItem],
        of: &str,
        number: impl Fn(&RunItem) -> Option<i64>,
        now: Timestamp,
    ) -> Self {
        let known: Vec<(usize, i64)> =
            runs.iter().enumerate().filter_map(|(at, run)| Some((at, number(run)?))).collect();
        let numbers: Vec<i64> = known.iter().map(|(_, number)| *number).collect();
        let rows = shifts(&numbers).into_iter().map(|shift| {
            let (at, _) = known[shift.at];
            let run = &runs[at];
            Row::new(shift, at, Some(of.to_owned()), run.brief.clone(), name_of(run))
        });
        Self::newest_first(rows.collect(), now)
    }

    fn newest_first(mut rows: Vec<Row>, now: Timestamp) -> Self {
        rows.sort_by_key(|row| std::cmp::Reverse(row.at));
        Self { rows, now }
    }

    /// The marks of a chart whose points are what was looked at.
    pub(crate) fn marks(&self) -> Vec<PointMark> {
        self.rows.iter().map(|row| (row.at, row.spoken())).collect()
    }

    /// The marks of a chart with a point for each of these days.
    pub(crate) fn marks_by_day(&self, days: &[Day]) -> Vec<PointMark> {
        let mark = |row: &Row| {
            let day = row.run.start_time.day();
            Some((days.iter().position(|each| *each == day)?, row.spoken()))
        };
        self.rows.iter().filter_map(mark).collect()
    }
}

impl Row {
    fn new(shift: Shift, at: usize, of: Option<String>, run: RunBrief, name: String) -> Self {
        let share = shift.share();
        let word = if share > 0.0 { "slower" } else { "faster" };
        // Whole percents: more of it is noise.
        let words = format!("{} {word}", percent((share.abs() * 100.0).round() / 100.0));
        Self { at, is_slower: share > 0.0, words, shift, of, run, name }
    }

    fn spoken(&self) -> String {
        let of = self.of.as_ref().map(|of| format!(" ({of})")).unwrap_or_default();
        format!(
            "{} since run {}{of}: {} before, {} from here on",
            self.words,
            self.run.id,
            duration(self.shift.before_ms),
            duration(self.shift.after_ms)
        )
    }
}
