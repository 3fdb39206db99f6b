//! What reporters upload: multipart forms, and archives of HTML reports.

use std::io::Write as _;

use anyhow::Result;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

const BOUNDARY: &str = "callboard-test-boundary";

/// A multipart form, part by part.
#[derive(Debug, Clone, Default)]
pub struct Form(Vec<u8>);

impl Form {
    /// A form without parts.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a field.
    #[must_use]
    pub fn field(self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.part(&format!("name=\"{name}\""), value.as_ref())
    }

    /// Adds a file.
    #[must_use]
    pub fn file(self, name: &str, file_name: &str, content_type: &str, bytes: &[u8]) -> Self {
        let head = format!("name=\"{name}\"; filename=\"{file_name}\"\r\ncontent-type: {content_type}");
        self.part(&head, bytes)
    }

    fn part(mut self, head: &str, bytes: &[u8]) -> Self {
        let head = format!("--{BOUNDARY}\r\ncontent-disposition: form-data; {head}\r\n\r\n");
        self.0.extend_from_slice(head.as_bytes());
        self.0.extend_from_slice(bytes);
        self.0.extend_from_slice(b"\r\n");
        self
    }

    /// Its content type, with the boundary.
    #[must_use]
    pub fn content_type() -> String {
        format!("multipart/form-data; boundary={BOUNDARY}")
    }

    /// The body.
    #[must_use]
    pub fn into_body(mut self) -> Bytes {
        self.0.extend_from_slice(format!("--{BOUNDARY}--\r\n").as_bytes());
        self.0.into()
    }
}

/// The archive reporters send of a report's folder: compressed records of
/// path and content.
///
/// # Errors
/// When an entry is longer than the format can say.
pub fn report_archive(entries: &[(&str, &[u8])]) -> Result<Vec<u8>> {
    let mut archive = GzEncoder::new(Vec::new(), Compression::fast());
    for (path, content) in entries {
        for field in [path.as_bytes(), content] {
            archive.write_all(&u32::try_from(field.len())?.to_le_bytes())?;
            archive.write_all(field)?;
        }
    }
    Ok(archive.finish()?)
}
