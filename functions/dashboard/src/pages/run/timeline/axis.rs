//! The axis below the lanes: marks at round times, as many as can be read.

use crate::text::duration;

const SECOND: i64 = 1_000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
/// Steps between marks that people count in, ms.
const STEPS: [i64; 27] = [
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    SECOND,
    2 * SECOND,
    5 * SECOND,
    10 * SECOND,
    15 * SECOND,
    30 * SECOND,
    MINUTE,
    2 * MINUTE,
    5 * MINUTE,
    10 * MINUTE,
    15 * MINUTE,
    30 * MINUTE,
    HOUR,
    2 * HOUR,
    3 * HOUR,
    6 * HOUR,
    12 * HOUR,
    DAY,
];
/// Most steps on an axis.
pub(super) const MOST: i64 = 7;
/// Most steps on one that is as narrow as a phone.
pub(super) const FEW: i64 = 3;
/// Nearer to an end of the axis than so many thousandths a label begins or ends
/// at its mark, so that nothing of it lies beyond.
const NEAR: i64 = 40;
/// What the label of an edge takes, in thousandths.
const EDGE: i64 = 130;

/// A mark of the axis.
pub(super) struct Tick {
    /// Its place, such as `12.5%`.
    pub x: String,
    pub label: String,
    /// Which end of the label is at the mark: `start`, `middle` or `end`.
    pub anchor: &'static str,
}

/// The marks of an axis that begins so many ms after the start of the run, in
/// so many steps at most.
pub(super) fn ticks(since_ms: i64, span_ms: i64, most: i64) -> Vec<Tick> {
    let span = span_ms.max(1);
    // Beyond the steps whole days are counted.
    let step = STEPS.into_iter().find(|step| span / step <= most).unwrap_or((span / (most * DAY) + 1) * DAY);
    let first = (since_ms + step - 1).div_euclid(step);
    let last = (since_ms + span).div_euclid(step);
    let tick = |count: i64| {
        let thousandths = (count * step - since_ms) * 1_000 / span;
        Tick {
            x: format!("{}.{}%", thousandths / 10, thousandths % 10),
            label: label(count * step, step),
            anchor: match thousandths {
                ..NEAR => "start",
                place if place > 1_000 - NEAR => "end",
                _ => "middle",
            },
        }
    };
    // Less than can be seen on the axis is nothing.
    let begins = if since_ms * 200 < span { label(0, step) } else { duration(since_ms) };
    let begins = Tick { x: "0.0%".to_owned(), label: begins, anchor: "start" };
    // An axis whose edge says nothing seems to begin with the run.
    let has_room = (first * step - since_ms) * 1_000 / span >= EDGE;
    has_room.then_some(begins).into_iter().chain((first..=last).map(tick)).collect()
}

/// A time in no more units than the step needs.
fn label(ms: i64, step: i64) -> String {
    let whole = |unit: i64| step % unit == 0;
    match ms {
        0 => "0".to_owned(),
        _ if whole(HOUR) => format!("{}\u{a0}h", ms / HOUR),
        ..HOUR if whole(MINUTE) => format!("{}\u{a0}min", ms / MINUTE),
        ..MINUTE if whole(SECOND) => format!("{}\u{a0}s", ms / SECOND),
        // No two marks read alike.
        SECOND..MINUTE if whole(100) => format!("{}.{}\u{a0}s", ms / SECOND, ms % SECOND / 100),
        SECOND..MINUTE => format!("{}.{:03}\u{a0}s", ms / SECOND, ms % SECOND),
        HOUR.. if !whole(MINUTE) => {
            format!(
                "{}\u{a0}h\u{a0}{:02}\u{a0}m\u{a0}{:02}\u{a0}s",
                ms / HOUR,
                ms % HOUR / MINUTE,
                ms % MINUTE / SECOND
            )
        }
        _ => duration(ms),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(since_ms: i64, span_ms: i64) -> Vec<String> {
        let spoken = |tick: Tick| format!("{} {} {}", tick.x, tick.anchor, tick.label.replace('\u{a0}', " "));
        ticks(since_ms, span_ms, MOST).into_iter().map(spoken).collect()
    }

    #[test]
    fn marks_stand_at_round_times() {
        assert_eq!(
            marks(0, 54_800),
            [
                "0.0% start 0",
                "18.2% middle 10 s",
                "36.4% middle 20 s",
                "54.7% middle 30 s",
                "72.9% middle 40 s",
                "91.2% middle 50 s"
            ]
        );
        assert_eq!(marks(0, 120_000).len(), 5);
        assert_eq!(marks(0, 120_000)[3], "75.0% middle 1 m 30 s");
        assert_eq!(marks(0, 120_000)[4], "100.0% end 2 m 00 s");
    }

    #[test]
    fn an_axis_that_begins_later_keeps_the_times_of_the_run() {
        assert_eq!(marks(7_300, 4_000)[..2], ["0.0% start 7.3 s", "17.5% middle 8 s"]);
        assert_eq!(marks(90_000, 3_600_000)[..2], ["0.0% start 1 m 30 s", "14.1% middle 10 min"]);
        assert_eq!(marks(7_900, 4_000)[0], "2.5% start 8 s");
        assert_eq!(marks(1_470_000, 4_000_000)[0], "8.2% middle 30 min");
        assert_eq!(marks(150, 177_000)[..2], ["0.0% start 0", "16.8% middle 30 s"]);
    }

    #[test]
    fn no_two_marks_read_alike() {
        for (since, span) in [(1_000, 350), (1_000, 30), (3_600_000, 180_000), (59_000, 4_000)] {
            let mut labels: Vec<String> =
                ticks(since, span, MOST).into_iter().map(|tick| tick.label).collect();
            let all = labels.len();
            labels.dedup();
            assert_eq!(labels.len(), all, "{labels:?}");
        }
    }

    #[test]
    fn there_are_never_too_many_marks() {
        for span in [0, 1, 999, 60_000, 3_599_999, DAY, 400 * DAY] {
            assert!(marks(0, span).len() <= 8, "{span}: {:?}", marks(0, span));
        }
    }
}
