//! What to do about a cluster: edits that heal its locators, the tests that
//! fail, who looks after them, and how to see that it is repaired.

mod answer;
mod diffs;
mod places;

use std::collections::{BTreeMap, BTreeSet};

use callboard_auth::scope::Authorized;
use callboard_domain::evidence::Evidence;
use callboard_domain::ids::{ClusterId, ExecutionId, ProjectId};
use callboard_domain::repair::{Series, proof_asked};
use callboard_domain::test_state::{RecentOutcome, TestState};
use callboard_domain::text::cut;
use callboard_playwright::healing::verify::{FailingTest, Verification, verification};
use callboard_store::boxed;
use callboard_store::clusters::reads::{Sighting, sightings};
use callboard_store::clusters::{self, ClusterRow};
use callboard_store::evidence::{self, Located};
use callboard_store::executions::{self, ExecutionRow};
use callboard_store::lanes;
use callboard_store::rollups::{self, States};
use callboard_store::runs::{self, RunRow};
use callboard_store::test_cases::{self, OwnerSource, TestCaseRow};
use futures::{StreamExt as _, TryStreamExt as _, stream, try_join};

use super::healing::{HealingEdit, HealingSource, LocatorHealing, RankedLocator, of_subject};
use super::subject::{SpokenOf, Subject};
use crate::{Context, Entity, QueryError, Result, diagnoses};
use callboard_ingest::read_session_with_fresh_aggregates;
use callboard_ingest::series_since;

pub use answer::{FixPlan, Offer, Ownership, PlannedDiagnosis, Verify};
use answer::{PlannedCluster, PlannedEdit, PlannedTest};
use places::Places;

/// Newest executions of a cluster that are looked at.
const MAX_EXECUTIONS: i64 = 100;
/// Executions whose locator is healed: each reads its evidence, and its trace.
const MAX_HEALED: usize = 8;
/// How many of them are looked at at a time.
const HEALED_TOGETHER: usize = 4;
const MAX_EDITS: usize = 5;
const MAX_TESTS: usize = 20;
/// Other locators that are told beside a change.
const MAX_ALTERNATIVES: usize = 4;

