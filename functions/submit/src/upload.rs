//! A run with files, or reports of a run that is stored already.

use std::collections::{BTreeMap, HashMap, HashSet};

use axum::Json;
use axum::extract::State;
use callboard_auth::scope::{Authorized, Scope};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::ingest::{
    AttachmentMeta, Caps, MAX_ATTACHMENTS, Need, RunFields, Warnings, parse_object, parse_test_cases,
    read_stored_cases,
};
use callboard_domain::status::RunStatus;
use callboard_domain::text::{clean, read_repaired};
use callboard_domain::time::Timestamp;
use callboard_http::extract::{Caller, Multipart, Payload, Visit, read_payload};
use callboard_http::ingest_warnings::warnings;
use callboard_http::{ApiError, AppState, Site};
use callboard_ingest::{
    AtOnce, Entries, FileKindHint, IncomingFile, IncomingReport, NamedTrace, ReportOutcome, Submission,
};
use callboard_query::{Context, QueryError, evidence_loss};
use callboard_store::Reservation;
use serde_json::Value;

use crate::answer::{ReportView, UploadAnswer};
use crate::form::{CaseFile, Form, Receiver};

/// Longest name of an attachment, in characters.
const MAX_NAME_CHARS: usize = 500;

/// Stores a run with its traces, attachments and reports; with `testRunId`,
/// stores reports of a run that exists.
///
/// The parts may come in any order and are streamed to the object store. A
/// report archive with an unsafe path is refused with a warning; the run is
/// stored all the same. So it is without a trace that `trace_hashes` only
/// names, when it is not stored. A report with thousands of files is looked
/// through immediately and unpacked by a job: it opens some seconds after the
/// answer.
///
/// # Errors
/// 503 `report_in_progress` with `Retry-After` where another call is still
/// storing the same report: sent again, it is known.
#[utoipa::path(
    post,
    path = "/api/test-runs/upload",
    tag = "submit",
    request_body(
        content = Object,
        content_type = "multipart/form-data",
        description = "projectName, testRun and testCases as fields; trace_<i>, attach_file_<i> with attach_meta_<i>, \
                       trace_hashes, report_<type> with report_label_<type>; testRunId for reports of an existing run, with the \
                       clientRunId of the client whose reports they are"
    ),
    responses(
        (status = 200, body = UploadAnswer),
        (status = 400, description = "`invalid_shard`"),
        (status = 422, description = "`hash_mismatch`: a part is not what its SHA-256 says")
    )
)]
pub(crate) async fn upload_run(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    multipart: Multipart,
) -> Result<Json<UploadAnswer>, ApiError> {
    let ctx = state.context(&site);
    let receiver = Receiver {
        state: &state,
        ctx: &ctx,
        scope: caller.scope(),
        actor: visit.actor(),
        max_test_cases_bytes: state.config().max_submit_bytes,
        now: state.now(),
    };
    let mut form = receiver.read(multipart).await?;
    let upload = match judge(&receiver, &mut form, &state.config().caps).await {
        Ok(upload) => upload,
        Err(error) => {
            form.discard(&ctx).await;
            return Err(error);
        }
    };
    let began = receiver.now;
    let taking = Taking { state, ctx, scope: caller.scope().clone(), began };
    // A client that hangs up sends the same again: it is to find it stored, or on its way.
    let taken = tokio::spawn(async move { Box::pin(taking.take(upload, form)).await });
    taken.await.map_err(ApiError::internal)?.map(Json)
}

/// What takes in a form that has been judged, whether its client stays or not.
struct Taking {
    state: AppState,
    ctx: Context,
    scope: Scope,
    began: Timestamp,
}

impl Taking {
    async fn take(self, upload: Upload, form: Form) -> Result<UploadAnswer, ApiError> {
        let Form { files, reports, fields: labels, reservation, mut found, .. } = form;
        let labels = Form { fields: labels, ..Form::default() };
        let (project, run, status, reports, more) = match upload {
            Upload::Attach { project, run } => {
                drop(reservation);
                // Files of test cases come with their run; here only reports count.
                for file in files {
                    file.staged.discard(&self.ctx.store).await?;
                }
                let mut found = Warnings::default();
                let of = match labels.text("clientRunId").map(str::trim) {
                    Some(client) => {
                        callboard_ingest::sender_of_files(&self.ctx, project, run, client).await?
                    }
                    None => None,
                };
                let is_alone = reports.is_empty();
                let reports = self.attach(project, run, reports, &labels, of.is_none(), &mut found).await?;
                // Who says whose files these are ends one wait, however often it is said.
                let status = if is_alone || of.is_some() {
                    callboard_ingest::files_have_come(&self.ctx, project, run, of, self.state.now()).await?
                } else {
                    callboard_query::runs::run_to_attach_to(&self.ctx, &self.scope, run).await?.1
                };
                (project, run, status, reports, found)
            }
            Upload::NewRun { project, fields, entries, named, mut found } => {
                fields.warn_of_start_ahead(self.began, &mut found);
                let whole = Whole { fields: *fields, entries, files, named, held: reservation };
                let (run, status, more) = store(&self.ctx, project, whole, &labels, self.began).await?;
                found.extend(more);
                let reports = self.attach(project, run, reports, &labels, false, &mut found).await?;
                (project, run, status, reports, found)
            }
        };
        found.extend(more);
        evidence_loss::report(&self.ctx, run, &found, self.began).await?;
        Ok(UploadAnswer {
            success: true,
            test_run_id: run.get(),
            run_id: run.get(),
            project_id: project.get().get(),
            reports,
            status,
            run_url: self.ctx.links.run(run.get()),
            warnings: warnings(&found),
        })
    }

