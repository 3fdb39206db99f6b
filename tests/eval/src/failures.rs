//! Failures by cause: fingerprints and templates against the labels of
//! `tests/data/failures`.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use anyhow::{Context, Result};
use callboard_domain::failure::template::Wording;
use callboard_domain::failure::{ErrorText, Signature, SourceText, signature};
use callboard_domain::text::strip_ansi;
use serde::Deserialize;

use crate::table::{Table, Target};

/// Orders in which the failures come in again.
const SHUFFLES: u64 = 5;
/// Causes for which one lump is let pass.
const CAUSES_PER_LUMP: f64 = 40.0;

#[derive(Debug, Deserialize)]
struct Row {
    id: String,
    label: String,
    playwright: String,
    errors: Vec<RowError>,
    source: Option<RowSource>,
}

#[derive(Debug, Deserialize)]
struct RowError {
    message: Option<String>,
    stack: Option<String>,
    /// What was thrown when it was no error.
    value: Option<String>,
}

impl RowError {
    fn text(&self) -> &str {
        self.message.as_deref().or(self.value.as_deref()).unwrap_or_default()
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RowSource {
    start_line: u32,
    line: u32,
    text: String,
}

/// Groups the failures and compares the groups with the causes.
pub(crate) fn measure(data: &Path, details: bool) -> Result<Table> {
    let path = data.join("failures/failures-a.jsonl");
    let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let rows: Vec<Row> =
        text.lines().filter(|line| !line.is_empty()).map(serde_json::from_str).collect::<Result<_, _>>()?;
    let signatures: Vec<Signature> = rows
        .iter()
        .map(|row| read(row).with_context(|| format!("{} has no error", row.id)))
        .collect::<Result<_>>()?;
    let labels: Vec<&str> = rows.iter().map(|row| row.label.as_str()).collect();
    let in_order: Vec<usize> = (0..rows.len()).collect();
    let clusters = cluster(&signatures, &in_order);
    let trivial = number(rows.iter().map(masked_digits));

    let all = Score::from_labels(&labels, &clusters);
    let simple = Score::from_labels(&labels, &trivial);
    let mut table = Table::new(format!("Failures by cause: {} failures, {} causes", rows.len(), all.causes));
    table.add("pairwise F1", all.f1, Target::AtLeast(0.95), Some(simple.f1));
    table.add("grouping accuracy", all.accuracy, Target::AtLeast(0.85), Some(simple.accuracy));
    let lumps = all.lumps as f64;
    table.add(
        "lumps",
        lumps,
        Target::AtMost((all.causes as f64 / CAUSES_PER_LUMP).ceil()),
        Some(simple.lumps as f64),
    );
    table.add("splits", all.splits as f64, Target::None, Some(simple.splits as f64));
    table.add("clusters", all.clusters as f64, Target::None, Some(simple.clusters as f64));
    let versions: BTreeSet<&str> = rows.iter().map(|row| row.playwright.as_str()).collect();
    for version in &versions {
        let of_version: Vec<usize> =
            in_order.iter().copied().filter(|&at| rows[at].playwright == *version).collect();
        let score = Score::from_labels(&pick(&labels, &of_version), &pick(&clusters, &of_version));
        table.add(format!("F1, Playwright {version}"), score.f1, Target::None, None);
    }
    for pair in versions.iter().collect::<Vec<_>>().windows(2) {
        let share = shared_by_versions(&rows, &clusters, pair[0], pair[1]);
        table.add(format!("same cluster, {} and {}", pair[0], pair[1]), share, Target::None, None);
    }
    let unlike = (1..=SHUFFLES)
        .filter(|seed| {
            let order = shuffled(in_order.clone(), *seed);
            canonical(&cluster(&signatures, &order)) != canonical(&clusters)
        })
        .count();
    table.add("orders with other clusters", unlike as f64, Target::AtMost(0.0), None);
    if details {
        explain(&mut table, &rows, &signatures, &clusters);
    }
    Ok(table)
}

fn read(row: &Row) -> Option<Signature> {
    let errors: Vec<ErrorText<'_>> = row
        .errors
        .iter()
        .map(|error| ErrorText { message: error.text(), stack: error.stack.as_deref() })
        .collect();
    let source: Vec<SourceText<'_>> = row
        .source
        .iter()
        .map(|source| SourceText {
            text: &source.text,
            first_line: source.start_line,
            line: Some(source.line),
        })
        .collect();
    signature(&errors, &source)
}

/// What the service does with failures that come in one after the other: a
/// known fingerprint goes to its cluster, a new one looks for its template.
fn cluster(signatures: &[Signature], order: &[usize]) -> Vec<usize> {
    let mut clusters = vec![0; signatures.len()];
    let mut routes = HashMap::new();
    let mut templates: HashMap<[u8; 32], Vec<(Vec<String>, usize)>> = HashMap::new();
    let mut next = 0;
    for &at in order {
        let signature = &signatures[at];
        let cluster = *routes.entry(signature.fingerprint()).or_insert_with(|| {
            let Some(wording) = Wording::from_signature(signature) else {
                next += 1;
                return next;
            };
            let known = templates.entry(wording.bucket).or_default();
            let words: Vec<Vec<String>> = known.iter().map(|(words, _)| words.clone()).collect();
            if let Some(found) = wording.find(&words) {
                if let Some(generalised) = found.generalised {
                    known[found.index].0 = generalised;
                }
                return known[found.index].1;
            }
            next += 1;
            known.push((wording.tokens, next));
            next
        });
        clusters[at] = cluster;
    }
    clusters
}

/// The trivial method: the text of the errors without digits and colours.
fn masked_digits(row: &Row) -> String {
    let text: Vec<String> = row
        .errors
        .iter()
        .map(|error| strip_ansi(error.text()).replace(|one: char| one.is_ascii_digit(), "0"))
        .collect();
    text.join("\n")
}

fn number<T: Ord>(keys: impl Iterator<Item = T>) -> Vec<usize> {
    let mut numbers = BTreeMap::new();
    keys.map(|key| {
        let next = numbers.len();
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}

fn pick<T: Copy>(all: &[T], places: &[usize]) -> Vec<T> {
    places.iter().map(|&at| all[at]).collect()
}

/// Clusters by the first failure in each, so that two numberings compare.
fn canonical(clusters: &[usize]) -> Vec<usize> {
    number_by_first(clusters)
}

fn number_by_first(clusters: &[usize]) -> Vec<usize> {
    let mut first = HashMap::new();
    clusters.iter().enumerate().map(|(at, cluster)| *first.entry(*cluster).or_insert(at)).collect()
}

/// A fixed pseudo-random order (a linear congruential generator and Fisher–Yates).
fn shuffled(mut order: Vec<usize>, seed: u64) -> Vec<usize> {
    let mut state = seed;
    for last in (1..order.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let at = usize::try_from(state >> 33).unwrap_or(0) % (last + 1);
        order.swap(last, at);
    }
    order
}

/// Of the causes that both versions show, the share whose most common cluster
/// is the same in both.
fn shared_by_versions(rows: &[Row], clusters: &[usize], one: &str, other: &str) -> f64 {
    let most_common = |version: &str| {
        let mut counts: BTreeMap<&str, BTreeMap<usize, usize>> = BTreeMap::new();
        for (row, cluster) in rows.iter().zip(clusters).filter(|(row, _)| row.playwright == version) {
            *counts.entry(&row.label).or_default().entry(*cluster).or_default() += 1;
        }
        let winner = |counts: BTreeMap<usize, usize>| {
            counts.into_iter().max_by_key(|(_, count)| *count).map(|(at, _)| at)
        };
        counts.into_iter().map(|(label, counts)| (label, winner(counts))).collect::<BTreeMap<_, _>>()
    };
    let (one, other) = (most_common(one), most_common(other));
    let both: Vec<bool> =
        one.iter().filter_map(|(label, cluster)| Some(other.get(label)? == cluster)).collect();
    both.iter().filter(|same| **same).count() as f64 / (both.len() as f64).max(1.0)
}

fn explain(table: &mut Table, rows: &[Row], signatures: &[Signature], clusters: &[usize]) {
    let mut by_label: BTreeMap<&str, BTreeMap<usize, Vec<usize>>> = BTreeMap::new();
    let mut by_cluster: BTreeMap<usize, BTreeSet<&str>> = BTreeMap::new();
    for (at, row) in rows.iter().enumerate() {
        by_label.entry(&row.label).or_default().entry(clusters[at]).or_default().push(at);
        by_cluster.entry(clusters[at]).or_default().insert(&row.label);
    }
    for (label, parts) in by_label.iter().filter(|(_, parts)| parts.len() > 1) {
        table.note(format!("split: {label}"));
        for members in parts.values() {
            let first = members[0];
            let versions: BTreeSet<&str> = members.iter().map(|&at| rows[at].playwright.as_str()).collect();
            table.note(format!(
                "  {}x {} {versions:?} {:?}",
                members.len(),
                rows[first].id,
                signatures[first].grouped_by()
            ));
        }
    }
    for labels in by_cluster.values().filter(|labels| labels.len() > 1) {
        table.note(format!("lump: {labels:?}"));
    }
}

/// How well clusters match causes.
#[derive(Debug, Default)]
struct Score {
    f1: f64,
    accuracy: f64,
    splits: usize,
    lumps: usize,
    clusters: usize,
    causes: usize,
}

impl Score {
    /// Pairwise F1: of all pairs of failures, those that are rightly together.
    /// Grouping accuracy: the share of failures whose cluster holds exactly the
    /// failures of its cause.
    fn from_labels(labels: &[&str], clusters: &[usize]) -> Self {
        let mut both: HashMap<(&str, usize), usize> = HashMap::new();
        let mut by_label: HashMap<&str, usize> = HashMap::new();
        let mut by_cluster: HashMap<usize, usize> = HashMap::new();
        for (label, cluster) in labels.iter().zip(clusters) {
            *both.entry((label, *cluster)).or_default() += 1;
            *by_label.entry(label).or_default() += 1;
            *by_cluster.entry(*cluster).or_default() += 1;
        }
        let pairs =
            |counts: &mut dyn Iterator<Item = usize>| counts.map(|n| n * (n - 1) / 2).sum::<usize>() as f64;
        let right = pairs(&mut both.values().copied());
        let precision = right / pairs(&mut by_cluster.values().copied()).max(1.0);
        let recall = right / pairs(&mut by_label.values().copied()).max(1.0);
        let exact: usize = both
            .iter()
            .filter(|((label, cluster), count)| by_label[label] == **count && by_cluster[cluster] == **count)
            .map(|(_, count)| count)
            .sum();
        Self {
            f1: 2.0 * precision * recall / (precision + recall).max(f64::MIN_POSITIVE),
            accuracy: exact as f64 / (labels.len() as f64).max(1.0),
            splits: both.len() - by_label.len(),
            lumps: both.len() - by_cluster.len(),
            clusters: by_cluster.len(),
            causes: by_label.len(),
        }
    }
}
