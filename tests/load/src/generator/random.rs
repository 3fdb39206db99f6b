//! Pseudo-random numbers that are the same on every machine (SplitMix64,
//! Steele, Lea and Flood 2014), so that two measurements see the same runs.

/// A stream of numbers determined by its seed.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The stream of a seed and of what it is for.
    #[must_use]
    pub fn new(seed: u64, purpose: u64) -> Self {
        let mut random = Self(seed ^ purpose.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        // Neighbouring purposes must not begin alike.
        random.next();
        random
    }

    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True in `permille` of 1,000 calls.
    pub fn chance(&mut self, permille: u64) -> bool {
        self.next() % 1000 < permille
    }

    /// One of some items.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        let count = items.len() as u64;
        // The remainder is smaller than a length.
        &items[usize::try_from(self.next() % count).unwrap_or_default()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_and_a_purpose_determine_the_stream() {
        let numbers = |seed, purpose| {
            let mut random = Random::new(seed, purpose);
            [random.next(), random.between(3, 9), u64::from(random.chance(500))]
        };
        assert_eq!(numbers(1, 2), numbers(1, 2));
        assert_ne!(numbers(1, 2), numbers(1, 3));
        assert_ne!(numbers(1, 2), numbers(2, 2));
    }
}
