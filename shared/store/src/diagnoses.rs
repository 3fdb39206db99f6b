//! Versions of the diagnoses of failure clusters and executions, and the votes on them.

use callboard_domain::diagnosis::DiagnosisStatus;
use callboard_domain::ids::{ClusterId, DiagnosisId, ExecutionId, ProjectId, UserId};
use callboard_domain::time::Timestamp;

use crate::db::{Row, Session, args, statements};
use crate::ids::{self, Kind, Listed};
use crate::{Result, StoreError};

macro_rules! select {
    ($where:literal) => {
        concat!(
            "SELECT id, cluster_id, execution_id, sample_execution_id, base_commit, commits, draft, received, version, status, stage, is_forced, note, requested_by, starts, context_hash, provider, \
             model, prompt_version, category, confidence_score, severity, summary, details, error_code, error, calls, \
             input_tokens, output_tokens, duration_ms, created_at, updated_at FROM diagnoses WHERE ",
            $where
        )
    };
}

statements! {
    /// One version. PK
    BY_ID = select!("project_id = $1 AND id = $2");
    /// The same, locked. PK
    LOCK = select!("project_id = $1 AND id = $2 for_update()");
    /// The one that runs for a subject. ix: diagnoses_running
    RUNNING = select!("project_id = $1 AND cluster_id = $2 AND execution_id = $3 AND status = 'running'");
    /// Versions of a subject's diagnosis, newest first. ix: diagnoses_by_version
    OF_SUBJECT = select!("project_id = $1 AND cluster_id = $2 AND execution_id = $3 AND version < $4 ORDER BY version DESC LIMIT $5");
    /// The newest version with an answer. ix: diagnoses_by_version
    NEWEST_COMPLETED = select!("project_id = $1 AND cluster_id = $2 AND execution_id = $3 AND status = 'completed' \
        ORDER BY version DESC LIMIT 1");
    /// The newest answer to the same evidence. ix: diagnoses_by_version
    BY_HASH = select!("project_id = $1 AND cluster_id = $2 AND execution_id = $3 AND status = 'completed' AND context_hash = $4 \
        ORDER BY version DESC LIMIT 1");
    /// The last version of a subject's diagnosis. ix: diagnoses_by_version
    LAST_VERSION = "SELECT COALESCE(MAX(version), 0) FROM diagnoses WHERE project_id = $1 AND cluster_id = $2 AND execution_id = $3";
    /// A new version.
    INSERT = "INSERT INTO diagnoses (id, project_id, cluster_id, execution_id, version, status, stage, is_forced, note, requested_by, \
        sample_execution_id, base_commit, commits, created_at, updated_at) \
        VALUES ($1, $2, $3, $4, $5, 'running', 'queued', $6, $7, $8, $9, $10, $11, $12, $12)";
    /// A worker begins one. PK
    BEGIN = "UPDATE diagnoses SET starts = starts + 1, updated_at = $3 WHERE project_id = $1 AND id = $2 AND status = 'running'";
    /// How far one is. PK
    STAGE = "UPDATE diagnoses SET stage = $3, provider = $4, model = $5, prompt_version = $6, context_hash = $7, draft = NULL, \
        received = 0, updated_at = $8 WHERE project_id = $1 AND id = $2 AND status = 'running'";
    /// What the model has written so far. PK
    DRAFT = "UPDATE diagnoses SET draft = $3, received = $4, updated_at = $5 WHERE project_id = $1 AND id = $2 AND status = 'running'";
    /// One ends, unless it ended before. PK
    FINISH = "UPDATE diagnoses SET status = $3, stage = 'done', category = $4, confidence_score = $5, severity = $6, summary = $7, \
        details = $8, error_code = $9, error = $10, calls = $11, input_tokens = $12, output_tokens = $13, duration_ms = $14, \
        updated_at = $15, draft = NULL WHERE project_id = $1 AND id = $2 AND status = 'running'";
    /// Votes on a version. PK
    VOTES = "SELECT user_id, vote, note FROM diagnosis_votes WHERE project_id = $1 AND diagnosis_id = $2";
    /// A person's vote. PK
    VOTE = "INSERT INTO diagnosis_votes (project_id, diagnosis_id, user_id, vote, note, at) VALUES ($1, $2, $3, $4, $5, $6) \
        ON CONFLICT (project_id, diagnosis_id, user_id) DO UPDATE SET vote = excluded.vote, note = excluded.note, at = excluded.at";
    /// Takes a person's vote back. PK
    UNVOTE = "DELETE FROM diagnosis_votes WHERE project_id = $1 AND diagnosis_id = $2 AND user_id = $3";
    /// Directory places of the diagnoses of a run's executions. ix: diagnoses_by_version
    UNLIST_OF_RUN = "DELETE FROM id_directory WHERE kind = 6 AND id IN (SELECT id FROM diagnoses WHERE project_id = $1 \
        AND cluster_id = 0 AND execution_id > $2 AND execution_id <= $3)";
    /// Votes on the diagnoses of a run's executions. ix: diagnoses_by_version, PK
    DELETE_VOTES_OF_RUN = "DELETE FROM diagnosis_votes WHERE project_id = $1 AND diagnosis_id IN (SELECT id FROM diagnoses \
        WHERE project_id = $1 AND cluster_id = 0 AND execution_id > $2 AND execution_id <= $3)";
    /// Diagnoses of a run's executions. ix: diagnoses_by_version
    DELETE_OF_RUN = "DELETE FROM diagnoses WHERE project_id = $1 AND cluster_id = 0 AND execution_id > $2 AND execution_id <= $3";
}

