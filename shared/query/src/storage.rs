//! How much is kept: of the whole installation for administrators, of one
//! project for everybody who sees it. All of it from stored counters.

use std::collections::BTreeMap;

use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::{Day, Timestamp};
use callboard_store::db::Session;
use callboard_store::projects::{ProjectOrder, ProjectRow};
use callboard_store::storage::{self, EVIDENCE_IN_ROWS, KeptOf, StorageDay};
use callboard_store::{Backend, boxed, instance, projects};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::page::{Slice, fetch};
use crate::projects::{ProjectKey, visible};
use crate::retention::{PresetEstimate, estimates};
use crate::shapes::ProjectRef;
use crate::{Context, Result};

/// Days that growth is judged by.
const GROWTH_DAYS: i64 = 30;
/// Kinds that files of tests have.
const FILE_KINDS: [&str; 4] = ["trace", "screenshot", "video", "attachment"];

/// Objects and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, ToSchema)]
pub struct Amount {
    /// Files, entries of reports, objects of evidence. One that several runs share counts in each.
    pub objects: i64,
    /// Bytes.
    pub bytes: i64,
    /// Bytes of them that lie in the database: evidence that is hardly worth an object.
    #[serde(skip)]
    pub bytes_in_database: i64,
}

impl Amount {
    fn sum<'k>(kept: impl Iterator<Item = &'k KeptOf>) -> Self {
        kept.fold(Self::default(), |sum, of| Self {
            objects: sum.objects + of.kept.objects,
            bytes: sum.bytes + of.kept.bytes,
            bytes_in_database: sum.bytes_in_database
                + if of.kind == EVIDENCE_IN_ROWS { of.kept.bytes } else { 0 },
        })
    }

    /// Bytes that lie in the object store.
    #[must_use]
    pub fn bytes_in_objects(&self) -> i64 {
        self.bytes - self.bytes_in_database
    }
}

/// What is kept of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct AmountOfKind {
    /// `trace`, `screenshot`, `video`, `attachment`, `report` or `evidence`.
    #[schema(example = "trace")]
    pub kind: String,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
}

fn by_kind(kept: &[KeptOf]) -> Vec<AmountOfKind> {
    let mut kinds: BTreeMap<&str, Vec<&KeptOf>> = BTreeMap::new();
    for of in kept {
        // Where it lies is no other kind.
        let kind = if of.kind == EVIDENCE_IN_ROWS { "evidence" } else { &of.kind };
        kinds.entry(kind).or_default().push(of);
    }
    let amounts = kinds
        .into_iter()
        .map(|(kind, of)| AmountOfKind { kind: kind.to_owned(), amount: Amount::sum(of.into_iter()) });
    amounts.collect()
}

/// What the object store holds.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StoreSize {
    /// Files, entries of reports, objects of evidence.
    pub objects: i64,
    /// Their bytes.
    pub bytes: i64,
    /// Bytes that nothing refers to any more and that wait to be deleted.
    pub condemned_bytes: i64,
}

/// The database.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct DatabaseSize {
    /// `sqlite` or `postgresql`.
    #[schema(example = "sqlite")]
    pub backend: &'static str,
    /// Its size; null, because engines only know it by looking.
    pub bytes: Option<i64>,
}

/// Counts over the whole installation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct InstanceStats {
    /// Projects.
    pub total_projects: i64,
    /// Runs, also those whose details retention deleted.
    pub total_runs: i64,
    /// Runs whose details are kept.
    pub kept_runs: i64,
    /// Test cases.
    pub total_test_cases: i64,
    /// Executions, also of runs whose details retention deleted.
    pub total_executions: i64,
    /// Traces, screenshots, videos and other attachments.
    pub total_files: i64,
    /// Their bytes.
    pub total_file_size: i64,
    /// The object store.
    pub storage: StoreSize,
    /// The database.
    pub database: DatabaseSize,
}

