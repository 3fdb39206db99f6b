//! The bodies of this function, read field by field.

use std::collections::BTreeSet;

use callboard_domain::ids::{ClusterId, TestCaseId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::extract::Fields;
use callboard_query::Change;
use callboard_query::clusters::{ClusterEdit, ClusterStatus};
use callboard_query::shapes::words::ClusterStatusWord;
use utoipa::ToSchema;

const MAX_NOTE_CHARS: usize = 2_000;
const MAX_TITLE_CHARS: usize = 200;
const MAX_AT_ONCE: usize = 200;
const COMMIT_CHARS: std::ops::RangeInclusive<usize> = 7..=64;

fn given<T>(name: &str, change: Change<T>) -> Result<T, ApiError> {
    change.into_value().ok_or_else(|| ApiError::missing_fields(&[name]))
}

fn status(fields: &Fields) -> Result<Option<ClusterStatus>, ApiError> {
    fields.word("status", &ClusterStatus::ALL.map(ClusterStatus::as_str), ClusterStatus::parse)
}

/// The note, also under its older name. An empty one is none.
fn note(fields: &Fields) -> Result<Change<String>, ApiError> {
    let read = |name| -> Result<Change<String>, ApiError> {
        Ok(match fields.text(name)? {
            Change::Set(text) if text.trim().is_empty() => Change::Clear,
            Change::Set(_) => fields.prose(name, MAX_NOTE_CHARS)?,
            other => other,
        })
    };
    Ok(match read("note")? {
        Change::Keep => read("triageNote")?,
        told => told,
    })
}

/// What people say of a cluster.
#[derive(Debug, ToSchema)]
pub(crate) struct StatusBody {
    /// `open`, `resolved` or `ignored`; from any status.
    #[schema(value_type = ClusterStatusWord)]
    pub(crate) status: ClusterStatus,
    /// A note of at most 2,000 characters: absent keeps it, null clears it.
    #[schema(value_type = Option<String>, required = false)]
    pub(crate) note: Change<String>,
}

impl StatusBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["status"])?;
        let status = status(fields)?.ok_or_else(|| ApiError::missing_fields(&["status"]))?;
        Ok(Self { status, note: note(fields)? })
    }
}

/// A commit.
#[derive(Debug, ToSchema)]
pub(crate) struct CommitBody {
    /// 7 to 64 hexadecimal digits; null or empty clears it.
    #[schema(example = "9fceb02d0ae598e95dc970b74767f19372d61af8")]
    pub(crate) commit: Option<String>,
}

impl CommitBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        let commit = match fields.text("commit")? {
            Change::Keep => return Err(ApiError::missing_fields(&["commit"])),
            Change::Set(text) if text.is_empty() => None,
            Change::Set(text) => {
                let is_commit =
                    COMMIT_CHARS.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
                if !is_commit {
                    let message = "commit must be 7 to 64 hexadecimal digits, or null.";
                    return Err(ApiError::invalid_field("commit", message.to_owned()));
                }
                Some(text.to_ascii_lowercase())
            }
            Change::Clear => None,
        };
        Ok(Self { commit })
    }
}

/// What is changed of a cluster; what is absent stays, null clears.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct EditBody {
    /// What to call it, 1 to 200 characters.
    #[schema(value_type = Option<String>, required = false)]
    pub(crate) title: Change<String>,
    /// Who looks after it.
    #[schema(value_type = Option<i64>, required = false)]
    pub(crate) assignee_id: Change<UserId>,
    /// Until when nobody wants to hear of it.
    #[schema(value_type = Option<String>, required = false)]
    pub(crate) snoozed_until: Change<Timestamp>,
}

impl EditBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require_any(&["title", "assigneeId", "snoozedUntil"])?;
        Ok(Self {
            title: fields.line("title", MAX_TITLE_CHARS)?,
            assignee_id: fields.id("assigneeId")?,
            snoozed_until: fields.moment("snoozedUntil")?,
        })
    }

    pub(crate) fn edit(self) -> ClusterEdit {
        ClusterEdit {
            title: self.title,
            assignee: self.assignee_id,
            snoozed_until: self.snoozed_until,
            ..ClusterEdit::default()
        }
    }
}

/// What is changed of several clusters.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct BulkBody {
    /// At most 200.
    #[schema(value_type = Vec<i64>)]
    pub(crate) ids: BTreeSet<ClusterId>,
    /// `open`, `resolved` or `ignored`.
    #[schema(value_type = Option<ClusterStatusWord>)]
    pub(crate) status: Option<ClusterStatus>,
    /// A note of at most 2,000 characters: absent keeps it, null clears it.
    #[schema(value_type = Option<String>, required = false)]
    pub(crate) note: Change<String>,
    /// Who looks after them.
    #[schema(value_type = Option<i64>, required = false)]
    pub(crate) assignee_id: Change<UserId>,
    /// Until when nobody wants to hear of them.
    #[schema(value_type = Option<String>, required = false)]
    pub(crate) snoozed_until: Change<Timestamp>,
}

impl BulkBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["ids"])?;
        fields.require_any(&["status", "note", "triageNote", "assigneeId", "snoozedUntil"])?;
        let ids = given("ids", fields.ids("ids", MAX_AT_ONCE)?)?;
        if ids.is_empty() {
            return Err(ApiError::invalid_field("ids", "ids must name at least one cluster."));
        }
        Ok(Self {
            ids,
            status: status(fields)?,
            note: note(fields)?,
            assignee_id: fields.id("assigneeId")?,
            snoozed_until: fields.moment("snoozedUntil")?,
        })
    }

    pub(crate) fn edit(&self) -> ClusterEdit {
        ClusterEdit {
            status: self.status,
            note: self.note.clone(),
            assignee: self.assignee_id.clone(),
            snoozed_until: self.snoozed_until.clone(),
            ..ClusterEdit::default()
        }
    }
}

/// The cluster that stays.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct MergeBody {
    /// A cluster of the same project.
    #[schema(value_type = i64)]
    pub(crate) into_id: ClusterId,
}

impl MergeBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["intoId"])?;
        Ok(Self { into_id: given("intoId", fields.id("intoId")?)? })
    }
}

/// The tests that do not belong to the cluster.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ExtractBody {
    /// At most 200.
    #[schema(value_type = Vec<i64>)]
    pub(crate) test_case_ids: BTreeSet<TestCaseId>,
    /// A note on the new cluster, at most 2,000 characters.
    pub(crate) note: Option<String>,
}

impl ExtractBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["testCaseIds"])?;
        let test_case_ids = given("testCaseIds", fields.ids("testCaseIds", MAX_AT_ONCE)?)?;
        if test_case_ids.is_empty() {
            let message = "testCaseIds must name at least one test case.";
            return Err(ApiError::invalid_field("testCaseIds", message.to_owned()));
        }
        Ok(Self { test_case_ids, note: note(fields)?.into_value() })
    }
}
