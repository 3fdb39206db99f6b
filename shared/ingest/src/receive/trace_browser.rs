//! Where and when a trace was recorded: what tells apart executions of one test
//! when the client names no browser project.

use std::io::Read as _;

use callboard_domain::time::Timestamp;
use callboard_store::blobs::StagedBlob;
use flate2::read::DeflateDecoder;
use futures::StreamExt as _;
use serde::Deserialize;

use crate::Context;

/// Traces above this size are not looked into.
const MAX_TRACE_BYTES: u64 = 32 * 1024 * 1024;
/// Entries of an archive that are looked at.
const MAX_ENTRIES: usize = 20_000;
/// Bytes of an entry that are inflated: the record comes first.
const MAX_INFLATED_BYTES: u64 = 64 * 1024;
const END_RECORD: [u8; 4] = *b"PK\x05\x06";
const CENTRAL_RECORD: [u8; 4] = *b"PK\x01\x02";
const LOCAL_RECORD: [u8; 4] = *b"PK\x03\x04";
/// An end record with its longest comment.
const END_BYTES: usize = 22 + 65_535;

/// What a trace tells of its recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Recording {
    /// Name of the browser.
    pub(crate) browser_name: Option<String>,
    /// Its channel.
    pub(crate) channel: Option<String>,
    /// Width and height of its pages, CSS pixels.
    pub(crate) viewport: Option<(i64, i64)>,
    /// When it began: with the test, or with the first page of it.
    pub(crate) began_at: Option<Timestamp>,
}

/// What the trace tells of its recording; `None` when it is no trace.
pub(crate) async fn find_recording(ctx: &Context, trace: &StagedBlob) -> Option<Recording> {
    if trace.size > MAX_TRACE_BYTES {
        return None;
    }
    let mut pieces = trace.open(&ctx.store).await.ok()?;
    let mut bytes = Vec::with_capacity(usize::try_from(trace.size).ok()?);
    while let Some(piece) = pieces.next().await {
        bytes.extend_from_slice(&piece.ok()?);
    }
    recording_in(&bytes)
}

/// Reads the archive's own list of entries; anything odd about it means that
/// it tells nothing.
fn recording_in(archive: &[u8]) -> Option<Recording> {
    let from = archive.len().saturating_sub(END_BYTES);
    let end = from + archive.get(from..)?.windows(4).rposition(|window| window == END_RECORD)?;
    let mut at = number(archive, end + 16, 4)?;
    let mut found = Recording::default();
    for _ in 0..number(archive, end + 10, 2)?.min(MAX_ENTRIES) {
        if archive.get(at..at + 4)? != CENTRAL_RECORD {
            return None;
        }
        let [name, extra, comment] = [28, 30, 32].map(|field| number(archive, at + field, 2));
        let (name, extra, comment) = (name?, extra?, comment?);
        if archive.get(at + 46..at + 46 + name)?.ends_with(b".trace")
            && let Some(record) = record_of_entry(archive, at)
        {
            found.learn(record);
        }
        at += 46 + name + extra + comment;
    }
    Some(found)
}

impl Recording {
    /// The first context with a browser says which it was; the earliest of all
    /// when it began.
    fn learn(&mut self, record: Record) {
        #[expect(clippy::cast_possible_truncation, reason = "what is out of range is no time")]
        let began = record.wall_time.and_then(|millis| Timestamp::within_bounds(millis as i64));
        if let Some(began) = began {
            self.began_at = Some(self.began_at.map_or(began, |known| known.min(began)));
        }
        if self.browser_name.is_none() && !record.browser_name.is_empty() {
            self.browser_name = Some(record.browser_name);
            self.channel = record.options.channel;
            self.viewport = record.options.viewport.map(|size| (size.width, size.height));
        }
    }
}

