//! What is said about a password that was accepted.

use callboard_auth::password::PasswordRemark;

/// The remark as sentences of an answer.
pub(crate) fn warnings(remark: Option<PasswordRemark>) -> Vec<&'static str> {
    remark.map(PasswordRemark::sentence).into_iter().collect()
}
