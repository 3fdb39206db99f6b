//! The id of the request being answered: in the log, in the answer's
//! `X-Request-Id`, and as `data.reference` of errors we are to blame for.

use std::fmt::Write as _;
use std::future::Future;

tokio::task_local! {
    static CURRENT: String;
}

/// The id of the request this task answers; `-` outside of one.
#[must_use]
pub fn current() -> String {
    CURRENT.try_with(Clone::clone).unwrap_or_else(|_| "-".to_owned())
}

/// Runs `work` as the answer to request `id`.
pub(crate) async fn scope<F: Future>(id: String, work: F) -> F::Output {
    CURRENT.scope(id, work).await
}

/// A fresh id: 16 hex digits.
pub(crate) fn fresh() -> String {
    let mut bytes = [0_u8; 8];
    // Without randomness ids repeat, which costs nothing but clarity of the log.
    let _ = getrandom::fill(&mut bytes);
    bytes.iter().fold(String::with_capacity(16), |mut id, byte| {
        let _ = write!(id, "{byte:02x}");
        id
    })
}