/// What a diagnosis is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// A failure cluster.
    Cluster(ClusterId),
    /// One execution.
    Execution(ExecutionId),
}

impl Subject {
    /// The columns of the cluster and the execution.
    const fn columns(self) -> (i64, i64) {
        match self {
            Self::Cluster(cluster) => (cluster.get(), 0),
            Self::Execution(execution) => (0, execution.get()),
        }
    }

    const fn from_cluster(cluster: i64, execution: i64) -> Self {
        if execution == 0 {
            Self::Cluster(ClusterId(cluster))
        } else {
            Self::Execution(ExecutionId(execution))
        }
    }

    /// The cluster, when it is about one.
    #[must_use]
    pub const fn cluster(self) -> Option<ClusterId> {
        match self {
            Self::Cluster(cluster) => Some(cluster),
            Self::Execution(_) => None,
        }
    }

    /// The execution, when it is about one.
    #[must_use]
    pub const fn execution(self) -> Option<ExecutionId> {
        match self {
            Self::Cluster(_) => None,
            Self::Execution(execution) => Some(execution),
        }
    }

    /// The kind and the id as the audit log names them.
    #[must_use]
    pub const fn target(self) -> (&'static str, i64) {
        match self {
            Self::Cluster(cluster) => ("cluster", cluster.get()),
            Self::Execution(execution) => ("execution", execution.get()),
        }
    }
}

/// What a diagnosis is to rest on, beside the evidence of the newest failure.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grounds {
    /// The execution whose evidence is sent; the newest failure of the cluster without one.
    pub sample: Option<ExecutionId>,
    /// The commit that changes count from.
    pub base_commit: Option<String>,
    /// Commits to say something about.
    pub commits: Vec<String>,
}

impl Grounds {
    /// Whether nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// A version of a diagnosis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagnosisRow {
    /// Id.
    pub id: DiagnosisId,
    /// What it is about.
    pub subject: Subject,
    /// What it is to rest on.
    pub grounds: Grounds,
    /// What can be read of an answer that is being written.
    pub draft: Option<String>,
    /// Bytes of the answer that have arrived.
    pub received: i64,
    /// 1 for the first one of its subject.
    pub version: i64,
    /// Status.
    pub status: DiagnosisStatus,
    /// What its job is at.
    pub stage: String,
    /// Whether an answer to the same evidence is not enough.
    pub is_forced: bool,
    /// What the person who requested it added.
    pub note: Option<String>,
    /// Who requested it.
    pub requested_by: Option<UserId>,
    /// Workers that began it.
    pub starts: i64,
    /// SHA-256 of what the model was sent, and of which model.
    pub context_hash: Option<Vec<u8>>,
    /// How the model was spoken to.
    pub provider: Option<String>,
    /// Name of the model.
    pub model: Option<String>,
    /// Version of the instructions.
    pub prompt_version: Option<i64>,
    /// Category, with an answer.
    pub category: Option<String>,
    /// 0 to 100, with an answer.
    pub confidence_score: Option<i64>,
    /// Severity, with an answer.
    pub severity: Option<String>,
    /// One sentence, with an answer.
    pub summary: Option<String>,
    /// The rest of the answer as JSON.
    pub details: Option<String>,
    /// What kind of failure it was.
    pub error_code: Option<String>,
    /// The failure in one sentence.
    pub error: Option<String>,
    /// Requests to the model.
    pub calls: i64,
    /// Tokens sent.
    pub input_tokens: i64,
    /// Tokens received.
    pub output_tokens: i64,
    /// From its begin to its end, ms.
    pub duration_ms: Option<i64>,
    /// When it was requested.
    pub created_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
}

