//! Start keys: what makes a repeated call the same slot of the same run.

use callboard_domain::ingest::RunFields;
use callboard_domain::time::Timestamp;
use callboard_store::runs::slots::SlotKeys;
use sha2::{Digest as _, Sha256};

/// Which of how many shards it is, as keys spell it; another number of shards
/// is another run.
fn shard_of(fields: &RunFields) -> String {
    match fields.shard {
        Some(shard) => format!("{}/{}", shard.index.unwrap_or(0), shard.total),
        None => "0".to_owned(),
    }
}

pub(super) fn hash(parts: &[&str]) -> [u8; 32] {
    Sha256::digest(parts.join("\0")).into()
}

/// The start key of a call whose client names its run itself.
pub(crate) fn named(client_run_id: &str) -> [u8; 32] {
    hash(&["client", client_run_id])
}

/// The keys of a call that opens a slot.
///
/// The start key is the client's own run id, else its grouping key with the
/// start time. The recovery key is what a body says that a reporter saved
/// before it knew a run, and sends later.
pub(crate) fn slot_keys(fields: &RunFields, start: Timestamp) -> SlotKeys {
    let (shard, moment) = (shard_of(fields), start.millis().to_string());
    let named = fields.client_run_id.as_deref().map(named);
    let grouped =
        || fields.instance_id.as_ref().map(|instance| hash(&["instance", instance, &moment, &shard]));
    let recovery =
        fields.reporter_version.as_ref().map(|version| hash(&["reporter", version, &moment, &shard]));
    SlotKeys { start: named.or_else(grouped), recovery, job: None }
}

/// The keys of a set-up: the start it was sent with is not the one its tests
/// will begin with, so only the client's own run id names it.
pub(crate) fn setup_keys(fields: &RunFields) -> SlotKeys {
    SlotKeys { start: fields.client_run_id.as_deref().map(named), ..SlotKeys::default() }
}

/// The keys of a batch. One that can only be recognised as a recovered body is
/// named by that, so that two of it make one run.
pub(crate) fn batch_keys(fields: &RunFields, start: Timestamp) -> SlotKeys {
    let keys = slot_keys(fields, start);
    SlotKeys { start: keys.start.or(keys.recovery), ..keys }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(set: impl FnOnce(&mut RunFields)) -> RunFields {
        let mut fields = RunFields::default();
        set(&mut fields);
        fields
    }

    #[test]
    fn a_resent_body_has_the_key_of_the_first_and_a_plain_one_has_none() {
        let start = Timestamp(1_767_261_600_000);
        let later = Timestamp(start.0 + 1);
        assert_eq!(batch_keys(&RunFields::default(), start), SlotKeys::default());
        let client = fields(|f| f.client_run_id = Some("0f8fad5b-d9cb".to_owned()));
        assert_eq!(batch_keys(&client, start), batch_keys(&client, later));
        assert_eq!(setup_keys(&client).start, slot_keys(&client, later).start);
        let instance = fields(|f| f.instance_id = Some("0123456789abcdef".to_owned()));
        assert_eq!(slot_keys(&instance, start), batch_keys(&instance, start));
        assert_ne!(slot_keys(&instance, start), slot_keys(&instance, later));
        assert_eq!(setup_keys(&instance), SlotKeys::default());
        let reporter = fields(|f| f.reporter_version = Some("0.25.0".to_owned()));
        let both = fields(|f| {
            f.reporter_version = Some("0.25.0".to_owned());
            f.instance_id = Some("0123456789abcdef".to_owned());
        });
        assert_eq!(batch_keys(&reporter, start).start, slot_keys(&both, start).recovery);
    }
}
