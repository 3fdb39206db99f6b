//! What is kept of an answer.

use std::collections::BTreeSet;

use callboard_auth::scope::Entered;
use callboard_domain::ids::{ProjectId, UserId};

/// An answer with what its request was let into: whoever has lost access to
/// that since does not get the answer again.
pub(super) struct Kept<'b> {
    /// What its request was let into.
    pub(super) entered: Entered,
    /// The answer.
    pub(super) body: &'b [u8],
}

impl<'b> Kept<'b> {
    /// A line of project ids, one of account ids, and the body.
    pub(super) fn encode(&self) -> Vec<u8> {
        fn line(ids: impl Iterator<Item = i64>) -> String {
            ids.map(|id| id.to_string()).collect::<Vec<_>>().join(" ")
        }
        let projects = line(self.entered.projects.iter().map(|id| id.get()));
        let accounts = line(self.entered.accounts.iter().map(|id| id.get()));
        [format!("{projects}\n{accounts}\n").as_bytes(), self.body].concat()
    }

    /// Reads [`Kept::encode`] back.
    pub(super) fn decode(bytes: &'b [u8]) -> Option<Self> {
        fn ids<T: Ord>(line: &[u8], of: impl Fn(i64) -> T) -> Option<BTreeSet<T>> {
            std::str::from_utf8(line)
                .ok()?
                .split_ascii_whitespace()
                .map(|id| id.parse().ok().map(&of))
                .collect()
        }
        let mut parts = bytes.splitn(3, |byte| *byte == b'\n');
        let (projects, accounts, body) = (parts.next()?, parts.next()?, parts.next()?);
        let entered = Entered { projects: ids(projects, ProjectId)?, accounts: ids(accounts, UserId)? };
        Some(Self { entered, body })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kept_answer_is_read_with_what_its_request_was_let_into() {
        let entered = |projects: &[i64], accounts: &[i64]| Entered {
            projects: projects.iter().map(|id| ProjectId(*id)).collect(),
            accounts: accounts.iter().map(|id| UserId(*id)).collect(),
        };
        for entered in [entered(&[], &[]), entered(&[3, 41], &[]), entered(&[], &[7]), entered(&[1], &[2, 3])]
        {
            let kept = Kept { entered: entered.clone(), body: b"a\n\nb" }.encode();
            let read = Kept::decode(&kept).unwrap();
            assert_eq!((read.entered, read.body), (entered, b"a\n\nb".as_slice()));
        }
        for damaged in [&b""[..], b"{}", b"1\n{}", b"x\n\n{}"] {
            assert!(Kept::decode(damaged).is_none(), "{damaged:?}");
        }
    }
}
