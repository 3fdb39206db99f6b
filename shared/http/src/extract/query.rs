//! Query strings. A filter type reads itself through a [`QueryReader`], which
//! knows the rules of the contract: every value it cannot use is 400
//! `invalid_query` naming the parameter, and nothing is dropped silently.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use axum::extract::FromRequestParts;
use callboard_domain::time::{Day, Timestamp};
use http::request::Parts;
use url::form_urlencoded;

use super::path::EntityId;
use crate::error::ApiError;
use crate::page::{PageRequest, PageSize};

/// Longest value of a free-text parameter, characters.
const MAX_TEXT_CHARS: usize = 200;
/// Longest value that is compared with stored ones, characters.
const MAX_EXACT_CHARS: usize = 1_000;
/// Most different values of a parameter that lists several.
const MAX_LISTED: usize = 100;
const MS_PER_DAY: i64 = 86_400_000;

/// A type that reads itself out of a query string.
pub trait FromQuery: Sized {
    /// Reads all parameters the type knows.
    ///
    /// # Errors
    /// 400 `invalid_query`.
    fn from_query(query: &QueryReader) -> Result<Self, ApiError>;
}

/// The query string as a `T`.
#[derive(Debug, Clone)]
pub struct Query<T>(pub T);

impl<T: FromQuery, S: Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, ApiError> {
        QueryReader::parse(parts.uri.query().unwrap_or_default())
            .and_then(|query| T::from_query(&query))
            .map(Self)
    }
}

impl FromQuery for PageRequest {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        query.page(PageSize::LIST)
    }
}

/// The parameters of one request, decoded.
#[derive(Debug, Clone)]
pub struct QueryReader(Vec<(String, String)>);

impl QueryReader {
    /// Decodes a query string.
    ///
    /// # Errors
    /// 400 `invalid_query` for a parameter with a NUL character, which no
    /// stored text holds.
    pub fn parse(query: &str) -> Result<Self, ApiError> {
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        match pairs.iter().find(|(_, value)| value.contains('\0')) {
            Some((name, _)) => Err(ApiError::invalid_query(name, format!("{name} must not contain NUL."))),
            None => Ok(Self(pairs)),
        }
    }

    fn values<'q, 'n>(&'q self, name: &'n str) -> impl Iterator<Item = &'q str> + use<'q, 'n> {
        self.0.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// The different values of a comma list that may also be repeated, in their
    /// order. What answers them may do so one by one, hence the limit.
    ///
    /// # Errors
    /// 400 for more than [`MAX_LISTED`].
    fn listed(&self, name: &str) -> Result<Vec<&str>, ApiError> {
        let mut seen = HashSet::new();
        let values = self.values(name).flat_map(|values| values.split(',')).map(str::trim);
        let different: Vec<&str> =
            values.filter(|value| !value.is_empty() && seen.insert(*value)).take(MAX_LISTED + 1).collect();
        if different.len() > MAX_LISTED {
            let message = format!("{name} may name at most {MAX_LISTED} different values.");
            return Err(ApiError::invalid_query(name, message));
        }
        Ok(different)
    }

