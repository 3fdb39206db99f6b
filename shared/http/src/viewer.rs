//! Where stored traces open. Playwright's viewer runs a service worker over
//! what a trace holds, so it needs a real origin that is not the dashboard's,
//! and one on which browsers allow workers.

use callboard_auth::{Origin, Scheme};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use url::{Url, form_urlencoded};

use crate::sandbox::{Sandbox, Site};
use crate::state::AppState;

/// The page that opens a trace inside of a page of the dashboard.
pub const IN_PLACE: &str = "in-place.html";

/// Whether traces open in the browser, and why not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Viewer {
    /// They do, in the viewer of this service.
    Ready,
    /// They do, in a viewer elsewhere that the settings name.
    Elsewhere,
    /// The viewer was not there when this was built.
    NotIncluded,
    /// Untrusted content has no origin of its own here on which browsers allow
    /// a service worker: `https`, or this machine.
    NoOrigin,
}

impl Viewer {
    /// Whether traces open in the browser.
    #[must_use]
    pub fn opens_traces(self) -> bool {
        matches!(self, Self::Ready | Self::Elsewhere)
    }

    /// What to do about its absence, as a sentence.
    #[must_use]
    pub const fn advice(self) -> Option<&'static str> {
        match self {
            Self::Ready | Self::Elsewhere => None,
            Self::NotIncluded => {
                Some("This build lacks the trace viewer; `make assets` and another build bring it.")
            }
            Self::NoOrigin => Some(
                "Traces open in the browser when SERVICE_SANDBOX_ORIGIN names a second https address of this service, \
                 or SERVICE_TRACE_VIEWER_ORIGINS a viewer elsewhere.",
            ),
        }
    }
}

impl AppState {
    /// Whether traces open in the browser.
    #[must_use]
    pub fn viewer(&self) -> Viewer {
        let has_origin = match self.sandbox() {
            Sandbox::Origin(origin) => allows_workers(origin),
            Sandbox::Loopback { .. } => true,
            Sandbox::Opaque => false,
        };
        match (callboard_viewer::is_included(), has_origin) {
            (true, true) => Viewer::Ready,
            _ if !self.config().trace_viewer_origins.is_empty() => Viewer::Elsewhere,
            (false, _) => Viewer::NotIncluded,
            (true, false) => Viewer::NoOrigin,
        }
    }

    /// Whether pages of the dashboard may show untrusted content inside of
    /// themselves. Content with an origin of its own names the pages that may, and
    /// has to know where they are.
    #[must_use]
    pub fn shows_in_place(&self) -> bool {
        !matches!(self.sandbox(), Sandbox::Origin(_)) || self.config().site_url.is_some()
    }

    /// The origin that answers what is too large for this service, where there is one.
    #[must_use]
    pub fn large_answers_origin(&self) -> Option<&str> {
        self.config().max_answer_bytes().and_then(|_| self.store().objects().signed_origin())
    }

    /// Whether they may show traces so.
    #[must_use]
    pub fn shows_traces_in_place(&self) -> bool {
        self.viewer() == Viewer::Ready && self.shows_in_place()
    }

    /// The address at which a page shows the trace below a grant inside of itself;
    /// `None` where it may not.
    #[must_use]
    pub fn viewer_url_in_place(&self, site: &Site, granted_url: &str) -> Option<String> {
        self.shows_traces_in_place().then(|| self.sandbox().viewer_url(site, IN_PLACE, granted_url))
    }

    /// The address at which a browser opens the trace below a grant; `None`
    /// where none does.
    #[must_use]
    pub fn viewer_url(&self, site: &Site, granted_url: &str) -> Option<String> {
        match (self.viewer(), self.config().trace_viewer_origins.first()) {
            (Viewer::Ready, _) => {
                // What is fetched from a bucket may not be there to be fetched, which the first page says.
                let page = self.large_answers_origin().map_or(callboard_viewer::PAGE, |_| IN_PLACE);
                Some(self.sandbox().viewer_url(site, page, granted_url))
            }
            (Viewer::Elsewhere, Some(viewer)) => {
                Some(format!("{viewer}/?trace={}", utf8_percent_encode(granted_url, NON_ALPHANUMERIC)))
            }
            _ => None,
        }
    }
}

