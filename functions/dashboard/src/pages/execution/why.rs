//! Why it failed: the verdict, what changed since the test passed, and the
//! locator that would work.

use callboard_domain::explain::OtherPage;
use callboard_domain::time::Timestamp;
use callboard_query::diagnoses::Diagnosis;
use callboard_query::failures::{ChangeSince, Explanation, HealingSource, LocatorHealing, RankedLocator};

use crate::components::{PatchLine, patch_lines};
use crate::text::duration;

/// What is read where nothing speaks for any verdict.
const UNCLEAR: &str = "Unclear";

/// A verdict as people read it, with the class of its tag.
pub(crate) fn verdict_words(verdict: &str) -> (&'static str, &'static str) {
    match verdict {
        "outage" => ("Outage", "flaky-tag"),
        "locator-drift" => ("Locator no longer matches the page", "failed-tag"),
        "environment" => ("Environment", "flaky-tag"),
        "known-cluster" => ("Known failure", ""),
        "app-error" => ("Application error", "failed-tag"),
        "likely-flake" => ("Probably flaky", "flaky-tag"),
        "likely-regression" => ("Probably a regression", "failed-tag"),
        "test-bug" => ("Test error", ""),
        _ => (UNCLEAR, ""),
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
    /// Whether anything speaks for it: how sure one is that nothing does, nobody wants to know.
    pub is_clear: bool,
    /// The next best verdict.
    pub also: Option<&'static str>,
    /// What is said about a locator that finds nothing any more.
    pub healing: Option<Healing>,
    /// What a model said about its failure cluster.
    pub diagnosis: Option<Diagnosis>,
}

/// What is said about a locator that finds nothing any more.
pub(crate) struct Healing {
    /// The locator as the test wrote it.
    pub lost: Option<String>,
    /// Why another locator would not help.
    pub refusal: Option<String>,
    /// What to write instead, when that is certain enough.
    pub advice: Option<RankedLocator>,
    /// How that is known.
    pub known_from: Option<&'static str>,
    /// When the test last found the element.
    pub last_found: Option<Timestamp>,
    /// What will hold longest, when that is another one.
    pub durable: Option<RankedLocator>,
    /// Whether nothing that finds the element is likely to hold.
    pub needs_test_id: bool,
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
    pub(crate) fn new(
        mut explanation: Explanation,
        healing: LocatorHealing,
        diagnosis: Option<Diagnosis>,
    ) -> Option<Self> {
        explanation.headline.as_ref()?;
        for change in explanation.changed.iter_mut().filter(|change| change.evidence == "duration") {
            change.before = change.before.take().map(as_duration);
            change.after = change.after.take().map(as_duration);
        }
        let (verdict, class) = verdict_words(explanation.verdict);
        let also = explanation.also.map(|also| verdict_words(also).0);
        Some(Self {
            verdict,
            class,
            is_clear: verdict != UNCLEAR,
            also,
            healing: Healing::from_healing(healing),
            diagnosis: diagnosis.filter(|diagnosis| diagnosis.status != "failed"),
            explanation,
        })
    }

    /// Changes since the last pass.
    pub(crate) fn changed(&self) -> &[ChangeSince] {
        &self.explanation.changed
    }
}

impl Healing {
    fn from_healing(healing: LocatorHealing) -> Option<Self> {
        let refusal = healing.other_page().map(refusal);
        let advice = healing.recommended().cloned();
        let is_advice = |locator: &str| advice.as_ref().is_some_and(|advice| advice.locator == locator);
        let recommendation = healing.recommendation.as_ref();
        let durable = recommendation
            .and_then(|found| found.durable.clone())
            .filter(|durable| !is_advice(&durable.locator));
        let others = healing.alternatives(OTHERS);
        if advice.is_none() && others.is_empty() && refusal.is_none() {
            return None;
        }
        Some(Self {
            lost: healing.failing_text().map(str::to_owned),
            patch: healing.edit.as_ref().map(|edit| patch_lines(&edit.unified_diff)).unwrap_or_default(),
            known_from: advice
                .as_ref()
                .and_then(|advice| if advice.picked_by_user { None } else { known_from(healing.source) }),
            last_found: healing.captured_at.filter(|_| advice.is_some()),
            needs_test_id: recommendation.is_some_and(|found| found.suggest_add_test_id),
            healed_in: healing.healed_in_run_id,
            refusal,
            advice,
            durable,
            others,
        })
    }

    /// What the panel is about.
    pub(crate) const fn heading(&self) -> &'static str {
        match (&self.refusal, &self.advice) {
            (Some(_), _) => "Changing the locator will not help",
            (None, Some(_)) => "Suggested locator",
            (None, None) => "Possible locators",
        }
    }
}

/// How a locator is known, in words.
const fn known_from(source: HealingSource) -> Option<&'static str> {
    match source {
        HealingSource::PriorRun => Some("Matched this element in an earlier run."),
        HealingSource::ElementMatch => Some("Matches the element found in earlier runs."),
        HealingSource::Fingerprint => Some("Works elsewhere in this test."),
        HealingSource::CrossTest => Some("Used by another test with the same locator."),
        HealingSource::AriaSnapshot => Some("Role and name match what the test looks for."),
        HealingSource::None => None,
    }
}

/// Why nothing is recommended on a page the test did not mean to be on.
fn refusal(page: &OtherPage) -> String {
    match page {
        OtherPage::Error(path, status) => {
            format!(
                "The server answered `{path}` with {status}; the test saw an error page. Check the request, not the locator."
            )
        }
        OtherPage::Login(path) => {
            format!(
                "The test was on the login page `{path}`. Check why it was not signed in, not the locator."
            )
        }
        OtherPage::BrokenRequest(request, outcome) => {
            format!(
                "`{request}` failed ({outcome}), as it did not when the test last passed. Check the request, not the locator."
            )
        }
        OtherPage::Elsewhere(path) => {
            format!(
                "The test was on `{path}`, a page it did not open when it last passed. Check the navigation, not the locator."
            )
        }
    }
}

/// A duration that programs are told in milliseconds.
fn as_duration(told: String) -> String {
    told.strip_suffix(" ms").and_then(|ms| ms.parse().ok()).map_or(told.clone(), duration)
}