/// Counts over the whole installation.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn instance_stats(ctx: &Context) -> Result<InstanceStats> {
    let mut session = ctx.store.db().read().await?;
    let totals = projects::instance_totals(&mut session).await?;
    let kept = storage::totals(&mut session).await?;
    let files = Amount::sum(kept.iter().filter(|of| FILE_KINDS.contains(&of.kind.as_str())));
    let all = Amount::sum(kept.iter());
    let condemned = storage::condemned(&mut session).await?;
    Ok(InstanceStats {
        total_projects: totals.projects,
        total_runs: totals.runs,
        kept_runs: totals.kept_runs,
        total_test_cases: totals.test_cases,
        total_executions: totals.executions,
        total_files: files.objects,
        total_file_size: files.bytes,
        storage: StoreSize { objects: all.objects, bytes: all.bytes, condemned_bytes: condemned.bytes },
        database: DatabaseSize {
            backend: match ctx.store.backend() {
                Backend::Sqlite => "sqlite",
                Backend::Postgres => "postgresql",
            },
            bytes: None,
        },
    })
}

/// A project and what it keeps.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectAmount {
    /// The project.
    pub project: ProjectRef,
    /// How much.
    #[serde(flatten)]
    pub amount: Amount,
    /// Number of its runs, also of those whose details retention deleted.
    pub runs: i64,
    /// Runs whose details are kept.
    pub kept_runs: i64,
}

/// Content that waits to be deleted.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct PendingAmount {
    /// Objects.
    pub condemned: i64,
    /// Their bytes.
    pub bytes: i64,
}

/// How fast it grew lately.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Growth {
    /// Bytes a day.
    pub bytes_per_day: f64,
    /// Over so many days.
    pub days: i64,
}

/// How much it will be if that goes on, bytes.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct Forecast {
    /// In 30 days.
    pub days30: i64,
    /// In 90 days.
    pub days90: i64,
}

/// The file system that holds the objects, where that is a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Disk {
    /// Bytes that can still be written.
    pub free_bytes: i64,
    /// Days until it is full if storage grows as it did lately; null when it does not grow.
    pub days_left: Option<i64>,
}

impl Disk {
    #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a forecast in days")]
    fn new(free_bytes: i64, bytes_per_day: f64) -> Self {
        let days_left = (bytes_per_day >= 1.0).then(|| (free_bytes as f64 / bytes_per_day) as i64);
        Self { free_bytes, days_left }
    }
}

/// What the installation keeps.
#[derive(Debug, Clone)]
pub struct InstanceStorage {
    /// In all.
    pub totals: Amount,
    /// By kind.
    pub by_kind: Vec<AmountOfKind>,
    /// What waits to be deleted.
    pub pending: PendingAmount,
    /// How fast it grew.
    pub growth: Growth,
    /// How much it will be.
    pub forecast: Forecast,
    /// The disk below it; `None` for a bucket.
    pub disk: Option<Disk>,
    /// What each preset of retention would free.
    pub presets: Vec<PresetEstimate>,
    /// The last sweep; none before the first.
    pub last_sweep: Option<LastSweep>,
}

/// The last time objects were looked for that nothing refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastSweep {
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// Content that was deleted because nothing refers to it any more.
    pub freed_objects: i64,
    /// Its bytes.
    pub freed_bytes: i64,
    /// Objects that never had a row, such as those of uploads that broke off, deleted by the last look for them.
    pub orphans: i64,
}

/// Where [`LastSweep`] is kept.
const LAST_SWEEP: &str = "last_sweep";

/// What a sweep deleted.
#[derive(Debug, Clone, Copy)]
pub enum SweptNow {
    /// Content: objects and bytes.
    Content(i64, i64),
    /// Objects without a row.
    Orphans(i64),
}

/// Notes what a sweep deleted.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn note_sweep(ctx: &Context, swept: SweptNow, now: Timestamp) -> Result<()> {
    let before = stored_sweep(ctx).await?.unwrap_or_default();
    let after = match swept {
        SweptNow::Content(objects, bytes) => StoredSweep { at: now.millis(), objects, bytes, ..before },
        SweptNow::Orphans(orphans) => StoredSweep { at: now.millis(), orphans, ..before },
    };
    // Numbers have a JSON text.
    let text = serde_json::to_string(&after).unwrap_or_default();
    let mut session = ctx.store.db().begin().await?;
    instance::set(&mut session, LAST_SWEEP, &text, now).await?;
    Ok(session.commit().await?)
}

