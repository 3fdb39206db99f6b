//! What a run says on a pull or merge request: the settings of a project, the words of its states, and the text of
//! comment and status, made of facts.

mod comment;
mod issue;
mod markdown;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::annotations::words;
use crate::ids::ProjectId;
use crate::setting::{SettingsGroup, UnusableSetting, flag, line};
use crate::text::cut;

pub use comment::{
    Audience, Cause, FeedbackFacts, GateVerdict, Incident, NamedTest, NewFailure, comment, status,
};
pub use issue::{IssueFacts, issue_body, issue_title};

/// Characters of the longest name of a status.
const MAX_CONTEXT_CHARS: usize = 80;
/// The keys of the settings.
pub const FEEDBACK_KEYS: [&str; 3] = ["comment", "status", "statusContext"];

words! {
    /// Where a run says something.
    FeedbackKind {
        /// A comment on the request.
        Comment = "comment",
        /// A status of the commit.
        Status = "status",
    }
}

words! {
    /// How far feedback is.
    FeedbackState {
        /// Waits to be sent, or to be sent again.
        Pending = "pending",
        /// Stored before the call, so that a crash in between is noticed.
        Sending = "sending",
        /// It is there.
        Sent = "sent",
        /// Every attempt failed.
        Failed = "failed",
        /// There is no place for it.
        Skipped = "skipped",
    }
}

words! {
    /// What was done at the code host.
    FeedbackAction {
        /// A comment was created.
        Created = "created",
        /// The comment was edited.
        Updated = "updated",
        /// A deleted comment was created anew.
        Recreated = "recreated",
        /// A comment that the account may not edit was left, and another one was created.
        Replaced = "replaced",
        /// The status was set.
        Set = "set",
        /// Nothing was written.
        None = "none",
    }
}

/// Whether the runs of a project say something at its code host; of each key only what somebody set.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackSettings {
    /// Whether they comment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<bool>,
    /// Whether they set a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<bool>,
    /// Name of the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status_context: Option<String>,
}

impl FeedbackSettings {
    /// The kinds that are on.
    pub fn kinds(&self) -> impl Iterator<Item = FeedbackKind> {
        let comment = self.comment.unwrap_or_default().then_some(FeedbackKind::Comment);
        comment.into_iter().chain(self.status.unwrap_or_default().then_some(FeedbackKind::Status))
    }

    /// Name of the status of a project: `callboard/shop` unless another one is set, so that projects of one repository
    /// have one each.
    #[must_use]
    pub fn context(&self, project: ProjectId, project_name: &str) -> String {
        self.status_context.clone().unwrap_or_else(|| default_context(project, project_name))
    }
}

/// Name of the status of a project that sets none. One that is too long ends with the number of the project, so that no
/// two are equal.
#[must_use]
pub fn default_context(project: ProjectId, project_name: &str) -> String {
    let name: String = project_name.chars().filter(|char| !char.is_control()).collect();
    let context = format!("callboard/{name}");
    if context.chars().count() <= MAX_CONTEXT_CHARS {
        return context;
    }
    let end = format!(" #{project}");
    cut(context, MAX_CONTEXT_CHARS - end.chars().count()) + &end
}

impl SettingsGroup for FeedbackSettings {
    const NAME: &'static str = "pr-feedback";

    fn apply(&mut self, body: &Map<String, Value>) -> Result<(), UnusableSetting> {
        let mut changed = self.clone();
        flag(body, "comment", &mut changed.comment)?;
        flag(body, "status", &mut changed.status)?;
        line(body, "statusContext", MAX_CONTEXT_CHARS, &mut changed.status_context)?;
        *self = changed;
        Ok(())
    }
}
