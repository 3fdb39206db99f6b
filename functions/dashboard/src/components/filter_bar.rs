//! The filters of a list: a plain form that asks for the same page with other
//! parameters, and a chip for everything that narrows the list at the moment.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_domain::time::Timestamp;
use callboard_query::page::Total;
use callboard_query::shapes::Facets;

use crate::address::Address;
use crate::filters;
use crate::text::grouped;

/// A value one can choose.
pub(crate) struct Choice {
    /// As the address has it.
    pub value: String,
    /// As people read it.
    pub label: String,
}

impl Choice {
    /// A value that reads as something else.
    pub(crate) fn new(value: impl Into<String>, label: impl Into<String>) -> Self {
        Self { value: value.into(), label: label.into() }
    }
}

impl From<String> for Choice {
    fn from(value: String) -> Self {
        Self { label: value.clone(), value }
    }
}

/// A field of the form.
enum Field {
    /// Free text.
    Search { name: &'static str, label: &'static str, value: String },
    /// The beginning of a path.
    Text { name: &'static str, label: &'static str, value: String },
    /// A day.
    Date { name: &'static str, label: &'static str, value: Option<String> },
    /// One of several values; the first line is "any".
    Select {
        name: &'static str,
        label: &'static str,
        any: &'static str,
        choices: Vec<Choice>,
        chosen: Option<String>,
    },
}

/// Something that narrows the list, and the address without it.
struct Chip {
    label: &'static str,
    value: String,
    without: String,
}

/// Inputs of `components/filter_bar.html`.
#[derive(Template)]
#[template(path = "components/filter_bar.html")]
pub(crate) struct FilterBar {
    action: String,
    carried: Vec<(String, String)>,
    fields: Vec<Field>,
    chips: Vec<Chip>,
    clear: String,
    /// How many rows there are, in words.
    tally: Option<String>,
    /// Whether it is above a list that can be saved.
    is_saved: bool,
    /// Whether it leads to the link of the page: one bar of a page does.
    is_linked: bool,
    /// What it narrows, where a page has several.
    of: &'static str,
    address: Address,
}

impl HtmlSafe for FilterBar {}

impl FilterBar {
    /// The bar of the list at an address; parameters named in `carried` are
    /// not filters and stay as they are.
    pub(crate) fn new(address: &Address, carried: &[&str]) -> Self {
        Self {
            action: address.path().to_owned(),
            carried: address.pairs_named(carried),
            fields: Vec::new(),
            chips: Vec::new(),
            clear: address.with_only(carried),
            tally: None,
            is_saved: true,
            is_linked: true,
            of: "",
            address: address.clone(),
        }
    }

    /// A field for free text.
    pub(crate) fn search(mut self, name: &'static str, label: &'static str, value: Option<&String>) -> Self {
        if let Some(value) = value {
            self.chip(name, "Text", value, value);
        }
        self.fields.push(Field::Search { name, label, value: value.cloned().unwrap_or_default() });
        self
    }

    /// A field for the beginning of a path.
    pub(crate) fn text(mut self, name: &'static str, label: &'static str, value: Option<&String>) -> Self {
        if let Some(value) = value {
            self.chip(name, label, value, value);
        }
        self.fields.push(Field::Text { name, label, value: value.cloned().unwrap_or_default() });
        self
    }

    /// A field with values to choose from, left out when there is nothing to
    /// choose. Values given by hand in the address show as chips as well.
    pub(crate) fn select(
        mut self,
        name: &'static str,
        label: &'static str,
        any: &'static str,
        choices: impl IntoIterator<Item = Choice>,
        chosen: &[String],
    ) -> Self {
        let mut choices: Vec<Choice> = choices.into_iter().collect();
        // Of many only the newest are offered; another one is not lost when the form is sent.
        if let [one] = chosen
            && choices.iter().all(|choice| choice.value != *one)
        {
            choices.push(Choice::from(one.clone()));
        }
        for value in chosen {
            let reads =
                choices.iter().find(|choice| choice.value == *value).map_or(value, |choice| &choice.label);
            self.chip(name, label, value, &reads.clone());
        }
        let only = if let [one] = chosen { Some(one.clone()) } else { None };
        // The field shows one value; several go on beside it, until their chips take them back.
        if only.is_none() {
            self.carried.extend(chosen.iter().map(|value| (name.to_owned(), value.clone())));
        }
        if choices.len() > 1 || only.is_some() {
            self.fields.push(Field::Select { name, label, any, choices, chosen: only });
        }
        self
    }

    /// The branches of a project; `any` says what no choice means.
    pub(crate) fn branches(self, facets: &Facets, any: &'static str, chosen: &[String]) -> Self {
        let names = facets.branches.iter().map(|branch| branch.name.clone().into());
        self.select("branch", "Branch", any, names, chosen)
    }

    /// The environments of a project.
    pub(crate) fn environments(self, facets: &Facets, chosen: &[String]) -> Self {
        let names = facets.environments.iter().cloned().map(Choice::from);
        self.select("environment", "Environment", "All environments", names, chosen)
    }

    /// Browser projects.
    pub(crate) fn browsers(self, names: &[String], chosen: &[String]) -> Self {
        let names = names.iter().cloned().map(Choice::from);
        self.select("browser", "Browser", "All browsers", names, chosen)
    }

    /// The days between which something happened, both included.
    pub(crate) fn days(mut self, from: Option<Timestamp>, to: Option<Timestamp>) -> Self {
        for (name, label, at) in [("from", "From", from), ("to", "Until", to)] {
            let value = at.map(|at| at.day().to_iso());
            // An address may have the time of the day as well.
            let without = self.address.without(name);
            self.chips.extend(value.clone().map(|value| Chip { label, value, without }));
            self.fields.push(Field::Date { name, label, value });
        }
        self
    }

