//! What reading repositories takes.

use callboard_auth::sealed::StoredSecrets;
use callboard_platform::egress::AdminUrl;

/// What reading a repository takes besides the database.
#[derive(Debug, Clone)]
pub struct Access<'a> {
    /// Opens stored tokens.
    pub secrets: &'a StoredSecrets,
    /// Makes the requests.
    pub client: AdminUrl,
}
