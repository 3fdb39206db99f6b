//! Finds tests that are the same under two paths.
//!
//! Whether two tests are joined depends on what is known of a project and on nothing else, so
//! the order in which runs arrive does not matter: the earlier path of one of them is that of the
//! other under a prefix that a run told, no run has reported the earlier path from the root of a
//! work tree, and no second file had it. Where only the last is not so, people are asked.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_core::retry::repeated;
use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::ingest::{IdentityHash, PathPrefix};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::history_joins::{self, Decider, JoinState, NewJoin};
use callboard_store::lanes::OF_ALL_RUNS;
use callboard_store::test_cases::carrying::{self, IdentityRow};
use callboard_store::{boxed, quarantine, rollups, source_paths, test_cases};

use crate::aggregate::aggregation;
use crate::identity::checking::{DISPUTED, SHARED, undo_own};
use crate::identity::decisions::join_now;
use crate::transaction::follow_up::FindHistories;
use crate::{Context, Entity, QueryError, Result};

/// Tests of one step.
const TESTS: i64 = 500;

/// Looks at the next tests of a project. `None` when there are no more.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn find_histories(
    ctx: &Context,
    job: FindHistories,
    now: Timestamp,
) -> Result<Option<FindHistories>> {
    let FindHistories { project, after, until } = job;
    let mut session = ctx.store.db().read().await?;
    let prefixes = source_paths::prefixes(&mut session, project).await?;
    let mut tests = carrying::identities_behind(&mut session, project, after, TESTS).await?;
    tests.retain(|test| until.is_none_or(|until| test.id <= until));
    let Some(last) = tests.last().map(|test| test.id) else { return Ok(None) };
    let earlier = with_counterparts(&mut session, project, &tests, &prefixes).await?;
    drop(session);
    for test in earlier {
        let results = results_of(ctx, project, &test, &prefixes).await?;
        repeated(|| decide(ctx, project, (&test, &prefixes), &results, now)).await?;
    }
    Ok(Some(FindHistories { after: last, ..job }))
}

/// The identities that are, under one of the prefixes, the earlier ones of others; each of `tests`
/// may be either.
async fn with_counterparts(
    session: &mut Session,
    project: ProjectId,
    tests: &[IdentityRow],
    prefixes: &[PathPrefix],
) -> Result<Vec<IdentityRow>> {
    let mut earlier_of: BTreeSet<IdentityHash> = BTreeSet::new();
    let mut present_of: HashMap<IdentityHash, Vec<&IdentityRow>> = HashMap::new();
    for (test, prefix) in tests.iter().flat_map(|test| prefixes.iter().map(move |prefix| (test, prefix))) {
        earlier_of.extend(prefix.earlier_path(&test.path).map(|path| test.at(&path)));
        if let Some(path) = prefix.present_path(&test.path) {
            present_of.entry(test.at(&path)).or_default().push(test);
        }
    }
    let mut found: BTreeMap<TestCaseId, IdentityRow> = BTreeMap::new();
    let earlier_of: Vec<IdentityHash> = earlier_of.into_iter().collect();
    for test in carrying::identities(session, project, &earlier_of).await? {
        found.insert(test.id, test);
    }
    let hashes: Vec<IdentityHash> = present_of.keys().copied().collect();
    for present in carrying::identities(session, project, &hashes).await? {
        let earlier = present_of.get(&present.at(&present.path)).into_iter().flatten();
        found.extend(earlier.map(|test| (test.id, (*test).clone())));
    }
    // What a run from the root of a work tree has reported is no shorter form of another path.
    Ok(found.into_values().filter(|test| !test.is_rooted).collect())
}

/// The tests of which one is the earlier form under some prefixes, by id.
async fn presents_of(
    session: &mut Session,
    project: ProjectId,
    earlier: &IdentityRow,
    prefixes: &[PathPrefix],
) -> Result<Vec<IdentityRow>> {
    let paths: BTreeSet<String> =
        prefixes.iter().filter_map(|prefix| prefix.present_path(&earlier.path)).collect();
    let hashes: Vec<IdentityHash> = paths.iter().map(|path| earlier.at(path)).collect();
    Ok(carrying::identities(session, project, &hashes).await?)
}

