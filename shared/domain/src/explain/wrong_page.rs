//! Whether a test lost its page and not its element: no locator finds on a
//! login page what stands on another one.
//!
//! What is not recorded refuses nothing: without the address of the page, or
//! without the documents of the last pass, a page is taken for the right one.

use std::collections::BTreeSet;
use std::fmt;

use crate::evidence::url_text::normalise_url;
use crate::evidence::{Evidence, NetworkRequest, ResourceType};
use crate::secrets::masked;
use crate::text::cut;

/// Characters of a path.
const MAX_PATH_CHARS: usize = 160;

/// Segments of a path that ask who somebody is.
const LOGIN_SEGMENTS: [&str; 8] =
    ["auth", "authenticate", "log-in", "login", "sign-in", "sign_in", "signin", "sso"];

/// A page the test did not mean to be on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OtherPage {
    /// The server answered with an error: path and status.
    Error(String, i64),
    /// Somebody is to log in there.
    Login(String),
    /// The last pass never loaded it.
    Elsewhere(String),
    /// The page may be the right one, but the application failed on it as it did
    /// not when the test passed: request and what came of it. What is missing then
    /// was not renamed.
    BrokenRequest(String, String),
}

impl fmt::Display for OtherPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(path, status) => write!(f, "The page `{path}` answered {status}"),
            Self::Login(path) => write!(f, "The page was the login page `{path}`"),
            Self::Elsewhere(path) => write!(f, "The page was another one, `{path}`"),
            Self::BrokenRequest(request, outcome) => write!(f, "The request `{request}` failed: {outcome}"),
        }
    }
}

/// The page a test failed on, when it is not the one it was to be on.
#[must_use]
pub fn other_page(failing: &Evidence, passed: Option<&Evidence>) -> Option<OtherPage> {
    let path = path_of(&failing.page_state.as_ref()?.url);
    let document = documents(failing).rfind(|request| path_of(&request.url) == path);
    if let Some(error) = document.filter(|request| request.status >= 400) {
        return Some(OtherPage::Error(path, error.status));
    }
    let passed = passed?;
    let loaded: BTreeSet<String> = documents(passed).map(|request| path_of(&request.url)).collect();
    let is_named = |evidence: &Evidence| evidence.steps.iter().any(|step| step.full_title().contains(&path));
    let ended_there = passed.page_state.as_ref().is_some_and(|state| path_of(&state.url) == path);
    // A page that the test asks for itself is the one it means.
    let is_meant =
        path == "/" || loaded.contains(&path) || ended_there || is_named(passed) || is_named(failing);
    if loaded.is_empty() || is_meant {
        return None;
    }
    let is_login = path.to_lowercase().split('/').any(|segment| LOGIN_SEGMENTS.contains(&segment));
    match document {
        _ if is_login => Some(OtherPage::Login(path)),
        // An application that changes its address without loading anything may be anywhere.
        Some(_) => Some(OtherPage::Elsewhere(path)),
        None => None,
    }
}

fn documents(evidence: &Evidence) -> impl DoubleEndedIterator<Item = &NetworkRequest> {
    let is_document =
        |request: &&NetworkRequest| request.resource_type == Some(ResourceType::Document) && !request.pending;
    evidence.network_requests.iter().filter(is_document)
}

/// The path without ids and query, fit to be shown between marks.
fn path_of(url: &str) -> String {
    let path = normalise_url(url);
    let path = path.split('?').next().unwrap_or_default();
    let plain: String = path.chars().filter(|one| !one.is_control() && *one != '`').collect();
    cut(masked(&plain).into_owned(), MAX_PATH_CHARS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evidence::{PageState, Step};

    fn on(path: &str, documents: &[(&str, i64)], step: &str) -> Evidence {
        let url = |path: &str| format!("https://shop.test{path}");
        let request = |&(path, status): &(&str, i64)| NetworkRequest {
            url: url(path),
            status,
            resource_type: Some(ResourceType::Document),
            ..NetworkRequest::default()
        };
        Evidence {
            page_state: Some(PageState { url: url(path), ..PageState::default() }),
            network_requests: documents.iter().map(request).collect(),
            steps: vec![Step { title: step.to_owned(), ..Step::default() }],
            ..Evidence::default()
        }
    }

    #[test]
    fn a_page_is_another_one_when_the_evidence_says_so() {
        let click = "locator.click(getByRole('button'))";
        let passed = on("/orders/7", &[("/cart", 200), ("/orders/7", 200)], click);
        let judged = |failing: &Evidence| other_page(failing, Some(&passed)).map(|page| page.to_string());
        let told = |path: &str, documents: &[(&str, i64)]| judged(&on(path, documents, click));
        assert_eq!(told("/orders/8", &[("/orders/8", 200)]), None, "another order");
        let error = told("/cart", &[("/cart", 200), ("/cart", 503)]);
        assert_eq!(error.as_deref(), Some("The page `/cart` answered 503"));
        let login = told("/account/login", &[("/cart", 302)]);
        assert_eq!(login.as_deref(), Some("The page was the login page `/account/login`"));
        let elsewhere = told("/sold-out", &[("/sold-out", 200)]);
        assert_eq!(elsewhere.as_deref(), Some("The page was another one, `/sold-out`"));
        assert_eq!(told("/sold-out", &[("/cart", 200)]), None, "without loading anything");
        let asked = on("/login", &[("/login", 200)], "page.goto(/login)");
        assert_eq!(judged(&asked), None, "the test went there itself");
        let unknown = Evidence { network_requests: Vec::new(), ..passed.clone() };
        assert_eq!(other_page(&on("/login", &[("/login", 200)], click), Some(&unknown)), None);
        assert_eq!(other_page(&Evidence::default(), Some(&passed)), None);
    }
}
