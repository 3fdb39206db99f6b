//! The browser boundary: which Host names a request may use and which pages
//! may send unsafe requests. Pure functions over headers and settings;
//! command-line clients send none of these headers and pass.

use http::HeaderMap;
use http::header::{HOST, HeaderName, ORIGIN};

use crate::origin::{Origin, Scheme, ip_literal};

const FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What the gates compare with.
#[derive(Debug, Clone, Default)]
pub struct Gate {
    /// The public address of the service.
    pub site: Option<Origin>,
    /// Origins that serve untrusted content: never allowed to call.
    pub sandbox: Vec<Origin>,
    /// Further host names the service answers to.
    pub allowed_hosts: Vec<String>,
    /// Further origins whose pages may send unsafe requests.
    pub allowed_origins: Vec<Origin>,
    /// Further origins whose pages may call the MCP endpoint.
    pub mcp_origins: Vec<Origin>,
    /// Whether pages of every origin may call it. Only where callers have to
    /// present a key, which no page does by itself.
    pub mcp_any_origin: bool,
    /// Whether pages of the origin a request was sent to may call it. Where
    /// callers present nothing, the Host header proves nothing.
    pub mcp_own_origin: bool,
    /// Whether only this machine reaches the listener.
    pub bound_to_loopback: bool,
    /// Whether a proxy in front sets the forwarded headers. Where only some
    /// senders may, those of others were taken away before.
    pub trust_proxy: bool,
    /// Whether the platform in front ends TLS itself.
    pub behind_tls: bool,
}

/// Why a gate refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum GateRefusal {
    /// The service does not answer under this name (421).
    #[error(
        "This service does not answer under that host name; SERVICE_SITE_URL and SERVICE_ALLOWED_HOSTS name the ones it does."
    )]
    Host,
    /// The page that sent this is not one of ours (403).
    #[error(
        "Pages of another origin may not do this; SERVICE_ALLOWED_ORIGINS, for /mcp SERVICE_MCP_ALLOWED_ORIGINS, names those that may."
    )]
    Origin,
}

impl GateRefusal {
    /// The error code on the wire.
    #[must_use]
    pub const fn code(self) -> &'static str {
        match self {
            Self::Host => "host_not_allowed",
            Self::Origin => "origin_not_allowed",
        }
    }
}

impl Gate {
    /// The origin the client believes it talks to: the Host header (or what a
    /// trusted proxy forwarded) with the scheme of the outermost connection.
    /// `None` when there is no usable Host, or more than one.
    #[must_use]
    pub fn effective_origin(&self, headers: &HeaderMap) -> Option<Origin> {
        let authority = match self.trust_proxy.then(|| last_element(headers, &FORWARDED_HOST)).flatten() {
            Some(forwarded) => forwarded,
            None => single(headers, &HOST)?,
        };
        let scheme = self.effective_scheme(headers, authority);
        Origin::of_authority(scheme, authority)
    }

    fn effective_scheme(&self, headers: &HeaderMap, authority: &str) -> Scheme {
        if self.behind_tls {
            return Scheme::Https;
        }
        if self.trust_proxy
            && let Some(scheme) = last_element(headers, &FORWARDED_PROTO)
        {
            return if scheme.eq_ignore_ascii_case("https") { Scheme::Https } else { Scheme::Http };
        }
        // A host of ours with an https address is reached through something that ends TLS.
        let is_ours = self.site.iter().chain(&self.sandbox).any(|ours| {
            ours.scheme() == Scheme::Https
                && Origin::of_authority(Scheme::Https, authority)
                    .is_some_and(|named| named.host() == ours.host())
        });
        if is_ours { Scheme::Https } else { Scheme::Http }
    }

