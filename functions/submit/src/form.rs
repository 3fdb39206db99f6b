//! The upload form, received part by part in any order. File parts go to the
//! object store as they come; nothing refers to them until the whole form has
//! been read and judged.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use callboard_auth::scope::{Authorized, Denied, Scope};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::ingest::{AttachmentMeta, Warnings, attachment_metas};
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Multipart, Part, Payload, Pulse};
use callboard_http::{ApiError, AppState};
use callboard_ingest::IncomingReport;
use callboard_query::{Context, QueryError};
use callboard_store::audit::Actor;
use callboard_store::blobs::{self, StagedBlob};
use callboard_store::{Reservation, StoreError};
use futures::StreamExt as _;
use http::StatusCode;
use serde_json::json;

/// Most bytes of all text fields together, the list of test cases aside.
const MAX_FIELDS_BYTES: u64 = 16 * 1024 * 1024;
/// What all files of a form together may hold in memory.
const MEMORY_BUDGET: usize = 16 * 1024 * 1024;
/// Fields that name a stored run.
const RUN_FIELDS: [&str; 2] = ["testRunId", "runId"];
/// The parts that files come in.
const FILE_PARTS: &str = "trace_<index>, attach_file_<index>, htmlReport and report_<type>, a type being at most 40 of A-Z, a-z, 0-9, - and _";
/// Most reports of one form: clients send one for each of their reporters.
const MAX_REPORTS: usize = 50;
/// Longest type word of a report.
const MAX_REPORT_TYPE_CHARS: usize = 40;

/// A form that has been read whole.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// Text fields by name.
    pub(crate) fields: HashMap<String, Vec<u8>>,
    /// The list of test cases, which may be large.
    pub(crate) test_cases: Option<Payload>,
    /// What the fields hold of the budget for bodies.
    pub(crate) reservation: Option<Reservation>,
    /// Files of test cases.
    pub(crate) files: Vec<CaseFile>,
    /// Reports.
    pub(crate) reports: Vec<IncomingReport>,
    /// What was left out while the form was read.
    pub(crate) found: Warnings,
}

/// A file of a test case.
#[derive(Debug)]
pub(crate) struct CaseFile {
    /// Index of the test case.
    pub(crate) case: usize,
    /// Position among the attachments of that test case; `None` for a trace.
    pub(crate) attachment: Option<usize>,
    /// Name of the client's file.
    pub(crate) file_name: Option<String>,
    /// Type the part claims.
    pub(crate) content_type: Option<String>,
    /// The bytes.
    pub(crate) staged: StagedBlob,
}

enum Kind {
    Trace(usize),
    Attachment(usize),
    Report(String),
    Text,
    Unknown,
}

/// What a part is, by its name.
fn kind_of(name: &str) -> Kind {
    let index = |prefix: &str| name.strip_prefix(prefix).and_then(|rest| rest.parse::<usize>().ok());
    if let Some(case) = index("trace_") {
        return Kind::Trace(case);
    }
    if let Some(case) = index("attach_file_") {
        return Kind::Attachment(case);
    }
    let is_text = matches!(
        name,
        "testRunId" | "runId" | "projectName" | "testRun" | "clientRunId" | "testCases" | "trace_hashes"
    ) || name.starts_with("attach_meta_")
        || name.starts_with("report_label_");
    if is_text {
        return Kind::Text;
    }
    if name == "htmlReport" {
        return Kind::Report("html".to_owned());
    }
    match name.strip_prefix("report_") {
        Some(word) if is_report_type(word) => Kind::Report(word.to_owned()),
        _ => Kind::Unknown,
    }
}

fn too_many_reports() -> ApiError {
    ApiError::new(
        StatusCode::PAYLOAD_TOO_LARGE,
        "too_many_items",
        format!(
            "An upload may carry at most {MAX_REPORTS} reports. Put the files of a report into one archive and send that \
             as one part, such as report_html."
        ),
    )
    .with_data(json!({ "limit": MAX_REPORTS }))
}

pub(crate) fn is_report_type(word: &str) -> bool {
    (1..=MAX_REPORT_TYPE_CHARS).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Where files go while the form is read.
pub(crate) struct Receiver<'a> {
    pub(crate) state: &'a AppState,
    pub(crate) ctx: &'a Context,
    pub(crate) scope: &'a Scope,
    pub(crate) actor: Actor,
    pub(crate) max_test_cases_bytes: u64,
    pub(crate) now: Timestamp,
}

