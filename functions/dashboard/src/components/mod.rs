//! The parts pages are built of. Each is a template with its inputs beside it
//! and one file of styles; rendered inside another template it is not escaped
//! again, because every template escapes what it is given.

mod charts;
mod filter_bar;
mod outcome_bar;
mod pager;
mod path;
mod result;
mod run_table;
mod strip;

pub(crate) use charts::{HistoryChart, TREND_DAYS, Trend};
pub(crate) use filter_bar::{Choice, FilterBar};
pub(crate) use outcome_bar::{OutcomeBar, OutcomeCount, outcome_counts};
pub(crate) use pager::Pager;
pub(crate) use path::PathText;
pub(crate) use result::{Badge, Mark};
pub(crate) use run_table::{RunTable, name_of};
pub(crate) use strip::Strip;
