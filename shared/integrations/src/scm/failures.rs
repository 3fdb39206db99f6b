//! What the failures of a provider mean.

use callboard_domain::time::Timestamp;
use http::StatusCode;
use http::header::{HeaderMap, RETRY_AFTER};
use serde::Deserialize;

use super::error::ScmError;
use super::repository::{Provider, Repository};

/// Times in headers: seconds since 1970.
const RESET_HEADERS: [&str; 2] = ["x-ratelimit-reset", "ratelimit-reset"];
const REMAINING_HEADERS: [&str; 2] = ["x-ratelimit-remaining", "ratelimit-remaining"];
/// What GitHub would have accepted: `contents=read`.
const ACCEPTED_PERMISSIONS: &str = "x-accepted-github-permissions";
/// Set when an organisation wants the token to be authorised for its SAML sign-in.
const SINGLE_SIGN_ON: &str = "x-github-sso";
/// Characters of a permission that are shown.
const MAX_PERMISSION_CHARS: usize = 60;

/// The parts of error bodies that name a permission.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Body {
    message: serde_json::Value,
    error: serde_json::Value,
    scope: Option<String>,
}

/// The error that an answer without success stands for.
pub(super) fn failure(
    repository: &Repository,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
    now: Timestamp,
) -> ScmError {
    let provider = repository.provider();
    let is_limited = status == StatusCode::TOO_MANY_REQUESTS
        || (status == StatusCode::FORBIDDEN
            && (has_no_requests_left(headers) || headers.contains_key(RETRY_AFTER)));
    if is_limited {
        return ScmError::RateLimited { provider, until: answers_again_at(headers, now) };
    }
    match status {
        StatusCode::UNAUTHORIZED => ScmError::TokenRejected { provider },
        StatusCode::FORBIDDEN => {
            ScmError::MissingPermission { provider, permission: permission(provider, headers, body) }
        }
        StatusCode::NOT_FOUND => {
            ScmError::RepositoryNotFound { provider, repository: repository.path().to_owned() }
        }
        other => ScmError::Failed { provider, status: other.as_u16() },
    }
}

fn number(headers: &HeaderMap, names: &[&str]) -> Option<i64> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok()?.trim().parse().ok())
}

fn has_no_requests_left(headers: &HeaderMap) -> bool {
    number(headers, &REMAINING_HEADERS) == Some(0)
}

/// When a limit is over: `Retry-After` in seconds, else the end of the window.
fn answers_again_at(headers: &HeaderMap, now: Timestamp) -> Option<Timestamp> {
    let after = number(headers, &[RETRY_AFTER.as_str()]);
    let seconds = match after {
        Some(after) => now.millis().div_euclid(1_000).checked_add(after.max(0))?,
        None => number(headers, &RESET_HEADERS)?,
    };
    Timestamp::within_bounds(seconds.checked_mul(1_000)?)
}

/// The permission that is missing, in the provider's words where it says so.
fn permission(provider: Provider, headers: &HeaderMap, body: &[u8]) -> String {
    let body: Body = serde_json::from_slice(body).unwrap_or_default();
    let named = match provider {
        Provider::GitHub if headers.contains_key(SINGLE_SIGN_ON) => Some("SAML single sign-on".to_owned()),
        Provider::GitHub => header_text(headers, ACCEPTED_PERMISSIONS),
        Provider::GitLab => body.scope,
        // `token does not have at least one of required scope(s): [read:repository]`
        Provider::Gitea => {
            let message = body.message.as_str().unwrap_or_default();
            message
                .rsplit_once('[')
                .and_then(|(_, rest)| rest.split_once(']'))
                .map(|(scopes, _)| scopes.to_owned())
        }
        Provider::Bitbucket => body.error["detail"]["required"][0].as_str().map(str::to_owned),
    };
    let is_name = |name: &String| {
        !name.is_empty()
            && name.chars().count() <= MAX_PERMISSION_CHARS
            && name.chars().all(|char| char.is_ascii_alphanumeric() || " :=_-,;".contains(char))
    };
    named.filter(is_name).unwrap_or_else(|| usual_permission(provider).to_owned())
}

