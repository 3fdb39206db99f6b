//! Requests of a failed test that were not answered like that when it passed.

use std::collections::BTreeSet;

use callboard_domain::evidence::{Evidence, NetworkRequest};
use callboard_domain::secrets::masked;
use callboard_domain::text::cut;

/// Longest name of a request, characters.
const MAX_NAME_CHARS: usize = 400;

/// The first request whose answer the page lacked as it did not when the test passed.
pub(super) fn new_broken_request<'e>(failing: &'e Evidence, passed: &Evidence) -> Option<&'e NetworkRequest> {
    new_failures(failing, passed).find(|request| request.is_broken())
}

/// Failing requests that were not answered like that when the test passed, at
/// no time: a page may ask again what failed at first.
pub(super) fn new_failures<'e, 'p>(
    failing: &'e Evidence,
    passed: &'p Evidence,
) -> impl Iterator<Item = &'e NetworkRequest> + use<'e, 'p> {
    let known: BTreeSet<_> = passed.network_requests.iter().map(answered).collect();
    let failed = failing.network_requests.iter().filter(|request| request.is_failing());
    failed.filter(move |request| !known.contains(&answered(request)))
}

/// Method and address.
pub(super) fn endpoint(request: &NetworkRequest) -> (&str, &str) {
    (&request.method, &request.normalized_url)
}

/// A request with its answer.
pub(super) fn answered(request: &NetworkRequest) -> (&str, &str, i64) {
    (&request.method, &request.normalized_url, request.status)
}

/// Method and address as they are shown, without secrets.
pub(super) fn request_name(request: &NetworkRequest) -> String {
    let name = format!("{} {}", request.method, request.normalized_url);
    cut(masked(&name).into_owned(), MAX_NAME_CHARS)
}
