//! The vocabularies of answers, for the API document. Answers hold the types of
//! the domain, which know nothing of documents; a field says with
//! `value_type` which of these words it may be. The words are taken from the
//! domain, so the document cannot say anything else.

use callboard_domain::comparison::Change;
use callboard_domain::durations::{TimeoutKind, Trend};
use callboard_domain::failure::ErrorType;
use callboard_domain::flakiness::{FlakyClass, RootCause};
use callboard_domain::ingest::Priority;
use callboard_domain::status::{RunStatus, TestStatus};
use callboard_domain::test_state::TestCategory;
use callboard_store::clusters::ClusterStatus;
use callboard_store::files::FileKind;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

fn of(words: &[&'static str], meaning: &str) -> RefOr<Schema> {
    let words = words.iter().copied();
    let schema = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words));
    schema.description(Some(meaning.trim())).into()
}

macro_rules! vocabularies {
    ($(#[doc = $meaning:literal] $name:ident => $words:expr;)+) => {$(
        #[doc = $meaning]
        #[derive(Debug, Clone, Copy)]
        pub enum $name {}

        impl PartialSchema for $name {
            fn schema() -> RefOr<Schema> {
                of(&$words, $meaning)
            }
        }

        impl ToSchema for $name {}
    )+};
}

vocabularies! {
    /// How a test ended.
    TestStatusWord => TestStatus::ALL.map(TestStatus::as_str);
    /// How far a run is, or how it ended.
    RunStatusWord => RunStatus::ALL.map(RunStatus::as_str);
    /// Why a test is flaky.
    RootCauseWord => RootCause::ALL.map(RootCause::as_str);
    /// Whether a test is flaky for certain.
    FlakyClassWord => [FlakyClass::Flaky, FlakyClass::Suspected].map(FlakyClass::as_str);
    /// The newer half of some durations against the older one.
    TrendWord => [Trend::Faster, Trend::Slower, Trend::Stable].map(Trend::as_str);
    /// What is wrong with a timeout.
    TimeoutKindWord => [TimeoutKind::Oversized, TimeoutKind::StaleSlow].map(TimeoutKind::as_str);
    /// What became of a test between two runs.
    ChangeWord => Change::ALL.map(Change::as_str);
    /// What is done about a failure cluster.
    ClusterStatusWord => ClusterStatus::ALL.map(ClusterStatus::as_str);
    /// What kind of error failures have in common.
    ErrorTypeWord => ErrorType::ALL.map(ErrorType::as_str);
    /// How much a test matters.
    PriorityWord => Priority::ALL.map(Priority::as_str);
    /// How a test stands.
    TestCategoryWord => TestCategory::ALL.map(TestCategory::as_str);
    /// What a file is to its execution.
    FileKindWord => FileKind::ALL.map(FileKind::as_str);
}
