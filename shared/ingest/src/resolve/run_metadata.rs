//! What clients tell about their run after it began: at its begin, its end,
//! and what later shards know.
//!
//! A run without shards believes its client's last word, a sharded one the
//! first word of each of them, so that the order of shards does not show. A re-run
//! only adds to what the run it joined is known by.

use callboard_domain::ids::{ProjectId, RunId, SlotId};
use callboard_domain::ingest::{RunFields, bounded_metadata};
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::projects;
use callboard_store::runs::{self, RunDetails, RunRow};
use serde_json::{Map, Value};

use crate::recompare::whole_runs;
use crate::transaction::run_lanes::{Lanes, open_lanes};
use crate::transaction::run_transaction::LockedRun;
use crate::{Context, Result};

/// Whether the number of planned tests is that of another client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Plan {
    /// It comes on top of what is planned.
    Another,
    /// It was told before.
    Told,
}

/// Takes over what a client tells. `lanes` are those of the branch it names,
/// for a run that did not know its branch yet.
pub(crate) async fn describe(
    session: &mut Session,
    locked: &mut LockedRun,
    slot: SlotId,
    fields: &RunFields,
    plan: Plan,
    lanes: Option<Lanes>,
    now: Timestamp,
) -> Result<()> {
    learn_default_branch(session, locked.run.project, fields, now).await?;
    let index = locked.slot(slot)?.slot.shard_index;
    let sender = Sender {
        is_sharded: locked.run.shard_total.is_some(),
        is_repeat: locked.judge(|slots| slots.is_repeated(index)),
    };
    let before = Described::from_run(&locked.run);
    if let Some(lanes) = lanes.filter(|_| can_move(&locked.run)) {
        locked.run.lane_id = lanes.own;
        locked.run.branch = lanes.branch;
        locked.run.environment = lanes.environment;
        locked.lanes = lanes.ids;
        locked.has_new_lanes = true;
    }
    fill(&mut locked.run, fields, sender, plan);
    let details = runs::details(session, locked.run.project, locked.run.id).await?;
    let merged = merged(details.clone(), fields, sender.is_one_of_many());
    let has_changed = before != Described::from_run(&locked.run) || details != merged;
    if let Some(ci) = fields.metadata.as_ref().and_then(|metadata| metadata.get("ci")).and_then(json) {
        locked.slot_mut(slot)?.metadata_ci = Some(ci);
    }
    // A call that names none takes none back: only the end of a client has all of them.
    if !fields.errors.is_empty() {
        locked.slot_mut(slot)?.errors = json(&fields.errors);
    }
    if has_changed {
        locked.describe(merged);
    }
    Ok(())
}

/// Takes the default branch that a client names, for a project that knows none: its
/// runs are compared again with it.
pub(crate) async fn learn_default_branch(
    session: &mut Session,
    project: ProjectId,
    fields: &RunFields,
    now: Timestamp,
) -> Result<()> {
    if let Some(branch) = &fields.origin.default_branch
        && projects::adopt_default_branch(session, project, branch).await?
    {
        whole_runs::queue_project(session, project, now).await?;
    }
    Ok(())
}

/// Whether the run may still move to the lanes of its branch: as long as
/// nothing is counted in those it has.
fn can_move(run: &RunRow) -> bool {
    !run.status.is_final() && may_learn_its_place(run)
}

fn may_learn_its_place(run: &RunRow) -> bool {
    !run.totals_from_rows && (run.branch.is_empty() || run.environment.is_empty())
}

/// The lanes of the branch that a call names, for a run that did not know its
/// branch or environment before; also for one that is over, which the call may
/// make go on.
pub(crate) async fn better_lanes(
    ctx: &Context,
    project: ProjectId,
    run: RunId,
    fields: &RunFields,
) -> Result<Option<Lanes>> {
    let row = runs::get(&mut ctx.store.db().read().await?, project, run).await?;
    let Some(row) = row.filter(may_learn_its_place) else { return Ok(None) };
    let told = |known: &String, told: &Option<String>| match told {
        Some(told) if known.is_empty() => told.clone(),
        _ => known.clone(),
    };
    let branch = told(&row.branch, &fields.origin.branch);
    let environment = told(&row.environment, &fields.environment);
    if (&branch, &environment) == (&row.branch, &row.environment) {
        return Ok(None);
    }
    open_lanes(&ctx.store, project, branch, environment, row.order_at).await.map(Some)
}

