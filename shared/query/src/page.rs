//! Pages of lists. A page is asked for with the key of the last row of the
//! page before and holds the key for the next one; the surfaces turn keys into
//! opaque cursors.

/// A page of a list whose rows are keyed by `K`.
#[derive(Debug, Clone)]
pub struct Slice<T, K> {
    /// The rows.
    pub items: Vec<T>,
    /// Key to ask for the next page with; `None` at the end.
    pub next: Option<K>,
}

impl<T, K> Default for Slice<T, K> {
    fn default() -> Self {
        Self { items: Vec::new(), next: None }
    }
}

impl<T, K> Slice<T, K> {
    /// Makes a page of at most `limit` rows out of `limit + 1` fetched ones:
    /// the extra row only tells that there is more.
    pub fn cut(mut rows: Vec<T>, limit: usize, key: impl FnOnce(&T) -> K) -> Self {
        let next = if rows.len() > limit {
            rows.truncate(limit);
            rows.last().map(key)
        } else {
            None
        };
        Self { items: rows, next }
    }

    /// Turns the rows into what is shown.
    pub fn map<U>(self, show: impl FnMut(T) -> U) -> Slice<U, K> {
        Slice { items: self.items.into_iter().map(show).collect(), next: self.next }
    }
}

/// Most rows of a filtered list that its reader is told of.
const MOST_COUNTED: i64 = 10_000;
/// Where counting them ends: with the row that tells that there are more.
pub(crate) const COUNTED_TO: i64 = MOST_COUNTED + 1;

/// How many rows a list has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Total {
    /// So many.
    Exactly(i64),
    /// More than so many: nobody waits for the rest to be counted.
    MoreThan(i64),
}

impl Total {
    /// What counting up to [`COUNTED_TO`] rows came to.
    pub(crate) const fn of_counted(count: i64) -> Self {
        if count <= MOST_COUNTED { Self::Exactly(count) } else { Self::MoreThan(MOST_COUNTED) }
    }
}

/// The number of rows to fetch for a page of `limit`.
#[must_use]
pub(crate) fn fetch(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1)
}
