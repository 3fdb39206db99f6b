//! Values as people read them. Pure functions; what they write is either
//! plain text or HTML that is safe by construction.

mod ansi;
mod commits;
mod deletes;
mod devices;
mod inline_code;
mod moments;
mod numbers;
mod paths;
mod roles;

pub(crate) use ansi::AnsiHtml;
pub(crate) use commits::short_commit;
pub(crate) use deletes::deletes;
pub(crate) use devices::device;
pub(crate) use inline_code::InlineCode;
pub(crate) use moments::{
    ahead, date_and_time, date_of, day_of, day_of_month, days_ago, lasting, months_of, relative,
};
pub(crate) use numbers::{blank_or, column_percent, duration, grouped, long_duration, percent, points, size};
pub(crate) use paths::split_for_truncation;
pub(crate) use roles::{permission, role, role_means};
