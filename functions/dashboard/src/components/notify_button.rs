//! *Notify me*: asks for notifications about a project, a test case or a failure cluster, and ends them.

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_http::ApiError;
use callboard_query::notifications::{self, Watched};

use crate::filters;
use crate::visit::Visit;

/// Inputs of `components/notify_button.html`.
#[derive(Debug, Template)]
#[template(path = "components/notify_button.html")]
pub(crate) struct NotifyButton {
    /// The subscription that is on.
    subscription: Option<i64>,
    /// The field that names what it is about, and its id.
    field: &'static str,
    id: i64,
    what: &'static str,
}

impl HtmlSafe for NotifyButton {}

impl NotifyButton {
    /// Nothing for a reader without an account.
    pub(crate) async fn new(visit: &Visit, watched: Watched) -> Result<Option<Self>, ApiError> {
        let Some(user) = visit.caller.user_id() else { return Ok(None) };
        let subscription = notifications::watching(&visit.ctx, user, watched).await?;
        let (field, id, what) = match (watched.test_case, watched.cluster) {
            (Some(case), _) => ("testCaseId", case.get(), "this test fails, passes again or becomes slower"),
            (None, Some(cluster)) => ("clusterId", cluster.get(), "this failure comes back or its fix holds"),
            (None, None) => (
                "projectId",
                watched.project.get().get(),
                "a branch goes red, recovers or a new failure appears",
            ),
        };
        Ok(Some(Self { subscription: subscription.map(|id| id.get()), field, id, what }))
    }
}