/// Whether tests are in quarantine, and how many results they have: the one with most keeps its id.
type Results = HashMap<TestCaseId, (bool, i64)>;

async fn results_of(
    ctx: &Context,
    project: ProjectId,
    earlier: &IdentityRow,
    prefixes: &[PathPrefix],
) -> Result<Results> {
    let mut session = aggregation::read_session_with_fresh_aggregates(ctx, project).await?;
    let presents = presents_of(&mut session, project, earlier, prefixes).await?;
    let ids: Vec<i64> = presents.iter().chain([earlier]).map(|test| test.counts_for().get()).collect();
    let states = rollups::states_in(&mut session, project, OF_ALL_RUNS, ids.clone()).await?;
    let aside = quarantine::marked(&mut session, project, ids.clone()).await?;
    let results = ids.into_iter().map(TestCaseId).map(|id| {
        let results = states.get(&id).map_or(0, |state| state.counts().total_tests);
        (id, (aside.contains(&id), results))
    });
    Ok(results.collect())
}

/// Joins an earlier identity with the one it has today, or proposes it; makes joins undone that a
/// second such identity speaks against.
async fn decide(
    ctx: &Context,
    project: ProjectId,
    (earlier, prefixes): (&IdentityRow, &[PathPrefix]),
    results: &Results,
    now: Timestamp,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    test_cases::lock(&mut session, project, vec![earlier.id.get()]).await?;
    let own = carrying::identities(&mut session, project, &[earlier.at(&earlier.path)]).await?;
    let Some(earlier) = own.first().filter(|own| !own.is_rooted) else { return Ok(()) };
    let presents = presents_of(&mut session, project, earlier, prefixes).await?;
    let known = history_joins::of_tests(&mut session, project, vec![earlier.id.get()]).await?;
    let is_shared =
        !source_paths::shared_among(&mut session, project, vec![earlier.path.clone()]).await?.is_empty();
    let doubt = match (presents.len(), is_shared) {
        (0 | 1, false) => None,
        (_, true) => Some(SHARED),
        _ => Some(DISPUTED),
    };
    if let Some(doubt) = doubt {
        let wrong: Vec<_> = known.iter().filter(|join| join.is_earlier(earlier.id)).cloned().collect();
        undo_own(&mut session, project, &wrong, doubt, now).await?;
    }
    for present in &presents {
        let pair = [earlier.counts_for(), present.counts_for()];
        // Of a pair that was decided about before nothing is decided again.
        if pair[0] == pair[1]
            || known.iter().any(|join| join.path == present.path && join.is_earlier(earlier.id))
        {
            continue;
        }
        let count = |test: &IdentityRow| results.get(&test.counts_for()).copied().unwrap_or_default();
        let leads = history_joins::of_kept(&mut session, project, vec![present.id.get()]).await?;
        let keeps_present =
            present.joined_to.is_some() || !leads.is_empty() || count(present) > count(earlier);
        let (kept, joined) = if keeps_present { (present, earlier) } else { (earlier, present) };
        let kept_path = path_of(&mut session, project, kept.counts_for()).await?;
        let new = NewJoin {
            kept: kept.counts_for(),
            joined: joined.id,
            paths: (&kept_path, &joined.path),
            path: &present.path,
            state: JoinState::Proposed,
            reason: doubt.unwrap_or(TOLD),
        };
        let proposed = history_joins::propose(&mut session, project, &new, now).await?;
        if doubt.is_none()
            && let Some(join) = proposed
        {
            join_now(&mut session, &join, TOLD, (now, Decider::Service)).await?;
        }
    }
    Ok(session.commit().await?)
}

/// Why tests were joined, for people.
const TOLD: &str = "runs were started from several folders";

/// The path under which results of a test come.
async fn path_of(session: &mut Session, project: ProjectId, test: TestCaseId) -> Result<String> {
    let mut paths = test_cases::reported_paths(session, project, vec![test.get()]).await?;
    paths.remove(&test).ok_or_else(|| QueryError::not_found(Entity::TestCase, test))
}
