//! Reads of a transaction that are asked together before somebody needs them:
//! several callers that share a transaction ask as often as one.

use super::{Args, Row, Statement};

/// A read with its values.
pub type Read = (&'static Statement, Args);

/// What was read ahead and nobody has asked for yet.
#[derive(Debug, Default)]
pub(super) struct Ahead(Vec<(Read, Vec<Row>)>);

impl Ahead {
    pub(super) fn keep(&mut self, reads: Vec<Read>, rows: Vec<Vec<Row>>) {
        self.0.extend(reads.into_iter().zip(rows));
    }

    /// Lets go of everything: something was written that it may not show.
    pub(super) fn forget(&mut self) {
        self.0.clear();
    }

    /// Lets go of the reads of a statement.
    pub(super) fn forget_of(&mut self, statement: &Statement) {
        self.0.retain(|((known, _), _)| !std::ptr::eq(*known, statement));
    }

    fn find(&self, statement: &Statement, args: &Args) -> Option<usize> {
        self.0.iter().position(|((known, values), _)| std::ptr::eq(*known, statement) && values == args)
    }

    pub(super) fn rows(&self, statement: &Statement, args: &Args) -> Option<&[Row]> {
        self.find(statement, args).map(|at| self.0[at].1.as_slice())
    }

    /// The rows of a read, which count once.
    pub(super) fn take(&mut self, statement: &Statement, args: &Args) -> Option<Vec<Row>> {
        self.find(statement, args).map(|at| self.0.swap_remove(at).1)
    }
}