impl Receiver<'_> {
    /// Reads the whole form. When it breaks off nothing of it is kept.
    ///
    /// # Errors
    /// 400 `invalid_multipart`, 413, or that of the store.
    pub(crate) async fn read(&self, mut multipart: Multipart) -> Result<Form, ApiError> {
        let mut form = Form::default();
        let read = self.read_into(&mut multipart, &mut form).await;
        form.reservation = Some(multipart.into_reservation());
        match read {
            Ok(()) => Ok(form),
            Err(error) => {
                form.discard(self.ctx).await;
                Err(error)
            }
        }
    }

    async fn read_into(&self, multipart: &mut Multipart, form: &mut Form) -> Result<(), ApiError> {
        let mut attachments: HashMap<usize, usize> = HashMap::new();
        let mut memory = MEMORY_BUDGET;
        let pulse = Pulse::due_at_once();
        let mut fields = MAX_FIELDS_BYTES;
        while let Some(mut part) = multipart.next_part().await? {
            match kind_of(part.name()) {
                Kind::Unknown if part.file_name().is_some_and(|name| !name.is_empty()) => {
                    form.found.ignore_part(part.name(), FILE_PARTS);
                }
                Kind::Unknown => {}
                Kind::Text => {
                    let name = part.name().to_owned();
                    if name == "testCases" {
                        form.test_cases = Some(part.payload(self.max_test_cases_bytes).await?);
                        continue;
                    }
                    let bytes = part.bytes(fields).await?;
                    fields -= bytes.len() as u64;
                    form.fields.insert(name, bytes);
                }
                Kind::Trace(case) => {
                    let file = self.file(&mut part, form, (case, None), &pulse, &mut memory).await?;
                    form.files.push(file);
                }
                Kind::Attachment(case) => {
                    let position = attachments.entry(case).or_default();
                    let file =
                        self.file(&mut part, form, (case, Some(*position)), &pulse, &mut memory).await?;
                    *position += 1;
                    form.files.push(file);
                }
                Kind::Report(_) if form.reports.len() >= MAX_REPORTS => return Err(too_many_reports()),
                Kind::Report(kind) => {
                    let file_name = part.file_name().unwrap_or("report").to_owned();
                    let staged = self.stage(&mut part, form, &pulse, &mut memory).await?;
                    form.reports.push(IncomingReport { kind, label: None, file_name, staged });
                }
            }
        }
        Ok(())
    }

    async fn file(
        &self,
        part: &mut Part<'_>,
        form: &Form,
        (case, attachment): (usize, Option<usize>),
        pulse: &Pulse,
        memory: &mut usize,
    ) -> Result<CaseFile, ApiError> {
        let file_name = part.file_name().map(str::to_owned);
        let content_type = part.content_type().map(str::to_owned);
        let staged = self.stage(part, form, pulse, memory).await?;
        Ok(CaseFile { case, attachment, file_name, content_type, staged })
    }

    async fn stage(
        &self,
        part: &mut Part<'_>,
        form: &Form,
        pulse: &Pulse,
        memory: &mut usize,
    ) -> Result<StagedBlob, ApiError> {
        let place = self.place(form).await?;
        let room = self.ctx.store.memory().room(*memory);
        let allowed = room.bytes();
        // The store sees a broken stream; what broke it is kept for the answer.
        let broken = std::sync::Mutex::new(None);
        let break_off = |error: ApiError| {
            if let Ok(mut broken) = broken.lock() {
                *broken = Some(error);
            }
            Err(std::io::Error::other("the form broke off"))
        };
        let received = AtomicUsize::new(0);
        let chunks = part.chunks().then(async |chunk| {
            let chunk = match chunk {
                Ok(chunk) => chunk,
                Err(error) => return break_off(error),
            };
            let received = received.fetch_add(chunk.len(), Ordering::Relaxed) + chunk.len();
            match &place {
                // What does not fit into memory any more would be stored.
                Place::Refused(denied) if received > allowed => return break_off((*denied).into()),
                Place::Run(project, run) if pulse.is_due() => {
                    let noted =
                        callboard_ingest::files_are_coming(self.ctx, *project, *run, self.state.now()).await;
                    if let Err(error) = noted {
                        tracing::debug!(%error, "a long upload could not be noted as a sign of life");
                    }
                }
                _ => {}
            }
            Ok(chunk)
        });
        let staged = blobs::stage(&self.ctx.store, place.project(), Box::pin(chunks), room, self.now).await;
        let broken = broken.into_inner().ok().flatten();
        match (staged, broken) {
            (Ok(staged), _) => {
                *memory -= staged.in_memory().min(*memory);
                Ok(staged)
            }
            (Err(StoreError::Upload(_)), Some(error)) => Err(error),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Where files belong, as far as the form has said it. A name that the
    /// caller may not use is no error yet: what follows may say that a stored
    /// run is meant, and then names do not count. Until it does, nothing of the
    /// form is stored.
    async fn place(&self, form: &Form) -> Result<Place, ApiError> {
        if let Some(run) = form.attached_run() {
            let (project, _) = callboard_query::runs::run_to_attach_to(self.ctx, self.scope, run).await?;
            return Ok(Place::Run(project, run));
        }
        let Some(name) = form.text("projectName") else { return Ok(Place::Unknown) };
        match callboard_ingest::known_project(self.ctx, self.scope, name.trim()).await {
            Ok(Some(project)) => Ok(Place::Project(project)),
            Ok(None) => Ok(Place::Unknown),
            Err(QueryError::Denied(denied)) => Ok(Place::Refused(denied)),
            Err(error) => Err(error.into()),
        }
    }
}

/// Where the files of a form belong.
enum Place {
    /// Nothing is known of it yet, or the project is yet to be made.
    Unknown,
    /// A project.
    Project(ProjectId),
    /// A stored run.
    Run(Authorized<ProjectId>, RunId),
    /// A project in which the caller may store nothing.
    Refused(Denied),
}

impl Place {
    /// The project that staged files are kept under; zero while it is unknown.
    fn project(&self) -> i64 {
        match self {
            Self::Project(project) => project.get(),
            Self::Run(project, _) => project.get().get(),
            Self::Unknown | Self::Refused(_) => 0,
        }
    }
}

impl Form {
    /// The stored run that the form is about. Anything that is no number of a
    /// run leads to a new one. `runId` is a later spelling.
    pub(crate) fn attached_run(&self) -> Option<RunId> {
        RUN_FIELDS.iter().find_map(|name| self.text(name).and_then(|id| RunId::parse(id.trim())))
    }

    /// A field that should name a stored run and does not. Clients send the
    /// words of an absent id, too; they mean nothing by it.
    pub(crate) fn misspelt_run(&self) -> Option<&'static str> {
        let is_told = |name: &&str| {
            let told = self.fields.get(*name).map(|id| id.trim_ascii());
            told.is_some_and(|id| !matches!(id, b"" | b"0" | b"null" | b"undefined"))
        };
        RUN_FIELDS.into_iter().find(is_told).filter(|_| self.attached_run().is_none())
    }

    /// A text field; `None` when it is missing or not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// What the client tells about the attachments of a test case; `None` when
    /// it tells something that is no list.
    pub(crate) fn attachment_metas(&self, case: usize) -> Option<Vec<AttachmentMeta>> {
        match self.fields.get(&format!("attach_meta_{case}")) {
            Some(told) if !told.is_empty() => std::str::from_utf8(told).ok().and_then(attachment_metas),
            _ => Some(Vec::new()),
        }
    }

    /// Lets go of everything received.
    pub(crate) async fn discard(self, ctx: &Context) {
        let staged = self.files.into_iter().map(|file| file.staged);
        for blob in staged.chain(self.reports.into_iter().map(|report| report.staged)) {
            if let Err(error) = blob.discard(&ctx.store).await {
                tracing::warn!(%error, "a staged file could not be removed; its ticket names it");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_told_apart_by_name() {
        assert!(matches!(kind_of("trace_12"), Kind::Trace(12)));
        assert!(matches!(kind_of("attach_file_0"), Kind::Attachment(0)));
        assert!(matches!(kind_of("trace_hashes"), Kind::Text));
        assert!(matches!(kind_of("clientRunId"), Kind::Text));
        assert!(matches!(kind_of("attach_meta_3"), Kind::Text));
        assert!(matches!(kind_of("report_label_html"), Kind::Text));
        assert!(matches!(kind_of("htmlReport"), Kind::Report(word) if word == "html"));
        assert!(matches!(kind_of("report_my-type"), Kind::Report(word) if word == "my-type"));
        for unknown in ["trace_x", "report_", "report_a/b", "other", ""] {
            assert!(matches!(kind_of(unknown), Kind::Unknown), "{unknown}");
        }
    }
}
