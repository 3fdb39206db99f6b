//! JSON bodies of calls that carry a token: read leniently, so that only what
//! a call cannot do without is an error.

use callboard_domain::ingest::{Need, RunFields, Warnings, parse_object};
use callboard_http::ApiError;
use serde_json::{Map, Value};

fn token(body: &Map<String, Value>, key: &str) -> Option<String> {
    body.get(key).and_then(Value::as_str).map(str::to_owned)
}

/// A token under its key.
pub(crate) fn token_of(bytes: Vec<u8>, key: &str) -> Result<Option<String>, ApiError> {
    Ok(token(&parse_object(bytes)?, key))
}

/// The fields of a run, and what of them was left out.
pub(crate) fn fields(bytes: Vec<u8>, need: Need) -> Result<(RunFields, Warnings), ApiError> {
    Ok(RunFields::parse(&mut parse_object(bytes)?, need)?)
}

/// A token, the fields of a run beside it, and what of them was left out.
pub(crate) fn token_and_fields(
    bytes: Vec<u8>,
    key: &str,
    need: Need,
) -> Result<(Option<String>, RunFields, Warnings), ApiError> {
    let mut body = parse_object(bytes)?;
    let token = token(&body, key);
    let (fields, found) = RunFields::parse(&mut body, need)?;
    Ok((token, fields, found))
}
