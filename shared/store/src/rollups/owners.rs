//! Owners of a project's tests with the numbers of their tests.

use callboard_domain::ids::ProjectId;

use crate::Result;
use crate::db::{Backend, Filter, Session, args};
use crate::rollups::CatalogueLanes;

/// An owner with the numbers of the tests that are theirs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerRow {
    /// Name, as the annotation or CODEOWNERS has it.
    pub owner: String,
    /// Tests.
    pub tests: i64,
    /// Tests whose last execution failed.
    pub failing: i64,
    /// Tests with at least the asked flaky score.
    pub flaky: i64,
    /// Tests in quarantine.
    pub quarantined: i64,
}

/// Which owners to read.
#[derive(Debug, Clone, Default)]
pub struct OwnerFilter {
    /// Only this one.
    pub owner: Option<String>,
    /// Only those behind this one in the order of names.
    pub after: Option<String>,
    /// Score from which a test counts as flaky.
    pub flaky_score: i64,
}

/// Owners by name. Bounded by the tests of the project, whatever their history.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn owners(
    session: &mut Session,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &OwnerFilter,
    limit: i64,
) -> Result<Vec<OwnerRow>> {
    let filter = listed(session.backend(), project, lanes, wanted, limit);
    let rows = session.list(filter).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(OwnerRow {
                owner: r.text()?,
                tests: r.int()?,
                failing: r.int()?,
                flaky: r.int()?,
                quarantined: r.int()?,
            })
        })
        .collect()
}

// ix: test_cases_by_owner
fn listed(
    backend: Backend,
    project: ProjectId,
    lanes: CatalogueLanes,
    wanted: &OwnerFilter,
    limit: i64,
) -> Filter {
    let base = "SELECT COALESCE(c.owner, c.code_owner), COUNT(*), \
         CAST(SUM(CASE WHEN s.category = 1 THEN 1 ELSE 0 END) AS BIGINT), \
         CAST(SUM(CASE WHEN j.flaky_score >= $4 THEN 1 ELSE 0 END) AS BIGINT), COUNT(q.id) FROM test_cases c \
         LEFT JOIN test_state s ON s.project_id = c.project_id AND s.lane_id = $2 AND s.test_case_id = c.id \
         LEFT JOIN test_state j ON j.project_id = c.project_id AND j.lane_id = $3 AND j.test_case_id = c.id \
         LEFT JOIN quarantine q ON q.project_id = c.project_id AND q.test_case_id = c.id AND q.released_at IS NULL \
         WHERE c.project_id = $1 AND c.joined_to IS NULL AND COALESCE(c.owner, c.code_owner) IS NOT NULL";
    Filter::new(backend, base, args![project, lanes.shown, lanes.judged, wanted.flaky_score])
        .and_if("COALESCE(c.owner, c.code_owner) = ?", wanted.owner.clone())
        .and_if("COALESCE(c.owner, c.code_owner) > ?", wanted.after.clone())
        .end(
            "GROUP BY COALESCE(c.owner, c.code_owner) ORDER BY COALESCE(c.owner, c.code_owner) LIMIT ?",
            args![limit],
        )
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let lanes = CatalogueLanes { shown: 1, judged: 1 };
    let one = OwnerFilter { owner: Some(String::new()), ..OwnerFilter::default() };
    let next = OwnerFilter { after: Some(String::new()), ..OwnerFilter::default() };
    [OwnerFilter::default(), one, next]
        .iter()
        .map(|wanted| listed(backend, ProjectId(1), lanes, wanted, 1))
        .collect()
}
