//! A table as RFC 4180 describes it. Cells that a spreadsheet would take for a
//! formula begin with an apostrophe; characters that reorder text are marks.

use callboard_domain::bidi::visible;

use super::{ExportWish, ExportedTest};
use crate::shapes::RunItem;

const COLUMNS: [&str; 24] = [
    "id",
    "testCaseId",
    "title",
    "filePath",
    "suitePath",
    "line",
    "column",
    "browserProject",
    "status",
    "flaky",
    "duration",
    "totalDuration",
    "startedAt",
    "retries",
    "workerIndex",
    "shardIndex",
    "isNewRegression",
    "isNewFlaky",
    "isFixed",
    "tags",
    "owner",
    "priority",
    "error",
    "skipReason",
];

/// What tells the run of a test, in tables of several runs.
const RUN_COLUMNS: [&str; 5] = ["runId", "runStartTime", "branch", "environment", "commit"];

/// The columns of a table of runs.
const COLUMNS_OF_RUNS: [&str; 24] = [
    "id",
    "startTime",
    "finishedAt",
    "status",
    "duration",
    "totalTests",
    "passedTests",
    "failedTests",
    "timedOutTests",
    "interruptedTests",
    "skippedTests",
    "didNotRunTests",
    "flakyTests",
    "passRate",
    "branch",
    "environment",
    "commit",
    "label",
    "isFullRun",
    "newRegressions",
    "newFlaky",
    "wastedTimeMs",
    "statusReason",
    "repetitions",
];

/// The first line of a table of runs.
pub(super) fn head_of_runs() -> String {
    COLUMNS_OF_RUNS.join(",") + "\r\n"
}

/// A run as a line of a table.
pub(super) fn run(item: &RunItem) -> String {
    let (brief, totals) = (&item.brief, &item.brief.totals);
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    line(&[
        brief.id.to_string(),
        brief.start_time.to_iso(),
        item.finished_at.map(|at| at.to_iso()).unwrap_or_default(),
        brief.status.as_str().to_owned(),
        number(brief.duration),
        totals.total_tests.to_string(),
        totals.passed_tests.to_string(),
        totals.failed_tests.to_string(),
        totals.timed_out_tests.to_string(),
        totals.interrupted_tests.to_string(),
        totals.skipped_tests.to_string(),
        totals.did_not_run_tests.to_string(),
        totals.flaky_tests.to_string(),
        brief.pass_rate.map(|rate| rate.to_string()).unwrap_or_default(),
        text(&brief.branch),
        text(&brief.environment),
        text(&brief.commit),
        text(&brief.label),
        brief.is_full_run.to_string(),
        number(item.new_regressions),
        number(item.new_flaky),
        item.wasted_time_ms.to_string(),
        text(&brief.status_reason),
        item.repetitions.to_string(),
    ])
}

/// The first line of a table of tests; `of_several_runs` as [`row`].
pub(super) fn head(wish: &ExportWish, of_several_runs: bool) -> String {
    let mut columns = COLUMNS.to_vec();
    if of_several_runs {
        columns.extend(RUN_COLUMNS);
    }
    if wish.attempts {
        columns.push("attempts");
    }
    if wish.evidence {
        columns.push("evidence");
    }
    columns.join(",") + "\r\n"
}

/// A test as a line of a table, with its run where that is known.
pub(super) fn row(test: &ExportedTest, wish: &ExportWish) -> String {
    let item = &test.item;
    let number = |value: Option<i64>| value.map(|value| value.to_string()).unwrap_or_default();
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    let error = item.error.as_deref().map(|error| callboard_domain::text::strip_ansi(error).into_owned());
    let mut cells = vec![
        item.id.to_string(),
        item.test_case_id.to_string(),
        item.title.clone(),
        item.file_path.clone(),
        item.suite_path.join(" › "),
        number(item.line),
        number(item.column),
        item.browser_project.clone(),
        item.status.as_str().to_owned(),
        item.flaky.to_string(),
        item.duration.to_string(),
        item.total_duration.to_string(),
        item.started_at.map(|at| at.to_iso()).unwrap_or_default(),
        item.retries.to_string(),
        number(item.worker_index),
        number(item.shard_index),
        item.is_new_regression.to_string(),
        item.is_new_flaky.to_string(),
        item.is_fixed.to_string(),
        item.tags.join(" "),
        text(&item.owner),
        text(&item.priority),
        error.unwrap_or_default(),
        text(&item.skip_reason),
    ];
    if let Some(run) = &test.run {
        cells.extend([
            run.id.to_string(),
            run.start_time.to_iso(),
            text(&run.branch),
            text(&run.environment),
            text(&run.commit),
        ]);
    }
    if wish.attempts {
        cells.push(serde_json::to_string(&test.attempts).unwrap_or_default());
    }
    if wish.evidence {
        cells.push(serde_json::to_string(&test.evidence).unwrap_or_default());
    }
    line(&cells)
}

fn line(cells: &[String]) -> String {
    cells.iter().map(|value| cell(value)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// A cell as it is written.
fn cell(value: &str) -> String {
    // Blanks before it do not keep a spreadsheet from calculating.
    let is_formula = value.starts_with(['\t', '\r', '\n'])
        || value
            .trim_start()
            .starts_with(['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}']);
    let value = visible(value);
    let value = if is_formula { format!("'{value}") } else { value.into_owned() };
    if value.contains([',', '"', '\n', '\r']) { format!("\"{}\"", value.replace('"', "\"\"")) } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_never_a_formula() {
        for (value, written) in [
            ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@SUM(1,2)", "\"'@SUM(1,2)\""),
            ("\t=1", "'\t=1"),
            (" =1", "' =1"),
            ("\n=1", "\"'\n=1\""),
            ("says \"hi\",\nbye", "\"says \"\"hi\"\",\nbye\""),
            ("plain", "plain"),
            ("a\u{202e}b", "a⟦U+202E⟧b"),
        ] {
            assert_eq!(cell(value), written);
        }
    }
}
