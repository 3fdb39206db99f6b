//! Rollups: what lists and charts show without reading executions. Those of
//! runs are written in the transaction of the rows they summarise; those of
//! tests a moment later, and the run says how far ([`crate::runs::counting`]).
//! Always in ascending key order.

pub(crate) mod browsers;
pub(crate) mod catalogue;
pub(crate) mod days;
pub(crate) mod endpoints;
pub(crate) mod owners;
pub(crate) mod portfolio;
pub mod scores;
pub(crate) mod specs;
pub(crate) mod states;

pub use browsers::{BrowserDays, BrowserSums, add_browser_days, browser_days};
pub use catalogue::{
    CatalogueFilter, CatalogueLanes, CatalogueOrder, CatalogueRow, CatalogueSort, catalogue,
    count_in_catalogue, count_never_ran, mean_key, never_ran, pass_rate_key, with_states,
};
pub use days::{DayDelta, DaySpan, RunContribution, TestDays, add_project_day, add_test_days, test_days};
pub use endpoints::{
    EndpointDay, EndpointPlace, RunEndpoint, add_endpoints, endpoints_of_days, of_run as endpoints_of_run,
    restore_endpoints, slowest_endpoints, subtract_endpoints, take_back_endpoints,
};
pub use owners::{OwnerFilter, OwnerRow, owners};
pub use portfolio::{DecidedDay, LaneOfEach, Windows, days_together, decided_days, windows_of_each};
pub use specs::{Folder, FolderDays, add_folder_days, files, folder_of, folders};
pub use states::{
    States, lock_states, newest_observations, predecessors, state, states_in, states_of, write_states,
};
