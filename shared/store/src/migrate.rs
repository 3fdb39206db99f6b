//! Migrations: numbered pairs of files under `migrations/`, the same logical
//! change for both engines, compiled into the binary; the file that SQLite keeps
//! beside the other has steps of its own. Applied files never change; the migrator
//! refuses one whose checksum differs.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Connection as _, Executor as _, PgConnection, SqlSafeStr as _};

use crate::db::{Backend, Db, Statement, args, statements};
use crate::{Result, StoreError, instance};

struct Step {
    version: i64,
    name: &'static str,
    sqlite: &'static str,
    postgres: &'static str,
}

macro_rules! steps {
    ($($version:literal $name:literal),+ $(,)?) => {
        &[$(Step {
            version: $version,
            name: $name,
            sqlite: include_str!(concat!("../../../migrations/sqlite/", $name, ".sql")),
            postgres: include_str!(concat!("../../../migrations/postgres/", $name, ".sql")),
        }),+]
    };
}

const STEPS: &[Step] = steps![1 "0001_runs", 2 "0002_accounts", 3 "0003_jobs", 4 "0004_live", 5 "0005_idempotency", 6 "0006_clusters", 7 "0007_flakiness", 8 "0008_comparison", 9 "0009_administration", 10 "0010_trace_pool", 11 "0011_locators", 12 "0012_retention", 13 "0013_planner_statistics", 14 "0014_endpoints", 15 "0015_test_functions", 16 "0016_counting_together", 17 "0017_exports_and_links", 18 "0018_troubled_history", 19 "0019_lost_time", 20 "0020_dimensions_of_pictures", 21 "0021_full_runs_of_branches", 22 "0022_failing_days", 23 "0023_spread_of_durations", 24 "0024_waiting_to_be_counted", 25 "0025_packs_in_rows", 26 "0026_order_of_jobs", 27 "0027_results_that_wait", 28 "0028_order_of_texts", 29 "0029_words_of_projects", 30 "0030_evidence_that_waits", 31 "0031_intake_beside", 32 "0032_outcomes", 33 "0033_run_errors", 34 "0034_restorable_deletions", 35 "0035_timed_out_tests", 36 "0036_expired_runs", 37 "0037_domain_events", 38 "0038_notifications", 39 "0039_skips_and_repetitions", 40 "0040_reruns", 41 "0041_source_control", 42 "0042_joined_histories", 43 "0043_diagnoses", 44 "0044_direct_uploads", 45 "0045_code_owners", 46 "0046_notification_schedules", 47 "0047_request_feedback", 48 "0048_personal_notifications", 49 "0049_names_of_statuses", 50 "0050_subscription_conditions", 51 "0051_diagnosed_executions"];

/// The newest step of the release before this one; raised with each release. On the
/// schema of this build, a build that knows fewer steps is two releases old.
const PREVIOUS_RELEASE: i64 = 0;
/// Where a database holds that number of the newest build that migrated it.
const OLDEST_BUILD: &str = "oldest_build";

/// How the schema of a database fits this build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// Steps of this build are missing: nothing may be written.
    Behind,
    /// It is that of this build or of the next release.
    Current,
    /// A build that is more than one release newer migrated it: nothing may be written.
    TooNew,
}

/// The step behind which what running clients sent is in a file of its own on
/// SQLite.
const INTAKE_BESIDE: i64 = 31;

/// Of that file.
const INTAKE_STEPS: &[(i64, &str, &str)] = &[(
    1,
    "0001_results_that_wait",
    include_str!("../../../migrations/sqlite-intake/0001_results_that_wait.sql"),
)];

statements! {
    NEWEST_APPLIED = "SELECT MAX(version) FROM schema_migrations WHERE success = TRUE";
}

/// Of the file of what running clients sent, which only SQLite has.
static NEWEST_APPLIED_BESIDE: Statement = Statement::new(
    "migrate::NEWEST_APPLIED_BESIDE",
    "SELECT MAX(version) FROM intake.schema_migrations WHERE success = TRUE",
);

/// Whether there is anything that was kept among the runs.
const IS_AMONG_RUNS: &str = "SELECT EXISTS (SELECT 1 FROM runs.sqlite_schema WHERE name = 'run_intake')";
/// Copies it; as long as it is there, it counts, and what an attempt before this one
/// left is nothing. The disk has it before it is removed there.
const TAKE_OVER: &str = "DELETE FROM main.run_intake;
DELETE FROM main.run_intake_keys;
INSERT INTO main.run_intake (id, project_id, run_id, slot_id, at, refusals, pack_id, body, evidence)
    SELECT id, project_id, run_id, slot_id, at, refusals, pack_id, body, evidence FROM runs.run_intake;
INSERT INTO main.run_intake_keys (project_id, run_id, key)
    SELECT project_id, run_id, key FROM runs.run_intake_keys";
/// One process migrates at a time.
const LOCK_MIGRATIONS: &str = "SELECT pg_advisory_xact_lock(4711203846)";
const SYNC: &str = "PRAGMA main.wal_checkpoint(FULL)";

fn step(version: i64, name: &'static str, text: &'static str) -> Migration {
    Migration::new(version, name.into(), MigrationType::Simple, text.into_sql_str(), false)
}

fn migrator(steps: impl Iterator<Item = Migration>) -> Migrator {
    let mut migrator = Migrator::with_migrations(steps.collect());
    migrator.dangerous_set_table_name("schema_migrations");
    // A newer release may have migrated ahead: releases work on the next schema too.
    migrator.set_ignore_missing(true);
    migrator
}