/// Plans the repair of a cluster from what is stored. What is not known is
/// left out; it is never an error.
///
/// # Errors
/// [`QueryError::NotFound`], [`QueryError::Store`].
#[boxed]
pub async fn fix_plan(ctx: &Context, project: Authorized<ProjectId>, id: ClusterId) -> Result<FixPlan> {
    let project_id = project.get();
    let mut session = read_session_with_fresh_aggregates(ctx, project_id).await?;
    let cluster = clusters::get(&mut session, project_id, id).await?;
    let cluster = match cluster.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))? {
        ClusterRow { merged_into: Some(into), .. } => clusters::get(&mut session, project_id, into).await?,
        cluster => Some(cluster),
    };
    let cluster = cluster.ok_or_else(|| QueryError::not_found(Entity::Cluster, id))?;
    let rows = sightings(&mut session, project_id, cluster.id, MAX_EXECUTIONS).await?;
    let browsers = lanes::browsers(&mut session, project_id).await?;
    let last_lane = rows.iter().find(|row| row.run == cluster.last_run).map(|row| row.lane_id);
    // The newest failure of each test in each browser project.
    let mut seen = BTreeSet::new();
    let failing: Vec<&Sighting> =
        rows.iter().filter(|row| seen.insert((row.test_case, row.browser_id))).collect();
    let ids: BTreeSet<i64> = failing.iter().map(|row| row.test_case.get()).collect();
    let cases = test_cases::get_many(&mut session, project_id, ids.iter().copied().collect()).await?;
    let cases: BTreeMap<i64, TestCaseRow> = cases.into_values().map(|case| (case.id.get(), case)).collect();
    let failing: Vec<(&Sighting, &TestCaseRow)> =
        failing.into_iter().filter_map(|row| Some((row, cases.get(&row.test_case.get())?))).collect();
    let diagnosis = diagnoses::newest_completed(&mut session, project_id, cluster.id).await?;
    let diagnosis = diagnosis.map(PlannedDiagnosis::from_diagnosis);
    // Nobody holds a connection while waiting for another one.
    drop(session);
    let known = async {
        let states = states_of(ctx, project_id, &failing).await?;
        let places = Places::read(ctx, project_id, &failing, &states).await?;
        Ok((states, places))
    };
    let ((states, places), healed) = try_join!(known, Healed::load(ctx, project, &failing))?;
    let browser_of = |row: &Sighting| {
        let browser = browsers.iter().find(|browser| browser.id == row.browser_id);
        browser.map(|browser| browser.name.clone()).filter(|name| !name.is_empty())
    };
    let to_verify: Vec<FailingTest> = failing
        .iter()
        .map(|(row, case)| FailingTest {
            file_path: case.file_path.clone(),
            line: places.line(case),
            is_line_shared: places.is_shared(case),
            found_too: places.found_too(case),
            suite_path: case.suite_path.clone(),
            title: case.title.clone(),
            project: browser_of(row).unwrap_or_default(),
            series: series(
                states.get(&(row.lane_id, case.id)),
                row.browser_id,
                &cluster,
                last_lane == Some(row.lane_id),
            ),
        })
        .collect();
    let planned: Vec<PlannedTest> = failing
        .iter()
        .take(MAX_TESTS)
        .map(|(row, case)| PlannedTest {
            test_case_id: case.id.get(),
            title: case.title.clone(),
            file_path: case.file_path.clone(),
            line: places.line(case),
            browser_project: browser_of(row),
            execution_id: row.execution.get(),
        })
        .collect();
    let verify = match verification(&to_verify, proof_asked(cluster.false_quiets)) {
        Some(found) => {
            // Of a large cluster, the newest failures do not show every test.
            let affected = usize::try_from(cluster.affected_tests).unwrap_or_default();
            let left_out = found.left_out.max(affected.saturating_sub(found.tests));
            Verify { expectation: expectation(&found, left_out), command: found.command }
        }
        None => Verify {
            command: String::new(),
            expectation: "No failing test of it is stored any more.".to_owned(),
        },
    };
    let next = healed.offered.filter(|_| healed.edits.is_empty());
    let offer = healed.offer.filter(|_| healed.edits.is_empty());
    let edits_count = healed.edits.len();
    let edits: Vec<PlannedEdit> = healed.edits.into_iter().take(MAX_EDITS).collect();
    Ok(FixPlan {
        cluster: planned_cluster(&cluster),
        diagnosis,
        edits_omitted: edits_count - edits.len(),
        edits_count,
        edits,
        unexamined_tests: healed.unexamined,
        ownership: ownership(planned.iter().filter_map(|test| cases.get(&test.test_case_id))),
        failing_tests_count: failing.len(),
        failing_tests_omitted: failing.len() - planned.len(),
        failing_tests: planned,
        verify,
        next: next.map(|id| format!("get_locator_healing executionId={id}")).into_iter().collect(),
        offer,
    })
}

/// What is counted of the tests, by the lane they failed in.
async fn states_of(
    ctx: &Context,
    project: ProjectId,
    failing: &[(&Sighting, &TestCaseRow)],
) -> Result<States> {
    let asked = failing.iter().map(|(row, case)| (row.lane_id, case.id)).collect();
    Ok(rollups::states_of(&mut ctx.store.db().read().await?, project, &asked).await?)
}

/// What healing says of the failing tests.
#[derive(Default)]
struct Healed {
    /// Edits of different lines.
    edits: Vec<PlannedEdit>,
    /// The newest execution for which there are locators, none of them certain.
    offered: Option<i64>,
    /// What there is for the newest one of which it can be told.
    offer: Option<Offer>,
    /// Tests that were not looked at.
    unexamined: usize,
}

impl Healed {
    async fn load(
        ctx: &Context,
        project: Authorized<ProjectId>,
        failing: &[(&Sighting, &TestCaseRow)],
    ) -> Result<Self> {
        let mut healed = Self::default();
        let mut tried = BTreeSet::new();
        let newest: Vec<_> = failing.iter().filter(|(row, _)| tried.insert(row.test_case)).collect();
        let examined = &newest[..newest.len().min(MAX_HEALED)];
        healed.unexamined = newest.len() - examined.len();
        let mut places = BTreeSet::new();
        // Of what was deleted meanwhile there is nothing to heal.
        let whole = Whole::read(ctx, project.get(), examined).await?;
        let healings: Vec<_> = examined
            .iter()
            .filter_map(|(row, case)| whole.find(row, case))
            .map(|found| healing(ctx, project, &whole.located, found))
            .collect();
        let found: Vec<(i64, LocatorHealing)> =
            stream::iter(healings).buffered(HEALED_TOGETHER).try_collect().await?;
        let mut made: Vec<HealingEdit> = Vec::new();
        for (execution, healing) in found {
            match edit_of(&healing, execution) {
                Some(mut edit) if places.insert((edit.file_path.clone(), edit.line)) => {
                    edit.unified_diff =
                        edit.unified_diff.map(|diff| diffs::after(&made, &edit.file_path, &diff));
                    made.extend(healing.edit);
                    healed.edits.push(edit);
                }
                None if healing.source != HealingSource::None => {
                    healed.offered = healed.offered.or(Some(execution));
                    healed.offer = healed.offer.or_else(|| offer_of(&healing, execution));
                }
                _ => {}
            }
        }
        Ok(healed)
    }
}

