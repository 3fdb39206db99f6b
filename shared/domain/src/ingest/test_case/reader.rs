//! Takes typed values out of the fields of a test-case object and notes the
//! fields of another type.

use super::small;
use crate::ingest::lenient::{Given, Scalar, rounded};
use crate::ingest::location::{Location, normalise_path};
use crate::ingest::status_words::{is_blank, test_result};
use crate::ingest::warnings::{Warnings, quoted};
use crate::status::TestStatus;
use crate::text::cut_str;
use crate::time::Timestamp;

const MAX_RAW_STATUS_CHARS: usize = 60;

/// The client's word for the result, understood.
pub(super) struct Claim {
    pub(super) status: TestStatus,
    pub(super) flaky: bool,
    pub(super) raw: Option<String>,
}

/// Takes typed values out of fields and notes those of another type.
pub(super) struct Reader<'w> {
    pub(super) index: usize,
    pub(super) warnings: &'w mut Warnings,
}

impl Reader<'_> {
    fn dropped(&mut self, field: &str, expected: &str, kind: &str) {
        self.warnings.add("field_dropped", Some(self.index), || {
            format!("{field} must be {expected}, got {kind}; the field was left out.")
        });
    }

    pub(super) fn text(&mut self, field: &str, scalar: Scalar<'_>) -> Option<String> {
        if !scalar.is_absent() && scalar.as_text().is_none() {
            self.dropped(field, "text", scalar.kind());
        }
        scalar.into_text()
    }

    pub(super) fn text_of<T>(&mut self, field: &str, given: Given<T>) -> Option<String> {
        match given {
            Given::Other(scalar) => self.text(field, *scalar),
            _ => None,
        }
    }

    pub(super) fn number(&mut self, field: &str, scalar: &Scalar<'_>) -> Option<f64> {
        let number = scalar.number();
        if number.is_none() && !scalar.is_absent() {
            self.dropped(field, "a number", scalar.kind());
        }
        number
    }

    pub(super) fn moment(&mut self, field: &str, scalar: &Scalar<'_>) -> Option<Timestamp> {
        let moment = scalar.moment();
        if moment.is_none() && !scalar.is_absent() {
            self.dropped(field, "a time in epoch milliseconds between 1970 and 2100", scalar.kind());
        }
        moment
    }

    pub(super) fn worker(&mut self, field: &str, scalar: &Scalar<'_>) -> Option<i32> {
        let number = self.number(field, scalar)?;
        let index = rounded(number, -2.0, 32_767.0);
        i32::try_from(index).ok().filter(|index| *index >= -1)
    }

    pub(super) fn value<T>(&mut self, field: &str, given: Given<T>) -> Option<T> {
        if let Given::Other(scalar) = &given {
            self.dropped(field, "a list or an object", scalar.kind());
        }
        given.value()
    }

    /// The status word; without one an error speaks for a failure.
    pub(super) fn claim(&mut self, status: &Scalar<'_>, has_error: bool) -> Option<Claim> {
        if !status.is_absent() && status.as_text().is_none() {
            self.dropped("status", "text", status.kind());
        }
        let Some(word) = status.as_text().filter(|word| !is_blank(word)) else {
            return has_error.then_some(Claim { status: TestStatus::Failed, flaky: false, raw: None });
        };
        if let Some(result) = test_result(word) {
            return Some(Claim { status: result.status, flaky: result.flaky, raw: None });
        }
        self.warnings.add("unknown_status", Some(self.index), || {
            format!("Status {} is unknown and counts as failed.", quoted(word))
        });
        let raw = cut_str(word.trim(), MAX_RAW_STATUS_CHARS).to_owned();
        Some(Claim { status: TestStatus::Failed, flaky: false, raw: Some(raw) })
    }

    /// The first text among `candidates`; line and column of their own fill
    /// what the text does not say.
    pub(super) fn location(
        &mut self,
        candidates: [(&str, Scalar<'_>); 3],
        line: &Scalar<'_>,
        column: &Scalar<'_>,
    ) -> Location {
        let mut found: Option<Location> = None;
        for (field, scalar) in candidates {
            if !scalar.is_absent() && scalar.as_text().is_none() {
                self.dropped(field, "text", scalar.kind());
            }
            let text = scalar.as_text().filter(|text| found.is_none() && !text.trim().is_empty());
            found = found.or_else(|| text.map(Location::parse));
        }
        let mut location =
            found.unwrap_or_else(|| Location { path: normalise_path(""), line: None, column: None });
        if location.line.is_none() {
            let number = |number| small(number, 0, i64::from(i32::MAX));
            location.line = self.number("line", line).map(number);
            location.column = self.number("column", column).map(number);
        }
        location
    }
}