    /// The one value of a parameter, as it came, also an empty one.
    ///
    /// # Errors
    /// 400 when it is given more than once.
    pub fn single<'q>(&'q self, name: &str) -> Result<Option<&'q str>, ApiError> {
        let mut values = self.values(name);
        let first = values.next();
        if values.next().is_some() {
            return Err(ApiError::invalid_query(name, format!("{name} may be given once.")));
        }
        Ok(first)
    }

    /// The one value of a parameter; blank counts as not given.
    ///
    /// # Errors
    /// 400 when it is given more than once.
    fn given<'q>(&'q self, name: &str) -> Result<Option<&'q str>, ApiError> {
        Ok(self.single(name)?.map(str::trim).filter(|value| !value.is_empty()))
    }

    /// A free text of at most 200 characters.
    ///
    /// # Errors
    /// 400 when it is longer or given more than once.
    pub fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.given(name)? {
            Some(text) if text.chars().count() > MAX_TEXT_CHARS => Err(ApiError::invalid_query(
                name,
                format!("{name} may have at most {MAX_TEXT_CHARS} characters."),
            )),
            text => Ok(text.map(str::to_owned)),
        }
    }

    /// The one value of a parameter that is compared as it is; an empty one
    /// counts as not given.
    ///
    /// # Errors
    /// 400 when it is longer than anything that is stored, or given more than
    /// once.
    pub fn exact(&self, name: &str) -> Result<Option<String>, ApiError> {
        Ok(self.recorded(name)?.filter(|text| !text.is_empty()))
    }

    /// The one value of a parameter that is compared as it is; an empty one
    /// means "none recorded".
    ///
    /// # Errors
    /// 400 when it is longer than anything that is stored, or given more than
    /// once.
    pub fn recorded(&self, name: &str) -> Result<Option<String>, ApiError> {
        match self.single(name)? {
            Some(text) if text.chars().count() > MAX_EXACT_CHARS => Err(ApiError::invalid_query(
                name,
                format!("{name} may have at most {MAX_EXACT_CHARS} characters."),
            )),
            text => Ok(text.map(str::to_owned)),
        }
    }

    /// The branch or environment whose numbers are asked for: one value, since
    /// rollups are kept for one or for all.
    ///
    /// # Errors
    /// 400 when it is empty, too long or given more than once.
    pub fn lane(&self, name: &str) -> Result<Option<String>, ApiError> {
        if self.single(name)? == Some("") {
            return Err(ApiError::invalid_query(
                name,
                format!("{name} must name one; leave it out for all."),
            ));
        }
        self.exact(name)
    }

    /// All values of a repeatable parameter; an empty one stays, it means
    /// "none recorded".
    #[must_use]
    pub fn repeated(&self, name: &str) -> Vec<String> {
        self.values(name).map(str::to_owned).collect()
    }

    /// What the different words of a comma list that may also be repeated are.
    ///
    /// # Errors
    /// 400 for more than `MAX_LISTED`.
    pub fn list(&self, name: &str) -> Result<Vec<String>, ApiError> {
        Ok(self.listed(name)?.into_iter().map(str::to_owned).collect())
    }

    /// What a word out of a closed list stands for; the error names the words.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub fn one_of<T: Copy>(&self, name: &str, meanings: &[(&str, T)]) -> Result<Option<T>, ApiError> {
        self.word(name, &spelt(meanings), |word| meaning(meanings, word))
    }

    /// What words out of a closed list stand for, as a comma list or repeated;
    /// the error names the words.
    ///
    /// # Errors
    /// 400 for an unknown one, or too many.
    pub fn any_of<T: Copy>(&self, name: &str, meanings: &[(&str, T)]) -> Result<Vec<T>, ApiError> {
        self.words(name, &spelt(meanings), |word| meaning(meanings, word))
    }

    /// A word out of a closed list. `parse` may know other spellings besides
    /// `words`, which the error names.
    ///
    /// # Errors
    /// 400 for an unknown one.
    pub fn word<T>(
        &self,
        name: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, ApiError> {
        self.given(name)?.map(|value| known_word(name, value, words, &parse)).transpose()
    }

    /// Words out of a closed list, as a comma list or repeated.
    ///
    /// # Errors
    /// 400 for an unknown one, or too many.
    pub fn words<T>(
        &self,
        name: &str,
        words: &[&str],
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, ApiError> {
        self.listed(name)?.into_iter().map(|value| known_word(name, value, words, &parse)).collect()
    }

    /// One id.
    ///
    /// # Errors
    /// 400 for what is not an id.
    pub fn id<T: EntityId>(&self, name: &str) -> Result<Option<T>, ApiError> {
        self.given(name)?.map(|value| known_id(name, value)).transpose()
    }

    /// Different ids, as a comma list or repeated.
    ///
    /// # Errors
    /// 400 for what is not an id, or too many.
    pub fn ids<T: EntityId>(&self, name: &str) -> Result<Vec<T>, ApiError> {
        self.listed(name)?.into_iter().map(|value| known_id(name, value)).collect()
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, ApiError> {
        self.word(name, &["true", "false"], |value| match value {
            "true" | "1" => Some(true),
            "false" | "0" => Some(false),
            _ => None,
        })
    }

    /// A whole number within bounds.
    ///
    /// # Errors
    /// 400 outside of them.
    pub fn number(&self, name: &str, bounds: RangeInclusive<i64>) -> Result<Option<i64>, ApiError> {
        let Some(value) = self.given(name)? else {
            return Ok(None);
        };
        match value.parse() {
            Ok(number) if bounds.contains(&number) => Ok(Some(number)),
            _ => Err(ApiError::invalid_query(
                name,
                format!(
                    "{name} must be a whole number from {} to {}, got {value:?}.",
                    bounds.start(),
                    bounds.end()
                ),
            )),
        }
    }

    /// The window of `from` and `to`, both inclusive: dates or date-times; a
    /// date as `to` includes that UTC day.
    ///
    /// # Errors
    /// 400 for what is not a time, or when `from` is after `to`.
    pub fn window(&self) -> Result<(Option<Timestamp>, Option<Timestamp>), ApiError> {
        let from = self.moment("from", Day::start)?;
        let to = self.moment("to", |day| Timestamp(day.start().millis() + MS_PER_DAY - 1))?;
        if let (Some(from), Some(to)) = (from, to)
            && from > to
        {
            return Err(ApiError::invalid_query("from", "from must not be after to."));
        }
        Ok((from, to))
    }

    /// A moment, or a day, which is its first moment in UTC.
    ///
    /// # Errors
    /// 400 for what is not a time.
    pub fn since(&self, name: &str) -> Result<Option<Timestamp>, ApiError> {
        self.moment(name, Day::start)
    }

    /// A date-time, or what `of_day` makes of a date.
    fn moment(&self, name: &str, of_day: impl Fn(Day) -> Timestamp) -> Result<Option<Timestamp>, ApiError> {
        let Some(text) = self.given(name)? else { return Ok(None) };
        let moment = Day::parse(text).map(of_day).or_else(|| Timestamp::parse_iso(text));
        moment.map(Some).ok_or_else(|| {
            let message = format!("{name} must be a date or an ISO 8601 time, got {text:?}.");
            ApiError::invalid_query(name, message)
        })
    }

    /// `limit` and `cursor`.
    ///
    /// # Errors
    /// 400 for a limit that is not a number or too small.
    pub fn page(&self, size: PageSize) -> Result<PageRequest, ApiError> {
        Ok(PageRequest { limit: self.limit(size)?, cursor: self.given("cursor")?.map(str::to_owned) })
    }

    /// `limit` alone.
    ///
    /// # Errors
    /// 400 for a limit that is not a number or too small.
    pub fn limit(&self, size: PageSize) -> Result<u32, ApiError> {
        size.parse("limit", self.single("limit")?)
    }
}

fn spelt<'w, T>(meanings: &[(&'w str, T)]) -> Vec<&'w str> {
    meanings.iter().map(|(word, _)| *word).collect()
}

