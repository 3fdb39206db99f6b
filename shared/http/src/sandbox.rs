//! Where untrusted content is opened. Reports, SVG and whatever else can run
//! script are never rendered on the dashboard's origin with its powers:
//! either they have an origin of their own, or the browser is told to give
//! them an opaque one.

use axum::extract::FromRequestParts;
use callboard_auth::Origin;
use http::request::Parts;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::error::ApiError;

const LOOPBACK_HOSTS: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

/// Characters that stay as they are in a path segment (RFC 3986 unreserved).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// How untrusted content is kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sandbox {
    /// A configured origin answers with nothing but such content.
    Origin(Origin),
    /// A second local listener on this port; links use the other loopback
    /// name, so neither origin nor cookies are shared.
    Loopback {
        /// Port of the second listener.
        port: u16,
        /// Port of the main listener, whose pages may frame such content.
        main_port: u16,
    },
    /// The same host; the browser gives such content an opaque origin.
    Opaque,
}

/// Which listener or origin a request came through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// API, pages, MCP.
    Main,
    /// Untrusted content only; cookies are not read.
    Sandbox,
}

/// The address the client uses for this service: the configured one, else the
/// request's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Site(pub Origin);

impl Site {
    /// The origin.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.0
    }

    /// An absolute address; `path` starts with `/`.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.0)
    }
}

impl<S: Sync> FromRequestParts<S> for Site {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        parts
            .extensions
            .get::<Self>()
            .cloned()
            .ok_or_else(|| ApiError::internal("the front door set no site"))
    }
}

impl<S: Sync> FromRequestParts<S> for Door {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        Ok(parts.extensions.get::<Self>().copied().unwrap_or(Self::Main))
    }
}

impl Sandbox {
    /// The address of a file below a grant. `path` is the file's name or its
    /// path inside a report; each segment is encoded.
    #[must_use]
    pub fn file_url(&self, site: &Site, grant: &str, path: &str) -> String {
        let path: Vec<String> =
            path.split('/').map(|segment| utf8_percent_encode(segment, SEGMENT).to_string()).collect();
        format!("{}/f/{grant}/{}", self.origin_for(site), path.join("/"))
    }

    /// The host that a grant made for a page of `site` is good on. Cookies do not
    /// tell ports apart: on the other loopback name, where the dashboard may be
    /// used as well, the same content would share them with it.
    #[must_use]
    pub fn audience(&self, site: &Site) -> String {
        match self {
            Self::Loopback { .. } => self.origin_for(site).host().to_owned(),
            _ => String::new(),
        }
    }

    /// The hosts a grant may be made for that is shown at `door` of the host
    /// `named`. Through the main door, where content has no origin at all, any
    /// of them.
    #[must_use]
    pub fn audiences<'h>(&self, door: Door, named: Option<&'h Origin>) -> Vec<&'h str> {
        match (self, door) {
            (Self::Loopback { .. }, Door::Sandbox) => named.map(Origin::host).into_iter().collect(),
            (Self::Loopback { .. }, Door::Main) => LOOPBACK_HOSTS.into(),
            _ => vec![""],
        }
    }

    /// The origin such content is linked at, seen from a page of `site`.
    #[must_use]
    pub fn origin_for(&self, site: &Site) -> Origin {
        match self {
            Self::Origin(origin) => origin.clone(),
            Self::Loopback { port, .. } => {
                let other = if site.0.host() == "localhost" { "127.0.0.1" } else { "localhost" };
                site.0.at_host(other).at_port(*port)
            }
            Self::Opaque => site.0.clone(),
        }
    }

    /// Every origin that serves untrusted content: none of them may call us.
    #[must_use]
    pub fn origins(&self) -> Vec<Origin> {
        match self {
            Self::Origin(origin) => vec![origin.clone()],
            Self::Loopback { port, .. } => loopback_origins(*port),
            Self::Opaque => Vec::new(),
        }
    }

    /// What pages may frame, as a CSP source list.
    #[must_use]
    pub fn frame_sources(&self) -> String {
        match self {
            Self::Opaque => "'self'".to_owned(),
            _ => source_list(&self.origins()),
        }
    }

    /// The policy of answers under `/f/`. Through the main door such content
    /// always gets an opaque origin, whatever else is configured.
    #[must_use]
    pub fn content_policy(&self, door: Door, site: Option<&Origin>, bucket: Option<&str>) -> String {
        match door {
            Door::Sandbox => {
                // Large pictures and videos of a report come from there.
                let media = bucket.map(|bucket| {
                    format!("img-src 'self' data: blob: {bucket}; media-src 'self' data: blob: {bucket}; ")
                });
                format!(
                    "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; {}connect-src 'self'; \
                     form-action 'none'; frame-ancestors {}",
                    media.unwrap_or_default(),
                    self.dashboard(site)
                )
            }
            Door::Main => {
                "sandbox allow-scripts allow-popups allow-downloads; form-action 'none'; frame-ancestors 'self'"
                    .to_owned()
            }
        }
    }
}

impl Sandbox {
    /// The pages that may frame untrusted content, as a CSP source list.
    pub(crate) fn dashboard(&self, site: Option<&Origin>) -> String {
        match (site, self) {
            (Some(site), _) => site.to_string(),
            (None, Self::Loopback { main_port, .. }) => source_list(&loopback_origins(*main_port)),
            (None, _) => "'self'".to_owned(),
        }
    }
}

fn loopback_origins(port: u16) -> Vec<Origin> {
    LOOPBACK_HOSTS.into_iter().filter_map(|host| Origin::parse(&format!("http://{host}:{port}"))).collect()
}

/// IPv6 addresses cannot be written in a CSP; no link uses one.
fn source_list(origins: &[Origin]) -> String {
    origins
        .iter()
        .filter(|origin| !origin.host().starts_with('['))
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(text: &str) -> Site {
        Site(Origin::parse(text).unwrap())
    }

    #[test]
    fn local_links_use_the_other_loopback_name() {
        let sandbox = Sandbox::Loopback { port: 3001, main_port: 3000 };
        let link = |from: &str| sandbox.file_url(&site(from), "g", "data/a b.html");
        assert_eq!(link("http://localhost:3000"), "http://127.0.0.1:3001/f/g/data/a%20b.html");
        assert_eq!(link("http://127.0.0.1:3000"), "http://localhost:3001/f/g/data/a%20b.html");
        assert_eq!(link("http://[::1]:3000"), "http://localhost:3001/f/g/data/a%20b.html");
    }

    #[test]
    fn a_configured_origin_wins_and_without_any_the_site_serves_itself() {
        let configured = Sandbox::Origin(Origin::parse("https://files.example.org").unwrap());
        let from = site("https://tests.example.org");
        assert_eq!(configured.file_url(&from, "g", "x;y.html"), "https://files.example.org/f/g/x%3By.html");
        assert_eq!(Sandbox::Opaque.file_url(&from, "g", "x"), "https://tests.example.org/f/g/x");
        assert!(Sandbox::Opaque.content_policy(Door::Main, None, None).starts_with("sandbox allow-scripts"));
    }
}
