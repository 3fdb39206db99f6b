//! Any bytes as an archive: whatever entries it claims to have, a file put
//! together from parts cut out where they are is the file again.
#![no_main]

use std::convert::Infallible;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callboard_playwright::trace::pool::{Candidate, HEADER_BYTES, Layout, Member, Piece, candidates};
use callboard_playwright::trace::{Archive, ByteRanges, Limits};
use libfuzzer_sys::fuzz_target;

struct Memory<'a>(&'a [u8]);

impl ByteRanges for Memory<'_> {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    async fn read(&self, range: Range<u64>) -> Result<Vec<u8>, Infallible> {
        Ok(self.0[range.start as usize..range.end as usize].to_vec())
    }
}

/// Nothing here ever waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => unreachable!("memory is always ready"),
    }
}

fuzz_target!(|file: &[u8]| {
    let size = file.len() as u64;
    let Ok(archive) = now(Archive::open(&Memory(file), Limits::DEFAULT)) else { return };
    let members: Vec<Member> = candidates(&archive, size)
        .into_iter()
        .filter_map(|Candidate { header_at, length }| {
            let header = file.get(header_at as usize..)?.first_chunk::<HEADER_BYTES>()?;
            let at = header_at + HEADER_BYTES as u64 + Candidate::bytes_between(header)?;
            Some(Member { at, length })
        })
        .collect();
    let Some(layout) = Layout::new(size, members.clone()) else { return };
    let slice = |range: Range<u64>| &file[range.start as usize..range.end as usize];
    let skeleton: Vec<u8> = layout.gaps().flat_map(|gap| slice(gap).to_vec()).collect();
    let whole: Vec<u8> = layout
        .pieces(0..size)
        .into_iter()
        .flat_map(|piece| match piece {
            Piece::Skeleton(range) => skeleton[range.start as usize..range.end as usize].to_vec(),
            Piece::Member(index, range) => {
                let at = members[index].at;
                slice(at + range.start..at + range.end).to_vec()
            }
        })
        .collect();
    assert_eq!(whole, file);
});
