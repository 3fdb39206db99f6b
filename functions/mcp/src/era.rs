//! The stateless era of the protocol (2026-07-28) on the same address: every
//! request names its version, what its client can do, and in headers what it
//! asks for, so that a gateway can route it without reading the body. There is
//! no `initialize`; `server/discover` says what is here.

use base64ct::{Base64, Encoding};
use http::HeaderMap;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::clean::quoted;
use crate::instructions::INSTRUCTIONS;
use crate::methods::{Outcome, capabilities, raw, server_info};
use crate::rpc::RpcError;
use crate::version;

/// Its version.
pub(crate) const VERSION: &str = "2026-07-28";
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";
/// How long a client may keep a list, milliseconds. Lists change with the
/// version of the service only.
const TTL_MS: u32 = 60 * 60 * 1000;

/// Whether a request is one of this era.
pub(crate) fn is_chosen(method: &str, params: &Map<String, Value>, headers: &HeaderMap) -> bool {
    let by_header = headers.get(version::HEADER).is_some_and(|value| value.as_bytes() == VERSION.as_bytes());
    named_version(params).is_some() || (by_header && method != "initialize")
}

fn named_version(params: &Map<String, Value>) -> Option<&Value> {
    params.get("_meta")?.get(VERSION_KEY)
}

/// Checks what every request of this era carries.
///
/// # Errors
/// For the first thing that is missing or does not agree.
pub(crate) fn check(method: &str, params: &Map<String, Value>, headers: &HeaderMap) -> Result<(), RpcError> {
    let version = named_version(params).and_then(Value::as_str);
    let version = version
        .ok_or_else(|| RpcError::bad_params(format!("`_meta` must name the version as `{VERSION_KEY}`.")))?;
    let capabilities = params.get("_meta").and_then(|meta| meta.get(CAPABILITIES_KEY));
    if !capabilities.is_some_and(Value::is_object) {
        return Err(RpcError::bad_params(format!("`_meta` must hold an object as `{CAPABILITIES_KEY}`.")));
    }
    agree(headers, version::HEADER, version)?;
    if version != VERSION {
        return Err(RpcError::unsupported_version(version, &supported()));
    }
    agree(headers, METHOD_HEADER, method)?;
    let name = match method {
        "tools/call" | "prompts/get" => params.get("name"),
        "resources/read" => params.get("uri"),
        _ => return Ok(()),
    };
    // Without a name there is nothing to agree with; the method says what is missing.
    match name.and_then(Value::as_str) {
        Some(name) => agree(headers, NAME_HEADER, name),
        None => Ok(()),
    }
}

/// Fails unless a header is there once and says the same as the body.
fn agree(headers: &HeaderMap, header: &'static str, body: &str) -> Result<(), RpcError> {
    let mut values = headers.get_all(header).iter();
    let (first, second) = (values.next(), values.next());
    let said = first.filter(|_| second.is_none()).and_then(|value| decoded(value.as_bytes()));
    if said.as_deref() == Some(body) {
        return Ok(());
    }
    let said = said.map_or_else(|| "nothing".to_owned(), |said| format!("`{}`", quoted(&said)));
    Err(RpcError::header_mismatch(format!(
        "The header {header} says {said} and the body `{}`.",
        quoted(body)
    )))
}

