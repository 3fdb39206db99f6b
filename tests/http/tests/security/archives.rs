//! Archives that somebody made to be unpacked: names that lead out, sizes that
//! lie, and more bytes than there is room for. A trace is stored as it came
//! and read with care; a report is refused with a warning.

use std::io::Write as _;
use std::path::Path;

use callboard_http::Clock;
use callboard_store::Backend;
use callboard_test_support::{Answer, Client, Form, Runner, TestDatabase};
use flate2::write::{DeflateEncoder, GzEncoder};
use flate2::{Compression, FlushCompress};
use reqwest::Method;
use serde_json::{Value, json};

use super::settings;
use crate::builders::{attempt, run, with};

const MIB: u64 = 1024 * 1024;
const GIB: u64 = 1024 * MIB;
/// What reading all of them may take.
const EXTRA_BYTES: u64 = 256 * MIB;

/// One entry of a ZIP archive, with everything it may lie about.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    flags: u16,
    method: u16,
    crc: u32,
    /// Size in the archive and unpacked, as the local header tells them.
    local: (u32, u32),
    /// The same in the directory; beyond 32 bits it needs an extra field.
    central: (u64, u64),
    data: Vec<u8>,
}

impl Entry {
    fn stored(name: &[u8], data: &[u8]) -> Self {
        let size = data.len();
        Self {
            name: name.to_vec(),
            flags: 0,
            method: 0,
            crc: crc32fast::hash(data),
            local: (size as u32, size as u32),
            central: (size as u64, size as u64),
            data: data.to_vec(),
        }
    }

    /// Deflated data that unpacks to so many bytes.
    fn deflated(name: &[u8], data: Vec<u8>, unpacked: u64) -> Self {
        let packed = data.len() as u64;
        Self {
            method: 8,
            local: (packed as u32, unpacked.min(u64::from(u32::MAX)) as u32),
            central: (packed, unpacked),
            ..Self::stored(name, &data)
        }
    }

    fn local_header(&self) -> Vec<u8> {
        let mut header = b"PK\x03\x04".to_vec();
        for number in [45, self.flags, self.method, 0, 0] {
            header.extend(number.to_le_bytes());
        }
        for number in [self.crc, self.local.0, self.local.1] {
            header.extend(number.to_le_bytes());
        }
        header.extend((self.name.len() as u16).to_le_bytes());
        header.extend(0_u16.to_le_bytes());
        header.extend(&self.name);
        header
    }

    fn central_header(&self, offset: u32) -> Vec<u8> {
        let is_large = self.central.1 > u64::from(u32::MAX);
        let mut header = b"PK\x01\x02".to_vec();
        for number in [45, 45, self.flags, self.method, 0, 0] {
            header.extend(number.to_le_bytes());
        }
        let size = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        for number in [self.crc, size(self.central.0), size(self.central.1)] {
            header.extend(number.to_le_bytes());
        }
        let extra = if is_large {
            [[1_u8, 0, 8, 0].to_vec(), self.central.1.to_le_bytes().to_vec()].concat()
        } else {
            vec![]
        };
        for number in [self.name.len() as u16, extra.len() as u16, 0, 0, 0] {
            header.extend(number.to_le_bytes());
        }
        header.extend(0_u32.to_le_bytes());
        header.extend(offset.to_le_bytes());
        header.extend(&self.name);
        header.extend(extra);
        header
    }
}

/// The end of a directory.
fn end(entries: u16, size: u32, offset: u32) -> Vec<u8> {
    let mut end = b"PK\x05\x06\0\0\0\0".to_vec();
    end.extend([entries.to_le_bytes(), entries.to_le_bytes()].concat());
    end.extend([size.to_le_bytes(), offset.to_le_bytes()].concat());
    end.extend([0, 0]);
    end
}

/// An archive of these entries; those in `again` stand in the directory once
/// more under a name of their own, over the same bytes.
fn zip(entries: &[Entry], again: &[Entry]) -> Vec<u8> {
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    let mut last = 0;
    for entry in entries {
        last = archive.len() as u32;
        directory.extend(entry.central_header(last));
        archive.extend(entry.local_header());
        archive.extend(&entry.data);
    }
    for entry in again {
        directory.extend(entry.central_header(last));
    }
    let at = archive.len() as u32;
    let count = (entries.len() + again.len()) as u16;
    archive.extend(&directory);
    archive.extend(end(count, directory.len() as u32, at));
    archive
}