    /// The tags of a project's tests.
    pub(crate) fn tags(self, facets: &Facets, chosen: &[String]) -> Self {
        self.select("tag", "Tag", "Any tag", facets.tags.iter().cloned().map(Choice::from), chosen)
    }

    /// Who owns tests of a project.
    pub(crate) fn owners(self, facets: &Facets, chosen: &[String]) -> Self {
        self.select("owner", "Owner", "Any owner", facets.owners.iter().cloned().map(Choice::from), chosen)
    }

    /// A chip for a filter that has no field of its own.
    pub(crate) fn chip_only(
        mut self,
        name: &'static str,
        label: &'static str,
        value: Option<&String>,
    ) -> Self {
        if let Some(value) = value {
            self.chip(name, label, value, value);
            self.carried.push((name.to_owned(), value.clone()));
        }
        self
    }

    /// A chip for a choice that narrows the list; without it the list shows what
    /// the value `all` means.
    pub(crate) fn narrowed_by(
        mut self,
        name: &'static str,
        label: &'static str,
        reads: &str,
        all: &str,
    ) -> Self {
        let without = self.address.with(name, all);
        self.clear = match self.clear.parse() {
            Ok(clear) => Address::from_uri(&clear).with(name, all),
            Err(_) => self.clear,
        };
        self.chips.push(Chip { label, value: reads.to_owned(), without });
        self
    }

    /// Says how many rows there are: all of them where that is known, else
    /// what the page shows of a list that is read by keys.
    pub(crate) fn tally(mut self, noun: &str, shown: usize, goes_on: bool, total: Option<Total>) -> Self {
        self.tally = Some(in_words(noun, shown, self.address.is_part(goes_on), total));
        self
    }

    /// The page draws what it has, and lists nothing that could be saved.
    pub(crate) fn above_drawing(mut self) -> Self {
        self.is_saved = false;
        self
    }

    /// One of several bars of a page: it narrows this, and another one has the
    /// link of the page and saves its list.
    pub(crate) fn beside_another(self, of: &'static str) -> Self {
        Self { is_saved: false, is_linked: false, of, ..self }
    }

    /// A choice that is not a filter: the order of the list. No chip.
    pub(crate) fn order(self, choices: impl IntoIterator<Item = Choice>, chosen: &str) -> Self {
        self.choice("sort", "Order", choices, chosen)
    }

    /// A choice that is not a filter and always has a value. No chip.
    pub(crate) fn choice(
        mut self,
        name: &'static str,
        label: &'static str,
        choices: impl IntoIterator<Item = Choice>,
        chosen: &str,
    ) -> Self {
        // The field says it now.
        self.carried.retain(|(carried, _)| carried != name);
        self.fields.push(Field::Select {
            name,
            label,
            any: "",
            choices: choices.into_iter().collect(),
            chosen: Some(chosen.to_owned()),
        });
        self
    }

    fn chip(&mut self, name: &str, label: &'static str, value: &str, reads: &str) {
        let without = self.address.without_value(name, value);
        self.chips.push(Chip { label, value: reads.to_owned(), without });
    }
}

/// `43 tests`, `50 of 1 234 tests`, `50 of more than 10 000 tests`, or `50
/// tests on this page`.
fn in_words(noun: &str, shown: usize, is_part: bool, total: Option<Total>) -> String {
    let shown = i64::try_from(shown).unwrap_or(i64::MAX);
    let nouns = |count: i64| if count == 1 { noun.to_owned() } else { format!("{noun}s") };
    match (is_part, total) {
        (true, Some(Total::Exactly(total))) => {
            format!("{} of {} {}", grouped(shown), grouped(total), nouns(total))
        }
        (true, Some(Total::MoreThan(total))) => {
            format!("{} of more than {} {}", grouped(shown), grouped(total), nouns(total))
        }
        (true, None) => format!("{} {} on this page", grouped(shown), nouns(shown)),
        (false, _) => format!("{} {}", grouped(shown), nouns(shown)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Address, Choice, FilterBar, Total, in_words};

    #[test]
    fn several_values_of_a_filter_go_on_when_another_one_is_added() {
        let address = Address::from_uri(&"/projects/3?branch=a&branch=b%26c".parse().unwrap());
        let choices = ["a", "b&c", "d"].map(|name| Choice::new(name, name));
        let chosen = ["a", "b&c"].map(str::to_owned);
        let bar =
            FilterBar::new(&address, &[]).select("branch", "Branch", "All", choices, &chosen).to_string();
        let carried = bar.matches("<input type=\"hidden\" name=\"branch\"").count();
        assert!(carried == 2 && bar.contains("value=\"b&#38;c\">"), "{bar}");
        assert!(!bar.contains("selected"), "{bar}");
    }

    #[test]
    fn a_value_that_is_not_offered_stays_chosen() {
        let address = Address::from_uri(&"/projects/3?branch=old".parse().unwrap());
        let choices = ["a", "b"].map(|name| Choice::new(name, name));
        let bar =
            FilterBar::new(&address, &[]).select("branch", "Branch", "All", choices, &["old".to_owned()]);
        let bar = bar.to_string();
        assert!(bar.contains("<option value=\"old\" selected>old</option>"), "{bar}");
    }

    #[test]
    fn a_part_of_a_list_says_that_it_is_one() {
        assert_eq!(in_words("test", 1, false, None), "1 test");
        assert_eq!(in_words("test", 50, true, Some(Total::Exactly(51))), "50 of 51 tests");
        assert_eq!(in_words("test", 50, true, Some(Total::MoreThan(800))), "50 of more than 800 tests");
        assert_eq!(in_words("run", 30, true, None), "30 runs on this page");
    }
}
