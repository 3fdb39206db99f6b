//! How much memory the lists of one test case may take while it is read.
//!
//! An element takes many times the length of its text (`{}` becomes a request of
//! some hundred bytes), and lists lie within lists. The readers of lists know
//! nothing of each other, so what is left is counted by thread: a test case is
//! read from its first to its last byte by one.

use std::cell::Cell;

/// Bytes of list elements that are kept of one test case, besides their texts:
/// more than the largest caps keep.
const MAX_ELEMENT_BYTES: usize = 8 * 1024 * 1024;

thread_local! {
    /// `None` once something did not fit.
    static LEFT: Cell<Option<usize>> = const { Cell::new(Some(MAX_ELEMENT_BYTES)) };
}

/// Reads something with the whole allowance; answers also whether it was too little.
pub(super) fn within<T>(read: impl FnOnce() -> T) -> (T, bool) {
    LEFT.set(Some(MAX_ELEMENT_BYTES));
    let read = read();
    let is_exceeded = LEFT.replace(Some(MAX_ELEMENT_BYTES)).is_none();
    (read, is_exceeded)
}

/// Takes memory for an element; false when there is too little left, for this one and all later ones.
pub(super) fn take(bytes: usize) -> bool {
    let left = LEFT.get().and_then(|left| left.checked_sub(bytes));
    LEFT.set(left);
    left.is_some()
}
