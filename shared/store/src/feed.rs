//! Feeds: what happened to a run, and what happened to all runs, as rows that
//! any process can read after a number.
//!
//! Numbers have no gaps and follow the order of commits: those of a run are
//! given while its row is locked, those of all runs come from one counter row
//! that a transaction locks last.
//!
//! What one call brings to a run is in few rows, each of events that are kept
//! equally long and under the number of the last of them: reading after a number
//! finds the row that holds the next one.

use std::borrow::Cow;
use std::iter::Peekable;

use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::status::RunStatus;
use callboard_domain::time::Timestamp;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::db::{Bulk, Column, Session, args, statements};
use crate::{Result, StoreError};

statements! {
    /// Rows of a run with events after a number. PK
    OF_RUN = "SELECT seq, type, data, at FROM run_feed WHERE project_id = $1 AND run_id = $2 AND seq > $3 ORDER BY seq LIMIT $4";
    /// Whether a row of a run is kept whose events go up to a number at most. PK
    HAS_UP_TO = "SELECT 1 FROM run_feed WHERE project_id = $1 AND run_id = $2 AND seq <= $3 LIMIT 1";
    /// Shortens how long the events of a run are kept. PK
    SHORTEN = "UPDATE run_feed SET expires_at = $3 WHERE project_id = $1 AND run_id = $2 AND expires_at > $3";
    /// Drops events of runs that are due. ix: run_feed_by_expiry
    PURGE_RUNS = "DELETE FROM run_feed WHERE (project_id, run_id, seq) IN \
        (SELECT project_id, run_id, seq FROM run_feed WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2)";
    /// Takes the next number of the feed of all runs.
    NEXT_GLOBAL = "UPDATE counters SET value = value + 1 WHERE name = 'global_feed'";
    /// The newest number of the feed of all runs.
    GLOBAL_HEAD = "SELECT value FROM counters WHERE name = 'global_feed'";
    /// An event of all runs, with the number just taken.
    INSERT_GLOBAL = "INSERT INTO global_feed (seq, type, run_id, project_id, status, at) \
        SELECT value, $1, $2, $3, $4, $5 FROM counters WHERE name = 'global_feed'";
    /// Events of all runs after a number. PK
    GLOBAL = "SELECT seq, type, run_id, project_id, status, at FROM global_feed WHERE seq > $1 ORDER BY seq LIMIT $2";
    /// Drops old events of all runs. ix: global_feed_by_time
    PURGE_GLOBAL = "DELETE FROM global_feed WHERE seq IN (SELECT seq FROM global_feed WHERE at <= $1 ORDER BY at LIMIT $2)";
}

static APPEND: Bulk = Bulk::new(
    "feed::APPEND",
    3,
    "INSERT INTO run_feed (project_id, run_id, seq, type, data, at, expires_at) \
     SELECT $1, $2, r.seq, r.type, r.data, $3, r.expires_at FROM",
    &[Column::Int("seq"), Column::Text("type"), Column::Text("data"), Column::Int("expires_at")],
    "WHERE true",
);

pub(crate) static BULKS: &[&Bulk] = &[&APPEND];

/// The type of a row that holds several events.
const SEVERAL: &str = "";
/// Most events of a row, as readers take whole rows.
const MOST_IN_ROW: usize = 64;
/// Most bytes of a row of several events: what the driver sends to PostgreSQL in
/// more than one packet waits 40 ms for an acknowledgement, row by row.
const MOST_BYTES_IN_ROW: usize = 7_500;
/// How long passing events of a run are kept: who reads later sees their
/// results.
const PASSING_LIFE_MS: i64 = 5 * 60 * 1000;
/// How long all other events of a run are kept at most.
const LIFE_MS: i64 = 24 * 60 * 60 * 1000;

/// An event of a run that has no number yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct NewEvent {
    /// Its type, e.g. `test-completed`.
    pub kind: Cow<'static, str>,
    /// What happened, as a JSON object.
    pub data: String,
    /// Of interest for minutes only.
    pub is_passing: bool,
}