/// [`LastSweep`] as it is kept.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
struct StoredSweep {
    at: i64,
    objects: i64,
    bytes: i64,
    orphans: i64,
}

async fn stored_sweep(ctx: &Context) -> Result<Option<StoredSweep>> {
    let text = instance::value(ctx.store.db(), LAST_SWEEP).await?;
    Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
}

async fn last_sweep(ctx: &Context) -> Result<Option<LastSweep>> {
    Ok(stored_sweep(ctx).await?.map(|kept| LastSweep {
        at: Timestamp(kept.at),
        freed_objects: kept.objects,
        freed_bytes: kept.bytes,
        orphans: kept.orphans,
    }))
}

fn first_day(now: Timestamp, days: i64) -> Day {
    Day(now.day().0 - days + 1)
}

/// The disk below the objects; what cannot be read is left out.
fn disk(ctx: &Context, bytes_per_day: f64) -> Option<Disk> {
    match ctx.store.objects().free_bytes() {
        Ok(free) => free.map(|free| Disk::new(free, bytes_per_day)),
        Err(error) => {
            tracing::warn!(%error, "the free space of the disk is unknown");
            None
        }
    }
}

/// What the installation keeps.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, reason = "a forecast of bytes")]
#[boxed]
pub async fn instance_storage(ctx: &Context, now: Timestamp) -> Result<InstanceStorage> {
    let mut session = ctx.store.db().read().await?;
    let kept = storage::totals(&mut session).await?;
    let totals = Amount::sum(kept.iter());
    let condemned = storage::condemned(&mut session).await?;
    let days = storage::days(&mut session, None, first_day(now, GROWTH_DAYS)).await?;
    let grown: i64 = days.iter().map(|day| day.added - day.freed).sum();
    // An installation that is younger grew in fewer days.
    let first = storage::first_day(&mut session).await?.unwrap_or(now.day());
    // What follows takes a connection of its own.
    drop(session);
    let grew_in = (now.day().0 - first.0 + 1).clamp(1, GROWTH_DAYS);
    let bytes_per_day = grown as f64 / grew_in as f64;
    let after_days = |days: f64| (totals.bytes as f64 + bytes_per_day * days).max(0.0) as i64;
    Ok(InstanceStorage {
        totals,
        by_kind: by_kind(&kept),
        pending: PendingAmount { condemned: condemned.objects, bytes: condemned.bytes },
        growth: Growth { bytes_per_day: (bytes_per_day * 10.0).round() / 10.0, days: grew_in },
        forecast: Forecast { days30: after_days(30.0), days90: after_days(90.0) },
        disk: disk(ctx, bytes_per_day),
        presets: estimates(ctx).await?,
        last_sweep: last_sweep(ctx).await?,
    })
}

/// What each project keeps, most recently active first.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn recently_active(
    ctx: &Context,
    scope: &Scope,
    after: Option<ProjectKey>,
    limit: usize,
) -> Result<Slice<ProjectAmount, ProjectKey>> {
    let mut session = ctx.store.db().read().await?;
    let order = ProjectOrder::Updated(after.map(|key| (key.updated_at, key.id)));
    let rows = projects::list(&mut session, &visible(scope), None, &order, fetch(limit)).await?;
    let found = Slice::cut(rows, limit, ProjectKey::from_row);
    Ok(Slice { items: amounts(&mut session, &found.items).await?, next: found.next })
}

/// Place in the projects by what they keep: bytes, and the id of the project.
pub type KeptKey = (i64, i64);

/// What each project keeps, most first.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn largest(
    ctx: &Context,
    scope: &Scope,
    after: Option<KeptKey>,
    limit: usize,
) -> Result<Slice<ProjectAmount, KeptKey>> {
    let mut session = ctx.store.db().read().await?;
    let order = ProjectOrder::Kept(after);
    let rows = projects::list(&mut session, &visible(scope), None, &order, fetch(limit)).await?;
    let found = amounts(&mut session, &rows).await?;
    Ok(Slice::cut(found, limit, |each| (each.amount.bytes, each.project.id)))
}

