//! Ids are taken before the insert, so a batch knows every id it writes:
//! a sequence per kind on PostgreSQL, a counter row per kind on SQLite.
//! The directory says which project an id belongs to.

use callboard_domain::ids::ProjectId;

use crate::Result;
use crate::db::{Backend, Bulk, Column, Session, Statement, args, statements};

/// A kind of entity with ids of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Projects.
    Project,
    /// Runs.
    Run,
    /// Test cases.
    TestCase,
    /// Slots of runs.
    Slot,
    /// Evidence packs.
    Pack,
    /// Content-addressed objects.
    Blob,
    /// Files.
    File,
    /// Reports.
    Report,
    /// User accounts.
    User,
    /// Project assignments.
    Assignment,
    /// API keys.
    ApiKey,
    /// Invitations.
    Invitation,
    /// Entries of the audit log.
    AuditEvent,
    /// Jobs of the queue.
    Job,
    /// Policies of gates.
    GatePolicy,
    /// Results of gates.
    GateResult,
    /// Tags of projects.
    Tag,
    /// Links of entities.
    Link,
    /// Markers.
    Marker,
    /// Functions of suites.
    TestFunction,
    /// Receipts of deletions.
    Deletion,
    /// Quarantines of tests.
    Quarantine,
    /// Failure clusters.
    Cluster,
    /// Templates of free text.
    Template,
    /// Suggestions that failure clusters are one.
    ClusterSuggestion,
    /// Exports.
    Export,
    /// Channels of notifications.
    Channel,
    /// Subscriptions to notifications.
    Subscription,
    /// Deliveries of notifications.
    Delivery,
    /// Joins of histories.
    HistoryJoin,
    /// Diagnoses of failure clusters.
    Diagnosis,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Run => "run",
            Self::TestCase => "test_case",
            Self::Slot => "slot",
            Self::Pack => "pack",
            Self::Blob => "blob",
            Self::File => "file",
            Self::Report => "report",
            Self::User => "user",
            Self::Assignment => "assignment",
            Self::ApiKey => "api_key",
            Self::Invitation => "invitation",
            Self::AuditEvent => "audit_event",
            Self::Job => "job",
            Self::GatePolicy => "gate_policy",
            Self::GateResult => "gate_result",
            Self::Tag => "tag",
            Self::Link => "link",
            Self::Marker => "marker",
            Self::TestFunction => "test_function",
            Self::Deletion => "deletion",
            Self::Quarantine => "quarantine",
            Self::Cluster => "cluster",
            Self::Template => "template",
            Self::ClusterSuggestion => "cluster_suggestion",
            Self::Export => "export",
            Self::Channel => "channel",
            Self::Subscription => "subscription",
            Self::Delivery => "delivery",
            Self::HistoryJoin => "history_join",
            Self::Diagnosis => "diagnosis",
        }
    }

    fn sequence(self) -> &'static Statement {
        match self {
            Self::Project => &NEXT_PROJECT,
            Self::Run => &NEXT_RUN,
            Self::TestCase => &NEXT_TEST_CASE,
            Self::Slot => &NEXT_SLOT,
            Self::Pack => &NEXT_PACK,
            Self::Blob => &NEXT_BLOB,
            Self::File => &NEXT_FILE,
            Self::Report => &NEXT_REPORT,
            Self::User => &NEXT_USER,
            Self::Assignment => &NEXT_ASSIGNMENT,
            Self::ApiKey => &NEXT_API_KEY,
            Self::Invitation => &NEXT_INVITATION,
            Self::AuditEvent => &NEXT_AUDIT_EVENT,
            Self::Job => &NEXT_JOB,
            Self::GatePolicy => &NEXT_GATE_POLICY,
            Self::GateResult => &NEXT_GATE_RESULT,
            Self::Tag => &NEXT_TAG,
            Self::Link => &NEXT_LINK,
            Self::Marker => &NEXT_MARKER,
            Self::TestFunction => &NEXT_TEST_FUNCTION,
            Self::Deletion => &NEXT_DELETION,
            Self::Quarantine => &NEXT_QUARANTINE,
            Self::Cluster => &NEXT_CLUSTER,
            Self::Template => &NEXT_TEMPLATE,
            Self::ClusterSuggestion => &NEXT_CLUSTER_SUGGESTION,
            Self::Export => &NEXT_EXPORT,
            Self::Channel => &NEXT_CHANNEL,
            Self::Subscription => &NEXT_SUBSCRIPTION,
            Self::Delivery => &NEXT_DELIVERY,
            Self::HistoryJoin => &NEXT_HISTORY_JOIN,
            Self::Diagnosis => &NEXT_DIAGNOSIS,
        }
    }
}

/// A kind of entity that is addressed by a bare id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listed {
    /// Runs (and their executions, by arithmetic).
    Run = 1,
    /// Test cases.
    TestCase = 2,
    /// Files.
    File = 3,
    /// Failure clusters.
    Cluster = 5,
    /// Diagnoses of failure clusters.
    Diagnosis = 6,
    /// Suggestions that failure clusters are one.
    ClusterSuggestion = 7,
    /// Policies of gates.
    GatePolicy = 18,
    /// Links of entities.
    Link = 12,
    /// Markers.
    Marker = 13,
    /// Functions of suites.
    TestFunction = 14,
    /// Exports.
    Export = 19,
}