fn read(row: &Row) -> Result<DiagnosisRow> {
    let mut r = row.reader();
    Ok(DiagnosisRow {
        id: DiagnosisId(r.int()?),
        subject: Subject::from_cluster(r.int()?, r.int()?),
        grounds: Grounds {
            sample: r.opt_int()?.map(ExecutionId),
            base_commit: r.opt_text()?,
            commits: r.opt_text()?.map_or_else(Vec::new, |all| all.split(' ').map(str::to_owned).collect()),
        },
        draft: r.opt_text()?,
        received: r.int()?,
        version: r.int()?,
        status: DiagnosisStatus::parse(&r.text()?).ok_or(StoreError::Damaged("a status of a diagnosis"))?,
        stage: r.text()?,
        is_forced: r.flag()?,
        note: r.opt_text()?,
        requested_by: r.opt_int()?.map(UserId),
        starts: r.int()?,
        context_hash: r.opt_bytes()?,
        provider: r.opt_text()?,
        model: r.opt_text()?,
        prompt_version: r.opt_int()?,
        category: r.opt_text()?,
        confidence_score: r.opt_int()?,
        severity: r.opt_text()?,
        summary: r.opt_text()?,
        details: r.opt_text()?,
        error_code: r.opt_text()?,
        error: r.opt_text()?,
        calls: r.int()?,
        input_tokens: r.int()?,
        output_tokens: r.int()?,
        duration_ms: r.opt_int()?,
        created_at: r.time()?,
        updated_at: r.time()?,
    })
}

/// A diagnosis that is requested.
#[derive(Debug, Clone, Default)]
pub struct NewDiagnosis {
    /// Whether an answer to the same evidence is not enough.
    pub is_forced: bool,
    /// What the person adds.
    pub note: Option<String>,
    /// Who requests it.
    pub requested_by: Option<UserId>,
    /// What it is to rest on.
    pub grounds: Grounds,
}

/// Stores a new version. The caller holds a lock under which no other version of the subject is created.
///
/// # Errors
/// [`StoreError::Database`], also when one runs already.
pub async fn create(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
    new: NewDiagnosis,
    now: Timestamp,
) -> Result<DiagnosisId> {
    let (cluster, execution) = subject.columns();
    let last = session.first(&LAST_VERSION, args![project, cluster, execution]).await?;
    let version = last.map_or(Ok(0), |row| row.reader().int())? + 1;
    let id = ids::allocate_one(session, Kind::Diagnosis).await?;
    ids::list(session, Listed::Diagnosis, project, &[id]).await?;
    let NewDiagnosis { is_forced, note, requested_by, grounds } = new;
    let Grounds { sample, base_commit, commits } = grounds;
    let commits = (!commits.is_empty()).then(|| commits.join(" "));
    let values = args![
        id,
        project,
        cluster,
        execution,
        version,
        is_forced,
        note,
        requested_by,
        sample.map(|sample| sample.get()),
        base_commit,
        commits,
        now
    ];
    session.execute(&INSERT, values).await?;
    Ok(DiagnosisId(id))
}

/// One version.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn get(session: &mut Session, project: ProjectId, id: DiagnosisId) -> Result<Option<DiagnosisRow>> {
    session.first(&BY_ID, args![project, id]).await?.as_ref().map(read).transpose()
}

/// One version, locked until the transaction ends.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn lock(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
) -> Result<Option<DiagnosisRow>> {
    session.first(&LOCK, args![project, id]).await?.as_ref().map(read).transpose()
}

/// The one that runs for a subject.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn running(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
) -> Result<Option<DiagnosisRow>> {
    let (cluster, execution) = subject.columns();
    session.first(&RUNNING, args![project, cluster, execution]).await?.as_ref().map(read).transpose()
}

/// Versions of a subject's diagnosis below `before`, newest first.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn versions(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
    before: Option<i64>,
    limit: i64,
) -> Result<Vec<DiagnosisRow>> {
    let (cluster, execution) = subject.columns();
    let values = args![project, cluster, execution, before.unwrap_or(i64::MAX), limit];
    session.all(&OF_SUBJECT, values).await?.iter().map(read).collect()
}

