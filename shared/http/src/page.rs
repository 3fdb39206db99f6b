//! Pages of lists: how many rows, and the envelope they come in.

use serde::Serialize;
use utoipa::{IntoParams, ToSchema};

use crate::error::ApiError;

/// How many rows a page may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageSize {
    /// Fewest; below is 400.
    pub min: u32,
    /// When the client names none.
    pub default: u32,
    /// Most; above is cut to this.
    pub max: u32,
}

impl PageSize {
    /// The rule of lists: 1 to 200, 50 by default.
    pub const LIST: Self = Self { min: 1, default: 50, max: 200 };

    /// Reads a `limit` parameter.
    ///
    /// # Errors
    /// 400 `invalid_query` for what is not a number or below the smallest.
    pub fn parse(self, param: &str, text: Option<&str>) -> Result<u32, ApiError> {
        let Some(text) = text else {
            return Ok(self.default);
        };
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        // Digits that overflow are a very large number.
        let number = if is_number { text.parse().unwrap_or(u32::MAX) } else { 0 };
        if !is_number || number < self.min {
            let message =
                format!("{param} must be a number from {} to {}, got {text:?}.", self.min, self.max);
            return Err(ApiError::invalid_query(param, message));
        }
        Ok(number.min(self.max))
    }
}

/// What a client asks of a list besides filters.
#[derive(Debug, Clone, PartialEq, Eq, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct PageRequest {
    /// Rows per page, 1 to 200; larger numbers count as 200.
    #[param(required = false, default = 50, minimum = 1)]
    pub limit: u32,
    /// Where to continue: `nextCursor` of the page before, with the same filters.
    pub cursor: Option<String>,
}

impl PageRequest {
    /// Rows per page.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.limit as usize
    }
}

/// One page of a list.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Pass it as `cursor` to read on; null after the last page.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page, and where to read on.
    #[must_use]
    pub const fn new(items: Vec<T>, next_cursor: Option<String>) -> Self {
        Self { items, next_cursor }
    }

    /// A small list that is always whole.
    #[must_use]
    pub const fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

/// One page of a list whose length is known without counting.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CountedPage<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Pass it as `cursor` to read on; null after the last page.
    pub next_cursor: Option<String>,
    /// Rows of the whole list; null when it is filtered.
    pub total: Option<i64>,
}

impl<T> CountedPage<T> {
    /// A page of a list with this many rows, as far as they are counted.
    #[must_use]
    pub fn new(page: Page<T>, total: Option<i64>) -> Self {
        Self { items: page.items, next_cursor: page.next_cursor, total }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_above_are_cut_and_limits_below_are_refused() {
        let read = |text| PageSize::LIST.parse("limit", text);
        assert_eq!(read(None).unwrap(), 50);
        assert_eq!(read(Some("7")).unwrap(), 7);
        for large in ["201", "1000000000", "99999999999999999999999"] {
            assert_eq!(read(Some(large)).unwrap(), 200);
        }
        for bad in ["0", "-1", "x", "", "1.5", "NaN", "+5"] {
            assert_eq!(read(Some(bad)).unwrap_err().code(), "invalid_query", "{bad}");
        }
        let detail = PageSize { min: 0, default: 20, max: 200 };
        assert_eq!(detail.parse("limit", Some("0")).unwrap(), 0);
    }
}