/// Applies what is missing.
///
/// # Errors
/// [`StoreError::Configuration`] when the database belongs to a release that is too new.
pub(crate) async fn run(db: &Db) -> Result<()> {
    if state(db).await? == SchemaState::TooNew {
        return Err(StoreError::Configuration(BUILD_TOO_OLD.to_owned()));
    }
    apply(db).await?;
    let noted = oldest_build(db).await?;
    if noted.unwrap_or_default() < PREVIOUS_RELEASE {
        let now = instance::clock(db).await?;
        let mut session = db.begin().await?;
        instance::set(&mut session, OLDEST_BUILD, &PREVIOUS_RELEASE.to_string(), now).await?;
        session.commit().await?;
    }
    Ok(())
}

/// What a build answers that is too old for its database.
pub const BUILD_TOO_OLD: &str = "This version of the service is too old for its database, which was migrated by one that is more than one release \
     newer. Deploy the newer version.";

async fn oldest_build(db: &Db) -> Result<Option<i64>> {
    Ok(instance::value(db, OLDEST_BUILD).await?.and_then(|noted| noted.parse().ok()))
}

async fn apply(db: &Db) -> Result<()> {
    match db {
        Db::Sqlite { writer, intake, .. } => {
            let steps = |upto| {
                let steps = STEPS.iter().filter(move |step| step.version < upto);
                steps.map(|each| step(each.version, each.name, each.sqlite))
            };
            let mut runs = Box::pin(writer.get()).await?;
            migrator(steps(INTAKE_BESIDE)).run(&mut *runs).await?;
            let mut beside = Box::pin(intake.writer.get()).await?;
            let all = INTAKE_STEPS.iter().map(|(version, name, text)| step(*version, name, text));
            migrator(all).run(&mut *beside).await?;
            if sqlx::query_scalar(IS_AMONG_RUNS).fetch_one(&mut *beside).await? {
                let mut taking_over = beside.begin().await?;
                taking_over.execute(sqlx::raw_sql(TAKE_OVER)).await?;
                taking_over.commit().await?;
                beside.execute(sqlx::raw_sql(SYNC)).await?;
            }
            migrator(steps(i64::MAX)).run(&mut *runs).await?;
        }
        Db::Postgres(pool) => {
            let applied = applied(db, &NEWEST_APPLIED).await?.unwrap_or_default();
            let mut connection = Box::pin(pool.get()).await?;
            let missing = STEPS.iter().map(|step| step.version).filter(|version| *version > applied);
            // The last one is repeated: the migrator compares all that were applied with those of this build.
            for version in missing.chain(STEPS.last().map(|step| step.version)) {
                migrate_postgres_to(&mut connection, version).await?;
            }
        }
    }
    Ok(())
}

/// Applies the steps up to one of them. The lock, and whatever is set, belong to the
/// transaction: a pooler may give each transaction another connection of the server, and
/// the migrator's own lock would stay on one of them.
async fn migrate_postgres_to(connection: &mut PgConnection, version: i64) -> Result<()> {
    let steps = STEPS.iter().filter(|step| step.version <= version);
    let mut migrator = migrator(steps.map(|each| step(each.version, each.name, each.postgres)));
    migrator.set_locking(false);
    let mut transaction = connection.begin().await?;
    transaction.execute(LOCK_MIGRATIONS).await?;
    // The server tells of every table that is there already, the driver logs it.
    transaction.execute("SET LOCAL client_min_messages = warning").await?;
    migrator.run(&mut *transaction).await?;
    transaction.commit().await?;
    Ok(())
}

pub(crate) async fn state(db: &Db) -> Result<SchemaState> {
    let newest = STEPS.last().map(|step| step.version);
    let newest_beside = INTAKE_STEPS.last().map(|(version, ..)| *version);
    let is_behind = applied(db, &NEWEST_APPLIED).await? < newest
        || (db.backend() == Backend::Sqlite && applied(db, &NEWEST_APPLIED_BESIDE).await? < newest_beside);
    Ok(match is_behind {
        true => SchemaState::Behind,
        false if oldest_build(db).await? > newest => SchemaState::TooNew,
        false => SchemaState::Current,
    })
}

/// The newest step of this build.
#[must_use]
pub fn newest_step() -> i64 {
    STEPS.last().map_or(0, |step| step.version)
}

async fn applied(db: &Db, newest: &Statement) -> Result<Option<i64>> {
    match db.read().await?.one(newest, args![]).await {
        Ok(row) => row.reader().opt_int(),
        // Without the table nothing was ever applied.
        Err(crate::StoreError::Database(sqlx::Error::Database(_))) => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_step_and_every_step_has_its_number() {
        let steps: Vec<(i64, &str)> = STEPS.iter().map(|step| (step.version, step.name)).collect();
        let beside: Vec<(i64, &str)> =
            INTAKE_STEPS.iter().map(|(version, name, _)| (*version, *name)).collect();
        for (engine, steps) in [("sqlite", &steps), ("postgres", &steps), ("sqlite-intake", &beside)] {
            let folder = format!("{}/../../migrations/{engine}", env!("CARGO_MANIFEST_DIR"));
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            let names: Vec<String> = steps.iter().map(|(_, name)| format!("{name}.sql")).collect();
            assert_eq!(files, names, "{engine}");
            for (number, (version, name)) in (1..).zip(steps) {
                assert_eq!(*version, number, "{engine}");
                assert!(name.starts_with(&format!("{number:04}_")), "{name}");
            }
        }
    }
}
