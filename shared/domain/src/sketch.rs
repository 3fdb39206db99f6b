//! Distribution of durations as counts of log-spaced buckets.
//!
//! Invariant: buckets grow by the ratio 1.1 and a bucket answers with its
//! geometric middle, so a quantile is within 5 % of the exact value (plus
//! rounding to whole milliseconds). Merging adds counts: it is associative,
//! commutative and can be taken back. Equal sketches encode to equal bytes.

use std::collections::BTreeMap;

use crate::varint;

/// Growth from one bucket to the next.
const RATIO: f64 = 1.1;

/// The bucket of `i64::MAX`, the last one there is.
const LAST_BUCKET: u16 = 458;

/// The bucket of a duration: ⌊ln(max(ms, 1)) / ln 1.1⌋. Also the unit of
/// `test_state.speed_class`.
#[must_use]
pub fn bucket_of(duration_ms: i64) -> u16 {
    #[expect(clippy::cast_precision_loss, reason = "a bucket is ten percent wide")]
    let bucket = (duration_ms.max(1) as f64).ln() / RATIO.ln();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0..=LAST_BUCKET")]
    let bucket = bucket as u16;
    bucket.min(LAST_BUCKET)
}

/// The duration in milliseconds that stands for a bucket.
fn value_of(bucket: u16) -> i64 {
    #[expect(clippy::cast_possible_truncation, reason = "saturates at i64::MAX")]
    let value = RATIO.powf(f64::from(bucket) + 0.5).round() as i64;
    value
}

/// Counts of durations by bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sketch {
    /// Never holds a zero.
    counts: BTreeMap<u16, u64>,
}

impl Sketch {
    /// Counts a duration in milliseconds; 0 and below count as 1.
    pub fn add(&mut self, duration_ms: i64) {
        self.change(bucket_of(duration_ms), 1, u64::saturating_add);
    }

    /// Takes a duration back. What was never added is ignored.
    pub fn sub(&mut self, duration_ms: i64) {
        self.change(bucket_of(duration_ms), 1, u64::saturating_sub);
    }

    /// Adds everything `other` counted.
    pub fn merge(&mut self, other: &Self) {
        for (&bucket, &count) in &other.counts {
            self.change(bucket, count, u64::saturating_add);
        }
    }

    /// Adds everything that [`Self::encode`] wrote; `None` for anything else, of
    /// which a part may have been added.
    pub fn merge_encoded(&mut self, mut bytes: &[u8]) -> Option<()> {
        let mut next = 0;
        while !bytes.is_empty() {
            let (bucket, count) = read_bucket(&mut bytes, next)?;
            let sum = self.counts.entry(bucket).or_default();
            *sum = sum.saturating_add(count);
            next = bucket + 1;
        }
        Some(())
    }

    /// Takes back everything `other` counted.
    pub fn subtract(&mut self, other: &Self) {
        for (&bucket, &count) in &other.counts {
            self.change(bucket, count, u64::saturating_sub);
        }
    }

    fn change(&mut self, bucket: u16, by: u64, operation: fn(u64, u64) -> u64) {
        let count = operation(self.counts.get(&bucket).copied().unwrap_or(0), by);
        if count == 0 {
            self.counts.remove(&bucket);
        } else {
            self.counts.insert(bucket, count);
        }
    }

    /// How many durations it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum: u64, &count| sum.saturating_add(count))
    }

    /// Whether it holds none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// The `q` quantile (0..=1, clamped) by nearest rank in milliseconds;
    /// `None` when empty.
    #[must_use]
    pub fn quantile(&self, q: f64) -> Option<i64> {
        let rank = nearest_rank(self.count(), q)?;
        let mut seen = 0_u64;
        self.counts
            .iter()
            .find(|&(_, &count)| {
                seen = seen.saturating_add(count);
                seen >= rank
            })
            .map(|(&bucket, _)| value_of(bucket))
    }

    /// Sparse form: for each bucket its distance to the previous one and its
    /// count. Empty sketches give no bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.counts.len() * 2);
        let mut next = 0;
        for (&bucket, &count) in &self.counts {
            varint::write(&mut bytes, u64::from(bucket - next));
            varint::write(&mut bytes, count);
            next = bucket + 1;
        }
        bytes
    }

    /// Reads what [`Self::encode`] wrote; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut sketch = Self::default();
        sketch.merge_encoded(bytes)?;
        Some(sketch)
    }
}

