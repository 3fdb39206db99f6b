//! Owners of tests by the CODEOWNERS file of their repository.

use callboard_domain::ids::{ProjectId, TestCaseId};

use crate::Result;
use crate::db::{Session, args, statements};

statements! {
    /// Tests of a project in the order in which they were first seen. PK
    TESTS = "SELECT id, file_path FROM test_cases WHERE project_id = $1 AND id > $2 ORDER BY id LIMIT $3";
    /// Sets the owner of some tests. PK
    ASSIGN = "UPDATE test_cases SET code_owner = $3 WHERE project_id = $1 AND id in_ints($2) AND code_owner IS DISTINCT FROM $3";
    /// Forgets the owners of a project. PK
    CLEAR = "UPDATE test_cases SET code_owner = NULL WHERE project_id = $1 AND code_owner IS NOT NULL";
}

/// A test and the path of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedTest {
    /// The test.
    pub id: TestCaseId,
    /// Path as it was reported.
    pub file_path: String,
}

/// Tests first seen after `after`, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn tests(
    session: &mut Session,
    project: ProjectId,
    after: i64,
    limit: i64,
) -> Result<Vec<OwnedTest>> {
    let rows = session.all(&TESTS, args![project, after, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(OwnedTest { id: TestCaseId(r.int()?), file_path: r.text()? })
        })
        .collect()
}

/// Sets the owner of some tests, or takes it away; returns how many had another.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn assign(
    session: &mut Session,
    project: ProjectId,
    tests: Vec<i64>,
    owner: Option<&str>,
) -> Result<u64> {
    let owner = owner.map(str::to_owned);
    session.execute(&ASSIGN, args![project, tests, owner]).await
}

/// Forgets the owners of a project's tests.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn clear(session: &mut Session, project: ProjectId) -> Result<()> {
    session.execute(&CLEAR, args![project]).await?;
    Ok(())
}