// Counters and sequences belong to one engine each, so they are not part of
// the statements that both engines prepare.
macro_rules! sequences {
    ($($name:ident $sequence:literal),+) => {
        $(static $name: Statement = Statement::new(
            $sequence,
            concat!("SELECT nextval('", $sequence, "') FROM generate_series(1, $1)"),
        );)+
    };
}
sequences! {
    NEXT_PROJECT "ids_project", NEXT_RUN "ids_run", NEXT_TEST_CASE "ids_test_case",
    NEXT_SLOT "ids_slot", NEXT_PACK "ids_pack", NEXT_BLOB "ids_blob", NEXT_FILE "ids_file",
    NEXT_REPORT "ids_report", NEXT_USER "ids_user", NEXT_ASSIGNMENT "ids_assignment",
    NEXT_API_KEY "ids_api_key", NEXT_INVITATION "ids_invitation", NEXT_AUDIT_EVENT "ids_audit_event",
    NEXT_GATE_POLICY "ids_gate_policy", NEXT_GATE_RESULT "ids_gate_result",
    NEXT_JOB "ids_job", NEXT_TAG "ids_tag", NEXT_LINK "ids_link", NEXT_MARKER "ids_marker",
    NEXT_TEST_FUNCTION "ids_test_function",
    NEXT_DELETION "ids_deletion", NEXT_QUARANTINE "ids_quarantine",
    NEXT_CLUSTER "ids_cluster", NEXT_TEMPLATE "ids_template",
    NEXT_CLUSTER_SUGGESTION "ids_cluster_suggestion", NEXT_EXPORT "ids_export",
    NEXT_CHANNEL "ids_channel", NEXT_SUBSCRIPTION "ids_subscription", NEXT_DELIVERY "ids_delivery",
    NEXT_HISTORY_JOIN "ids_history_join", NEXT_DIAGNOSIS "ids_diagnosis"
}
static ADVANCE_COUNTER: Statement = Statement::new(
    "ids::ADVANCE_COUNTER",
    "INSERT INTO id_counters (kind, next) VALUES ($1, $2 + 1) \
     ON CONFLICT (kind) DO UPDATE SET next = next + $2 RETURNING next - $2",
);

statements! {
    /// The project of an entity; a project that was deleted has none any more.
    PROJECT_OF = "SELECT d.project_id FROM id_directory d JOIN projects p ON p.id = d.project_id WHERE d.kind = $1 AND d.id = $2";
    /// An entity that is gone.
    UNLIST = "DELETE FROM id_directory WHERE kind = $1 AND id = $2";
}

static LIST_IDS: Bulk = Bulk::new(
    "ids::LIST_IDS",
    2,
    "INSERT INTO id_directory (kind, id, project_id) SELECT $1, r.id, $2 FROM",
    &[Column::Int("id")],
    "WHERE true",
);

pub(crate) static BULKS: &[&Bulk] = &[&LIST_IDS];

/// Takes `count` ids of a kind, in ascending order.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn allocate(session: &mut Session, kind: Kind, count: usize) -> Result<Vec<i64>> {
    let count = i64::try_from(count).unwrap_or(i64::MAX);
    if count == 0 {
        return Ok(Vec::new());
    }
    match session.backend() {
        Backend::Postgres => {
            let rows = session.all(kind.sequence(), args![count]).await?;
            rows.iter().map(|row| row.reader().int()).collect()
        }
        Backend::Sqlite => {
            let row = session.one(&ADVANCE_COUNTER, args![kind.name(), count]).await?;
            let first = row.reader().int()?;
            Ok((first..first + count).collect())
        }
    }
}

/// Takes one id of a kind.
///
/// # Errors
/// As [`allocate`].
pub async fn allocate_one(session: &mut Session, kind: Kind) -> Result<i64> {
    let ids = allocate(session, kind, 1).await?;
    ids.first().copied().ok_or(crate::StoreError::Damaged("a sequence gave no id"))
}

/// Has SQLite take ids in a transaction for the statements that follow in it, which
/// find the last one in the counter: one way to the database for all. A sequence is
/// asked by the statement itself.
///
/// # Errors
/// As [`allocate`].
pub(crate) async fn take_next(session: &mut Session, kind: Kind, count: i64) -> Result<()> {
    match session.backend() {
        Backend::Postgres => Ok(()),
        Backend::Sqlite => session.write(&ADVANCE_COUNTER, args![kind.name(), count]).await,
    }
}

/// Takes one id of each of some kinds, on SQLite in one way to the database.
///
/// # Errors
/// As [`allocate`].
pub async fn allocate_each<const N: usize>(session: &mut Session, kinds: [Kind; N]) -> Result<[i64; N]> {
    let backend = session.backend();
    let asked = session.each(kinds.map(|kind| match backend {
        Backend::Postgres => (kind.sequence(), args![1_i64]),
        Backend::Sqlite => (&ADVANCE_COUNTER, args![kind.name(), 1_i64]),
    }));
    let mut ids = [0; N];
    for (id, rows) in ids.iter_mut().zip(asked.await?) {
        *id = rows.first().ok_or(crate::StoreError::Damaged("a sequence gave no id"))?.reader().int()?;
    }
    Ok(ids)
}

/// Enters new entities into the directory.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn list(session: &mut Session, kind: Listed, project: ProjectId, ids: &[i64]) -> Result<()> {
    let mut rows = LIST_IDS.rows();
    for id in ids {
        rows.push([(*id).into()]);
    }
    session.execute_bulk(&LIST_IDS, args![kind as i64, project], rows).await?;
    Ok(())
}

/// Takes an entity that goes out of the directory.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn unlist(session: &mut Session, kind: Listed, id: i64) -> Result<()> {
    session.write(&UNLIST, args![kind as i64, id]).await?;
    Ok(())
}

/// The project an entity belongs to.
///
/// # Errors
/// [`crate::StoreError::Database`].
pub async fn project_of(session: &mut Session, kind: Listed, id: i64) -> Result<Option<ProjectId>> {
    let row = session.first(&PROJECT_OF, args![kind as i64, id]).await?;
    row.map(|row| row.reader().int().map(ProjectId)).transpose()
}
