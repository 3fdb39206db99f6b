//! Quality gates: judging a run by a policy, and the policies of a project.

use std::collections::{BTreeMap, HashSet};

use callboard_auth::Role;
use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::gate::{self, Policy, Violation};
use callboard_domain::ids::{ClusterId, ProjectId, RunId, UserId};
use callboard_domain::status::{Outcome, RunStatus};
use callboard_domain::test_state::ExecutionFlags as Flags;
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users;
use callboard_store::db::Session;
use callboard_store::executions::{self, ExecutionFilter, ExecutionOrder, FlagMask, brief};
use callboard_store::gates::{self, PolicyRow, ResultRow};
use callboard_store::runs::RunRow;
use callboard_store::{StoreError, boxed, clusters, test_cases};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use crate::accounts::Acting;
use crate::administration::AdministrationRule;
use crate::baseline::{self, Fallback};
use crate::comparison::each_step;
use crate::page::{Slice, fetch};
use crate::projects::required;
use crate::run_errors::{self, RunErrorItem};
use crate::runs::required_run;
use crate::shapes::words::RunStatusWord;
use crate::shapes::{GateBrief, PinItem, UserRef};
use crate::{Context, Entity, LifeRefusal, QueryError, Result};
use callboard_ingest::read_session_with_fresh_aggregates;

/// Failing tests that are listed for a required tag.
const TESTS_PER_TAG: i64 = 20;
/// Most policies of a project.
const MAX_POLICIES: i64 = 200;

/// By what a run is judged.
#[derive(Debug, Clone)]
pub enum PolicyChoice {
    /// By rules that come with the request.
    Inline(Policy),
    /// By a stored policy.
    Named(String),
    /// By the policy that the project uses when none is named.
    Default,
}

/// What a gate says about a run.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateResult {
    /// Id of the stored result; null when nothing was stored.
    pub id: Option<i64>,
    /// Whether nothing is violated.
    #[schema(example = false)]
    pub passed: bool,
    /// Name of the stored policy; null for rules that came with the request.
    pub policy_name: Option<String>,
    /// The rules that are violated.
    #[schema(value_type = Vec<GateViolation>)]
    pub violations: Vec<Violation>,
    /// What the rules were asked about.
    pub facts: GateFacts,
}

/// A rule that is violated.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "describes the domain's violation in the OpenAPI document")]
pub struct GateViolation {
    /// Of the run itself: incomplete-run, run-errors, run-status or no-results. Of the policy: required-tag, unmatched-tag, max-failed, max-new-regressions, max-new-flaky, new-cluster, max-quarantined,
    /// flaky, min-pass-rate or no-baseline.
    #[schema(example = "max-failed")]
    rule: String,
    /// In words.
    #[schema(example = "3 tests failed; at most 0 may.")]
    message: String,
    /// What the run has.
    #[schema(example = 3)]
    actual: Option<f64>,
    /// What the policy allows.
    #[schema(example = 0)]
    limit: Option<f64>,
}

/// What a gate knows about a run. Counts are tests, never attempts.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateFacts {
    /// Run.
    pub run_id: i64,
    /// Page of the run.
    pub run_url: String,
    /// Project.
    pub project_name: String,
    /// How the run ended.
    #[schema(value_type = RunStatusWord)]
    pub status: RunStatus,
    /// Why it is not green beyond its failed tests; null when they say it all.
    pub status_reason: Option<String>,
    /// Its errors that belong to no test.
    pub run_errors: Vec<RunErrorItem>,
    /// All tests.
    pub total_tests: i64,
    /// How many tests the run was expected to have, when it claimed to be full and had far fewer; it counts as partial
    /// then. Null otherwise.
    #[schema(example = 480)]
    pub expected_tests: Option<i64>,
    /// Failed and timed out tests, without those in quarantine.
    pub failed_tests: i64,
    /// Tests that passed before and fail now, without those in quarantine; null when nothing was known before.
    pub new_regressions: Option<i64>,
    /// Tests that passed at the first attempt before and are flaky now; null likewise.
    pub new_flaky: Option<i64>,
    /// Failures nobody had seen before, without those that only tests in
    /// quarantine have.
    pub new_clusters: i64,
    /// Failing tests by required tag, at most twenty each.
    pub failing_by_tag: BTreeMap<String, Vec<GateTest>>,
    /// Required tags that no test of the run has.
    pub unmatched_tags: Vec<String>,
    /// Failed tests in quarantine.
    pub quarantined_failures: i64,
    /// Tests in quarantine.
    pub quarantined_total: i64,
    /// Tests that passed after a failed attempt, without those in quarantine.
    pub flaky_tests: i64,
    /// Whether most tests failed together, which points to an outage.
    pub mass_failure: bool,
    /// The green run it is measured against.
    pub baseline: Option<GateBaseline>,
}

