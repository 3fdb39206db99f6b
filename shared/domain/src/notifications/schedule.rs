//! When the messages of a subscription are sent: immediately, as a digest at a time
//! of day, and never in quiet hours. Times of day are those of a time zone, so
//! that a digest keeps its hour when daylight saving begins or ends.

use std::str::FromStr;

use chrono::{
    DateTime, Datelike, Days, LocalResult, NaiveDateTime, NaiveTime, TimeDelta, TimeZone as _, Timelike,
};
use chrono_tz::Tz;

use crate::annotations::words;
use crate::time::Timestamp;
use serde::Serialize;

const MINUTES_PER_DAY: u16 = 24 * 60;
/// Clocks are put forward by half an hour to two hours; a skipped time is looked for in these steps.
const STEP_OVER_GAP: TimeDelta = TimeDelta::minutes(15);

words! {
    /// A day of the week.
    Weekday {
        /// Monday.
        Monday = "monday",
        /// Tuesday.
        Tuesday = "tuesday",
        /// Wednesday.
        Wednesday = "wednesday",
        /// Thursday.
        Thursday = "thursday",
        /// Friday.
        Friday = "friday",
        /// Saturday.
        Saturday = "saturday",
        /// Sunday.
        Sunday = "sunday",
    }
}

impl Weekday {
    const ALL: [Self; 7] = [
        Self::Monday,
        Self::Tuesday,
        Self::Wednesday,
        Self::Thursday,
        Self::Friday,
        Self::Saturday,
        Self::Sunday,
    ];

    /// Days since Monday, as SQL stores it.
    #[must_use]
    pub const fn number(self) -> i64 {
        self as i64
    }

    /// Reads the number that SQL stores.
    #[must_use]
    pub fn from_number(number: i64) -> Option<Self> {
        Self::ALL.get(usize::try_from(number).ok()?).copied()
    }
}

/// A time of day to the minute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// Eight in the morning.
    pub const EIGHT: Self = Self(8 * 60);

    /// Reads `HH:MM`, from `00:00` to `23:59`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (hours, minutes) = text.split_once(':')?;
        let is_number = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(hours) || !is_number(minutes) {
            return None;
        }
        let (hours, minutes): (u16, u16) = (hours.parse().ok()?, minutes.parse().ok()?);
        (hours < 24 && minutes < 60).then_some(Self(hours * 60 + minutes))
    }

    /// Minutes since midnight, as SQL stores it.
    #[must_use]
    pub fn minutes(self) -> i64 {
        i64::from(self.0)
    }

    /// Reads the minutes that SQL stores.
    #[must_use]
    pub fn from_minutes(minutes: i64) -> Option<Self> {
        u16::try_from(minutes).ok().filter(|minutes| *minutes < MINUTES_PER_DAY).map(Self)
    }

    /// `HH:MM`.
    #[must_use]
    pub fn to_text(self) -> String {
        format!("{:02}:{:02}", self.0 / 60, self.0 % 60)
    }

    fn at(time: NaiveTime) -> Self {
        Self(u16::try_from(time.num_seconds_from_midnight() / 60).unwrap_or_default())
    }

    fn time(self) -> NaiveTime {
        NaiveTime::from_num_seconds_from_midnight_opt(u32::from(self.0) * 60, 0).unwrap_or_default()
    }
}

/// A time zone of the IANA database, with its history of offsets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TimeZone(Tz);

/// No time zone has this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the time zone is not one of the IANA database, such as Europe/Berlin")]
pub struct UnknownTimeZone;

impl TimeZone {
    /// Coordinated universal time.
    pub const UTC: Self = Self(Tz::UTC);

    /// Its name, such as `Europe/Berlin`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    fn local(self, at: Timestamp) -> NaiveDateTime {
        let utc = DateTime::from_timestamp_millis(at.millis()).unwrap_or_default();
        utc.with_timezone(&self.0).naive_local()
    }

    /// The moment at which clocks show a time; the earlier of two, and for a time that is skipped the next quarter
    /// of an hour after the gap.
    fn moment(self, local: NaiveDateTime) -> Timestamp {
        let mut shown = local;
        loop {
            match self.0.from_local_datetime(&shown) {
                LocalResult::Single(moment) | LocalResult::Ambiguous(moment, _) => {
                    return Timestamp(moment.timestamp_millis());
                }
                LocalResult::None => shown += STEP_OVER_GAP,
            }
        }
    }
}