/// What some projects keep, in their order.
async fn amounts(session: &mut Session, rows: &[ProjectRow]) -> Result<Vec<ProjectAmount>> {
    let kept = storage::of_projects(session, rows.iter().map(|row| row.id.get()).collect()).await?;
    let amount = |row: &ProjectRow| ProjectAmount {
        amount: Amount::sum(kept.get(&row.id).into_iter().flatten()),
        runs: row.runs,
        kept_runs: row.runs - row.expired_runs,
        project: ProjectRef::from_row(row),
    };
    Ok(rows.iter().map(amount).collect())
}

/// Bytes of tests that ended in one way.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct OutcomeAmount {
    /// `passed`, `flaky`, `failed` (with timed out) or `other`, to which reports belong.
    #[schema(example = "failed")]
    pub outcome: String,
    /// Bytes.
    pub bytes: i64,
}

/// A day of a project.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct StorageOfDay {
    /// UTC day.
    #[schema(example = "2026-01-01")]
    pub date: String,
    /// Bytes at its end.
    pub bytes: i64,
    /// Bytes that came.
    pub added: i64,
    /// Bytes that went.
    pub freed: i64,
}

/// What a project keeps.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProjectStorage {
    /// In all.
    pub totals: Amount,
    /// By kind.
    pub by_kind: Vec<AmountOfKind>,
    /// By how the tests ended.
    pub by_outcome: Vec<OutcomeAmount>,
    /// Day by day, oldest first; the last is today.
    pub daily: Vec<StorageOfDay>,
}

/// What a project keeps, with its last `days` days.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn of_project(
    ctx: &Context,
    project: Authorized<ProjectId>,
    days: i64,
    now: Timestamp,
) -> Result<ProjectStorage> {
    let project = project.get();
    let mut session = ctx.store.db().read().await?;
    let kept = storage::of_project(&mut session, project).await?;
    let totals = Amount::sum(kept.iter());
    let mut outcomes: BTreeMap<&str, i64> = BTreeMap::new();
    for of in &kept {
        *outcomes.entry(&of.outcome_class).or_default() += of.kept.bytes;
    }
    let since = first_day(now, days);
    let changed = storage::days(&mut session, Some(project), since).await?;
    let by_outcome =
        outcomes.into_iter().map(|(outcome, bytes)| OutcomeAmount { outcome: outcome.to_owned(), bytes });
    Ok(ProjectStorage {
        totals,
        by_kind: by_kind(&kept),
        by_outcome: by_outcome.collect(),
        daily: daily(&changed, since, now.day(), totals.bytes),
    })
}

/// Every day of a span, with what was kept at its end: back from what is kept
/// now.
fn daily(changed: &[StorageDay], first: Day, last: Day, now_bytes: i64) -> Vec<StorageOfDay> {
    let changes: BTreeMap<i64, &StorageDay> = changed.iter().map(|day| (day.day.0, day)).collect();
    let mut bytes = now_bytes;
    let mut days = Vec::new();
    for number in (first.0..=last.0).rev() {
        let (added, freed) = changes.get(&number).map_or((0, 0), |day| (day.added, day.freed));
        days.push(StorageOfDay { date: Day(number).to_iso(), bytes, added, freed });
        bytes -= added - freed;
    }
    days.reverse();
    days
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_lasts_as_long_as_growth_leaves_it() {
        assert_eq!(Disk::new(1_000, 10.0).days_left, Some(100));
        assert_eq!([0.0, 0.4, -7.0].map(|rate| Disk::new(1_000, rate).days_left), [None; 3]);
    }

    #[test]
    fn days_lead_back_from_what_is_kept_now() {
        let day = |number, added, freed| StorageDay { day: Day(number), added, freed };
        let days = daily(&[day(11, 100, 0), day(13, 50, 30)], Day(10), Day(13), 120);
        let bytes: Vec<i64> = days.iter().map(|day| day.bytes).collect();
        assert_eq!(bytes, [0, 100, 100, 120]);
    }
}
