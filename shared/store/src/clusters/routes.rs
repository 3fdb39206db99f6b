//! From fingerprints to clusters. A fingerprint leads to one cluster, except
//! for tests that were taken out of it, which have routes of their own.

use callboard_domain::failure::template::{MAX_COMPARED, Wording};
use callboard_domain::failure::{Fingerprint, Signature, VERSION};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, RunId, TestCaseId};
use callboard_domain::search::words;
use callboard_domain::time::Timestamp;

use crate::Result;
use crate::db::{Backend, Session, Statement, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::search::{self, SearchKind};

/// The test case that stands for all of them in a route.
const ANY_TEST: i64 = 0;

/// First halves of the keys of advisory locks.
const RESHAPING: i64 = 0x636c_0001 << 32;
const CREATING: i64 = 0x636c_0002 << 32;

statements! {
    /// Where some fingerprints lead. PK
    OF = "SELECT fingerprint, test_case_id, cluster_id FROM cluster_routes WHERE project_id = $1 AND fingerprint in_bytes($2)";
    /// A new route.
    INSERT_ROUTE = "INSERT INTO cluster_routes (project_id, fingerprint, test_case_id, cluster_id, fp_version, sample_execution_id) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (project_id, fingerprint, test_case_id) DO UPDATE SET \
        cluster_id = excluded.cluster_id, fp_version = excluded.fp_version";
    /// Tests that were taken out of a cluster stay out under a new fingerprint of it. ix: cluster_routes_to
    COPY_EXCEPTIONS = "INSERT INTO cluster_routes (project_id, fingerprint, test_case_id, cluster_id, fp_version, sample_execution_id) \
        SELECT e.project_id, $3, e.test_case_id, e.cluster_id, $4, CAST(NULL AS BIGINT) \
        FROM cluster_routes g JOIN cluster_routes e ON e.project_id = g.project_id AND e.fingerprint = g.fingerprint \
        WHERE g.project_id = $1 AND g.cluster_id = $2 AND g.test_case_id = 0 AND e.test_case_id > 0 \
        ON CONFLICT (project_id, fingerprint, test_case_id) DO NOTHING";
    /// Templates a new text may resemble, oldest first. PK
    TEMPLATES = "SELECT id, tokens, cluster_id FROM fingerprint_templates WHERE project_id = $1 AND bucket = $2 ORDER BY id LIMIT $3";
    /// A new template.
    INSERT_TEMPLATE = "INSERT INTO fingerprint_templates (project_id, bucket, id, tokens, tokens_hash, cluster_id, n) \
        VALUES ($1, $2, $3, $4, $5, $6, 1) ON CONFLICT DO NOTHING";
    /// Removes a template.
    FORGET = "DELETE FROM fingerprint_templates WHERE project_id = $1 AND bucket = $2 AND id = $3";
    /// A template that forgets words, unless it becomes equal to another one.
    GENERALISE = "UPDATE fingerprint_templates SET tokens = $4, tokens_hash = $5, n = n + 1 WHERE project_id = $1 AND bucket = $2 AND id = $3 \
        AND NOT EXISTS (SELECT 1 FROM fingerprint_templates o WHERE o.project_id = $1 AND o.bucket = $2 AND o.tokens_hash = $5)";
    /// A new cluster.
    INSERT_CLUSTER = "INSERT INTO failure_clusters (id, project_id, fingerprint, fp_version, signature, error_type, selector, fields, \
        sample_error, status, status_at, first_run_id, first_execution_id, first_seen_at, last_run_id, last_seen_at, last_status, \
        created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'open', $10, $11, $12, $13, $11, $13, 'failed', $10, $10)";
}

macro_rules! advisory {
    ($name:ident $text:literal) => {
        // On SQLite a write transaction holds the only lock.
        static $name: Statement =
            Statement::of_each(concat!("clusters::", stringify!($name)), "SELECT $1", $text);
    };
}
advisory!(KEEP_SHAPE "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock_shared($1)) AS held");
advisory!(HOLD "SELECT CAST(1 AS BIGINT) FROM (SELECT pg_advisory_xact_lock($1)) AS held");

async fn hold(session: &mut Session, statement: &Statement, half: i64, project: ProjectId) -> Result<()> {
    if session.backend() == Backend::Postgres {
        session.one(statement, args![half ^ project.get()]).await?;
    }
    Ok(())
}

/// Keeps clusters of a project from being merged or taken apart until the end
/// of the transaction. Whoever reads where executions count and writes it
/// anew begins with this.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn keep_shape(session: &mut Session, project: ProjectId) -> Result<()> {
    hold(session, &KEEP_SHAPE, RESHAPING, project).await
}

