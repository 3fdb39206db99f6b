//! Files that a client sends: what kind they are, and publishing their bytes.

use bytes::Bytes;
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::blobs::content::Content;
use callboard_store::blobs::{BlobRow, StagedBlob};
use callboard_store::files::{Dimensions, FileKind};

use crate::apply::attachments::PublishedFile;
use crate::{Context, Result};

/// A file received for one entry of a submission.
#[derive(Debug)]
pub struct IncomingFile {
    /// Index of the entry in the submitted list.
    pub entry: usize,
    /// What the client called it: a trace, or an attachment.
    pub hint: FileKindHint,
    /// Name the test gave it.
    pub name: String,
    /// Type the client told.
    pub content_type: String,
    /// Name of the client's file.
    pub original_name: Option<String>,
    /// The bytes.
    pub staged: StagedBlob,
}

/// How the client sent a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKindHint {
    /// As a trace.
    Trace,
    /// As an attachment.
    Attachment,
}

/// Bytes of a file that are read to recognise its type.
const HEAD_BYTES: u64 = 4096;

/// Puts the bytes of a file under their final key.
pub(crate) async fn publish(
    ctx: &Context,
    project: ProjectId,
    file: IncomingFile,
    now: Timestamp,
) -> Result<PublishedFile> {
    let content_type =
        recognise(&file.staged.head, file.original_name.as_deref().unwrap_or(&file.name), &file.content_type);
    let size = file.staged.size;
    let kind = match file.hint {
        FileKindHint::Trace => FileKind::Trace,
        FileKindHint::Attachment => {
            let name = file.original_name.as_deref().unwrap_or(&file.name);
            kind_of(&content_type, name, &file.content_type)
        }
    };
    let dimensions = (kind == FileKind::Screenshot).then(|| dimensions(&file.staged.head)).flatten();
    let blob = file.staged.publish(&ctx.store, project, &content_type, now).await?;
    Ok(PublishedFile {
        entry: file.entry,
        kind,
        name: file.name,
        content_type,
        original_name: file.original_name,
        size,
        dimensions,
        blob,
    })
}

/// A file whose bytes are content of the project already.
pub(crate) struct StoredFile {
    /// What the client called it: a trace, or an attachment.
    pub(crate) hint: FileKindHint,
    /// Name the test gave it.
    pub(crate) name: String,
    /// Type the client told.
    pub(crate) content_type: String,
    /// Name of the client's file.
    pub(crate) original_name: Option<String>,
    /// The content.
    pub(crate) blob: BlobRow,
}

/// [`publish`] for bytes that need not be moved; their first ones are read.
pub(crate) async fn publish_stored(
    ctx: &Context,
    project: ProjectId,
    file: StoredFile,
) -> Result<PublishedFile> {
    let StoredFile { hint, name, content_type: told, original_name, blob } = file;
    let head = match blob.size {
        0 => Bytes::new(),
        size => {
            let content = Content::load(&mut ctx.store.db().read().await?, project, blob.id).await?;
            content.read(&ctx.store, 0..size.min(HEAD_BYTES)).await?
        }
    };
    let file_name = original_name.as_deref().unwrap_or(&name);
    let content_type = recognise(&head, file_name, &told);
    let kind = match hint {
        FileKindHint::Trace => FileKind::Trace,
        FileKindHint::Attachment => kind_of(&content_type, file_name, &told),
    };
    let dimensions = (kind == FileKind::Screenshot).then(|| dimensions(&head)).flatten();
    let size = blob.size;
    Ok(PublishedFile { entry: 0, kind, name, content_type, original_name, size, dimensions, blob })
}

/// How wide and high a picture is by its head; `None` where the head does not
/// tell, or tells what no screen shows.
fn dimensions(head: &[u8]) -> Option<Dimensions> {
    let size = imagesize::blob_size(head).ok()?;
    let dimensions =
        Dimensions { width: i32::try_from(size.width).ok()?, height: i32::try_from(size.height).ok()? };
    (dimensions.width > 0 && dimensions.height > 0).then_some(dimensions)
}