    /// Stores reports of a run. When the run `waits` for them and nobody says for
    /// whose, its wait ends with the last one that it did not have: those it had are
    /// of an earlier call, which ended its client's wait.
    async fn attach(
        &self,
        project: Authorized<ProjectId>,
        run: RunId,
        reports: Vec<IncomingReport>,
        labels: &Form,
        waits: bool,
        found: &mut Warnings,
    ) -> Result<Vec<ReportView>, ApiError> {
        let mut last_new = None;
        for (position, report) in reports.iter().enumerate().filter(|_| waits) {
            if !report.is_stored(&self.ctx, project, run).await? {
                last_new = Some(position);
            }
        }
        let mut stored = Vec::with_capacity(reports.len());
        let mut at_once = AtOnce::default();
        let mut reports = reports.into_iter().enumerate();
        while let Some((position, mut report)) = reports.next() {
            report.label =
                labels.text(&format!("report_label_{}", report.kind)).map(|label| clean(label).into_owned());
            let (ends_wait, now) = (last_new == Some(position), self.state.now());
            let attached = callboard_ingest::attach_report(
                &self.ctx,
                project,
                run,
                report,
                &mut at_once,
                ends_wait,
                now,
            )
            .await?;
            match attached {
                ReportOutcome::Stored(report) | ReportOutcome::Known(report) => {
                    stored.push(ReportView::from(report))
                }
                ReportOutcome::Refused(why) => found.add("unsafe_report", None, || why),
                ReportOutcome::InProgress => {
                    let rest =
                        Form { reports: reports.map(|(_, report)| report).collect(), ..Form::default() };
                    rest.discard(&self.ctx).await;
                    return Err(QueryError::ReportInProgress.into());
                }
            }
        }
        Ok(stored)
    }
}

enum Upload {
    Attach {
        project: Authorized<ProjectId>,
        run: RunId,
    },
    NewRun {
        project: Authorized<ProjectId>,
        fields: Box<RunFields>,
        entries: Entries,
        named: Vec<NamedTrace>,
        found: Warnings,
    },
}

/// Everything that can be wrong with a form is found before anything of it is
/// stored.
async fn judge(receiver: &Receiver<'_>, form: &mut Form, caps: &Caps) -> Result<Upload, ApiError> {
    let missing: Vec<&str> =
        ["projectName", "testRun"].into_iter().filter(|name| !form.fields.contains_key(*name)).collect();
    if !missing.is_empty() {
        return Err(ApiError::missing_fields(&missing));
    }
    if let Some(id) = form.attached_run() {
        let (project, _) = callboard_query::runs::run_to_attach_to(receiver.ctx, receiver.scope, id).await?;
        return Ok(Upload::Attach { project, run: id });
    }
    let name = form
        .text("projectName")
        .ok_or_else(|| ApiError::bad_request("invalid_project_name", "projectName must be valid UTF-8."))?;
    let name = callboard_domain::ingest::project_name(name)?;
    let run = form.fields.remove("testRun").unwrap_or_default();
    let reservation =
        form.reservation.as_mut().ok_or_else(|| ApiError::internal("a form without a budget"))?;
    let read = |run: Payload| {
        let mut run = parse_object(run.into_bytes().map_err(ApiError::internal)?)?;
        Ok::<_, ApiError>(RunFields::parse(&mut run, Need::UploadNewRun)?)
    };
    let (fields, mut found) = read_payload(Payload::Memory(run), reservation, read).await?;
    let mut entries = Entries::default();
    if let Some(cases) = form.test_cases.take() {
        let caps = caps.clone();
        let warnings;
        (entries, warnings) = read_payload(cases, reservation, move |cases| parse(cases, &caps)).await?;
        found.extend(warnings);
    }
    if let Some(field) = form.misspelt_run() {
        found.add("field_dropped", None, || {
            format!("{field} must be the number of a run, e.g. 41; the field was left out.")
        });
    }
    let named = named_traces(form, &mut found)?;
    let description = fields.project_description.as_deref();
    let Receiver { ctx, scope, actor, now, .. } = *receiver;
    let project = callboard_ingest::open_project(ctx, scope, &name, description, actor, now).await?;
    Ok(Upload::NewRun { project, fields: Box::new(fields), entries, named, found })
}

/// The list of test cases; one without any text is none.
fn parse(cases: Payload, caps: &Caps) -> Result<(Entries, Warnings), ApiError> {
    match cases {
        Payload::Memory(bytes) if bytes.is_empty() => Ok((Entries::default(), Warnings::default())),
        Payload::Memory(bytes) => {
            let cases = parse_test_cases(bytes, caps)?;
            Ok((Entries::Parsed(cases.entries), cases.warnings))
        }
        Payload::File(file) => {
            let (cases, warnings) = read_stored_cases(file, caps)?;
            Ok((Entries::Stored(cases), warnings))
        }
    }
}