/// Keeps everybody else from counting in clusters of a project until the end
/// of the transaction: what merges and takes apart begins with this.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn hold_shape(session: &mut Session, project: ProjectId) -> Result<()> {
    hold(session, &HOLD, RESHAPING, project).await
}

/// A route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Route {
    /// From where.
    pub fingerprint: Fingerprint,
    /// Only for this test; `None` for all that have no route of their own.
    pub test_case: Option<TestCaseId>,
    /// To where.
    pub cluster: ClusterId,
}

/// Where some fingerprints lead.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(
    session: &mut Session,
    project: ProjectId,
    fingerprints: impl IntoIterator<Item = Fingerprint>,
) -> Result<Vec<Route>> {
    let fingerprints: Vec<Vec<u8>> = fingerprints.into_iter().map(|one| one.0.to_vec()).collect();
    if fingerprints.is_empty() {
        return Ok(Vec::new());
    }
    let rows = session.all(&OF, args![project, fingerprints]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            let fingerprint =
                Fingerprint::from_bytes(&r.bytes()?).ok_or(crate::StoreError::Damaged("a fingerprint"))?;
            let test = r.int()?;
            Ok(Route {
                fingerprint,
                test_case: (test != ANY_TEST).then_some(TestCaseId(test)),
                cluster: ClusterId(r.int()?),
            })
        })
        .collect()
}

/// A failure nobody has seen before.
#[derive(Debug, Clone, Copy)]
pub struct NewFailure<'a> {
    /// Its fields.
    pub signature: &'a Signature,
    /// Its text, with terminal colours.
    pub sample: &'a str,
    /// The run that shows it.
    pub run: RunId,
    /// When that run started.
    pub seen_at: Timestamp,
    /// The execution that shows it, when its id is known.
    pub execution: ExecutionId,
}

/// Gives new fingerprints their routes: to the cluster of a text they
/// resemble, else to a cluster of their own. Makers wait for each other, so
/// no two make clusters of the same fingerprint; `failures` come in the order
/// of their fingerprints.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn make(
    session: &mut Session,
    project: ProjectId,
    failures: &[NewFailure<'_>],
    now: Timestamp,
) -> Result<Vec<Route>> {
    hold(session, &HOLD, CREATING, project).await?;
    let known = list(session, project, failures.iter().map(|one| one.signature.fingerprint())).await?;
    let mut routes = known.clone();
    for failure in failures {
        let fingerprint = failure.signature.fingerprint();
        if known.iter().any(|route| route.fingerprint == fingerprint && route.test_case.is_none()) {
            continue;
        }
        let cluster = match resembling(session, project, failure.signature).await? {
            Resembling::Cluster(cluster) => {
                session.execute(&COPY_EXCEPTIONS, args![project, cluster, fingerprint.0, VERSION]).await?;
                cluster
            }
            Resembling::Nothing(wording) => {
                let cluster = insert(session, project, failure, now).await?;
                if let Some(wording) = wording {
                    add_template(session, project, &wording, cluster).await?;
                }
                cluster
            }
        };
        route(session, project, fingerprint, None, cluster, Some(failure.execution)).await?;
        routes.push(Route { fingerprint, test_case: None, cluster });
    }
    // Exceptions may have been copied.
    if routes.len() > known.len() {
        routes = list(session, project, failures.iter().map(|one| one.signature.fingerprint())).await?;
    }
    Ok(routes)
}