/// Deflated zeros: so many pieces of a mebibyte, each the same bytes.
fn zeros(mebibytes: usize) -> Vec<u8> {
    let mut piece = Vec::with_capacity(8 * 1024);
    let mut deflate = flate2::Compress::new(Compression::best(), false);
    deflate.compress_vec(&vec![0; MIB as usize], &mut piece, FlushCompress::Full).expect("deflated");
    let mut end = DeflateEncoder::new(Vec::new(), Compression::best());
    end.write_all(&[0]).expect("deflated");
    [piece.repeat(mebibytes), end.finish().expect("deflated")].concat()
}

/// The same as a gzip of many members.
fn gzip_of_zeros(head: &[u8], mebibytes: usize) -> Vec<u8> {
    let member = |bytes: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
        gzip.write_all(bytes).expect("compressed");
        gzip.finish().expect("compressed")
    };
    [member(head), member(&vec![0; MIB as usize]).repeat(mebibytes)].concat()
}

const EVENTS: &[u8] = b"{\"version\":8,\"type\":\"context-options\",\"browserName\":\"chromium\"}\n";

/// Traces that nobody records.
fn traces() -> Vec<(&'static str, Vec<u8>)> {
    let trace = Entry::stored(b"0-trace.trace", EVENTS);
    let named = |name: &[u8]| zip(&[trace.clone(), Entry::stored(name, b"<script>evil</script>")], &[]);
    let bomb = zeros(4);
    let many: Vec<Entry> = (1..1000)
        .map(|n| Entry::deflated(format!("{n}-trace.trace").as_bytes(), bomb.clone(), 4 * MIB))
        .collect();
    let good = zip(std::slice::from_ref(&trace), &[]);
    let whole_end = good.len() - 22;
    vec![
        ("up", named(b"../evil.html")),
        ("far up", named(b"resources/../../../../evil.html")),
        ("root", named(b"/evil.html")),
        ("backslash", named(b"..\\evil.html")),
        ("drive", named(b"C:\\evil.html")),
        ("NUL", named(b"resources/a\0evil.html")),
        ("no name", named(b"")),
        ("no text", named(b"resources/\xff\xfeevil")),
        ("long name", named(&[b'n'; 60_000])),
        ("the same name twice", zip(&[trace.clone(), trace.clone()], &[])),
        ("4 GiB in 4 KiB", zip(&[Entry::deflated(b"0-trace.trace", bomb.clone(), 4 * MIB)], &many)),
        ("one of 10 GiB", zip(&[Entry::deflated(b"0-trace.trace", zeros(10 * 1024), 10 * GIB)], &[])),
        ("10 GiB that say they are 9", zip(&[Entry::deflated(b"0-trace.trace", zeros(10 * 1024), 9)], &[])),
        (
            "9 bytes that say they are 10 GiB",
            zip(
                &[Entry { central: (9, 10 * GIB), ..Entry::stored(b"0-trace.trace", b"{\"a\":\"b\"}") }],
                &[],
            ),
        ),
        (
            "headers that differ",
            zip(&[Entry { local: (1, 70_000), name: b"0-trace.trace".to_vec(), ..trace.clone() }], &[]),
        ),
        (
            "a size beyond the end",
            zip(&[Entry { central: (u64::from(u32::MAX), u64::from(u32::MAX)), ..trace.clone() }], &[]),
        ),
        ("zip64 that is not there", zip(&[Entry { central: (5, u64::MAX), ..trace.clone() }], &[])),
        ("encrypted", zip(&[Entry { flags: 1, ..trace.clone() }], &[])),
        ("method 99", zip(&[Entry { method: 99, ..trace.clone() }], &[])),
        ("a checksum that is wrong", zip(&[Entry { crc: 7, ..trace.clone() }], &[])),
        ("two ends", [good.clone(), end(1, 70, 0)].concat()),
        ("an end in front", [end(65_535, u32::MAX, u32::MAX), good.clone()].concat()),
        ("an end that counts 65,535", [&good[..whole_end], &end(65_535, 70, 0)].concat()),
        ("a directory beyond the end", [&good[..whole_end], &end(1, u32::MAX, u32::MAX - 1)].concat()),
        ("half of one", good[..good.len() / 2].to_vec()),
        ("nothing but an end", end(0, 0, 0)),
    ]
}

