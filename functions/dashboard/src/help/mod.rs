//! `/help`: the documentation, compiled in. Every page of the dashboard links
//! to the part that explains it ([`topic`]); whoever reaches the service can
//! read it, signed in or not.

mod documents;
mod markdown;
mod topics;

use std::sync::LazyLock;

use askama::Template;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use callboard_http::extract::Tail;
use callboard_http::{ApiError, AppState};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

use crate::filters;
use crate::visit::answer;
use documents::{DOCUMENTS, Document, INDEX, PICTURES};
use markdown::Rendered;
pub(crate) use topics::topic;

/// Pictures change with the version of the service.
const PICTURE_CACHE: &str = "public, max-age=86400";

/// Inputs of `pages/help.html`.
#[derive(Template)]
#[template(path = "pages/help.html")]
struct HelpTemplate {
    title: &'static str,
    is_demo: bool,
    current: &'static str,
    groups: Vec<Group>,
    rendered: &'static Rendered,
}

/// Pages of one folder.
struct Group {
    name: &'static str,
    documents: Vec<&'static Document>,
}

/// Every page as HTML, in the order of [`DOCUMENTS`].
static RENDERED: LazyLock<Vec<Rendered>> = LazyLock::new(|| DOCUMENTS.iter().map(markdown::render).collect());

/// The first page of the documentation.
pub(crate) async fn index(State(state): State<AppState>) -> Result<Response, ApiError> {
    show(&state, INDEX)
}

/// A page by its path without `.md`, or a picture by its name.
pub(crate) async fn page(State(state): State<AppState>, Tail(path): Tail) -> Result<Response, ApiError> {
    if let Some((_, bytes)) = PICTURES.iter().find(|(name, _)| *name == path) {
        return Ok(([(CONTENT_TYPE, "image/png"), (CACHE_CONTROL, PICTURE_CACHE)], *bytes).into_response());
    }
    show(&state, &path)
}

fn show(state: &AppState, path: &str) -> Result<Response, ApiError> {
    let at = DOCUMENTS.iter().position(|document| document.path == path);
    let at = at.ok_or_else(ApiError::route_not_found)?;
    answer(&HelpTemplate {
        title: DOCUMENTS[at].title(),
        is_demo: state.config().demo,
        current: DOCUMENTS[at].path,
        groups: groups(),
        rendered: &RENDERED[at],
    })
}

fn groups() -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for document in DOCUMENTS {
        let name = document.group();
        match groups.last_mut().filter(|group| group.name == name) {
            Some(group) => group.documents.push(document),
            None => groups.push(Group { name, documents: vec![document] }),
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_document_for_users_is_compiled_in() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let mut found = BTreeSet::new();
        for folder in ["", "guides", "deploy", "operate", "reference"] {
            for entry in std::fs::read_dir(docs.join(folder)).unwrap() {
                let path = entry.unwrap().path();
                if let Some(stem) = path.to_str().unwrap().strip_suffix(".md") {
                    let name = stem.rsplit('/').next().unwrap();
                    found.insert(if folder.is_empty() {
                        name.to_owned()
                    } else {
                        format!("{folder}/{name}")
                    });
                }
            }
        }
        let known: BTreeSet<String> = DOCUMENTS.iter().map(|document| document.path.to_owned()).collect();
        assert_eq!(known, found);
    }

    #[test]
    fn links_and_pictures_of_documents_lead_somewhere() {
        let mut seen = 0;
        for (document, rendered) in DOCUMENTS.iter().zip(RENDERED.iter()) {
            for target in rendered.html.split(&['"'][..]).filter(|part| part.starts_with("/help")) {
                seen += 1;
                let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
                let path = path.strip_prefix("/help/").unwrap_or(INDEX);
                if PICTURES.iter().any(|(name, _)| *name == path) {
                    continue;
                }
                let at = DOCUMENTS.iter().position(|other| other.path == path);
                let at = at.unwrap_or_else(|| panic!("{}: {target}", document.path));
                assert!(RENDERED[at].has_anchor(anchor), "{}: {target}", document.path);
            }
        }
        assert!(seen > 80, "{seen} links were found");
    }

    #[test]
    fn a_document_is_html_that_a_strict_policy_shows() {
        for rendered in RENDERED.iter() {
            for banned in ["style=", "<script", "onerror", "javascript:", "<!--", ".md\"", ".md#"] {
                assert!(!rendered.html.contains(banned), "{banned} in {}", rendered.html);
            }
        }
    }
}
