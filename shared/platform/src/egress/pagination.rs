//! Lists in pages: `Link: <…>; rel="next"` (RFC 8288), as code hosts send it.

use http::HeaderMap;
use http::header::LINK;
use url::Url;

use super::EgressError;

/// Where the next page of a list is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// At this address.
    At(String),
    /// There is none.
    Last,
    /// The answer has no `Link` header.
    NotSaid,
}

/// What the `Link` headers of an answer say about the next page.
#[must_use]
pub fn next_page(headers: &HeaderMap) -> Next {
    let mut links = headers.get_all(LINK).iter().peekable();
    if links.peek().is_none() {
        return Next::NotSaid;
    }
    let target = links.filter_map(|value| value.to_str().ok()).find_map(|header| target_of(header, "next"));
    target.map_or(Next::Last, |target| Next::At(target.to_owned()))
}

/// The target of a relation such as `last` that the `Link` headers of an answer name.
#[must_use]
pub fn page_of_relation<'h>(headers: &'h HeaderMap, relation: &str) -> Option<&'h str> {
    let links = headers.get_all(LINK).iter().filter_map(|value| value.to_str().ok());
    links.filter_map(|header| target_of(header, relation)).next()
}

/// The target of the first link with a relation.
fn target_of<'h>(mut header: &'h str, relation: &str) -> Option<&'h str> {
    while let Some((_, rest)) = header.split_once('<') {
        let (target, rest) = rest.split_once('>')?;
        let (mut parameters, rest) = cut(rest, ',');
        while !parameters.is_empty() {
            let (parameter, more) = cut(parameters, ';');
            if names(parameter, relation) {
                return Some(target);
            }
            parameters = more;
        }
        header = rest;
    }
    None
}

/// Cuts a text at the first separator outside of quotes.
fn cut(text: &str, separator: char) -> (&str, &str) {
    let mut is_quoted = false;
    let end = text.find(|char: char| {
        is_quoted ^= char == '"';
        char == separator && !is_quoted
    });
    end.map_or((text, ""), |end| (&text[..end], &text[end + separator.len_utf8()..]))
}

fn names(parameter: &str, relation: &str) -> bool {
    let Some((name, value)) = parameter.split_once('=') else { return false };
    let relations = value.trim().trim_matches('"');
    name.trim().eq_ignore_ascii_case("rel")
        && relations.split_ascii_whitespace().any(|named| named.eq_ignore_ascii_case(relation))
}

/// The absolute address of a next page.
///
/// # Errors
/// [`EgressError::Refused`] for another origin than that of `address`.
pub(super) fn on_same_origin(address: &str, target: &str) -> Result<String, EgressError> {
    let base = Url::parse(address).map_err(|_| EgressError::Refused)?;
    let next = base.join(target).map_err(|_| EgressError::Refused)?;
    let names_nobody = next.username().is_empty() && next.password().is_none();
    if next.origin() == base.origin() && names_nobody { Ok(next.into()) } else { Err(EgressError::Refused) }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn next_of_headers(values: &[&'static str]) -> Next {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(LINK, HeaderValue::from_static(value));
        }
        next_page(&headers)
    }

    #[test]
    fn the_next_page_is_found_among_the_links() {
        let at = |target: &str| Next::At(target.to_owned());
        assert_eq!(next_of_headers(&[]), Next::NotSaid);
        assert_eq!(next_of_headers(&["</orgs?page=1>; rel=\"prev\""]), Next::Last);
        assert_eq!(next_of_headers(&["</a>; rel=\"first\", </b?x=1,2>; rel=\"next\""]), at("/b?x=1,2"));
        assert_eq!(next_of_headers(&["</a>; title=\"a, <b>; rel=next\"; rel=last"]), Next::Last);
        assert_eq!(next_of_headers(&["</a>; rel=last", "</b>;REL=\"last Next\""]), at("/b"));
        assert_eq!(next_of_headers(&["</a"]), Next::Last);
    }

    #[test]
    fn the_last_page_is_found_among_the_links() {
        let mut headers = HeaderMap::new();
        assert_eq!(page_of_relation(&headers, "last"), None);
        headers
            .insert(LINK, HeaderValue::from_static("</b?page=2>; rel=\"next\", </b?page=9>; rel=\"last\""));
        assert_eq!(page_of_relation(&headers, "last"), Some("/b?page=9"));
    }

    #[test]
    fn the_next_page_is_on_the_same_origin() {
        let base = "https://api.example.org/user/orgs?page=1";
        let next = |target| on_same_origin(base, target).ok();
        assert_eq!(next("?page=2").as_deref(), Some("https://api.example.org/user/orgs?page=2"));
        assert_eq!(next("/x").as_deref(), Some("https://api.example.org/x"));
        for elsewhere in [
            "http://api.example.org/x",
            "https://api.example.org:8443/x",
            "https://evil.example/x",
            "//evil.example/x",
            "https://me@api.example.org/x",
            "javascript:x",
        ] {
            assert_eq!(next(elsewhere), None, "{elsewhere}");
        }
    }
}
