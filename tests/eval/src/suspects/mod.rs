//! Suspects of thirty faults hidden in the history of a shop, beside blaming
//! the newest commit.

mod faults;
mod history;
mod shop;
pub(crate) mod streaks;

use std::collections::BTreeMap;

use anyhow::{Context as _, Result};
use callboard_domain::suspects::{Clues, CommitChange, FileChange, Ranking, rank};

use crate::table::{Table, Target};
use faults::{FAULTS, Fault};
use history::History;

/// Commits of the range of a fault, the newest first.
fn commits(history: &History) -> Result<Vec<CommitChange>> {
    let range = format!("{}..{}", history.base, history.head);
    let shas = history.git(&["rev-list", "--topo-order", &range])?;
    shas.lines().map(|sha| Ok(CommitChange { sha: sha.to_owned(), files: files(history, sha)? })).collect()
}

/// What a commit changed, as `git` says it.
fn files(history: &History, sha: &str) -> Result<Vec<FileChange>> {
    let diff = history.git(&["show", "--format=", "--no-renames", sha])?;
    let parts = diff.split("diff --git ").skip(1);
    let file = |part: &str| {
        let names = part.lines().next().context("a file")?;
        let path = names.rsplit_once(" b/").context("its path")?.1.to_owned();
        let patch = part.find("\n@@ ").map(|at| part[at + 1..].to_owned());
        Ok(FileChange { path, previous_path: None, patch })
    };
    parts.map(file).collect()
}

fn ranked(fault: &Fault, history: &History, commits: &[CommitChange]) -> Ranking {
    let mut clues = Clues::of_failure(&fault.test_file(), &fault.evidence(), &fault.environment());
    let imports: Vec<String> = clues.import_paths().collect();
    for path in imports {
        if let Ok(source) = history.git(&["show", &format!("{}:{path}", history.head)]) {
            clues.add_imports_of(&path, &source);
        }
    }
    rank(&clues, commits, &[])
}

/// How often the right one is among the first ones.
#[derive(Default)]
struct Hits {
    first: usize,
    third: usize,
}

impl Hits {
    fn count(&mut self, place: Option<usize>) {
        self.first += usize::from(place.is_some_and(|place| place < 1));
        self.third += usize::from(place.is_some_and(|place| place < 3));
    }
}

#[expect(clippy::cast_precision_loss, reason = "thirty faults")]
fn share(count: usize) -> f64 {
    count as f64 / FAULTS.len() as f64
}

/// Finds the commit and the file of every fault.
pub(crate) fn measure(details: bool) -> Result<Table> {
    let mut table = Table::new("Suspects: commits and files that broke a test");
    let (mut by_commit, mut by_file, mut newest) = (Hits::default(), Hits::default(), Hits::default());
    let (mut named, mut wrongly, mut ranges) = (0, 0, BTreeMap::new());
    for fault in &FAULTS {
        let history = History::make(fault)?;
        let commits = commits(&history)?;
        *ranges.entry(commits.len()).or_insert(0) += 1;
        let ranking = ranked(fault, &history, &commits);
        let place = ranking.commits.iter().position(|commit| commit.sha == history.culprit);
        let (edits, _) = fault.edits();
        let is_faulty = |path: &str| edits.iter().any(|edit| edit.path == path);
        let file_place = ranking.files.iter().position(|file| is_faulty(&file.path));
        by_commit.count(place);
        by_file.count(file_place);
        newest.count(commits.iter().position(|commit| commit.sha == history.culprit));
        if let Some(first) = ranking.commits.first().filter(|first| first.is_top) {
            named += 1;
            wrongly += usize::from(first.sha != history.culprit);
        }
        if details && place != Some(0) {
            let first = ranking.commits.first().map(|first| {
                let told = first
                    .reasons
                    .iter()
                    .map(|(path, reason)| format!("{path} {reason} ({:.1})", reason.weight));
                told.collect::<Vec<_>>().join("; ")
            });
            let own = ranking.commits.iter().find(|commit| commit.sha == history.culprit).map(|own| {
                let told = own
                    .reasons
                    .iter()
                    .map(|(path, reason)| format!("{path} {reason} ({:.1})", reason.weight));
                format!("{:.2}: {}", own.probability, told.collect::<Vec<_>>().join("; "))
            });
            table.note(format!(
                "{:?} in {}: place {place:?} of {}\n    first: {}\n    own: {}",
                fault.kind,
                fault.area,
                commits.len(),
                first.unwrap_or_default(),
                own.unwrap_or_default()
            ));
        }
    }
    table.add("commit, first place", share(by_commit.first), Target::AtLeast(0.6), Some(share(newest.first)));
    table.add(
        "commit, first three",
        share(by_commit.third),
        Target::AtLeast(0.85),
        Some(share(newest.third)),
    );
    table.add("file, first place", share(by_file.first), Target::None, None);
    table.add("file, first three", share(by_file.third), Target::None, None);
    let (shortest, longest) = (ranges.keys().next(), ranges.keys().next_back());
    table.note(format!(
        "{} faults in ranges of {} to {} commits; the trivial method blames the newest commits.",
        FAULTS.len(),
        shortest.unwrap_or(&0),
        longest.unwrap_or(&0)
    ));
    table.note(format!("{named} commits were named as the likely cause, {wrongly} of them wrongly."));
    Ok(table)
}
