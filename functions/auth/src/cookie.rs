//! The session cookie's name and attributes. With authentication off its
//! value is a word; no version of this service opens anything with it.

use callboard_auth::Scheme;
use http::HeaderValue;

const LIFETIME_SECONDS: u32 = 7 * 24 * 60 * 60;
/// Not a sealed session, and too short to be mistaken for one.
const INERT: &str = "authentication-off";

/// The cookie of a login with authentication off.
pub(crate) fn inert(scheme: Scheme) -> HeaderValue {
    written(scheme, INERT, LIFETIME_SECONDS)
}

/// The cookie that makes the browser forget it.
pub(crate) fn cleared(scheme: Scheme) -> HeaderValue {
    written(scheme, "", 0)
}

fn written(scheme: Scheme, value: &str, max_age: u32) -> HeaderValue {
    let (prefix, secure) = match scheme {
        Scheme::Https => ("__Host-", "; Secure"),
        Scheme::Http => ("", ""),
    };
    let text =
        format!("{prefix}svc_session={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
    // The text is visible ASCII.
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_bound_to_this_host_where_the_connection_is_safe() {
        assert_eq!(
            inert(Scheme::Https),
            "__Host-svc_session=authentication-off; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(cleared(Scheme::Http), "svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax");
    }
}
