//! Who sent a request, as an address: the other end of the connection, or
//! what a trusted proxy says it was. Limits count by it and the audit log
//! keeps a hash of it; nothing is ever allowed because of it.

use std::net::{IpAddr, Ipv6Addr};

use http::HeaderMap;
use http::header::HeaderName;
use ipnet::IpNet;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
/// Headers in which a proxy tells what it received.
const FORWARDED: [HeaderName; 3] = [
    FORWARDED_FOR,
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-forwarded-proto"),
];

/// The other end of the connection a request came in on, as the listener or
/// the platform tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer(pub IpAddr);

/// Whose forwarded headers are believed (`SERVICE_TRUST_PROXY`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum TrustProxy {
    /// Nobody's: clients reach the service directly.
    #[default]
    Nobody,
    /// So many proxies stand in front; each adds one address.
    Hops(u8),
    /// Proxies have addresses in these networks.
    Networks(Vec<IpNet>),
}

impl std::fmt::Display for TrustProxy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nobody => f.write_str("false"),
            Self::Hops(hops) => hops.fmt(f),
            Self::Networks(networks) => {
                for (at, network) in networks.iter().enumerate() {
                    f.write_str(if at > 0 { "," } else { "" })?;
                    network.fmt(f)?;
                }
                Ok(())
            }
        }
    }
}

impl TrustProxy {
    /// Reads `true`, `false`, a number of proxies, or networks separated by
    /// commas (`10.0.0.0/8`, `192.0.2.7`).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        match text.to_ascii_lowercase().as_str() {
            "false" | "0" => return Some(Self::Nobody),
            "true" => return Some(Self::Hops(1)),
            _ => {}
        }
        if let Ok(hops) = text.parse() {
            return Some(Self::Hops(hops));
        }
        let networks: Option<Vec<IpNet>> = text
            .split(',')
            .map(|entry| {
                let entry = entry.trim();
                entry.parse().ok().or_else(|| entry.parse().ok().map(|address: IpAddr| address.into()))
            })
            .collect();
        networks.map(Self::Networks)
    }

    /// Whether any proxy is trusted.
    #[must_use]
    pub const fn is_some(&self) -> bool {
        !matches!(self, Self::Nobody)
    }

    /// Takes the forwarded headers out of a request whose sender is not
    /// trusted to set them, so that nothing behind this can believe them.
    pub fn strip(&self, peer: Option<Peer>, headers: &mut HeaderMap) {
        let is_trusted = match self {
            Self::Nobody => false,
            Self::Hops(_) => true,
            Self::Networks(networks) => {
                peer.is_some_and(|Peer(peer)| contains(networks, peer.to_canonical()))
            }
        };
        if !is_trusted {
            for name in FORWARDED {
                headers.remove(name);
            }
        }
    }

    /// The address of the client, given the other end of the connection. What
    /// cannot be read counts as coming from there.
    #[must_use]
    pub fn client(&self, peer: Option<Peer>, headers: &HeaderMap) -> ClientAddress {
        let peer = ClientAddress(peer.map_or(Ipv6Addr::UNSPECIFIED.into(), |Peer(peer)| peer.to_canonical()));
        let hops = || forwarded_for(headers).rev();
        let forwarded = match self {
            Self::Nobody => None,
            Self::Hops(count) => hops().nth(usize::from(count.saturating_sub(1))).flatten(),
            Self::Networks(networks) if !contains(networks, peer.0) => None,
            Self::Networks(networks) => {
                let mut last = None;
                for hop in hops() {
                    // A trusted proxy wrote something that is no address: nothing before it counts.
                    let Some(address) = hop else { break };
                    last = Some(address);
                    if !contains(networks, address) {
                        break;
                    }
                }
                last
            }
        };
        forwarded.map_or(peer, ClientAddress)
    }
}

fn contains(networks: &[IpNet], address: IpAddr) -> bool {
    networks.iter().any(|network| network.contains(&address))
}

/// The addresses of all `X-Forwarded-For` lines, the client's side first.
fn forwarded_for(headers: &HeaderMap) -> impl DoubleEndedIterator<Item = Option<IpAddr>> {
    headers
        .get_all(FORWARDED_FOR)
        .iter()
        .flat_map(|line| line.to_str().unwrap_or("unreadable").split(','))
        .map(|element| address(element.trim()))
}

/// An address as proxies write it: alone, in brackets, or with a port.
fn address(text: &str) -> Option<IpAddr> {
    let ip = |text: &str| text.parse::<IpAddr>().ok();
    let found = match text.strip_prefix('[') {
        Some(rest) => rest.split_once(']').and_then(|(inside, _)| ip(inside)),
        None => ip(text).or_else(|| {
            text.rsplit_once(':').and_then(|(host, port)| port.parse::<u16>().ok().and(ip(host)))
        }),
    };
    found.map(|found| found.to_canonical())
}

/// The address a request counts for. IPv4 written as IPv6 is IPv4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(IpAddr);

