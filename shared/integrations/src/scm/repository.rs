//! Which repository is meant by the address that people know it by, and where
//! the API of its provider is.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use url::Url;

use super::types::TicketKind;

/// What stays as it is in a segment of a path: RFC 3986 calls it unreserved.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Bytes of the longest address of a page with a text in it.
const MAX_ISSUE_PAGE_BYTES: usize = 8_000;

/// A kind of code host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// GitHub, in the cloud or Enterprise Server.
    GitHub,
    /// GitLab, in the cloud or self-managed.
    GitLab,
    /// Gitea or Forgejo, which share an API.
    Gitea,
    /// Bitbucket Cloud.
    Bitbucket,
}

impl Provider {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::GitHub, Self::GitLab, Self::Gitea, Self::Bitbucket];

    /// The word in settings and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::GitHub => "github",
            Self::GitLab => "gitlab",
            Self::Gitea => "gitea",
            Self::Bitbucket => "bitbucket",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|provider| provider.as_str() == word)
    }

    /// The name people know it by.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::GitHub => "GitHub",
            Self::GitLab => "GitLab",
            Self::Gitea => "Gitea / Forgejo",
            Self::Bitbucket => "Bitbucket",
        }
    }

    /// The page of a commit of the repository at an address.
    #[must_use]
    pub fn commit_page(self, repository_url: &str, sha: &str) -> String {
        let url = page_of(repository_url);
        match self {
            Self::GitHub | Self::Gitea => format!("{url}/commit/{sha}"),
            Self::GitLab => format!("{url}/-/commit/{sha}"),
            Self::Bitbucket => format!("{url}/commits/{sha}"),
        }
    }

    /// The issue or request whose page an address is, in the repository at another
    /// address.
    #[must_use]
    pub fn ticket_of(self, repository_url: &str, address: &str) -> Option<(TicketKind, u64)> {
        let repository = page_of(repository_url);
        let (start, rest) = address.split_at_checked(repository.len())?;
        let rest = rest.strip_prefix('/').filter(|_| start.eq_ignore_ascii_case(repository))?;
        let rest = rest.split(['?', '#']).next().unwrap_or_default();
        let (issues, requests) = match self {
            Self::GitHub => ("issues/", "pull/"),
            Self::Gitea => ("issues/", "pulls/"),
            Self::GitLab => ("-/issues/", "-/merge_requests/"),
            Self::Bitbucket => ("issues/", "pull-requests/"),
        };
        let number = |rest: &str| rest.split('/').next().unwrap_or_default().parse::<u64>().ok();
        let issue = rest.strip_prefix(issues).and_then(number).map(|number| (TicketKind::Issue, number));
        issue.or_else(|| Some((TicketKind::Request, rest.strip_prefix(requests).and_then(number)?)))
    }

    /// The page that compares two commits of the repository at an address.
    #[must_use]
    pub fn compare_page(self, repository_url: &str, from: &str, to: &str) -> String {
        let url = page_of(repository_url);
        match self {
            Self::GitHub | Self::Gitea => format!("{url}/compare/{from}...{to}"),
            Self::GitLab => format!("{url}/-/compare/{from}...{to}"),
            Self::Bitbucket => format!("{url}/branches/compare/{to}..{from}"),
        }
    }

    /// The page on which an issue is begun with this title and Markdown, of the repository at an address. The address
    /// stays below 8 KB: lines are left out at the end.
    #[must_use]
    pub fn new_issue_page(self, repository_url: &str, title: &str, body: &str) -> String {
        let url = page_of(repository_url);
        let (page, title_name, body_name) = match self {
            Self::GitHub | Self::Gitea => ("issues/new", "title", "body"),
            Self::GitLab => ("-/issues/new", "issue[title]", "issue[description]"),
            Self::Bitbucket => ("issues/new", "title", "content"),
        };
        let begin = format!(
            "{url}/{page}?{}={}&{}=",
            encode_segment(title_name),
            encode_segment(title),
            encode_segment(body_name)
        );
        let mut encoded = String::new();
        for line in body.split_inclusive('\n') {
            let line = encode_segment(line);
            if begin.len() + encoded.len() + line.len() > MAX_ISSUE_PAGE_BYTES {
                break;
            }
            encoded.push_str(&line);
        }
        begin + &encoded
    }

    /// The provider that runs a host in the cloud; nothing else answers there.
    #[must_use]
    pub fn of_cloud_host(host: &str) -> Option<Self> {
        match host.strip_prefix("www.").unwrap_or(host) {
            "github.com" => Some(Self::GitHub),
            "gitlab.com" => Some(Self::GitLab),
            "bitbucket.org" => Some(Self::Bitbucket),
            "gitea.com" | "codeberg.org" => Some(Self::Gitea),
            _ => None,
        }
    }

    /// The provider that the name of a host suggests.
    #[must_use]
    pub fn guess(host: &str) -> Option<Self> {
        let begins = |word: &str| host.strip_prefix(word).is_some_and(|rest| rest.starts_with('.'));
        Self::of_cloud_host(host).or_else(|| {
            [
                ("github", Self::GitHub),
                ("gitlab", Self::GitLab),
                ("gitea", Self::Gitea),
                ("forgejo", Self::Gitea),
                ("bitbucket", Self::Bitbucket),
            ]
            .into_iter()
            .find_map(|(word, provider)| begins(word).then_some(provider))
        })
    }
}

