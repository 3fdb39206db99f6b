//! Which test kept another one from running. Clients name it by its place, as
//! `file:line:column`; here it is found again among the executions of the run.

use callboard_domain::ids::ProjectId;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, ExecutionRow};
use callboard_store::lanes::BrowserProject;

use super::{OutcomeGroup, show};
use crate::Result;
use crate::shapes::{BlockingTest, ExecutionItem};

/// Most tests that are named as blocked.
const BLOCKED_SHOWN: usize = 20;
/// Rows of a file that are looked at.
const ROWS_READ: i64 = 200;

/// The execution that kept `item` from running.
pub(super) async fn blocker(
    session: &mut Session,
    row: &ExecutionRow,
    item: &ExecutionItem,
    browsers: &[BrowserProject],
) -> Result<Option<BlockingTest>> {
    let Some(place) = &item.blocked_by else { return Ok(None) };
    let file = file_of(place);
    let groups = [OutcomeGroup::Failing, OutcomeGroup::Interrupted];
    let found = of_file(session, row, file, &groups, browsers).await?;
    Ok(found.iter().find(|found| is_at(found, place)).map(BlockingTest::from_item))
}

/// The executions that `item` kept from running, at most 20.
pub(super) async fn blocked(
    session: &mut Session,
    row: &ExecutionRow,
    item: &ExecutionItem,
    browsers: &[BrowserProject],
) -> Result<Vec<BlockingTest>> {
    if !row.outcome.status().is_failing() {
        return Ok(Vec::new());
    }
    // Tests wait for others of their file only.
    let groups = [OutcomeGroup::DidNotRun, OutcomeGroup::Skipped];
    let found = of_file(session, row, &item.file_path, &groups, browsers).await?;
    let waiting =
        found.iter().filter(|found| found.blocked_by.as_deref().is_some_and(|place| is_at(item, place)));
    Ok(waiting.take(BLOCKED_SHOWN).map(BlockingTest::from_item).collect())
}

async fn of_file(
    session: &mut Session,
    row: &ExecutionRow,
    file: &str,
    groups: &[OutcomeGroup],
    browsers: &[BrowserProject],
) -> Result<Vec<ExecutionItem>> {
    let project: ProjectId = row.project;
    let filter = ExecutionFilter {
        outcomes: Some(
            groups.iter().flat_map(|group| group.outcomes()).map(|outcome| outcome.code()).collect(),
        ),
        file: Some(file.to_owned()),
        browsers: Some(vec![row.browser_id]),
        ..ExecutionFilter::default()
    };
    let order = ExecutionOrder::Trouble(None);
    let rows = executions::list(session, project, row.run, &filter, &order, ROWS_READ).await?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    show(session, project, &rows, browsers).await
}

/// The file of `file:line:column`.
fn file_of(place: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let mut rest = place;
    for _ in 0..2 {
        match rest.rsplit_once(':') {
            Some((before, number)) if is_number(number) => rest = before,
            _ => break,
        }
    }
    rest
}

/// Whether an execution is at a place; the place may leave out the column.
fn is_at(item: &ExecutionItem, place: &str) -> bool {
    item.location == place || item.line.is_some_and(|line| format!("{}:{line}", item.file_path) == place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_apart_from_its_end() {
        for (place, file) in [
            ("tests/pay.spec.ts:7:5", "tests/pay.spec.ts"),
            ("tests/pay.spec.ts:7", "tests/pay.spec.ts"),
            ("tests/pay.spec.ts", "tests/pay.spec.ts"),
            ("C:/tests/pay.spec.ts:7:5", "C:/tests/pay.spec.ts"),
        ] {
            assert_eq!(file_of(place), file);
        }
    }
}
