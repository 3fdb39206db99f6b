//! From what was reported to distinct attempts.
//!
//! Invariant: within a class (generation, repetition, retry) an undated report
//! is the same attempt as a dated one as long as there are dated ones to be
//! had, and a dated one that does not name its worker the same as one of that
//! start that does; the pairing depends on the set alone.

use std::borrow::Cow;

use super::Attempt;
use super::set::Entry;

/// One distinct attempt.
#[derive(Clone, Debug)]
pub(super) struct Resolved {
    pub(super) attempt: Attempt,
    pub(super) is_listed: bool,
}

/// Folds entries that say less into those that say more. `entries` are in key order;
/// so is the answer.
pub(super) fn resolve(entries: &[Entry]) -> Vec<Resolved> {
    let mut resolved = Vec::with_capacity(entries.len());
    for class in entries.chunk_by(|one, next| one.class() == next.class()) {
        let split = class.partition_point(|entry| entry.attempt.started_at.is_some());
        let (dated, undated) = class.split_at(split);
        let dated = by_worker(dated);
        let partners = pair(&dated, undated);
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

/// Folds what does not name its worker into what began at the same moment and does.
fn by_worker(dated: &[Entry]) -> Cow<'_, [Entry]> {
    let is_same_start = |one: &Entry, next: &Entry| one.attempt.started_at == next.attempt.started_at;
    let is_foldable = |one: &Entry, next: &Entry| one.slot == 0 && is_same_start(one, next);
    if !dated.windows(2).any(|pair| is_foldable(&pair[0], &pair[1])) {
        return Cow::Borrowed(dated);
    }
    let mut distinct: Vec<Entry> = Vec::with_capacity(dated.len());
    for same in dated.chunk_by(is_same_start) {
        // There is at most one without, as it has no other key, and it comes first.
        let (without, with) = same.split_at(same.partition_point(|entry| entry.slot == 0));
        let start = distinct.len();
        distinct.extend(with.iter().cloned());
        for (entry, partner) in without.iter().zip(pair(with, without)) {
            match partner {
                Some(position) => {
                    let whole = &mut distinct[start + position];
                    whole.attempt.join(&entry.attempt);
                    whole.is_listed |= entry.is_listed;
                }
                None => distinct.push(entry.clone()),
            }
        }
    }
    Cow::Owned(distinct)
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