/// A failing test.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateTest {
    /// Title of the test.
    pub title: String,
    /// Its file.
    pub file_path: String,
    /// Its execution.
    pub execution_id: i64,
}

/// The green run that a run is measured against.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GateBaseline {
    /// The green run.
    pub run_id: i64,
    /// Where it was found.
    pub fallback: Fallback,
}

/// Judges a final run. What the gate said is kept when an administrator or
/// reporter asks; a user only learns it.
///
/// # Errors
/// [`QueryError::NotFound`] for the run or the policy;
/// [`LifeRefusal::NotFinished`]; [`AdministrationRule::NoPolicy`] when nothing
/// is asked; [`QueryError::Store`].
pub async fn judge(
    ctx: &Context,
    keep_for: Option<Acting<'_>>,
    project: Authorized<ProjectId>,
    run: RunId,
    asked: PolicyChoice,
) -> Result<GateResult> {
    let project = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project).await?;
    let row = required_run(&mut session, project, run).await?;
    let (policy, policy_name) = policy_of(&mut session, project, asked).await?;
    if !row.status.is_final() {
        return Err(LifeRefusal::NotFinished.into());
    }
    let facts = facts(ctx, &mut session, &row, &policy).await?;
    drop(session);
    let violations = gate::gate(&policy, &facts.asked);
    let mut result =
        GateResult { id: None, passed: violations.is_empty(), policy_name, violations, facts: facts.shown };
    if let Some(acting) = keep_for
        && matches!(acting.caller.role(), Some(Role::Administrator | Role::Reporter))
    {
        result.id = Some(keep(ctx, acting, &row, &result).await?);
    }
    Ok(result)
}

async fn policy_of(
    session: &mut Session,
    project: ProjectId,
    asked: PolicyChoice,
) -> Result<(Policy, Option<String>)> {
    let (name, missing) = match asked {
        PolicyChoice::Inline(policy) => return Ok((policy, None)),
        PolicyChoice::Named(name) => {
            let missing = QueryError::not_found(Entity::GatePolicy, &name);
            (Some(name), missing)
        }
        PolicyChoice::Default => (None, AdministrationRule::NoPolicy.into()),
    };
    let row = gates::policy_named(session, project, name.as_deref()).await?.ok_or(missing)?;
    Ok((read(&row)?, Some(row.name)))
}

fn read(row: &PolicyRow) -> Result<Policy> {
    let damaged = || StoreError::Damaged("the policy of a gate");
    let Ok(Value::Object(fields)) = serde_json::from_str(&row.policy) else { return Err(damaged().into()) };
    Policy::read(&fields).map_err(|_| damaged().into())
}

struct Known {
    asked: gate::Facts,
    shown: GateFacts,
}