/// The rows of the executions that are looked at, and where their evidence lies.
struct Whole {
    executions: Vec<(ExecutionRow, SpokenOf)>,
    runs: Vec<RunRow>,
    located: Located,
}

/// Of one of them.
type Found = ((ExecutionRow, RunRow, TestCaseRow), SpokenOf);

impl Whole {
    async fn read(
        ctx: &Context,
        project: ProjectId,
        examined: &[&(&Sighting, &TestCaseRow)],
    ) -> Result<Self> {
        let ids: Vec<ExecutionId> = examined.iter().map(|(row, _)| row.execution).collect();
        let mut run_ids: Vec<i64> = examined.iter().map(|(row, _)| row.run.get()).collect();
        run_ids.sort_unstable();
        run_ids.dedup();
        let mut session = ctx.store.db().read().await?;
        let rows = executions::get_many(&mut session, project, &ids).await?;
        let executions: Vec<(ExecutionRow, SpokenOf)> = rows
            .into_iter()
            .map(|row| SpokenOf::from_row(&row).map(|of| (row, of)))
            .collect::<Result<_>>()?;
        let slices: Vec<_> = executions.iter().filter_map(|(_, of)| of.evidence).collect();
        Ok(Self {
            located: evidence::locate(&mut session, project, &slices).await?,
            runs: runs::get_many(&mut session, project, run_ids).await?,
            executions,
        })
    }

    fn find(&self, row: &Sighting, case: &TestCaseRow) -> Option<Found> {
        let (whole, spoken_of) = self.executions.iter().find(|(whole, _)| whole.id == row.execution)?;
        let run = self.runs.iter().find(|run| run.id == row.run)?;
        Some(((whole.clone(), run.clone(), case.clone()), *spoken_of))
    }
}

async fn healing(
    ctx: &Context,
    project: Authorized<ProjectId>,
    located: &Located,
    (rows, spoken_of): Found,
) -> Result<(i64, LocatorHealing)> {
    let evidence = match spoken_of.evidence {
        Some(slice) => located.read(&ctx.store, &slice).await?,
        None => Evidence::default(),
    };
    let subject = Subject::from_row(rows, spoken_of, evidence);
    Ok((subject.row.id.get(), of_subject(ctx, project, &subject).await?))
}

fn planned_cluster(cluster: &ClusterRow) -> PlannedCluster {
    PlannedCluster {
        id: cluster.id.get(),
        title: cluster.title.clone(),
        signature: cluster.signature.clone(),
        error_type: cluster.error_type.as_str(),
        status: cluster.status.as_str(),
        occurrences: cluster.occurrences,
        fix_verification: cluster.fix_verification.clone(),
    }
}

/// What may be used instead of the recommended locator, what will hold longest
/// first.
fn others(healing: &LocatorHealing) -> Vec<RankedLocator> {
    let durable = healing.recommendation.as_ref().and_then(|advice| advice.durable.as_ref());
    let recommended = healing.recommended().map(|best| &best.locator);
    let durable = durable.filter(|durable| Some(&durable.locator) != recommended).cloned();
    durable.into_iter().chain(healing.alternatives(MAX_ALTERNATIVES)).collect()
}

/// What may be used: a recommendation for which no line is known comes first.
fn offer_of(healing: &LocatorHealing, execution: i64) -> Option<Offer> {
    let recommended = healing.recommended().cloned().into_iter();
    let locators: Vec<_> = recommended.chain(others(healing)).collect();
    let failing_locator = healing.failing_text().map(str::to_owned);
    (!locators.is_empty()).then_some(Offer { execution_id: execution, failing_locator, locators })
}

