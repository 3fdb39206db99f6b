//! Groups of settings of the instance: read and written the same way, whatever they are about.

use axum::Json;
use axum::response::Response;
use callboard_domain::setting::SettingsGroup;
use callboard_http::ApiError;
use callboard_http::conditional::tagged_json;
use callboard_http::extract::Fields;
use callboard_query::settings::{self, OfInstance};
use http::HeaderMap;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::answer::{Written, refused};
use crate::desk::Desk;

/// What is set for the instance, as an answer that clients can cache.
pub(crate) async fn get<G, A>(desk: &Desk, headers: &HeaderMap) -> Result<Response, ApiError>
where
    G: SettingsGroup + DeserializeOwned + Default,
    A: From<OfInstance<G>> + Serialize,
{
    let found = settings::of_instance::<G>(&desk.ctx).await?;
    tagged_json(headers, &A::from(found))
}

/// Changes some of the keys for the instance.
///
/// # Errors
/// 400 `no_fields`, `invalid_field`.
pub(crate) async fn edit<G, A>(
    desk: &Desk,
    fields: &Fields,
    keys: &[&str],
) -> Result<Json<Written<A>>, ApiError>
where
    G: SettingsGroup + Serialize + DeserializeOwned + Default + Clone + PartialEq,
    A: From<OfInstance<G>>,
{
    fields.require_any(keys)?;
    settings::edit_instance::<G>(&desk.ctx, desk.acting(), fields.as_map()).await?.map_err(refused)?;
    Ok(Written::answer(settings::of_instance::<G>(&desk.ctx).await?))
}
