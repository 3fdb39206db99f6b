//! Which parts of a trace are worth storing apart, and how a trace is put
//! together from its parts. The parts are cut out of the file as they stand,
//! compressed and all, so what is put together is the file again, byte by
//! byte, whatever the archive claims about itself.

use std::ops::Range;

use super::Archive;
use super::archive::{LOCAL_BYTES, LOCAL_SIGNATURE, u16_at};

/// Entries that traces of one application have in common: what its pages
/// loaded, and the sources of its tests.
const SHARED_FOLDERS: [&str; 2] = ["resources/", "src/"];
/// Smaller parts cost more as objects than they save.
const MIN_MEMBER_BYTES: u64 = 4 * 1024;
/// From this size on a part is kept apart when it is met for the first time;
/// smaller ones when they are met again.
const ALONE_BYTES: u64 = 64 * 1024;
/// Most parts of one trace.
const MAX_MEMBERS: usize = 2_000;
/// The least that has to leave a trace before it is taken apart.
const MIN_SAVED_BYTES: u64 = 16 * 1024;

/// An entry that may be kept apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Where the header before its bytes begins.
    pub header_at: u64,
    /// Its compressed size.
    pub length: u64,
}

/// Bytes of a header before the bytes of an entry, without its name.
pub const HEADER_BYTES: usize = LOCAL_BYTES as usize;

impl Candidate {
    /// How many bytes of name and fields lie between a header and the bytes
    /// of its entry; `None` when there is no header.
    #[must_use]
    pub fn bytes_between(header: &[u8; HEADER_BYTES]) -> Option<u64> {
        header
            .starts_with(&LOCAL_SIGNATURE)
            .then(|| u64::from(u16_at(header, 26)) + u64::from(u16_at(header, 28)))
    }
}

/// The entries of an archive of `size` bytes that may be kept apart, in the
/// order of the file. Entries that lie inside of each other are left out.
#[must_use]
pub fn candidates(archive: &Archive, size: u64) -> Vec<Candidate> {
    let mut found: Vec<Candidate> = archive
        .places()
        .filter(|(name, ..)| SHARED_FOLDERS.iter().any(|folder| name.starts_with(folder)))
        .map(|(_, header_at, length)| Candidate { header_at, length })
        .filter(|entry| entry.length >= MIN_MEMBER_BYTES)
        .collect();
    found.sort_by_key(|entry| std::cmp::Reverse(entry.length));
    found.truncate(MAX_MEMBERS);
    found.sort_by_key(|entry| entry.header_at);
    let mut free_from = 0;
    found.retain(|entry| {
        let end = entry.header_at.checked_add(LOCAL_BYTES).and_then(|at| at.checked_add(entry.length));
        match end {
            Some(end) if entry.header_at >= free_from && end <= size => {
                free_from = end;
                true
            }
            _ => false,
        }
    });
    found
}

/// Whether a part is kept apart, given whether its bytes were met elsewhere.
#[must_use]
pub const fn is_worth_it(length: u64, is_known: bool) -> bool {
    is_known || length >= ALONE_BYTES
}

/// A part of a file that lies elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Member {
    /// Where it begins in the file.
    pub at: u64,
    /// Its length.
    pub length: u64,
}

/// How a file is put together: its members lie elsewhere, the rest follows
/// one another in an object of its own, the skeleton.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    size: u64,
    members: Vec<Member>,
}

/// Bytes to take, in this order, to have a range of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A range of the skeleton.
    Skeleton(Range<u64>),
    /// A range of the member with this index.
    Member(usize, Range<u64>),
}

impl Layout {
    /// A file of `size` bytes; `None` for members that are empty, out of
    /// order, upon one another or outside of the file.
    #[must_use]
    pub fn new(size: u64, members: Vec<Member>) -> Option<Self> {
        let mut free_from = 0;
        for member in &members {
            let end = member.at.checked_add(member.length)?;
            if member.at < free_from || member.length == 0 || end > size {
                return None;
            }
            free_from = end;
        }
        Some(Self { size, members })
    }

    /// Bytes of the whole file.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Bytes that lie elsewhere.
    #[must_use]
    pub fn member_bytes(&self) -> u64 {
        self.members.iter().map(|member| member.length).sum()
    }

    /// Bytes of the skeleton.
    #[must_use]
    pub fn skeleton_bytes(&self) -> u64 {
        self.size - self.member_bytes()
    }

    /// Whether taking the file apart is worth its objects.
    #[must_use]
    pub fn pays(&self) -> bool {
        let saved = self.member_bytes();
        saved >= MIN_SAVED_BYTES && saved >= self.size / 10
    }

