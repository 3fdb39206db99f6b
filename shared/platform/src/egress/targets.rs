//! Which addresses requests may go to that somebody else named: those of the
//! open internet, and what the environment opens.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::LazyLock;

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

/// What is not reached over the open internet: the special-purpose registries
/// of RFC 6890 and the documents that amend it, and multicast.
static CLOSED_V4: LazyLock<Vec<Ipv4Net>> = LazyLock::new(|| {
    networks(&[
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    ])
});

/// Global unicast is `2000::/3`; of it, these are set apart.
static CLOSED_V6: LazyLock<Vec<Ipv6Net>> =
    LazyLock::new(|| networks(&["2001::/23", "2001:db8::/32", "2620:4f:8000::/48", "3fff::/20"]));

fn networks<N: std::str::FromStr>(texts: &[&str]) -> Vec<N> {
    texts.iter().filter_map(|text| text.parse().ok()).collect()
}

/// Targets that the environment opens although they are not on the open
/// internet.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowed {
    networks: Vec<IpNet>,
    hosts: Vec<(String, Option<u16>)>,
}

impl Allowed {
    /// Reads `host`, `host:port` and networks such as `10.1.0.0/16`; the words
    /// that are none of them come back.
    ///
    /// # Errors
    /// The first word that is none of them.
    pub fn read(words: &[String]) -> Result<Self, String> {
        let mut allowed = Self::default();
        for word in words {
            let network = word.parse::<IpNet>().or_else(|_| word.parse::<IpAddr>().map(IpNet::from)).ok();
            if let Some(network) = network {
                allowed.networks.push(network);
                continue;
            }
            let (host, port) = match word.rsplit_once(':') {
                Some((host, port)) => (host, Some(port.parse().map_err(|_| word.clone())?)),
                None => (word.as_str(), None),
            };
            let is_name =
                !host.is_empty() && host.chars().all(|c| c.is_ascii_alphanumeric() || "-._".contains(c));
            if !is_name {
                return Err(word.clone());
            }
            allowed.hosts.push((host.to_ascii_lowercase(), port));
        }
        Ok(allowed)
    }

    /// Whether host and port of an address are opened.
    #[must_use]
    pub fn opens(&self, address: &str) -> bool {
        Url::parse(address).is_ok_and(|url| self.opens_url(&url))
    }

    /// Whether host and port of an address are opened. A name is opened by its
    /// name only, an IP address also by its network.
    pub(super) fn opens_url(&self, url: &Url) -> bool {
        let Some(port) = url.port_or_known_default() else { return false };
        let opens_ip = |ip: IpAddr| self.opens_address(ip) || self.opens_host(&ip.to_string(), port);
        match url.host() {
            Some(Host::Domain(name)) => {
                self.opens_host(&name.trim_end_matches('.').to_ascii_lowercase(), port)
            }
            Some(Host::Ipv4(ip)) => opens_ip(ip.into()),
            Some(Host::Ipv6(ip)) => opens_ip(ip.into()),
            None => false,
        }
    }

    /// Whether a name is opened on a port, whatever it resolves to.
    fn opens_host(&self, host: &str, port: u16) -> bool {
        self.hosts.iter().any(|(name, only)| name == host && only.is_none_or(|only| only == port))
    }

    /// Whether an IP address is in an opened network.
    pub(super) fn opens_address(&self, ip: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&ip))
    }
}

/// Whether an address is one of the open internet. An IPv4 address inside of
/// an IPv6 one is judged by itself.
pub(super) fn is_open(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_open_v4(ip),
        IpAddr::V6(ip) => match embedded(ip) {
            Some(ip) => is_open_v4(ip),
            None => ip.octets()[0] >> 5 == 1 && !CLOSED_V6.iter().any(|network| network.contains(&ip)),
        },
    }
}

fn is_open_v4(ip: Ipv4Addr) -> bool {
    !CLOSED_V4.iter().any(|network| network.contains(&ip))
}

/// The IPv4 address that an IPv6 one leads to: mapped (`::ffff:0:0/96`),
/// compatible (`::/96`), 6to4 (`2002::/16`), NAT64 (`64:ff9b::/96`). Where it
/// stands in an address of `64:ff9b:1::/48` is up to each network (RFC 8215,
/// RFC 6052 §2.2), so none is taken out of those: they are closed.
fn embedded(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let o = ip.octets();
    let last = Ipv4Addr::new(o[12], o[13], o[14], o[15]);
    match ip.segments() {
        [0, 0, 0, 0, 0, 0 | 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(last),
        [0x2002, ..] => Some(Ipv4Addr::new(o[2], o[3], o[4], o[5])),
        _ => None,
    }
}

/// Names that never lead to the open internet.
pub(super) fn is_local_name(host: &str) -> bool {
    let ends = |suffix: &str| host == suffix || host.ends_with(&format!(".{suffix}"));
    ["localhost", "internal", "local"].into_iter().any(ends)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_the_open_internet_are_open() {
        for open in
            ["93.184.216.34", "8.8.8.8", "2606:2800:220:1::1", "2002:0808:0808::1", "64:ff9b::808:808"]
        {
            assert!(is_open(open.parse().unwrap()), "{open}");
        }
        for closed in [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "127.255.255.254",
            "169.254.169.254",
            "172.31.0.1",
            "192.0.0.8",
            "192.0.2.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.51.100.7",
            "203.0.113.9",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::7f00:1",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "64:ff9b::7f00:1",
            "64:ff9b:1::a00:1",
            "64:ff9b:1::808:808",
            "64:ff9b:1:a00:0:100:808:808",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "2001:db8::1",
            "2001::1",
            "3fff::1",
            "100::1",
            "5f00::1",
        ] {
            assert!(!is_open(closed.parse().unwrap()), "{closed}");
        }
    }

    #[test]
    fn the_environment_opens_names_ports_and_networks() {
        let words = ["hooks.corp.internal:8443", "10.1.0.0/16", "::1", "builds"].map(str::to_owned);
        let allowed = Allowed::read(&words).unwrap();
        assert!(
            allowed.opens_host("hooks.corp.internal", 8443) && !allowed.opens_host("hooks.corp.internal", 80)
        );
        assert!(allowed.opens_host("builds", 1) && !allowed.opens_host("corp.internal", 8443));
        assert!(allowed.opens_address("10.1.9.9".parse().unwrap()));
        assert!(!allowed.opens_address("10.2.0.1".parse().unwrap()));
        assert_eq!(Allowed::read(&["https://x".to_owned()]), Err("https://x".to_owned()));
    }
}
