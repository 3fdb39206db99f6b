//! What happened to a cluster: what people decided about it, as the audit log
//! has it, between what the runs show. Nothing of it is stored twice: that a
//! cluster came back is read from its own occurrences.

use std::collections::HashMap;

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ClusterId, ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_store::accounts::users;
use callboard_store::audit::{self, AuditEntry, AuditFilter};
use callboard_store::boxed;
use callboard_store::clusters::{ClusterRow, ClusterStatus, reads};
use callboard_store::db::Session;
use serde_json::{Map, Value, json};

use super::reading::required_cluster;
use crate::{Context, Result};

/// Decisions that are looked at, the newest.
const DECISIONS: i64 = 50;

/// Something that happened to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterEvent {
    /// When.
    pub at: Timestamp,
    /// Who did it, while the account exists; nobody for what runs show.
    pub by: Option<String>,
    /// What.
    pub what: Happening,
}

/// What can happen to a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Happening {
    /// A run showed it first.
    Appeared {
        /// The run.
        run: i64,
    },
    /// Its tests passed, often enough to believe it.
    StoppedFailing {
        /// The first run in which they did.
        run: i64,
        /// Its commit.
        commit: Option<String>,
    },
    /// It was resolved, and occurred again in a run that began later.
    CameBack {
        /// The run.
        run: i64,
    },
    /// Somebody changed it.
    Changed(Vec<FieldChange>),
    /// Some of its tests were given a cluster of their own.
    Extracted {
        /// That cluster.
        into: i64,
        /// How many.
        tests: usize,
    },
}

/// A field of a cluster before and after a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldChange {
    /// `status`, `note`, `title`, `assignee`, `snoozedUntil` or `baseCommit`.
    pub field: &'static str,
    /// What it was; a person by the name to sign in with.
    pub before: Option<String>,
    /// What it is.
    pub after: Option<String>,
}

/// The fields under which the audit log has a change, and those it is told by.
const FIELDS: [(&str, &str); 6] = [
    ("status", "status"),
    ("note", "note"),
    ("title", "title"),
    ("assigneeId", "assignee"),
    ("snoozedUntil", "snoozedUntil"),
    ("baseCommit", "baseCommit"),
];

/// What happened to a cluster, the newest first: at most its fifty newest
/// decisions, as far back as the audit log goes.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn history(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ClusterId,
) -> Result<Vec<ClusterEvent>> {
    let mut session = ctx.store.db().read().await?;
    let row = required_cluster(&mut session, project.get(), id).await?;
    let wanted = AuditFilter {
        project: Some(row.project),
        target_kind: Some("cluster".to_owned()),
        target_id: Some(row.id.get()),
        actions: Some(vec![
            AuditAction::ClusterChanged,
            AuditAction::ClusterExtracted,
            AuditAction::McpWrite,
        ]),
        ..AuditFilter::default()
    };
    let decisions = audit::list(&mut session, &wanted, DECISIONS).await?;
    let people = people(&mut session, &decisions).await?;
    let mut events: Vec<ClusterEvent> = decisions.iter().filter_map(|entry| told(entry, &people)).collect();
    events.extend(recurrences(&mut session, &row, &events).await?);
    events.extend(shown_by_runs(&row));
    // What happened at one moment keeps its order.
    events.sort_by_key(|event| std::cmp::Reverse(event.at));
    Ok(events)
}

/// Who was given the cluster, by id.
async fn people(session: &mut Session, decisions: &[AuditEntry]) -> Result<HashMap<i64, String>> {
    let mut ids: Vec<i64> = Vec::new();
    for entry in decisions {
        let detail = detail_of(entry);
        let change = detail.get("assigneeId");
        ids.extend(["before", "after"].into_iter().filter_map(|side| change?.get(side)?.as_i64()));
    }
    ids.sort_unstable();
    ids.dedup();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = users::get_many(session, ids).await?;
    Ok(rows.into_iter().map(|user| (UserId::get(user.id), user.username)).collect())
}