impl FromStr for TimeZone {
    type Err = UnknownTimeZone;

    fn from_str(name: &str) -> Result<Self, UnknownTimeZone> {
        name.parse().map(Self).map_err(|_| UnknownTimeZone)
    }
}

/// When messages are put together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    /// Time of day.
    pub at: TimeOfDay,
    /// Once a week on this day; `None` for every day.
    pub day: Option<Weekday>,
}

/// Hours without messages. They may go past midnight; equal times mean the whole day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuietHours {
    /// The first quiet minute.
    pub from: TimeOfDay,
    /// The first minute that is not quiet any more.
    pub to: TimeOfDay,
}

impl QuietHours {
    fn contain(self, time: TimeOfDay) -> bool {
        if self.from < self.to {
            (self.from..self.to).contains(&time)
        } else {
            time >= self.from || time < self.to
        }
    }
}

/// When the messages of a subscription are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// Zone of the times below.
    pub zone: TimeZone,
    /// Messages are put together; `None` sends each immediately.
    pub digest: Option<Digest>,
    /// Hours in which nothing is sent.
    pub quiet: Option<QuietHours>,
}

impl Schedule {
    /// Each message immediately.
    pub const AT_ONCE: Self = Self { zone: TimeZone::UTC, digest: None, quiet: None };

    /// When a message of now is sent; `None` for immediately. A digest that falls into quiet hours is sent when they end.
    #[must_use]
    pub fn due(&self, now: Timestamp) -> Option<Timestamp> {
        let planned = self.digest.map(|digest| self.next(now, digest.at, digest.day));
        let at = planned.unwrap_or(now);
        let is_quiet = |quiet: &QuietHours| quiet.contain(TimeOfDay::at(self.zone.local(at).time()));
        match self.quiet.filter(is_quiet) {
            Some(quiet) => Some(self.next(at, quiet.to, None)),
            None => planned,
        }
    }

    /// The first moment after `now` at which clocks show a time, on any day or on one of the week.
    fn next(&self, now: Timestamp, time: TimeOfDay, day: Option<Weekday>) -> Timestamp {
        let today = self.zone.local(now).date();
        let is_wanted = |number: u32| day.is_none_or(|day| day.number() == i64::from(number));
        // Eight days hold every weekday after today's time; a ninth is needed where a zone skipped a whole day.
        (0..=8)
            .filter_map(|days| today.checked_add_days(Days::new(days)))
            .filter(|date| is_wanted(date.weekday().num_days_from_monday()))
            .map(|date| self.zone.moment(date.and_time(time.time())))
            .find(|moment| *moment > now)
            .unwrap_or(now)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse_iso(text).expect("a time")
    }

    fn time(text: &str) -> TimeOfDay {
        TimeOfDay::parse(text).expect("a time of day")
    }

    fn zone(name: &str) -> TimeZone {
        name.parse().expect("a time zone")
    }

    fn daily(zone_name: &str, at: &str) -> Schedule {
        Schedule { zone: zone(zone_name), digest: Some(Digest { at: time(at), day: None }), quiet: None }
    }

    #[test]
    fn times_of_day_are_read_as_clocks_show_them() {
        assert_eq!(time("07:05").to_text(), "07:05");
        assert_eq!(TimeOfDay::from_minutes(time("23:59").minutes()), Some(time("23:59")));
        for wrong in ["7:05", "24:00", "12:60", "0x:10", "12", "+1:00", "12:00:00", ""] {
            assert_eq!(TimeOfDay::parse(wrong), None, "{wrong}");
        }
        assert_eq!("Europe/Atlantis".parse::<TimeZone>(), Err(UnknownTimeZone));
    }