    /// Refuses names a rebinding attack could use. Active on a loopback bind
    /// or when the service knows its names.
    ///
    /// # Errors
    /// [`GateRefusal::Host`].
    pub fn check_host(&self, effective: Option<&Origin>) -> Result<(), GateRefusal> {
        let active = self.bound_to_loopback || self.site.is_some() || !self.allowed_hosts.is_empty();
        if !active {
            return Ok(());
        }
        let host = effective.map(Origin::host).ok_or(GateRefusal::Host)?;
        let ours = self.site.iter().chain(&self.sandbox).any(|origin| origin.host() == host)
            || self.allowed_hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(host));
        // No public name resolves to these, so no foreign page can be served under them.
        let local = ip_literal(host).is_some() || host.ends_with(".localhost") || !host.contains('.');
        if ours || local { Ok(()) } else { Err(GateRefusal::Host) }
    }

    /// Refuses unsafe requests that a browser sends for a foreign page.
    ///
    /// # Errors
    /// [`GateRefusal::Origin`].
    pub fn check_origin(&self, headers: &HeaderMap, effective: Option<&Origin>) -> Result<(), GateRefusal> {
        match presented_origin(headers)? {
            Some(origin) if self.sandbox.contains(&origin) => Err(GateRefusal::Origin),
            Some(origin)
                if effective == Some(&origin)
                    || self.site.as_ref() == Some(&origin)
                    || self.allowed_origins.contains(&origin) =>
            {
                Ok(())
            }
            Some(_) => Err(GateRefusal::Origin),
            None => match headers.get(FETCH_SITE).map(http::HeaderValue::as_bytes) {
                None | Some(b"same-origin" | b"none") => Ok(()),
                Some(_) => Err(GateRefusal::Origin),
            },
        }
    }

    /// The MCP endpoint's list: no Origin, the site, loopback pages of any
    /// port and the configured ones; where callers have to present a key, also
    /// the origin the request was sent to. Gives back the origin to name in
    /// CORS headers.
    ///
    /// # Errors
    /// [`GateRefusal::Origin`].
    pub fn check_mcp_origin(&self, headers: &HeaderMap) -> Result<Option<Origin>, GateRefusal> {
        let Some(origin) = presented_origin(headers)? else {
            return Ok(None);
        };
        let allowed = self.site.as_ref() == Some(&origin)
            || origin.is_loopback()
            || self.mcp_origins.contains(&origin)
            || self.mcp_any_origin
            || (self.mcp_own_origin && self.effective_origin(headers).as_ref() == Some(&origin));
        if allowed && !self.sandbox.contains(&origin) { Ok(Some(origin)) } else { Err(GateRefusal::Origin) }
    }

    /// Whether a request was sent to the configured sandbox origin.
    #[must_use]
    pub fn is_sandbox(&self, effective: Option<&Origin>) -> bool {
        effective.is_some_and(|origin| {
            self.sandbox
                .iter()
                .any(|sandbox| sandbox.host() == origin.host() && sandbox.port() == origin.port())
        })
    }
}

/// The Origin header; `null`, several or an unreadable one are refused.
fn presented_origin(headers: &HeaderMap) -> Result<Option<Origin>, GateRefusal> {
    if !headers.contains_key(ORIGIN) {
        return Ok(None);
    }
    single(headers, &ORIGIN).and_then(Origin::parse).map(Some).ok_or(GateRefusal::Origin)
}

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?;
    if values.next().is_some() { None } else { value.to_str().ok() }
}

