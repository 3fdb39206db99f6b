//! Whose tests a notification is about: owners and tags, of those that subscriptions name.

use std::collections::BTreeSet;

use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::test_state::ExecutionFlags;

use crate::Result;
use crate::db::{Args, Session, Statement, args, statements};

/// The tests a notification is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Concerned {
    /// Those of a run that failed, timed out, were interrupted, were flaky, or pass again.
    Run(RunId),
    /// Those that failed for a cluster.
    Cluster(ClusterId),
    /// One test.
    Test(TestCaseId),
}

statements! {
    /// Owners of troubled tests of a run. PK
    OWNERS_OF_RUN = "SELECT DISTINCT COALESCE(c.owner, c.code_owner) FROM executions e \
        JOIN test_cases c ON c.project_id = e.project_id AND c.id = e.test_case_id \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND (e.outcome <= 4 OR (e.flags & $5) <> 0) \
        AND COALESCE(c.owner, c.code_owner) in_texts($6)";
    /// Tags of troubled tests of a run. PK
    TAGS_OF_RUN = "SELECT DISTINCT t.tag FROM executions e \
        JOIN test_case_tags t ON t.project_id = e.project_id AND t.test_case_id = e.test_case_id \
        WHERE e.project_id = $1 AND e.run_id = $2 AND e.id > $3 AND e.id <= $4 AND (e.outcome <= 4 OR (e.flags & $5) <> 0) \
        AND t.tag in_texts($6)";
    /// Owners of the tests of a cluster. PK
    OWNERS_OF_CLUSTER = "SELECT DISTINCT COALESCE(c.owner, c.code_owner) FROM cluster_tests k \
        JOIN test_cases c ON c.project_id = k.project_id AND c.id = k.test_case_id \
        WHERE k.project_id = $1 AND k.cluster_id = $2 AND COALESCE(c.owner, c.code_owner) in_texts($3)";
    /// Tags of the tests of a cluster. PK
    TAGS_OF_CLUSTER = "SELECT DISTINCT t.tag FROM cluster_tests k \
        JOIN test_case_tags t ON t.project_id = k.project_id AND t.test_case_id = k.test_case_id \
        WHERE k.project_id = $1 AND k.cluster_id = $2 AND t.tag in_texts($3)";
    /// Owner of a test. PK
    OWNER_OF_TEST = "SELECT COALESCE(owner, code_owner) FROM test_cases WHERE project_id = $1 AND id = $2 \
        AND COALESCE(owner, code_owner) in_texts($3)";
    /// Tags of a test. ix: test_case_tags_of_case
    TAGS_OF_TEST = "SELECT tag FROM test_case_tags WHERE project_id = $1 AND test_case_id = $2 AND tag in_texts($3)";
}

async fn words(session: &mut Session, statement: &'static Statement, args: Args) -> Result<BTreeSet<String>> {
    session.all(statement, args).await?.iter().map(|row| row.reader().text()).collect()
}

fn args_of(project: ProjectId, concerned: Concerned, among: Vec<String>) -> Args {
    match concerned {
        Concerned::Run(run) => {
            let (low, high) = ExecutionId::range_of(run);
            args![project, run, low, high, ExecutionFlags::FIXED.bits(), among]
        }
        Concerned::Cluster(cluster) => args![project, cluster, among],
        Concerned::Test(case) => args![project, case, among],
    }
}

/// Which of some owners have tests that a notification is about.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn owners(
    session: &mut Session,
    project: ProjectId,
    concerned: Concerned,
    among: Vec<String>,
) -> Result<BTreeSet<String>> {
    let statement = match concerned {
        Concerned::Run(_) => &OWNERS_OF_RUN,
        Concerned::Cluster(_) => &OWNERS_OF_CLUSTER,
        Concerned::Test(_) => &OWNER_OF_TEST,
    };
    words(session, statement, args_of(project, concerned, among)).await
}

/// Which of some tags are on tests that a notification is about.
///
/// # Errors
/// [`crate::StoreError`].
pub async fn tags(
    session: &mut Session,
    project: ProjectId,
    concerned: Concerned,
    among: Vec<String>,
) -> Result<BTreeSet<String>> {
    let statement = match concerned {
        Concerned::Run(_) => &TAGS_OF_RUN,
        Concerned::Cluster(_) => &TAGS_OF_CLUSTER,
        Concerned::Test(_) => &TAGS_OF_TEST,
    };
    words(session, statement, args_of(project, concerned, among)).await
}
