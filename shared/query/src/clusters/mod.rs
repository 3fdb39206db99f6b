//! Failure clusters: what is asked about them, what people do with them, and
//! what a run shows of them.

mod editing;
mod evidence;
mod groups;
mod history;
mod reading;
mod suggestions;
mod versions;

pub use editing::{
    ClusterEdit, Extracted, StatusChange, bulk, edit, extract, merge, set_base_commit, set_status,
};
pub use evidence::{LastFailure, last_failures};
pub use groups::{
    FailureGroup, FailureGroups, GroupCase, GroupHealing, GroupKey, GroupSums, failure_groups, group_sums,
    heal_groups,
};
pub use history::{ClusterEvent, FieldChange, Happening, history};
pub use reading::{
    Assignee, ClusterCounts, ClusterKey, ClusterQuery, ClusterSort, OccurrenceKey, OccurrenceQuery, count,
    counts, detail, list, named, occurrences, of_project, signatures, test_cases,
};
pub(crate) use reading::{of_execution, of_test, survivor};
pub use suggestions::{MergeSuggestion, SuggestionStatus, approve, reject, suggestions};
pub use versions::follow_rules;

pub use callboard_store::clusters::ClusterStatus;
