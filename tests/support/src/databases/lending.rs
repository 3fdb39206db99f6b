//! PostgreSQL databases that tests use one after the other: to make a database
//! and to drop it takes the server longer than most tests do, to empty one takes
//! it no time.
//!
//! Whoever uses a database holds an advisory lock that carries its number, for as
//! long as a connection lives: the server takes the lock back however a test
//! ends, and whoever comes next empties what it left.

use anyhow::{Result, bail};
use sqlx::postgres::PgConnection;
use sqlx::{AssertSqlSafe, Connection, Executor};

use super::Server;

/// More than ever run side by side; a server takes fewer connections.
const MOST: i32 = 500;
/// Where a database keeps what its migrations brought: the names of the tables,
/// and the rows of those that have some.
const KEEP_ROWS: &str = "
DO $$
DECLARE t text; is_used boolean;
BEGIN
  CREATE SCHEMA lent;
  CREATE TABLE lent.tables AS SELECT tablename FROM pg_tables WHERE schemaname = 'public';
  CREATE SCHEMA migrated;
  FOR t IN SELECT format('%I', tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
    EXECUTE 'SELECT EXISTS (SELECT 1 FROM ' || t || ')' INTO is_used;
    IF is_used THEN EXECUTE format('CREATE TABLE migrated.%s AS TABLE public.%s', t, t); END IF;
  END LOOP;
END $$";
/// Drops the tables of tests and deletes what is stored in ours, whatever refers
/// to what: a table whose rows others still need waits for the next round.
const EMPTY: &str = "
DO $$
DECLARE t text; is_used boolean; is_left boolean := true;
BEGIN
  FOR t IN SELECT format('%I', tablename) FROM pg_tables
    WHERE schemaname = 'public' AND tablename NOT IN (SELECT tablename FROM lent.tables)
  LOOP
    EXECUTE 'DROP TABLE public.' || t || ' CASCADE';
  END LOOP;
  WHILE is_left LOOP
    is_left := false;
    FOR t IN SELECT format('%I', tablename) FROM pg_tables WHERE schemaname = 'public' LOOP
      EXECUTE 'SELECT EXISTS (SELECT 1 FROM public.' || t || ')' INTO is_used;
      IF is_used THEN
        BEGIN
          EXECUTE 'DELETE FROM public.' || t;
        EXCEPTION WHEN foreign_key_violation THEN
          is_left := true;
        END;
      END IF;
    END LOOP;
  END LOOP;
  FOR t IN SELECT format('%I', tablename) FROM pg_tables WHERE schemaname = 'migrated' LOOP
    EXECUTE format('INSERT INTO public.%s SELECT * FROM migrated.%s', t, t);
  END LOOP;
  PERFORM setval(format('public.%I', sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$";

/// A database in use by this process.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) name: String,
    /// Holds the lock.
    _turn: PgConnection,
}

/// Takes a database nobody uses and makes it as its migrations left it.
///
/// # Errors
/// When the server refuses, or nothing is free.
pub(super) async fn lend(server: &Server) -> Result<Lent> {
    let template = server.template().await?;
    let mut turn = server.connect().await?;
    for number in 0..MOST {
        let name = format!("{template}_{number}");
        let is_ours: bool = sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtext($1), $2)")
            .bind(&template)
            .bind(number)
            .fetch_one(&mut turn)
            .await?;
        if is_ours {
            let is_known = sqlx::query_scalar::<_, i32>("SELECT 1 FROM pg_database WHERE datname = $1")
                .bind(&name)
                .fetch_optional(&mut turn)
                .await?
                .is_some();
            if is_known {
                empty(server, &mut turn, &name).await?;
            } else {
                turn.execute(AssertSqlSafe(format!("CREATE DATABASE {name} TEMPLATE {template}"))).await?;
            }
            return Ok(Lent { name, _turn: turn });
        }
    }
    bail!("{MOST} test databases are in use")
}

async fn empty(server: &Server, turn: &mut PgConnection, name: &str) -> Result<()> {
    // Of a test that was killed, or whose tasks are still ending.
    sqlx::query(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity \
         WHERE datname = $1 AND backend_type = 'client backend'",
    )
    .bind(name)
    .execute(&mut *turn)
    .await?;
    let mut connection = PgConnection::connect_with(&server.options.clone().database(name)).await?;
    connection.execute(EMPTY).await?;
    connection.close().await?;
    Ok(())
}

/// Remembers in a migrated database what its migrations brought.
///
/// # Errors
/// When the server refuses.
pub(super) async fn keep_rows(server: &Server, name: &str) -> Result<()> {
    let mut connection = PgConnection::connect_with(&server.options.clone().database(name)).await?;
    connection.execute(KEEP_ROWS).await?;
    connection.close().await?;
    Ok(())
}
