//! `completion/complete`: project names for the argument of the one prompt.
//! Everything else has nothing to complete.

use callboard_query::project_names;
use serde_json::{Map, Value, json};

use crate::clean::quoted;
use crate::context::Context;
use crate::methods::fault;
use crate::prompt;
use crate::rpc::RpcError;

const MAX_VALUES: usize = 100;

/// The answer of `completion/complete`.
///
/// # Errors
/// For an unknown prompt.
pub(crate) async fn complete(context: &Context, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let word = |object: &str, key: &str| {
        params.get(object).and_then(|object| object.get(key)).and_then(Value::as_str)
    };
    if word("ref", "type") != Some("ref/prompt") {
        return Ok(completion(&[], 0, false));
    }
    match word("ref", "name") {
        Some(prompt::NAME) => {}
        other => {
            let name = quoted(other.unwrap_or_default());
            return Err(RpcError::invalid_params(format!("Unknown prompt: {name}")));
        }
    }
    if word("argument", "name") != Some(prompt::ARGUMENT) {
        return Ok(completion(&[], 0, false));
    }
    let typed = word("argument", "value").unwrap_or_default().trim();
    let matches = project_names::matching(&context.query, context.scope(), typed).await;
    let matches = matches.map_err(|error| fault("completion", &error))?;
    let shown = &matches.names[..matches.names.len().min(MAX_VALUES)];
    let has_more = matches.total.is_none() || shown.len() < matches.names.len();
    Ok(completion(shown, matches.total.unwrap_or(matches.names.len()), has_more))
}

fn completion(values: &[String], total: usize, has_more: bool) -> Value {
    json!({"completion": {"values": values, "total": total, "hasMore": has_more}})
}
