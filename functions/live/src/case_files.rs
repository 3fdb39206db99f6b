//! Files of a test of a run that goes on, as a form. File parts go to the
//! object store as they come, in any order; they are linked once the whole
//! form has been read and judged.

use std::collections::HashMap;

use axum::Json;
use axum::extract::State;
use callboard_domain::ids::RunId;
use callboard_domain::ingest::{CaseRef, Warnings, attachment_metas, parse_object};
use callboard_http::extract::{Multipart, Part, Path, Pulse};
use callboard_http::{ApiError, AppState, Site};
use callboard_ingest::{CaseFiles, FileKindHint, IncomingFile};
use callboard_query::{Context, evidence_loss};
use callboard_store::blobs::{self, StagedBlob};
use callboard_store::{Reservation, StoreError};
use futures::StreamExt as _;
use serde::Serialize;
use utoipa::ToSchema;

use callboard_http::ingest_warnings::{WarningView, warnings};

/// Most bytes of all text fields together.
const MAX_FIELDS_BYTES: u64 = 16 * 1024 * 1024;
/// What all files of a form together may hold in memory.
const MEMORY_BUDGET: usize = 16 * 1024 * 1024;
/// Longest name of an attachment, in characters.
const MAX_NAME_CHARS: usize = 500;

/// Files that were linked.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CaseFilesAnswer {
    /// Always true.
    success: bool,
    /// The execution, under the name older clients know.
    #[schema(example = 44_040_193)]
    test_runs_case_id: i64,
    /// The execution.
    #[schema(example = 44_040_193)]
    execution_id: i64,
    /// Traces that are new.
    traces: i64,
    /// Attachments that are new.
    attachments: i64,
    /// What was read leniently, at most 20 entries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    warnings: Option<Vec<WarningView>>,
}

/// Takes the trace and the attachments of one attempt of a test.
///
/// Sending the same files again adds nothing.
#[utoipa::path(
    post,
    path = "/api/test-runs/{id}/case-files",
    tag = "live",
    params(("id" = i64, Path, description = "Run")),
    request_body(
        content = Object,
        content_type = "multipart/form-data",
        description = "streamToken and testCase (JSON with title, location, retries, suitePath) as fields; trace_hash; \
                       trace, attach_file (repeated) with attach_meta (a JSON list in the same order)"
    ),
    responses(
        (status = 200, body = CaseFilesAnswer),
        (status = 404, description = "`case_not_found`: the attempt is not stored yet"),
        (status = 409, description = "`run_finished`, `run_cancelled`"),
        (status = 422, description = "`blob_missing`: the trace was only named, send it; `hash_mismatch`")
    )
)]
pub(crate) async fn case_files(
    State(state): State<AppState>,
    site: Site,
    Path(run): Path<RunId>,
    multipart: Multipart,
) -> Result<Json<CaseFilesAnswer>, ApiError> {
    let ctx = state.context(&site);
    let mut form = Form::default();
    let receiver = Receiver { state: &state, ctx: &ctx, run };
    let read = receiver.read(multipart, &mut form).await;
    let mut found = std::mem::take(&mut form.found);
    let judged = read.and_then(|()| form.judge(&mut found));
    let (token, case) = match judged {
        Ok(judged) => judged,
        Err(error) => {
            form.discard(&ctx).await;
            return Err(error);
        }
    };
    let files = form.into_case_files(case, &mut found);
    let taken = callboard_ingest::case_files(&ctx, run, token.as_deref(), files, state.now()).await?;
    if taken.surplus > 0 {
        found.add("file_ignored", None, || {
            format!("{} attachments were ignored: the attempt has as many as it may have.", taken.surplus)
        });
    }
    evidence_loss::report(&ctx, run, &found, state.now()).await?;
    Ok(Json(CaseFilesAnswer {
        success: true,
        test_runs_case_id: taken.execution.get(),
        execution_id: taken.execution.get(),
        traces: taken.traces,
        attachments: taken.attachments,
        warnings: warnings(&found),
    }))
}

struct Received {
    file_name: Option<String>,
    content_type: Option<String>,
    staged: StagedBlob,
}

#[derive(Default)]
struct Form {
    /// What the fields hold of the budget for bodies.
    reservation: Option<Reservation>,
    fields: HashMap<String, Vec<u8>>,
    trace: Option<Received>,
    attachments: Vec<Received>,
    /// What was left out while the form was read.
    found: Warnings,
}

struct Receiver<'a> {
    state: &'a AppState,
    ctx: &'a Context,
    run: RunId,
}