/// The element the nearest proxy appended.
fn last_element<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let line = headers.get_all(name).iter().next_back()?.to_str().ok()?;
    line.rsplit(',').next().map(str::trim).filter(|element| !element.is_empty())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
            .collect()
    }

    fn local() -> Gate {
        Gate {
            bound_to_loopback: true,
            sandbox: vec![Origin::parse("http://127.0.0.1:3001").unwrap()],
            ..Gate::default()
        }
    }

    fn site() -> Gate {
        Gate { site: Origin::parse("https://tests.example.org"), ..Gate::default() }
    }

    fn host_allowed(gate: &Gate, host: &str) -> bool {
        gate.check_host(gate.effective_origin(&headers(&[("host", host)])).as_ref()).is_ok()
    }

    #[test]
    fn foreign_names_are_refused_where_they_could_be_rebound() {
        for host in ["localhost:3000", "127.0.0.1:3000", "[::1]:3000", "callboard", "a.localhost", "10.0.0.7"]
        {
            assert!(host_allowed(&local(), host), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example", ""] {
            assert!(!host_allowed(&local(), host), "{host}");
        }
        assert!(host_allowed(&site(), "tests.example.org"));
        assert!(!host_allowed(&site(), "evil.example"));
        assert!(host_allowed(&Gate::default(), "anything.example"));
        assert_eq!(local().check_host(None), Err(GateRefusal::Host));
    }

    #[test]
    fn unsafe_requests_come_from_our_own_pages_or_from_no_page() {
        let check = |gate: &Gate, pairs: &[(&'static str, &str)]| {
            let headers = headers(pairs);
            gate.check_origin(&headers, gate.effective_origin(&headers).as_ref()).is_ok()
        };
        let host = ("host", "localhost:3000");
        assert!(check(&local(), &[host]));
        assert!(check(&local(), &[host, ("origin", "http://localhost:3000")]));
        assert!(check(&local(), &[host, ("sec-fetch-site", "same-origin")]));
        for origin in [
            "null",
            "http://localhost:3001",
            "https://localhost:3000",
            "http://localhost.:3000",
            "http://localhost:3000.evil.example",
            "http://127.0.0.1:3001",
        ] {
            assert!(!check(&local(), &[host, ("origin", origin)]), "{origin}");
        }
        assert!(!check(&local(), &[host, ("sec-fetch-site", "cross-site")]));
        assert!(check(&site(), &[("host", "tests.example.org"), ("origin", "https://tests.example.org")]));
        assert!(!check(&site(), &[("host", "tests.example.org"), ("origin", "http://tests.example.org")]));
    }

    #[test]
    fn the_sandbox_is_refused_even_when_the_request_is_sent_to_it() {
        let headers = headers(&[("host", "127.0.0.1:3001"), ("origin", "http://127.0.0.1:3001")]);
        let gate = local();
        let effective = gate.effective_origin(&headers);
        assert!(gate.is_sandbox(effective.as_ref()));
        assert_eq!(gate.check_origin(&headers, effective.as_ref()), Err(GateRefusal::Origin));
        assert_eq!(gate.check_mcp_origin(&headers), Err(GateRefusal::Origin));
    }

    #[test]
    fn a_sandbox_behind_tls_is_recognised_by_its_host() {
        let gate = Gate { sandbox: vec![Origin::parse("https://files.example.org").unwrap()], ..site() };
        for (host, is_sandbox) in [("files.example.org", true), ("tests.example.org", false)] {
            let effective = gate.effective_origin(&headers(&[("host", host)]));
            assert_eq!(gate.is_sandbox(effective.as_ref()), is_sandbox, "{host}");
        }
    }

    #[test]
    fn loopback_pages_may_call_the_mcp_endpoint_and_foreign_ones_may_not() {
        let gate = Gate { mcp_origins: vec![Origin::parse("https://agent.example").unwrap()], ..local() };
        let check =
            |origin: &str| gate.check_mcp_origin(&headers(&[("host", "evil.example"), ("origin", origin)]));
        assert_eq!(gate.check_mcp_origin(&HeaderMap::new()), Ok(None));
        for origin in
            ["http://localhost:6274", "http://127.0.0.1:1", "http://[::1]:8080", "https://agent.example"]
        {
            assert_eq!(check(origin), Ok(Origin::parse(origin)), "{origin}");
        }
        for origin in
            ["null", "http://evil.example", "https://agent.example.evil", "http://localhost.evil.example"]
        {
            assert_eq!(check(origin), Err(GateRefusal::Origin), "{origin}");
        }
    }

    #[test]
    fn forwarded_headers_count_only_behind_a_trusted_proxy() {
        let headers = headers(&[
            ("host", "10.0.0.7:3000"),
            ("x-forwarded-host", "spoofed.example, tests.example.org"),
            ("x-forwarded-proto", "http, https"),
        ]);
        assert_eq!(Gate::default().effective_origin(&headers), Origin::parse("http://10.0.0.7:3000"));
        let behind = Gate { trust_proxy: true, ..Gate::default() };
        assert_eq!(behind.effective_origin(&headers), Origin::parse("https://tests.example.org"));
    }
}
