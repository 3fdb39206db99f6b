//! The cookies of the service: their names, their attributes, and how they
//! are read. Values are sealed with the cookie's purpose and name, so a value
//! under another name opens nothing.

use callboard_domain::time::Timestamp;
use http::header::COOKIE;
use http::{HeaderMap, HeaderValue};

use crate::keys::{KeyRing, Opened, Purpose, SealingFailed, Secrets};
use crate::origin::Scheme;

/// Longer values are not looked at.
const MAX_VALUE_CHARS: usize = 512;

/// When cookies are marked for safe connections only (`SERVICE_COOKIE_SECURE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecureCookies {
    /// On connections that are safe.
    #[default]
    Auto,
    /// On every connection.
    Always,
    /// On none.
    Never,
}

impl SecureCookies {
    /// The word of the setting.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Always => "always",
            Self::Never => "never",
        }
    }

    /// The form of cookies on a connection of this scheme.
    #[must_use]
    pub const fn form(self, scheme: Scheme) -> CookieForm {
        match (self, scheme) {
            (Self::Always, _) | (Self::Auto, Scheme::Https) => CookieForm::Secure,
            (Self::Never, _) | (Self::Auto, Scheme::Http) => CookieForm::Plain,
        }
    }
}

/// How cookies are named and marked on one connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieForm {
    /// `Secure`, and bound to this host by the prefix `__Host-`.
    Secure,
    /// Neither: browsers would not keep such a cookie of an unsafe connection.
    Plain,
}

/// The cookies there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CookieKind {
    /// Who is signed in.
    Session,
    /// A sign-in elsewhere that has begun.
    OAuth,
    /// A browser an account has signed in from.
    Device,
    /// The name of a sign-in that was refused, for a minute: its form is shown again with it.
    RefusedName,
}

impl CookieKind {
    /// The cookie's name.
    #[must_use]
    pub const fn name(self, form: CookieForm) -> &'static str {
        match (self, form) {
            (Self::Session, CookieForm::Secure) => "__Host-svc_session",
            (Self::Session, CookieForm::Plain) => "svc_session",
            (Self::OAuth, CookieForm::Secure) => "__Host-svc_oauth",
            (Self::OAuth, CookieForm::Plain) => "svc_oauth",
            (Self::Device, CookieForm::Secure) => "__Host-svc_device",
            (Self::Device, CookieForm::Plain) => "svc_device",
            (Self::RefusedName, CookieForm::Secure) => "__Host-svc_refused_name",
            (Self::RefusedName, CookieForm::Plain) => "svc_refused_name",
        }
    }

    /// How long it lasts, seconds.
    #[must_use]
    pub const fn lifetime_seconds(self) -> i64 {
        match self {
            Self::Session => 7 * 24 * 60 * 60,
            Self::OAuth => 10 * 60,
            Self::Device => 90 * 24 * 60 * 60,
            Self::RefusedName => 60,
        }
    }

    /// The last moment of a cookie made now.
    #[must_use]
    pub const fn expiry(self, now: Timestamp) -> Timestamp {
        Timestamp(now.millis() + self.lifetime_seconds() * 1000)
    }

    const fn purpose(self) -> Purpose {
        match self {
            Self::Session => Purpose::SESSION,
            Self::OAuth => Purpose::OAUTH,
            Self::Device => Purpose::DEVICE,
            Self::RefusedName => Purpose::REFUSED_NAME,
        }
    }

    /// The header that sets the cookie. `value` is visible ASCII without `;`.
    #[must_use]
    pub fn set(self, form: CookieForm, value: &str) -> HeaderValue {
        self.written(form, value, self.lifetime_seconds())
    }

    /// The header that makes the browser forget it.
    #[must_use]
    pub fn clear(self, form: CookieForm) -> HeaderValue {
        self.written(form, "", 0)
    }

    fn written(self, form: CookieForm, value: &str, max_age: i64) -> HeaderValue {
        let secure = match form {
            CookieForm::Secure => "; Secure",
            CookieForm::Plain => "",
        };
        let name = self.name(form);
        let text = format!("{name}={value}; Path=/; Max-Age={max_age}; HttpOnly; SameSite=Lax{secure}");
        // Sealed values are base64url: the text is visible ASCII.
        HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
    }

    /// The value a request carries; none when it carries several of the name,
    /// because then somebody else set one of them.
    #[must_use]
    pub fn read(self, form: CookieForm, headers: &HeaderMap) -> Option<&str> {
        let name = self.name(form);
        let mut values = headers
            .get_all(COOKIE)
            .iter()
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter_map(|(found, value)| (found == name).then_some(value));
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }
}

