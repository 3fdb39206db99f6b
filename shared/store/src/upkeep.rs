//! What a PostgreSQL server with autovacuum does by itself: it gives the room
//! of gone rows free, and tells the planner what the tables hold.
//!
//! Where autovacuum is off, or has not come round yet after a first history
//! was written, the planner takes every table for empty: pages that take
//! milliseconds take half a second then. SQLite needs none of this, its planner
//! is told by a migration what to expect.

use crate::Result;
use crate::db::{Db, Statement};

/// Tables that changed a lot since they were looked at last, and whether many
/// of their rows are gone: the measures of autovacuum, coarser. A server with
/// autovacuum comes by itself; only what it never saw is not left to it.
static NEGLECTED: Statement = Statement::of_each(
    "upkeep::NEGLECTED",
    "SELECT '', 0",
    "SELECT quote_ident(s.schemaname) || '.' || quote_ident(s.relname), \
     NOT current_setting('autovacuum')::boolean AND s.n_dead_tup > 1000 + s.n_live_tup / 5 \
     FROM pg_stat_user_tables s JOIN pg_class c ON c.oid = s.relid \
     WHERE s.schemaname = current_schema() AND pg_has_role(c.relowner, 'USAGE') \
     AND (s.n_mod_since_analyze > 500 + s.n_live_tup / 10 OR s.n_dead_tup > 1000 + s.n_live_tup / 5) \
     AND (NOT current_setting('autovacuum')::boolean OR (s.last_analyze IS NULL AND s.last_autoanalyze IS NULL)) \
     ORDER BY s.relname",
);

pub(crate) static STATEMENTS: &[&Statement] = &[&NEGLECTED];

/// A table that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neglected {
    /// Schema and name, quoted.
    table: String,
    has_gone_rows: bool,
}

/// The tables that are due; none on SQLite.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database) when the database
/// refuses.
pub async fn neglected(db: &Db) -> Result<Vec<Neglected>> {
    if let Db::Sqlite { .. } = db {
        return Ok(Vec::new());
    }
    let rows = db.read().await?.all(&NEGLECTED, Vec::new()).await?;
    rows.iter()
        .map(|row| {
            let mut r = row.reader();
            Ok(Neglected { table: r.text()?, has_gone_rows: r.flag()? })
        })
        .collect()
}

/// Looks after one of them. Readers and writers go on meanwhile.
///
/// # Errors
/// [`StoreError::Database`](crate::StoreError::Database) when the database
/// refuses.
pub async fn look_after(db: &Db, Neglected { table, has_gone_rows }: &Neglected) -> Result<()> {
    let work = if *has_gone_rows { "VACUUM (ANALYZE)" } else { "ANALYZE" };
    db.run_outside_transactions(format!("{work} {table}")).await
}
