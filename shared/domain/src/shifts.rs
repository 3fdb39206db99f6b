//! Where durations changed for good.
//!
//! Method: binary segmentation with Welch's t-test on the logarithms of the
//! durations, as in Hunter (Fleming, Kołaczkowski et al., *Hunter: Using
//! Change Point Detection to Hunt for Performance Regressions*, 2023), which
//! tests the candidates of E-divisive (Matteson, James 2014) the same way.
//! Outliers are pulled in by the median absolute deviation of their segment,
//! and fewer samples are counted where neighbours resemble each other.

use statrs::distribution::{ContinuousCDF, StudentsT};

/// Fewest samples in which a shift is looked for.
const FEWEST: usize = 12;
/// Fewest samples on either side of one.
const SIDE: usize = 4;
/// Least standard deviation of a logarithm: 2 % of a duration is noise.
const NOISE: f64 = 0.02;
/// How many robust standard deviations from the median a sample may count.
const OUTLIER: f64 = 3.0;
/// Makes the median absolute deviation of a normal distribution its standard
/// deviation.
const NORMAL_MAD: f64 = 1.4826;
/// Most correlation of neighbours that is believed.
const MOST_CORRELATED: f64 = 0.6;
/// Level of a shift; looking at every place of `n` samples multiplies chance
/// by about the square root of `n`. Four of a thousand steady series of sixty
/// samples show one.
const ALPHA: f64 = 1e-4;
/// While splitting more is let through: a second shift beside it hides one.
const WHILE_SPLITTING: f64 = 0.02;
/// Least change of the median that is told, as a share.
const LEAST_CHANGE: f64 = 0.08;

/// A lasting change of durations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shift {
    /// Index of the first sample after it.
    pub at: usize,
    /// Median before it, back to the shift before, ms.
    pub before_ms: i64,
    /// Median from it on, up to the next shift, ms.
    pub after_ms: i64,
}

impl Shift {
    /// The change as a share of what it was: 0.5 is half as much again.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "durations are far below 2^52 ms")]
    pub fn share(&self) -> f64 {
        (self.after_ms as f64 - self.before_ms as f64) / self.before_ms.max(1) as f64
    }
}

/// The lasting changes of durations, oldest first. Meant for the newest few
/// dozen samples: the cost grows with their square.
#[must_use]
pub fn shifts(durations_ms: &[i64]) -> Vec<Shift> {
    #[expect(clippy::cast_precision_loss, reason = "durations are far below 2^52 ms")]
    let logs: Vec<f64> = durations_ms.iter().map(|ms| ((*ms).max(1) as f64).ln()).collect();
    let mut ends = Vec::new();
    split(&logs, 0, logs.len(), &mut ends);
    ends.sort_unstable();
    loop {
        let found = told(durations_ms, &ends);
        let chances = ends.iter().enumerate().map(|(index, &at)| {
            let (from, to) = segment(&ends, index, logs.len());
            let is_small = found[index].share().abs() < LEAST_CHANGE;
            if is_small { f64::INFINITY } else { chance(&logs[from..to], at - from, MOST_CORRELATED) }
        });
        match chances.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other)) {
            Some((weakest, chance)) if chance > ALPHA => {
                ends.remove(weakest);
            }
            _ => return found,
        }
    }
}

/// Least change that is reported of a test by itself, as a share and ms.
const NOTABLE_SHARE: f64 = 0.2;
const NOTABLE_MS: i64 = 200;

/// The lasting slowdown that the newest duration proves: the newest change, when it is one for the worse and was not
/// there without that duration.
#[must_use]
pub fn newly_slower(durations_ms: &[i64]) -> Option<Shift> {
    let is_slower =
        |shift: &Shift| shift.share() >= NOTABLE_SHARE && shift.after_ms - shift.before_ms >= NOTABLE_MS;
    let (_, known) = durations_ms.split_last()?;
    // Few get as far as the test: the newest ones have to be slower than what came before them.
    let (earlier, newest) = known.split_at_checked(known.len().checked_sub(SIDE)?)?;
    if earlier.len() < SIDE || median(newest) <= median(earlier) {
        return None;
    }
    let shift = shifts(durations_ms).pop().filter(is_slower)?;
    let was_known = shifts(known).iter().any(|old| is_slower(old) && old.at.abs_diff(shift.at) <= SIDE);
    (!was_known).then_some(shift)
}

/// The samples on both sides of a boundary, up to its neighbours.
fn segment(ends: &[usize], index: usize, count: usize) -> (usize, usize) {
    let from = index.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    (from, ends.get(index + 1).copied().unwrap_or(count))
}

fn told(durations_ms: &[i64], ends: &[usize]) -> Vec<Shift> {
    let shift = |(index, &at): (usize, &usize)| {
        let (from, to) = segment(ends, index, durations_ms.len());
        Shift { at, before_ms: median(&durations_ms[from..at]), after_ms: median(&durations_ms[at..to]) }
    };
    ends.iter().enumerate().map(shift).collect()
}

fn median(durations_ms: &[i64]) -> i64 {
    let mut sorted = durations_ms.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len().saturating_sub(1) / 2).copied().unwrap_or(0)
}

/// Splits a stretch at the place that divides it best, and both parts again.
fn split(logs: &[f64], from: usize, to: usize, ends: &mut Vec<usize>) {
    if to - from < FEWEST {
        return;
    }
    let part = &logs[from..to];
    // A second shift inside of a side makes its neighbours resemble each other.
    let places = (SIDE..=part.len() - SIDE).map(|at| (at, chance(part, at, 0.0)));
    let Some((at, chance)) = places.min_by(|(_, one), (_, other)| one.total_cmp(other)) else { return };
    if chance > WHILE_SPLITTING {
        return;
    }
    ends.push(from + at);
    split(logs, from, from + at, ends);
    split(logs, from + at, to, ends);
}

