//! The tests of a project: the same ones run after run.

use super::random::Random;

const AREAS: [&str; 10] =
    ["cart", "checkout", "search", "login", "profile", "orders", "invoices", "admin", "returns", "reports"];
const VERBS: [&str; 8] = ["shows", "adds", "removes", "sorts", "keeps", "rejects", "restores", "exports"];
const THINGS: [&str; 9] = [
    "an item",
    "two vouchers",
    "the total",
    "a guest",
    "an address",
    "old prices",
    "a refund",
    "a page",
    "filters",
];
/// Tests of one file.
const TESTS_PER_FILE: usize = 20;
/// Tests of one describe block.
const TESTS_PER_BLOCK: usize = 7;

/// One test of a suite.
#[derive(Debug, Clone)]
pub struct Test {
    /// Own title, unique within its file.
    pub title: String,
    /// Path of its file.
    pub file: String,
    /// Line and column of its declaration.
    pub line: usize,
    /// Enclosing describe titles.
    pub describes: Vec<String>,
    /// Tags without `@`.
    pub tags: Vec<&'static str>,
    /// How long it usually takes, ms.
    pub usual_ms: u64,
    /// Which error it prefers to fail with.
    pub weakness: u64,
}

impl Test {
    /// Where it is declared, as reporters write it.
    #[must_use]
    pub fn location(&self) -> String {
        format!("{}:{}:5", self.file, self.line)
    }
}

/// The `count` tests of a suite.
#[must_use]
pub fn suite(seed: u64, count: usize) -> Vec<Test> {
    let mut random = Random::new(seed, 0x5017e);
    (0..count)
        .map(|number| {
            let (file, place) = (number / TESTS_PER_FILE, number % TESTS_PER_FILE);
            let area = AREAS[file % AREAS.len()];
            let describes = vec![area.to_owned(), format!("{area} part {}", place / TESTS_PER_BLOCK + 1)];
            let tags = if number % 5 == 0 { vec!["smoke", area] } else { vec![area] };
            Test {
                title: format!("{} {} ({})", random.pick(&VERBS), random.pick(&THINGS), place + 1),
                file: format!("tests/{area}/{area}-{}.spec.ts", file + 1),
                line: 8 + place * 14,
                describes,
                tags,
                // Most are quick, some are slow.
                usual_ms: if random.chance(100) {
                    random.between(4_000, 25_000)
                } else {
                    random.between(120, 2_500)
                },
                weakness: random.next(),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn tests_of_a_suite_are_all_different() {
        let suite = suite(1, 5_000);
        let keys: BTreeSet<_> = suite.iter().map(|test| (&test.file, &test.title)).collect();
        assert_eq!(keys.len(), 5_000);
    }
}
