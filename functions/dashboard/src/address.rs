//! The address of the page being shown, and the addresses one step away from
//! it: another filter, another order, the next page. All state of a list is in
//! its address, so every view can be kept and shared.

use callboard_http::extract::QueryReader;
use http::Uri;
use url::form_urlencoded;

/// Where a list continues; meaningless once anything else changes.
const CURSOR: &str = "cursor";

/// Largest id an address can name: numbers of scripts are exact up to here.
pub(crate) const MAX_ID: i64 = (1 << 53) - 1;

/// A path with its decoded parameters.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    path: String,
    pairs: Vec<(String, String)>,
}

impl Address {
    /// The address of a request. Parameters without a value say nothing and
    /// are left out: forms send them for every field that is not used.
    pub(crate) fn from_uri(uri: &Uri) -> Self {
        let pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()).into_owned();
        Self { path: uri.path().to_owned(), pairs: pairs.filter(|(_, value)| !value.is_empty()).collect() }
    }

    /// The path alone.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The whole of it.
    pub(crate) fn whole(&self) -> String {
        self.write(self.pairs.iter().map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Whether this is not the first page of its list.
    pub(crate) fn is_continued(&self) -> bool {
        self.pairs.iter().any(|(name, _)| name == CURSOR)
    }

    /// Whether its page shows only a part of a list that goes on behind it, or
    /// does not.
    pub(crate) fn is_part(&self, goes_on: bool) -> bool {
        goes_on || self.is_continued()
    }

    /// This address with one parameter set to one value.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let kept = self.pairs.iter().filter(|(key, _)| key != name && key != CURSOR);
        let pairs = kept.map(|(key, value)| (key.as_str(), value.as_str()));
        self.write(pairs.chain([(name, value)]))
    }

    /// This address with nothing but what happened on one day.
    pub(crate) fn of_day(&self, day: &str) -> String {
        let kept = self.pairs.iter().filter(|(key, _)| !["from", "to", CURSOR].contains(&key.as_str()));
        let pairs = kept.map(|(key, value)| (key.as_str(), value.as_str()));
        self.write(pairs.chain([("from", day), ("to", day)]))
    }

    /// This address without a parameter.
    pub(crate) fn without(&self, name: &str) -> String {
        self.keeping(|key, _| key != name)
    }

    /// This address without one of the values of a parameter, which may stand in
    /// a comma list.
    pub(crate) fn without_value(&self, name: &str, unwanted: &str) -> String {
        let is_it = |(key, value): &(String, String)| key == name && value == unwanted;
        if self.pairs.iter().any(is_it) {
            return self.keeping(|key, value| key != name || value != unwanted);
        }
        let others = |list: &str| {
            let others = list.split(',').filter(|value| value.trim() != unwanted);
            others.collect::<Vec<_>>().join(",")
        };
        let pairs = self.pairs.iter().filter(|(key, _)| key != CURSOR).map(|(key, value)| {
            let value = if key == name { others(value) } else { value.clone() };
            (key.as_str(), value)
        });
        let pairs: Vec<(&str, String)> = pairs.filter(|(_, value)| !value.is_empty()).collect();
        self.write(pairs.iter().map(|(key, value)| (*key, value.as_str())))
    }

    /// This address with nothing but the named parameters.
    pub(crate) fn with_only(&self, names: &[&str]) -> String {
        self.keeping(|key, _| names.contains(&key))
    }

    /// Parameters with these names, to be carried through a form.
    pub(crate) fn pairs_named(&self, names: &[&str]) -> Vec<(String, String)> {
        self.pairs.iter().filter(|(key, _)| names.contains(&key.as_str())).cloned().collect()
    }

    fn keeping(&self, wanted: impl Fn(&str, &str) -> bool) -> String {
        let kept = self.pairs.iter().filter(|(key, value)| key != CURSOR && wanted(key, value));
        self.write(kept.map(|(key, value)| (key.as_str(), value.as_str())))
    }

    fn write<'p>(&self, pairs: impl Iterator<Item = (&'p str, &'p str)>) -> String {
        let query = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}

/// A value as a part of an address.
pub(crate) fn encoded(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// All values of a parameter of a page's filter form; a field that is not used
/// arrives empty and counts as not given.
pub(crate) fn chosen(query: &QueryReader, name: &str) -> Vec<String> {
    query.repeated(name).into_iter().filter(|value| !value.is_empty()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        Address::from_uri(&text.parse().unwrap())
    }

    #[test]
    fn changing_a_filter_starts_the_list_again() {
        let list = address("/projects/3?branch=main&status=failed&cursor=abc&q=");
        assert_eq!(list.with("status", "passed"), "/projects/3?branch=main&status=passed");
        assert_eq!(list.without("branch"), "/projects/3?status=failed");
        assert_eq!(list.with("cursor", "def"), "/projects/3?branch=main&status=failed&cursor=def");
        assert!(list.is_continued());
    }

    #[test]
    fn one_of_several_values_can_be_taken_back() {
        let list = address("/projects/3?branch=main&branch=a%26b%3Dc");
        assert_eq!(list.without_value("branch", "main"), "/projects/3?branch=a%26b%3Dc");
        assert_eq!(address("/projects/3?branch=main").without_value("branch", "main"), "/projects/3");
        let listed = address("/projects/3?status=failed,passed&branch=a&cursor=b");
        assert_eq!(listed.without_value("status", "failed"), "/projects/3?status=passed&branch=a");
        assert_eq!(address("/projects/3?status=failed,").without_value("status", "failed"), "/projects/3");
    }
}
