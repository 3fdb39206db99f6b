//! Numbers as people read them, for sentences and pages alike. Units keep to
//! their number: the space between them does not break.

/// `850 ms`, `1.3 s`, `42 s`, `4 m 12 s`, `1 h 03 m`.
#[must_use]
pub fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms}\u{a0}ms"),
        // Tenths are cut, so that 9.96 s never reads as a round number.
        1_000..10_000 => format!("{}.{}\u{a0}s", seconds, ms % 1_000 / 100),
        10_000..60_000 => format!("{seconds}\u{a0}s"),
        60_000..3_600_000 => format!("{}\u{a0}m\u{a0}{:02}\u{a0}s", seconds / 60, seconds % 60),
        _ => format!("{}\u{a0}h\u{a0}{:02}\u{a0}m", seconds / 3_600, seconds % 3_600 / 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_at_a_glance() {
        for (ms, text) in [
            (-3, "0 ms"),
            (850, "850 ms"),
            (1_300, "1.3 s"),
            (9_999, "9.9 s"),
            (42_400, "42 s"),
            (252_000, "4 m 12 s"),
            (3_780_000, "1 h 03 m"),
        ] {
            assert_eq!(duration(ms).replace('\u{a0}', " "), text);
        }
    }
}
