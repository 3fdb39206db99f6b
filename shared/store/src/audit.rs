//! The audit log: rows that are written with what they tell of, and never
//! changed. There is no statement that updates one; old ones are purged.

use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::Result;
use crate::db::{Backend, Filter, Row, Session, args, statements};
use crate::ids::{Kind, allocate_one};

/// How long entries are kept, days.
pub const KEPT_DAYS: i64 = 400;

/// Who did it. Without account, key and address it was the service itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Actor {
    /// The account.
    pub user: Option<UserId>,
    /// The API key that was used.
    pub key: Option<i64>,
    /// Keyed hash of the address it came from.
    pub address_hash: Option<[u8; 32]>,
}

/// What it was done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// A word such as `user` or `run`.
    pub kind: &'static str,
    /// Its id.
    pub id: i64,
}

/// An entry about to be written.
#[derive(Debug, Clone)]
pub struct AuditEvent {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: Actor,
    /// What.
    pub action: AuditAction,
    /// To what.
    pub target: Option<Target>,
    /// In which project.
    pub project: Option<ProjectId>,
    /// What else is worth knowing. Never a secret, a token or a password.
    pub detail: Map<String, Value>,
}

/// An entry that was written. Tell [`Recorded::committed`] after the
/// transaction: the log of the process must not hold what never happened.
#[derive(Debug)]
#[must_use = "call `committed` after the transaction"]
pub struct Recorded {
    line: String,
}

impl Recorded {
    /// Mirrors the entry into the log of the process, as one JSON object.
    pub fn committed(self) {
        tracing::info!(target: "audit", "{}", self.line);
    }
}

/// An entry as it is listed.
#[derive(Debug, Clone)]
pub struct AuditEntry {
    /// Id.
    pub id: i64,
    /// When.
    pub at: Timestamp,
    /// The account.
    pub user: Option<UserId>,
    /// Its name, while it exists.
    pub username: Option<String>,
    /// The API key.
    pub key: Option<i64>,
    /// What lists show of the key.
    pub key_prefix: Option<String>,
    /// Keyed hash of the address it came from.
    pub address_hash: Option<Vec<u8>>,
    /// What, as [`AuditAction::as_str`] spells it.
    pub action: String,
    /// Kind of what it was done to.
    pub target_kind: Option<String>,
    /// Id of what it was done to.
    pub target_id: Option<i64>,
    /// Name of the account or project it was done to, while it exists.
    pub target_name: Option<String>,
    /// In which project.
    pub project: Option<ProjectId>,
    /// Its name, while it exists.
    pub project_name: Option<String>,
    /// A JSON object.
    pub detail: String,
}

/// The conditions of a list.
#[derive(Debug, Clone, Default)]
pub struct AuditFilter {
    /// Only of this account.
    pub user: Option<UserId>,
    /// Only these actions.
    pub actions: Option<Vec<AuditAction>>,
    /// Only in this project.
    pub project: Option<ProjectId>,
    /// Only done to this kind.
    pub target_kind: Option<String>,
    /// Only done to this id.
    pub target_id: Option<i64>,
    /// At this moment or later.
    pub from: Option<Timestamp>,
    /// Before this moment.
    pub before: Option<Timestamp>,
    /// Key of the last row of the page before: time and id.
    pub after: Option<(i64, i64)>,
}

const SELECT: &str = "SELECT a.id, a.at, a.actor_user, u.username, a.actor_key, k.key_prefix, a.ip_hash, a.action, \
    a.target_type, a.target_id, COALESCE(t.username, tp.name), a.project_id, p.name, a.detail \
    FROM audit_events a LEFT JOIN users u ON u.id = a.actor_user LEFT JOIN api_keys k ON k.id = a.actor_key \
    LEFT JOIN users t ON a.target_type = 'user' AND t.id = a.target_id \
    LEFT JOIN projects tp ON a.target_type = 'project' AND tp.id = a.target_id \
    LEFT JOIN projects p ON p.id = a.project_id \
    WHERE 1 = 1";

statements! {
    /// A new entry.
    INSERT = "INSERT INTO audit_events (id, at, actor_user, actor_key, ip_hash, action, target_type, target_id, \
              project_id, detail) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    /// Entries that were kept long enough. ix: audit_events_by_time
    PURGE = "DELETE FROM audit_events WHERE id IN \
             (SELECT a.id FROM audit_events a WHERE a.at < $1 ORDER BY a.at, a.id LIMIT $2)";
}

/// Writes an entry in the transaction of what it tells of.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn record(session: &mut Session, event: AuditEvent) -> Result<Recorded> {
    let id = allocate_one(session, Kind::AuditEvent).await?;
    let line = line(id, &event);
    let AuditEvent { at, actor, action, target, project, detail } = event;
    let args = args![
        id,
        at,
        actor.user.map(UserId::get),
        actor.key,
        actor.address_hash.map(Vec::from),
        action.as_str(),
        target.map(|target| target.kind),
        target.map(|target| target.id),
        project.map(ProjectId::get),
        Value::Object(detail).to_string(),
    ];
    session.write(&INSERT, args).await?;
    Ok(Recorded { line })
}

