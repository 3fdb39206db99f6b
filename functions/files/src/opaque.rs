//! Pages that may have no storage: those opened with an opaque origin, and,
//! where a browser keeps nothing for others, those shown inside of a page of
//! another site. Merely looking at `localStorage` throws there, and reports that
//! keep a setting in it, Playwright's among them, stop with an empty page. A
//! browser that opens such a page gets it with a storage that lasts as long as
//! the page does; every other client gets the bytes as they are stored.

use axum::body::{Body, Bytes};
use callboard_http::{ApiError, AppState};
use callboard_query::files::Served;
use futures::{StreamExt, stream};
use http::header::{ACCEPT, RANGE};

use crate::answer::{log_break, unread};
use crate::request::FileRequest;

/// What both storages offer everywhere, where there is none; nothing is kept or
/// shared.
const STORAGE: &str = "<script>(()=>{const storage=()=>{const kept=new Map();return{\
    getItem:(key)=>kept.get(String(key))??null,setItem(key,value){kept.set(String(key),String(value))},\
    removeItem(key){kept.delete(String(key))},clear(){kept.clear()},key:(at)=>[...kept.keys()][at]??null,\
    get length(){return kept.size}}};for(const name of['localStorage','sessionStorage'])\
    try{window[name].length}catch{Object.defineProperty(window,name,{value:storage()})}})()</script>";

/// Where browsers say what they fetch something for.
const PURPOSE: &str = "sec-fetch-dest";

/// By how many bytes a page grows.
pub(crate) const STORAGE_BYTES: u64 = STORAGE.len() as u64;

/// A document type stands within this many bytes, or the page has none.
const HEAD_BYTES: u64 = 1024;

/// Whether a request is a browser opening a page.
pub(crate) fn opens_page(request: &FileRequest) -> bool {
    let mut accepted = request.headers.get_all(ACCEPT).iter();
    !request.headers.contains_key(RANGE)
        && accepted.any(|value| value.to_str().is_ok_and(|value| value.contains("text/html")))
}

/// Whether a page is shown inside of another.
pub(crate) fn is_framed(request: &FileRequest) -> bool {
    let purpose = request.headers.get(PURPOSE).and_then(|value| value.to_str().ok());
    purpose.is_some_and(|purpose| matches!(purpose, "iframe" | "frame"))
}

/// The bytes of a page together with a storage.
///
/// # Errors
/// 503 when the object store is away.
pub(crate) async fn page(state: &AppState, served: &Served) -> Result<Body, ApiError> {
    if served.size == 0 {
        return Ok(Body::from(STORAGE));
    }
    let store = state.store();
    let head = served.content.read(store, 0..served.size.min(HEAD_BYTES)).await.map_err(unread)?;
    let at = insertion_point(&head);
    let begin = [head.slice(..at), Bytes::from_static(STORAGE.as_bytes()), head.slice(at..)];
    let begin = stream::iter(begin.map(Ok));
    if served.size <= HEAD_BYTES {
        return Ok(Body::from_stream(begin));
    }
    let rest = served.content.stream(store, Some(HEAD_BYTES..served.size)).await.map_err(unread)?;
    Ok(Body::from_stream(begin.chain(log_break(rest))))
}

/// Where a script can stand before everything else of a page: behind its
/// document type, because a page that begins with anything else is laid out
/// by other rules.
fn insertion_point(head: &[u8]) -> usize {
    let mut at = if head.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    let start = at;
    loop {
        at += head[at..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
        let rest = &head[at..];
        if rest.starts_with(b"<!--") {
            match rest.windows(3).position(|bytes| bytes == b"-->") {
                Some(end) => at += end + 3,
                None => return start,
            }
        } else if rest.get(..9).is_some_and(|word| word.eq_ignore_ascii_case(b"<!doctype")) {
            let end = rest.iter().position(|byte| *byte == b'>');
            return end.map_or(start, |end| at + end + 1);
        } else {
            return start;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_document_type_stays_in_front() {
        for (page, before) in [
            ("\n\n<!DOCTYPE html>\n<html>", "\n\n<!DOCTYPE html>"),
            ("\u{feff}<!doctype html><p>", "\u{feff}<!doctype html>"),
            (
                "<!-- a --> <!-- b --><!doctype html SYSTEM \"about:legacy-compat\"><p>",
                "<!-- a --> <!-- b --><!doctype html SYSTEM \"about:legacy-compat\">",
            ),
            ("<html><!doctype html>", ""),
            ("\u{feff}<p>", "\u{feff}"),
            ("<!-- never closed <!doctype html>", ""),
            ("<!doctype htm", ""),
            ("", ""),
        ] {
            assert_eq!(&page.as_bytes()[..insertion_point(page.as_bytes())], before.as_bytes(), "{page}");
        }
    }

    proptest! {
        #[test]
        fn there_is_a_place_in_whatever_was_stored(
            head in prop_oneof!["[ <>!doctypehml-]{0,40}".prop_map(String::into_bytes), any::<Vec<u8>>()],
        ) {
            prop_assert!(insertion_point(&head) <= head.len());
        }
    }
}