fn meaning<T: Copy>(meanings: &[(&str, T)], word: &str) -> Option<T> {
    meanings.iter().find(|(spelt, _)| *spelt == word).map(|(_, meaning)| *meaning)
}

fn known_id<T: EntityId>(name: &str, value: &str) -> Result<T, ApiError> {
    T::parse_id(value).ok_or_else(|| {
        ApiError::invalid_query(name, format!("{name} must be a positive whole number, got {value:?}."))
    })
}

fn known_word<T>(
    name: &str,
    value: &str,
    words: &[&str],
    parse: impl Fn(&str) -> Option<T>,
) -> Result<T, ApiError> {
    parse(value).ok_or_else(|| {
        let accepted = words.join(", ");
        ApiError::invalid_query(name, format!("{name} cannot be {value:?}; it is one of {accepted}."))
    })
}

#[cfg(test)]
mod tests {
    use callboard_domain::ids::ProjectId;
    use callboard_domain::status::RunStatus;

    use super::*;

    fn query(text: &str) -> QueryReader {
        QueryReader::parse(text).unwrap()
    }

    fn param<T: std::fmt::Debug>(result: Result<T, ApiError>) -> String {
        let error = result.unwrap_err();
        assert_eq!(error.code(), "invalid_query");
        error.body().data.unwrap()["param"].as_str().unwrap().to_owned()
    }

