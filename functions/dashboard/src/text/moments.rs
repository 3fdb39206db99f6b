//! Points in time in words: relative for reading, exact for hovering.

use callboard_domain::time::{Day, Timestamp};
use chrono::{DateTime, Datelike, Utc};

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;
const DAY_MS: i64 = 24 * HOUR_MS;
/// From here on a date says more than a number of days.
const RELATIVE_DAYS: i64 = 14;

fn utc(at: Timestamp) -> DateTime<Utc> {
    DateTime::from_timestamp_millis(at.millis()).unwrap_or_default()
}

/// How long ago, in the coarsest unit that says it: `just now`, `5 min ago`,
/// `3 h ago`, `2 d ago`, then the date. Clocks of clients run ahead at times;
/// what has not happened yet is `just now`.
pub(crate) fn relative(at: Timestamp, now: Timestamp) -> String {
    let ago = now.millis().saturating_sub(at.millis());
    match ago {
        _ if ago < MINUTE_MS => "just now".to_owned(),
        _ if ago < HOUR_MS => format!("{}\u{a0}min ago", ago / MINUTE_MS),
        _ if ago < DAY_MS => format!("{}\u{a0}h ago", ago / HOUR_MS),
        _ if ago < RELATIVE_DAYS * DAY_MS => format!("{}\u{a0}d ago", ago / DAY_MS),
        _ if utc(at).year() == utc(now).year() => day_and_month(at),
        _ => utc(at).format("%-d\u{a0}%b\u{a0}%Y").to_string(),
    }
}

/// How long something has lasted, in the coarsest unit that says it: `5 h`, `5 days`.
pub(crate) fn lasting(since: Timestamp, now: Timestamp) -> String {
    let passed = now.millis().saturating_sub(since.millis());
    match passed {
        _ if passed < HOUR_MS => format!("{}\u{a0}min", (passed / MINUTE_MS).max(1)),
        _ if passed < DAY_MS => format!("{}\u{a0}h", passed / HOUR_MS),
        _ if passed < 2 * DAY_MS => "1\u{a0}day".to_owned(),
        _ => format!("{}\u{a0}days", passed / DAY_MS),
    }
}

/// How many days ago a day was: `today`, `2 d ago`, then the date.
pub(crate) fn days_ago(day: Day, today: Day) -> String {
    if day >= today { "today".to_owned() } else { relative(day.start(), today.start()) }
}

/// How long until then, in the coarsest unit that says it: `in 5 min`, `in 5 h`,
/// `in 12 d`; from two months on in months. What is over comes any moment.
pub(crate) fn ahead(at: Timestamp, now: Timestamp) -> String {
    let left = at.millis().saturating_sub(now.millis());
    match left {
        _ if left < MINUTE_MS => "within a minute".to_owned(),
        _ if left < HOUR_MS => format!("in {}\u{a0}min", left / MINUTE_MS),
        _ if left < 2 * DAY_MS => format!("in {}\u{a0}h", (left + HOUR_MS / 2) / HOUR_MS),
        _ if left < 60 * DAY_MS => format!("in {}\u{a0}d", left / DAY_MS),
        _ => format!("in {}\u{a0}months", (left + 15 * DAY_MS) / (30 * DAY_MS)),
    }
}

/// `20 Nov 2026, 14:03:22 UTC`.
pub(crate) fn date_and_time(at: Timestamp) -> String {
    utc(at).format("%-d %b %Y, %H:%M:%S UTC").to_string()
}

/// `20 Nov 2026`.
pub(crate) fn date_of(at: Timestamp) -> String {
    utc(at).format("%-d\u{a0}%b\u{a0}%Y").to_string()
}

/// `20 Nov`.
fn day_and_month(at: Timestamp) -> String {
    utc(at).format("%-d\u{a0}%b").to_string()
}

/// `Fri 20 Nov`.
pub(crate) fn day_of(day: Day) -> String {
    utc(day.start()).format("%a %-d\u{a0}%b").to_string()
}

/// `20`: for a column of a map, whose title says the rest.
pub(crate) fn day_of_month(day: Day) -> String {
    utc(day.start()).format("%-d").to_string()
}

/// The months of some days in their order, `Nov` with how many of them it has.
pub(crate) fn months_of(days: &[Day]) -> Vec<(String, usize)> {
    let written = |day: &Day, form: &str| utc(day.start()).format(form).to_string();
    let months = days.chunk_by(|one, next| written(one, "%Y-%m") == written(next, "%Y-%m"));
    months.map(|days| (written(&days[0], "%b"), days.len())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_counted_in_the_order_of_their_days() {
        let days: Vec<Day> = (20_390..20_394).map(Day).collect();
        assert_eq!(days[0].to_iso(), "2025-10-29");
        assert_eq!(months_of(&days), [("Oct".to_owned(), 3), ("Nov".to_owned(), 1)]);
        let a_year_apart = [days[0], Day(days[0].0 + 365)];
        assert_eq!(months_of(&a_year_apart), [("Oct".to_owned(), 1), ("Oct".to_owned(), 1)]);
        assert_eq!(months_of(&[]), []);
    }

    #[test]
    fn the_coarsest_unit_that_says_it_is_used() {
        let now = Timestamp::parse_iso("2026-11-20T12:00:00Z").unwrap();
        let ago = |ms: i64| relative(Timestamp(now.millis() - ms), now).replace('\u{a0}', " ");
        assert_eq!(ago(-5_000), "just now");
        assert_eq!(ago(59_999), "just now");
        assert_eq!(ago(61_000), "1 min ago");
        assert_eq!(ago(3 * HOUR_MS + 59 * MINUTE_MS), "3 h ago");
        assert_eq!(ago(13 * DAY_MS), "13 d ago");
        assert_eq!(ago(20 * DAY_MS), "31 Oct");
        assert_eq!(ago(400 * DAY_MS), "16 Oct 2025");
        assert_eq!(date_and_time(now), "20 Nov 2026, 12:00:00 UTC");
        let days = |days: i64| days_ago(Day(now.day().0 - days), now.day()).replace('\u{a0}', " ");
        assert_eq!((days(0), days(1), days(20)), ("today".into(), "1 d ago".into(), "31 Oct".into()));
    }

    #[test]
    fn what_is_to_come_is_said_in_the_same_way() {
        let until = |ms: i64| ahead(Timestamp(ms), Timestamp(0)).replace('\u{a0}', " ");
        assert_eq!(until(-5), "within a minute");
        assert_eq!(until(5 * MINUTE_MS + 1), "in 5 min");
        assert_eq!(until(30 * HOUR_MS), "in 30 h");
        assert_eq!(until(12 * DAY_MS + HOUR_MS), "in 12 d");
        assert_eq!(until(89 * DAY_MS), "in 3 months");
    }
}
