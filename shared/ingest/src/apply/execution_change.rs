//! What a submission changes of an execution.

use callboard_store::executions::ExecutionRow;

/// An execution before and after a submission.
#[derive(Debug)]
pub(crate) struct ExecutionChange {
    /// As it was stored; `None` for a new one.
    pub(crate) before: Option<ExecutionRow>,
    /// As it is now.
    pub(crate) after: ExecutionRow,
}