/// What the first context of an entry was made with.
fn record_of_entry(archive: &[u8], central: usize) -> Option<Record> {
    let (method, size) = (number(archive, central + 10, 2)?, number(archive, central + 20, 4)?);
    let local = number(archive, central + 42, 4)?;
    if archive.get(local..local + 4)? != LOCAL_RECORD {
        return None;
    }
    let start = local + 30 + number(archive, local + 26, 2)? + number(archive, local + 28, 2)?;
    let packed = archive.get(start..start.checked_add(size)?)?;
    let mut text = Vec::new();
    match method {
        0 => text.extend_from_slice(&packed[..packed.len().min(usize::try_from(MAX_INFLATED_BYTES).ok()?)]),
        8 => {
            // What was inflated before an error is as good as any.
            let _ = DeflateDecoder::new(packed).take(MAX_INFLATED_BYTES).read_to_end(&mut text);
        }
        _ => return None,
    }
    text.split(|byte| *byte == b'\n').find_map(|line| {
        let record: Record = serde_json::from_slice(line).ok()?;
        (record.kind == "context-options").then_some(record)
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    browser_name: String,
    wall_time: Option<f64>,
    #[serde(default)]
    options: Options,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Options {
    channel: Option<String>,
    viewport: Option<Size>,
}

#[derive(Deserialize)]
struct Size {
    width: i64,
    height: i64,
}

/// A little-endian number of some bytes.
fn number(archive: &[u8], at: usize, bytes: usize) -> Option<usize> {
    let bytes = archive.get(at..at.checked_add(bytes)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | usize::from(*byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::DeflateEncoder;
    use proptest::prelude::*;

    use super::*;

    fn le(number: usize, bytes: usize) -> Vec<u8> {
        number.to_le_bytes()[..bytes].to_vec()
    }

    /// An archive of deflated entries.
    fn archive(entries: &[(&str, &str)]) -> Vec<u8> {
        let (mut local, mut central) = (Vec::new(), Vec::new());
        for (name, text) in entries {
            let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
            encoder.write_all(text.as_bytes()).unwrap();
            let packed = encoder.finish().unwrap();
            let offset = local.len();
            let head = [vec![0; 22], le(name.len(), 2), le(0, 2)].concat();
            local.extend([LOCAL_RECORD.to_vec(), head, name.as_bytes().to_vec(), packed.clone()].concat());
            let fields =
                [vec![0; 6], le(8, 2), vec![0; 8], le(packed.len(), 4), le(text.len(), 4), le(name.len(), 2)];
            central.extend([CENTRAL_RECORD.to_vec(), fields.concat(), vec![0; 12], le(offset, 4)].concat());
            central.extend(name.as_bytes());
        }
        let end =
            [vec![0; 6], le(entries.len(), 2), le(central.len(), 4), le(local.len(), 4), le(0, 2)].concat();
        [local, central, END_RECORD.to_vec(), end].concat()
    }

    #[test]
    fn the_browser_is_that_of_the_first_context_with_one_and_the_beginning_the_earliest() {
        let runner = r#"{"version":8,"type":"context-options","origin":"testRunner","browserName":"","wallTime":1767261600100}"#;
        let library = "{\"type\":\"before\"}\n{\"type\":\"context-options\",\"browserName\":\"webkit\",\
             \"options\":{\"viewport\":{\"width\":390,\"height\":844}},\"wallTime\":1767261600400}";
        let traced = archive(&[("0-trace.trace", library), ("test.trace", runner), ("resources/a", "x")]);
        let expected = Recording {
            browser_name: Some("webkit".to_owned()),
            channel: None,
            viewport: Some((390, 844)),
            began_at: Some(Timestamp(1_767_261_600_100)),
        };
        assert_eq!(recording_in(&traced), Some(expected));
        let unknown = recording_in(&archive(&[("test.trace", runner)])).expect("a trace");
        assert_eq!((unknown.browser_name, unknown.viewport), (None, None));
        assert_eq!(recording_in(b"PK"), None);
    }

    proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(any::<u8>(), 0..200), cut in 0_usize..300) {
            let whole = archive(&[("0-trace.trace", "{}")]);
            let _ = recording_in(&bytes);
            let _ = recording_in(&[&whole[..cut.min(whole.len())], &bytes[..]].concat());
        }
    }
}