/// Records of a report archive.
fn records(entries: &[(&[u8], u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (path, size) in entries {
        bytes.extend((path.len() as u32).to_le_bytes());
        bytes.extend(*path);
        bytes.extend(size.to_le_bytes());
    }
    bytes
}

fn reports() -> Vec<(&'static str, Vec<u8>)> {
    let named = |path: &[u8]| gzip_of_zeros(&[records(&[(path, 9)]), vec![b'x'; 9]].concat(), 0);
    vec![
        ("up", named(b"../evil.html")),
        ("far up", named(b"data/../../evil.html")),
        ("root", named(b"/evil.html")),
        ("backslash", named(b"..\\evil.html")),
        ("drive", named(b"C:/evil.html")),
        ("NUL", named(b"a\0evil.html")),
        ("no text", named(b"\xff\xfeevil.html")),
        ("one of 4 GiB", gzip_of_zeros(&records(&[(b"evil.html", u32::MAX)]), 4096)),
        ("more than it says", gzip_of_zeros(&records(&[(b"index.html", 1), (b"evil.html", 1 << 20)]), 64)),
        ("less than it says", named(b"evil.html")[..20].to_vec()),
        ("a path of 4 GiB", gzip_of_zeros(&u32::MAX.to_le_bytes(), 64)),
        ("one of 600 MiB", gzip_of_zeros(&records(&[(b"evil.html", 600 << 20)]), 4)),
        (
            "a thousand times its file",
            gzip_of_zeros(&records(&[(b"index.html", 8 << 20), (b"evil.html", 1 << 20)]), 9),
        ),
    ]
}

async fn upload(client: &Client, part: &str, file: &str, bytes: &[u8]) -> Value {
    // Traces of long ago are let go of.
    let begun = json!({ "startTime": Clock::system().now().to_iso() });
    let submission = with(run("shop", "failed", vec![attempt("pays", "failed", 0)]), begun);
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", submission.to_string())
        .field("testCases", submission["testCases"].to_string())
        .file(part, file, "application/octet-stream", bytes);
    let request = client.request(Method::POST, "/api/test-runs/upload");
    let request = request.header("content-type", Form::content_type()).body(form.into_body());
    Answer::send(request)
        .await
        .and_then(|answer| answer.success())
        .expect("the run is stored whatever came with it")
}

/// Files below a folder whose name or content shows that something got out.
fn evil_below(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                return evil_below(&path);
            }
            let is_evil = path.file_name().is_some_and(|name| name.to_string_lossy().contains("evil"));
            if is_evil { vec![path.display().to_string()] } else { vec![] }
        })
        .collect()
}

#[tokio::test]
async fn archives_that_lie_are_kept_whole_or_refused_and_take_no_memory() {
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let mut settings = settings(&[("SERVICE_RATE_LIMITS", "off")]);
    settings.extend([
        ("SERVICE_DATABASE_URL".to_owned(), database.url().to_owned()),
        ("SERVICE_STORAGE_URL".to_owned(), database.storage_url()),
        ("SERVICE_DATA_DIR".to_owned(), database.folder().display().to_string()),
    ]);
    let mut runner = Runner::start(&settings).await.expect("a service");
    let client = runner.client().clone();
    upload(&client, "trace_0", "trace.zip", b"PK\x03\x04").await;
    let before = runner.process().peak_bytes().expect("memory");

    for (what, trace) in traces() {
        let stored = upload(&client, "trace_0", "trace.zip", &trace).await;
        let list = format!("/api/test-runs/{}/executions", stored["runId"]);
        let execution = client.json(&list).await.expect("executions")["items"][0]["id"].clone();
        let execution = format!("/api/test-run-cases/{execution}");
        let listed = client.json(&format!("{execution}/traces")).await.expect("traces");
        let file = format!("/api/files/{}", listed["items"][0]["id"]);
        assert!(client.get(&file).await.expect("the trace").body == trace, "{what} came back differently");
        for read in [
            "trace-stacks",
            "trace-network",
            "dom-snapshot",
            "dom-snapshot?source=aria",
            "trace-network-body?sha1=evil.html",
            "explain",
            "healing",
        ] {
            let answer = client.get(&format!("{execution}/{read}")).await.expect("an answer");
            let text = answer.text();
            assert!(answer.status.as_u16() < 500, "{what}, {read}: {text}");
            assert!(!text.contains("<script>evil"), "{what}, {read}: {text}");
        }
    }
    for (what, report) in reports() {
        let stored = upload(&client, "report_html", "html.gz", &report).await;
        assert_eq!(stored["reports"], json!([]), "{what}");
        assert_eq!(stored["warnings"][0]["code"], "unsafe_report", "{what}: {stored}");
    }
    let folder = database.folder().parent().expect("a folder around it");
    assert_eq!(evil_below(database.folder()), Vec::<String>::new());
    assert!(!folder.join("evil.html").exists() && !Path::new("/evil.html").exists());
    let grown = runner.process().peak_bytes().expect("memory") - before;
    assert!(grown < EXTRA_BYTES, "reading them took {} MiB", grown / MIB);
}