impl Receiver<'_> {
    async fn read(&self, mut multipart: Multipart, form: &mut Form) -> Result<(), ApiError> {
        let read = self.read_parts(&mut multipart, form).await;
        form.reservation = Some(multipart.into_reservation());
        read
    }

    async fn read_parts(&self, multipart: &mut Multipart, form: &mut Form) -> Result<(), ApiError> {
        let mut memory = MEMORY_BUDGET;
        let mut fields = MAX_FIELDS_BYTES;
        while let Some(mut part) = multipart.next_part().await? {
            match part.name() {
                "streamToken" | "testCase" | "trace_hash" | "attach_meta" => {
                    let name = part.name().to_owned();
                    let bytes = part.bytes(fields).await?;
                    fields -= bytes.len() as u64;
                    form.fields.insert(name, bytes);
                }
                "trace" | "attach_file" => {
                    // A client that names itself first is turned away before it sends megabytes.
                    let token = form.text("streamToken").map(str::to_owned);
                    if token.is_some() {
                        callboard_ingest::may_feed(self.ctx, self.run, token.as_deref(), self.state.now())
                            .await?;
                    }
                    let is_trace = part.name() == "trace";
                    let received = self.stage(&mut part, token.as_deref(), &mut memory).await?;
                    if !is_trace {
                        form.attachments.push(received);
                    } else if let Some(earlier) = form.trace.replace(received) {
                        earlier.staged.discard(&self.ctx.store).await?;
                    }
                }
                name if part.file_name().is_some_and(|file| !file.is_empty()) => {
                    form.found.ignore_part(name, "trace and attach_file");
                }
                _ => {}
            }
        }
        Ok(())
    }

    async fn stage(
        &self,
        part: &mut Part<'_>,
        token: Option<&str>,
        memory: &mut usize,
    ) -> Result<Received, ApiError> {
        let file_name = part.file_name().map(str::to_owned);
        let content_type = part.content_type().map(str::to_owned);
        let now = self.state.now();
        // The store sees a broken stream; what broke it is kept for the answer.
        let broken = std::sync::Mutex::new(None);
        let pulse = Pulse::due_later();
        let chunks = part.chunks().then(async |chunk| match chunk {
            Ok(chunk) => {
                if let Some(token) = token
                    && pulse.is_due()
                    && let Err(error) =
                        callboard_ingest::is_sending(self.ctx, self.run, token, self.state.now()).await
                {
                    tracing::debug!(%error, "a long upload could not be noted as a sign of life");
                }
                Ok(chunk)
            }
            Err(error) => {
                if let Ok(mut broken) = broken.lock() {
                    *broken = Some(error);
                }
                Err(std::io::Error::other("the form broke off"))
            }
        });
        let room = self.ctx.store.memory().room(*memory);
        let staged = blobs::stage(&self.ctx.store, 0, Box::pin(chunks), room, now).await;
        let broken = broken.into_inner().ok().flatten();
        match (staged, broken) {
            (Ok(staged), _) => {
                *memory -= staged.in_memory().min(*memory);
                Ok(Received { file_name, content_type, staged })
            }
            (Err(StoreError::Upload(_)), Some(error)) => Err(error),
            (Err(error), _) => Err(error.into()),
        }
    }
}

impl Form {
    fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok()).map(str::trim)
    }

    /// The token and which attempt is meant.
    fn judge(&self, found: &mut Warnings) -> Result<(Option<String>, CaseRef), ApiError> {
        let case = self.fields.get("testCase").ok_or_else(|| ApiError::missing_fields(&["testCase"]))?;
        let case = CaseRef::parse(parse_object(case.clone())?, found)?;
        Ok((self.text("streamToken").map(str::to_owned), case))
    }

    fn into_case_files(self, case: CaseRef, found: &mut Warnings) -> CaseFiles {
        let told_hash = self.text("trace_hash").filter(|text| !text.is_empty());
        let trace_hash = told_hash.and_then(|text| hex::decode(text).ok()?.try_into().ok());
        if told_hash.is_some() && trace_hash.is_none() {
            found.add("field_dropped", None, || {
                "trace_hash must be a SHA-256 in hex; the field was left out.".to_owned()
            });
        }
        let told_metas = self.text("attach_meta").filter(|text| !text.is_empty());
        let metas = told_metas.and_then(attachment_metas);
        if told_metas.is_some() && metas.is_none() {
            found.add("field_dropped", None, || {
                "attach_meta must be a JSON list; the field was left out.".to_owned()
            });
        }
        let metas = metas.unwrap_or_default();
        let trace = self.trace.map(|received| IncomingFile {
            entry: 0,
            hint: FileKindHint::Trace,
            name: "trace".to_owned(),
            content_type: "application/zip".to_owned(),
            original_name: received.file_name.map(shortened),
            staged: received.staged,
        });
        let attachments = self.attachments.into_iter().enumerate().map(|(position, received)| {
            let meta = metas.get(position).cloned().unwrap_or_default();
            IncomingFile {
                entry: 0,
                hint: FileKindHint::Attachment,
                name: shortened(meta.name.unwrap_or_else(|| "attachment".to_owned())),
                content_type: meta.content_type.or(received.content_type).unwrap_or_default(),
                original_name: meta.original_name.or(received.file_name).map(shortened),
                staged: received.staged,
            }
        });
        CaseFiles { case, trace_hash, trace, attachments: attachments.collect() }
    }

    /// Lets go of everything received.
    async fn discard(self, ctx: &Context) {
        for file in self.trace.into_iter().chain(self.attachments) {
            if let Err(error) = file.staged.discard(&ctx.store).await {
                tracing::warn!(%error, "a staged file could not be removed; its ticket names it");
            }
        }
    }
}

fn shortened(text: String) -> String {
    text.chars().take(MAX_NAME_CHARS).collect()
}
