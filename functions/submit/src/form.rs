//! The upload form, received part by part in any order. File parts go to the
//! object store as they come; nothing refers to them until the whole form has
//! been read and judged.

use std::collections::HashMap;

use callboard_auth::scope::Scope;
use callboard_domain::text::read_repaired;
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::extract::{Multipart, Part};
use callboard_query::Context;
use callboard_query::ingest::{self, IncomingReport};
use callboard_store::StoreError;
use callboard_store::audit::Actor;
use callboard_store::blobs::{self, IN_MEMORY_BYTES, StagedBlob};
use futures::StreamExt as _;
use serde::Deserialize;

/// Most bytes of all text fields together, the list of test cases aside.
const MAX_FIELDS_BYTES: u64 = 16 * 1024 * 1024;
/// Most bytes of what is told about the attachments of one test case: a
/// hundred of them, generously.
const MAX_ATTACHMENT_META_BYTES: u64 = 256 * 1024;
/// What all files of a form together may hold in memory.
const MEMORY_BUDGET: usize = 16 * 1024 * 1024;
/// Longest type word of a report.
const MAX_REPORT_TYPE_CHARS: usize = 40;

/// A form that has been read whole.
#[derive(Debug, Default)]
pub(crate) struct Form {
    /// Text fields by name.
    pub(crate) fields: HashMap<String, Vec<u8>>,
    /// Files of test cases.
    pub(crate) files: Vec<CaseFile>,
    /// Reports.
    pub(crate) reports: Vec<IncomingReport>,
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

/// What the client tells about an attachment.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct AttachmentMeta {
    /// Name the test gave it.
    pub(crate) name: Option<String>,
    /// Type.
    pub(crate) content_type: Option<String>,
    /// Name of the client's file.
    pub(crate) original_name: Option<String>,
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
    let is_text =
        matches!(name, "testRunId" | "runId" | "projectName" | "testRun" | "testCases" | "trace_hashes")
            || name.starts_with("attach_meta_")
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

fn is_report_type(word: &str) -> bool {
    (1..=MAX_REPORT_TYPE_CHARS).contains(&word.len())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

/// Where files go while the form is read.
pub(crate) struct Receiver<'a> {
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
        match self.read_into(&mut multipart, &mut form).await {
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
        let mut fields = MAX_FIELDS_BYTES;
        while let Some(mut part) = multipart.next_part().await? {
            match kind_of(part.name()) {
                Kind::Unknown => {}
                Kind::Text => {
                    let name = part.name().to_owned();
                    let bytes = if name == "testCases" {
                        part.bytes(self.max_test_cases_bytes).await?
                    } else {
                        let is_meta = name.starts_with("attach_meta_");
                        let limit = if is_meta { fields.min(MAX_ATTACHMENT_META_BYTES) } else { fields };
                        let bytes = part.bytes(limit).await?;
                        fields -= bytes.len() as u64;
                        bytes
                    };
                    form.fields.insert(name, bytes);
                }
                Kind::Trace(case) => {
                    let file = self.file(&mut part, form, case, None, &mut memory).await?;
                    form.files.push(file);
                }
                Kind::Attachment(case) => {
                    let position = attachments.entry(case).or_default();
                    let file = self.file(&mut part, form, case, Some(*position), &mut memory).await?;
                    *position += 1;
                    form.files.push(file);
                }
                Kind::Report(kind) => {
                    let file_name = part.file_name().unwrap_or("report").to_owned();
                    let staged = self.stage(&mut part, form, &mut memory).await?;
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
        case: usize,
        attachment: Option<usize>,
        memory: &mut usize,
    ) -> Result<CaseFile, ApiError> {
        let file_name = part.file_name().map(str::to_owned);
        let content_type = part.content_type().map(str::to_owned);
        let staged = self.stage(part, form, memory).await?;
        Ok(CaseFile { case, attachment, file_name, content_type, staged })
    }

    async fn stage(
        &self,
        part: &mut Part<'_>,
        form: &Form,
        memory: &mut usize,
    ) -> Result<StagedBlob, ApiError> {
        let project = match form.text("projectName") {
            Some(name) => ingest::known_project(self.ctx, self.scope, name.trim()).await?,
            None => None,
        };
        // The store sees a broken stream; what broke it is kept for the answer.
        let mut broken = None;
        let chunks = part.chunks().map(|chunk| {
            chunk.map_err(|error| {
                broken = Some(error);
                std::io::Error::other("the form broke off")
            })
        });
        let allowed = IN_MEMORY_BYTES.min(*memory);
        let project = project.map_or(0, |project| project.get());
        let staged = blobs::stage(&self.ctx.store, project, Box::pin(chunks), allowed, self.now).await;
        match (staged, broken) {
            (Ok(staged), _) => {
                *memory -= staged.in_memory().min(*memory);
                Ok(staged)
            }
            (Err(StoreError::Upload(_)), Some(error)) => Err(error),
            (Err(error), _) => Err(error.into()),
        }
    }
}

impl Form {
    /// A text field; `None` when it is missing or not UTF-8.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(|bytes| std::str::from_utf8(bytes).ok())
    }

    /// What the client tells about the attachments of a test case; a broken
    /// list counts as none.
    pub(crate) fn attachment_metas(&self, case: usize) -> Vec<AttachmentMeta> {
        let text = self.text(&format!("attach_meta_{case}"));
        text.and_then(read_repaired).unwrap_or_default()
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
        assert!(matches!(kind_of("attach_meta_3"), Kind::Text));
        assert!(matches!(kind_of("report_label_html"), Kind::Text));
        assert!(matches!(kind_of("htmlReport"), Kind::Report(word) if word == "html"));
        assert!(matches!(kind_of("report_my-type"), Kind::Report(word) if word == "my-type"));
        for unknown in ["trace_x", "report_", "report_a/b", "other", ""] {
            assert!(matches!(kind_of(unknown), Kind::Unknown), "{unknown}");
        }
    }
}