/// The text of a header; `=?base64?…?=` carries what headers cannot.
fn decoded(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim();
    let encoded = text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?="));
    match encoded {
        Some(encoded) => String::from_utf8(Base64::decode_vec(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}

/// Methods of the older era that are none here.
pub(crate) fn is_gone(method: &str) -> bool {
    matches!(method, "initialize" | "ping" | "logging/setLevel")
}

/// The answer of `server/discover`.
pub(crate) fn discover() -> Outcome {
    raw(&json!({
        "supportedVersions": supported(),
        "capabilities": capabilities(),
        "instructions": *INSTRUCTIONS,
    }))
}

fn supported() -> Vec<&'static str> {
    std::iter::once(VERSION).chain(version::SPOKEN).collect()
}

/// A result with what every result of this era says.
pub(crate) fn completed(method: &str, result: &RawValue) -> Outcome {
    let mut more = json!({
        "resultType": "complete",
        "_meta": {"io.modelcontextprotocol/serverInfo": server_info()},
    });
    let is_cacheable = method == "server/discover" || method == "resources/read" || method.ends_with("/list");
    if is_cacheable {
        more["ttlMs"] = json!(TTL_MS);
        more["cacheScope"] = json!("private");
    }
    // Both are objects, and neither has a key of the other, so their texts can be joined.
    let more = more.to_string();
    let joined = match result.get().strip_prefix('{').map(str::trim_start) {
        Some(rest) if !rest.starts_with('}') => format!("{},{rest}", &more[..more.len() - 1]),
        _ => more,
    };
    raw(&RawValue::from_string(joined).map_err(|error| crate::methods::fault("result", &error))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(extra: &[(&str, Value)]) -> Map<String, Value> {
        let mut params = json!({"_meta": {VERSION_KEY: VERSION, CAPABILITIES_KEY: {}}});
        for (name, value) in extra {
            params[*name] = value.clone();
        }
        params.as_object().unwrap().clone()
    }

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn the_headers_say_what_the_body_says() {
        let version = (version::HEADER, VERSION);
        let call = params(&[("name", json!("get_run"))]);
        let good: [&[(&str, &str)]; 2] = [
            &[version, (METHOD_HEADER, "tools/call"), (NAME_HEADER, "get_run")],
            &[version, (METHOD_HEADER, "tools/call"), (NAME_HEADER, "=?base64?Z2V0X3J1bg==?=")],
        ];
        for pairs in good {
            assert_eq!(check("tools/call", &call, &headers(pairs)), Ok(()), "{pairs:?}");
        }
        let bad: [(&[(&str, &str)], i32); 6] = [
            (&[], -32020),
            (&[(version::HEADER, "2025-06-18")], -32020),
            (&[version], -32020),
            (&[version, (METHOD_HEADER, "tools/list")], -32020),
            (&[version, (METHOD_HEADER, "tools/call")], -32020),
            (&[version, (METHOD_HEADER, "tools/call"), (NAME_HEADER, "=?base64?x?=")], -32020),
        ];
        for (pairs, code) in bad {
            let error = check("tools/call", &call, &headers(pairs)).unwrap_err();
            assert_eq!(error.code(), code, "{pairs:?}");
        }
        let unnamed = json!({"_meta": {CAPABILITIES_KEY: {}}}).as_object().unwrap().clone();
        assert_eq!(check("tools/list", &unnamed, &headers(&[version])).unwrap_err().code(), -32602);
        let unable = json!({"_meta": {VERSION_KEY: VERSION}}).as_object().unwrap().clone();
        assert_eq!(check("tools/list", &unable, &headers(&[version])).unwrap_err().code(), -32602);
        let newer =
            json!({"_meta": {VERSION_KEY: "2099-01-01", CAPABILITIES_KEY: {}}}).as_object().unwrap().clone();
        let newer = check("tools/list", &newer, &headers(&[(version::HEADER, "2099-01-01")])).unwrap_err();
        assert_eq!(newer.code(), -32022);
    }

    #[test]
    fn a_result_gains_what_the_era_says_and_keeps_its_own() {
        let completed = |method: &str, result: &str| {
            let result = RawValue::from_string(result.to_owned()).unwrap();
            serde_json::from_str::<Value>(completed(method, &result).unwrap().get()).unwrap()
        };
        let list = completed("tools/list", r#"{"tools":[1]}"#);
        assert_eq!((&list["tools"], &list["cacheScope"]), (&json!([1]), &json!("private")));
        assert!(list["ttlMs"].is_u64());
        let empty = completed("completion/complete", "{}");
        assert_eq!((&empty["resultType"], empty.get("ttlMs")), (&json!("complete"), None));
    }
}
