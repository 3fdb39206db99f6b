//! Reads the record format of report archives, already inflated: u32 LE path
//! length, path, u32 LE content length, content, and again.
//!
//! Invariant: bytes are read once, as they come, and content is handed
//! on without a copy. Every path that comes out is relative, clean and new;
//! entries, paths and bytes stay within the limits whatever the input claims.

use std::collections::HashSet;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// Longest path in bytes.
const MAX_PATH_BYTES: usize = 10_000;
/// Longest cleaned path, in bytes as a store writes it: with the prefix of its report it has to fit
/// into the 1,024 bytes that buckets allow for a key.
const MAX_CLEAN_PATH_BYTES: usize = 900;
/// Longest name of a file or folder, in bytes as a store writes it: file systems allow 255, and a
/// file that is being written has a longer name.
const MAX_SEGMENT_BYTES: usize = 200;
/// Most folders above a file.
const MAX_DEPTH: usize = 16;

/// Bounds of one archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Most entries.
    pub entries: u32,
    /// Most bytes of one entry.
    pub entry_bytes: u64,
    /// Most inflated bytes, headers and paths included.
    pub total_bytes: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        Self { entries: 100_000, entry_bytes: 512 << 20, total_bytes: 1 << 30 }
    }
}

/// Why an archive is refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ArchiveError {
    /// A path length outside 1..=10,000.
    #[error("path length {0} is not within 1 and {MAX_PATH_BYTES}")]
    PathLength(u32),
    /// A path that is not UTF-8.
    #[error("path of entry {0} is not UTF-8")]
    PathEncoding(u32),
    /// Absolute, with a drive, `..` or a control character, too long, or naming
    /// no file.
    #[error("path {0:?} would leave the report's directory, is too long or names no file")]
    UnsafePath(String),
    /// The same path twice, after cleaning.
    #[error("path {0:?} occurs twice, or as a file and as a folder")]
    DuplicatePath(String),
    /// More entries than allowed.
    #[error("more than {0} entries")]
    TooManyEntries(u32),
    /// More bytes than allowed.
    #[error("more than {0} bytes")]
    TooLarge(u64),
    /// An entry with more bytes than allowed.
    #[error("entry {path:?} has more than {most} bytes")]
    EntryTooLarge {
        /// Its path.
        path: String,
        /// What is allowed.
        most: u64,
    },
    /// The input ended inside a record.
    #[error("the archive ends in the middle of entry {0}")]
    Truncated(u32),
}

impl ArchiveError {
    /// Whether a path was dangerous rather than the archive broken.
    #[must_use]
    pub const fn is_unsafe_path(&self) -> bool {
        matches!(self, Self::UnsafePath(_))
    }
}

/// What comes out of the reader.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchiveEvent<'a> {
    /// A file begins.
    Entry {
        /// Relative path with `/` between segments, none of them empty, `.` or `..`.
        path: String,
        /// Bytes of content that follow.
        size: u32,
    },
    /// The next bytes of its content, never empty.
    Data(&'a [u8]),
    /// The file is complete.
    End,
}

enum State {
    PathLength,
    Path { length: usize },
    ContentLength { path: String },
    Content { left: u32 },
}

/// Push parser: feed it chunks through [`Self::next_event`], then call
/// [`Self::finish`].
pub struct ArchiveReader {
    limits: ArchiveLimits,
    state: State,
    /// A header or path that is not complete yet.
    partial: Vec<u8>,
    /// Digests of the paths so far: 100,000 long paths would be a gigabyte.
    seen: HashSet<[u8; 16]>,
    /// Digests of the folders the paths lie in.
    folders: HashSet<[u8; 16]>,
    entries: u32,
    total_bytes: u64,
}

impl ArchiveReader {
    /// A reader at the beginning of an archive.
    #[must_use]
    pub fn new(limits: ArchiveLimits) -> Self {
        Self {
            limits,
            state: State::PathLength,
            partial: Vec::new(),
            seen: HashSet::new(),
            folders: HashSet::new(),
            entries: 0,
            total_bytes: 0,
        }
    }

