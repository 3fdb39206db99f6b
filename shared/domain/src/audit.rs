//! Words of the audit log: what happened that somebody may ask about later.

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $word:literal),+ $(,)?) => {
        /// What was done, or tried.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum AuditAction {
            $($(#[$doc])* $name),+
        }

        impl AuditAction {
            /// Every action.
            pub const ALL: &'static [Self] = &[$(Self::$name),+];

            /// The spelling on the wire and in SQL: a subject and what became
            /// of it.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word),+
                }
            }
        }
    };
}

actions! {
    /// The first administrator was made.
    Setup = "setup",
    /// Somebody signed in.
    LoginSucceeded = "login.succeeded",
    /// Somebody gave a wrong name or password.
    LoginFailed = "login.failed",
    /// Somebody was turned away after too many failures.
    LoginLimited = "login.limited",
    /// Somebody signed out.
    Logout = "logout",
    /// Sessions were ended by hand.
    SessionsRevoked = "sessions.revoked",
    /// A password was changed by its owner.
    PasswordChanged = "password.changed",
    /// Somebody gave a wrong password where theirs was to be changed.
    PasswordChangeFailed = "password.change_failed",
    /// A password was set with a mailed link.
    PasswordReset = "password.reset",
    /// A link for a new password was asked for.
    PasswordResetRequested = "password.reset_requested",
    /// An e-mail address was changed.
    EmailChanged = "email.changed",
    /// A link to prove an e-mail address was asked for.
    EmailVerificationRequested = "email.verification_requested",
    /// An e-mail address was proven.
    EmailVerified = "email.verified",
    /// An account was made.
    UserCreated = "user.created",
    /// An account was changed.
    UserChanged = "user.changed",
    /// An account was disabled.
    UserDisabled = "user.disabled",
    /// A disabled account was enabled.
    UserEnabled = "user.enabled",
    /// An account was deleted.
    UserDeleted = "user.deleted",
    /// An API key was made.
    KeyCreated = "key.created",
    /// An API key was revoked.
    KeyRevoked = "key.revoked",
    /// Somebody was invited.
    InvitationCreated = "invitation.created",
    /// An invitation was sent again.
    InvitationResent = "invitation.resent",
    /// An invitation was accepted.
    InvitationAccepted = "invitation.accepted",
    /// An invitation was revoked.
    InvitationRevoked = "invitation.revoked",
    /// Which projects somebody reaches was changed.
    AssignmentsChanged = "assignments.changed",
    /// Somebody signed in elsewhere.
    OauthSucceeded = "oauth.succeeded",
    /// A sign-in elsewhere was refused.
    OauthRefused = "oauth.refused",
    /// An identity elsewhere was linked.
    OauthLinked = "oauth.linked",
    /// An identity elsewhere was unlinked.
    OauthUnlinked = "oauth.unlinked",
    /// A project was made.
    ProjectCreated = "project.created",
    /// A project was changed.
    ProjectChanged = "project.changed",
    /// A project was deleted.
    ProjectDeleted = "project.deleted",
    /// A tag was made.
    TagCreated = "tag.created",
    /// A tag was changed.
    TagChanged = "tag.changed",
    /// A tag was deleted.
    TagDeleted = "tag.deleted",
    /// A notification channel was created.
    ChannelCreated = "channel.created",
    /// A notification channel was changed.
    ChannelChanged = "channel.changed",
    /// A notification channel was deleted.
    ChannelDeleted = "channel.deleted",
    /// The recipient of a channel's mails wants no more of them.
    ChannelUnsubscribed = "channel.unsubscribed",
    /// A message of a channel was sent again.
    DeliveryRepeated = "delivery.repeated",
    /// Posted the comment and the status of a run again.
    FeedbackRepeated = "feedback.repeated",
    /// A subscription to notifications was created.
    SubscriptionCreated = "subscription.created",
    /// A subscription to notifications was changed.
    SubscriptionChanged = "subscription.changed",
    /// A subscription to notifications was deleted.
    SubscriptionDeleted = "subscription.deleted",
    /// A link was made.
    LinkCreated = "link.created",
    /// A link was changed.
    LinkChanged = "link.changed",
    /// A link was deleted.
    LinkDeleted = "link.deleted",
    /// A marker was set.
    MarkerCreated = "marker.created",
    /// A marker was changed.
    MarkerChanged = "marker.changed",
    /// A marker was removed.
    MarkerDeleted = "marker.deleted",
    /// An export was asked for.
    ExportCreated = "export.created",
    /// A function of a suite was stored.
    FunctionCreated = "function.created",
    /// A function of a suite was changed.
    FunctionChanged = "function.changed",
    /// A function of a suite was removed.
    FunctionDeleted = "function.deleted",
    /// A locator was chosen instead of one that was lost.
    LocatorPicked = "locator.picked",
    /// A run was changed by hand.
    RunChanged = "run.changed",
    /// A run was deleted.
    RunDeleted = "run.deleted",
    /// A deletion was restored.
    DeletionRestored = "deletion.restored",
    /// A policy of gates was made.
    PolicyCreated = "policy.created",
    /// A policy of gates was changed.
    PolicyChanged = "policy.changed",
    /// A policy of gates was deleted.
    PolicyDeleted = "policy.deleted",
    /// What a gate said about a run was kept.
    GateJudged = "gate.judged",
    /// Why a test is flaky was found out.
    TestClassified = "test.classified",
    /// A test was put into quarantine.
    QuarantineEntered = "quarantine.entered",
    /// A test was released from quarantine.
    QuarantineLeft = "quarantine.left",
    /// Settings were changed; their names are in the detail, their values are
    /// not.
    SettingsChanged = "settings.changed",
    /// A change of retention that keeps less was queued; the detail says what
    /// it deletes and when.
    RetentionQueued = "retention.queued",
    /// A queued change of retention was undone.
    RetentionUndone = "retention.undone",
    /// A queued change of retention came into force.
    RetentionApplied = "retention.applied",
    /// A stored secret was set.
    SecretSet = "secret.set",
    /// A stored secret was cleared.
    SecretCleared = "secret.cleared",
    /// A token of a run was made.
    TokenMinted = "token.minted",
    /// The tokens of a run were revoked.
    TokenRevoked = "token.revoked",
    /// A caller was refused what it asked for.
    AccessRefused = "access.refused",
    /// A change of accounts, projects or settings was asked for and could not
    /// be made.
    ChangeRefused = "change.refused",
    /// A failure cluster was changed by hand.
    ClusterChanged = "cluster.changed",
    /// A failure cluster was made part of another one.
    ClusterMerged = "cluster.merged",
    /// Tests were taken out of a failure cluster.
    ClusterExtracted = "cluster.extracted",
    /// A diagnosis of a failure cluster was requested.
    DiagnosisRequested = "diagnosis.requested",
    /// A diagnosis was cancelled.
    DiagnosisCancelled = "diagnosis.cancelled",
    /// A diagnosis was rated.
    DiagnosisRated = "diagnosis.rated",
    /// Two histories of tests became one, or two again.
    TestCaseChanged = "test_case.changed",
    /// Something was written through the MCP endpoint.
    McpWrite = "mcp.write",
    /// Old data was cleaned up by hand.
    CleanedUp = "cleanup",
}

impl AuditAction {
    /// The actions whose spelling begins so.
    pub fn beginning_with(prefix: &str) -> impl Iterator<Item = Self> {
        Self::ALL.iter().copied().filter(move |action| action.as_str().starts_with(prefix))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_names_a_family_of_actions() {
        assert!(AuditAction::beginning_with("login.").eq([
            AuditAction::LoginSucceeded,
            AuditAction::LoginFailed,
            AuditAction::LoginLimited
        ]));
        assert!(AuditAction::beginning_with("setup").eq([AuditAction::Setup]));
        assert_eq!(AuditAction::beginning_with("nothing").count(), 0);
    }
}
