//! The filter over one series of runs: what its attempts say about how often
//! the test fails by chance, and whether it is broken just now.
//!
//! A hidden state is good or bad. In the good state an attempt fails with the
//! series' own rate θ, in the bad state (almost) always, so that failures of a
//! broken test say nothing about θ. New code may break or repair a test.
//!
//! Invariant: the weights of both states sum up to one after every run.

use std::sync::LazyLock;

use super::FlakyClass;

/// Points of the grid of rates.
const POINTS: usize = 40;
/// Share of tests that are flaky at all before anything is known.
const SHARE_OF_FLAKY: f64 = 0.039;
/// Shape of the prior of θ, fitted to rerun rates of public projects.
const ALPHA: f64 = 0.18;
/// See [`ALPHA`].
const BETA: f64 = 3.73;
/// Chance of the outcome a state rules out.
const SURPRISE: f64 = 1e-4;
/// Chance that new code breaks a test.
const BREAKS: f64 = 0.01;
/// Chance that new code repairs a broken test.
const REPAIRS: f64 = 0.3;
/// Share of what is known about θ that new code makes obsolete.
const FORGETS: f64 = 0.002;
/// From this rate on a test counts as flaky.
const FLAKY_RATE: f64 = 0.002;
/// Below this rate a test that was flaky counts as mended.
const MENDED_RATE: f64 = 0.005;
/// Probability at which a test becomes flaky.
const ENTER: f64 = 0.9;
/// Probability below which it stops being flaky.
const LEAVE: f64 = 0.3;
/// Probability at which a test is suspected.
const SUSPECT: f64 = 0.5;
/// Probability at which a test is broken.
const BROKEN: f64 = 0.9;

type Weights = [f64; POINTS];

struct Grid {
    /// Rates, 0 first, then log-spaced from 1e-4 to 0.9.
    rates: Weights,
    /// Likelihood of a failed attempt in the good state.
    fails: Weights,
    prior: Weights,
}

static GRID: LazyLock<Grid> = LazyLock::new(|| {
    let mut rates = [0.0; POINTS];
    let steps = f64::from(38_u8);
    for (at, rate) in rates.iter_mut().skip(1).enumerate() {
        *rate = 1e-4 * 9000_f64.powf(f64::from(u8::try_from(at).unwrap_or(u8::MAX)) / steps);
    }
    let mut prior =
        rates.map(|rate| if rate > 0.0 { rate.powf(ALPHA) * (1.0 - rate).powf(BETA - 1.0) } else { 0.0 });
    let sum: f64 = prior.iter().sum();
    prior = prior.map(|weight| SHARE_OF_FLAKY * weight / sum);
    prior[0] = 1.0 - SHARE_OF_FLAKY;
    Grid { rates, fails: rates.map(|rate| rate.max(SURPRISE)), prior }
});

/// The filter after some runs of one series.
#[derive(Clone, Debug)]
pub struct Filter {
    good: Weights,
    bad: Weights,
    is_flaky: bool,
    has_run: bool,
}

impl Default for Filter {
    fn default() -> Self {
        let prior = &GRID.prior;
        Self {
            good: prior.map(|weight| weight * (1.0 - BREAKS)),
            bad: prior.map(|weight| weight * BREAKS),
            is_flaky: false,
            has_run: false,
        }
    }
}

/// Whether a run tested other code than the run before it in the series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Another commit, or nobody knows.
    New,
    /// The same commit.
    Same,
}

impl Filter {
    /// A run with its attempts in order, `true` for a failed one.
    pub fn run(&mut self, code: Code, attempts: impl IntoIterator<Item = bool>) {
        self.change_code(code);
        for failed in attempts {
            self.attempt(failed);
        }
        let sum: f64 = self.good.iter().sum::<f64>() + self.bad.iter().sum::<f64>();
        let factor = 1.0 / sum;
        self.good = self.good.map(|weight| weight * factor);
        self.bad = self.bad.map(|weight| weight * factor);
        let probability = self.mass(|rate| rate >= FLAKY_RATE);
        self.is_flaky = if self.is_flaky {
            !(probability < LEAVE || self.mass(|rate| rate < MENDED_RATE) >= ENTER)
        } else {
            probability >= ENTER
        };
    }