/// An event of a run.
#[derive(Debug, Clone)]
pub struct RunEvent {
    /// Its number within the run, from 1.
    pub seq: i64,
    /// Its type.
    pub kind: String,
    /// What happened, as a JSON object.
    pub data: String,
    /// When it was written.
    pub at: Timestamp,
}

/// An event of the feed of all runs.
#[derive(Debug, Clone)]
pub struct GlobalEvent {
    /// Its number, from 1.
    pub seq: i64,
    /// Its type, e.g. `run-finished`.
    pub kind: String,
    /// The run.
    pub run: RunId,
    /// Its project.
    pub project: ProjectId,
    /// The run's status after it.
    pub status: Option<RunStatus>,
    /// When it was written.
    pub at: Timestamp,
}

/// Writes events of a locked run; the first one gets the number `head + 1`.
/// Answers the new head.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn append(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    head: i64,
    events: Vec<NewEvent>,
    now: Timestamp,
) -> Result<i64> {
    let mut rows = APPEND.rows();
    let mut seq = head;
    let mut events = events.into_iter().peekable();
    while let Some((is_passing, together)) = next_row(&mut events) {
        seq += i64::try_from(together.len()).unwrap_or(i64::MAX);
        let life = if is_passing { PASSING_LIFE_MS } else { LIFE_MS };
        let (kind, data) = row_of(together);
        rows.push([seq.into(), kind.into_owned().into(), data.into(), (now.millis() + life).into()]);
    }
    session.execute_bulk(&APPEND, args![project, run, now], rows).await?;
    Ok(seq)
}

/// Type and data of an event.
type Told = (Cow<'static, str>, String);

/// The events of the next row, and whether they are of interest for minutes only.
fn next_row(events: &mut Peekable<impl Iterator<Item = NewEvent>>) -> Option<(bool, Vec<Told>)> {
    let NewEvent { kind, data, is_passing } = events.next()?;
    let (mut bytes, mut together) = (1 + told_bytes(&kind, &data), vec![(kind, data)]);
    while let Some(next) = events.next_if(|next| {
        let fits = bytes + told_bytes(&next.kind, &next.data) <= MOST_BYTES_IN_ROW;
        next.is_passing == is_passing && together.len() < MOST_IN_ROW && fits
    }) {
        bytes += told_bytes(&next.kind, &next.data);
        together.push((next.kind, next.data));
    }
    Some((is_passing, together))
}

/// Bytes that an event takes in a row of several.
fn told_bytes(kind: &str, data: &str) -> usize {
    kind.len() + data.len() + r#"["",],"#.len()
}

/// Type and text of the row of some events: of one event its own.
fn row_of(mut events: Vec<Told>) -> Told {
    if events.len() == 1
        && let Some(only) = events.pop()
    {
        return only;
    }
    let mut text =
        String::with_capacity(1 + events.iter().map(|(kind, data)| told_bytes(kind, data)).sum::<usize>());
    for (kind, data) in events {
        // Types are words of ours, and the data is JSON already.
        text.push_str(if text.is_empty() { "[[\"" } else { ",[\"" });
        text.push_str(&kind);
        text.push_str("\",");
        text.push_str(&data);
        text.push(']');
    }
    text.push(']');
    (SEVERAL.into(), text)
}

/// The events of a row that was stored under the number of the last of them.
fn events_of(seq: i64, kind: String, data: String, at: Timestamp) -> Result<Vec<RunEvent>> {
    if kind != SEVERAL {
        return Ok(vec![RunEvent { seq, kind, data, at }]);
    }
    let events: Vec<(String, Box<RawValue>)> =
        serde_json::from_str(&data).map_err(|_| StoreError::Damaged("events of a run"))?;
    let before = seq - i64::try_from(events.len()).unwrap_or(i64::MAX);
    let numbered = (before + 1..).zip(events);
    Ok(numbered.map(|(seq, (kind, data))| RunEvent { seq, kind, data: data.get().to_owned(), at }).collect())
}

/// Events of a run that were read together.
#[derive(Debug, Default)]
pub struct RunEvents {
    /// The events, in order.
    pub events: Vec<RunEvent>,
    /// Whether there may be more.
    pub has_more: bool,
}

/// Events of a run after a number: those of at most `limit` rows.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn of_run(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    after: i64,
    limit: i64,
) -> Result<RunEvents> {
    let rows = session.all(&OF_RUN, args![project, run, after, limit]).await?;
    let mut found = RunEvents { events: Vec::new(), has_more: i64::try_from(rows.len()) == Ok(limit) };
    for row in rows {
        let mut r = row.reader();
        let events = events_of(r.int()?, r.text()?, r.text()?, r.time()?)?;
        found.events.extend(events.into_iter().filter(|event| event.seq > after));
    }
    Ok(found)
}