/// Types that a browser may show inline, by file extension.
const BY_EXTENSION: [(&str, &str); 14] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("webm", "video/webm"),
    ("mp4", "video/mp4"),
    ("zip", "application/zip"),
    ("json", "application/json"),
    ("txt", "text/plain"),
    ("log", "text/plain"),
    ("md", "text/markdown"),
    ("html", "text/html"),
    ("svg", "image/svg+xml"),
];
/// The type of bytes of which nothing is known.
const UNKNOWN_TYPE: &str = "application/octet-stream";
/// Types that are text and therefore have no magic number.
const TEXT_TYPES: [&str; 5] =
    ["application/json", "text/plain", "text/markdown", "text/html", "image/svg+xml"];

/// The content type the server goes by: the magic number first; for text,
/// which has none, what the client or the extension says out of a short list;
/// else unknown bytes.
#[must_use]
pub fn recognise(head: &Bytes, name: &str, told: &str) -> String {
    if let Some(found) = infer::get(head) {
        let found = found.mime_type();
        // Markup is told apart from other text only by guessing; text rules apply to it.
        if !TEXT_TYPES.contains(&found) && found != "text/xml" {
            return found.to_owned();
        }
    }
    let told = told.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    if TEXT_TYPES.contains(&told.as_str()) {
        return told;
    }
    let text = by_extension(name).filter(|content_type| TEXT_TYPES.contains(content_type));
    text.unwrap_or(UNKNOWN_TYPE).to_owned()
}

/// Whether an attachment is a screenshot, a video or neither: by the type that
/// was recognised, and where nothing was, by what the client told of it, or the
/// extension when it told no type. A drawing is a page of its own.
#[must_use]
pub fn kind_of(recognised: &str, name: &str, told: &str) -> FileKind {
    let told = told.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let content_type = match (recognised, told.as_str()) {
        (UNKNOWN_TYPE, "" | UNKNOWN_TYPE) => by_extension(name).unwrap_or_default(),
        (UNKNOWN_TYPE, told) => told,
        (recognised, _) => recognised,
    };
    if content_type.starts_with("image/") && content_type != "image/svg+xml" {
        FileKind::Screenshot
    } else if content_type.starts_with("video/") {
        FileKind::Video
    } else {
        FileKind::Attachment
    }
}

fn by_extension(name: &str) -> Option<&'static str> {
    let (_, extension) = name.rsplit_once('.')?;
    let extension = extension.to_ascii_lowercase();
    BY_EXTENSION.iter().find(|(known, _)| *known == extension).map(|(_, content_type)| *content_type)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_before_names_do() {
        let png = Bytes::from_static(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR");
        assert_eq!(recognise(&png, "shot.html", "text/html"), "image/png");
        let text = Bytes::from_static(b"hello");
        assert_eq!(recognise(&text, "note", "text/plain; charset=utf-8"), "text/plain");
        assert_eq!(recognise(&text, "shot.png", "image/png"), "application/octet-stream");
        assert_eq!(recognise(&text, "data.json", ""), "application/json");
        assert_eq!(recognise(&text, "x.exe", "application/x-msdownload"), "application/octet-stream");
    }

    #[test]
    fn a_picture_is_one_by_its_bytes_or_by_what_is_told_of_it() {
        let kind = |head: &'static [u8], name: &str, told: &str| {
            kind_of(&recognise(&Bytes::from_static(head), name, told), name, told)
        };
        let png = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";
        assert_eq!(kind(png, "shot", ""), FileKind::Screenshot);
        assert_eq!(kind(b"\x01\x02", "shot", "image/x-portable-pixmap"), FileKind::Screenshot);
        assert_eq!(kind(b"\x01\x02", "shot.PNG", ""), FileKind::Screenshot);
        assert_eq!(kind(b"\x01\x02", "take", "video/quicktime"), FileKind::Video);
        assert_eq!(kind(b"\x01\x02", "shot.png", "application/x-other"), FileKind::Attachment);
        assert_eq!(kind(b"PK\x03\x04", "shot.png", "image/png"), FileKind::Attachment);
        assert_eq!(kind(b"<svg/>", "a.svg", "image/svg+xml"), FileKind::Attachment);
    }
}
