//! Web origins: scheme, host and port, compared exactly.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The two schemes pages come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `http`
    Http,
    /// `https`
    Https,
}

impl Scheme {
    const fn default_port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
        }
    }

    /// The spelling in addresses.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// An origin such as `https://tests.example.org`. Hosts are lower-case; IPv6
/// hosts keep their brackets; a default port is normalised away.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Origin {
    scheme: Scheme,
    host: String,
    port: u16,
}

impl Origin {
    /// Composes an origin from a scheme and the value of a `Host` header;
    /// `None` when that is not a host with an optional port.
    #[must_use]
    pub fn of_authority(scheme: Scheme, authority: &str) -> Option<Self> {
        let (host, port) = split_authority(authority)?;
        Some(Self { scheme, host: host.to_ascii_lowercase(), port: port.unwrap_or(scheme.default_port()) })
    }

    /// This machine over plain HTTP.
    #[must_use]
    pub fn localhost(port: u16) -> Self {
        Self { scheme: Scheme::Http, host: "localhost".to_owned(), port }
    }

    /// Reads an origin: `scheme://host[:port]`, nothing behind it but at most
    /// one `/`. `null` and other schemes are `None`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => Scheme::Http,
            "https" => Scheme::Https,
            _ => return None,
        };
        Self::of_authority(scheme, rest.strip_suffix('/').unwrap_or(rest))
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// The host, lower-case, without port.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also when it is the scheme's own.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The same host and scheme at another port.
    #[must_use]
    pub fn at_port(&self, port: u16) -> Self {
        Self { port, ..self.clone() }
    }

    /// The same scheme and port under another host.
    #[must_use]
    pub fn at_host(&self, host: &str) -> Self {
        Self { host: host.to_ascii_lowercase(), ..self.clone() }
    }

    /// Whether the host is this machine under one of its usual names. Other
    /// addresses of the loopback network may be another program's.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let usual = [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        self.host == "localhost" || ip_literal(&self.host).is_some_and(|ip| usual.contains(&ip))
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}", self.scheme.as_str(), self.host)?;
        if self.port == self.scheme.default_port() { Ok(()) } else { write!(f, ":{}", self.port) }
    }
}

/// The address a host spells, when it is an IP literal.
pub(crate) fn ip_literal(host: &str) -> Option<IpAddr> {
    host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host).parse().ok()
}

/// Splits `host[:port]`; the host is a name, an IPv4 address or a bracketed
/// IPv6 address.
fn split_authority(authority: &str) -> Option<(&str, Option<u16>)> {
    let (host, port) = if authority.starts_with('[') {
        let end = authority.find(']')?;
        authority[1..end].parse::<std::net::Ipv6Addr>().ok()?;
        (&authority[..=end], &authority[end + 1..])
    } else {
        let end = authority.find(':').unwrap_or(authority.len());
        (&authority[..end], &authority[end..])
    };
    let named = !host.is_empty()
        && host.len() <= 255
        && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._[]:".contains(&byte));
    let port = match port.strip_prefix(':') {
        None if port.is_empty() => None,
        Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => Some(digits.parse().ok()?),
        _ => return None,
    };
    named.then_some((host, port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_origins_are_equal_however_they_are_written() {
        let plain = Origin::parse("https://tests.example.org").unwrap();
        assert_eq!(Origin::parse("HTTPS://Tests.Example.ORG:443/"), Some(plain.clone()));
        assert_eq!(plain.to_string(), "https://tests.example.org");
        assert_eq!(Origin::parse("http://[::1]:3000").unwrap().to_string(), "http://[::1]:3000");
    }

    #[test]
    fn what_is_not_an_origin_is_refused() {
        for text in [
            "null",
            "",
            "https://",
            "ftp://a",
            "https://a/b",
            "https://a?b",
            "https://user@a",
            "https://a:99999",
            "https://a:b",
            "https://[::1",
            "https://a b",
        ] {
            assert_eq!(Origin::parse(text), None, "{text}");
        }
    }

    #[test]
    fn look_alikes_differ() {
        let ours = Origin::parse("https://tests.example.org").unwrap();
        for other in [
            "http://tests.example.org",
            "https://tests.example.org:8443",
            "https://tests.example.org.",
            "https://tests.example.org.evil",
        ] {
            assert_ne!(Origin::parse(other), Some(ours.clone()), "{other}");
        }
    }
}