    #[test]
    fn a_digest_keeps_its_hour_when_daylight_saving_begins_and_ends() {
        let berlin = daily("Europe/Berlin", "08:00");
        for (now, due) in [
            ("2026-03-27T12:00:00Z", "2026-03-28T07:00:00Z"),
            ("2026-03-28T12:00:00Z", "2026-03-29T06:00:00Z"),
            ("2026-10-24T12:00:00Z", "2026-10-25T07:00:00Z"),
            // A message of the very moment waits for the next day.
            ("2026-07-01T06:00:00Z", "2026-07-02T06:00:00Z"),
        ] {
            assert_eq!(berlin.due(at(now)), Some(at(due)), "{now}");
        }
        // 02:30 does not exist on that night: the first moment after the gap. In autumn there are two: the first.
        let night = daily("Europe/Berlin", "02:30");
        assert_eq!(night.due(at("2026-03-28T22:00:00Z")), Some(at("2026-03-29T01:00:00Z")));
        assert_eq!(night.due(at("2026-10-24T22:00:00Z")), Some(at("2026-10-25T00:30:00Z")));
    }

    #[test]
    fn a_weekly_digest_waits_for_its_day() {
        let digest = Some(Digest { at: time("09:00"), day: Some(Weekday::Monday) });
        let weekly = Schedule { digest, ..Schedule::AT_ONCE };
        assert_eq!(weekly.due(at("2026-11-30T08:59:00Z")), Some(at("2026-11-30T09:00:00Z")));
        assert_eq!(weekly.due(at("2026-11-30T09:00:00Z")), Some(at("2026-12-07T09:00:00Z")));
    }

    #[test]
    fn quiet_hours_may_go_past_midnight_and_move_digests() {
        let quiet = Some(QuietHours { from: time("22:00"), to: time("07:00") });
        let schedule = Schedule { quiet, ..Schedule::AT_ONCE };
        assert_eq!(schedule.due(at("2026-11-30T21:59:59Z")), None);
        assert_eq!(schedule.due(at("2026-11-30T22:00:00Z")), Some(at("2026-12-01T07:00:00Z")));
        assert_eq!(schedule.due(at("2026-12-01T06:59:59Z")), Some(at("2026-12-01T07:00:00Z")));
        assert_eq!(schedule.due(at("2026-12-01T07:00:00Z")), None);
        let early = Schedule { quiet, ..daily("UTC", "05:00") };
        assert_eq!(early.due(at("2026-11-30T12:00:00Z")), Some(at("2026-12-01T07:00:00Z")));
    }

    prop_compose! {
        fn any_schedule()(
            zone_name in prop::sample::select(vec!["UTC", "Europe/Berlin", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Kathmandu"]),
            digest in prop::option::of((0_i64..1440, prop::option::of(0_i64..7))),
            quiet in prop::option::of((0_i64..1440, 0_i64..1440)),
        ) -> Schedule {
            let time = |minutes| TimeOfDay::from_minutes(minutes).expect("a time");
            Schedule {
                zone: zone(zone_name),
                digest: digest.map(|(at, day)| Digest { at: time(at), day: day.and_then(Weekday::from_number) }),
                quiet: quiet.filter(|(from, to)| from != to).map(|(from, to)| QuietHours { from: time(from), to: time(to) }),
            }
        }
    }

    proptest! {
        /// Whatever is held back is sent later, within nine days, and at a time that the schedule allows.
        #[test]
        fn messages_are_sent_at_times_that_the_schedule_allows(
            schedule in any_schedule(),
            millis in 1_260_000_000_000_i64..2_000_000_000_000,
        ) {
            let now = Timestamp(millis);
            let Some(due) = schedule.due(now) else {
                let shown = TimeOfDay::at(schedule.zone.local(now).time());
                prop_assert!(schedule.digest.is_none());
                prop_assert!(schedule.quiet.is_none_or(|quiet| !quiet.contain(shown)));
                return Ok(());
            };
            prop_assert!(due > now);
            prop_assert!(due.millis() - now.millis() <= 9 * 86_400_000);
            // Messages of the same digest share a moment, whenever they came.
            if schedule.quiet.is_none() {
                prop_assert_eq!(schedule.due(Timestamp(due.millis() - 1)), Some(due));
            }
        }
    }
}
