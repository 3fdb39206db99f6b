//! The matcher: a sum of log-likelihood weights for each piece of evidence
//! (Fellegi and Sunter, 1969), with weights for names and ids that grow the
//! rarer the value is on the page. The evidence is that of Similo (Nass et
//! al., 2022); what similar elements were on the page before is evidence
//! against them.

use std::collections::{HashMap, HashSet};

use super::element::{Element, Key};
use super::ratio::{as_f64, ratio, text_ratio};

/// Elements of one page that are looked at.
pub const MAX_ELEMENTS: usize = 1_000;
/// A best score below this is no answer.
const MIN_SCORE: f64 = 0.5;
/// Margin to the second best from which the best is answered.
const MIN_MARGIN: f64 = 3.0;
/// Margin from which candidates are shown.
const MIN_OFFER_MARGIN: f64 = 0.6;
/// From here on two names have something in common.
const MIN_SIMILARITY: f64 = 0.5;
/// Margin when there is nothing else.
const MARGIN_ALONE: f64 = 9.0;
/// Most candidates that are shown.
const MAX_OFFERS: usize = 3;

/// A candidate and how likely it is the element.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ranked {
    /// Its place in the page's elements.
    pub index: usize,
    /// Sum of the weights.
    pub score: f64,
}

/// What the matcher has to say.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// This one.
    Answer(Ranked),
    /// One of these, best first, at most three.
    Offer(Vec<Ranked>),
    /// The element was probably removed, or renamed beyond recognition.
    Abstain,
}

/// The verdict with what it rests on.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What to say.
    pub verdict: Verdict,
    /// The best candidate, said or not; `None` on an empty page.
    pub best: Option<Ranked>,
    /// How far the best is ahead of the second.
    pub margin: f64,
}

impl Answer {
    const NOTHING: Self = Self { verdict: Verdict::Abstain, best: None, margin: 0.0 };

    /// How likely the best candidate is right, 0 to 100: the share of right
    /// answers at margins like this one.
    #[must_use]
    pub fn confidence(&self) -> u8 {
        match self.margin {
            margin if self.best.is_none() || margin < MIN_OFFER_MARGIN => 25,
            margin if margin < 1.5 => 40,
            margin if margin < MIN_MARGIN => 65,
            margin if margin < 5.0 => 80,
            _ => 95,
        }
    }
}

/// Looks for `target` among the elements of the failing page. `before` are
/// elements known from the last pass, the target among them: a candidate that
/// was there then, beside the target, is not the target renamed.
#[must_use]
pub fn heal(target: &Element, before: &[Element], page: &[Element]) -> Answer {
    let page = &page[..page.len().min(MAX_ELEMENTS)];
    let facts = Facts::new(target, before, page);
    let mut ranked: Vec<Ranked> = page
        .iter()
        .enumerate()
        .map(|(index, candidate)| Ranked { index, score: facts.score(target, candidate) })
        .collect();
    // Stable, so equal scores stay in the order of the page.
    ranked.sort_by(|one, other| other.score.total_cmp(&one.score));
    let Some(&best) = ranked.first() else { return Answer::NOTHING };
    let margin = ranked.get(1).map_or(MARGIN_ALONE, |second| best.score - second.score);
    let verdict = if best.score < MIN_SCORE || margin < MIN_OFFER_MARGIN {
        Verdict::Abstain
    } else if margin >= MIN_MARGIN {
        Verdict::Answer(best)
    } else {
        ranked.truncate(MAX_OFFERS);
        ranked.retain(|offer| offer.score >= MIN_SCORE);
        Verdict::Offer(ranked)
    };
    Answer { verdict, best: Some(best), margin }
}

/// Counts over both pages that the weights need.
struct Facts<'a> {
    count: usize,
    names: HashMap<String, usize>,
    ids: HashMap<&'a str, usize>,
    keys_before: HashMap<Key<'a>, usize>,
    keys_now: HashMap<Key<'a>, usize>,
    key: fn(&Element) -> Key<'_>,
    /// Whether places are known on both sides.
    has_order: bool,
    /// Whether paths are: an accessibility tree has none, which says nothing.
    has_paths: bool,
}

impl<'a> Facts<'a> {
    fn new(target: &Element, before: &'a [Element], page: &'a [Element]) -> Self {
        let has_tags = page.iter().any(|element| !element.tag.is_empty());
        // A tree of roles and names would be unlike whatever was stored.
        let key: fn(&Element) -> Key<'_> = if has_tags { Element::key } else { Element::key_by_name };
        Self {
            count: page.len(),
            names: counted(page.iter().map(|element| element.name.to_lowercase())),
            ids: counted(page.iter().map(|element| element.id.as_str())),
            keys_before: counted(before.iter().map(key)),
            keys_now: counted(page.iter().map(key)),
            key,
            has_order: target.order.is_some(),
            has_paths: !target.path.is_empty() && page.iter().any(|element| !element.path.is_empty()),
        }
    }

    /// ln(N / c): what it says that one of N elements has a value c of them have.
    fn rarity(&self, sharing: Option<&usize>) -> f64 {
        (as_f64(self.count.max(2)) / as_f64(*sharing.unwrap_or(&1))).ln()
    }