/// Whether a row is still kept that ends with this number or a lower one: then
/// no lasting event after it is gone.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn reaches_back_to(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    seq: i64,
) -> Result<bool> {
    Ok(session.first(&HAS_UP_TO, args![project, run, seq]).await?.is_some())
}

/// Keeps the events of a run no longer than until a moment.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn keep_until(
    session: &mut Session,
    project: ProjectId,
    run: RunId,
    until: Timestamp,
) -> Result<()> {
    session.write(&SHORTEN, args![project, run, until]).await?;
    Ok(())
}

/// Writes an event of all runs. Locks the counter for the rest of the
/// transaction, so it belongs at its very end.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn publish(
    session: &mut Session,
    kind: &str,
    run: RunId,
    project: ProjectId,
    status: Option<RunStatus>,
    now: Timestamp,
) -> Result<()> {
    session.write(&NEXT_GLOBAL, args![]).await?;
    let status = status.map(RunStatus::as_str);
    session.write(&INSERT_GLOBAL, args![kind, run, project, status, now]).await?;
    Ok(())
}

/// The newest number of the feed of all runs; 0 before the first.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn global_head(session: &mut Session) -> Result<i64> {
    session.one(&GLOBAL_HEAD, args![]).await?.reader().int()
}

/// Events of all runs after a number, at most `limit`.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn global(session: &mut Session, after: i64, limit: i64) -> Result<Vec<GlobalEvent>> {
    let rows = session.all(&GLOBAL, args![after, limit]).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(GlobalEvent {
                seq: r.int()?,
                kind: r.text()?,
                run: RunId(r.int()?),
                project: ProjectId(r.int()?),
                status: r.opt_text()?.as_deref().and_then(RunStatus::parse),
                at: r.time()?,
            })
        })
        .collect()
}

/// Drops at most `limit` events of runs that are due; answers how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge_runs(session: &mut Session, now: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE_RUNS, args![now, limit]).await
}

/// Drops at most `limit` events of all runs written before a moment; answers
/// how many.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn purge_global(session: &mut Session, before: Timestamp, limit: i64) -> Result<u64> {
    session.execute(&PURGE_GLOBAL, args![before, limit]).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_hold_all_events_in_order_and_are_short() {
        let event = |at: usize| NewEvent {
            kind: "test-completed".into(),
            data: format!(r#"{{"at":{at},"title":"{}"}}"#, "x".repeat(at * 37 % 900)),
            is_passing: at.is_multiple_of(90),
        };
        let mut rest = (0..300)
            .map(event)
            .chain([NewEvent {
                data: format!(r#"{{"title":"{}"}}"#, "x".repeat(2 * MOST_BYTES_IN_ROW)),
                ..event(300)
            }])
            .peekable();
        let (mut seq, mut told, mut rows) = (0, Vec::new(), 0);
        while let Some((is_passing, together)) = next_row(&mut rest) {
            rows += 1;
            let count = together.len();
            seq += i64::try_from(count).unwrap();
            let (kind, data) = row_of(together);
            assert!(count == 1 || data.len() <= MOST_BYTES_IN_ROW, "{} bytes", data.len());
            let events = events_of(seq, kind.into_owned(), data, Timestamp(0)).unwrap();
            told.extend(events.into_iter().map(|event| (event.seq, event.data, is_passing)));
        }
        let all = (0..300).map(event).zip(1..).map(|(event, seq)| (seq, event.data, event.is_passing));
        assert_eq!(told[..300], all.collect::<Vec<_>>());
        assert_eq!(told.len(), 301);
        assert!(rows < 40, "{rows} rows");
    }
}
