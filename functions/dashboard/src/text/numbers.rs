//! Durations, sizes, counts and rates. Units keep to their number: the space
//! between them does not break.

pub(crate) use callboard_domain::human::duration;
use callboard_domain::human::percent_number;

/// `42 min`, `7 h`, `3 d 4 h`: for what lasts days.
pub(crate) fn long_duration(ms: i64) -> String {
    let minutes = ms.max(0) / 60_000;
    match minutes {
        0..60 => format!("{minutes}\u{a0}min"),
        60..1_440 => format!("{}\u{a0}h", minutes / 60),
        _ => format!("{}\u{a0}d\u{a0}{}\u{a0}h", minutes / 1_440, minutes % 1_440 / 60),
    }
}

/// `512 B`, `12.4 kB`, `3.1 MB`: decimal units, one decimal below 100.
pub(crate) fn size(bytes: i64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    let bytes = bytes.max(0);
    if bytes < 1_000 {
        return format!("{bytes}\u{a0}B");
    }
    let mut tenths = bytes / 100;
    let mut unit = 0;
    while tenths >= 10_000 && unit < UNITS.len() - 1 {
        tenths /= 1_000;
        unit += 1;
    }
    let unit = UNITS[unit];
    if tenths < 1_000 {
        format!("{}.{}\u{a0}{unit}", tenths / 10, tenths % 10)
    } else {
        format!("{}\u{a0}{unit}", tenths / 10)
    }
}

/// `12 345`, in groups of three.
pub(crate) fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3 * 2 + 1);
    if number < 0 {
        text.push('−');
    }
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push('\u{202f}');
        }
        text.push(digit);
    }
    text
}

/// `98.5%`. Only everything is 100%, and only nothing is 0%.
pub(crate) fn percent(rate: f64) -> String {
    let text = percent_number(rate);
    format!("{}%", text.strip_suffix(".0").unwrap_or(&text))
}

/// `98.5%`, `100.0%`: as one of a column, where digits of one weight stand
/// below each other.
pub(crate) fn column_percent(rate: f64) -> String {
    format!("{}%", percent_number(rate))
}

/// `−7.1 points`: a difference of rates, with its sign.
pub(crate) fn points(delta: f64) -> String {
    let rounded = (delta * 1_000.0).round() / 10.0;
    let sign = if rounded > 0.0 {
        "+"
    } else if rounded < 0.0 {
        "−"
    } else {
        "±"
    };
    let text = format!("{:.1}", rounded.abs());
    format!("{sign}{}\u{a0}points", text.strip_suffix(".0").unwrap_or(&text))
}

/// A number for a field, empty where there is none.
pub(crate) fn blank_or(number: &Option<i64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_of_rates_are_points_with_their_sign() {
        for (delta, text) in [(-0.125, "−12.5 points"), (0.07, "+7 points"), (-0.000_1, "±0 points")] {
            assert_eq!(plain(&points(delta)), text);
        }
    }

    fn plain(text: &str) -> String {
        text.replace(['\u{a0}', '\u{202f}'], " ")
    }

    #[test]
    fn what_lasts_days_is_told_in_days() {
        for (ms, text) in [(90_000, "1 min"), (7 * 3_600_000, "7 h"), (100 * 3_600_000, "4 d 4 h")] {
            assert_eq!(plain(&long_duration(ms)), text);
        }
    }

    #[test]
    fn sizes_have_one_unit_and_at_most_one_decimal() {
        for (bytes, text) in [
            (999, "999 B"),
            (12_400, "12.4 kB"),
            (999_999, "999 kB"),
            (3_140_000, "3.1 MB"),
            (250_000_000, "250 MB"),
            (i64::MAX, "9223372 TB"),
        ] {
            assert_eq!(plain(&size(bytes)), text);
        }
    }

    #[test]
    fn only_everything_is_a_hundred_percent() {
        for (rate, text) in
            [(1.0, "100%"), (0.9999, "99.9%"), (0.985, "98.5%"), (0.0001, "0.1%"), (0.0, "0%")]
        {
            assert_eq!(plain(&percent(rate)), text);
        }
        for (rate, text) in [(1.0, "100.0%"), (0.9999, "99.9%"), (0.985, "98.5%"), (0.0, "0.0%")] {
            assert_eq!(plain(&column_percent(rate)), text);
        }
        assert_eq!(plain(&grouped(1_234_567)), "1 234 567");
        assert_eq!(plain(&grouped(-12)), "−12");
    }
}
