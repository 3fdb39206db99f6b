//! Where executions failed: whether failures gather in one browser project,
//! one environment, one shard or one host more than chance would have it.

use std::collections::BTreeMap;

/// Failures from which a concentration can be told from chance.
const ENOUGH_FAILURES: usize = 5;
/// Probability below which a concentration is not chance.
const SIGNIFICANT: f64 = 0.01;

/// Executions in one place: a browser project, an environment, a shard, a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The kind of place.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// Decided executions there.
    pub ran: usize,
    /// Those with a failing attempt.
    pub failed: usize,
    /// Decided executions in all places of the kind.
    pub ran_anywhere: usize,
    /// Those with a failing attempt.
    pub failed_anywhere: usize,
}

impl Place {
    /// Adds executions up by where they ran: (place, how many ran there, how
    /// many of them failed), a place as often as one likes.
    #[must_use]
    pub fn count(
        kind: &'static str,
        executions: impl IntoIterator<Item = (String, usize, usize)>,
    ) -> Vec<Self> {
        let mut counts: BTreeMap<String, (usize, usize)> = BTreeMap::new();
        for (name, ran, failed) in executions {
            let count = counts.entry(name).or_default();
            count.0 += ran;
            count.1 += failed;
        }
        let (ran_anywhere, failed_anywhere) =
            counts.values().fold((0, 0), |(ran, failed), one| (ran + one.0, failed + one.1));
        counts
            .into_iter()
            .map(|(name, (ran, failed))| Self { kind, name, ran, failed, ran_anywhere, failed_anywhere })
            .collect()
    }

    /// Whether failures gather here: at least five, and so many of them here
    /// by less than one chance in a hundred.
    #[must_use]
    pub fn is_concentration(&self) -> bool {
        let is_some_of_many = self.ran < self.ran_anywhere && self.failed_anywhere >= ENOUGH_FAILURES;
        is_some_of_many && self.by_chance() < SIGNIFICANT
    }

    /// Probability of at least so many failures in the place if place did not
    /// matter: the upper tail of the hypergeometric distribution, which is
    /// Fisher's exact test of the two by two table.
    fn by_chance(&self) -> f64 {
        let (population, drawn) = (self.ran_anywhere, self.ran);
        let marked = self.failed_anywhere.min(population);
        let logs: Vec<f64> = std::iter::once(0.0)
            .chain((1..=population).scan(0.0, |sum, n| {
                #[expect(clippy::cast_precision_loss, reason = "executions of one test or one run")]
                let log = (n as f64).ln();
                *sum += log;
                Some(*sum)
            }))
            .collect();
        let choose =
            |n: usize, k: usize| if k > n { f64::NEG_INFINITY } else { logs[n] - logs[k] - logs[n - k] };
        let all = choose(population, drawn);
        (self.failed..=marked.min(drawn))
            .filter(|&k| drawn - k <= population - marked)
            .map(|k| (choose(marked, k) + choose(population - marked, drawn - k) - all).exp())
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_gather_where_chance_would_not_bring_them() {
        let executions = [("webkit", 20, 6), ("chromium", 30, 0), ("firefox", 10, 0)];
        let named = executions.map(|(name, ran, failed)| (name.to_owned(), ran, failed));
        let places = Place::count("browser project", named.into_iter().chain([("webkit".to_owned(), 0, 0)]));
        let gathered: Vec<&str> =
            places.iter().filter(|place| place.is_concentration()).map(|place| place.name.as_str()).collect();
        assert_eq!(gathered, ["webkit"]);
        // C(20,6) / C(60,6) = 38,760 / 50,063,860
        assert!((places[2].by_chance() - 38_760.0 / 50_063_860.0).abs() < 1e-9);
        let spread = Place { failed: 2, ..places[2].clone() };
        assert!(!spread.is_concentration(), "a third of the failures where a third ran");
        let few = Place { failed: 4, failed_anywhere: 4, ..places[2].clone() };
        assert!(!few.is_concentration(), "four may gather anywhere");
        let only = Place { ran: 60, ..places[2].clone() };
        assert!(!only.is_concentration(), "it did not run elsewhere");
    }
}