    /// A run whose outcomes say nothing about the test, such as one in which
    /// nearly everything failed.
    pub fn skip(&mut self, code: Code) {
        self.change_code(code);
    }

    fn change_code(&mut self, code: Code) {
        if code == Code::New && self.has_run {
            for ((good, bad), prior) in self.good.iter_mut().zip(&mut self.bad).zip(&GRID.prior) {
                let all = *good + *bad;
                let broken = if all > 0.0 { *bad / all } else { BREAKS };
                let all = (1.0 - FORGETS) * all + FORGETS * prior;
                let broken = broken * (1.0 - REPAIRS) + (1.0 - broken) * BREAKS;
                *good = all * (1.0 - broken);
                *bad = all * broken;
            }
        }
        self.has_run = true;
    }

    fn attempt(&mut self, failed: bool) {
        if failed {
            self.good.iter_mut().zip(&GRID.fails).for_each(|(good, fails)| *good *= fails);
            self.bad.iter_mut().for_each(|bad| *bad *= 1.0 - SURPRISE);
        } else {
            self.good.iter_mut().zip(&GRID.rates).for_each(|(good, rate)| *good *= 1.0 - rate);
            self.bad.iter_mut().for_each(|bad| *bad *= SURPRISE);
        }
    }

    /// Weight of the rates that fit.
    fn mass(&self, fits: impl Fn(f64) -> bool) -> f64 {
        let all = self.good.iter().zip(&self.bad).zip(&GRID.rates);
        all.filter(|&(_, &rate)| fits(rate)).map(|((good, bad), _)| good + bad).sum()
    }

    fn quantile(&self, wanted: f64) -> f64 {
        let mut seen = 0.0;
        for ((good, bad), &rate) in self.good.iter().zip(&self.bad).zip(&GRID.rates) {
            seen += good + bad;
            if seen >= wanted {
                return rate;
            }
        }
        GRID.rates[POINTS - 1]
    }

    /// What is known after the runs so far.
    #[must_use]
    pub fn posterior(&self) -> Posterior {
        let all = self.good.iter().zip(&self.bad).zip(&GRID.rates);
        let probability = self.mass(|rate| rate >= FLAKY_RATE);
        let broken: f64 = self.bad.iter().sum();
        let class = if broken >= BROKEN {
            FlakyClass::Broken
        } else if self.is_flaky {
            FlakyClass::Flaky
        } else if probability >= SUSPECT {
            FlakyClass::Suspected
        } else {
            FlakyClass::Healthy
        };
        Posterior {
            probability,
            rate: all.map(|((good, bad), rate)| (good + bad) * rate).sum(),
            low: self.quantile(0.05),
            high: self.quantile(0.95),
            broken,
            is_flaky: self.is_flaky,
            class,
        }
    }
}

/// What a series of runs says about a test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Posterior {
    /// Probability that the test fails by chance at least twice in a thousand
    /// attempts.
    pub probability: f64,
    /// Expected share of attempts that fail by chance.
    pub rate: f64,
    /// 5 % quantile of that share.
    pub low: f64,
    /// 95 % quantile of that share.
    pub high: f64,
    /// Probability that the test is broken after the last run; for a failing
    /// run the probability that its failure is a regression.
    pub broken: f64,
    /// Whether it has become flaky and not ceased to be, broken or not.
    pub is_flaky: bool,
    /// What the test is called.
    pub class: FlakyClass,
}

impl Posterior {
    /// `round(100 · probability)`.
    #[must_use]
    pub fn score(&self) -> i64 {
        #[expect(clippy::cast_possible_truncation, reason = "a probability, 0..=100")]
        let score = (100.0 * self.probability.clamp(0.0, 1.0)).round() as i64;
        score
    }

    /// Probability that the test disturbs at least one of the next twenty
    /// runs.
    #[must_use]
    pub fn next_twenty_risk(&self) -> f64 {
        1.0 - (1.0 - self.rate).powi(20)
    }
}