    /// Remembers a path. A file cannot be a folder as well: not every store
    /// could hold both.
    fn enter(&mut self, path: &str) -> Result<(), ArchiveError> {
        for (end, _) in path.match_indices('/') {
            let folder = digest(&path[..end]);
            if self.seen.contains(&folder) {
                return Err(ArchiveError::DuplicatePath(path[..end].to_owned()));
            }
            self.folders.insert(folder);
        }
        let file = digest(path);
        if self.folders.contains(&file) || !self.seen.insert(file) {
            return Err(ArchiveError::DuplicatePath(path.to_owned()));
        }
        Ok(())
    }

    /// Takes bytes off the front of `input` until something can be told;
    /// `None` means that `input` is used up. Call it in a loop for each chunk.
    ///
    /// # Errors
    /// When the archive is broken, unsafe or too large; the reader must not be
    /// used afterwards.
    pub fn next_event<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<ArchiveEvent<'a>>, ArchiveError> {
        loop {
            match &mut self.state {
                State::PathLength => {
                    let Some(length) = self.take_u32(input)? else {
                        return Ok(None);
                    };
                    if self.entries == self.limits.entries {
                        return Err(ArchiveError::TooManyEntries(self.limits.entries));
                    }
                    self.entries += 1;
                    let length = usize::try_from(length)
                        .ok()
                        .filter(|length| (1..=MAX_PATH_BYTES).contains(length))
                        .ok_or(ArchiveError::PathLength(length))?;
                    self.state = State::Path { length };
                }
                State::Path { length } => {
                    let length = *length;
                    let Some(bytes) = self.take(input, length)? else {
                        return Ok(None);
                    };
                    let path =
                        String::from_utf8(bytes).map_err(|_| ArchiveError::PathEncoding(self.entries))?;
                    let path = clean_path(&path).ok_or(ArchiveError::UnsafePath(path))?;
                    self.enter(&path)?;
                    self.state = State::ContentLength { path };
                }
                State::ContentLength { path } => {
                    let path = std::mem::take(path);
                    let Some(size) = self.take_u32(input)? else {
                        self.state = State::ContentLength { path };
                        return Ok(None);
                    };
                    // Refused before a byte of it is accepted.
                    if u64::from(size) > self.limits.entry_bytes {
                        return Err(ArchiveError::EntryTooLarge { path, most: self.limits.entry_bytes });
                    }
                    if u64::from(size) > self.limits.total_bytes.saturating_sub(self.total_bytes) {
                        return Err(ArchiveError::TooLarge(self.limits.total_bytes));
                    }
                    self.state = State::Content { left: size };
                    return Ok(Some(ArchiveEvent::Entry { path, size }));
                }
                State::Content { left: 0 } => {
                    self.state = State::PathLength;
                    return Ok(Some(ArchiveEvent::End));
                }
                State::Content { left } => {
                    if input.is_empty() {
                        return Ok(None);
                    }
                    let wanted = usize::try_from(*left).unwrap_or(usize::MAX);
                    let (data, rest) = input.split_at(wanted.min(input.len()));
                    *input = rest;
                    // At most `left`, so both conversions are exact.
                    *left -= u32::try_from(data.len()).unwrap_or(*left);
                    self.total_bytes += data.len() as u64;
                    return Ok(Some(ArchiveEvent::Data(data)));
                }
            }
        }
    }

    /// Ends the archive and answers how many entries it had.
    ///
    /// # Errors
    /// [`ArchiveError::Truncated`] when the last record is not complete.
    pub fn finish(&self) -> Result<u32, ArchiveError> {
        match self.state {
            State::PathLength if self.partial.is_empty() => Ok(self.entries),
            State::PathLength => Err(ArchiveError::Truncated(self.entries + 1)),
            _ => Err(ArchiveError::Truncated(self.entries)),
        }
    }

    fn take_u32(&mut self, input: &mut &[u8]) -> Result<Option<u32>, ArchiveError> {
        let bytes = self.take(input, 4)?;
        Ok(bytes.and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes))
    }

    /// Collects `length` bytes, over several chunks if need be.
    fn take(&mut self, input: &mut &[u8], length: usize) -> Result<Option<Vec<u8>>, ArchiveError> {
        let missing = length.saturating_sub(self.partial.len());
        let (bytes, rest) = input.split_at(missing.min(input.len()));
        *input = rest;
        self.partial.extend_from_slice(bytes);
        self.total_bytes += bytes.len() as u64;
        if self.total_bytes > self.limits.total_bytes {
            return Err(ArchiveError::TooLarge(self.limits.total_bytes));
        }
        Ok((self.partial.len() == length).then(|| std::mem::take(&mut self.partial)))
    }
}

