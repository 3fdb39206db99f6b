//! Points in time: epoch milliseconds (UTC) inside, ISO-8601 on the wire.

use chrono::{DateTime, Datelike, NaiveDate, SecondsFormat, Utc};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since 1970-01-01 UTC. Serialises as ISO-8601 with
/// milliseconds, e.g. `2026-01-01T10:00:00.000Z`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// Days since 1970-01-01 UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(pub i64);

const MS_PER_DAY: i64 = 86_400_000;

impl Timestamp {
    /// The number SQL stores.
    #[must_use]
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// The UTC day this moment lies in.
    #[must_use]
    pub const fn day(self) -> Day {
        Day(self.0.div_euclid(MS_PER_DAY))
    }

    /// Reads an ISO-8601 date-time with an offset (`Z` or `±hh:mm`; a missing
    /// offset means UTC) in the years 1970 to 2100. A date alone is its first
    /// moment in UTC.
    #[must_use]
    pub fn parse_iso(text: &str) -> Option<Self> {
        let text = text.trim();
        let moment = DateTime::parse_from_rfc3339(text)
            .map(|time| time.with_timezone(&Utc))
            .ok()
            .or_else(|| {
                ["%Y-%m-%dT%H:%M:%S%.f%#z", "%Y-%m-%dT%H:%M%#z", "%Y-%m-%d %H:%M:%S%.f%#z"]
                    .iter()
                    .find_map(|format| DateTime::parse_from_str(text, format).ok())
                    .map(|time| time.with_timezone(&Utc))
            })
            .or_else(|| {
                ["%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S%.f"]
                    .iter()
                    .find_map(|format| chrono::NaiveDateTime::parse_from_str(text, format).ok())
                    .map(|time| time.and_utc())
            });
        match moment {
            Some(moment) => Self::within_bounds(moment.timestamp_millis()),
            None => Day::parse(text).map(Day::start),
        }
    }

    /// Accepts epoch milliseconds in the years 1970 to 2100.
    #[must_use]
    pub fn within_bounds(millis: i64) -> Option<Self> {
        let year = DateTime::from_timestamp_millis(millis)?.year();
        (1970..=2100).contains(&year).then_some(Self(millis))
    }

    /// ISO-8601 UTC with milliseconds.
    #[must_use]
    pub fn to_iso(self) -> String {
        DateTime::from_timestamp_millis(self.0)
            .unwrap_or_default()
            .to_rfc3339_opts(SecondsFormat::Millis, true)
    }
}

impl Day {
    /// Reads `YYYY-MM-DD`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let date = NaiveDate::parse_from_str(text, "%Y-%m-%d").ok()?;
        let midnight = date.and_hms_opt(0, 0, 0)?.and_utc().timestamp_millis();
        Timestamp::within_bounds(midnight).map(Timestamp::day)
    }

    /// The first moment of the day.
    #[must_use]
    pub const fn start(self) -> Timestamp {
        Timestamp(self.0 * MS_PER_DAY)
    }

    /// `YYYY-MM-DD`.
    #[must_use]
    pub fn to_iso(self) -> String {
        self.start().to_iso()[..10].to_owned()
    }
}

/// Moments as numbers, where nobody but us reads them.
pub(crate) mod as_millis {
    use super::{Deserialize, Deserializer, Serialize, Serializer, Timestamp};

    pub(crate) fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
        at.map(Timestamp::millis).serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Timestamp>, D::Error> {
        Ok(Option::<i64>::deserialize(d)?.map(Timestamp))
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_iso())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse_iso(&text).ok_or_else(|| serde::de::Error::custom("not an ISO 8601 time"))
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_iso())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_times_are_read_in_the_forms_clients_send() {
        let ten = Timestamp(1_767_261_600_000);
        for text in [
            "2026-01-01T10:00:00.000Z",
            "2026-01-01T10:00:00Z",
            "2026-01-01T12:00:00+02:00",
            "2026-01-01T12:00:00+0200",
            "2026-01-01T10:00:00",
        ] {
            assert_eq!(Timestamp::parse_iso(text), Some(ten), "{text}");
        }
        for text in ["yesterday", "", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z", "2101-01-01T00:00:00Z"]
        {
            assert_eq!(Timestamp::parse_iso(text), None, "{text}");
        }
        assert_eq!(ten.to_iso(), "2026-01-01T10:00:00.000Z");
        assert_eq!(Timestamp::parse_iso(" 2026-01-01 "), Some(ten.day().start()));
        assert_eq!(Timestamp::parse_iso("2026-01-32"), None);
    }

    #[test]
    fn a_day_is_a_utc_day() {
        assert_eq!(Timestamp(0).day(), Day(0));
        assert_eq!(Timestamp(86_399_999).day(), Day(0));
        assert_eq!(Day::parse("2026-01-01").map(Day::to_iso).as_deref(), Some("2026-01-01"));
    }
}
