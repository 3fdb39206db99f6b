//! What is said about a lost locator.

use callboard_domain::explain::OtherPage;
use callboard_domain::time::Timestamp;
use callboard_playwright::healing::Locator;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// A locator as a call.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LostLocator {
    /// Method.
    #[schema(example = "getByRole")]
    pub method: String,
    /// Arguments.
    #[schema(value_type = Vec<Value>)]
    pub args: Vec<Value>,
}

/// A locator that may be used instead.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RankedLocator {
    /// As it is written.
    #[schema(example = "getByRole('button', { name: 'Sign in' })")]
    pub locator: String,
    /// Method that finds the element.
    #[schema(example = "getByRole")]
    pub method: String,
    /// Its arguments.
    #[schema(value_type = Vec<Value>)]
    pub args: Vec<Value>,
    /// How likely it is the right one, 0 to 100.
    pub score: u8,
    /// Whether a person chose it.
    pub picked_by_user: bool,
}

impl RankedLocator {
    pub(super) fn from_locator(locator: &Locator, score: u8) -> Self {
        Self {
            locator: locator.written('\''),
            method: locator.method().to_owned(),
            args: locator.args().to_vec(),
            score,
            picked_by_user: false,
        }
    }
}

/// What to use.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealingAdvice {
    /// What to write; null when nothing is certain enough.
    pub recommended: Option<RankedLocator>,
    /// What will hold longest.
    pub durable: Option<RankedLocator>,
    /// Whether the recommended one is of the kind the test uses.
    pub preserves_convention: bool,
    /// Whether the most durable one is another one.
    pub has_durable_alternative: bool,
    /// Whether the element should get a test id: nothing good finds it.
    pub suggest_add_test_id: bool,
}

/// A line of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HealedLine {
    /// Number.
    pub line: u32,
    /// Text.
    pub text: String,
}

/// The change of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealingEdit {
    /// File.
    pub file_path: String,
    /// Line.
    pub line: u32,
    /// The line as it was when the test failed.
    pub old_line: String,
    /// The line with the recommended locator.
    pub new_line: String,
    /// Both as a unified diff with the lines around them.
    pub unified_diff: String,
}

/// Where a healed locator comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealingSource {
    /// The same call in an earlier run, or what a person chose for it.
    PriorRun,
    /// The element it found, looked for on the failing page.
    ElementMatch,
    /// The same locator elsewhere in the test.
    Fingerprint,
    /// The same locator in another test.
    CrossTest,
    /// Roles and names of the failing page.
    AriaSnapshot,
    /// Nothing is known.
    None,
}

/// A lost locator and what may replace it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocatorHealing {
    /// The locator that failed.
    pub failing_locator: Option<LostLocator>,
    /// Where the answer comes from.
    pub source: HealingSource,
    /// What to use.
    pub recommendation: Option<HealingAdvice>,
    /// What found the element before and finds one now.
    pub from_prior_success: Vec<RankedLocator>,
    /// Of the element the locator found before.
    pub from_element_match: Vec<RankedLocator>,
    /// Of the element that role and name fit.
    pub from_aria_snapshot: Vec<RankedLocator>,
    /// When the element was last found.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub captured_at: Option<Timestamp>,
    /// Whether the name the test looks for may be an old one.
    pub prior_name_may_be_stale: bool,
    /// Where the locator is used: `file:line:column`.
    pub location: Option<String>,
    /// That line.
    pub source_line: Option<HealedLine>,
    /// A later run in which the recommended locator passed there.
    pub healed_in_run_id: Option<i64>,
    /// The change of the test.
    pub edit: Option<HealingEdit>,
    /// The failing locator as it is written.
    #[serde(skip)]
    pub(in crate::failures) failing_text: Option<String>,
    /// The page the test failed on, when that is why nothing is answered.
    #[serde(skip)]
    pub(in crate::failures) other_page: Option<OtherPage>,
    /// Margin of the matcher's answer, when it gave one.
    #[serde(skip)]
    pub(in crate::failures) margin: Option<f64>,
}

impl LocatorHealing {
    pub(super) const fn nothing() -> Self {
        Self {
            failing_locator: None,
            source: HealingSource::None,
            recommendation: None,
            from_prior_success: Vec::new(),
            from_element_match: Vec::new(),
            from_aria_snapshot: Vec::new(),
            captured_at: None,
            prior_name_may_be_stale: false,
            location: None,
            source_line: None,
            healed_in_run_id: None,
            edit: None,
            failing_text: None,
            other_page: None,
            margin: None,
        }
    }

    /// The failing locator as it is written.
    #[must_use]
    pub fn failing_text(&self) -> Option<&str> {
        self.failing_text.as_deref()
    }

    /// The page the test failed on, when nothing is recommended because that is
    /// not the one it was to be on.
    #[must_use]
    pub const fn other_page(&self) -> Option<&OtherPage> {
        self.other_page.as_ref()
    }

    /// The recommended locator.
    #[must_use]
    pub fn recommended(&self) -> Option<&RankedLocator> {
        self.recommendation.as_ref()?.recommended.as_ref()
    }
    /// Other locators that may find the element, the most probable source
    /// first: neither the recommended one nor the one that will hold longest.
    #[must_use]
    pub fn alternatives(&self, most: usize) -> Vec<RankedLocator> {
        let advice = self.recommendation.as_ref();
        let told = [advice.and_then(|it| it.recommended.as_ref()), advice.and_then(|it| it.durable.as_ref())];
        let is_told = |locator: &str| told.iter().flatten().any(|told| told.locator == locator);
        let all = [&self.from_prior_success, &self.from_element_match, &self.from_aria_snapshot];
        let mut others: Vec<RankedLocator> = Vec::new();
        for ranked in all.into_iter().flatten() {
            let is_known = others.iter().any(|other| other.locator == ranked.locator);
            if others.len() < most && !is_known && !is_told(&ranked.locator) {
                others.push(ranked.clone());
            }
        }
        others
    }
}
