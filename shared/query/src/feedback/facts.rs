//! What is said about a run, from its present state.

use std::collections::{HashMap, HashSet};

use callboard_auth::scope::Authorized;
use callboard_domain::feedback::{Cause, FeedbackFacts, GateVerdict, Incident, NamedTest, NewFailure};
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId, TestCaseId};
use callboard_domain::status::{Outcome, RunStatus};
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_store::clusters::{self, ClusterRow, reads};
use callboard_store::executions::brief::BriefRow;
use callboard_store::runs::{self, RunRow};
use callboard_store::test_cases::{self, TestCaseRow};
use callboard_store::{boxed, lanes};

use crate::administration::AdministrationRule;
use crate::comparison::each_step;
use crate::failures::{Detail, explain};
use crate::gates::{self, PolicyChoice};
use crate::notifications::{ended_as, name_of, shown_name};
use crate::projects::required;
use crate::shapes::non_empty;
use crate::{Context, QueryError, Result, baseline, run_errors};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Tests that a section lists.
const LISTED: usize = 20;
/// New failures whose cause and locator are looked up: each reads the evidence of one failure.
const EXPLAINED: usize = 10;
/// Failing tests with one cause that make an incident.
const MIN_INCIDENT: i64 = 3;

/// The executions of a run by what is said about them.
#[derive(Default)]
struct Sorted {
    /// One of each cause, and how many more have it.
    new: Vec<(BriefRow, i64)>,
    new_count: i64,
    /// Failing tests by cause.
    causes: HashMap<ClusterId, i64>,
    known: HashMap<ClusterId, i64>,
    known_count: i64,
    quarantined: i64,
    flaky: Vec<BriefRow>,
    flaky_count: i64,
    fixed: Vec<BriefRow>,
    fixed_count: i64,
    is_known: bool,
}

fn push(list: &mut Vec<BriefRow>, count: &mut i64, row: BriefRow) {
    *count += 1;
    if list.len() < LISTED {
        list.push(row);
    }
}

impl Sorted {
    fn take(&mut self, row: BriefRow, new_clusters: &HashSet<ClusterId>) {
        let has = |flag: Flags| row.flags.contains(flag);
        let is_failing = matches!(row.outcome, Outcome::Failed | Outcome::TimedOut);
        self.is_known |= has(Flags::BASELINE_KNOWN);
        if has(Flags::QUARANTINED) {
            self.quarantined += i64::from(is_failing);
            return;
        }
        if row.outcome == Outcome::Flaky {
            push(&mut self.flaky, &mut self.flaky_count, row);
        }
        if has(Flags::FIXED) {
            push(&mut self.fixed, &mut self.fixed_count, row);
        }
        if !is_failing {
            return;
        }
        if let Some(cluster) = row.cluster {
            *self.causes.entry(cluster).or_default() += 1;
        }
        let is_old_cause = row.cluster.is_some_and(|cluster| !new_clusters.contains(&cluster));
        let is_new = has(Flags::NEW_REGRESSION) || (!has(Flags::BASELINE_KNOWN) && !is_old_cause);
        if !is_new {
            self.known_count += 1;
            if let Some(cluster) = row.cluster {
                *self.known.entry(cluster).or_default() += 1;
            }
            return;
        }
        self.new_count += 1;
        let is_same = |(known, _): &(BriefRow, i64)| known.cluster.is_some() && known.cluster == row.cluster;
        match self.new.iter().position(is_same) {
            Some(at) => self.new[at].1 += 1,
            None if self.new.len() < LISTED => self.new.push((row, 0)),
            None => {}
        }
    }
}