    #[test]
    fn lists_are_given_with_commas_or_by_repeating() {
        let words = RunStatus::ALL.map(RunStatus::as_str);
        let statuses = |text: &str| query(text).words("status", &words, RunStatus::parse).unwrap();
        let expected = vec![RunStatus::Failed, RunStatus::TimedOut];
        assert_eq!(statuses("status=failed,timedOut"), expected);
        assert_eq!(statuses("status=failed&status=timedout"), expected);
        assert_eq!(statuses("status="), vec![]);
        let meanings = [("once", 1), ("twice", 2)];
        assert_eq!(query("tried=twice,once").any_of("tried", &meanings).unwrap(), [2, 1]);
        assert_eq!(query("tag=a,b&tag=c,a").list("tag").unwrap(), ["a", "b", "c"]);
        assert_eq!(
            query("project=3&project=4").ids::<ProjectId>("project").unwrap(),
            [ProjectId(3), ProjectId(4)]
        );
    }

    #[test]
    fn every_unusable_value_names_its_parameter() {
        assert_eq!(param(query("tried=once,never").any_of("tried", &[("once", ())])), "tried");
        assert_eq!(param(query("project=03").ids::<ProjectId>("project")), "project");
        let many: Vec<String> = (0..=MAX_LISTED).map(|number| format!("tag={number},0")).collect();
        assert_eq!(param(query(&many.join("&")).list("tag")), "tag");
        assert_eq!(param(query("pinned=yes").flag("pinned")), "pinned");
        assert_eq!(param(query("q=a&q=b").text("q")), "q");
        assert_eq!(param(query(&format!("q={}", "x".repeat(201))).text("q")), "q");
        assert_eq!(param(query("days=0").number("days", 1..=366)), "days");
        assert_eq!(param(query("limit=x").page(PageSize::LIST)), "limit");
        assert_eq!(param(query("from=2026-02-01&to=2026-01-01").window()), "from");
        assert_eq!(param(query("to=soon").window()), "to");
        assert_eq!(param(QueryReader::parse("q=a%00b")), "q");
    }

    #[test]
    fn a_word_outside_of_a_closed_list_is_answered_with_the_list() {
        let words = RunStatus::ALL.map(RunStatus::as_str);
        let error = query("status=failed,green").words("status", &words, RunStatus::parse).unwrap_err();
        assert!(error.message().starts_with("status cannot be \"green\"; it is one of initializing, "));
        assert_eq!(param::<()>(Err(error)), "status");
        let error = query("suite=whole").one_of("suite", &[("full", true), ("partial", false)]).unwrap_err();
        assert_eq!(error.message(), "suite cannot be \"whole\"; it is one of full, partial.");
        assert_eq!(
            query("status=timedOut").word("status", &words, RunStatus::parse).unwrap(),
            Some(RunStatus::TimedOut)
        );
    }

    #[test]
    fn a_date_as_end_includes_its_day() {
        let (from, to) = query("from=2026-01-01&to=2026-01-01").window().unwrap();
        assert_eq!(from, Timestamp::parse_iso("2026-01-01T00:00:00Z"));
        assert_eq!(to, Timestamp::parse_iso("2026-01-01T23:59:59.999Z"));
    }

    #[test]
    fn an_empty_branch_means_none_recorded() {
        assert_eq!(query("branch=&branch=main").repeated("branch"), ["", "main"]);
    }
}
