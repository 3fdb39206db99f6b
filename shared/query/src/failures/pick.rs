//! What a person chose instead of a lost locator.

use callboard_auth::scope::Authorized;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ExecutionId, ProjectId};
use callboard_domain::ingest::{AlternativeLocator, UsedLocator};
use callboard_playwright::healing::Finder;
use callboard_store::locators::{self, NewLocator};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use utoipa::ToSchema;

use super::healing::{DEFAULT_TEST_ID_ATTRIBUTE, Site, row_at};
use super::subject::Subject;
use crate::accounts::Acting;
use crate::{Context, Result};

/// What was chosen, and for what.
#[derive(Debug, Clone)]
pub struct LocatorPick {
    /// The chosen locator.
    pub picked: AlternativeLocator,
    /// The locator that failed; that of the execution when it is not given.
    pub failing: Option<UsedLocator>,
    /// The element as it was seen.
    pub element: Option<Map<String, Value>>,
}

/// Where a choice was noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AssociatedBy {
    /// At the call that failed.
    Location,
    /// At another call of the test with the same locator.
    Fingerprint,
    /// At a call nothing was known of.
    NewCallSite,
}

/// Notes a choice. `None` when nothing says where the locator is used.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn locator_pick(
    ctx: &Context,
    acting: Acting<'_>,
    project: Authorized<ProjectId>,
    id: ExecutionId,
    pick: LocatorPick,
) -> Result<Option<AssociatedBy>> {
    let subject = Subject::read(ctx, project, id).await?;
    let site = Site::from_subject(&subject);
    let error = subject.error().unwrap_or_default();
    let of_error =
        || callboard_playwright::healing::chain_in_error(&error).and_then(|text| Finder::of_text(&text));
    let failing = pick.failing.as_ref().map(Finder::of_capture).or_else(of_error);
    let Some(failing) = failing else { return Ok(None) };
    let chosen = AlternativeLocator { picked_by_user: true, ..pick.picked };
    // Plain structs of texts and numbers always have a JSON form.
    let json = serde_json::to_string(&chosen).unwrap_or_default();

    let (project_id, case) = (project.get(), subject.case.id);
    let mut session = ctx.store.db().begin().await?;
    let rows = locators::of_case(&mut session, project_id, case).await?;
    let fingerprint = failing.fingerprint();
    let here = site
        .as_ref()
        .and_then(|site| row_at(&rows, site, &failing, DEFAULT_TEST_ID_ATTRIBUTE, subject.run.id));
    let same = || rows.iter().find(|row| row.args_fp == fingerprint);
    let (location, associated) = match (here, same(), site) {
        (Some(row), _, _) => (row.location.clone(), AssociatedBy::Location),
        (None, Some(row), _) => (row.location.clone(), AssociatedBy::Fingerprint),
        (None, None, Some(site)) => {
            let element =
                pick.element.map_or_else(|| "{}".to_owned(), |element| Value::Object(element).to_string());
            let location = site.written();
            let args = json!(failing.args).to_string();
            let new = NewLocator {
                test_case: case,
                location: location.clone(),
                method: failing.method.clone(),
                raw: pick.failing.map(|failing| failing.raw).unwrap_or_default(),
                content_hash: Sha256::digest(format!("{args}{element}")).into(),
                args,
                args_fp: fingerprint,
                element,
                alternatives: "[]".to_owned(),
            };
            locators::write(&mut session, project_id, subject.run.id, subject.run.order_at, &[new]).await?;
            (location, AssociatedBy::NewCallSite)
        }
        (None, None, None) => return Ok(None),
    };
    locators::pick(&mut session, project_id, case, &location, &json).await?;
    let detail = json!({ "location": location, "locator": chosen.locator });
    let target = ("execution", id.get());
    let noted =
        acting.record(&mut session, AuditAction::LocatorPicked, target, Some(project_id), detail).await?;
    session.commit().await?;
    noted.committed();
    Ok(Some(associated))
}
