//! Where a run is counted: the lanes of its branch and environment.

use callboard_domain::ids::ProjectId;
use callboard_domain::lane::lanes_of;
use callboard_domain::time::Timestamp;
use callboard_store::db::Session;
use callboard_store::executions::RunPlace;
use callboard_store::lanes::{self, CountingLane};
use callboard_store::runs::RunRow;
use callboard_store::{Store, StoreError};

use crate::Result;

/// The lanes of a run that may not exist yet.
pub(crate) struct Lanes {
    pub(crate) branch: String,
    pub(crate) environment: String,
    /// Ids, ascending.
    pub(crate) ids: Vec<i64>,
    /// The most specific of them.
    pub(crate) own: i64,
}

/// Where the rows of a run belong.
pub(crate) fn place_of(run: &RunRow) -> RunPlace {
    RunPlace { project: run.project, run: run.id, day: run.order_at.day(), lane_id: run.lane_id }
}

/// The lanes a stored run counts in, ascending. They were made when the run
/// was; those whose numbers were let go since are left out.
pub(crate) async fn lanes_of_run(session: &mut Session, run: &RunRow) -> Result<Vec<i64>> {
    counting_lanes(run, &lanes::of_place(session, run.project, &run.branch, &run.environment).await?)
}

/// The same by all lanes of its place.
pub(crate) fn counting_lanes(run: &RunRow, known: &[CountingLane]) -> Result<Vec<i64>> {
    if known.len() != lanes_of(Some(&run.branch), Some(&run.environment)).len() {
        return Err(StoreError::Damaged("a run without its lanes").into());
    }
    Ok(known.iter().filter(|lane| lane.counts(run.order_at)).map(|lane| lane.id).collect())
}

/// The lanes in which executions of a lane count.
pub(crate) async fn lanes_of_lane(
    session: &mut Session,
    project: ProjectId,
    lane: i64,
    order_at: Timestamp,
) -> Result<Vec<i64>> {
    let place = lanes::place_of(session, project, lane).await?;
    let (branch, environment) = place.ok_or(StoreError::Damaged("an execution without its lane"))?;
    let known = lanes::of_place(session, project, &branch, &environment).await?;
    Ok(known.into_iter().filter(|lane| lane.counts(order_at)).map(|lane| lane.id).collect())
}

/// The lanes of a branch and an environment, made where they are missing, each
/// in a short transaction of its own.
pub(crate) async fn open_lanes(
    store: &Store,
    project: ProjectId,
    branch: String,
    environment: String,
    at: Timestamp,
) -> Result<Lanes> {
    let word = |text: &String| (!text.is_empty()).then(|| text.clone());
    let known = lanes::of_place(&mut store.db().read().await?, project, &branch, &environment).await?;
    if known.len() == lanes_of(word(&branch).as_deref(), word(&environment).as_deref()).len()
        && let Some(own) = known.iter().max_by_key(|lane| lane.kind)
    {
        let own = own.id;
        let ids = known.into_iter().filter(|lane| lane.counts(at)).map(|lane| lane.id).collect();
        return Ok(Lanes { branch, environment, ids, own });
    }
    let mut ids = Vec::with_capacity(4);
    let mut own = 0;
    for key in lanes_of(word(&branch).as_deref(), word(&environment).as_deref()) {
        let found = lanes::find_counting(&mut store.db().read().await?, project, &key).await?;
        let counts = found.is_none_or(|lane| lane.counts(at));
        // The most specific lane comes last.
        own = match found {
            Some(lane) => lane.id,
            None => {
                let mut session = store.db().begin().await?;
                let id = lanes::lane(&mut session, project, &key, at).await?;
                session.commit().await?;
                id
            }
        };
        if counts {
            ids.push(own);
        }
    }
    ids.sort_unstable();
    Ok(Lanes { branch, environment, ids, own })
}
