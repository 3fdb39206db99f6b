//! What authors say about their tests: tags, owner, feature, priority, link,
//! and how a suite runs.

use serde::{Deserialize, Serialize};

use super::lenient;
use crate::evidence::url_text::is_web_url;
use crate::evidence::{Annotation, bounded_annotations};
use crate::text::{cut, cut_str};

const MAX_TAGS: usize = 20;
const MAX_TAG_CHARS: usize = 60;
const MAX_NAME_CHARS: usize = 120;
const MAX_LINK_CHARS: usize = 500;
const ANNOTATION_PREFIX: &str = "callboard:";

/// Owner, feature, priority and link of a test case.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestMeta {
    /// Person or team, ≤ 120 characters.
    pub owner: Option<String>,
    /// Feature, ≤ 120 characters.
    pub feature: Option<String>,
    /// How much its failure matters.
    pub priority: Option<Priority>,
    /// Absolute http or https URL, ≤ 500 characters.
    pub link: Option<String>,
}

/// Priority of a test case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants are the whole vocabulary, most important first")]
pub enum Priority {
    Critical,
    High,
    Medium,
    Low,
}

impl Priority {
    /// All priorities, most important first.
    pub const ALL: [Self; 4] = [Self::Critical, Self::High, Self::Medium, Self::Low];

    /// The spelling used in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Critical => "critical",
            Self::High => "high",
            Self::Medium => "medium",
            Self::Low => "low",
        }
    }

    /// Reads a stored or sent spelling in any case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let word = text.trim();
        Self::ALL.into_iter().find(|priority| word.eq_ignore_ascii_case(priority.as_str()))
    }
}

/// `testMeta` as clients send it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct MetaInput {
    #[serde(deserialize_with = "lenient::optional_text")]
    owner: Option<String>,
    #[serde(deserialize_with = "lenient::optional_text")]
    feature: Option<String>,
    #[serde(deserialize_with = "lenient::optional_text")]
    priority: Option<String>,
    #[serde(deserialize_with = "lenient::optional_text")]
    link: Option<String>,
}

impl TestMeta {
    /// What was sent, completed by annotations `callboard:owner` and the like,
    /// of which the last of a kind counts. Values that cannot be are left out.
    pub(super) fn new(sent: MetaInput, annotations: &[Annotation]) -> Self {
        let annotated = |key: &str| {
            annotations
                .iter()
                .rev()
                .find(|annotation| is_about(&annotation.kind, key))?
                .description
                .as_deref()
        };
        let name = |sent: Option<String>, key| {
            sent.as_deref().and_then(short_name).or_else(|| annotated(key).and_then(short_name))
        };
        Self {
            owner: name(sent.owner, "owner"),
            feature: name(sent.feature, "feature"),
            priority: sent
                .priority
                .as_deref()
                .and_then(Priority::parse)
                .or_else(|| annotated("priority").and_then(Priority::parse)),
            link: sent.link.as_deref().and_then(link).or_else(|| annotated("link").and_then(link)),
        }
    }
}

fn is_about(annotation_type: &str, key: &str) -> bool {
    let annotation_type = annotation_type.trim();
    annotation_type
        .get(..ANNOTATION_PREFIX.len())
        .is_some_and(|prefix| prefix.eq_ignore_ascii_case(ANNOTATION_PREFIX))
        && annotation_type[ANNOTATION_PREFIX.len()..].trim().eq_ignore_ascii_case(key)
}

fn short_name(text: &str) -> Option<String> {
    let name = cut_str(text.trim(), MAX_NAME_CHARS).trim_end();
    (!name.is_empty()).then(|| name.to_owned())
}

fn link(text: &str) -> Option<String> {
    let address = text.trim();
    is_web_url(address, MAX_LINK_CHARS).then(|| address.to_owned())
}