fn digest(path: &str) -> [u8; 16] {
    let whole: [u8; 32] = Sha256::digest(path.as_bytes()).into();
    let mut half = [0; 16];
    half.copy_from_slice(&whole[..16]);
    half
}

/// `\` becomes `/`, empty and `.` segments go. `None` for absolute paths,
/// drives, `..`, control characters, what no store has room for, and paths
/// that end in no file name.
fn clean_path(path: &str) -> Option<String> {
    let path = path.replace('\\', "/");
    let has_drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    let names_file = path.rsplit('/').next().is_some_and(|last| !matches!(last, "" | "."));
    if path.starts_with('/') || has_drive || !names_file || path.contains(char::is_control) {
        return None;
    }
    let segments: Vec<&str> = path.split('/').filter(|segment| !matches!(*segment, "" | ".")).collect();
    let fits = segments.len() <= MAX_DEPTH + 1
        && segments.iter().all(|segment| stored_bytes(segment) <= MAX_SEGMENT_BYTES && *segment != "..");
    Some(segments.join("/")).filter(|path| fits && stored_bytes(path) <= MAX_CLEAN_PATH_BYTES)
}

/// Stores write `%`, `#` and `:` as three characters.
fn stored_bytes(path: &str) -> usize {
    path.len() + 2 * path.matches(['%', '#', ':']).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Files = Vec<(String, Vec<u8>)>;

    fn record(path: &[u8], content: &[u8]) -> Vec<u8> {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        [&length(path)[..], path, &length(content)[..], content].concat()
    }

    fn archive(files: &Files) -> Vec<u8> {
        files.iter().flat_map(|(path, content)| record(path.as_bytes(), content)).collect()
    }

    /// Reads an archive cut into chunks of the given sizes, repeated.
    fn read(bytes: &[u8], sizes: &[usize], limits: ArchiveLimits) -> Result<Files, ArchiveError> {
        let mut reader = ArchiveReader::new(limits);
        let mut files: Files = Vec::new();
        let (mut rest, mut open) = (bytes, None);
        for &size in sizes.iter().cycle() {
            let (mut chunk, after) = rest.split_at(size.min(rest.len()));
            while let Some(event) = reader.next_event(&mut chunk)? {
                match event {
                    ArchiveEvent::Entry { path, size } => open = Some((path, Vec::new(), size)),
                    ArchiveEvent::Data(data) => open.as_mut().unwrap().1.extend_from_slice(data),
                    ArchiveEvent::End => {
                        let (path, content, size) = open.take().unwrap();
                        assert_eq!(content.len(), size as usize);
                        files.push((path, content));
                    }
                }
            }
            assert!(chunk.is_empty());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        assert_eq!(reader.finish()?, u32::try_from(files.len()).unwrap());
        Ok(files)
    }

    fn read_whole(bytes: &[u8]) -> Result<Files, ArchiveError> {
        read(bytes, &[bytes.len().max(1)], ArchiveLimits::default())
    }

    #[test]
    fn backslashes_and_dots_are_cleaned() {
        let files = read_whole(&record(b".\\data//./a\\b.png", b"x")).unwrap();
        assert_eq!(files, [("data/a/b.png".to_owned(), b"x".to_vec())]);
    }

    #[test]
    fn paths_that_leave_the_directory_are_refused() {
        for path in [
            "/etc/x",
            "\\\\host\\x",
            "//host/x",
            "a/../../x",
            "..",
            "a\\..\\x",
            "C:\\x",
            "c:x",
            "a\0b",
            ".",
            "a/",
            "a/.",
        ] {
            let error = read_whole(&record(path.as_bytes(), b"")).unwrap_err();
            assert!(error.is_unsafe_path(), "{path:?} gave {error}");
        }
        assert!(read_whole(&record(b"a..b/...html", b"")).is_ok());
    }

    #[test]
    fn limits_hold_at_the_boundary() {
        let two = archive(&vec![("a".into(), vec![0; 10]), ("b".into(), vec![0; 10])]);
        let limits =
            |entries, total_bytes| ArchiveLimits { entries, total_bytes, ..ArchiveLimits::default() };
        assert!(read(&two, &[7], limits(2, 38)).is_ok());
        assert_eq!(read(&two, &[7], limits(1, 38)), Err(ArchiveError::TooManyEntries(1)));
        assert_eq!(read(&two, &[7], limits(2, 37)), Err(ArchiveError::TooLarge(37)));
        let entry = |entry_bytes| ArchiveLimits { entry_bytes, ..ArchiveLimits::default() };
        assert!(read(&two, &[7], entry(10)).is_ok());
        let too_large = ArchiveError::EntryTooLarge { path: "a".to_owned(), most: 9 };
        assert_eq!(read(&two, &[7], entry(9)), Err(too_large));
        assert_eq!(read_whole(&record(b"", b"")), Err(ArchiveError::PathLength(0)));
        let nested = vec!["a".repeat(98); 16].join("/");
        assert!(read_whole(&record(&nested.as_bytes()[..900], b"")).is_ok());
        for too_long in [
            &nested.as_bytes()[..901],
            &[b'a'; 201],
            &[b'%'; 67],
            &[b'a'; 10_000],
            &[b"a/".repeat(17).as_slice(), b"a"].concat(),
        ] {
            let refused = read_whole(&record(too_long, b""));
            assert!(matches!(refused, Err(ArchiveError::UnsafePath(_))), "{refused:?}");
        }
        assert_eq!(read_whole(&record(&[b'a'; 10_001], b"")), Err(ArchiveError::PathLength(10_001)));
    }

    #[test]
    fn a_claimed_size_is_refused_before_its_bytes_arrive() {
        let mut bytes = record(b"a", b"");
        bytes.truncate(5);
        bytes.extend(u32::MAX.to_le_bytes());
        let most = ArchiveLimits::default().entry_bytes;
        assert_eq!(read_whole(&bytes), Err(ArchiveError::EntryTooLarge { path: "a".to_owned(), most }));
        let limits = ArchiveLimits { total_bytes: 100, ..ArchiveLimits::default() };
        bytes.truncate(5);
        bytes.extend(101_u32.to_le_bytes());
        assert_eq!(read(&bytes, &[7], limits), Err(ArchiveError::TooLarge(100)));
    }

    #[test]
    fn one_path_in_two_spellings_is_a_duplicate() {
        let bytes = [record(b"a/b", b"1"), record(b"a\\.\\b", b"2")].concat();
        assert_eq!(read_whole(&bytes), Err(ArchiveError::DuplicatePath("a/b".into())));
    }

    fn files() -> impl Strategy<Value = Files> {
        let contents = proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..6);
        contents.prop_map(|all| {
            all.into_iter().enumerate().map(|(at, content)| (format!("dir/é{at}.html"), content)).collect()
        })
    }

    proptest! {
        #[test]
        fn any_chunking_reads_the_same_files(files in files(), sizes in proptest::collection::vec(1..30_usize, 1..8)) {
            prop_assert_eq!(read(&archive(&files), &sizes, ArchiveLimits::default()), Ok(files));
        }

        #[test]
        fn a_cut_archive_is_noticed(files in files(), cut in 1..30_usize) {
            let whole = archive(&files);
            let cut = &whole[..whole.len().saturating_sub(cut)];
            let is_boundary = (0..=files.len()).any(|n| archive(&files[..n].to_vec()).len() == cut.len());
            match read_whole(cut) {
                Ok(_) => prop_assert!(is_boundary),
                Err(error) => prop_assert!(!is_boundary && matches!(error, ArchiveError::Truncated(_))),
            }
        }

        #[test]
        fn arbitrary_bytes_never_panic_and_paths_are_clean(bytes: Vec<u8>, size in 1..20_usize) {
            if let Ok(files) = read(&bytes, &[size], ArchiveLimits::default()) {
                prop_assert!(files.iter().all(|(path, _)| clean_path(path).as_ref() == Some(path)));
            }
        }
    }
}
