//! What becomes of clusters when the rules that tell failures apart change.
//!
//! Every fingerprint of older rules is told anew from a failure that is stored
//! with it, and leads to the cluster it always led to: status, note, assignee,
//! counts and what people joined or took apart stay. Where newer rules read
//! the same failure in two clusters, the one that nobody touched becomes part
//! of the other; two that people touched are only suggested to be one, and two
//! that somebody keeps apart stay two.
//!
//! Where newer rules tell failures of one old fingerprint apart, all of them go
//! on leading to their cluster: it stays one until somebody takes it apart.
//!
//! A fingerprint that no stored failure tells any more is left as it is: one
//! that cannot be read again must not hold up those after it.

use std::collections::BTreeSet;

use callboard_domain::attempts::EvidenceSlice;
use callboard_domain::evidence::Evidence;
use callboard_domain::failure::{Fingerprint, Kind, Signature};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId};
use callboard_domain::time::Timestamp;
use callboard_store::clusters::routes::{self, Route};
use callboard_store::clusters::suggestions::{self, SuggestionMethod, SuggestionStatus};
use callboard_store::clusters::{self, ClusterStatus, versions};
use callboard_store::db::Session;
use callboard_store::search::{self, SearchKind};
use callboard_store::{StoreError, boxed, evidence, executions};

use super::editing::{found_by, join};
use crate::{Context, Result};
use callboard_ingest::stored_attempts;

/// Fingerprints told anew in one go.
const BATCH: i64 = 100;
/// Failures that are looked at for those with evidence.
const MOST_FAILURES: i64 = 50;
/// Tests of which a failure is read again, where each may have its own fingerprint now.
const MOST_TESTS: usize = 20;
/// Suggestions that are looked through at the same time.
const SUGGESTIONS: i64 = 200;

/// Tells some fingerprints of older rules anew. Answers whether there may be
/// more of them.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn follow_rules(ctx: &Context, now: Timestamp) -> Result<bool> {
    let outdated = versions::outdated(&mut ctx.store.db().read().await?, BATCH).await?;
    for (project, old) in &outdated {
        let found = read_again(ctx, *project, *old).await?;
        let mut session = ctx.store.db().begin().await?;
        routes::hold_shape(&mut session, *project).await?;
        let told = routes::list(&mut session, *project, [*old]).await?;
        if let Some((signature, execution)) = found.first() {
            lead(&mut session, *project, &told, signature, *execution, now).await?;
        }
        for (signature, execution) in found.iter().skip(1) {
            route(&mut session, *project, &told, signature.fingerprint(), *execution).await?;
        }
        versions::mark(&mut session, *project, *old).await?;
        session.commit().await?;
    }
    Ok(!outdated.is_empty())
}

/// What the rules of today read of failures with an old fingerprint: of the
/// evidence of the newest one that has any, else of the text that made its
/// cluster. Where they tell such failures apart, each kind is there once, with
/// its newest failure.
async fn read_again(
    ctx: &Context,
    project: ProjectId,
    old: Fingerprint,
) -> Result<Vec<(Signature, Option<ExecutionId>)>> {
    let mut session = ctx.store.db().read().await?;
    let told = routes::list(&mut session, project, [old]).await?;
    let places: BTreeSet<i64> = told.iter().map(|route| route.cluster.get()).collect();
    let places: Vec<i64> = places.into_iter().collect();
    let mut found: Vec<(Signature, Option<ExecutionId>)> = Vec::new();
    let mut tests = BTreeSet::new();
    for id in versions::failures(&mut session, project, places.clone(), old, MOST_FAILURES).await? {
        let Some(row) = executions::get(&mut session, project, id).await? else { continue };
        if tests.contains(&row.test_case) {
            continue;
        }
        // Damaged rows tell nothing either.
        let Ok(attempts) = stored_attempts(&row) else { continue };
        let attempts = attempts.attempts();
        let failed = attempts.iter().filter(|attempt| attempt.facts.fingerprint == Some(old));
        for slice in failed.filter_map(|attempt| attempt.evidence) {
            let Some(evidence) = left_of(ctx, project, &slice).await? else { continue };
            let signature = evidence.error.as_deref().and_then(|error| evidence.failure_of(error));
            if let Some(signature) = signature {
                tests.insert(row.test_case);
                if found.iter().all(|(known, _)| known.fingerprint() != signature.fingerprint()) {
                    found.push((signature, Some(id)));
                }
            }
        }
        if tests.len() == MOST_TESTS || found.first().is_some_and(|(first, _)| !may_be_several(first)) {
            break;
        }
    }
    if !found.is_empty() {
        return Ok(found);
    }
    let mut sample = versions::sample(&mut session, project, old).await?;
    if sample.is_none()
        && let Some(route) = told.first()
    {
        sample = Some(clusters::sample(&mut session, project, route.cluster).await?.0);
    }
    let signature = sample.and_then(|error| Evidence::default().failure_of(&error));
    let signature = signature.filter(|signature| !needs_source(signature));
    Ok(signature.map(|signature| (signature, None)).into_iter().collect())
}