    /// The weights, in the order in which they are documented; sums of
    /// floating point numbers depend on it.
    fn score(&self, old: &Element, new: &Element) -> f64 {
        let mut sum = role_weight(&old.role, &new.role);
        if !old.test_id.is_empty() || !new.test_id.is_empty() {
            sum += if old.test_id == new.test_id {
                6.0
            } else if !old.test_id.is_empty() && !new.test_id.is_empty() {
                -3.0
            } else {
                -0.5
            };
        }
        sum += self.name_weight(&old.name.to_lowercase(), &new.name.to_lowercase());
        if !old.id.is_empty() && !new.id.is_empty() {
            sum += if old.id == new.id {
                0.5 + 0.8 * self.rarity(self.ids.get(new.id.as_str()))
            } else {
                text_ratio(&old.id, &new.id) - 0.8
            };
        }
        sum += exact_weight(&old.name_attr, &new.name_attr, 2.2, -0.7);
        sum += exact_weight(&old.r#type, &new.r#type, 0.8, -0.5);
        if !old.href.is_empty() && !new.href.is_empty() {
            sum += match old.href == new.href {
                true if old.href == "/" => 0.4,
                true => 2.4,
                false => text_ratio(&old.href, &new.href) - 0.7,
            };
        }
        sum += overlap(&old.classes, &new.classes).map_or(0.0, |overlap| overlap - 0.2);
        sum += overlap(&old.near, &new.near).map_or(0.0, |overlap| 2.6 * overlap - 0.3);
        if !old.landmarks.is_empty() || !new.landmarks.is_empty() {
            sum += 1.2 * ratio(&old.landmarks, &new.landmarks) - 0.4;
        }
        if self.has_paths {
            sum += 0.8 * text_ratio(&old.path, &new.path) - 0.3;
        }
        if let (true, Some(then), Some(now)) = (self.has_order, old.order, new.order) {
            sum += 0.6 * (1.0 - (3.0 * (then - now).abs()).min(1.0)) - 0.2;
        }
        if self.is_taken(old, new) { sum - 5.0 } else { sum }
    }

    fn name_weight(&self, old: &str, new: &str) -> f64 {
        if old.is_empty() && new.is_empty() {
            return 0.0;
        }
        let rarity = self.rarity(self.names.get(new));
        if old == new {
            return 0.6 + 0.9 * rarity;
        }
        let similarity = similarity(old, new);
        if similarity >= MIN_SIMILARITY { 0.45 * rarity * similarity } else { -0.6 }
    }

    /// Whether the candidate was there before, beside the target: as often as now.
    fn is_taken(&self, old: &Element, new: &Element) -> bool {
        let key = (self.key)(new);
        let then = self.keys_before.get(&key).copied().unwrap_or(0);
        key != (self.key)(old) && then >= self.keys_now.get(&key).copied().unwrap_or(0)
    }
}

/// Whether an element may be what a locator looked for under another name:
/// `target` is what the locator says of it.
#[must_use]
pub fn is_like(target: &Element, element: &Element) -> bool {
    if role_weight(&target.role, &element.role) < 0.0 {
        return false;
    }
    let is_similar =
        |old: &str, new: &str| similarity(&old.to_lowercase(), &new.to_lowercase()) >= MIN_SIMILARITY;
    if target.name.is_empty() {
        return is_similar(&target.test_id, &element.test_id) || is_similar(&target.id, &element.id);
    }
    let named =
        [&element.name, &element.text, &element.label, &element.placeholder, &element.alt, &element.title];
    named.into_iter().any(|name| is_similar(&target.name, name))
}

/// How alike two names are, 0 to 1; nothing is like what is not known.
fn similarity(old: &str, new: &str) -> f64 {
    let is_known = !old.is_empty() && !new.is_empty();
    if is_known { text_ratio(old, new).max(word_dice(old, new)) } else { 0.0 }
}

fn counted<T: Eq + std::hash::Hash>(items: impl Iterator<Item = T>) -> HashMap<T, usize> {
    let mut counts = HashMap::new();
    for item in items {
        *counts.entry(item).or_insert(0) += 1;
    }
    counts
}

/// A target whose role is not known has no opinion on roles.
fn role_weight(old: &str, new: &str) -> f64 {
    if old.is_empty() {
        0.0
    } else if old == new {
        1.0
    } else if family(old) == family(new) {
        0.2
    } else {
        -2.0
    }
}

/// Roles that pages exchange for one another.
fn family(role: &str) -> &str {
    match role {
        "button" | "menuitem" | "tab" | "option" => "act",
        "textbox" | "searchbox" | "combobox" => "input",
        "checkbox" | "radio" | "switch" => "check",
        other => other,
    }
}

fn exact_weight(old: &str, new: &str, equal: f64, different: f64) -> f64 {
    match (old.is_empty() && new.is_empty(), old == new) {
        (true, _) => 0.0,
        (false, true) => equal,
        (false, false) => different,
    }
}

/// Jaccard's coefficient; `None` when both are empty.
fn overlap(one: &[String], other: &[String]) -> Option<f64> {
    let (one, other): (HashSet<&String>, HashSet<&String>) = (one.iter().collect(), other.iter().collect());
    let all = one.union(&other).count();
    (all > 0).then(|| as_f64(one.intersection(&other).count()) / as_f64(all))
}

/// Dice's coefficient over words.
fn word_dice(one: &str, other: &str) -> f64 {
    let words = |text: &str| -> HashSet<String> {
        let is_word = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit();
        text.split(|char| !is_word(char)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
    };
    let (one, other) = (words(one), words(other));
    if one.is_empty() || other.is_empty() {
        return 0.0;
    }
    as_f64(2 * one.intersection(&other).count()) / as_f64(one.len() + other.len())
}
