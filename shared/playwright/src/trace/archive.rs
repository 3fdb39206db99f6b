//! The archive around a trace: its directory, and single entries of it
//! (APPNOTE 6.3.10, without encryption, several disks and other methods than
//! stored and deflated). Sizes come from the directory, which archives that
//! are written as a stream have complete, while the headers before the entries
//! are not.

use std::collections::HashMap;
use std::io::Read;

use flate2::read::DeflateDecoder;

use super::{ByteRanges, Limits, ParseError, TraceError};

/// The end record with the longest comment, and what may lie before it.
const TAIL_BYTES: u64 = 64 << 10;
const END_SIGNATURE: [u8; 4] = *b"PK\x05\x06";
const END_BYTES: usize = 22;
const LOCATOR64_SIGNATURE: [u8; 4] = *b"PK\x06\x07";
const LOCATOR64_BYTES: usize = 20;
const END64_SIGNATURE: [u8; 4] = *b"PK\x06\x06";
const END64_BYTES: u64 = 56;
const ENTRY_SIGNATURE: [u8; 4] = *b"PK\x01\x02";
const ENTRY_BYTES: usize = 46;
pub(super) const LOCAL_SIGNATURE: [u8; 4] = *b"PK\x03\x04";
pub(super) const LOCAL_BYTES: u64 = 30;
/// Room for what a local header holds besides the name of the entry.
const LOCAL_SLACK: u64 = 128;
/// Longest directory that is fetched.
const MAX_DIRECTORY_BYTES: u64 = 8 << 20;
/// Below this size the ratio says nothing: short texts of blanks shrink a lot.
const RATIO_FREE_BYTES: u64 = 1 << 20;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    method: u16,
    is_encrypted: bool,
    packed: u64,
    size: u64,
    header_at: u64,
}

/// The directory of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Archive {
    entries: HashMap<String, Entry>,
    limits: Limits,
}

/// A fetched entry, still compressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    bytes: Vec<u8>,
    is_deflated: bool,
    limits: Limits,
}

impl Archive {
    /// Reads the directory: one read, or three for archives that need it.
    ///
    /// # Errors
    /// [`TraceError`].
    pub async fn open<R: ByteRanges>(file: &R, limits: Limits) -> Result<Self, TraceError<R::Error>> {
        let size = file.size();
        let tail_at = size.saturating_sub(TAIL_BYTES);
        let tail = fetch(file, tail_at, size - tail_at).await?;
        let end_at = find_end(&tail).ok_or(TraceError::Unreadable("no end of an archive was found"))?;
        let end = &tail[end_at..];
        let (mut count, mut length, mut at) =
            (u64::from(u16_at(end, 10)), u64::from(u32_at(end, 12)), u64::from(u32_at(end, 16)));
        let locator = end_at.checked_sub(LOCATOR64_BYTES).map(|at| &tail[at..end_at]);
        if let Some(locator) = locator.filter(|locator| locator.starts_with(&LOCATOR64_SIGNATURE)) {
            let end64_at = u64_at(locator, 8);
            let end64 = fetch(file, end64_at, END64_BYTES).await?;
            if !end64.starts_with(&END64_SIGNATURE) || end64.len() < 56 {
                return Err(TraceError::Unreadable("the end of the archive is damaged"));
            }
            (count, length, at) = (u64_at(&end64, 32), u64_at(&end64, 40), u64_at(&end64, 48));
        }
        if count > limits.entries as u64 || length > MAX_DIRECTORY_BYTES {
            return Err(TraceError::TooLarge("too many entries"));
        }
        let from = at.checked_sub(tail_at).and_then(|from| usize::try_from(from).ok());
        let to = from.zip(usize::try_from(length).ok()).and_then(|(from, length)| from.checked_add(length));
        let directory = match from.zip(to).and_then(|(from, to)| tail.get(from..to)) {
            Some(directory) => directory.to_vec(),
            None => fetch(file, at, length).await?,
        };
        let entries = read_directory(&directory, limits).map_err(ParseError::widen)?;
        Ok(Self { entries, limits })
    }