async fn facts(ctx: &Context, session: &mut Session, run: &RunRow, policy: &Policy) -> Result<Known> {
    let project = required(session, run.project).await?;
    let flags = baseline::facts(session, run.project, run.id).await?;
    let green = baseline::of_run(session, run).await?;
    let compared = (flags.is_known || green.is_some()).then_some(flags.compared);
    let by_tag = brief::by_tag(session, run.project, run.id, policy.require_tags.clone()).await?;
    let mut failing_by_tag = BTreeMap::new();
    for tag in by_tag.keys() {
        failing_by_tag.insert(tag.clone(), failing_with(session, run, tag).await?);
    }
    let has_aside = flags.quarantined_failed + flags.quarantined_flaky > 0;
    let new_clusters = new_clusters(session, run, has_aside).await?;
    let run_errors = run_errors::of_run(session, run).await?;
    let run_facts = of_run(session, run, &run_errors).await?;
    let is_unmatched = |tag: &&String| !by_tag.contains_key(*tag);
    let asked = gate::Facts {
        run: run_facts,
        passed: run.totals.passed_tests,
        failed: run.totals.failed_tests - flags.quarantined_failed,
        new_regressions: compared.map(|compared| compared.new_regressions),
        new_flaky: compared.map(|compared| compared.new_flaky),
        new_clusters,
        flaky: run.totals.flaky_tests - flags.quarantined_flaky,
        quarantined: flags.quarantined,
        unmatched_tags: policy.require_tags.iter().filter(is_unmatched).cloned().collect(),
        failing_by_tag: by_tag,
    };
    let shown = GateFacts {
        run_id: run.id.get(),
        run_url: ctx.links.run(run.id.get()),
        project_name: project.name,
        status: run.status,
        status_reason: asked.run.reason.clone(),
        run_errors,
        total_tests: run.totals.total_tests,
        expected_tests: run.expected_tests,
        failed_tests: asked.failed,
        new_regressions: asked.new_regressions,
        new_flaky: asked.new_flaky,
        new_clusters: asked.new_clusters,
        failing_by_tag,
        unmatched_tags: asked.unmatched_tags.clone(),
        quarantined_failures: flags.quarantined_failed,
        quarantined_total: flags.quarantined,
        flaky_tests: asked.flaky,
        mass_failure: run.is_mass_failure,
        baseline: green.map(|green| GateBaseline { run_id: green.row.id.get(), fallback: green.fallback }),
    };
    Ok(Known { asked, shown })
}

/// What a gate has to know of a run beside its tests.
async fn of_run(session: &mut Session, run: &RunRow, errors: &[RunErrorItem]) -> Result<gate::RunFacts> {
    let totals = &run.totals;
    let not_run = match totals.did_not_run_tests {
        0 => 0,
        _ => {
            let reasons = gate::STOPPED.map(str::to_owned).to_vec();
            brief::not_run_for(session, run.project, run.id, reasons).await?
        }
    };
    // Not all shards of a re-run need to come.
    let shards = run.shard_total.filter(|_| run.rerun_of.is_none()).unwrap_or_default();
    Ok(gate::RunFacts {
        reason: run_errors::reason(run, errors),
        errors: i64::try_from(errors.len()).unwrap_or(i64::MAX),
        ended_early: matches!(run.status, RunStatus::Interrupted | RunStatus::Cancelled),
        missing_shards: (shards - run.shards_finished).max(0),
        cut_off: totals.interrupted_tests + not_run,
        with_result: if run.totals_from_rows {
            totals.passed_tests + totals.failed_tests + totals.skipped_tests
        } else {
            0
        },
    })
}

/// Failures that a run was the first to show, but for those that only tests in
/// quarantine have.
async fn new_clusters(session: &mut Session, run: &RunRow, has_aside: bool) -> Result<i64> {
    let mut new = clusters::reads::new_of_run(session, run.project, run.id, i64::MAX).await?;
    if has_aside && !new.is_empty() {
        let mut told: HashSet<ClusterId> = HashSet::new();
        each_step(session, run, |row| {
            told.extend(row.cluster.filter(|_| !row.flags.contains(Flags::QUARANTINED)));
        })
        .await?;
        new.retain(|cluster| told.contains(cluster));
    }
    Ok(i64::try_from(new.len()).unwrap_or(i64::MAX))
}

/// Failing tests of a run with a tag, without those in quarantine.
async fn failing_with(session: &mut Session, run: &RunRow, tag: &str) -> Result<Vec<GateTest>> {
    let filter = ExecutionFilter {
        outcomes: Some(vec![Outcome::Failed.code(), Outcome::TimedOut.code()]),
        tag: Some(tag.to_owned()),
        flags: Some(FlagMask { asked: Flags::QUARANTINED.bits(), wanted: 0 }),
        ..ExecutionFilter::default()
    };
    let order = ExecutionOrder::Id(None);
    let rows = executions::list(session, run.project, run.id, &filter, &order, TESTS_PER_TAG).await?;
    let cases = rows.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(session, run.project, cases).await?;
    let shown = rows.iter().filter_map(|row| {
        let case = cases.get(&row.test_case)?;
        Some(GateTest {
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            execution_id: row.id.get(),
        })
    });
    Ok(shown.collect())
}

