//! What of the refusals of tools goes into the audit log: callers who may not
//! do what they asked for, and writes that could not be made.

use callboard_query::accounts::refused_access::{self, RefusedAccess};

use callboard_store::audit::Target;

use crate::context::Context;
use crate::error::ToolError;
use crate::tool::Tool;

/// Leaves a refusal in the audit log, when it belongs there.
pub(crate) async fn note(context: &Context, tool: &Tool, error: &ToolError) {
    if let Err(error) = write(context, tool, error).await {
        tracing::warn!(%error, "a refusal was not noted in the audit log");
    }
}

async fn write(context: &Context, tool: &Tool, error: &ToolError) -> Result<(), ToolError> {
    let identity = context.identity();
    if identity.user_id().is_none() {
        return Ok(());
    }
    let (is_access, code) = match error {
        ToolError::Role { .. } => (true, "insufficient_role".to_owned()),
        ToolError::NoAccess { .. } => (true, "project_access_denied".to_owned()),
        ToolError::KeyReads | ToolError::KeyNarrowed => (true, "key_scope_denied".to_owned()),
        _ if tool.hints.read_only => return Ok(()),
        ToolError::NotFound { entity, .. } => (false, format!("{}_not_found", entity.word())),
        ToolError::Argument(_) => (false, "invalid_argument".to_owned()),
        ToolError::Refused(_) => (false, "refused".to_owned()),
        ToolError::NotConfigured { .. } => (false, "not_configured".to_owned()),
        ToolError::Upstream { .. } => (false, "upstream_failed".to_owned()),
        ToolError::Busy { .. } => (false, "rate_limited".to_owned()),
        ToolError::ReadOnly => (false, "read_only".to_owned()),
        // A demo keeps no trace of its visitors; what is our fault is in the log of the process.
        ToolError::Demo | ToolError::Fault(_) => return Ok(()),
    };
    let state = &context.state;
    if !state.schema_is_current().await.map_err(ToolError::fault)? {
        return Ok(());
    }
    let actor = context.acting(tool.name).await?.actor();
    let subject = identity.credential().into_bytes();
    let refused = RefusedAccess { subject: &subject, actor, route: tool.name, code: &code };
    let limits = state.limits().await.map_err(ToolError::fault)?;
    let now = state.now();
    if is_access {
        refused_access::note(state.store(), &limits, refused, (target_of(error), None), now).await?;
    } else {
        refused_access::note_change(state.store(), &limits, refused, (target_of(error), None), now).await?;
    }
    Ok(())
}

/// What the arguments named, where the refusal is about it.
fn target_of(error: &ToolError) -> Option<Target> {
    let (ToolError::NoAccess { entity, id } | ToolError::NotFound { entity, id }) = error else {
        return None;
    };
    Some(Target { kind: entity.audit_kind(), id: id.parse().ok()? })
}
