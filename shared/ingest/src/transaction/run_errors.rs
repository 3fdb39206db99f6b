//! The errors of the clients of a run that belong to no test.

use std::collections::BTreeSet;

use callboard_domain::run_errors::RunError;
use callboard_store::runs::slots::SlotRow;

/// An error with the shard whose client reported it; 0 outside of shards.
#[derive(Debug)]
pub struct SlotError {
    /// The error.
    pub error: RunError,
    /// The shard.
    pub shard_index: i64,
}

/// The errors of slots with these ordinals; each one once for every shard.
#[must_use]
pub fn of_slots(rows: &[SlotRow], deciding: BTreeSet<i64>) -> Vec<SlotError> {
    let mut found: Vec<SlotError> = Vec::new();
    for row in rows.iter().filter(|row| deciding.contains(&row.slot.ordinal)) {
        let errors = row.errors.as_deref().map(serde_json::from_str::<Vec<RunError>>);
        for error in errors.into_iter().flatten().flatten() {
            let shard_index = row.slot.shard_index;
            if !found.iter().any(|known| known.shard_index == shard_index && known.error == error) {
                found.push(SlotError { error, shard_index });
            }
        }
    }
    found
}
