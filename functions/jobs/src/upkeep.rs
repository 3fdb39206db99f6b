//! Tables that their server does not look after.

use callboard_store::jobs::Payload;
use callboard_store::upkeep;
use serde::{Deserialize, Serialize};

use crate::job::{JobContext, JobError, Outcome};

/// The planner is told what the tables hold, and the room of gone rows is freed.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct LookAfterTables {}

impl Payload for LookAfterTables {
    const KIND: &'static str = "look_after_tables";
}

/// Looks after one table at a time. What its time does not suffice for is due
/// in the next period as well.
pub(crate) async fn look_after_tables(
    ctx: JobContext,
    _: LookAfterTables,
) -> Result<Outcome<LookAfterTables>, JobError> {
    let db = ctx.store().db();
    for table in upkeep::neglected(db).await? {
        if !ctx.has_time() {
            break;
        }
        upkeep::look_after(db, &table).await?;
    }
    Ok(Outcome::Done)
}