/// The columns that are written when one of them changed.
#[derive(PartialEq)]
struct Described([Option<String>; 10], i64, Option<i64>, [bool; 3]);

impl Described {
    fn from_run(run: &RunRow) -> Self {
        let texts = [
            &run.label,
            &run.commit_sha,
            &run.commit_message,
            &run.author,
            &run.pull_request,
            &run.ci_provider,
            &run.build_url,
            &run.playwright_version,
            &run.reporter_version,
            &Some(run.environment.clone()),
        ];
        Self(
            texts.map(Clone::clone),
            run.lane_id,
            run.planned_tests,
            [run.is_full, run.claims_full(), run.is_dirty],
        )
    }
}

/// Which of the clients of a run tells something.
#[derive(Debug, Clone, Copy)]
struct Sender {
    /// Its run has shards.
    is_sharded: bool,
    /// Its run, or its shard, was run more than once.
    is_repeat: bool,
}

impl Sender {
    const fn is_one_of_many(self) -> bool {
        self.is_sharded || self.is_repeat
    }
}

fn fill(run: &mut RunRow, fields: &RunFields, sender: Sender, plan: Plan) {
    let origin = &fields.origin;
    for (known, told) in [
        (&mut run.commit_sha, &origin.commit_sha),
        (&mut run.commit_message, &origin.commit_message),
        (&mut run.author, &origin.author),
        (&mut run.pull_request, &origin.pull_request),
        (&mut run.ci_provider, &origin.ci_provider),
        (&mut run.build_url, &origin.build_url),
        (&mut run.playwright_version, &fields.playwright_version),
        (&mut run.reporter_version, &fields.reporter_version),
    ] {
        if known.is_none() {
            known.clone_from(told);
        }
    }
    let keeps_label = run.label_is_edited || (sender.is_one_of_many() && run.label.is_some());
    if fields.label.is_some() && !keeps_label {
        run.label.clone_from(&fields.label);
    }
    if let (Some(planned), Plan::Another) = (fields.planned_tests, plan) {
        let known = run.planned_tests.unwrap_or(0);
        match (sender.is_sharded, sender.is_repeat) {
            // A re-run has the tests of the run, or some of them.
            (true, true) => {}
            (false, true) => run.planned_tests = Some(known.max(planned)),
            (true, false) => run.planned_tests = Some(known + planned),
            (false, false) => run.planned_tests = Some(planned),
        }
    }
    // What is only told of a run that is over does not change how it counts.
    if !run.status.is_final() {
        run.is_dirty |= fields.origin.is_dirty;
        if sender.is_repeat {
            // Whether all of its tests ran is said by the one that ran most of them.
            run.is_full |= fields.is_full_run && !sender.is_sharded && !run.claims_full();
        } else if !fields.is_full_run {
            (run.is_full, run.expected_tests) = (false, None);
        }
    }
}

fn merged(mut details: RunDetails, fields: &RunFields, is_one_of_many: bool) -> RunDetails {
    if let Some(told) = &fields.metadata {
        let mut metadata: Map<String, Value> = serde_json::from_str(&details.metadata).unwrap_or_default();
        for (key, value) in told {
            if !is_one_of_many || !metadata.contains_key(key) {
                metadata.insert(key.clone(), value.clone());
            }
        }
        details.metadata = json(&bounded_metadata(metadata)).unwrap_or(details.metadata);
    }
    if details.filter_details.is_none() || !is_one_of_many {
        details.filter_details = fields.filter_details.as_ref().and_then(json).or(details.filter_details);
    }
    if !fields.setup_steps.is_empty() && (details.setup_steps.is_none() || !is_one_of_many) {
        details.setup_steps = json(&fields.setup_steps);
    }
    details
}

/// Values made of strings, numbers and lists have a JSON text.
pub(crate) fn json<T: serde::Serialize + ?Sized>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}
