//! Heads of columns that a list can be sorted by. The order is part of the
//! address, so each head is a link; it leads in the one direction people come
//! for: the newest, the slowest, the least steady first.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::address::Address;
use crate::filters;

/// The order of a list at an address.
pub(crate) struct Sorting {
    address: Address,
    chosen: &'static str,
}

impl Sorting {
    /// The list at an address, in the order the parameter `sort` has this
    /// word for.
    pub(crate) fn new(address: &Address, chosen: &'static str) -> Self {
        Self { address: address.clone(), chosen }
    }

    /// The head of a column whose order begins with the least.
    pub(crate) fn rising(&self, word: &str, label: &'static str, class: &'static str) -> SortHead {
        self.head(word, label, class, "ascending")
    }

    /// The head of a column whose order begins with the most.
    pub(crate) fn falling(&self, word: &str, label: &'static str, class: &'static str) -> SortHead {
        self.head(word, label, class, "descending")
    }

    fn head(
        &self,
        word: &str,
        label: &'static str,
        class: &'static str,
        direction: &'static str,
    ) -> SortHead {
        SortHead {
            href: self.address.with("sort", word),
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
        let address = Address::of(&"/projects/3?tab=cases&tag=a&cursor=x".parse().unwrap());
        let sorting = Sorting::new(&address, "runs");
        let chosen = sorting.falling("runs", "Runs", "number").to_string();
        assert!(chosen.contains("aria-sort=\"descending\""), "{chosen}");
        let other = sorting.rising("title", "Test", "").to_string();
        assert!(!other.contains("aria-sort"), "{other}");
        assert!(other.contains("/projects/3?tab=cases&#38;tag=a&#38;sort=title\""), "{other}");
    }
}