/// A page of entries, newest first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(session: &mut Session, wanted: &AuditFilter, limit: i64) -> Result<Vec<AuditEntry>> {
    session.list(page(session.backend(), wanted, limit)).await?.iter().map(read).collect()
}

fn page(backend: Backend, wanted: &AuditFilter, limit: i64) -> Filter {
    let filter = conditions(Filter::new(backend, SELECT, args![]), wanted);
    let filter = match wanted.after {
        Some((at, id)) => filter.and("(a.at, a.id) < (?, ?)", args![at, id]),
        None => filter,
    };
    filter.end("ORDER BY a.at DESC, a.id DESC LIMIT ?", args![limit])
}

/// How many entries there are, up to `most`; where a page begins does not count.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn count(session: &mut Session, wanted: &AuditFilter, most: i64) -> Result<i64> {
    session.count(counting(session.backend(), wanted, most)).await
}

fn counting(backend: Backend, wanted: &AuditFilter, most: i64) -> Filter {
    let base = "SELECT COUNT(*) FROM (SELECT 1 FROM audit_events a WHERE 1 = 1";
    conditions(Filter::new(backend, base, args![]), wanted).end("LIMIT ?) counted", args![most])
}

fn conditions(filter: Filter, wanted: &AuditFilter) -> Filter {
    let actions = wanted
        .actions
        .as_ref()
        .map(|actions| actions.iter().map(|action| action.as_str().to_owned()).collect::<Vec<String>>());
    // ix: audit_events_by_time, _by_action, _by_target, _by_actor, _by_project
    filter
        .and_if("a.actor_user = ?", wanted.user.map(UserId::get))
        .and_if("a.action in_texts(?)", actions)
        .and_if("a.project_id = ?", wanted.project.map(ProjectId::get))
        .and_if("a.target_type = ?", wanted.target_kind.clone())
        .and_if("a.target_id = ?", wanted.target_id)
        .and_if("a.at >= ?", wanted.from.map(Timestamp::millis))
        .and_if("a.at < ?", wanted.before.map(Timestamp::millis))
}

/// What the list can look like, for the test that prepares every statement.
pub(crate) fn shapes(backend: Backend) -> Vec<Filter> {
    let all = AuditFilter {
        user: Some(UserId(1)),
        actions: Some(vec![]),
        project: Some(ProjectId(1)),
        target_kind: Some(String::new()),
        target_id: Some(1),
        from: Some(Timestamp(0)),
        before: Some(Timestamp(0)),
        after: Some((0, 0)),
    };
    let of = |wanted| [page(backend, wanted, 1), counting(backend, wanted, 1)];
    [AuditFilter::default(), all].iter().flat_map(of).collect()
}

/// Deletes up to `limit` entries from before a moment, and tells how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE, args![before, limit]).await
}

fn read(row: &Row) -> Result<AuditEntry> {
    let mut row = row.reader();
    Ok(AuditEntry {
        id: row.int()?,
        at: row.time()?,
        user: row.opt_int()?.map(UserId),
        username: row.opt_text()?,
        key: row.opt_int()?,
        key_prefix: row.opt_text()?,
        address_hash: row.opt_bytes()?,
        action: row.text()?,
        target_kind: row.opt_text()?,
        target_id: row.opt_int()?,
        target_name: row.opt_text()?,
        project: row.opt_int()?.map(ProjectId),
        project_name: row.opt_text()?,
        detail: row.text()?,
    })
}

/// One line of JSON. Besides what JSON escapes, everything is escaped that a
/// terminal obeys or does not show.
fn line(id: i64, event: &AuditEvent) -> String {
    use std::fmt::Write as _;
    let object = json!({
        "audit": id,
        "at": event.at.to_iso(),
        "action": event.action.as_str(),
        "user": event.actor.user.map(UserId::get),
        "key": event.actor.key,
        "address": event.actor.address_hash.map(hex::encode),
        "target": event.target.map(|target| format!("{}:{}", target.kind, target.id)),
        "project": event.project.map(ProjectId::get),
        "detail": event.detail,
    });
    let mut line = String::new();
    for char in object.to_string().chars() {
        let is_hidden = char.is_control()
            || matches!(char, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
        if is_hidden {
            // Writing to a String cannot fail.
            let _ = write!(line, "\\u{:04x}", u32::from(char));
        } else {
            line.push(char);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_of_an_entry_is_one_line_of_json() {
        let event = AuditEvent {
            at: Timestamp(1_767_261_600_000),
            actor: Actor { user: Some(UserId(7)), ..Actor::default() },
            action: AuditAction::LoginFailed,
            target: Some(Target { kind: "user", id: 7 }),
            project: None,
            detail: Map::from_iter([("name".to_owned(), json!("a\n\u{1b}[31m\u{9b}\u{202e}b\u{2028}"))]),
        };
        let line = line(3, &event);
        assert!(
            !line.chars().any(|char| char.is_control() || matches!(char, '\u{202e}' | '\u{2028}')),
            "{line}"
        );
        let read: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(read["detail"]["name"], event.detail["name"]);
        assert_eq!(read["action"], "login.failed");
        assert_eq!(read["target"], "user:7");
    }
}
