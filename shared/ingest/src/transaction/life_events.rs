//! Domain events of the life of a run.

use callboard_domain::events::DomainEvent;
use callboard_domain::run_life::EndReason;
use callboard_store::runs::RunRow;

/// What a transaction did to a run.
pub(crate) struct Change<'a> {
    /// Its row as the transaction found or created it.
    pub(crate) before: &'a RunRow,
    /// Its row as it will be written.
    pub(crate) after: &'a RunRow,
    /// Whether the transaction created it.
    pub(crate) is_new: bool,
    /// Whether its results changed.
    pub(crate) has_changed: bool,
    /// Indexes of shards that did not finish.
    pub(crate) unfinished_shards: Vec<i64>,
}

/// The events of a change. A run that comes as one batch ends in the
/// transaction that creates it, and only finishes.
pub(crate) fn life_events(change: Change<'_>) -> Vec<DomainEvent> {
    let Change { before, after, is_new, has_changed, unfinished_shards } = change;
    let run = after.id;
    match (before.status.is_final(), after.status.is_final()) {
        (false, true) if after.end_reason == Some(EndReason::ShardsMissing) => vec![
            DomainEvent::RunFinished { run },
            DomainEvent::ShardsMissing { run, missing: unfinished_shards },
        ],
        (false, true) => vec![DomainEvent::RunFinished { run }],
        (true, false) => vec![DomainEvent::RunReopened { run }],
        (true, true) if has_changed || before.status != after.status => {
            vec![DomainEvent::RunRevised { run, revision: after.version }]
        }
        (false, false) if is_new => vec![DomainEvent::RunStarted { run }],
        _ => Vec::new(),
    }
}
