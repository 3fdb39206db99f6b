//! Which commit and which file broke a test: what a failure shows, looked for
//! in what the commits between its last pass and its first failure changed.
//!
//! A file is scored by what ties its patch to the failure, in the manner of
//! spectrum- and text-based fault localisation (Zhou, Zhang, Lo, "Where should
//! the bugs be fixed?", ICSE 2012): the stack, what the test imports, texts and
//! test ids of the failing locator, the path of a failed request, names in an
//! uncaught error. A commit is as suspicious as its files; executions of the
//! test on commits in between move the probabilities (Henderson et al.,
//! "Flake Aware Culprit Finding", ICST 2023).
//!
//! Lives here: pure functions on what is read elsewhere. All of it is a
//! heuristic: it orders, and says why; it proves nothing.

mod bisect;
mod clues;
mod culprit;
mod imports;
mod patch;
mod posterior;
mod score;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use bisect::{BisectedTest, bisect_command};
pub use clues::Clues;
pub use culprit::{Culprit, NextRun, locate, reds_needed};
pub use imports::imported_files;
pub use posterior::Observation;
pub use score::{Reason, ReasonKind};

use patch::Patch;
use posterior::probabilities;
use score::Scorer;

/// Files of a commit from which on its score is divided by their root: a commit
/// that touches everything also touches what broke.
const MANY_FILES: usize = 50;
/// What files beside the most suspicious one add to the score of a commit.
const OTHER_FILES_SHARE: f64 = 0.25;
/// Least probability of a commit that is named as the likely cause.
const TOP_PROBABILITY: f64 = 0.35;
/// How much likelier it has to be than the next one.
const TOP_LEAD: f64 = 2.0;
/// Reasons of a file or commit that are told.
const MAX_REASONS: usize = 4;

/// What a commit changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitChange {
    /// Whole hash.
    pub sha: String,
    /// The files.
    pub files: Vec<FileChange>,
}

/// What a commit changed in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Path after the commit; before it when the file was removed.
    pub path: String,
    /// Path before a rename.
    pub previous_path: Option<String>,
    /// Hunks of the unified diff; `None` for binary files and where it is not known.
    pub patch: Option<String>,
}

/// A file that may have broken the test.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspectFile {
    /// Path.
    pub path: String,
    /// Sum of what ties it to the failure; above 0.
    pub score: f64,
    /// What ties it to the failure, the strongest first.
    pub reasons: Vec<Reason>,
    /// Commits that changed it, the most suspicious first.
    pub commits: Vec<String>,
}

/// A commit that may have broken the test.
#[derive(Debug, Clone, PartialEq)]
pub struct SuspectCommit {
    /// Whole hash.
    pub sha: String,
    /// Probability, 0 to 1; over all commits they sum to 1.
    pub probability: f64,
    /// Whether it stands out: probable enough, and much more so than the next.
    pub is_top: bool,
    /// What ties it to the failure, with the file, the strongest first.
    pub reasons: Vec<(String, Reason)>,
}

/// Files and commits, the most suspicious first.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranking {
    /// Files that anything ties to the failure.
    pub files: Vec<SuspectFile>,
    /// All commits.
    pub commits: Vec<SuspectCommit>,
}

/// What is known of a file over all commits: score and reasons of its most
/// suspicious change, and the commits with their scores.
#[derive(Default)]
struct FileTies<'c> {
    score: f64,
    reasons: Vec<Reason>,
    commits: Vec<(f64, &'c str)>,
}

/// A commit with its score and what made it.
struct Scored {
    score: f64,
    reasons: Vec<(String, Reason)>,
}

