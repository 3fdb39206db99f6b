//! `/settings/storage`: how much is kept, of what and where, how fast it grows,
//! and what was deleted recently.

use std::cmp::Reverse;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::storage_quota::StorageQuota;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::retention::PresetEstimate;
use callboard_query::settings;
use callboard_query::storage::{self, Amount, AmountOfKind, Disk, Forecast, PendingAmount, ProjectAmount};

use crate::components::{DeletionList, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::text::size;
use crate::visit::{Visit, answer};

/// Projects per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 100 };

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { page: query.page(SIZE)? })
    }
}

/// Inputs of `pages/storage.html`.
#[derive(Template)]
#[template(path = "pages/storage.html")]
struct StoragePage {
    shell: Shell,
    tabs: SettingsTabs,
    totals: Amount,
    /// Those of which most is kept first.
    by_kind: Vec<AmountOfKind>,
    pending: PendingAmount,
    /// Bytes a day, and whether they become fewer.
    per_day: i64,
    is_shrinking: bool,
    forecast: Forecast,
    /// The disk below the objects, where there is one.
    disk: Option<Disk>,
    /// What each preset of retention would free.
    presets: Vec<PresetEstimate>,
    /// Those that keep most first.
    projects: Vec<ProjectAmount>,
    pager: Pager,
    deletions: DeletionList,
    /// The quota of the instance, bytes.
    quota: Option<i64>,
}

/// How much is kept; for administrators.
pub(crate) async fn storage(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::StoragePage, &())?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let mut found = storage::instance_storage(&visit.ctx, visit.now).await?;
    found.by_kind.sort_by_key(|kind| Reverse(kind.amount.bytes));
    let projects = storage::largest(&visit.ctx, visit.scope(), after, asked.page.rows()).await?;
    let projects = cursors.page(projects)?;
    let deletions = DeletionList::read(&visit).await?;
    let quota = settings::of_instance::<StorageQuota>(&visit.ctx).await?.set.quota_bytes;
    let shell = Shell::new(&visit, Section::Settings, "Storage").await?;
    answer(&StoragePage {
        shell: shell.under("Settings", "/settings").here("Storage"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Storage),
        totals: found.totals,
        by_kind: found.by_kind,
        pending: found.pending,
        per_day: per_day(found.growth.bytes_per_day),
        is_shrinking: found.growth.bytes_per_day < 0.0,
        forecast: found.forecast,
        disk: found.disk,
        presets: found.presets,
        pager: Pager::new(&visit.address, projects.next_cursor.as_ref()),
        projects: projects.items,
        deletions,
        quota,
    })
}

/// How much of it the object store holds.
fn in_objects(amount: &Amount) -> String {
    size(amount.bytes_in_objects())
}

/// How long the disk lasts at this rate.
fn lasts(disk: &Disk) -> String {
    const DAYS_OF_YEAR: i64 = 365;
    let Some(days) = disk.days_left else { return "not growing".to_owned() };
    match days {
        0 => "full within a day at this rate".to_owned(),
        1 => "full in 1 day at this rate".to_owned(),
        days if days < 2 * DAYS_OF_YEAR => format!("full in {days} days at this rate"),
        days if days < 10 * DAYS_OF_YEAR => format!("full in {} years at this rate", days / DAYS_OF_YEAR),
        _ => "lasts over 10 years at this rate".to_owned(),
    }
}

/// How much a rate of bytes is; what is behind the point is no byte.
#[expect(clippy::cast_possible_truncation, reason = "a rate for people")]
fn per_day(bytes: f64) -> i64 {
    bytes.abs() as i64
}
