//! Who owns the tests of a project, and what stands against their tests. What
//! belongs to one owner is read through the filters of the usual lists.

use callboard_auth::scope::Authorized;
use callboard_domain::ids::ProjectId;
use callboard_ingest::read_session_with_fresh_aggregates;
use callboard_store::boxed;
use callboard_store::rollups::{self, CatalogueLanes, OwnerFilter, OwnerRow};

use crate::flakiness::{LEAST_COUNTED, judged_lane};
use crate::page::{Slice, fetch};
use crate::test_cases::LaneQuery;
use crate::{Context, Result};

/// Stands for a lane in which nothing ever ran.
const NO_LANE: i64 = -1;

/// An owner of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Name, as the annotation or CODEOWNERS has it.
    pub name: String,
    /// Tests.
    pub tests: i64,
    /// Tests whose last execution failed.
    pub failing: i64,
    /// Tests that count as flaky.
    pub flaky: i64,
    /// Tests in quarantine.
    pub quarantined: i64,
}

impl From<OwnerRow> for Owner {
    fn from(row: OwnerRow) -> Self {
        let OwnerRow { owner, tests, failing, flaky, quarantined } = row;
        Self { name: owner, tests, failing, flaky, quarantined }
    }
}

/// Owners of the tests of a project by name; the key is the name.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn list(
    ctx: &Context,
    project: Authorized<ProjectId>,
    after: Option<String>,
    limit: usize,
) -> Result<Slice<Owner, String>> {
    let wanted = OwnerFilter { after, flaky_score: LEAST_COUNTED, ..OwnerFilter::default() };
    let rows = rows(ctx, project, &wanted, fetch(limit)).await?;
    Ok(Slice::cut(rows, limit, |row| row.owner.clone()).map(Owner::from))
}

/// One owner; `None` when no test is theirs.
///
/// # Errors
/// [`crate::QueryError::Store`].
pub async fn get(ctx: &Context, project: Authorized<ProjectId>, name: &str) -> Result<Option<Owner>> {
    let owner = Some(name.to_owned());
    let wanted = OwnerFilter { owner, flaky_score: LEAST_COUNTED, ..OwnerFilter::default() };
    Ok(rows(ctx, project, &wanted, 1).await?.pop().map(Owner::from))
}

#[boxed]
async fn rows(
    ctx: &Context,
    project: Authorized<ProjectId>,
    wanted: &OwnerFilter,
    limit: i64,
) -> Result<Vec<OwnerRow>> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let lane = LaneQuery::default();
    let shown = lane.find(&mut session, project).await?.unwrap_or(NO_LANE);
    let judged = judged_lane(&mut session, project, &lane).await?.map_or(shown, |judged| judged.id);
    Ok(rollups::owners(&mut session, project, CatalogueLanes { shown, judged }, wanted, limit).await?)
}
