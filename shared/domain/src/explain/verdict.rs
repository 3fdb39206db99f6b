//! Which kind of failure it most probably is: hard rules first, then
//! log-odds of the remaining kinds, which start equal.

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Most tests of the run failed: something all of them need was gone.
    Outage,
    /// The element is still there; its locator does not fit any more.
    LocatorDrift,
    /// The tests ran in another environment.
    Environment,
    /// The failure was known before this run.
    KnownCluster,
    /// The application answered with an error.
    AppError,
    /// The test fails now and then.
    LikelyFlake,
    /// Something that worked does not work any more.
    LikelyRegression,
    /// The test itself was changed.
    TestBug,
    /// Nothing speaks for one of them more than for the others.
    Unknown,
}

impl Verdict {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outage => "outage",
            Self::LocatorDrift => "locator-drift",
            Self::Environment => "environment",
            Self::KnownCluster => "known-cluster",
            Self::AppError => "app-error",
            Self::LikelyFlake => "likely-flake",
            Self::LikelyRegression => "likely-regression",
            Self::TestBug => "test-bug",
            Self::Unknown => "unknown",
        }
    }
}

/// What speaks for the kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Facts {
    /// Whether the run counts as a mass failure.
    pub is_mass_failure: bool,
    /// Whether a later attempt of the same run passed.
    pub passed_on_retry: bool,
    /// How sure the healing of the locator is, 0 to 1, when it gave an answer. Of
    /// a test that passed on a retry it says nothing: the locator fitted then.
    pub healed: Option<f64>,
    /// Whether the cause was known, and open, before this run.
    pub is_known: bool,
    /// Probability that the test is broken since, and did not fail by chance.
    pub regression: Option<f64>,
    /// Whether the test is known to have passed before: what never passed did
    /// not stop working.
    pub passed_before: bool,
    /// Probability that the test is flaky.
    pub flaky: Option<f64>,
    /// A server error or an uncaught error that the last pass did not have.
    pub has_new_error: bool,
    /// Whether the failures of the run gather where this one happened: in its
    /// browser project or its shard.
    pub concentrates: bool,
    /// Properties of the environment that differ from the last pass.
    pub environment_changes: usize,
    /// Whether the failing line of the test is not what it was at the last pass.
    pub test_changed: bool,
}

/// A verdict and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// The kind.
    pub verdict: Verdict,
    /// 0 to 1.
    pub confidence: f64,
    /// The best of the others, when the verdict follows from a hard rule.
    pub second: Option<Verdict>,
}

/// Below this confidence nothing is said.
const MIN_CONFIDENCE: f64 = 0.4;
/// No probability is certain; its log-odds must stay a number.
const ALMOST_NEVER: f64 = 1e-9;

/// Weighs the facts.
#[must_use]
pub fn judge(facts: &Facts) -> Judgement {
    let best = weigh(facts);
    let second = (best.verdict != Verdict::Unknown).then_some(best.verdict);
    // What a test failed with before and overcame again was not the outage.
    if facts.is_mass_failure && !(facts.is_known && facts.passed_on_retry) {
        return Judgement { verdict: Verdict::Outage, confidence: 0.95, second };
    }
    if let Some(healed) = facts.healed.filter(|_| !facts.passed_on_retry) {
        return Judgement { verdict: Verdict::LocatorDrift, confidence: healed.clamp(0.0, 1.0), second };
    }
    // What works at the second attempt is a flake, whatever little its history says.
    let flake = facts.passed_on_retry.then_some(Verdict::LikelyFlake);
    if facts.is_known {
        return Judgement { verdict: Verdict::KnownCluster, confidence: 0.9, second: flake.or(second) };
    }
    if let Some(verdict) = flake {
        let second = second.filter(|second| *second != verdict);
        return Judgement { verdict, confidence: 0.9, second };
    }
    best
}

