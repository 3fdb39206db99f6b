//! Migrations: numbered pairs of files under `migrations/`, the same logical
//! change for both engines, compiled into the binary. Applied files never
//! change; the migrator refuses one whose checksum differs.

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::{Executor as _, SqlSafeStr as _};

use crate::Result;
use crate::db::{Db, args, statements};

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

const STEPS: &[Step] = steps![1 "0001_runs", 2 "0002_accounts", 3 "0003_jobs", 4 "0004_live", 5 "0005_idempotency", 6 "0006_clusters", 7 "0007_flakiness", 8 "0008_comparison", 9 "0009_administration", 10 "0010_trace_pool", 11 "0011_locators", 12 "0012_retention", 13 "0013_planner_statistics", 14 "0014_endpoints", 15 "0015_test_functions", 16 "0016_counting_together", 17 "0017_exports_and_links", 18 "0018_troubled_history", 19 "0019_lost_time", 20 "0020_dimensions_of_pictures", 21 "0021_full_runs_of_branches", 22 "0022_failing_days", 23 "0023_spread_of_durations", 24 "0024_waiting_to_be_counted", 25 "0025_packs_in_rows", 26 "0026_order_of_jobs", 27 "0027_results_that_wait", 28 "0028_order_of_texts", 29 "0029_words_of_projects", 30 "0030_evidence_that_waits"];

statements! {
    NEWEST_APPLIED = "SELECT MAX(version) FROM schema_migrations WHERE success = TRUE";
}

fn migrator(text: impl Fn(&Step) -> &'static str) -> Migrator {
    let migrations = STEPS
        .iter()
        .map(|step| {
            Migration::new(
                step.version,
                step.name.into(),
                MigrationType::Simple,
                text(step).into_sql_str(),
                false,
            )
        })
        .collect();
    let mut migrator = Migrator::with_migrations(migrations);
    migrator.dangerous_set_table_name("schema_migrations");
    // A newer release may have migrated ahead: releases work on the next schema too.
    migrator.set_ignore_missing(true);
    migrator
}

pub(crate) async fn run(db: &Db) -> Result<()> {
    match db {
        Db::Sqlite { writer, .. } => {
            let mut connection = Box::pin(writer.get()).await?;
            migrator(|step| step.sqlite).run(&mut *connection).await?;
        }
        Db::Postgres(pool) => {
            let mut connection = Box::pin(pool.get()).await?;
            // The server tells of every table that is there already, the driver logs it.
            connection.execute("SET client_min_messages = warning").await?;
            let migrated = migrator(|step| step.postgres).run(&mut *connection).await;
            connection.execute("RESET client_min_messages").await?;
            migrated?;
        }
    }
    Ok(())
}

pub(crate) async fn is_current(db: &Db) -> Result<bool> {
    let mut session = db.read().await?;
    let newest = match session.one(&NEWEST_APPLIED, args![]).await {
        Ok(row) => row.reader().opt_int()?,
        // Without the table nothing was ever applied.
        Err(crate::StoreError::Database(sqlx::Error::Database(_))) => None,
        Err(error) => return Err(error),
    };
    Ok(newest >= STEPS.last().map(|step| step.version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_step_and_every_step_has_its_number() {
        let steps: Vec<String> = STEPS.iter().map(|step| format!("{}.sql", step.name)).collect();
        for engine in ["sqlite", "postgres"] {
            let folder = format!("{}/../../migrations/{engine}", env!("CARGO_MANIFEST_DIR"));
            let mut files: Vec<String> = std::fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().file_name().into_string().unwrap())
                .collect();
            files.sort();
            assert_eq!(files, steps, "{engine}");
        }
        for (number, step) in (1..).zip(STEPS) {
            assert_eq!(step.version, number);
            assert!(step.name.starts_with(&format!("{number:04}_")), "{}", step.name);
        }
    }
}
