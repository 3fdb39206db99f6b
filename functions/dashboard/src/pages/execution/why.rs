//! Why it failed: the verdict, what changed since the test passed, and the
//! locator that would work.

use callboard_query::failures::{ChangeSince, Explanation, LocatorHealing, LostLocator, RankedLocator};

use crate::components::{PatchLine, patch_lines};
use crate::text::duration;

/// A verdict as people read it, with the class of its tag.
pub(crate) fn verdict_words(verdict: &str) -> (&'static str, &'static str) {
    match verdict {
        "outage" => ("Outage", "flaky-tag"),
        "locator-drift" => ("The page changed under its locator", "failed-tag"),
        "environment" => ("Environment", "flaky-tag"),
        "known-cluster" => ("Known failure", ""),
        "app-error" => ("Error of the application", "failed-tag"),
        "likely-flake" => ("Probably flaky", "flaky-tag"),
        "likely-regression" => ("Probably a regression", "failed-tag"),
        "test-bug" => ("Error of the test", ""),
        _ => ("Not clear yet", ""),
    }
}

/// What the page says about the reasons of a failure.
pub(crate) struct Why {
    /// What is known.
    pub explanation: Explanation,
    /// The verdict as people read it.
    pub verdict: &'static str,
    /// The class of its tag.
    pub class: &'static str,
    /// The next best verdict.
    pub also: Option<&'static str>,
    /// A locator that would work; with its change of the test.
    pub healing: Option<Healing>,
}

/// Locators that would work, or might.
pub(crate) struct Healing {
    /// The locator as the test wrote it.
    pub lost: Option<String>,
    /// What to write instead, when that is certain enough.
    pub advice: Option<RankedLocator>,
    /// What will hold longest, when that is another one.
    pub durable: Option<RankedLocator>,
    /// Others that find the element.
    pub others: Vec<RankedLocator>,
    /// The change, line by line.
    pub patch: Vec<PatchLine>,
    /// A later run in which it passed.
    pub healed_in: Option<i64>,
}

/// Other locators the page names.
const OTHERS: usize = 4;

impl Why {
    /// Everything that is known of a failure; nothing of what did not fail.
    pub(crate) fn of(mut explanation: Explanation, healing: LocatorHealing) -> Option<Self> {
        explanation.headline.as_ref()?;
        for change in explanation.changed.iter_mut().filter(|change| change.evidence == "duration") {
            change.before = change.before.take().map(as_duration);
            change.after = change.after.take().map(as_duration);
        }
        let (verdict, class) = verdict_words(explanation.verdict);
        let also = explanation.also.map(|also| verdict_words(also).0);
        Some(Self { verdict, class, also, healing: Healing::of(healing), explanation })
    }

    /// Changes since the last pass.
    pub(crate) fn changed(&self) -> &[ChangeSince] {
        &self.explanation.changed
    }
}

impl Healing {
    fn of(healing: LocatorHealing) -> Option<Self> {
        let advice = healing.recommended().cloned();
        let is_advice = |locator: &str| advice.as_ref().is_some_and(|advice| advice.locator == locator);
        let recommendation = healing.recommendation.as_ref();
        let durable = recommendation
            .and_then(|found| found.durable.clone())
            .filter(|durable| !is_advice(&durable.locator));
        let all = [&healing.from_prior_success, &healing.from_element_match, &healing.from_aria_snapshot];
        let mut others: Vec<RankedLocator> = Vec::new();
        for ranked in all.into_iter().flatten() {
            let is_known = is_advice(&ranked.locator)
                || others.iter().any(|other| other.locator == ranked.locator)
                || durable.as_ref().is_some_and(|durable| durable.locator == ranked.locator);
            if !is_known && others.len() < OTHERS {
                others.push(ranked.clone());
            }
        }
        if advice.is_none() && others.is_empty() {
            return None;
        }
        Some(Self {
            lost: healing.failing_locator.as_ref().map(written),
            patch: healing.edit.as_ref().map(|edit| patch_lines(&edit.unified_diff)).unwrap_or_default(),
            healed_in: healing.healed_in_run_id,
            advice,
            durable,
            others,
        })
    }
}

/// A duration that programs are told in milliseconds.
fn as_duration(told: String) -> String {
    told.strip_suffix(" ms").and_then(|ms| ms.parse().ok()).map_or(told.clone(), duration)
}

/// A locator as a call.
fn written(locator: &LostLocator) -> String {
    let arguments: Vec<String> = locator.args.iter().map(ToString::to_string).collect();
    format!("{}({})", locator.method, arguments.join(", "))
}
