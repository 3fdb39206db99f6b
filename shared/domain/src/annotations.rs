//! Words people attach to what is stored: colours of tags, what a link hangs
//! on and where it leads, and kinds of markers.

use serde::Serialize;

/// Writes an enum of words with their spellings.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// Every spelling.
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// The spelling on the wire and in SQL.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }

            /// Reads a spelling.
            #[must_use]
            pub fn parse(word: &str) -> Option<Self> {
                match word {
                    $($word => Some(Self::$variant),)+
                    _ => None,
                }
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
    };
}

pub(crate) use words;

words! {
    /// The colour of a tag.
    TagColor {
        /// Grey.
        Neutral = "neutral",
        /// Red.
        Red = "red",
        /// Orange.
        Orange = "orange",
        /// Amber.
        Amber = "amber",
        /// Green.
        Green = "green",
        /// Teal.
        Teal = "teal",
        /// Blue.
        Blue = "blue",
        /// Violet.
        Violet = "violet",
        /// Pink.
        Pink = "pink",
    }
}

words! {
    /// What happened at a marker.
    MarkerCategory {
        /// Something was deployed.
        Deploy = "deploy",
        /// A setting was changed.
        Config = "config",
        /// Machines or networks were changed.
        Infra = "infra",
        /// Something broke.
        Incident = "incident",
        /// A version was released.
        Release = "release",
        /// Anything else.
        Event = "event",
    }
}

words! {
    /// What a link hangs on.
    LinkTarget {
        /// A run.
        Run = "test_run",
        /// An execution.
        Execution = "execution",
        /// A test case.
        TestCase = "test_case",
        /// A failure cluster.
        Cluster = "failure_cluster",
    }
}

impl LinkTarget {
    /// Reads a spelling or its alias.
    #[must_use]
    pub fn read(word: &str) -> Option<Self> {
        if word == "test_runs_case" { Some(Self::Execution) } else { Self::parse(word) }
    }

    /// The number in SQL.
    #[must_use]
    pub const fn code(self) -> i64 {
        match self {
            Self::Run => 1,
            Self::Execution => 2,
            Self::TestCase => 3,
            Self::Cluster => 4,
        }
    }

    /// Reads the number.
    #[must_use]
    pub const fn from_code(code: i64) -> Option<Self> {
        match code {
            1 => Some(Self::Run),
            2 => Some(Self::Execution),
            3 => Some(Self::TestCase),
            4 => Some(Self::Cluster),
            _ => None,
        }
    }
}

words! {
    /// Where a link leads.
    LinkProvider {
        /// An issue of Jira.
        Jira = "jira",
        /// An issue on GitHub.
        GithubIssue = "github-issue",
        /// A pull request on GitHub.
        GithubPr = "github-pr",
        /// An issue on GitLab.
        GitlabIssue = "gitlab-issue",
        /// A merge request on GitLab.
        GitlabMr = "gitlab-mr",
        /// Anything on Bitbucket.
        Bitbucket = "bitbucket",
        /// A page of Confluence.
        Confluence = "confluence",
        /// A message on Slack.
        Slack = "slack",
        /// An issue of Linear.
        Linear = "linear",
        /// A page of Notion.
        Notion = "notion",
        /// Anywhere else.
        Generic = "generic",
    }
}

/// What an address says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// Where it leads.
    pub provider: LinkProvider,
    /// What the place calls it, such as `SHOP-12`, `#7` or `!7`.
    pub key: Option<String>,
}

/// Judges an address by its host and path alone; nothing is fetched. `host`
/// is lower-case, `path` begins with a slash.
#[must_use]
pub fn destination(host: &str, path: &str) -> Destination {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let at = |domain: &str| host == domain || host.ends_with(&format!(".{domain}"));
    let number_after = |word: &str, sign: &str| {
        let place = parts.iter().position(|part| *part == word)?;
        let number = parts.get(place + 1)?;
        (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| format!("{sign}{number}"))
    };
    let found = |provider, key| Destination { provider, key };
    if at("github.com") {
        if let Some(key) = number_after("pull", "#") {
            return found(LinkProvider::GithubPr, Some(key));
        }
        if let Some(key) = number_after("issues", "#") {
            return found(LinkProvider::GithubIssue, Some(key));
        }
    }
    if at("gitlab.com") || host.starts_with("gitlab.") {
        if let Some(key) = number_after("merge_requests", "!") {
            return found(LinkProvider::GitlabMr, Some(key));
        }
        if let Some(key) = number_after("issues", "#") {
            return found(LinkProvider::GitlabIssue, Some(key));
        }
    }
    if at("bitbucket.org") {
        return found(LinkProvider::Bitbucket, number_after("pull-requests", "#"));
    }
    if at("atlassian.net") && parts.first() == Some(&"wiki") || host.starts_with("confluence.") {
        return found(LinkProvider::Confluence, None);
    }
    let issue = parts.iter().find(|part| is_issue_key(part)).map(|part| (*part).to_owned());
    if at("linear.app") {
        return found(LinkProvider::Linear, issue);
    }
    if (at("atlassian.net") || host.starts_with("jira.")) && issue.is_some() {
        return found(LinkProvider::Jira, issue);
    }
    if at("slack.com") {
        return found(LinkProvider::Slack, None);
    }
    if at("notion.so") || at("notion.site") {
        return found(LinkProvider::Notion, None);
    }
    found(LinkProvider::Generic, None)
}

/// `SHOP-12`: capitals or digits after a capital, a hyphen, a number.
fn is_issue_key(part: &str) -> bool {
    let Some((project, number)) = part.split_once('-') else { return false };
    let is_project = project.len() >= 2
        && project.starts_with(|first: char| first.is_ascii_uppercase())
        && project.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    is_project && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_its_provider_and_what_it_is_called_there() {
        let cases = [
            ("github.com", "/acme/shop/pull/7", LinkProvider::GithubPr, Some("#7")),
            ("github.com", "/acme/shop/issues/8", LinkProvider::GithubIssue, Some("#8")),
            ("github.com", "/acme/shop", LinkProvider::Generic, None),
            ("gitlab.acme.org", "/a/b/-/merge_requests/9", LinkProvider::GitlabMr, Some("!9")),
            ("gitlab.com", "/a/b/-/issues/10", LinkProvider::GitlabIssue, Some("#10")),
            ("bitbucket.org", "/a/b/pull-requests/3", LinkProvider::Bitbucket, Some("#3")),
            ("acme.atlassian.net", "/browse/SHOP-12", LinkProvider::Jira, Some("SHOP-12")),
            ("acme.atlassian.net", "/wiki/spaces/QA", LinkProvider::Confluence, None),
            ("linear.app", "/acme/issue/ENG-4/a-title", LinkProvider::Linear, Some("ENG-4")),
            ("acme.slack.com", "/archives/C1/p2", LinkProvider::Slack, None),
            ("www.notion.so", "/acme/Page-abc", LinkProvider::Notion, None),
            ("evilgithub.com", "/acme/shop/pull/7", LinkProvider::Generic, None),
        ];
        for (host, path, provider, key) in cases {
            let found = destination(host, path);
            assert_eq!((found.provider, found.key.as_deref()), (provider, key), "{host}{path}");
        }
    }

    #[test]
    fn targets_have_an_alias_and_codes_that_come_back() {
        assert_eq!(LinkTarget::read("test_runs_case"), Some(LinkTarget::Execution));
        for word in LinkTarget::WORDS {
            let target = LinkTarget::read(word).unwrap();
            assert_eq!(LinkTarget::from_code(target.code()), Some(target));
        }
    }
}