    /// Names of the entries, sorted.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.entries.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// Whether there is an entry of this name.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.entries.contains_key(name)
    }

    /// Inflated size of an entry as the directory has it.
    #[must_use]
    pub fn size_of(&self, name: &str) -> Option<u64> {
        self.entries.get(name).map(|entry| entry.size)
    }

    /// Bytes that fetching an entry takes, about.
    #[must_use]
    pub fn packed_size_of(&self, name: &str) -> Option<u64> {
        self.entries.get(name).map(|entry| entry.packed)
    }

    /// Each entry that is stored or deflated in the clear: its name, where the
    /// header before its bytes begins, and its compressed size; in no order.
    pub(super) fn places(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        self.entries
            .iter()
            .filter(|(_, entry)| !entry.is_encrypted && matches!(entry.method, STORED | DEFLATED))
            .map(|(name, entry)| (name.as_str(), entry.header_at, entry.packed))
    }

    /// The limits it was opened with.
    #[must_use]
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Fetches an entry; `None` when there is no entry of this name.
    ///
    /// # Errors
    /// [`TraceError`].
    pub async fn fetch<R: ByteRanges>(
        &self,
        file: &R,
        name: &str,
    ) -> Result<Option<Packed>, TraceError<R::Error>> {
        let Some(entry) = self.entries.get(name) else { return Ok(None) };
        if entry.is_encrypted || !matches!(entry.method, STORED | DEFLATED) {
            return Err(TraceError::Unreadable("an entry is encrypted or packed in an unusual way"));
        }
        if entry.packed > self.limits.fetched_bytes || entry.size > self.limits.entry_bytes {
            return Err(TraceError::TooLarge("an entry is too large"));
        }
        let guess = LOCAL_BYTES + name.len() as u64 + LOCAL_SLACK;
        let room = file.size().saturating_sub(entry.header_at);
        let stretch = fetch(file, entry.header_at, (guess + entry.packed).min(room)).await?;
        if !stretch.starts_with(&LOCAL_SIGNATURE) || stretch.len() < LOCAL_BYTES as usize {
            return Err(TraceError::Unreadable("an entry is not where the directory says"));
        }
        let data_at = LOCAL_BYTES + u64::from(u16_at(&stretch, 26)) + u64::from(u16_at(&stretch, 28));
        let packed = usize::try_from(entry.packed).unwrap_or(usize::MAX);
        let from = usize::try_from(data_at).unwrap_or(usize::MAX);
        let bytes = match from.checked_add(packed).and_then(|to| stretch.get(from..to)) {
            Some(bytes) => bytes.to_vec(),
            None => fetch(file, entry.header_at.saturating_add(data_at), entry.packed).await?,
        };
        if bytes.len() != packed {
            return Err(TraceError::Unreadable("an entry ends early"));
        }
        Ok(Some(Packed { bytes, is_deflated: entry.method == DEFLATED, limits: self.limits }))
    }
}

impl Packed {
    /// Compressed bytes held.
    #[must_use]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The content as a stream that fails where the limits end.
    pub(super) fn reader(&self) -> impl Read + '_ {
        let plain: Box<dyn Read + '_> = match self.is_deflated {
            true => Box::new(DeflateDecoder::new(self.bytes.as_slice())),
            false => Box::new(self.bytes.as_slice()),
        };
        let by_ratio = (self.bytes.len() as u64).saturating_mul(self.limits.ratio).max(RATIO_FREE_BYTES);
        Bounded { plain, left: self.limits.entry_bytes.min(by_ratio) }
    }

    /// The whole content, when it has at most `max_bytes`.
    ///
    /// # Errors
    /// [`TraceError::TooLarge`], [`TraceError::Unreadable`].
    pub fn inflate(&self, max_bytes: u64) -> Result<Vec<u8>, ParseError> {
        let mut content = Vec::new();
        self.reader().take(max_bytes + 1).read_to_end(&mut content).map_err(|error| read_error(&error))?;
        if content.len() as u64 > max_bytes {
            return Err(TraceError::TooLarge("an entry is too large"));
        }
        Ok(content)
    }
}