/// The newest version with an answer.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn newest_completed(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
) -> Result<Option<DiagnosisRow>> {
    let (cluster, execution) = subject.columns();
    session.first(&NEWEST_COMPLETED, args![project, cluster, execution]).await?.as_ref().map(read).transpose()
}

/// The newest answer that rests on the same evidence and model.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn by_hash(
    session: &mut Session,
    project: ProjectId,
    subject: Subject,
    hash: [u8; 32],
) -> Result<Option<DiagnosisRow>> {
    let (cluster, execution) = subject.columns();
    session.first(&BY_HASH, args![project, cluster, execution, hash]).await?.as_ref().map(read).transpose()
}

/// Counts a worker that begins one; returns whether it still runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn begin(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
    now: Timestamp,
) -> Result<bool> {
    Ok(session.execute(&BEGIN, args![project, id, now]).await? == 1)
}

/// What a diagnosis is at, and what it rests on.
#[derive(Debug, Clone)]
pub struct Progress<'p> {
    /// What its job is at.
    pub stage: &'static str,
    /// How the model is spoken to.
    pub provider: &'p str,
    /// Name of the model.
    pub model: &'p str,
    /// Version of the instructions.
    pub prompt_version: i64,
    /// What the model is sent.
    pub context_hash: [u8; 32],
}

/// Writes how far one is; returns whether it still runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save_progress(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
    progress: &Progress<'_>,
    now: Timestamp,
) -> Result<bool> {
    let Progress { stage, provider, model, prompt_version, context_hash } = progress;
    let values = args![
        project,
        id,
        *stage,
        (*provider).to_owned(),
        (*model).to_owned(),
        *prompt_version,
        *context_hash,
        now
    ];
    Ok(session.execute(&STAGE, values).await? == 1)
}

/// Writes what the model has written so far; returns whether the diagnosis still runs.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn save_draft(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
    draft: Option<String>,
    received: i64,
    now: Timestamp,
) -> Result<bool> {
    Ok(session.execute(&DRAFT, args![project, id, draft, received, now]).await? == 1)
}

/// Deletes the diagnoses of executions with ids above `after` up to `last`: those of a run that goes.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn delete_of_executions(
    session: &mut Session,
    project: ProjectId,
    after: i64,
    last: i64,
) -> Result<()> {
    for statement in [&UNLIST_OF_RUN, &DELETE_VOTES_OF_RUN, &DELETE_OF_RUN] {
        session.execute(statement, args![project, after, last]).await?;
    }
    Ok(())
}

/// Ends one with what `row` holds, unless it ended before; returns whether it did.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn finish(
    session: &mut Session,
    project: ProjectId,
    row: &DiagnosisRow,
    now: Timestamp,
) -> Result<bool> {
    let values = args![
        project,
        row.id,
        row.status.as_str(),
        row.category.clone(),
        row.confidence_score,
        row.severity.clone(),
        row.summary.clone(),
        row.details.clone(),
        row.error_code.clone(),
        row.error.clone(),
        row.calls,
        row.input_tokens,
        row.output_tokens,
        row.duration_ms,
        now
    ];
    Ok(session.execute(&FINISH, values).await? == 1)
}

/// A person's vote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vote {
    /// Who; 0 where there are no accounts.
    pub user: i64,
    /// Whether the diagnosis was right.
    pub is_up: bool,
    /// Why.
    pub note: Option<String>,
}

/// Votes on a version.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn votes(session: &mut Session, project: ProjectId, id: DiagnosisId) -> Result<Vec<Vote>> {
    let rows = session.all(&VOTES, args![project, id]).await?;
    let vote = |row: &Row| {
        let mut r = row.reader();
        Ok(Vote { user: r.int()?, is_up: r.int()? > 0, note: r.opt_text()? })
    };
    rows.iter().map(vote).collect()
}

/// Stores a person's vote in the place of an earlier one.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn vote(
    session: &mut Session,
    project: ProjectId,
    id: DiagnosisId,
    vote: Vote,
    now: Timestamp,
) -> Result<()> {
    let sign: i64 = if vote.is_up { 1 } else { -1 };
    session.execute(&VOTE, args![project, id, vote.user, sign, vote.note, now]).await?;
    Ok(())
}

/// Takes a person's vote back.
///
/// # Errors
/// [`StoreError::Database`].
pub async fn unvote(session: &mut Session, project: ProjectId, id: DiagnosisId, user: i64) -> Result<()> {
    session.execute(&UNVOTE, args![project, id, user]).await?;
    Ok(())
}
