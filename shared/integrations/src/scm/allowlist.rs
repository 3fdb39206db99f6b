//! Which repositories a token serves that belongs to no project.

use url::Url;

use super::repository::{Provider, Repository};

/// What ends an entry that means all repositories of an owner.
const ALL: &str = "/*";

/// An address that names neither a repository nor all of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "each entry must be the address of a repository, such as https://github.com/acme/shop, or of all repositories of an owner: https://github.com/acme/*"
)]
pub struct InvalidEntry;

/// A repository that a token serves, or all of an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedRepository {
    /// Address of the host.
    origin: String,
    /// As [`Repository::identity`]; of an owner it ends with a slash.
    identity: String,
    is_encrypted: bool,
}

impl AllowedRepository {
    /// Reads an entry of a list.
    ///
    /// # Errors
    /// [`InvalidEntry`].
    pub fn parse(text: &str) -> Result<Self, InvalidEntry> {
        let (address, is_owner) = match text.strip_suffix(ALL) {
            Some(address) => (address, true),
            None => (text, false),
        };
        let url = Url::parse(address).map_err(|_| InvalidEntry)?;
        let is_web = matches!(url.scheme(), "https" | "http");
        let has_only_path = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        let host = url.host_str().filter(|host| is_web && has_only_path && !host.is_empty());
        let host = host.ok_or(InvalidEntry)?;
        let path = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
        let path = path.trim_matches('/');
        let path = if is_owner { path } else { path.strip_suffix(".git").unwrap_or(path) };
        let parts: Vec<&str> = path.split('/').collect();
        let is_path = parts.iter().all(|part| !matches!(*part, "" | "." | "..") && !part.contains('*'));
        if !is_path || (!is_owner && parts.len() < 2) {
            return Err(InvalidEntry);
        }
        let at = url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"));
        let is_cloud = Provider::of_cloud_host(host).is_some();
        let at = if is_cloud { at.trim_start_matches("www.") } else { &at };
        let end = if is_owner { "/" } else { "" };
        Ok(Self {
            origin: format!("{}://{at}", url.scheme()),
            identity: format!("https://{at}/{path}{end}").to_lowercase(),
            is_encrypted: url.scheme() == "https",
        })
    }

    /// Scheme, host and port.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Whether the entry means a repository. One that is called without encryption is not meant by an entry with it.
    #[must_use]
    pub fn means(&self, repository: &Repository) -> bool {
        let is_same = match self.identity.ends_with('/') {
            true => repository.identity().starts_with(&self.identity),
            false => repository.identity() == self.identity,
        };
        is_same && (repository.is_encrypted() || !self.is_encrypted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository(address: &str) -> Repository {
        let host = Url::parse(address).ok().and_then(|url| url.host_str().map(str::to_owned));
        let provider = host.and_then(|host| Provider::of_cloud_host(&host)).unwrap_or(Provider::GitLab);
        Repository::from_address(address, provider).expect("a repository")
    }

    #[test]
    fn an_entry_means_one_repository_or_all_of_an_owner() {
        let means = |entry: &str, address: &str| {
            AllowedRepository::parse(entry).expect("an entry").means(&repository(address))
        };
        let shop = "https://github.com/acme/shop";
        for entry in [shop, "https://www.github.com/Acme/shop.git", "https://github.com/acme/*"] {
            assert!(means(entry, shop), "{entry}");
            assert!(means(entry, "https://github.com/ACME/Shop.git/"), "{entry}");
            for other in [
                "https://github.com/acme-evil/shop",
                "https://github.com/evil/acme",
                "https://gitlab.com/acme/shop",
                "https://git.example.org/acme/shop",
            ] {
                assert!(!means(entry, other), "{entry} {other}");
            }
        }
        assert!(!means(shop, "https://github.com/acme/shopping"));
        let group = "https://git.example.org:8443/acme/*";
        assert!(means(group, "https://git.example.org:8443/acme/web/shop"));
        assert!(!means(group, "https://git.example.org/acme/web/shop"));
        assert!(!means(group, "http://git.example.org:8443/acme/web/shop"), "not without encryption");
        assert!(means("http://git.example.org/acme/*", "http://git.example.org/acme/shop"));
    }

    #[test]
    fn what_names_neither_is_refused() {
        for entry in [
            "",
            "*",
            "acme/*",
            "https://github.com",
            "https://github.com/*",
            "https://github.com/acme",
            "https://github.com/*/shop",
            "https://github.com/ac*/shop",
            "https://me:secret@github.com/acme/shop",
            "https://github.com/acme/shop?x=1",
            "ftp://github.com/acme/shop",
            "https://github.com/acme/%2e%2e/*",
        ] {
            assert_eq!(AllowedRepository::parse(entry), Err(InvalidEntry), "{entry}");
        }
    }
}
