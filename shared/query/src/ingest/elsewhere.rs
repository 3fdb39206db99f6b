//! What the default branch says of tests that never ended on a run's own branch
//! and in its environment: what they are compared with instead.

use std::collections::{BTreeSet, HashMap, HashSet};

use callboard_domain::ids::TestCaseId;
use callboard_domain::status::Outcome;
use callboard_store::db::Session;
use callboard_store::rollups::{self, States};
use callboard_store::runs::RunRow;

use super::following::Series;
use crate::{Result, baseline};

/// What was decided elsewhere before a run.
#[derive(Debug, Default)]
pub(super) struct Elsewhere {
    /// Last outcomes.
    pub(super) outcomes: HashMap<Series, Outcome>,
    /// What ran so often since then that nobody can tell any more.
    pub(super) forgotten: HashSet<Series>,
}

/// The last decided outcomes of tests on the default branch before a run: in
/// the run's environment, else anywhere. States that the transaction holds are
/// taken as it has them.
pub(super) async fn decided_before(
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
pub(super) fn cases_of<'a>(series: impl IntoIterator<Item = &'a Series>) -> Vec<i64> {
    let cases: BTreeSet<i64> = series.into_iter().map(|(case, _)| case.get()).collect();
    cases.into_iter().collect()
}