/// The page of a repository, which has no `.git` at its end.
fn page_of(repository_url: &str) -> &str {
    let url = repository_url.trim_end_matches('/');
    url.strip_suffix(".git").unwrap_or(url)
}

/// An address that names no repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the address must end with the owner and the name of a repository, such as https://github.com/acme/shop"
)]
pub struct InvalidRepository;

/// A repository at a provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    provider: Provider,
    host: String,
    path: String,
    api: String,
    identity: String,
}

impl Repository {
    /// The repository at an address such as `https://github.com/acme/shop.git`.
    ///
    /// # Errors
    /// [`InvalidRepository`] when owner and name are missing.
    pub fn from_address(address: &str, provider: Provider) -> Result<Self, InvalidRepository> {
        let url = Url::parse(address).map_err(|_| InvalidRepository)?;
        let host = url.host_str().filter(|host| !host.is_empty()).ok_or(InvalidRepository)?.to_owned();
        let decoded = percent_encoding::percent_decode_str(url.path()).decode_utf8_lossy().into_owned();
        let trimmed = decoded.trim_matches('/');
        let trimmed = trimmed.strip_suffix(".git").unwrap_or(trimmed);
        let parts: Vec<&str> = trimmed.split('/').collect();
        let is_path = parts.len() >= 2 && parts.iter().all(|part| !matches!(*part, "" | "." | ".."));
        let origin = url.origin().ascii_serialization();
        let is_cloud = Provider::of_cloud_host(&host) == Some(provider);
        // GitLab nests groups; Gitea may be served below a path.
        let served_below = if provider == Provider::Gitea { parts.len().saturating_sub(2) } else { 0 };
        let (below, named) = parts.split_at(served_below);
        let below: String = below.iter().map(|part| encode_segment(part) + "/").collect();
        let path = named.join("/");
        let has_right_depth = parts.len() == 2 || matches!(provider, Provider::GitLab | Provider::Gitea);
        if !is_path || !has_right_depth {
            return Err(InvalidRepository);
        }
        let segments = encode_segments(&path);
        let api = match provider {
            Provider::GitHub if is_cloud => format!("https://api.github.com/repos/{segments}"),
            Provider::GitHub => format!("{origin}/api/v3/repos/{segments}"),
            Provider::GitLab => format!("{origin}/api/v4/projects/{}", encode_segment(&path)),
            Provider::Gitea => format!("{origin}/{below}api/v1/repos/{segments}"),
            Provider::Bitbucket if is_cloud => {
                format!("https://api.bitbucket.org/2.0/repositories/{segments}")
            }
            Provider::Bitbucket => format!("{origin}/2.0/repositories/{segments}"),
        };
        let at = url.port().map_or_else(|| host.clone(), |port| format!("{host}:{port}"));
        let at = if is_cloud { at.trim_start_matches("www.") } else { &at };
        let identity = format!("https://{at}/{below}{path}").to_lowercase();
        Ok(Self { provider, host, path, api, identity })
    }