async fn keep(ctx: &Context, acting: Acting<'_>, run: &RunRow, result: &GateResult) -> Result<i64> {
    let row = ResultRow {
        id: 0,
        policy_name: result.policy_name.clone(),
        passed: result.passed,
        violations: i64::try_from(result.violations.len()).unwrap_or(i64::MAX),
        at: acting.now,
        by: acting.caller.user_id(),
    };
    let body = serde_json::to_string(result).map_err(|_| StoreError::Damaged("the result of a gate"))?;
    let mut session = ctx.store.db().begin().await?;
    let id = gates::insert_result(&mut session, run.project, run.id, &row, &body).await?;
    let detail = json!({ "policy": row.policy_name, "passed": row.passed });
    let target = ("run", run.id.get());
    let judged = AuditAction::GateJudged;
    let recorded = acting.record(&mut session, judged, target, Some(run.project), detail).await?;
    session.commit().await?;
    recorded.committed();
    Ok(id)
}

/// What gates said about a run, newest first; the key is the id.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn results(
    ctx: &Context,
    project: Authorized<ProjectId>,
    run: RunId,
    before: Option<i64>,
    limit: usize,
) -> Result<Slice<GateBrief, i64>> {
    let mut session = ctx.store.db().read().await?;
    required_run(&mut session, project.get(), run).await?;
    let rows = gates::results(&mut session, project.get(), run, before, fetch(limit)).await?;
    let people = people(&mut session, rows.iter().filter_map(|row| row.by)).await?;
    Ok(Slice::cut(rows, limit, |row| row.id).map(|row| brief_of(&row, &people)))
}

/// What the newest gate said about a run.
pub(crate) async fn newest(session: &mut Session, run: &RunRow) -> Result<Option<GateBrief>> {
    let rows = gates::results(session, run.project, run.id, None, 1).await?;
    let people = people(session, rows.iter().filter_map(|row| row.by)).await?;
    Ok(rows.first().map(|row| brief_of(row, &people)))
}

/// Why and by whom a run is pinned.
pub(crate) async fn pin(session: &mut Session, run: &RunRow) -> Result<Option<PinItem>> {
    let Some(pin) = &run.pin else { return Ok(None) };
    let mut people = people(session, pin.by.into_iter()).await?;
    let by = pin.by.and_then(|user| people.remove(&user.get()));
    Ok(Some(PinItem { at: pin.at, by, reason: pin.reason.clone() }))
}

async fn people(
    session: &mut Session,
    users: impl Iterator<Item = UserId>,
) -> Result<BTreeMap<i64, UserRef>> {
    let mut ids: Vec<i64> = users.map(UserId::get).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let rows = users::get_many(session, ids).await?;
    Ok(rows.iter().map(|row| (row.id.get(), UserRef::from_row(row))).collect())
}

fn brief_of(row: &ResultRow, people: &BTreeMap<i64, UserRef>) -> GateBrief {
    GateBrief {
        id: row.id,
        passed: row.passed,
        policy_name: row.policy_name.clone(),
        violations: row.violations,
        at: row.at,
        by: row.by.and_then(|user| people.get(&user.get()).cloned()),
    }
}

/// A stored policy.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatePolicy {
    /// Policy id.
    pub id: i64,
    /// Its name within the project.
    #[schema(example = "release")]
    pub name: String,
    /// Its rules, under the keys in which they are sent.
    #[schema(value_type = Object, example = json!({ "maxFailed": 0 }))]
    pub policy: Policy,
    /// Whether it is used when a gate names none.
    pub is_default: bool,
    /// Last change.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

impl GatePolicy {
    fn from_row(row: &PolicyRow) -> Result<Self> {
        Ok(Self {
            id: row.id,
            name: row.name.clone(),
            policy: read(row)?,
            is_default: row.is_default,
            updated_at: row.updated_at,
        })
    }
}

