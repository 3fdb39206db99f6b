//! The vocabularies of answers, for the API document. Answers hold the types of
//! the domain, which know nothing of documents; a field says with
//! `value_type` which of these words it may be. The words are taken from the
//! domain, so the document cannot say anything else.

use callboard_domain::comparison::Change;
use callboard_domain::durations::Trend;
use callboard_domain::failure::ErrorType;
use callboard_domain::flakiness::{FlakyClass, RootCause};
use callboard_domain::ingest::Priority;
use callboard_domain::run_life::Reruns;
use callboard_domain::status::{RunStatus, TestStatus};
use callboard_domain::test_state::TestCategory;
use callboard_domain::timeouts::TimeoutKind;
use callboard_store::clusters::ClusterStatus;
use callboard_store::files::FileKind;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};

/// The schema of one of some words, for [`crate::vocabularies`].
#[must_use]
pub fn one_of(words: &[&'static str], meaning: &str) -> RefOr<Schema> {
    let words = words.iter().copied();
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
    schema.description(Some(meaning.trim())).into()
}

/// Types that stand in the API document for one of some words, such as the
/// orders of a list: a parameter says with `value_type` which they are. The
/// words are those that are read.
#[macro_export]
macro_rules! vocabularies {
    ($(#[doc = $meaning:literal] $visibility:vis $name:ident => $words:expr;)+) => {$(
        #[doc = $meaning]
        #[derive(Debug, Clone, Copy)]
        $visibility enum $name {}

        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::Schema> {
                $crate::shapes::words::one_of(&$words, $meaning)
            }
        }

        impl utoipa::ToSchema for $name {}
    )+};
}

vocabularies! {
    /// How a test ended.
    pub TestStatusWord => TestStatus::ALL.map(TestStatus::as_str);
    /// How far a run is, or how it ended.
    pub RunStatusWord => RunStatus::ALL.map(RunStatus::as_str);
    /// Whether a re-run joins the run that it repeats or is kept apart.
    pub RerunsWord => Reruns::ALL.map(Reruns::as_str);
    /// Why a test is flaky.
    pub RootCauseWord => RootCause::ALL.map(RootCause::as_str);
    /// Whether a test is flaky for certain.
    pub FlakyClassWord => [FlakyClass::Flaky, FlakyClass::Suspected].map(FlakyClass::as_str);
    /// The newer half of some durations against the older one.
    pub TrendWord => [Trend::Faster, Trend::Slower, Trend::Stable].map(Trend::as_str);
    /// What is wrong with a timeout.
    pub TimeoutKindWord => [TimeoutKind::Oversized, TimeoutKind::StaleSlow].map(TimeoutKind::as_str);
    /// What became of a test between two runs.
    pub ChangeWord => Change::ALL.map(Change::as_str);
    /// What is done about a failure cluster.
    pub ClusterStatusWord => ClusterStatus::ALL.map(ClusterStatus::as_str);
    /// What kind of error failures have in common.
    pub ErrorTypeWord => ErrorType::ALL.map(ErrorType::as_str);
    /// How much a test matters.
    pub PriorityWord => Priority::ALL.map(Priority::as_str);
    /// How a test stands.
    pub TestCategoryWord => TestCategory::ALL.map(TestCategory::as_str);
    /// What a file is to its execution.
    pub FileKindWord => FileKind::ALL.map(FileKind::as_str);
}