/// Ranks what the commits of a range changed by how it fits the failure.
///
/// `commits` are those after the last pass up to the first failure, the newest
/// first; `observations` are executions of the test on commits among them.
#[must_use]
pub fn rank(clues: &Clues, commits: &[CommitChange], observations: &[Observation]) -> Ranking {
    let paths = commits.iter().flat_map(|commit| &commit.files).map(|file| file.path.as_str());
    let scorer = Scorer::new(clues, paths.collect());
    let mut files: BTreeMap<&str, FileTies<'_>> = BTreeMap::new();
    let mut scored = Vec::with_capacity(commits.len());
    for commit in commits {
        let mut reasons: Vec<(String, Reason)> = Vec::new();
        let (mut sum, mut best) = (0.0_f64, 0.0_f64);
        for file in &commit.files {
            let patch = file.patch.as_deref().map(Patch::parse);
            let found = scorer.score(file, patch.as_ref());
            let score: f64 = found.iter().map(|reason| reason.weight).sum();
            sum += score.max(0.0);
            best = best.max(score);
            if score <= 0.0 {
                continue;
            }
            let entry = files.entry(file.path.as_str()).or_default();
            entry.commits.push((score, commit.sha.as_str()));
            if score > entry.score {
                (entry.score, entry.reasons) = (score, found.clone());
            }
            reasons.extend(found.into_iter().map(|reason| (file.path.clone(), reason)));
        }
        let spread = match commit.files.len() {
            count if count > MANY_FILES => (count as f64).sqrt(),
            _ => 1.0,
        };
        scored.push(Scored { score: (best + (sum - best) * OTHER_FILES_SHARE) / spread, reasons });
    }
    let scores: Vec<f64> = scored.iter().map(|commit| commit.score).collect();
    let probabilities = probabilities(&scores, &order(commits), observations);
    Ranking { files: suspect_files(files), commits: suspect_commits(commits, scored, &probabilities) }
}

/// The place of each commit by its hash, the newest first.
fn order(commits: &[CommitChange]) -> BTreeMap<&str, usize> {
    commits.iter().enumerate().map(|(place, commit)| (commit.sha.as_str(), place)).collect()
}

fn suspect_files(files: BTreeMap<&str, FileTies<'_>>) -> Vec<SuspectFile> {
    let mut found: Vec<SuspectFile> = files
        .into_iter()
        .map(|(path, FileTies { score, reasons, mut commits })| {
            commits.sort_by(|one, other| other.0.total_cmp(&one.0));
            SuspectFile {
                path: path.to_owned(),
                score,
                reasons: strongest(reasons, |reason| reason.weight),
                commits: commits.into_iter().map(|(_, sha)| sha.to_owned()).collect(),
            }
        })
        .collect();
    // Paths come in order, and stay so among equals.
    found.sort_by(|one, other| other.score.total_cmp(&one.score));
    found
}

fn suspect_commits(
    commits: &[CommitChange],
    scored: Vec<Scored>,
    probabilities: &[f64],
) -> Vec<SuspectCommit> {
    let mut found: Vec<SuspectCommit> = commits
        .iter()
        .zip(scored)
        .zip(probabilities)
        .map(|((commit, scored), probability)| SuspectCommit {
            sha: commit.sha.clone(),
            probability: *probability,
            is_top: false,
            reasons: strongest(scored.reasons, |(_, reason)| reason.weight),
        })
        .collect();
    // Among equals the newest stays first.
    found.sort_by(|one, other| other.probability.total_cmp(&one.probability));
    let next = found.get(1).map_or(0.0, |next| next.probability);
    if let Some(first) = found.first_mut() {
        first.is_top = !first.reasons.is_empty()
            && first.probability >= TOP_PROBABILITY
            && first.probability >= TOP_LEAD * next;
    }
    found
}

/// The strongest reasons that speak for something.
fn strongest<T>(mut reasons: Vec<T>, weight: impl Fn(&T) -> f64) -> Vec<T> {
    reasons.retain(|reason| weight(reason) > 0.0);
    reasons.sort_by(|one, other| weight(other).total_cmp(&weight(one)));
    reasons.truncate(MAX_REASONS);
    reasons
}
