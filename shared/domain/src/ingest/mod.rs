//! From a client's JSON to normalised values: lenient in what it reads, exact
//! in what it hands on. Nothing here fails a request for a field that could
//! be left out; what was left out is told as a [`Warning`].
//!
//! Bytes enter by [`SubmitBody`], [`parse_test_cases`] or [`parse_object`];
//! run fields come out as [`RunFields`], test cases as [`TestCaseEntry`] with
//! their evidence already within the [`Caps`] and free of secrets.

mod allowance;
mod attachment_meta;
mod attempt_limit;
mod body;
mod bounded;
mod caps;
mod case_ref;
mod events;
mod field_error;
mod identity;
pub(crate) mod lenient;
pub(crate) mod location;
mod locators;
mod meta;
mod metadata;
mod run_fields;
mod run_parts;
mod source_paths;
mod status_words;
mod stored;
mod test_case;
mod test_case_input;
#[cfg(test)]
mod test_values;
mod warnings;

pub use attachment_meta::{AttachmentMeta, MAX_ATTACHMENTS, attachment_metas};
pub use body::{BodyError, MAX_TEST_CASES, SubmitBody, TestCases, parse_object, parse_test_cases};
pub use caps::{CapSetting, Caps};
pub use case_ref::CaseRef;
pub use events::{BegunTest, EventsBody, StepNote};
pub use field_error::FieldError;
pub use identity::is_numbered;
pub use identity::{IdentityHash, SUITE_SEPARATOR, identity_hash, join_suite_path, tell_apart_by_line};
pub use location::{Location, UNKNOWN_PATH, normalise_path};
pub use locators::{AlternativeLocator, LocatorSnapshot, UsedLocator};
pub use meta::{Priority, SuiteConfig, SuiteMode, TestMeta};
pub use metadata::{MAX_METADATA_BYTES, Origin, bounded_metadata};
pub use run_fields::{Need, RunFields, project_name};
pub use run_parts::{ClaimedTotals, FilterDetails, Shard};
pub use source_paths::{PathPrefix, SourcePaths};
pub use status_words::{ClaimedResult, run_result, test_result};
pub use stored::{
    StoredCases, StoredEvents, StoredSubmit, read_stored_cases, read_stored_events, read_stored_submit,
};
pub use test_case::{AttemptSummary, EvidenceCounts, TestCaseEntry, VitalsSummary};
pub use test_case::{MAX_PATH_BYTES, MAX_PATH_CHARS, MAX_SUITE_CHARS, MAX_SUITES, MAX_TITLE_CHARS};
pub use test_case_input::TestCaseInput;
pub use warnings::{MAX_WARNINGS, Warning, Warnings};