/// Tags without their `@`, each once, the first 20.
pub(super) fn tidy_tags(sent: Vec<String>) -> Vec<String> {
    let mut tags: Vec<String> = Vec::with_capacity(sent.len().min(MAX_TAGS));
    for tag in sent {
        let tag = cut_str(tag.trim().trim_start_matches('@').trim_start(), MAX_TAG_CHARS).trim_end();
        if !tag.is_empty() && tags.len() < MAX_TAGS && !tags.iter().any(|known| known == tag) {
            tags.push(tag.to_owned());
        }
    }
    tags
}

/// How the tests of a suite run, and the notes on the suite.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SuiteConfig {
    /// Order of its tests.
    #[serde(deserialize_with = "lenient::word")]
    pub mode: SuiteMode,
    /// Annotations on the suite.
    #[serde(deserialize_with = "lenient::list_or_empty")]
    pub annotations: Vec<Annotation>,
}

/// Order in which the tests of a suite run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the variants are the words of the test runner")]
pub enum SuiteMode {
    Parallel,
    Serial,
    #[default]
    Default,
}

impl SuiteMode {
    /// The spelling used in SQL and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Parallel => "parallel",
            Self::Serial => "serial",
            Self::Default => "default",
        }
    }
}

impl TryFrom<&str> for SuiteMode {
    type Error = ();

    fn try_from(word: &str) -> Result<Self, ()> {
        Ok(match word {
            "parallel" => Self::Parallel,
            "serial" => Self::Serial,
            "default" => Self::Default,
            _ => return Err(()),
        })
    }
}

impl SuiteConfig {
    pub(super) fn bounded(self) -> Self {
        Self { annotations: bounded_annotations(self.annotations), ..self }
    }
}

/// Text that is trimmed, not empty and cut to its bound.
pub(super) fn tidy(text: String, max_chars: usize) -> Option<String> {
    let trimmed = text.trim();
    if trimmed.is_empty() {
        None
    } else if trimmed.len() == text.len() {
        Some(cut(text, max_chars))
    } else {
        Some(cut_str(trimmed, max_chars).to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn annotation(kind: &str, description: &str) -> Annotation {
        Annotation { kind: kind.into(), description: Some(description.into()) }
    }

    #[test]
    fn tags_are_trimmed_unique_and_bounded() {
        let sent = vec![" @smoke ".into(), "smoke".into(), "@@slow".into(), "@".into(), "x".repeat(61)];
        assert_eq!(tidy_tags(sent), ["smoke".to_owned(), "slow".into(), "x".repeat(60)]);
        assert_eq!(tidy_tags((0..21).map(|n| n.to_string()).collect()).len(), 20);
    }

    #[test]
    fn annotations_complete_what_was_not_sent() {
        let sent =
            MetaInput { owner: Some("web".into()), priority: Some("urgent".into()), ..MetaInput::default() };
        let annotations = [
            annotation("callboard:owner", "other"),
            annotation("Callboard:Priority", "low"),
            annotation("callboard:priority", " High "),
            annotation("callboard:link", "javascript:alert(1)"),
            annotation("callboard:feature", "Cart"),
        ];
        let expected = TestMeta {
            owner: Some("web".into()),
            feature: Some("Cart".into()),
            priority: Some(Priority::High),
            link: None,
        };
        assert_eq!(TestMeta::new(sent, &annotations), expected);
    }

    #[test]
    fn values_that_cannot_be_are_left_out() {
        let sent = MetaInput {
            owner: Some("  ".into()),
            feature: Some("ä".repeat(121)),
            priority: Some("CRITICAL".into()),
            link: Some("https://tracker.test/7".into()),
        };
        let meta = TestMeta::new(sent, &[]);
        assert_eq!(meta.owner, None);
        assert_eq!(meta.feature.map(|feature| feature.chars().count()), Some(120));
        assert_eq!(meta.priority, Some(Priority::Critical));
        assert_eq!(meta.link.as_deref(), Some("https://tracker.test/7"));
    }
}
