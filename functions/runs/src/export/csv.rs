//! A table as RFC 4180 describes it. Cells that a spreadsheet would take for a
//! formula begin with an apostrophe.

use callboard_query::exports::{ExportWish, ExportedTest};

const COLUMNS: [&str; 23] = [
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
];

pub(super) fn head(wish: &ExportWish) -> String {
    let mut columns = COLUMNS.to_vec();
    if wish.attempts {
        columns.push("attempts");
    }
    if wish.evidence {
        columns.push("evidence");
    }
    columns.join(",") + "\r\n"
}

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
    ];
    if wish.attempts {
        cells.push(serde_json::to_string(&test.attempts).unwrap_or_default());
    }
    if wish.evidence {
        cells.push(serde_json::to_string(&test.evidence).unwrap_or_default());
    }
    cells.iter().map(|value| cell(value)).collect::<Vec<_>>().join(",") + "\r\n"
}

/// A cell as it is written.
fn cell(value: &str) -> String {
    let is_formula = value.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let value = if is_formula { format!("'{value}") } else { value.to_owned() };
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
            ("says \"hi\",\nbye", "\"says \"\"hi\"\",\nbye\""),
            ("plain", "plain"),
        ] {
            assert_eq!(cell(value), written);
        }
    }
}