/// Leads a fingerprint to a cluster, for all tests or for one.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn route(
    session: &mut Session,
    project: ProjectId,
    fingerprint: Fingerprint,
    test_case: Option<TestCaseId>,
    cluster: ClusterId,
    sample: Option<ExecutionId>,
) -> Result<()> {
    let test = test_case.map_or(ANY_TEST, TestCaseId::get);
    let sample = sample.map(ExecutionId::get);
    session.execute(&INSERT_ROUTE, args![project, fingerprint.0, test, cluster, VERSION, sample]).await?;
    Ok(())
}

/// What a wording is like.
pub(super) enum Resembling {
    Cluster(ClusterId),
    Nothing(Option<Wording>),
}

/// The cluster of texts like that of a failure; the template it matched learns
/// from it.
pub(super) async fn resembling(
    session: &mut Session,
    project: ProjectId,
    signature: &Signature,
) -> Result<Resembling> {
    let Some(wording) = Wording::from_signature(signature) else { return Ok(Resembling::Nothing(None)) };
    let most = i64::try_from(MAX_COMPARED).unwrap_or(i64::MAX);
    let rows = session.all(&TEMPLATES, args![project, wording.bucket, most]).await?;
    let mut known = Vec::with_capacity(rows.len());
    for row in &rows {
        let mut r = row.reader();
        known.push((r.int()?, r.text()?, ClusterId(r.int()?)));
    }
    let words: Vec<Vec<String>> =
        known.iter().map(|(_, tokens, _)| tokens.split(' ').map(str::to_owned).collect()).collect();
    let Some(found) = wording.find(&words) else { return Ok(Resembling::Nothing(Some(wording))) };
    let (id, _, cluster) = &known[found.index];
    if let Some(tokens) = found.generalised {
        let (text, hash) = (Wording::joined(&tokens), Wording::hash(&tokens));
        // Of two that say the same now, the older one and its cluster stay.
        let equal = known.iter().find(|(other, words, _)| other != id && *words == text);
        if let Some((other, _, older)) = equal {
            session.execute(&FORGET, args![project, wording.bucket, *other.max(id)]).await?;
            if other < id {
                return Ok(Resembling::Cluster(*older));
            }
        }
        session.execute(&GENERALISE, args![project, wording.bucket, *id, text, hash]).await?;
    }
    Ok(Resembling::Cluster(*cluster))
}

/// Makes texts like this one lead to a cluster.
pub(super) async fn add_template(
    session: &mut Session,
    project: ProjectId,
    wording: &Wording,
    cluster: ClusterId,
) -> Result<()> {
    let id = ids::allocate_one(session, Kind::Template).await?;
    let (tokens, hash) = (Wording::joined(&wording.tokens), Wording::hash(&wording.tokens));
    session.execute(&INSERT_TEMPLATE, args![project, wording.bucket, id, tokens, hash, cluster]).await?;
    Ok(())
}

async fn insert(
    session: &mut Session,
    project: ProjectId,
    failure: &NewFailure<'_>,
    now: Timestamp,
) -> Result<ClusterId> {
    let id = ClusterId(ids::allocate_one(session, Kind::Cluster).await?);
    let signature = failure.signature;
    let selector = Some(signature.target.clone()).filter(|target| !target.is_empty());
    let fields: Vec<(&str, String)> = signature.grouped_by();
    // A list of texts has no way to fail.
    let fields = serde_json::to_string(&fields).unwrap_or_default();
    session
        .execute(
            &INSERT_CLUSTER,
            args![
                id,
                project,
                signature.fingerprint().0,
                VERSION,
                signature.title(),
                signature.error_type().as_str(),
                selector,
                fields,
                failure.sample,
                now,
                failure.run,
                failure.execution,
                failure.seen_at
            ],
        )
        .await?;
    ids::list(session, Listed::Cluster, project, &[id.get()]).await?;
    let found_by = words([signature.title().as_str()]).into_iter().map(|word| (word, id.get()));
    search::add(session, project, SearchKind::Cluster, found_by).await?;
    Ok(id)
}
