//! Domain events: what happened in a project that other parts of the service
//! act upon, such as notifications. An event is stored in the transaction that
//! makes it true. It names what changed; a subscriber reads the present state
//! of that when it handles the event.

use serde::{Deserialize, Serialize};

use crate::ids::{ClusterId, DiagnosisId, RunId, TestCaseId};

/// Something that happened in a project.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "event")]
pub enum DomainEvent {
    /// A run began to receive results.
    #[serde(rename = "run.started")]
    RunStarted {
        /// Run.
        run: RunId,
    },
    /// A run ended. Its numbers are not checked yet, see [`DomainEvent::RunEvaluated`].
    #[serde(rename = "run.finished")]
    RunFinished {
        /// Run.
        run: RunId,
    },
    /// A run that seemed to be over goes on.
    #[serde(rename = "run.reopened")]
    RunReopened {
        /// Run.
        run: RunId,
    },
    /// The numbers of a finished run are checked, it is compared with earlier
    /// runs, and its failures are grouped.
    #[serde(rename = "run.evaluated")]
    RunEvaluated {
        /// Run.
        run: RunId,
        /// Whether it was evaluated before, and did not end since.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        again: bool,
    },
    /// A finished run changed: a late shard, a re-run, or a correction.
    #[serde(rename = "run.revised")]
    RunRevised {
        /// Run.
        run: RunId,
        /// Version of the run's row before the change; ascending per run.
        revision: i64,
    },
    /// A sharded run ended without some of its shards.
    #[serde(rename = "shard.missing")]
    ShardsMissing {
        /// Run.
        run: RunId,
        /// Indexes of the shards that never finished.
        missing: Vec<i64>,
    },
    /// The newest full run of a branch and environment failed, and the one before passed.
    #[serde(rename = "branch.red")]
    BranchWentRed {
        /// The run that failed.
        run: RunId,
    },
    /// The newest full run of a branch and environment passed, and the one before failed.
    #[serde(rename = "branch.recovered")]
    BranchRecovered {
        /// The run that passed.
        run: RunId,
    },
    /// A failure cluster has its first occurrence.
    #[serde(rename = "cluster.new")]
    ClusterOpened {
        /// Failure cluster.
        cluster: ClusterId,
        /// The run that shows it.
        run: RunId,
    },
    /// A failure occurred again after its cluster was resolved, or was quiet long enough to count as fixed.
    #[serde(rename = "cluster.regressed")]
    ClusterReopened {
        /// Failure cluster.
        cluster: ClusterId,
        /// The run that shows it.
        run: RunId,
    },
    /// Enough clean runs show that the failure of a cluster has stopped.
    #[serde(rename = "cluster.verified")]
    ClusterVerified {
        /// Failure cluster.
        cluster: ClusterId,
        /// The run that completed the proof.
        run: RunId,
    },
    /// A test left quarantine.
    #[serde(rename = "quarantine.released")]
    QuarantineReleased {
        /// Test case.
        test_case: TestCaseId,
    },
    /// A test became slower for good.
    #[serde(rename = "perf.regression")]
    TestSlower {
        /// Test case.
        test_case: TestCaseId,
        /// The run that completed the proof.
        run: RunId,
        /// Median of its passes before, ms.
        before_ms: i64,
        /// Median of its passes since, ms.
        after_ms: i64,
    },
    /// A test became flaky.
    #[serde(rename = "test.flaky")]
    TestFlaky {
        /// Test case.
        test_case: TestCaseId,
        /// The run that completed the proof.
        run: RunId,
        /// Its flaky score since, 0 to 100.
        score: i64,
    },
    /// A part of what a run sent was not stored.
    #[serde(rename = "evidence.dropped")]
    EvidenceDropped {
        /// Run.
        run: RunId,
        /// Why, in one sentence.
        reason: String,
    },
    /// A diagnosis of a failure cluster is there.
    #[serde(rename = "diagnosis.completed")]
    DiagnosisCompleted {
        /// Diagnosis.
        diagnosis: DiagnosisId,
        /// Failure cluster.
        cluster: ClusterId,
    },
    /// What a project keeps reached another share of its quota.
    #[serde(rename = "storage.quota")]
    StorageQuotaReached {
        /// Percent: 80, 95 or 100.
        level: i64,
        /// Bytes it keeps.
        used_bytes: i64,
        /// Bytes of its quota.
        quota_bytes: i64,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Stored events outlive releases.
    #[test]
    fn an_event_is_stored_under_its_public_name() {
        let event = DomainEvent::ClusterOpened { cluster: ClusterId(3), run: RunId(55) };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(json, r#"{"event":"cluster.new","cluster":3,"run":55}"#);
        assert_eq!(serde_json::from_str::<DomainEvent>(&json).unwrap(), event);
        let earlier = r#"{"event":"run.evaluated","run":55}"#;
        let event = DomainEvent::RunEvaluated { run: RunId(55), again: false };
        assert_eq!(serde_json::from_str::<DomainEvent>(earlier).unwrap(), event);
        assert_eq!(serde_json::to_string(&event).unwrap(), earlier);
    }
}
