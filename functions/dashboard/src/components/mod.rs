//! The parts pages are built of. Each is a template with its inputs beside it
//! and one file of styles; rendered inside another template it is not escaped
//! again, because every template escapes what it is given.

mod charts;
mod chooser;
mod cluster_people;
mod cluster_table;
mod filter_bar;
mod gate_policies;
mod in_place;
mod key_panel;
mod link_panel;
mod live;
mod marker_list;
mod outcome_bar;
mod pager;
mod patch;
mod path;
mod recent_form;
mod result;
mod retention_form;
mod run_table;
mod series;
mod session_panel;
mod settings_tabs;
mod shift_list;
mod sort;
mod strip;
mod treemap;

pub(crate) use charts::{HistoryChart, TREND_DAYS, Trend, nearest_rank};
pub(crate) use chooser::ChoiceRow;
pub(crate) use cluster_people::assignable;
pub(crate) use cluster_table::{ClusterTable, error_type_word, status_class};
pub(crate) use filter_bar::{Choice, FilterBar};
pub(crate) use gate_policies::GatePolicies;
pub(crate) use in_place::InPlace;
pub(crate) use key_panel::{KeyPanel, KeyRow};
pub(crate) use link_panel::LinkPanel;
pub(crate) use live::{LiveRun, Progress};
pub(crate) use marker_list::MarkerList;
pub(crate) use outcome_bar::{OutcomeBar, OutcomeCount, outcome_counts};
pub(crate) use pager::Pager;
pub(crate) use patch::{PatchLine, patch_lines};
pub(crate) use path::PathText;
pub(crate) use recent_form::RecentForm;
pub(crate) use result::{Badge, Mark};
pub(crate) use retention_form::RetentionForm;
pub(crate) use run_table::{RunTable, name_of};
pub(crate) use series::{LineOf, Point, PointMark, Series};
pub(crate) use session_panel::{SessionPanel, SessionRow};
pub(crate) use settings_tabs::{SettingsTab, SettingsTabs};
pub(crate) use shift_list::ShiftList;
pub(crate) use sort::Sorting;
pub(crate) use strip::Strip;
pub(crate) use treemap::{Area, squarified};