/// The facts that comment and status are made of.
#[boxed]
pub(super) async fn facts(ctx: &Context, run: &RunRow) -> Result<FeedbackFacts> {
    let project = Authorized::of_job(run.project);
    let mut session = read_session_with_fresh_aggregates(ctx, run.project).await?;
    let newest = runs::get(&mut session, run.project, run.id).await?;
    let run = newest.as_ref().unwrap_or(run);
    let new = reads::new_of_run(&mut session, run.project, run.id, i64::MAX).await?;
    let new: HashSet<ClusterId> = new.into_iter().collect();
    let mut sorted = Sorted::default();
    each_step(&mut session, run, |row| sorted.take(row, &new)).await?;

    let rows = sorted.new.iter().map(|(row, _)| row).chain(&sorted.flaky).chain(&sorted.fixed);
    let cases: Vec<i64> = rows.map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(&mut session, run.project, cases).await?;
    let browsers = lanes::browsers(&mut session, run.project).await?;
    let browsers: HashMap<i64, String> =
        browsers.into_iter().map(|browser| (browser.id, browser.name)).collect();
    let clusters: Vec<i64> = sorted.causes.keys().map(|cluster| cluster.get()).collect();
    let clusters = clusters::get_many(&mut session, run.project, clusters).await?;
    let clusters: HashMap<ClusterId, ClusterRow> = clusters.into_iter().map(|row| (row.id, row)).collect();
    let owner = required(&mut session, run.project).await?;
    let compared = baseline::facts(&mut session, run.project, run.id).await?.is_known
        || baseline::of_run(&mut session, run).await?.is_some();
    let errors = run_errors::of_run(&mut session, run).await?;
    let reason = run_errors::reason(run, &errors);
    drop(session);

    let tests = Tests { ctx, cases: &cases, browsers: &browsers, shows_browser: run.browsers.len() > 1 };
    let mut new_failures = Vec::with_capacity(sorted.new.len());
    for (at, (row, same_cause)) in sorted.new.iter().enumerate() {
        let Some(test) = tests.named(row) else { continue };
        let explained = match at < EXPLAINED {
            true => explained(ctx, project, row.id).await?,
            false => (None, None),
        };
        let name = row.cluster.and_then(|cluster| clusters.get(&cluster)).map(name_of);
        new_failures.push(NewFailure {
            test,
            cause: explained.0.or(name),
            locator: explained.1,
            owner: cases.get(&row.test_case).and_then(|case| case.meta.owner.clone()),
            same_cause: *same_cause,
        });
    }
    let by_cause = |counts: &HashMap<ClusterId, i64>, least: i64| {
        let mut found: Vec<(&ClusterRow, i64)> = counts
            .iter()
            .filter(|(_, tests)| **tests >= least)
            .filter_map(|(cluster, tests)| Some((clusters.get(cluster)?, *tests)))
            .collect();
        found.sort_by_key(|(row, tests)| (-tests, row.id));
        let count = i64::try_from(found.len()).unwrap_or(i64::MAX);
        found.truncate(LISTED);
        (found, count)
    };
    let (incidents, incident_count) = by_cause(&sorted.causes, MIN_INCIDENT);
    let (known, _) = by_cause(&sorted.known, 1);
    let page = |row: &ClusterRow| ctx.links.cluster(row.id.get());
    let named = |rows: &[BriefRow]| rows.iter().filter_map(|row| tests.named(row)).collect::<Vec<_>>();
    Ok(FeedbackFacts {
        project: shown_name(&owner).to_owned(),
        run: run.id.get(),
        run_url: ctx.links.run(run.id.get()),
        ended: ended_as(run.status).to_owned(),
        passed: run.status == RunStatus::Passed,
        reason,
        partial: partial(run),
        rerun_of: run.rerun_of.map(|run| run.get()),
        commit: run.commit_sha.clone(),
        branch: non_empty(&run.branch),
        environment: non_empty(&run.environment),
        totals: run.totals,
        gate: gate(ctx, run).await?,
        is_compared: sorted.is_known || compared,
        is_mass_failure: run.is_mass_failure,
        new_failures: (new_failures, sorted.new_count),
        incidents: (
            incidents
                .into_iter()
                .map(|(row, tests)| Incident { cause: name_of(row), url: page(row), tests })
                .collect(),
            incident_count,
        ),
        known: (
            known
                .into_iter()
                .map(|(row, tests)| Cause { name: name_of(row), url: page(row), tests })
                .collect(),
            sorted.known_count,
        ),
        quarantined: sorted.quarantined,
        flaky: (named(&sorted.flaky), sorted.flaky_count),
        fixed: (named(&sorted.fixed), sorted.fixed_count),
    })
}

/// Cause and working locator of a failure; what cannot be read is left out.
async fn explained(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<(Option<String>, Option<String>)> {
    match explain(ctx, project, id, Detail::Summary).await {
        Ok(found) => Ok((found.headline, found.healing.map(|healing| healing.locator))),
        // It went while this was read.
        Err(QueryError::NotFound { .. }) => Ok((None, None)),
        Err(error) => {
            tracing::warn!(%error, execution = id.get(), "a failure could not be explained for its request");
            Ok((None, None))
        }
    }
}

/// What the default gate of the project says; `None` without one.
async fn gate(ctx: &Context, run: &RunRow) -> Result<Option<GateVerdict>> {
    let project = Authorized::of_job(run.project);
    match gates::judge(ctx, None, project, run.id, PolicyChoice::Default).await {
        Ok(result) => Ok(Some(GateVerdict {
            name: result.policy_name.unwrap_or_default(),
            passed: result.passed,
            violations: result.violations.into_iter().map(|violation| violation.message).collect(),
        })),
        Err(QueryError::Administration(AdministrationRule::NoPolicy)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Why the numbers of a run are not those of the whole suite.
fn partial(run: &RunRow) -> Option<String> {
    if run.rerun_of.is_some() {
        return None;
    }
    if let Some(total) = run.shard_total
        && run.shards_finished < total
    {
        return Some(format!("{} of {total} shards have reported.", run.shards_finished));
    }
    match run.expected_tests {
        Some(expected) => Some(format!("{} of about {expected} tests ran.", run.totals.total_tests)),
        None => (!run.is_full).then(|| "Only a part of the suite ran.".to_owned()),
    }
}

/// Names tests as readers know them.
struct Tests<'t> {
    ctx: &'t Context,
    cases: &'t HashMap<TestCaseId, TestCaseRow>,
    browsers: &'t HashMap<i64, String>,
    /// Whether a run has several browser projects.
    shows_browser: bool,
}

impl Tests<'_> {
    fn named(&self, row: &BriefRow) -> Option<NamedTest> {
        let case = self.cases.get(&row.test_case)?;
        let title = case.suite_path.iter().chain([&case.title]).cloned().collect::<Vec<_>>().join(" › ");
        let browser =
            self.browsers.get(&row.browser_id).filter(|name| self.shows_browser && !name.is_empty());
        Some(NamedTest {
            title,
            file: case.file_path.clone(),
            browser: browser.cloned(),
            url: self.ctx.links.execution(row.id.get()),
        })
    }
}
