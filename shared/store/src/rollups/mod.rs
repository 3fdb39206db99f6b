//! Rollups: what lists and charts show without reading executions. They are
//! written in the transaction of the rows they summarise, always in ascending
//! key order.

pub(crate) mod catalogue;
pub(crate) mod days;
pub mod scores;
pub(crate) mod specs;
pub(crate) mod states;

pub use catalogue::{CatalogueFilter, CatalogueOrder, CatalogueRow, catalogue, pass_rate_key, with_states};
pub use days::{
    DayDelta, DaySpan, ProjectDay, RunContribution, TestDays, add_project_day, add_test_days, project_days,
    test_days,
};
pub use specs::{Folder, FolderDays, add_folder_days, folder_of, folders};
pub use states::{States, lock_states, newest_observations, state, states_in, write_states};
