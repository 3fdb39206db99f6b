//! `upload`: large traces into the local store, and the memory they take.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use bytes::{BufMut as _, Bytes, BytesMut};
use callboard_store::Backend;
use callboard_test_support::Answer;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::Setting;
use crate::load::quantile_ms;
use crate::machine;
use crate::report::{Cell, Table, tenths, whole};
use crate::subject::{self, Subject};

const MIB: usize = 1024 * 1024;
const TRACE_BYTES: usize = 50 * MIB;
/// A trace just below the limit of an upload, sent once for its memory.
const LARGE_BYTES: usize = 490 * MIB;
const UPLOADS: usize = 8;
const BOUNDARY: &str = "callboard-bench-boundary";

/// Measures one engine.
///
/// # Errors
/// When the service does not start or refuses the upload.
pub async fn measure(setting: Setting, backend: Backend) -> Result<Table> {
    let subject = Subject::start(backend).await?;
    let before = machine::resident_bytes(subject.pid());
    machine::forget_peak(subject.pid());
    let mut times = Vec::new();
    for number in 0..setting.bounded(UPLOADS) {
        times.push(upload(setting, &subject, number, TRACE_BYTES).await?);
    }
    let extra =
        machine::peak_bytes(subject.pid()).zip(before).map(|(peak, before)| peak.saturating_sub(before));
    let title = format!("Upload of a 50 MB trace, {}", subject::engine(backend));
    let mut table = Table::new(title, &["what", "figure", "target"]);
    let megabytes = TRACE_BYTES as f64 / 1e6;
    table.row(vec!["median ms".into(), whole(quantile_ms(&times, 0.5)), "–".into()]);
    table.row(vec!["MB/s".into(), whole(megabytes * 1000.0 / quantile_ms(&times, 0.5)), "≥ 150".into()]);
    let extra = extra.map_or(Cell::None, |bytes| tenths(bytes as f64 / MIB as f64));
    table.row(vec!["extra memory at the peak, MB".into(), extra, "≤ 64".into()]);
    let before = machine::resident_bytes(subject.pid());
    machine::forget_peak(subject.pid());
    upload(setting, &subject, UPLOADS, LARGE_BYTES).await?;
    let extra =
        machine::peak_bytes(subject.pid()).zip(before).map(|(peak, before)| peak.saturating_sub(before));
    let extra = extra.map_or(Cell::None, |bytes| tenths(bytes as f64 / MIB as f64));
    table.row(vec!["the same for one of 500 MB".into(), extra, "≤ 64".into()]);
    table
        .note("Bytes that do not compress, a different file each time; hashed and stored in a local folder.");
    Ok(table)
}

async fn upload(setting: Setting, subject: &Subject, number: usize, bytes: usize) -> Result<Duration> {
    let body = form(setting, number, bytes);
    let request = subject
        .client()
        .request(Method::POST, "/api/test-runs/upload")
        .header(CONTENT_TYPE, format!("multipart/form-data; boundary={BOUNDARY}"))
        .body(body);
    let begun = Instant::now();
    Answer::send(request).await?.success().context("an upload")?;
    Ok(begun.elapsed())
}

fn form(setting: Setting, number: usize, bytes: usize) -> Bytes {
    let run = json!({"status": "failed", "startTime": setting.until.to_iso(), "duration": 1000});
    let cases = json!([{
        "title": "pays", "status": "failed", "duration": 900, "location": "tests/pay.spec.ts:9:5",
        "error": "Error: expected 200", "retries": 0,
    }]);
    let mut form = BytesMut::with_capacity(bytes + 2048);
    for (name, value) in [
        ("projectName", "uploads".to_owned()),
        ("testRun", run.to_string()),
        ("testCases", cases.to_string()),
    ] {
        let head =
            format!("--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
        form.put_slice(head.as_bytes());
    }
    let head = format!(
        "--{BOUNDARY}\r\nContent-Disposition: form-data; name=\"trace_0\"; filename=\"trace.zip\"\r\n\
         Content-Type: application/zip\r\n\r\nPK\u{3}\u{4}"
    );
    form.put_slice(head.as_bytes());
    let mut random = crate::generator::Random::new(setting.seed, number as u64);
    for _ in 0..bytes / 8 {
        form.put_u64(random.next());
    }
    form.put_slice(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    form.freeze()
}