/// A reader that fails, instead of ending, after its last byte allowed.
struct Bounded<R> {
    plain: R,
    left: u64,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.plain.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or(std::io::ErrorKind::FileTooLarge)?;
        Ok(read)
    }
}

/// What a failed read of an entry means.
pub(super) fn read_error(error: &std::io::Error) -> ParseError {
    match error.kind() {
        std::io::ErrorKind::FileTooLarge => TraceError::TooLarge("an entry is too large"),
        _ => TraceError::Unreadable("an entry is damaged"),
    }
}

async fn fetch<R: ByteRanges>(file: &R, at: u64, length: u64) -> Result<Vec<u8>, TraceError<R::Error>> {
    let end = at.checked_add(length).filter(|end| *end <= file.size());
    let end = end.ok_or(TraceError::Unreadable("the archive points outside of itself"))?;
    if at == end {
        return Ok(Vec::new());
    }
    file.read(at..end).await.map_err(TraceError::Source)
}

/// The last end record whose comment reaches to the end of the file; comments
/// may hold its signature.
fn find_end(tail: &[u8]) -> Option<usize> {
    let last = tail.len().checked_sub(END_BYTES)?;
    (0..=last).rev().find(|&at| {
        tail[at..].starts_with(&END_SIGNATURE)
            && at + END_BYTES + usize::from(u16_at(tail, at + 20)) == tail.len()
    })
}

fn read_directory(mut bytes: &[u8], limits: Limits) -> Result<HashMap<String, Entry>, ParseError> {
    let mut entries = HashMap::new();
    while bytes.len() >= ENTRY_BYTES && bytes.starts_with(&ENTRY_SIGNATURE) {
        let name_length = usize::from(u16_at(bytes, 28));
        let extra_length = usize::from(u16_at(bytes, 30));
        let comment_length = usize::from(u16_at(bytes, 32));
        let name_end = ENTRY_BYTES + name_length;
        let extra_end = name_end + extra_length;
        let (Some(name), Some(extra)) = (bytes.get(ENTRY_BYTES..name_end), bytes.get(name_end..extra_end))
        else {
            return Err(TraceError::Unreadable("the directory is damaged"));
        };
        let mut entry = Entry {
            method: u16_at(bytes, 10),
            is_encrypted: u16_at(bytes, 8) & 1 != 0,
            packed: u64::from(u32_at(bytes, 20)),
            size: u64::from(u32_at(bytes, 24)),
            header_at: u64::from(u32_at(bytes, 42)),
        };
        entry.widen(extra);
        // The first of two entries of one name is the one that counts.
        if let Ok(name) = std::str::from_utf8(name) {
            entries.entry(name.to_owned()).or_insert(entry);
        }
        if entries.len() > limits.entries {
            return Err(TraceError::TooLarge("too many entries"));
        }
        bytes = bytes.get(extra_end + comment_length..).unwrap_or_default();
    }
    Ok(entries)
}

impl Entry {
    /// Takes what does not fit into 32 bits from the field for it.
    fn widen(&mut self, mut extra: &[u8]) {
        while extra.len() >= 4 {
            let length = usize::from(u16_at(extra, 2));
            let Some(field) = extra.get(4..4 + length) else { return };
            if u16_at(extra, 0) == 1 {
                let mut values = field.chunks_exact(8).map(|chunk| u64_at(chunk, 0));
                for value in [&mut self.size, &mut self.packed, &mut self.header_at] {
                    if *value == u64::from(u32::MAX) {
                        *value = values.next().unwrap_or(*value);
                    }
                }
                return;
            }
            extra = &extra[4 + length..];
        }
    }
}

pub(super) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|bytes| bytes.try_into().ok()).map_or(0, u16::from_le_bytes)
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok()).map_or(0, u64::from_le_bytes)
}
