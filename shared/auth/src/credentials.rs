//! What a request presents to be recognised by: one credential, chosen by
//! fixed rules, so that two of them can never be played against each other.

use std::borrow::Cow;

use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderName};

use crate::routes::{Access, Credentials, Route};

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const KEY_PREFIX: &str = "pd_";

/// The one credential of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Presented {
    /// None, or none this route looks at.
    Nothing,
    /// The text of an API key; whether it has the form of one is not decided
    /// yet.
    Key(String),
    /// The cookies, among which there may be a session.
    Cookies,
}

/// More than one credential of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Send the {0} header once; this request has it several times.")]
pub struct Ambiguous(&'static str);

/// Chooses the credential of a request to a route: `Authorization: Bearer
/// pd_…`, else `X-API-Key`, else the cookies where the route reads them. A
/// proxy's own `Authorization` is left alone, except on routes that take
/// credentials from headers only: what stands there is meant for us.
///
/// # Errors
/// [`Ambiguous`] when a header that carries keys is there twice.
pub fn presented(route: &Route, headers: &HeaderMap) -> Result<Presented, Ambiguous> {
    let reads_accounts = matches!(
        route.access,
        Access::Public | Access::Roles(_) | Access::RolesOrRunToken(_) | Access::BodyTokenOrRoles(_)
    );
    if !reads_accounts {
        return Ok(Presented::Nothing);
    }
    let authorization = single(headers, &AUTHORIZATION, "Authorization")?;
    let api_key = single(headers, &API_KEY, "X-API-Key")?;
    let is_strict = route.credentials == Credentials::HeaderOnly;
    let authorization = authorization.as_deref();
    let bearer = authorization.and_then(bearer_token);
    let key = match (bearer, authorization) {
        (Some(token), _) if is_strict || is_meant_as_key(token) => Some(token),
        // What a proxy in front asked for is no key, where there is one beside it.
        (None, Some(other)) if is_strict && api_key.is_none() => Some(other),
        _ => api_key.as_deref(),
    };
    Ok(match key {
        Some(key) => Presented::Key(key.to_owned()),
        None if is_strict => Presented::Nothing,
        None => Presented::Cookies,
    })
}

fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
    spelled: &'static str,
) -> Result<Option<Cow<'h, str>>, Ambiguous> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    if values.next().is_some() {
        return Err(Ambiguous(spelled));
    }
    // A value that is not text is presented as what opens nothing, and not as nothing.
    Ok(first.map(|value| String::from_utf8_lossy(value.as_bytes())))
}

/// The token of a bearer, behind any number of blanks (RFC 9110, section 11.4).
fn bearer_token(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once([' ', '\t'])?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim_start())
}

/// Whether a token is one of ours, well written or not. Others are a proxy's.
fn is_meant_as_key(token: &str) -> bool {
    token.get(..KEY_PREFIX.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(KEY_PREFIX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::RouteId;
    use http::HeaderValue;

    fn presented_on(route: RouteId, pairs: &[(&str, &str)]) -> Result<Presented, Ambiguous> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            let name: HeaderName = name.parse().unwrap();
            headers.append(name, HeaderValue::from_str(value).unwrap());
        }
        presented(route.route(), &headers)
    }

    #[test]
    fn the_bearer_key_comes_before_the_header_and_the_header_before_the_cookie() {
        let key = |text: &str| Ok(Presented::Key(text.to_owned()));
        let all = [("authorization", "bearer pd_a"), ("x-api-key", "pd_b"), ("cookie", "svc_session=x")];
        assert_eq!(presented_on(RouteId::GetProject, &all), key("pd_a"));
        assert_eq!(presented_on(RouteId::GetProject, &all[1..]), key("pd_b"));
        assert_eq!(presented_on(RouteId::GetProject, &all[2..]), Ok(Presented::Cookies));
        assert_eq!(presented_on(RouteId::GetProject, &[("x-api-key", "")]), key(""));
    }

    #[test]
    fn a_key_that_is_written_badly_is_one_that_opens_nothing() {
        for (value, token) in [
            (&b"Bearer  pd_a"[..], "pd_a"),
            (b"Bearer\tpd_a", "pd_a"),
            (b"bearer PD_a", "PD_a"),
            (b"Bearer Pd_", "Pd_"),
            (b"Bearer pd_\xff", "pd_\u{fffd}"),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, HeaderValue::from_bytes(value).unwrap());
            headers.insert("cookie", HeaderValue::from_static("svc_session=x"));
            let found = presented(RouteId::GetProject.route(), &headers);
            assert_eq!(found, Ok(Presented::Key(token.to_owned())), "{value:?}");
        }
    }

    #[test]
    fn a_proxys_own_authorization_is_ignored_outside_the_agent_endpoint() {
        let proxy = [("authorization", "Basic YTpi")];
        assert_eq!(presented_on(RouteId::GetProject, &proxy), Ok(Presented::Cookies));
        assert_eq!(presented_on(RouteId::McpMessages, &proxy), Ok(Presented::Key("Basic YTpi".to_owned())));
        assert_eq!(
            presented_on(RouteId::McpMessages, &[("cookie", "svc_session=x")]),
            Ok(Presented::Nothing)
        );
    }

    #[test]
    fn two_of_a_kind_are_refused_and_grants_look_at_no_account() {
        let twice = [("x-api-key", "pd_a"), ("x-api-key", "pd_b")];
        assert!(presented_on(RouteId::GetProject, &twice).is_err());
        assert_eq!(presented_on(RouteId::GrantedFile, &twice), Ok(Presented::Nothing));
    }
}