/// The fields of an entry, each as it was and as it is. What agents changed has
/// the sides first.
fn detail_of(entry: &AuditEntry) -> Map<String, Value> {
    let detail: Map<String, Value> = serde_json::from_str(&entry.detail).unwrap_or_default();
    if entry.action != AuditAction::McpWrite.as_str() {
        return detail;
    }
    let side = |name: &str| detail.get(name).and_then(Value::as_object);
    let (before, after) = (side("before"), side("after"));
    let change = |(field, was): (&String, &Value)| {
        (field.clone(), json!({ "before": was, "after": after.and_then(|after| after.get(field)) }))
    };
    before.into_iter().flatten().map(change).collect()
}

fn told(entry: &AuditEntry, people: &HashMap<i64, String>) -> Option<ClusterEvent> {
    let detail = detail_of(entry);
    let what = if entry.action == AuditAction::ClusterExtracted.as_str() {
        let tests = detail.get("testCaseIds").and_then(Value::as_array).map_or(0, Vec::len);
        Happening::Extracted { into: detail.get("into")?.as_i64()?, tests }
    } else {
        Happening::Changed(changes(&detail, people))
    };
    Some(ClusterEvent { at: entry.at, by: entry.username.clone(), what })
}

fn changes(detail: &Map<String, Value>, people: &HashMap<i64, String>) -> Vec<FieldChange> {
    let shown = |field: &str, value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) if field == "assignee" => {
            let id = number.as_i64()?;
            Some(people.get(&id).cloned().unwrap_or_else(|| format!("deleted account {id}")))
        }
        _ => None,
    };
    let change = |(key, field): (&str, &'static str)| {
        let sides = detail.get(key)?;
        let side = |name: &str| sides.get(name).and_then(|value| shown(field, value));
        Some(FieldChange { field, before: side("before"), after: side("after") })
    };
    FIELDS.into_iter().filter_map(change).collect()
}

/// The status somebody set, when an event is that.
fn status_set(event: &ClusterEvent) -> Option<&str> {
    let Happening::Changed(changes) = &event.what else { return None };
    changes.iter().find(|change| change.field == "status")?.after.as_deref()
}

/// The runs in which it came back after it had been resolved, and before
/// somebody decided anew. `decisions` are newest first.
async fn recurrences(
    session: &mut Session,
    row: &ClusterRow,
    decisions: &[ClusterEvent],
) -> Result<Vec<ClusterEvent>> {
    let mut found = Vec::new();
    let mut decided_again: Option<Timestamp> = None;
    for event in decisions {
        let Some(status) = status_set(event) else { continue };
        if status == ClusterStatus::Resolved.as_str()
            && let Some((run, at)) = reads::first_after(session, row.project, row.id, event.at).await?
            && decided_again.is_none_or(|until| at < until)
        {
            found.push(ClusterEvent { at, by: None, what: Happening::CameBack { run: run.get() } });
        }
        decided_again = Some(event.at);
    }
    Ok(found)
}

fn shown_by_runs(row: &ClusterRow) -> Vec<ClusterEvent> {
    let mut events = Vec::with_capacity(2);
    let is_believed = row.fix_verification.as_deref().is_some_and(|word| word != "regressed");
    if let (true, Some(run), Some(at)) = (is_believed, row.fix_run, row.fix_at) {
        let what = Happening::StoppedFailing { run: run.get(), commit: row.fix_commit.clone() };
        events.push(ClusterEvent { at, by: None, what });
    }
    let what = Happening::Appeared { run: row.first_run.get() };
    events.push(ClusterEvent { at: row.first_seen_at, by: None, what });
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_by_its_fields_and_people_by_their_names() {
        let Value::Object(detail) = json!({
            "assigneeId": { "before": null, "after": 7 },
            "status": { "before": "open", "after": "resolved" },
            "unknown": { "before": 1, "after": 2 },
        }) else {
            unreachable!("an object was written above")
        };
        let people = HashMap::from([(7, "ada".to_owned())]);
        let told: Vec<_> = changes(&detail, &people)
            .into_iter()
            .map(|change| (change.field, change.before, change.after))
            .collect();
        assert_eq!(
            told,
            [
                ("status", Some("open".to_owned()), Some("resolved".to_owned())),
                ("assignee", None, Some("ada".to_owned())),
            ]
        );
        let gone = changes(&detail, &HashMap::new());
        assert_eq!(gone[1].after.as_deref(), Some("deleted account 7"));
    }
}
