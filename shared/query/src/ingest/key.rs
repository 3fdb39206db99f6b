//! Start keys: what makes a repeated submission the same run.

use callboard_domain::ingest::RunFields;
use callboard_domain::time::Timestamp;
use sha2::{Digest as _, Sha256};

/// The key under which a submission finds its run again: the client's own run
/// id, else its grouping key with the start time, else (a resent body of a
/// reporter that knows no grouping) reporter version and start time. Without
/// any of these every call is a new run.
pub(super) fn start_key(fields: &RunFields, start: Timestamp) -> Option<[u8; 32]> {
    let shard = fields.shard.and_then(|shard| shard.index).unwrap_or(0);
    let moment = start.millis();
    let parts = if let Some(client) = &fields.client_run_id {
        vec!["client".to_owned(), client.clone()]
    } else if let Some(instance) = &fields.instance_id {
        vec!["instance".to_owned(), instance.clone(), moment.to_string(), shard.to_string()]
    } else if let Some(version) = &fields.reporter_version {
        vec!["reporter".to_owned(), version.clone(), moment.to_string(), shard.to_string()]
    } else {
        return None;
    };
    Some(Sha256::digest(parts.join("\0")).into())
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
        assert_eq!(start_key(&RunFields::default(), start), None);
        let client = fields(|f| f.client_run_id = Some("0f8fad5b-d9cb".to_owned()));
        assert_eq!(start_key(&client, start), start_key(&client, Timestamp(start.0 + 1)));
        let instance = fields(|f| f.instance_id = Some("0123456789abcdef".to_owned()));
        assert_eq!(start_key(&instance, start), start_key(&instance, start));
        assert_ne!(start_key(&instance, start), start_key(&instance, Timestamp(start.0 + 1)));
        let reporter = fields(|f| f.reporter_version = Some("0.25.0".to_owned()));
        assert!(start_key(&reporter, start).is_some());
        assert_ne!(start_key(&reporter, start), start_key(&instance, start));
    }
}
