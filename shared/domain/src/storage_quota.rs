//! How much a project or the instance should keep at most. Nothing is refused or deleted by it: people are notified
//! when a share of it is reached.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::setting::{SettingsGroup, UnusableSetting, whole};

/// Shares of a quota that are reported, in percent, ascending.
pub const QUOTA_LEVELS: [i64; 3] = [80, 95, 100];
/// The largest quota that can be set: 1 PB.
const MAX_QUOTA_BYTES: i64 = 1_000_000_000_000_000;
/// The smallest one: 1 MB.
const MIN_QUOTA_BYTES: i64 = 1_000_000;

/// What is set about a quota; `None` is no quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct StorageQuota {
    /// Bytes.
    pub quota_bytes: Option<i64>,
}

/// The keys.
pub const QUOTA_KEYS: [&str; 1] = ["quotaBytes"];

impl SettingsGroup for StorageQuota {
    const NAME: &'static str = "storage-quota";

    fn apply(&mut self, body: &Map<String, Value>) -> Result<(), UnusableSetting> {
        whole(body, "quotaBytes", MIN_QUOTA_BYTES..=MAX_QUOTA_BYTES, &mut self.quota_bytes)
    }
}

impl StorageQuota {
    /// The highest level that some bytes reach; 0 for none.
    #[must_use]
    pub fn level(self, used_bytes: i64) -> i64 {
        let Some(quota) = self.quota_bytes else { return 0 };
        let reaches = |level: &&i64| i128::from(used_bytes) * 100 >= i128::from(quota) * i128::from(**level);
        QUOTA_LEVELS.iter().rev().find(reaches).copied().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_reached_exactly_at_its_share() {
        let quota = StorageQuota { quota_bytes: Some(1_000_000) };
        for (used, level) in [
            (0, 0),
            (799_999, 0),
            (800_000, 80),
            (949_999, 80),
            (950_000, 95),
            (1_000_000, 100),
            (i64::MAX, 100),
        ] {
            assert_eq!(quota.level(used), level, "{used}");
        }
        assert_eq!(StorageQuota::default().level(i64::MAX), 0);
    }
}
