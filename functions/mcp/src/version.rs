//! Protocol versions: what `initialize` answers, and which the header of
//! later requests may name.

use http::HeaderMap;

use crate::clean::quoted;
use crate::era;
use crate::rpc::RpcError;

/// The header clients name the negotiated version in.
pub(crate) const HEADER: &str = "mcp-protocol-version";
/// Answered to clients that ask for a version this server does not speak.
const LATEST: &str = "2025-06-18";
/// The versions this server speaks, newest first.
pub(crate) const SPOKEN: [&str; 3] = [LATEST, "2025-03-26", "2024-11-05"];
/// Versions the header may name: newer clients keep theirs in it although
/// [`LATEST`] was negotiated.
const ACCEPTED: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// The version `initialize` answers with.
pub(crate) fn negotiate(asked: Option<&str>) -> &'static str {
    SPOKEN.into_iter().find(|spoken| asked == Some(*spoken)).unwrap_or(LATEST)
}

/// Checks the header of a request that is not `initialize`.
///
/// # Errors
/// For a version this server does not accept.
pub(crate) fn check_header(headers: &HeaderMap) -> Result<(), RpcError> {
    let Some(value) = headers.get(HEADER) else { return Ok(()) };
    let named = String::from_utf8_lossy(value.as_bytes());
    if ACCEPTED.contains(&&*named) || named == era::VERSION {
        return Ok(());
    }
    Err(RpcError::invalid_request(format!(
        "Unsupported MCP-Protocol-Version: {} (supported: {})",
        quoted(&named),
        std::iter::once(era::VERSION).chain(ACCEPTED).collect::<Vec<_>>().join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_versions_are_echoed_and_all_others_get_the_latest() {
        for version in ["2025-06-18", "2025-03-26", "2024-11-05"] {
            assert_eq!(negotiate(Some(version)), version);
        }
        for other in
            [None, Some("2025-11-25"), Some("2026-07-28"), Some("1999-01-01"), Some(""), Some("2025-06-18 ")]
        {
            assert_eq!(negotiate(other), "2025-06-18", "{other:?}");
        }
    }

    #[test]
    fn the_header_may_be_absent_or_name_an_accepted_version() {
        let check = |value: &str| {
            check_header(&HeaderMap::from_iter([(HEADER.parse().unwrap(), value.parse().unwrap())]))
        };
        assert_eq!(check_header(&HeaderMap::new()), Ok(()));
        for version in ACCEPTED {
            assert_eq!(check(version), Ok(()), "{version}");
        }
        assert_eq!(check("2026-07-28"), Ok(()));
        for version in ["1999-01-01", "2026-07-29", "", "2025-06-18,2025-03-26"] {
            assert!(check(version).is_err(), "{version}");
        }
    }
}
