//! What executions are compared with: the last decided outcome of their test in
//! their browser project before their run, in the run's own lane; where nothing
//! was decided there, what the default branch says.

use std::collections::{BTreeSet, HashMap, HashSet};

use callboard_domain::ids::{ExecutionId, TestCaseId};
use callboard_domain::status::Outcome;
use callboard_domain::test_state::{ExecutionFlags, TestState, flags_for};
use callboard_store::db::Session;
use callboard_store::executions::counting::ToCount;
use callboard_store::rollups::{self, States};
use callboard_store::runs::RunRow;

use crate::Result;
use crate::transaction::baseline;

/// A test in one browser project.
pub(crate) type Series = (TestCaseId, i64);

/// What is remarkable about executions of a run, where it is other than what is
/// written of them. Of one that came so long ago that nobody knows any more what
/// was before it, what is written stays. `states` are those of the run's own lane;
/// of others, those that the transaction has changed.
pub(crate) async fn compared_anew(
    session: &mut Session,
    run: &RunRow,
    rows: &[ToCount],
    states: &States,
) -> Result<Vec<(ExecutionId, ExecutionFlags)>> {
    let (mut compared, mut unknown) = (Vec::with_capacity(rows.len()), BTreeSet::new());
    for row in rows {
        let state = states.get(&(run.lane_id, row.test_case));
        let known = state.and_then(|state| state.decided_before(row.browser_id, run.order_at, run.id));
        let is_first = |state: &TestState| state.decided_nothing_before(row.browser_id, run.order_at, run.id);
        if known.is_some() {
            compared.push((row, known));
        } else if state.is_none_or(is_first) {
            compared.push((row, None));
            unknown.extend(row.outcome.is_decided().then(|| row.series()));
        }
    }
    let elsewhere = decided_elsewhere(session, run, unknown, states).await?;
    let changed = compared.into_iter().filter_map(|(row, known)| {
        let previous = known.or_else(|| elsewhere.outcomes.get(&row.series()).copied());
        let is_forgotten = previous.is_none() && elsewhere.forgotten.contains(&row.series());
        let flags = row.flags.compared(flags_for(previous, row.outcome));
        (!is_forgotten && flags != row.flags).then_some((row.id, flags))
    });
    Ok(changed.collect())
}

/// What was decided on the default branch before a run.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// Last outcomes.
    pub(crate) outcomes: HashMap<Series, Outcome>,
    /// What ran so often since then that nobody can tell any more.
    pub(crate) forgotten: HashSet<Series>,
}

/// The last decided outcomes of tests on the default branch before a run: in
/// the run's environment, else anywhere. States that the transaction holds are
/// taken as it has them.
pub(crate) async fn decided_elsewhere(
    session: &mut Session,
    run: &RunRow,
    mut unknown: BTreeSet<Series>,
    held: &States,
) -> Result<Elsewhere> {
    let mut found = Elsewhere::default();
    if unknown.is_empty() {
        return Ok(found);
    }
    for lane in baseline::other_lanes(session, run).await? {
        // Mostly the run is the newest, which the last outcomes suffice for.
        let is_stored = |case: &TestCaseId| held.get(&(lane, *case)).is_none();
        let cases = cases_of(unknown.iter().filter(|(case, _)| is_stored(case)));
        let known = rollups::predecessors(session, run.project, lane, cases).await?;
        let mut further = BTreeSet::new();
        unknown.retain(|&(case, browser)| {
            let Some(last) = known.get(&case) else { return true };
            let previous = last.decided_before(browser, run.order_at, run.id);
            found.outcomes.extend(previous.map(|outcome| ((case, browser), outcome)));
            if previous.is_none() {
                further.insert((case, browser));
            }
            previous.is_none()
        });
        let states = match cases_of(&further) {
            none if none.is_empty() => HashMap::new(),
            cases => rollups::states_in(session, run.project, lane, cases).await?,
        };
        unknown.retain(|&(case, browser)| {
            let Some(state) = held.get(&(lane, case)).or_else(|| states.get(&case)) else { return true };
            let previous = state.decided_before(browser, run.order_at, run.id);
            found.outcomes.extend(previous.map(|outcome| ((case, browser), outcome)));
            if previous.is_none() && !state.decided_nothing_before(browser, run.order_at, run.id) {
                found.forgotten.insert((case, browser));
            }
            previous.is_none()
        });
    }
    Ok(found)
}

/// The tests of some series, ascending.
pub(crate) fn cases_of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Vec<i64> {
    let cases: BTreeSet<i64> = series.into_iter().map(|(case, _)| case.get()).collect();
    cases.into_iter().collect()
}