fn edit_of(healing: &LocatorHealing, execution: i64) -> Option<PlannedEdit> {
    let recommended = healing.recommended()?;
    let location = healing.location.as_deref().map(callboard_domain::ingest::Location::parse);
    let edit = healing.edit.as_ref();
    Some(PlannedEdit {
        file_path: edit
            .map(|edit| edit.file_path.clone())
            .or_else(|| location.as_ref().map(|place| place.path.clone()))?,
        line: edit.map(|edit| edit.line).or_else(|| location.and_then(|place| place.line)),
        current_line: healing.source_line.as_ref().map(|line| cut(line.text.clone(), 1_000)),
        failing_locator: healing.failing_text.clone(),
        suggested_locator: Some(recommended.locator.clone()),
        score: Some(recommended.score),
        unified_diff: edit.map(|edit| edit.unified_diff.clone()),
        execution_id: execution,
        alternatives: others(healing),
    })
}

/// How a test did in a browser project; of one that nothing is known about, that
/// it failed. `was_here` tells whether the newest failure of the cluster was in
/// the lane of the state.
fn series(state: Option<&TestState>, browser: i64, cluster: &ClusterRow, was_here: bool) -> Series {
    let slot = RecentOutcome::slot_of(browser);
    let all = state.map(|state| series_since(state, cluster, was_here)).unwrap_or_default();
    let failed_once = Series { browser_slot: slot, failures: 1, before: 1, clean: 0 };
    all.into_iter().find(|series| series.browser_slot == slot).unwrap_or(failed_once)
}

/// What the command has to show, and what of it is enough.
fn expectation(found: &Verification, left_out: usize) -> String {
    let Verification { repeats, needed, tests, .. } = found;
    let (all, of_each) = match tests {
        1 => ("the test passes".to_owned(), ""),
        2 => ("both tests pass".to_owned(), " of each"),
        _ => (format!("all {tests} tests pass"), " of each"),
    };
    let times = if *repeats == 1 { String::new() } else { format!(" {repeats} times in a row") };
    let passes = format!("{all}{times}, without retries, in a run that is sent here");
    let others = match left_out {
        0 => String::new(),
        1 => " Its other test, which the command leaves out, has to pass as well.".to_owned(),
        _ => format!(" Its {left_out} other tests, which the command leaves out, have to pass as well."),
    };
    match needed {
        Some(needed) if needed <= repeats => {
            format!("The failure counts as repaired once {passes}.{others}")
        }
        Some(needed) => format!(
            "See that {passes}. It failed too seldom for that to prove a repair: it counts as repaired after \
             {needed} passes{of_each}.{others}"
        ),
        None => format!(
            "See that {passes}. It failed so seldom that no number of passes proves a repair: watch that it stays \
             away.{others}"
        ),
    }
}

/// The owner that most tests name; the first of the alphabet among equals.
fn ownership<'c>(cases: impl Iterator<Item = &'c TestCaseRow>) -> Ownership {
    let mut counts: BTreeMap<&str, (usize, OwnerSource)> = BTreeMap::new();
    let owners = cases.filter_map(|case| case.meta.owner.as_deref().zip(case.owner_source));
    for (owner, source) in owners {
        counts.entry(owner).or_insert((0, source)).0 += 1;
    }
    let most = counts.into_iter().rev().max_by_key(|(_, (count, _))| *count);
    Ownership {
        owner: most.map(|(owner, _)| owner.to_owned()),
        source: most.map(|(_, (_, source))| source.as_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_command_has_to_show_is_a_sentence_whatever_the_numbers() {
        let told = |tests, repeats, needed, left_out| {
            let found = Verification { command: String::new(), repeats, needed, tests, left_out };
            expectation(&found, left_out)
        };
        assert_eq!(
            told(1, 1, Some(1), 0),
            "The failure counts as repaired once the test passes, without retries, in a run that is sent here."
        );
        assert_eq!(
            told(6, 3, Some(2), 1),
            "The failure counts as repaired once all 6 tests pass 3 times in a row, without retries, in a run that is \
             sent here. Its other test, which the command leaves out, has to pass as well."
        );
        assert_eq!(
            told(1, 5, Some(20), 0),
            "See that the test passes 5 times in a row, without retries, in a run that is sent here. It failed too \
             seldom for that to prove a repair: it counts as repaired after 20 passes."
        );
        assert_eq!(
            told(2, 5, None, 3),
            "See that both tests pass 5 times in a row, without retries, in a run that is sent here. It failed so \
             seldom that no number of passes proves a repair: watch that it stays away. Its 3 other tests, which the \
             command leaves out, have to pass as well."
        );
    }
}
