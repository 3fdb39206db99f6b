//! Locator healing: the matcher against page pairs whose answers are known,
//! `tests/data/locators`, and against a plain implementation of the same sums.

use std::collections::{BTreeMap, HashMap};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context, Result};
use callboard_playwright::healing::{Element, Verdict, heal};
use serde::Deserialize;

use crate::table::{Table, Target};

#[derive(Deserialize)]
struct Page {
    page: u64,
    elements: Vec<Element>,
}

#[derive(Deserialize)]
struct Case {
    id: serde_json::Value,
    mutation: String,
    page: u64,
    target: usize,
    new: Vec<Element>,
    answer: Option<usize>,
}

#[derive(Deserialize)]
struct Expected {
    id: serde_json::Value,
    best: Option<usize>,
    answer: Option<usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Score {
    cases: usize,
    present: usize,
    first: usize,
    answered: usize,
    right: usize,
    removed: usize,
    abstained: usize,
}

impl Score {
    fn count(&mut self, truth: Option<usize>, best: Option<usize>, answer: Option<usize>) {
        self.cases += 1;
        match truth {
            Some(_) => {
                self.present += 1;
                self.first += usize::from(best == truth);
            }
            None => {
                self.removed += 1;
                self.abstained += usize::from(answer.is_none());
            }
        }
        if answer.is_some() {
            self.answered += 1;
            self.right += usize::from(answer == truth);
        }
    }
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / (whole as f64).max(1.0)
}

/// Asks the matcher about every case.
pub(crate) fn measure(data: &Path, details: bool) -> Result<Table> {
    let mut pages = HashMap::new();
    let mut cases: Vec<Case> = Vec::new();
    for line in lines(&data.join("locators/cases.jsonl.gz"))? {
        if line.contains("\"elements\"") {
            let page: Page = serde_json::from_str(&line)?;
            pages.insert(page.page, page.elements);
        } else {
            cases.push(serde_json::from_str(&line)?);
        }
    }
    let expected: HashMap<String, Expected> = lines(&data.join("locators/expected.jsonl.gz"))?
        .iter()
        .map(|line| serde_json::from_str::<Expected>(line).map(|row| (row.id.to_string(), row)))
        .collect::<Result<_, _>>()?;

    let (mut all, mut trivial) = (Score::default(), Score::default());
    let mut by_mutation: BTreeMap<&str, Score> = BTreeMap::new();
    let mut unlike = Vec::new();
    for case in &cases {
        let old = pages.get(&case.page).context("a case of an unknown page")?;
        let target = old.get(case.target).context("a target outside of its page")?;
        let found = heal(target, old, &case.new);
        let best = found.best.map(|best| best.index);
        let answer = match found.verdict {
            Verdict::Answer(answer) => Some(answer.index),
            Verdict::Offer(_) | Verdict::Abstain => None,
        };
        all.count(case.answer, best, answer);
        by_mutation.entry(&case.mutation).or_default().count(case.answer, best, answer);
        let by_role = case.new.iter().position(|element| element.role == target.role);
        trivial.count(case.answer, by_role, by_role);
        let row = expected.get(&case.id.to_string()).context("a case nobody answered")?;
        if (row.best, row.answer) != (best, answer) {
            unlike.push(case.id.to_string());
        }
    }

    let mut table = Table::new(format!("Locator healing: {} lost elements", cases.len()));
    let precision = |score: Score| share(score.right, score.answered);
    let abstained = |score: Score| share(score.abstained, score.removed);
    table.add("precision when answered", precision(all), Target::AtLeast(0.93), Some(precision(trivial)));
    table.add("abstains on removed", abstained(all), Target::AtLeast(0.9), Some(abstained(trivial)));
    table.add(
        "best candidate is right",
        share(all.first, all.present),
        Target::None,
        Some(share(trivial.first, trivial.present)),
    );
    table.add(
        "answered",
        share(all.answered, all.cases),
        Target::None,
        Some(share(trivial.answered, trivial.cases)),
    );
    table.add("unlike the plain implementation", unlike.len() as f64, Target::AtMost(0.0), None);
    if details {
        for (mutation, score) in by_mutation {
            table.note(format!(
                "{mutation}: {} cases, precision {:.3}, best right {:.3}, abstains {:.3}",
                score.cases,
                precision(score),
                share(score.first, score.present),
                abstained(score)
            ));
        }
        table.note(format!("unlike: {}", unlike.join(" ")));
    }
    Ok(table)
}

fn lines(path: &Path) -> Result<Vec<String>> {
    let packed = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    let mut text = String::new();
    flate2::read::GzDecoder::new(packed.as_slice()).read_to_string(&mut text)?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}