/// Whether failures like this one may have had one fingerprint by older rules
/// and have several today: what is compared, and which property is looked at,
/// was not always read.
fn may_be_several(signature: &Signature) -> bool {
    let is_drag = matches!(signature.api.as_str(), "dragTo" | "dragAndDrop");
    is_drag || signature.kind == Kind::Assert && !signature.template.is_empty()
}

/// The evidence of a failure, as far as its pack is still there.
async fn left_of(ctx: &Context, project: ProjectId, slice: &EvidenceSlice) -> Result<Option<Evidence>> {
    match evidence::read(&ctx.store, project, slice).await {
        Ok(evidence) => Ok(Some(evidence)),
        Err(error @ (StoreError::Damaged(_) | StoreError::Storage(_))) => {
            // While the object store is away nothing is known to be gone, and
            // what is told without its evidence is not told again later.
            if matches!(error, StoreError::Storage(_)) {
                ctx.store.check_storage().await?;
            }
            tracing::warn!(%error, "a failure cannot be told anew from its evidence");
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether only the source tells a failure from others of its matcher: without
/// it they would all be led to one cluster.
fn needs_source(signature: &Signature) -> bool {
    signature.kind == Kind::Assert && signature.target.is_empty() && signature.template.is_empty()
}

/// Leads what newer rules read to where the old fingerprint leads.
async fn lead(
    session: &mut Session,
    project: ProjectId,
    told: &[Route],
    signature: &Signature,
    execution: Option<ExecutionId>,
    now: Timestamp,
) -> Result<()> {
    let general = |routes: &[Route]| routes.iter().find(|route| route.test_case.is_none()).copied();
    let known = route(session, project, told, signature.fingerprint(), execution).await?;
    let Some(route) = general(told) else { return Ok(()) };
    if versions::rename(session, project, route.cluster, route.fingerprint, signature).await?
        && let Some(row) = clusters::get(session, project, route.cluster).await?
        && row.status != ClusterStatus::Merged
    {
        search::replace(session, project, SearchKind::Cluster, row.id.get(), found_by(&row)).await?;
    }
    let elsewhere = general(&known).map(|known| known.cluster);
    let worded = versions::word(session, project, signature, route.cluster).await?;
    if let Some(other) = elsewhere.or(worded).filter(|other| *other != route.cluster) {
        meet(session, project, route.cluster, other, now).await?;
    }
    Ok(())
}

/// Leads a new fingerprint to where the old one leads, unless it leads
/// somewhere already. Answers where it led before.
async fn route(
    session: &mut Session,
    project: ProjectId,
    told: &[Route],
    new: Fingerprint,
    execution: Option<ExecutionId>,
) -> Result<Vec<Route>> {
    let known = routes::list(session, project, [new]).await?;
    for route in told.iter().filter(|route| route.fingerprint != new) {
        let is_known = known.iter().any(|known| known.test_case == route.test_case);
        if !is_known {
            routes::route(session, project, new, route.test_case, route.cluster, execution).await?;
        }
    }
    Ok(known)
}

/// Two clusters turn out to be about the same failure.
async fn meet(
    session: &mut Session,
    project: ProjectId,
    one: ClusterId,
    other: ClusterId,
    now: Timestamp,
) -> Result<()> {
    let (older, newer) = (one.min(other), one.max(other));
    if are_kept_apart(session, project, (older, newer)).await? {
        return Ok(());
    }
    let touched = versions::touched(session, project, vec![older.get(), newer.get()]).await?;
    let (kept, gone) = match (touched.contains(&older), touched.contains(&newer)) {
        (_, false) => (older, newer),
        (false, true) => (newer, older),
        (true, true) => {
            let why = "The rules that tell failures apart read the same failure in both.";
            let method = (SuggestionMethod::Fingerprint, None);
            return Ok(suggestions::suggest(session, project, (older, newer), method, why, now).await?);
        }
    };
    let mut rows = clusters::lock(session, project, vec![older.get(), newer.get()]).await?;
    rows.retain(|row| row.status != ClusterStatus::Merged);
    let Some(at) = rows.iter().position(|row| row.id == gone) else { return Ok(()) };
    let gone = rows.remove(at);
    let Some(mut kept) = rows.pop().filter(|row| row.id == kept) else { return Ok(()) };
    join(session, &gone, &mut kept, now).await
}

/// Whether somebody has refused that two clusters are one. That outranks what
/// any rules read of them.
async fn are_kept_apart(
    session: &mut Session,
    project: ProjectId,
    pair: (ClusterId, ClusterId),
) -> Result<bool> {
    let mut before = None;
    loop {
        let refused =
            suggestions::list(session, project, SuggestionStatus::Rejected, before, SUGGESTIONS).await?;
        if refused.iter().any(|row| (row.a, row.b) == pair) {
            return Ok(true);
        }
        let Some(last) = refused.last() else { return Ok(false) };
        before = Some(last.id.get());
    }
}