/// How likely chance alone makes such a difference between the samples before
/// and from an index, somewhere in a stretch of this length; may exceed one.
/// Neighbours are believed to be correlated so much at most.
fn chance(part: &[f64], at: usize, most_correlated: f64) -> f64 {
    let (before, after) = (Side::from_logs(&part[..at]), Side::from_logs(&part[at..]));
    let correlation = before.correlation.max(after.correlation).min(most_correlated);
    let independent = (1.0 - correlation) / (1.0 + correlation);
    let (one, other) = (before.count * independent, after.count * independent);
    let (own, others) = (before.variance / one, after.variance / other);
    let t = (before.mean - after.mean).abs() / (own + others).sqrt();
    // Welch and Satterthwaite; never less than one degree of freedom.
    let share = |part: f64, count: f64| part * part / (count - 1.0).max(1.0);
    let freedom = ((own + others).powi(2) / (share(own, one) + share(others, other))).max(1.0);
    let tail = StudentsT::new(0.0, 1.0, freedom).map_or(1.0, |t_of| 2.0 * t_of.sf(t));
    tail * (before.count + after.count).sqrt()
}

/// What one side of a boundary looks like without its outliers.
struct Side {
    count: f64,
    mean: f64,
    variance: f64,
    /// Of neighbours, from 0 to [`MOST_CORRELATED`].
    correlation: f64,
}

impl Side {
    #[expect(clippy::cast_precision_loss, reason = "a few dozen samples")]
    fn from_logs(logs: &[f64]) -> Self {
        let logs = without_outliers(logs);
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let neighbours: f64 = logs.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        Self {
            count,
            mean,
            variance: (squares / (count - 1.0).max(1.0)).max(NOISE * NOISE),
            correlation: if squares > 0.0 { (neighbours / squares).clamp(0.0, MOST_CORRELATED) } else { 0.0 },
        }
    }
}

fn without_outliers(logs: &[f64]) -> Vec<f64> {
    let middle = |values: &[f64]| {
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    };
    let centre = middle(logs);
    let deviations: Vec<f64> = logs.iter().map(|log| (log - centre).abs()).collect();
    let reach = OUTLIER * (NORMAL_MAD * middle(&deviations)).max(NOISE);
    logs.iter().map(|log| log.clamp(centre - reach, centre + reach)).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Around a level, up to a share above or below, the same every time.
    fn around(level: i64, count: usize, seed: u64) -> Vec<i64> {
        let mut state = seed;
        let next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            i64::try_from(state >> 33).unwrap_or(0) % 21 - 10
        };
        std::iter::repeat_with(next).take(count).map(|percent| level + level * percent / 100).collect()
    }

    #[test]
    fn a_slowdown_is_proved_by_one_duration_and_only_once() {
        let noise = |at: usize| i64::try_from(at * 7 % 13).unwrap();
        let history: Vec<i64> =
            (0..60).map(|at| if at < 30 { 1_000 + noise(at) } else { 2_000 + noise(at) }).collect();
        let proofs: Vec<usize> =
            (1..=history.len()).filter(|n| newly_slower(&history[..*n]).is_some()).collect();
        assert_eq!(proofs.len(), 1, "{proofs:?}");
        assert!((34..=45).contains(&proofs[0]), "{proofs:?}");
        let faster: Vec<i64> = history.iter().rev().copied().collect();
        assert!((1..=faster.len()).all(|n| newly_slower(&faster[..n]).is_none()));
    }

    #[test]
    fn a_step_is_found_where_it_is_and_told_in_medians() {
        let durations = [around(1_000, 30, 1), around(1_500, 20, 2)].concat();
        let [shift] = shifts(&durations)[..] else { panic!("{:?}", shifts(&durations)) };
        assert!(shift.at.abs_diff(30) <= 1, "{shift:?}");
        assert!((0.3..0.7).contains(&shift.share()), "{shift:?}");
    }

    #[test]
    fn there_and_back_are_two_steps_and_one_slow_run_is_none() {
        let durations = [around(800, 20, 3), around(1_600, 16, 4), around(820, 20, 5)].concat();
        let ends: Vec<usize> = shifts(&durations).iter().map(|shift| shift.at).collect();
        assert_eq!(ends.len(), 2, "{ends:?}");
        let mut slow_once = around(800, 40, 6);
        slow_once[20] = 30_000;
        assert_eq!(shifts(&slow_once), []);
    }

    #[test]
    fn noise_and_little_changes_are_no_steps() {
        let found = (0..200).filter(|seed| !shifts(&around(900, 60, *seed)).is_empty()).count();
        assert!(found <= 2, "{found} of 200 steady series");
        assert_eq!(shifts(&[vec![1_000; 30], vec![1_050; 30]].concat()), []);
        assert_eq!(shifts(&[]), []);
    }

    proptest! {
        #[test]
        fn every_shift_lies_inside_with_room_on_both_sides(durations in proptest::collection::vec(any::<i64>(), 0..70)) {
            let count = durations.len();
            let found = shifts(&durations);
            prop_assert!(found.is_sorted_by(|one, other| one.at < other.at));
            for shift in found {
                prop_assert!(shift.at >= SIDE && shift.at + SIDE <= count);
            }
        }
    }
}
