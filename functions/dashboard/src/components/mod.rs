//! The parts pages are built of. Each is a template with its inputs beside it
//! and one file of styles; rendered inside another template it is not escaped
//! again, because every template escapes what it is given.

mod charts;
mod chooser;
mod filter_bar;
mod key_panel;
mod outcome_bar;
mod pager;
mod path;
mod result;
mod run_table;
mod session_panel;
mod settings_tabs;
mod strip;

pub(crate) use charts::{HistoryChart, TREND_DAYS, Trend};
pub(crate) use chooser::ChoiceRow;
pub(crate) use filter_bar::{Choice, FilterBar};
pub(crate) use key_panel::{KeyPanel, KeyRow};
pub(crate) use outcome_bar::{OutcomeBar, OutcomeCount, outcome_counts};
pub(crate) use pager::Pager;
pub(crate) use path::PathText;
pub(crate) use result::{Badge, Mark};
pub(crate) use run_table::{RunTable, name_of};
pub(crate) use session_panel::{SessionPanel, SessionRow};
pub(crate) use settings_tabs::{SettingsTab, SettingsTabs};
pub(crate) use strip::Strip;
