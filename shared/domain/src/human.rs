//! Numbers as people read them, for sentences and pages alike. Units keep to
//! their number: the space between them does not break.

/// `850 ms`, `1.3 s`, `42 s`, `4 m 12 s`, `1 h 03 m`, each rounded to its last
/// unit, so that what is added up on one page comes near to its sum.
#[must_use]
pub fn duration(ms: i64) -> String {
    let ms = ms.max(0);
    let tenths = ms.saturating_add(50) / 100;
    let seconds = ms.saturating_add(500) / 1_000;
    let minutes = seconds.saturating_add(30) / 60;
    match (ms, tenths, seconds) {
        (..1_000, ..) => format!("{ms}\u{a0}ms"),
        (_, ..100, _) => format!("{}.{}\u{a0}s", tenths / 10, tenths % 10),
        (.., ..60) => format!("{seconds}\u{a0}s"),
        (.., ..3_600) => format!("{}\u{a0}m\u{a0}{:02}\u{a0}s", seconds / 60, seconds % 60),
        _ => format!("{}\u{a0}h\u{a0}{:02}\u{a0}m", minutes / 60, minutes % 60),
    }
}

/// A rate in percent with one decimal: `98.5`. Only everything is 100, and only
/// nothing is 0.
#[must_use]
pub fn percent_number(rate: f64) -> String {
    let tenths = (rate * 1_000.0).round();
    let tenths = if rate < 1.0 { tenths.min(999.0) } else { tenths };
    let tenths = if rate > 0.0 { tenths.max(1.0) } else { tenths };
    format!("{:.1}", tenths / 10.0)
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
            (9_949, "9.9 s"),
            (9_950, "10 s"),
            (42_400, "42 s"),
            (59_500, "1 m 00 s"),
            (252_000, "4 m 12 s"),
            (3_599_500, "1 h 00 m"),
            (3_780_000, "1 h 03 m"),
            (i64::MAX, "2562047788015 h 13 m"),
        ] {
            assert_eq!(duration(ms).replace('\u{a0}', " "), text);
        }
    }
}