impl ClientAddress {
    /// What limits count: an IPv4 address, or the /64 of an IPv6 address,
    /// which is what one customer has to choose from.
    #[must_use]
    pub fn subject(&self) -> Vec<u8> {
        match self.0 {
            IpAddr::V4(address) => address.octets().to_vec(),
            IpAddr::V6(address) => address.octets()[..8].to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use proptest::prelude::*;

    const PEER: &str = "198.51.100.1";

    fn client(trust: &str, peer: &str, forwarded: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED_FOR, HeaderValue::from_str(line).unwrap());
        }
        let trust = TrustProxy::parse(trust).unwrap();
        trust.client(Some(Peer(peer.parse().unwrap())), &headers).0.to_string()
    }

    #[test]
    fn the_setting_is_read_in_all_its_forms() {
        for (text, read) in [
            ("false", TrustProxy::Nobody),
            ("0", TrustProxy::Nobody),
            ("TRUE", TrustProxy::Hops(1)),
            ("1", TrustProxy::Hops(1)),
            ("3", TrustProxy::Hops(3)),
            (
                "10.0.0.0/8, 2001:db8::/32,192.0.2.7",
                TrustProxy::Networks(vec![
                    "10.0.0.0/8".parse().unwrap(),
                    "2001:db8::/32".parse().unwrap(),
                    "192.0.2.7/32".parse().unwrap(),
                ]),
            ),
        ] {
            assert_eq!(TrustProxy::parse(text), Some(read), "{text}");
        }
        for text in ["yes", "-1", "256", "10.0.0.0/33", "10.0.0.0/8,", "", "proxy.internal"] {
            assert_eq!(TrustProxy::parse(text), None, "{text}");
        }
    }

    #[test]
    fn without_a_proxy_the_connection_counts() {
        assert_eq!(client("false", PEER, &["203.0.113.9"]), PEER);
        assert_eq!(client("false", "::ffff:198.51.100.1", &[]), PEER);
    }

    #[test]
    fn the_last_proxy_names_the_client_and_clients_cannot() {
        assert_eq!(client("true", PEER, &["1.2.3.4, 203.0.113.9"]), "203.0.113.9");
        assert_eq!(client("true", PEER, &["1.2.3.4", "203.0.113.9:4711"]), "203.0.113.9");
        assert_eq!(client("2", PEER, &["6.6.6.6, 203.0.113.9, 10.0.0.2"]), "203.0.113.9");
        assert_eq!(client("true", PEER, &["[2001:db8::1]:443"]), "2001:db8::1");
        for unreadable in ["1.2.3.4, nonsense", "1.2.3.4,", ""] {
            assert_eq!(client("true", PEER, &[unreadable]), PEER, "{unreadable}");
        }
        assert_eq!(client("3", PEER, &["203.0.113.9"]), PEER);
    }

    #[test]
    fn trusted_networks_are_walked_past_from_the_right() {
        let trust = "10.0.0.0/8,192.0.2.7";
        assert_eq!(client(trust, "10.0.0.1", &["6.6.6.6, 203.0.113.9, 192.0.2.7, 10.1.1.1"]), "203.0.113.9");
        assert_eq!(client(trust, "10.0.0.1", &["10.2.2.2, 10.1.1.1"]), "10.2.2.2");
        assert_eq!(client(trust, "10.0.0.1", &["6.6.6.6, nonsense, 10.1.1.1"]), "10.1.1.1");
        assert_eq!(client(trust, "10.0.0.1", &[]), "10.0.0.1");
        // Whoever connects from elsewhere is no proxy of ours.
        assert_eq!(client(trust, PEER, &["203.0.113.9"]), PEER);
    }

    #[test]
    fn forwarded_headers_of_strangers_are_taken_away() {
        let sent = HeaderMap::from_iter(
            ["x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "host"]
                .map(|name| (HeaderName::from_static(name), HeaderValue::from_static("x"))),
        );
        let left = |trust: &str, peer: &str| {
            let mut headers = sent.clone();
            TrustProxy::parse(trust).unwrap().strip(Some(Peer(peer.parse().unwrap())), &mut headers);
            headers.len()
        };
        assert_eq!(left("false", PEER), 1);
        assert_eq!(left("1", PEER), 4);
        assert_eq!(left("10.0.0.0/8", "::ffff:10.0.0.1"), 4);
        assert_eq!(left("10.0.0.0/8", PEER), 1);
    }

    #[test]
    fn one_network_is_one_subject() {
        let subject = |text: &str| {
            let trust = TrustProxy::Nobody;
            trust.client(Some(Peer(text.parse().unwrap())), &HeaderMap::new()).subject()
        };
        assert_eq!(subject("2001:db8::1"), subject("2001:db8::ffff:1"));
        assert_ne!(subject("2001:db8::1"), subject("2001:db8:0:1::1"));
        assert_eq!(subject("::ffff:192.0.2.1"), subject("192.0.2.1"));
        assert_ne!(subject("192.0.2.1"), subject("192.0.2.2"));
    }

    proptest! {
        #[test]
        fn any_header_gives_some_address(line in "[ -~]{0,120}", trust in "false|true|2|10[.]0[.]0[.]0/8") {
            client(&trust, "10.0.0.1", &[&line]);
        }
    }
}