    /// Whether its API is called with https.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.api.starts_with("https://")
    }

    /// One address for the repository, however people spell it: with `.git`, in capitals, with http. For comparisons,
    /// not for requests.
    #[must_use]
    pub fn identity(&self) -> &str {
        &self.identity
    }

    /// Its provider.
    #[must_use]
    pub const fn provider(&self) -> Provider {
        self.provider
    }

    /// The host people know it by.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Owner and name, with all groups.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Address of the repository in the provider's API.
    pub(super) fn api(&self) -> &str {
        &self.api
    }
}

/// A text as one segment of a path or as a part of a query: `a/b` becomes
/// `a%2Fb`.
pub(super) fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, RESERVED).to_string()
}

/// The path of a file with its segments encoded one by one; `None` when one of
/// them would lead somewhere else.
pub(super) fn encode_path(path: &str) -> Option<String> {
    let is_plain = path.split('/').all(|segment| !matches!(segment, "" | "." | ".."));
    is_plain.then(|| encode_segments(path))
}

/// A path whose segments are encoded one by one.
fn encode_segments(path: &str) -> String {
    path.split('/').map(encode_segment).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_issues_and_requests_are_known_in_the_own_repository_only() {
        let of =
            |provider: Provider, repository: &str, address: &str| provider.ticket_of(repository, address);
        let (issue, request) = (TicketKind::Issue, TicketKind::Request);
        let shop = "https://github.com/acme/shop";
        assert_eq!(of(Provider::GitHub, shop, "https://github.com/Acme/shop/issues/8"), Some((issue, 8)));
        let files = "https://github.com/acme/shop/pull/42/files?w=1#diff";
        assert_eq!(of(Provider::GitHub, &format!("{shop}.git"), files), Some((request, 42)));
        let merge = "https://code.acme.test/web/shop/-/merge_requests/7";
        assert_eq!(of(Provider::GitLab, "https://code.acme.test/web/shop", merge), Some((request, 7)));
        let pull = "https://codeberg.org/acme/shop/pulls/3";
        assert_eq!(of(Provider::Gitea, "https://codeberg.org/acme/shop", pull), Some((request, 3)));
        let cloud = "https://bitbucket.org/acme/shop";
        assert_eq!(of(Provider::Bitbucket, cloud, &format!("{cloud}/pull-requests/5")), Some((request, 5)));
        for other in [
            "https://github.com/acme/shopping/issues/8",
            "https://evil.test/acme/shop/issues/8",
            "https://github.com/acme/shop/issues/new",
            "ü",
        ] {
            assert_eq!(of(Provider::GitHub, shop, other), None, "{other}");
        }
    }

    fn api(address: &str, provider: Provider) -> Option<String> {
        Repository::from_address(address, provider).ok().map(|repository| repository.api().to_owned())
    }

    #[test]
    fn an_address_leads_to_the_api_of_its_provider() {
        for (address, provider, expected) in [
            ("https://github.com/acme/shop.git", Provider::GitHub, "https://api.github.com/repos/acme/shop"),
            (
                "https://github.com/acme/shop.js/",
                Provider::GitHub,
                "https://api.github.com/repos/acme/shop.js",
            ),
            (
                "https://code.example.org/acme/shop",
                Provider::GitHub,
                "https://code.example.org/api/v3/repos/acme/shop",
            ),
            (
                "https://gitlab.com/acme/web/front/shop",
                Provider::GitLab,
                "https://gitlab.com/api/v4/projects/acme%2Fweb%2Ffront%2Fshop",
            ),
            (
                "https://git.example.org:8443/code/acme/shop",
                Provider::Gitea,
                "https://git.example.org:8443/code/api/v1/repos/acme/shop",
            ),
            (
                "https://codeberg.org/acme/shop",
                Provider::Gitea,
                "https://codeberg.org/api/v1/repos/acme/shop",
            ),
            (
                "https://bitbucket.org/acme/shop",
                Provider::Bitbucket,
                "https://api.bitbucket.org/2.0/repositories/acme/shop",
            ),
            (
                "https://github.com/acme/%C3%A4%20b",
                Provider::GitHub,
                "https://api.github.com/repos/acme/%C3%A4%20b",
            ),
        ] {
            assert_eq!(api(address, provider).as_deref(), Some(expected));
        }
        for address in [
            "https://github.com/",
            "https://github.com/acme",
            "https://github.com/acme//shop",
            "https://github.com/a/b/c",
        ] {
            assert_eq!(api(address, Provider::GitHub), None, "{address}");
        }
        for address in ["https://gitlab.com/shop", "https://gitlab.com/a/%2e%2e/shop/x%00/..", "nothing"] {
            assert_eq!(api(address, Provider::Gitea).filter(|api| api.contains("..")), None, "{address}");
        }
    }

    #[test]
    fn a_repository_is_the_same_however_it_is_spelled() {
        let of = |address: &str, provider: Provider| {
            Repository::from_address(address, provider).expect("a repository").identity().to_owned()
        };
        for spelled in [
            "https://github.com/acme/shop",
            "https://GitHub.com/Acme/Shop.git",
            "https://www.github.com/acme/shop/",
            "http://github.com/acme/%73hop",
        ] {
            assert_eq!(of(spelled, Provider::GitHub), "https://github.com/acme/shop", "{spelled}");
        }
        let below = of("https://git.example.org:8443/code/acme/shop", Provider::Gitea);
        assert_eq!(below, "https://git.example.org:8443/code/acme/shop");
        assert_ne!(below, of("https://git.example.org:8443/acme/shop", Provider::Gitea));
        assert_ne!(below, of("https://git.example.org/code/acme/shop", Provider::Gitea));
    }

    #[test]
    fn a_new_issue_is_filled_in_and_stays_below_8_kb() {
        let page = |provider: Provider, body: &str| {
            provider.new_issue_page("https://git.example.org/acme/shop.git", "It & they", body)
        };
        assert_eq!(
            page(Provider::GitHub, "a `b`\n"),
            "https://git.example.org/acme/shop/issues/new?title=It%20%26%20they&body=a%20%60b%60%0A"
        );
        assert!(
            page(Provider::GitLab, "a").ends_with(
                "/acme/shop/-/issues/new?issue%5Btitle%5D=It%20%26%20they&issue%5Bdescription%5D=a"
            )
        );
        let long = "`ä`\n".repeat(5_000);
        for provider in Provider::ALL {
            let page = page(provider, &long);
            assert!(page.len() <= 8_000 && page.ends_with("%0A"), "{}", page.len());
        }
    }

    #[test]
    fn a_host_suggests_its_provider() {
        assert_eq!(Provider::of_cloud_host("github.com"), Some(Provider::GitHub));
        assert_eq!(Provider::of_cloud_host("github.example.org"), None);
        assert_eq!(Provider::guess("gitlab.example.org"), Some(Provider::GitLab));
        assert_eq!(Provider::guess("forgejo.example.org"), Some(Provider::Gitea));
        assert_eq!(Provider::guess("git.example.org"), None);
        assert_eq!(Provider::guess("githubby.example.org"), None);
        for provider in Provider::ALL {
            assert_eq!(Provider::parse(provider.as_str()), Some(provider));
        }
    }
}