/// Compares what the client says its traces hash to with what arrived; answers
/// the traces that it named and did not send.
fn named_traces(form: &Form, found: &mut Warnings) -> Result<Vec<NamedTrace>, ApiError> {
    let mut dropped = |index| {
        found.add("field_dropped", index, || {
            "trace_hashes must be an object of a SHA-256 in hex by the index of its test case; what is not was left out."
                .to_owned()
        });
    };
    let Some(told) = form.fields.get("trace_hashes").filter(|told| !told.is_empty()) else {
        return Ok(Vec::new());
    };
    let told = std::str::from_utf8(told).ok().and_then(read_repaired::<BTreeMap<String, Value>>);
    if told.is_none() {
        dropped(None);
    }
    let mut sent: HashMap<usize, Vec<[u8; 32]>> = HashMap::new();
    for file in form.files.iter().filter(|file| file.attachment.is_none()) {
        sent.entry(file.case).or_default().push(file.staged.sha256);
    }
    let mut named = Vec::new();
    for (index, hash) in told.unwrap_or_default() {
        // Clients send null where a trace has no hash.
        if hash.is_null() {
            continue;
        }
        let Ok(entry) = index.parse::<usize>() else {
            dropped(None);
            continue;
        };
        let sha256 = hash.as_str().and_then(|hash| hex::decode(hash).ok()?.try_into().ok());
        match (sha256, sent.get(&entry)) {
            (None, _) => dropped(Some(entry)),
            (Some(sha256), None) => named.push(NamedTrace { entry, sha256 }),
            (Some(sha256), Some(sent)) if sent.iter().any(|sent| *sent != sha256) => {
                let part = format!("trace_{entry}");
                return Err(QueryError::HashMismatch { part }.into());
            }
            (Some(_), Some(_)) => {}
        }
    }
    Ok(named)
}

/// A run to be stored.
struct Whole {
    fields: RunFields,
    entries: Entries,
    files: Vec<CaseFile>,
    named: Vec<NamedTrace>,
    held: Option<Reservation>,
}

async fn store(
    ctx: &Context,
    project: Authorized<ProjectId>,
    whole: Whole,
    form: &Form,
    now: Timestamp,
) -> Result<(RunId, RunStatus, Warnings), ApiError> {
    let Whole { fields, entries, files: received, mut named, held } = whole;
    let mut found = Warnings::default();
    let known: HashSet<usize> = entries.indices().collect();
    let ignored = |found: &mut Warnings, case| {
        found.add("file_ignored", Some(case), || {
            format!(
                "A file for test case {case} was ignored: there is no such test case, or it has too many."
            )
        });
    };
    let mut files = Vec::with_capacity(received.len());
    let mut metas: HashMap<usize, Vec<AttachmentMeta>> = HashMap::new();
    for file in received {
        let case = file.case;
        if !known.contains(&case) || file.attachment.is_some_and(|position| position >= MAX_ATTACHMENTS) {
            ignored(&mut found, case);
            file.staged.discard(&ctx.store).await?;
            continue;
        }
        let metas = metas.entry(case).or_insert_with(|| {
            form.attachment_metas(case).unwrap_or_else(|| {
                found.add("field_dropped", Some(case), || {
                    format!("attach_meta_{case} must be a JSON list; the field was left out.")
                });
                Vec::new()
            })
        });
        files.push(incoming(file, metas));
    }
    named.retain(|trace| {
        let fits = known.contains(&trace.entry);
        if !fits {
            ignored(&mut found, trace.entry);
        }
        fits
    });
    let submission = Submission { fields, entries, files, named_traces: named, held };
    let submitted = callboard_ingest::submit(ctx, project, submission, now).await?;
    for case in &submitted.missing_traces {
        found.add("blob_missing", Some(*case), || {
            format!("The trace of test case {case} was only named and is not stored; the run lacks it.")
        });
    }
    Ok((submitted.run, submitted.status, found))
}

fn incoming(file: CaseFile, metas: &[AttachmentMeta]) -> IncomingFile {
    let shortened = |text: String| text.chars().take(MAX_NAME_CHARS).collect::<String>();
    let CaseFile { case, attachment, file_name, content_type, staged } = file;
    let Some(position) = attachment else {
        return IncomingFile {
            entry: case,
            hint: FileKindHint::Trace,
            name: "trace".to_owned(),
            content_type: "application/zip".to_owned(),
            original_name: file_name.map(shortened),
            staged,
        };
    };
    let meta = metas.get(position).cloned().unwrap_or_default();
    IncomingFile {
        entry: case,
        hint: FileKindHint::Attachment,
        name: shortened(meta.name.unwrap_or_else(|| "attachment".to_owned())),
        content_type: meta.content_type.or(content_type).unwrap_or_default(),
        original_name: meta.original_name.or(file_name).map(shortened),
        staged,
    }
}