fn weigh(facts: &Facts) -> Judgement {
    let logit = |p: f64| {
        let p = p.clamp(ALMOST_NEVER, 1.0 - ALMOST_NEVER);
        (p / (1.0 - p)).ln()
    };
    let broken = facts.regression.map_or(0.0, logit);
    let regression = if facts.passed_before { broken } else { 0.0 };
    // An error of the application, another environment and a changed test all say why a test is broken, so what says
    // that it is broken speaks for each of them as well: they compete with each other, not with that.
    let because = |weight: f64| if weight > 0.0 { regression.max(0.0) + weight } else { 0.0 };
    let is_flaky = facts.flaky.is_some_and(|p| p >= 0.5);
    let changes = u32::try_from(facts.environment_changes).unwrap_or(u32::MAX);
    let scores = [
        (Verdict::LikelyRegression, regression),
        (Verdict::LikelyFlake, if is_flaky { -broken } else { f64::NEG_INFINITY }),
        (Verdict::AppError, because(if facts.has_new_error { 1.5 } else { 0.0 })),
        (
            Verdict::Environment,
            because(if facts.concentrates { 2.0 } else { 0.0 } + (0.5 * f64::from(changes)).min(1.0)),
        ),
        (Verdict::TestBug, because(f64::from(u8::from(facts.test_changed)))),
    ];
    let sum: f64 = scores.iter().map(|(_, score)| score.exp()).sum();
    let mut best = scores[0];
    for score in scores {
        if score.1 > best.1 {
            best = score;
        }
    }
    let confidence = best.1.exp() / sum;
    let verdict = if confidence < MIN_CONFIDENCE { Verdict::Unknown } else { best.0 };
    Judgement { verdict, confidence, second: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(facts: Facts) -> (Verdict, Option<Verdict>) {
        let found = judge(&facts);
        assert!((0.0..=1.0).contains(&found.confidence));
        (found.verdict, found.second)
    }

    #[test]
    fn hard_rules_win_in_their_order_and_keep_the_second_best() {
        let all = Facts {
            is_mass_failure: true,
            healed: Some(0.95),
            is_known: true,
            regression: Some(0.99),
            passed_before: true,
            ..Facts::default()
        };
        let regression = Some(Verdict::LikelyRegression);
        assert_eq!(verdict(all), (Verdict::Outage, regression));
        assert_eq!(verdict(Facts { is_mass_failure: false, ..all }), (Verdict::LocatorDrift, regression));
        assert_eq!(
            verdict(Facts { is_mass_failure: false, healed: None, ..all }),
            (Verdict::KnownCluster, regression)
        );
        // Its locator worked at the second attempt, so it did not drift.
        let retried = Facts { passed_on_retry: true, ..all };
        assert_eq!(verdict(retried), (Verdict::KnownCluster, Some(Verdict::LikelyFlake)));
        assert_eq!(verdict(Facts { is_known: false, ..retried }).0, Verdict::Outage);
        let retried = Facts { is_mass_failure: false, ..retried };
        assert_eq!(verdict(retried), (Verdict::KnownCluster, Some(Verdict::LikelyFlake)));
        assert_eq!(verdict(Facts { is_known: false, ..retried }), (Verdict::LikelyFlake, regression));
    }

    #[test]
    fn evidence_decides_between_the_rest_and_without_any_nothing_is_said() {
        assert_eq!(verdict(Facts::default()), (Verdict::Unknown, None));
        let broken = Facts { regression: Some(0.95), passed_before: true, ..Facts::default() };
        assert_eq!(verdict(broken).0, Verdict::LikelyRegression);
        assert_eq!(verdict(Facts { passed_before: false, ..broken }).0, Verdict::Unknown);
        // However certain it is that a test is broken, what tells why names the verdict.
        let certain = Facts { regression: Some(1.0), ..broken };
        assert_eq!(verdict(certain).0, Verdict::LikelyRegression);
        assert_eq!(verdict(Facts { has_new_error: true, ..certain }).0, Verdict::AppError);
        assert_eq!(verdict(Facts { test_changed: true, ..certain }).0, Verdict::TestBug);
        assert_eq!(verdict(Facts { environment_changes: 1, ..certain }).0, Verdict::Environment);
        let gathered = Facts { concentrates: true, has_new_error: true, environment_changes: 2, ..certain };
        assert_eq!(verdict(gathered).0, Verdict::Environment);
        let flaky = Facts { regression: Some(0.1), flaky: Some(0.9), ..Facts::default() };
        assert_eq!(verdict(flaky).0, Verdict::LikelyFlake);
        // Without a flaky history a failure is no flake, however little speaks for a regression.
        assert_ne!(verdict(Facts { flaky: Some(0.4), ..flaky }).0, Verdict::LikelyFlake);
        assert_eq!(verdict(Facts { has_new_error: true, ..Facts::default() }).0, Verdict::AppError);
        let elsewhere = Facts { concentrates: true, environment_changes: 9, ..Facts::default() };
        assert_eq!(verdict(elsewhere).0, Verdict::Environment);
        let several = Facts { environment_changes: 2, test_changed: true, ..Facts::default() };
        assert_eq!(verdict(several).0, Verdict::Unknown);
    }
}
