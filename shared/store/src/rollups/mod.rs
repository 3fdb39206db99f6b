//! Rollups: what lists and charts show without reading executions. They are
//! written in the transaction of the rows they summarise, always in ascending
//! key order.

pub(crate) mod catalogue;
pub(crate) mod days;
pub(crate) mod states;

pub use catalogue::{CatalogueFilter, CatalogueOrder, CatalogueRow, catalogue, with_states};
pub use days::{
    DayDelta, ProjectDay, RunContribution, TestDays, add_project_day, add_test_days, project_days, test_days,
};
pub use states::{States, lock_states, newest_observations, state, write_states};