    /// What a range of the file consists of. A range beyond the end ends with
    /// the file.
    #[must_use]
    pub fn pieces(&self, range: Range<u64>) -> Vec<Piece> {
        let range = range.start..range.end.min(self.size);
        let mut pieces = Vec::new();
        // Where the next bytes of the file and of the skeleton are.
        let (mut at, mut skeleton_at) = (0, 0);
        let ends = self.members.iter().map(|member| member.at).chain([self.size]);
        for (index, gap_end) in ends.enumerate() {
            if let Some(part) = overlap(&range, at, gap_end) {
                pieces.push(Piece::Skeleton(part.start + skeleton_at..part.end + skeleton_at));
            }
            skeleton_at += gap_end - at;
            if let Some(member) = self.members.get(index) {
                at = member.at + member.length;
                if let Some(part) = overlap(&range, member.at, at) {
                    pieces.push(Piece::Member(index, part));
                }
            }
        }
        pieces
    }

    /// The ranges of the file that the skeleton consists of, in order.
    pub fn gaps(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        let starts = [0].into_iter().chain(self.members.iter().map(|member| member.at + member.length));
        let ends = self.members.iter().map(|member| member.at).chain([self.size]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty())
    }
}

/// What of a range lies between `from` and `to`, counted from `from`.
fn overlap(range: &Range<u64>, from: u64, to: u64) -> Option<Range<u64>> {
    let start = range.start.max(from);
    let end = range.end.min(to);
    (start < end).then(|| start - from..end - from)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Takes `range` of a file by its layout, as a reader would.
    fn taken(file: &[u8], layout: &Layout, range: Range<u64>) -> Vec<u8> {
        let slice = |range: &Range<u64>| &file[range.start as usize..range.end as usize];
        let skeleton: Vec<u8> = layout.gaps().flat_map(|gap| slice(&gap).to_vec()).collect();
        assert_eq!(skeleton.len() as u64, layout.skeleton_bytes());
        let mut bytes = Vec::new();
        for piece in layout.pieces(range) {
            match piece {
                Piece::Skeleton(range) => bytes.extend(&skeleton[range.start as usize..range.end as usize]),
                Piece::Member(index, range) => {
                    let at = layout.members[index].at;
                    bytes.extend(slice(&(at + range.start..at + range.end)));
                }
            }
        }
        bytes
    }

    fn layouts() -> impl Strategy<Value = (Vec<u8>, Layout)> {
        let parts = prop::collection::vec((0_usize..40, 1_usize..40), 0..8);
        (parts, 0_usize..40).prop_flat_map(|(parts, tail)| {
            let mut members = Vec::new();
            let mut at = 0;
            for (gap, length) in parts {
                members.push(Member { at: (at + gap) as u64, length: length as u64 });
                at += gap + length;
            }
            let size = at + tail;
            prop::collection::vec(any::<u8>(), size).prop_map(move |file| {
                let layout = Layout::new(size as u64, members.clone()).expect("members follow one another");
                (file, layout)
            })
        })
    }

    proptest! {
        #[test]
        fn every_range_of_a_file_is_the_same_bytes_again(
            (file, layout) in layouts(), from in 0_u64..500, length in 0_u64..500,
        ) {
            prop_assert_eq!(&taken(&file, &layout, 0..layout.size()), &file);
            let (from, to) = (from.min(layout.size()), (from + length).min(layout.size()));
            prop_assert_eq!(taken(&file, &layout, from..to), &file[from.min(to) as usize..to as usize]);
        }

        #[test]
        fn no_members_outside_of_a_file_or_upon_one_another_make_a_layout(
            members in prop::collection::vec((0_u64..60, 0_u64..30), 1..5), size in 0_u64..80,
        ) {
            let members: Vec<Member> = members.into_iter().map(|(at, length)| Member { at, length }).collect();
            let mut bytes = [0_u8; 200];
            let is_sound = members.iter().all(|member| member.length > 0 && member.at + member.length <= size)
                && members.is_sorted_by_key(|member| member.at)
                && members.iter().all(|member| {
                    let range = member.at as usize..(member.at + member.length) as usize;
                    bytes[range].iter_mut().all(|byte| std::mem::replace(byte, 1) == 0)
                });
            prop_assert_eq!(Layout::new(size, members).is_some(), is_sound);
        }
    }

    #[test]
    fn numbers_at_the_end_of_their_range_make_no_layout() {
        assert_eq!(Layout::new(u64::MAX, vec![Member { at: u64::MAX, length: 2 }]), None);
    }
}
