//! What each preset would free, for the storage pages. A job counts it every
//! hour, so that showing it reads one row.

use callboard_domain::retention::Preset;
use callboard_domain::time::Timestamp;
use callboard_store::settings;
use callboard_store::{boxed, instance};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::preview::{self, Preview};
use super::settings::GROUP;
use crate::{Context, Result};
use callboard_core::retention::Stored;

/// Where the estimates are kept.
const ESTIMATES: &str = "retention_estimates";

/// What a preset would delete if it had been in force when it was counted.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct PresetEstimate {
    /// Name of the preset.
    #[schema(example = "lean")]
    pub name: &'static str,
    /// When it was counted.
    #[schema(value_type = String, format = DateTime)]
    pub at: Timestamp,
    /// What it would delete.
    pub preview: Preview,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredEstimate {
    name: String,
    at: i64,
    preview: Preview,
}

/// Counts what each preset would delete now, and keeps the numbers.
///
/// # Errors
/// [`crate::QueryError::Store`].
#[boxed]
pub async fn estimate_presets(ctx: &Context, now: Timestamp) -> Result<()> {
    let mut session = ctx.store.db().read().await?;
    let stored = Stored::read(settings::get(&mut session, None, GROUP).await?.as_ref())?;
    let mut estimates = Vec::new();
    for preset in Preset::ALL {
        let policy = stored.policy_with(&stored.wanted().with(&preset.edit()));
        let preview = preview::of_all_projects(&mut session, &policy, now).await?;
        estimates.push(StoredEstimate { name: preset.name().to_owned(), at: now.millis(), preview });
    }
    drop(session);
    // Numbers have a JSON text.
    let text = serde_json::to_string(&estimates).unwrap_or_default();
    let mut session = ctx.store.db().begin().await?;
    instance::set(&mut session, ESTIMATES, &text, now).await?;
    Ok(session.commit().await?)
}

/// The estimates that were counted last; none before the first time.
pub(crate) async fn estimates(ctx: &Context) -> Result<Vec<PresetEstimate>> {
    let text = instance::value(ctx.store.db(), ESTIMATES).await?;
    let stored: Vec<StoredEstimate> =
        text.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    let known = stored.into_iter().filter_map(|each| {
        let name = Preset::from_name(&each.name)?.name();
        Some(PresetEstimate { name, at: Timestamp(each.at), preview: each.preview })
    });
    Ok(known.collect())
}
