//! From what was reported to distinct attempts.
//!
//! Invariant: within a class (generation, repetition, retry) an undated report
//! is the same attempt as a dated one as long as there are dated ones to be
//! had; the pairing depends on the set alone.

use super::Attempt;
use super::set::Entry;

/// One distinct attempt.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) attempt: Attempt,
    pub(super) is_listed: bool,
}

/// Folds undated entries into dated ones. `entries` are in key order; so is
/// the answer.
pub(super) fn resolve(entries: &[Entry]) -> Vec<Resolved> {
    let mut resolved = Vec::with_capacity(entries.len());
    for class in entries.chunk_by(|one, next| one.class() == next.class()) {
        let split = class.partition_point(|entry| entry.attempt.started_at.is_some());
        let (dated, undated) = class.split_at(split);
        let partners = pair(dated, undated);
        let start = resolved.len();
        resolved.extend(dated.iter().map(as_resolved));
        for (entry, partner) in undated.iter().zip(partners) {
            match partner {
                Some(position) => {
                    let whole: &mut Resolved = &mut resolved[start + position];
                    whole.attempt.join(&entry.attempt);
                    whole.is_listed |= entry.is_listed;
                }
                None => resolved.push(as_resolved(entry)),
            }
        }
    }
    resolved
}

fn as_resolved(entry: &Entry) -> Resolved {
    Resolved { attempt: entry.attempt.clone(), is_listed: entry.is_listed }
}

/// Finds a dated partner for each undated entry: one that agrees in status
/// and duration, else one that agrees in status, else the earliest left. With
/// repetitions that carry no index this keeps a failed report from tainting a
/// repetition that passed.
fn pair(dated: &[Entry], undated: &[Entry]) -> Vec<Option<usize>> {
    let mut partners = vec![None; undated.len()];
    let mut is_taken = vec![false; dated.len()];
    let agreements: [fn(&Attempt, &Attempt) -> bool; 3] = [
        |one, another| one.status == another.status && one.duration_ms == another.duration_ms,
        |one, another| one.status == another.status,
        |_, _| true,
    ];
    for agrees in agreements {
        for (entry, partner) in undated.iter().zip(&mut partners) {
            if partner.is_none() {
                let found = (0..dated.len()).find(|&position| {
                    !is_taken[position] && agrees(&dated[position].attempt, &entry.attempt)
                });
                if let Some(position) = found {
                    is_taken[position] = true;
                    *partner = found;
                }
            }
        }
    }
    partners
}
