//! Numbers one can set, as the fields of a form.

use callboard_domain::time::Timestamp;
use callboard_query::settings::OfInstance;

const SECOND_MS: i64 = 1_000;

/// A number one can set; `components/number_fields.html` shows some.
pub(super) struct Number {
    pub(super) key: &'static str,
    pub(super) label: &'static str,
    pub(super) hint: &'static str,
    /// What `form-api.js` makes of it.
    pub(super) kind: &'static str,
    /// Least, most and step, in the unit that is shown.
    pub(super) bounds: (&'static str, &'static str, &'static str),
    pub(super) value: String,
    /// What holds while the field is empty.
    pub(super) instead: String,
}

pub(super) fn whole(number: Option<i64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

pub(super) fn decimal(number: Option<f64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

pub(super) fn seconds(ms: Option<i64>) -> String {
    let written = ms.map(|ms| format!("{}.{:03}", ms / SECOND_MS, ms % SECOND_MS)).unwrap_or_default();
    written.trim_end_matches('0').trim_end_matches('.').to_owned()
}

pub(super) fn percent(share: Option<f64>) -> String {
    share.map(|share| (share * 100.0).round().to_string()).unwrap_or_default()
}

/// When a group was set last, and by whom.
pub(super) fn changed<G>(found: &OfInstance<G>, now: Timestamp) -> Option<String> {
    let by = found.updated_by.as_ref().map(|by| format!(" by {}", by.username)).unwrap_or_default();
    found.updated_at.map(|at| format!("{}{by}", crate::text::relative(at, now)))
}
