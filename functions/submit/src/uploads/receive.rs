//! The bytes of one planned file.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use callboard_http::extract::{BodyError, CountedBody, Pulse};
use callboard_http::{ApiError, AppState, Site};
use callboard_query::QueryError;
use callboard_store::StoreError;
use callboard_store::objects::WRITER_BYTES;
use futures::StreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;

/// Bytes that arrived.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReceivedAnswer {
    /// Always true.
    success: bool,
    /// SHA-256 of the bytes, as computed here.
    sha256: String,
    /// How many they are.
    size: u64,
}

/// Receives the bytes of one planned file.
///
/// The ticket in the path is all it takes. The bytes must be those of the plan;
/// sending them again changes nothing. Nobody can read them before they are
/// committed.
///
/// # Errors
/// 404 `ticket_not_found`, 409 `ticket_used` for other bytes than came before,
/// 413 for more bytes than planned, 422 `hash_mismatch`.
#[utoipa::path(
    put,
    path = "/api/uploads/{ticket}",
    tag = "submit",
    params(("ticket" = String, Path, description = "Ticket of the plan")),
    request_body(content = String, content_type = "application/octet-stream", description = "The bytes as they are"),
    responses(
        (status = 200, body = ReceivedAnswer),
        (status = 400, description = "`invalid_body`: the bytes stopped arriving"),
        (status = 404, description = "`ticket_not_found`: unknown or expired"),
        (status = 409, description = "`ticket_used`: other bytes came before"),
        (status = 422, description = "`hash_mismatch`: the bytes are not those of the plan")
    )
)]
pub(crate) async fn receive_upload(
    State(state): State<AppState>,
    site: Site,
    ticket: Result<Path<String>, PathRejection>,
    body: Body,
) -> Result<Json<ReceivedAnswer>, ApiError> {
    let ctx = state.context(&site);
    let limit = state.config().max_upload_bytes;
    // One that is not text opens nothing.
    let ticket = ticket.map(|Path(ticket)| ticket).unwrap_or_default();
    let ticket = match callboard_ingest::open_upload_ticket(&ctx, &ticket, state.now()).await {
        Ok(ticket) => ticket,
        Err(error) => {
            // Dropped, the body is read on for a while, so that its sender gets the answer.
            drop(CountedBody::new(body, limit));
            return Err(error.into());
        }
    };
    let body = CountedBody::new(body, limit.min(ticket.size));
    let mut held = state.store().memory().reserve();
    held.grow_to(ticket.size.min(WRITER_BYTES)).await?;
    // The store sees a broken stream; what broke it is kept for the answer.
    let broken = std::sync::Mutex::new(None);
    let pulse = Pulse::due_later();
    let chunks = body.then(async |chunk| match chunk {
        Ok(chunk) => {
            if pulse.is_due()
                && let Err(error) = callboard_ingest::is_uploading(&ctx, &ticket, state.now()).await
            {
                tracing::debug!(%error, "a long upload could not be noted as a sign of life");
            }
            Ok(chunk)
        }
        Err(error) => {
            if let Ok(mut broken) = broken.lock() {
                *broken = Some(error);
            }
            Err(std::io::Error::other("the body broke off"))
        }
    });
    let received = callboard_ingest::receive_upload(&ctx, &ticket, Box::pin(chunks)).await;
    let broken = broken.into_inner().ok().flatten();
    match (received, broken) {
        (Ok(()), _) => {
            Ok(Json(ReceivedAnswer { success: true, sha256: hex::encode(ticket.sha256), size: ticket.size }))
        }
        (Err(QueryError::Store(StoreError::Upload(_))), Some(error)) => Err(refused(error)),
        (Err(error), _) => Err(error.into()),
    }
}

fn refused(error: BodyError) -> ApiError {
    error.into_api("invalid_body")
}
