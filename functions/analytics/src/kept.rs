//! Filters for which no numbers are kept.

use callboard_http::ApiError;
use callboard_http::extract::QueryReader;

/// Refuses filters by which the numbers of an answer are not kept: answering
/// with all of them would look as if the filter had been applied.
pub(crate) fn refuse(query: &QueryReader, names: &[&str]) -> Result<(), ApiError> {
    for name in names {
        if query.single(name)?.is_some() {
            let message = format!("{name} is not asked for here: these numbers are of all runs together.");
            return Err(ApiError::invalid_query(name, message));
        }
    }
    Ok(())
}