fn allows_workers(origin: &Origin) -> bool {
    origin.scheme() == Scheme::Https || origin.is_loopback()
}

impl Sandbox {
    /// The address at which a page of the viewer opens the trace below a grant.
    fn viewer_url(&self, site: &Site, page: &str, granted_url: &str) -> String {
        let trace = utf8_percent_encode(granted_url, NON_ALPHANUMERIC);
        format!("{}/viewer/{page}?trace={trace}", self.origin_for(site))
    }

    /// The policy of the viewer's answers: it loads from its own origin only, and from
    /// the bucket where large traces come from there.
    /// `scripts` are the inline scripts that may run, as the policy names them;
    /// evaluating is how the viewer tries out locators.
    #[must_use]
    pub fn viewer_policy(&self, site: Option<&Origin>, scripts: &str, bucket: Option<&str>) -> String {
        let bucket = bucket.map(|bucket| format!(" {bucket}")).unwrap_or_default();
        format!(
            "default-src 'self' data: blob:; script-src 'self' 'unsafe-eval' {scripts}; \
             style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:{bucket}; object-src 'none'; base-uri 'none'; \
             form-action 'none'; frame-ancestors {}",
            self.dashboard(site)
        )
    }
}

/// Whether the viewer may open what a query string asks for: every trace is
/// something below a grant of the origin the viewer itself is on.
#[must_use]
pub fn opens_only_granted(own: &Origin, query: &str) -> bool {
    let Ok(base) = Url::parse(&format!("{own}/viewer/")) else { return false };
    form_urlencoded::parse(query.as_bytes()).filter(|(name, _)| name == "trace").all(|(_, trace)| {
        base.join(&trace).is_ok_and(|url| {
            url.origin() == base.origin() && url.username().is_empty() && url.path().starts_with("/f/")
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Origin {
        Origin::parse("http://127.0.0.1:3001").unwrap()
    }

    #[test]
    fn only_traces_below_a_grant_of_the_own_origin_are_opened() {
        let sandbox = Sandbox::Loopback { port: 3001, main_port: 3000 };
        let site = Site(Origin::parse("http://localhost:3000").unwrap());
        let url = sandbox.viewer_url(
            &site,
            callboard_viewer::PAGE,
            &sandbox.file_url(&site, "g-1", "a b&trace=.zip"),
        );
        let (page, query) = url.split_once('?').unwrap();
        assert_eq!(page, "http://127.0.0.1:3001/viewer/index.html");
        assert!(opens_only_granted(&own(), query), "{query}");
        for fine in ["", "other=1", "trace=/f/g/a.zip", "trace=..%2Ff/g/a.zip&trace=/f/h/b.zip"] {
            assert!(opens_only_granted(&own(), fine), "{fine}");
        }
        for refused in [
            "trace=https://elsewhere.example/f/g/a.zip",
            "trace=//elsewhere.example/f/g/a.zip",
            "trace=\\\\elsewhere.example/f/g/a.zip",
            "trace=http://127.0.0.1:3000/f/g/a.zip",
            "trace=https://127.0.0.1:3001/f/g/a.zip",
            "trace=http://me@127.0.0.1:3001/f/g/a.zip",
            "trace=/api/projects",
            "trace=/f/../api/projects",
            "trace=/f/%2e%2e/api/projects",
            "trace=data:application/zip,x",
            "trace=blob:http://127.0.0.1:3001/x",
            "trace=",
            "trace=/f/g/a.zip&trace=/viewer/index.html",
            "%74race=/api/projects",
        ] {
            assert!(!opens_only_granted(&own(), refused), "{refused}");
        }
    }

    #[test]
    fn whoever_has_no_viewer_is_told_what_brings_it() {
        for viewer in [Viewer::NotIncluded, Viewer::NoOrigin] {
            assert!(!viewer.opens_traces() && viewer.advice().is_some());
        }
        for viewer in [Viewer::Ready, Viewer::Elsewhere] {
            assert!(viewer.opens_traces() && viewer.advice().is_none());
        }
        assert!(allows_workers(&own()));
        assert!(allows_workers(&Origin::parse("https://files.example.org").unwrap()));
        assert!(!allows_workers(&Origin::parse("http://files.example.org").unwrap()));
    }
}
