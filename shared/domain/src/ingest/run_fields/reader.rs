//! Takes typed values out of a request's object. What cannot be left out is
//! an error, what can is noted.

use serde::Deserialize;
use serde_json::{Map, Value};

use super::project_name;
use crate::ingest::field_error::FieldError;
use crate::ingest::lenient::{Scalar, as_count};
use crate::ingest::meta::tidy;
use crate::ingest::run_parts::{ClaimedTotals, Shard};
use crate::ingest::status_words::run_result;
use crate::ingest::warnings::{Warnings, quoted, shown};
use crate::status::RunStatus;
use crate::time::Timestamp;

const MAX_SHARDS: f64 = 1_000.0;

/// Not sent, null, or blank text.
pub(super) fn is_missing(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(_) => false,
    }
}

/// The request's object and where notes about it go.
pub(super) struct Reader<'b, 'w> {
    pub(super) body: &'b mut Map<String, Value>,
    pub(super) warnings: &'w mut Warnings,
}

impl Reader<'_, '_> {
    /// The value, unless it is missing or null.
    fn take(&mut self, field: &str) -> Option<Value> {
        self.body.remove(field).filter(|value| !value.is_null())
    }

    fn dropped(&mut self, field: &str, expected: &str, got: &Value) {
        self.warnings.add("field_dropped", None, || {
            format!("{field} must be {expected}, got {}; the field was left out.", shown(got))
        });
    }

    pub(super) fn text(&mut self, field: &str, max_chars: usize) -> Option<String> {
        match self.take(field)? {
            Value::String(text) => tidy(text, max_chars),
            other => {
                self.dropped(field, "text", &other);
                None
            }
        }
    }

    fn scalar_number(value: &Value) -> Option<f64> {
        Scalar::deserialize(value).ok().and_then(|scalar| scalar.number())
    }

    pub(super) fn number(&mut self, field: &str) -> Option<f64> {
        let value = self.take(field)?;
        let number = Self::scalar_number(&value);
        if number.is_none() {
            self.dropped(field, "a number", &value);
        }
        number
    }

    /// The id of something that is stored.
    pub(super) fn id(&mut self, field: &str) -> Option<i64> {
        let value = self.take(field)?;
        let id = match &value {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.trim().parse().ok(),
            _ => None,
        };
        let id = id.filter(|id| *id > 0);
        if id.is_none() {
            self.dropped(field, "an id", &value);
        }
        id
    }

    pub(super) fn flag(&mut self, field: &str) -> Option<bool> {
        self.shape(field, "true or false", Value::is_boolean)
    }

    pub(super) fn count(&mut self, field: &str) -> Option<i64> {
        self.number(field).map(as_count)
    }

    pub(super) fn object(&mut self, field: &str) -> Option<Map<String, Value>> {
        match self.take(field)? {
            Value::Object(fields) => Some(fields),
            other => {
                self.dropped(field, "an object", &other);
                None
            }
        }
    }

    pub(super) fn shape<T: for<'de> Deserialize<'de>>(
        &mut self,
        field: &str,
        expected: &str,
        is_expected: fn(&Value) -> bool,
    ) -> Option<T> {
        let value = self.take(field)?;
        if is_expected(&value) {
            return T::deserialize(value).ok();
        }
        self.dropped(field, expected, &value);
        None
    }

    /// A key of `length` bytes, all `allowed`; anything else is no key.
    pub(super) fn key(
        &mut self,
        field: &str,
        length: std::ops::RangeInclusive<usize>,
        allowed: fn(u8) -> bool,
    ) -> Option<String> {
        match self.take(field)? {
            Value::String(text) if text.is_empty() => None,
            Value::String(text) if length.contains(&text.len()) && text.bytes().all(allowed) => Some(text),
            other => {
                self.dropped(field, "a short key of letters, digits and dashes", &other);
                None
            }
        }
    }

    pub(super) fn project_name(&mut self, required: bool) -> Result<Option<String>, FieldError> {
        match self.take("projectName") {
            None => Ok(None),
            Some(Value::String(name)) if !required && name.trim().is_empty() => Ok(None),
            Some(Value::String(name)) => project_name(&name).map(Some),
            Some(other) if required => {
                Err(FieldError::Invalid { field: "projectName", expected: "text", got: shown(&other) })
            }
            Some(other) => {
                self.dropped("projectName", "text", &other);
                Ok(None)
            }
        }
    }

    pub(super) fn status(&mut self, required: bool) -> Result<Option<RunStatus>, FieldError> {
        match self.take("status") {
            None => Ok(None),
            Some(Value::String(word)) => {
                let status = run_result(&word);
                if status.is_none() && !word.trim().is_empty() {
                    self.warnings.add("unknown_status", None, || {
                        format!("Run status {} is unknown; the status follows from the tests.", quoted(&word))
                    });
                }
                Ok(status)
            }
            Some(other) if required => Err(FieldError::Invalid {
                field: "status",
                expected: "text such as \"passed\"",
                got: shown(&other),
            }),
            Some(other) => {
                self.dropped("status", "text", &other);
                Ok(None)
            }
        }
    }

    pub(super) fn start_time(&mut self) -> Result<Option<Timestamp>, FieldError> {
        let Some(value) = self.take("startTime").filter(|value| !is_missing(Some(value))) else {
            return Ok(None);
        };
        let moment = Scalar::deserialize(&value).ok().and_then(|scalar| scalar.moment());
        moment.map(Some).ok_or_else(|| FieldError::Invalid {
            field: "startTime",
            expected: "an ISO 8601 time between 1970 and 2100",
            got: shown(&value),
        })
    }

    /// A total of at most 1 is an unsharded run, whatever the index.
    pub(super) fn shard(&mut self) -> Result<Option<Shard>, FieldError> {
        let sent_index = self.body.get("shardIndex").map_or_else(|| "none".to_owned(), shown);
        let sent_total = self.body.get("shardTotal").map_or_else(|| "none".to_owned(), shown);
        let index = self.number("shardIndex");
        let Some(total) = self.number("shardTotal").filter(|total| *total > 1.0) else {
            return Ok(None);
        };
        let invalid = || FieldError::InvalidShard { index: sent_index.clone(), total: sent_total.clone() };
        let whole = |number: f64, max: f64| {
            let in_range = number.fract() == 0.0 && (1.0..=max).contains(&number);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a whole number of 1 to 1,000"
            )]
            in_range.then_some(number as u32).ok_or_else(invalid)
        };
        let total_shards = whole(total, MAX_SHARDS)?;
        let index = index.map(|index| whole(index, total)).transpose()?;
        Ok(Some(Shard { index, total: total_shards }))
    }

    pub(super) fn claimed_totals(&mut self) -> Option<ClaimedTotals> {
        let totals = ClaimedTotals {
            total_tests: self.count("totalTests"),
            passed_tests: self.count("passedTests"),
            failed_tests: self.count("failedTests"),
            timed_out_tests: self.count("timedOutTests"),
            skipped_tests: self.count("skippedTests"),
            did_not_run_tests: self.count("didNotRunTests"),
            flaky_tests: self.count("flakyTests"),
        };
        (totals != ClaimedTotals::default()).then_some(totals)
    }
}
