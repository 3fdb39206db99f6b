//! Heads of columns that a list can be sorted by. The order is part of the
//! address, so each head is a link. Most lead in the one direction people come
//! for: the slowest, the least steady first; one that a list can be read in
//! both ways turns it round.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::address::Address;
use crate::filters;

/// The order of a list at an address.
pub(crate) struct Sorting {
    address: Address,
    parameter: &'static str,
    chosen: &'static str,
}

impl Sorting {
    /// The list at an address, in the order the parameter `sort` has this
    /// word for.
    pub(crate) fn new(address: &Address, chosen: &'static str) -> Self {
        Self::by("sort", address, chosen)
    }

    /// The list at an address, in the order another parameter has this word for.
    pub(crate) fn by(parameter: &'static str, address: &Address, chosen: &'static str) -> Self {
        Self { address: address.clone(), parameter, chosen }
    }

    /// The head of a column whose order begins with the least.
    pub(crate) fn rising(&self, word: &str, label: &'static str, class: &'static str) -> SortHead {
        self.head(word, label, class, "ascending")
    }

    /// The head of a column whose order begins with the most.
    pub(crate) fn falling(&self, word: &str, label: &'static str, class: &'static str) -> SortHead {
        self.head(word, label, class, "descending")
    }

    /// The head of a column whose order begins with the most, or with the least
    /// once it is asked for again.
    pub(crate) fn turning(
        &self,
        most: &str,
        least: &str,
        label: &'static str,
        class: &'static str,
    ) -> SortHead {
        let now = if self.chosen == least { "ascending" } else { "descending" };
        let next = if self.chosen == most { least } else { most };
        SortHead {
            is_chosen: self.chosen == most || self.chosen == least,
            ..self.head(next, label, class, now)
        }
    }

    fn head(
        &self,
        word: &str,
        label: &'static str,
        class: &'static str,
        direction: &'static str,
    ) -> SortHead {
        SortHead {
            href: self.address.with(self.parameter, word),
            label,
            class,
            direction,
            is_chosen: self.chosen == word,
        }
    }
}

/// One head, as `th`.
#[derive(Template)]
#[template(
    ext = "html",
    source = "<th scope=\"col\" class=\"{{ class }} sort-head\"{% if is_chosen %} aria-sort=\"{{ direction }}\"{% endif %}>\
              <a href=\"{{ href }}\" class=\"sort-link {{ direction }}\">{{ label }}{{ \"chevron-down\"|icon }}</a></th>"
)]
pub(crate) struct SortHead {
    href: String,
    label: &'static str,
    class: &'static str,
    direction: &'static str,
    is_chosen: bool,
}

impl HtmlSafe for SortHead {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_keeps_the_filters_starts_the_list_again_and_says_the_order() {
        let address = Address::from_uri(&"/projects/3?tab=cases&tag=a&cursor=x".parse().unwrap());
        let sorting = Sorting::new(&address, "runs");
        let chosen = sorting.falling("runs", "Runs", "number").to_string();
        assert!(chosen.contains("aria-sort=\"descending\""), "{chosen}");
        let other = sorting.rising("title", "Test", "").to_string();
        assert!(!other.contains("aria-sort"), "{other}");
        assert!(other.contains("/projects/3?tab=cases&#38;tag=a&#38;sort=title\""), "{other}");
    }

    #[test]
    fn a_head_for_both_directions_says_the_one_it_has_and_leads_to_the_other() {
        let address = Address::from_uri(&"/projects/3?branch=main&order=asc&cursor=x".parse().unwrap());
        let heads = |chosen| {
            Sorting::by("order", &address, chosen).turning("desc", "asc", "Started", "col-time").to_string()
        };
        let newest = heads("desc");
        assert!(
            newest.contains("aria-sort=\"descending\"") && newest.contains("link descending"),
            "{newest}"
        );
        assert!(newest.contains("/projects/3?branch=main&#38;order=asc\""), "{newest}");
        let oldest = heads("asc");
        assert!(oldest.contains("aria-sort=\"ascending\"") && oldest.contains("link ascending"), "{oldest}");
        assert!(oldest.contains("/projects/3?branch=main&#38;order=desc\""), "{oldest}");
        let other = heads("name");
        assert!(!other.contains("aria-sort") && other.contains("order=desc\""), "{other}");
    }
}