/// The next bucket of encoded ones, at least `next`, with its count.
fn read_bucket(bytes: &mut &[u8], next: u16) -> Option<(u16, u64)> {
    let distance = u16::try_from(varint::read(bytes)?).ok()?;
    let bucket = next.checked_add(distance).filter(|&bucket| bucket <= LAST_BUCKET)?;
    let count = varint::read(bytes).filter(|&count| count > 0)?;
    Some((bucket, count))
}

/// The 1-based nearest rank of quantile `q` among `count` values: ⌈q·count⌉,
/// at least 1; `None` when there are none.
#[must_use]
pub fn nearest_rank(count: u64, q: f64) -> Option<u64> {
    #[expect(clippy::cast_precision_loss, reason = "counts stay far below 2^52")]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=count")]
    let rank = (q.clamp(0.0, 1.0) * count as f64).ceil() as u64;
    (count > 0).then(|| rank.clamp(1, count))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn sketch(durations: &[i64]) -> Sketch {
        let mut sketch = Sketch::default();
        durations.iter().for_each(|&duration| sketch.add(duration));
        sketch
    }

    fn durations() -> impl Strategy<Value = Vec<i64>> {
        let one = prop_oneof![0..50_i64, 0..60_000_i64, 0..100_000_000_i64, Just(i64::MAX)];
        proptest::collection::vec(one, 0..200)
    }

    #[test]
    fn an_empty_sketch_has_no_quantile_and_no_bytes() {
        assert_eq!(Sketch::default().quantile(0.5), None);
        assert!(Sketch::default().encode().is_empty());
        assert_eq!(Sketch::decode(&[]), Some(Sketch::default()));
    }

    #[test]
    fn the_last_bucket_is_that_of_the_longest_duration() {
        assert_eq!(bucket_of(i64::MAX), LAST_BUCKET);
        assert_eq!(bucket_of(-5), 0);
    }

    proptest! {
        #[test]
        fn bytes_bring_back_the_sketch(durations in durations()) {
            let sketch = sketch(&durations);
            prop_assert_eq!(Sketch::decode(&sketch.encode()), Some(sketch));
        }

        #[test]
        fn what_decodes_is_encoded_the_same_way(bytes: Vec<u8>) {
            if let Some(sketch) = Sketch::decode(&bytes) {
                prop_assert_eq!(sketch.encode(), bytes);
            }
        }

        #[test]
        fn merging_is_adding_all_and_can_be_taken_back(one in durations(), another in durations()) {
            let mut merged = sketch(&one);
            let mut of_bytes = merged.clone();
            merged.merge(&sketch(&another));
            prop_assert_eq!(&merged, &sketch(&[one.clone(), another.clone()].concat()));
            of_bytes.merge_encoded(&sketch(&another).encode());
            prop_assert_eq!(&merged, &of_bytes);
            merged.subtract(&sketch(&another));
            prop_assert_eq!(&merged, &sketch(&one));
            one.iter().for_each(|&duration| merged.sub(duration));
            prop_assert!(merged.is_empty());
        }

        #[test]
        fn quantiles_are_within_five_percent(mut durations in durations(), q in 0.0..=1.0_f64) {
            let answer = sketch(&durations).quantile(q);
            durations.sort_unstable();
            let Some(rank) = nearest_rank(durations.len() as u64, q) else {
                prop_assert_eq!(answer, None);
                return Ok(());
            };
            let exact = durations[usize::try_from(rank).unwrap() - 1].max(1);
            let answer = answer.unwrap();
            #[expect(clippy::cast_precision_loss, reason = "compared by ratio")]
            let (error, allowed) = ((answer as f64 - exact as f64).abs(), exact as f64 * 0.05 + 0.5);
            prop_assert!(error <= allowed, "{answer} for {exact}");
        }
    }
}