/// The policies of a project by name; there are at most 200.
///
/// # Errors
/// [`QueryError::Store`].
#[boxed]
pub async fn policies(ctx: &Context, project: Authorized<ProjectId>) -> Result<Vec<GatePolicy>> {
    let mut session = ctx.store.db().read().await?;
    let rows = gates::policies(&mut session, project.get(), MAX_POLICIES).await?;
    rows.iter().map(GatePolicy::from_row).collect()
}

/// What a policy is to be; `None` keeps what is stored.
#[derive(Debug, Clone, Default)]
pub struct PolicyEdit {
    /// Name.
    pub name: Option<String>,
    /// Rules.
    pub policy: Option<Policy>,
    /// Whether it is used when none is named.
    pub is_default: Option<bool>,
}

fn written(policy: &Policy) -> Result<String> {
    Ok(serde_json::to_string(policy).map_err(|_| StoreError::Damaged("the policy of a gate"))?)
}

/// Stores a new policy.
///
/// # Errors
/// [`AdministrationRule::PolicyNameTaken`]; [`QueryError::TooMany`];
/// [`QueryError::Store`].
pub async fn create_policy(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    name: String,
    policy: &Policy,
    is_default: bool,
) -> Result<GatePolicy> {
    let mut session = ctx.store.db().begin().await?;
    let known = gates::policies(&mut session, project.get(), MAX_POLICIES).await?.len();
    if i64::try_from(known).is_ok_and(|known| known >= MAX_POLICIES) {
        let limit = usize::try_from(MAX_POLICIES).unwrap_or_default();
        return Err(QueryError::TooMany { what: "The project", limit });
    }
    let row = PolicyRow {
        id: gates::new_policy_id(&mut session).await?,
        project: project.get(),
        name,
        policy: written(policy)?,
        is_default,
        updated_at: acting.now,
    };
    if !gates::insert_policy(&mut session, &row).await? {
        return Err(AdministrationRule::PolicyNameTaken.into());
    }
    note(session, acting, AuditAction::PolicyCreated, &row).await?;
    GatePolicy::from_row(&row)
}

/// Changes a policy.
///
/// # Errors
/// [`QueryError::NotFound`]; [`AdministrationRule::PolicyNameTaken`];
/// [`QueryError::Store`].
pub async fn edit_policy(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: i64,
    edit: PolicyEdit,
) -> Result<GatePolicy> {
    let mut session = ctx.store.db().begin().await?;
    let mut row = required_policy(&mut session, project.get(), id).await?;
    row.name = edit.name.unwrap_or(row.name);
    row.policy = edit.policy.as_ref().map(written).transpose()?.unwrap_or(row.policy);
    row.is_default = edit.is_default.unwrap_or(row.is_default);
    row.updated_at = acting.now;
    if !gates::update_policy(&mut session, &row).await? {
        return Err(AdministrationRule::PolicyNameTaken.into());
    }
    note(session, acting, AuditAction::PolicyChanged, &row).await?;
    GatePolicy::from_row(&row)
}

/// Removes a policy. What gates said by it is kept.
///
/// # Errors
/// [`QueryError::NotFound`]; [`QueryError::Store`].
pub async fn delete_policy(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: i64,
) -> Result<()> {
    let mut session = ctx.store.db().begin().await?;
    let row = required_policy(&mut session, project.get(), id).await?;
    gates::delete_policy(&mut session, project.get(), id).await?;
    note(session, acting, AuditAction::PolicyDeleted, &row).await
}

async fn required_policy(session: &mut Session, project: ProjectId, id: i64) -> Result<PolicyRow> {
    let row = gates::policy(session, project, id).await?;
    row.ok_or_else(|| QueryError::not_found(Entity::GatePolicy, id))
}

async fn note(mut session: Session, acting: Acting<'_>, action: AuditAction, row: &PolicyRow) -> Result<()> {
    let detail = json!({ "name": row.name });
    let target = ("gate_policy", row.id);
    let noted = acting.record(&mut session, action, target, Some(row.project), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(())
}
