//! Identifiers. Every entity has its own 64-bit type, so an execution id can
//! never be passed where a run id is meant. All ids stay below 2^53, so they
//! survive a trip through JavaScript numbers.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub i64);

        impl $name {
            /// The number as SQL and JSON carry it.
            #[must_use]
            pub const fn get(self) -> i64 {
                self.0
            }

            /// Reads the id out of a path or query segment: digits only, no
            /// leading zero, at most 19 of them, within 64 bits.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                parse_id(text).map(Self)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$name> for i64 {
            fn from(id: $name) -> i64 {
                id.0
            }
        }
    )+};
}

ids! {
    /// A project: the root of everything that belongs together.
    ProjectId,
    /// One test run. Run ids grow with time.
    RunId,
    /// A test's identity across runs.
    TestCaseId,
    /// One test case in one run in one browser project.
    ExecutionId,
    /// A stored file: trace, screenshot, video or other attachment.
    FileId,
    /// A stored report directory of a run.
    ReportId,
    /// One evidence pack object.
    PackId,
    /// One content-addressed object.
    BlobId,
    /// A slot of a run: one client that feeds it.
    SlotId,
    /// A user account.
    UserId,
    /// An API key of a user.
    ApiKeyId,
    /// A policy by which runs are judged.
    GatePolicyId,
    /// An invitation to an account.
    InvitationId,
    /// A tag of projects.
    TagId,
    /// A link of a run, an execution, a test case or a cluster.
    LinkId,
    /// A marker of a project.
    MarkerId,
    /// A function of a suite.
    TestFunctionId,
    /// A receipt of a deletion.
    DeletionId,
    /// A failure cluster.
    ClusterId,
    /// A suggestion that two failure clusters are one.
    ClusterSuggestionId,
    /// Two tests whose histories are one, or may be.
    HistoryJoinId,
    /// A diagnosis of a failure cluster by a model.
    DiagnosisId,
    /// An export that is made later.
    ExportId,
    /// A channel of notifications.
    ChannelId,
    /// A subscription to notifications.
    SubscriptionId,
    /// One message to one channel.
    DeliveryId,
}

fn parse_id(text: &str) -> Option<i64> {
    let digits = text.as_bytes();
    let well_formed =
        (1..=19).contains(&digits.len()) && digits[0] != b'0' && digits.iter().all(u8::is_ascii_digit);
    if well_formed { text.parse().ok() } else { None }
}

/// Most executions a run can hold: the ordinal is the low 20 bits of the id.
pub const MAX_EXECUTIONS_PER_RUN: i64 = (1 << ORDINAL_BITS) - 1;

const ORDINAL_BITS: u32 = 20;

impl ExecutionId {
    /// Composes the id from its run and its ordinal within the run
    /// (1..=[`MAX_EXECUTIONS_PER_RUN`]), so that the executions of a run are
    /// one contiguous key range.
    #[must_use]
    pub const fn compose(run: RunId, ordinal: i64) -> Self {
        Self((run.0 << ORDINAL_BITS) | ordinal)
    }

    /// Its place among the executions of its run.
    #[must_use]
    pub const fn ordinal(self) -> i64 {
        self.0 & ((1 << ORDINAL_BITS) - 1)
    }

    /// The run this execution belongs to; arithmetic, no lookup.
    #[must_use]
    pub const fn run(self) -> RunId {
        RunId(self.0 >> ORDINAL_BITS)
    }

    /// The exclusive lower and inclusive upper bound of a run's execution ids.
    #[must_use]
    pub const fn range_of(run: RunId) -> (i64, i64) {
        let low = run.0 << ORDINAL_BITS;
        (low, low | MAX_EXECUTIONS_PER_RUN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_execution_id_knows_its_run() {
        let id = ExecutionId::compose(RunId(41), 7);
        assert_eq!(id.run(), RunId(41));
        let (low, high) = ExecutionId::range_of(RunId(41));
        assert!(low < id.get() && id.get() <= high);
        assert!(ExecutionId::compose(RunId(42), 1).get() > high);
    }

    #[test]
    fn ids_are_read_strictly() {
        assert_eq!(RunId::parse("12"), Some(RunId(12)));
        for bad in ["", "0", "01", "-1", "+1", "12abc", " 1", "9223372036854775808", "1e3"] {
            assert_eq!(RunId::parse(bad), None, "{bad}");
        }
    }
}