/// The same error; where the provider does not say which permission is missing, it is the one that writing takes.
pub(super) fn lacks(error: ScmError, needed: &str) -> ScmError {
    match error {
        ScmError::MissingPermission { provider, permission } if permission == usual_permission(provider) => {
            ScmError::MissingPermission { provider, permission: needed.to_owned() }
        }
        error => error,
    }
}

fn header_text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
}

/// What reading commits takes.
const fn usual_permission(provider: Provider) -> &'static str {
    match provider {
        Provider::GitHub => "contents=read",
        Provider::GitLab => "read_api",
        Provider::Gitea => "read:repository",
        Provider::Bitbucket => "repository",
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: Timestamp = Timestamp(1_800_000_000_000);

    fn judged(
        provider: Provider,
        status: u16,
        headers: &[(&'static str, &'static str)],
        body: &str,
    ) -> ScmError {
        let repository = Repository::from_address("https://git.example.org/acme/shop", provider).unwrap();
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, HeaderValue::from_static(value));
        }
        failure(&repository, StatusCode::from_u16(status).unwrap(), &map, body.as_bytes(), NOW)
    }

    #[test]
    fn limits_say_until_when() {
        let until = |error: ScmError| match error {
            ScmError::RateLimited { until, .. } => until.map(Timestamp::millis),
            other => panic!("{other:?}"),
        };
        let exhausted = [("x-ratelimit-remaining", "0"), ("x-ratelimit-reset", "1800000600")];
        assert_eq!(until(judged(Provider::GitHub, 403, &exhausted, "")), Some(1_800_000_600_000));
        assert_eq!(
            until(judged(Provider::GitHub, 403, &[("retry-after", "60")], "")),
            Some(1_800_000_060_000)
        );
        assert_eq!(
            until(judged(Provider::GitLab, 429, &[("ratelimit-reset", "1800000600")], "")),
            Some(1_800_000_600_000)
        );
        assert_eq!(until(judged(Provider::Bitbucket, 429, &[], "")), None);
        assert_eq!(until(judged(Provider::Gitea, 429, &[("retry-after", "99999999999999999")], "")), None);
        let limited = judged(Provider::GitHub, 403, &exhausted, "").to_string();
        assert_eq!(limited, "GitHub limits requests of this access token until 2027-01-15 08:10 UTC.");
    }

    #[test]
    fn a_missing_permission_is_named_as_the_provider_does() {
        let named = |error: ScmError| match error {
            ScmError::MissingPermission { permission, .. } => permission,
            other => panic!("{other:?}"),
        };
        let github = [("x-accepted-github-permissions", "contents=read")];
        assert_eq!(named(judged(Provider::GitHub, 403, &github, "{}")), "contents=read");
        assert_eq!(
            named(judged(Provider::GitHub, 403, &[("x-github-sso", "required; url=x")], "")),
            "SAML single sign-on"
        );
        let body = r#"{"error":"insufficient_scope","scope":"api read_api"}"#;
        assert_eq!(named(judged(Provider::GitLab, 403, &[], body)), "api read_api");
        let body =
            r#"{"message":"token does not have at least one of required scope(s): [read:repository]"}"#;
        assert_eq!(named(judged(Provider::Gitea, 403, &[], body)), "read:repository");
        let body = r#"{"error":{"detail":{"required":["repository"],"granted":[]}}}"#;
        assert_eq!(named(judged(Provider::Bitbucket, 403, &[], body)), "repository");
        // What a host says is not repeated unless it is a name.
        let body = r#"{"message":"[<script>alert(1)</script>]"}"#;
        assert_eq!(named(judged(Provider::Gitea, 403, &[], body)), "read:repository");
        assert!(matches!(judged(Provider::GitHub, 503, &[], ""), ScmError::Failed { status: 503, .. }));
    }
}