/// What a cookie says once it is opened.
pub trait CookieClaims: Sized {
    /// The cookie it is for.
    const KIND: CookieKind;

    /// The bytes to seal.
    fn encode(&self) -> Vec<u8>;

    /// Reads [`CookieClaims::encode`] back.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// The moment from which it says nothing.
    fn expires_at(&self) -> Timestamp;
}

/// Seals and opens cookies.
#[derive(Debug, Clone)]
pub struct SealedCookies {
    session: KeyRing,
    oauth: KeyRing,
    device: KeyRing,
    refused_name: KeyRing,
}

impl SealedCookies {
    /// Derives the cookie keys of these secrets: the first seals, all open.
    #[must_use]
    pub fn new(secrets: &Secrets) -> Self {
        let ring = |kind: CookieKind| KeyRing::derive(secrets, kind.purpose());
        Self {
            session: ring(CookieKind::Session),
            oauth: ring(CookieKind::OAuth),
            device: ring(CookieKind::Device),
            refused_name: ring(CookieKind::RefusedName),
        }
    }

    const fn ring(&self, kind: CookieKind) -> &KeyRing {
        match kind {
            CookieKind::Session => &self.session,
            CookieKind::OAuth => &self.oauth,
            CookieKind::Device => &self.device,
            CookieKind::RefusedName => &self.refused_name,
        }
    }

    /// The header that sets the cookie of these claims.
    ///
    /// # Errors
    /// [`SealingFailed`].
    pub fn set<C: CookieClaims>(&self, claims: &C, form: CookieForm) -> Result<HeaderValue, SealingFailed> {
        let name = C::KIND.name(form);
        let value = self.ring(C::KIND).seal_text(&claims.encode(), name.as_bytes())?;
        if value.len() > MAX_VALUE_CHARS {
            return Err(SealingFailed::TooLong);
        }
        Ok(C::KIND.set(form, &value))
    }

    /// The claims of the one cookie of this kind that a request carries, when
    /// it is ours, unaltered and in time.
    #[must_use]
    pub fn open<C: CookieClaims>(
        &self,
        headers: &HeaderMap,
        form: CookieForm,
        now: Timestamp,
    ) -> Option<Opened<C>> {
        let value = C::KIND.read(form, headers)?;
        let name = C::KIND.name(form);
        let Opened { value, by_old_key } =
            self.ring(C::KIND).open_text(value, name.as_bytes(), MAX_VALUE_CHARS)?;
        let claims = C::decode(&value)?;
        (now < claims.expires_at()).then_some(Opened { value: claims, by_old_key })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn request(cookies: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in cookies {
            headers.append(COOKIE, HeaderValue::from_str(line).unwrap());
        }
        headers
    }

    #[test]
    fn a_cookie_is_bound_to_this_host_where_the_connection_is_safe() {
        assert_eq!(
            CookieKind::Session.set(CookieForm::Secure, "value"),
            "__Host-svc_session=value; Path=/; Max-Age=604800; HttpOnly; SameSite=Lax; Secure"
        );
        assert_eq!(
            CookieKind::Session.clear(CookieForm::Plain),
            "svc_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax"
        );
        assert_eq!(SecureCookies::Auto.form(Scheme::Https), CookieForm::Secure);
        assert_eq!(SecureCookies::Auto.form(Scheme::Http), CookieForm::Plain);
        assert_eq!(SecureCookies::Always.form(Scheme::Http), CookieForm::Secure);
        assert_eq!(SecureCookies::Never.form(Scheme::Https), CookieForm::Plain);
    }

    #[test]
    fn one_cookie_of_the_name_is_read_and_two_are_none() {
        let read =
            |lines: &[&str]| CookieKind::Session.read(CookieForm::Plain, &request(lines)).map(str::to_owned);
        assert_eq!(read(&["a=b; svc_session=x; c=d"]).as_deref(), Some("x"));
        assert_eq!(read(&["a=b", "svc_session=x=y"]).as_deref(), Some("x=y"));
        assert_eq!(read(&["svc_session=x; svc_session=x"]), None);
        assert_eq!(read(&["svc_session=x", "svc_session=y"]), None);
        assert_eq!(read(&["SVC_SESSION=x; __Host-svc_session=y; svc_session"]), None);
        assert_eq!(read(&[]), None);
    }

    proptest! {
        #[test]
        fn any_cookie_line_is_read_without_a_panic(line in "[ -~]{0,200}") {
            let headers = request(&[&line]);
            let opened = SealedCookies::new(&Secrets::default())
                .open::<crate::session_cookie::SessionClaims>(&headers, CookieForm::Plain, Timestamp(0));
            prop_assert!(opened.is_none());
        }
    }
}
