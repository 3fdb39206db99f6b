//! What entries of the audit log tell, in the words people use for it.

use std::borrow::Cow;
use std::collections::HashMap;

use callboard_domain::audit::AuditAction;
use callboard_query::audit::AuditItem;
use serde_json::{Map, Value};

/// Details that the sentence of an entry tells already.
const IN_SENTENCE: [&str; 7] = ["route", "group", "secret", "action", "pinned", "entityType", "entityId"];

/// Accounts by their id, as far as their names are known.
pub(super) type Names = HashMap<i64, String>;

/// What happened, in one sentence: words, and what it was done to.
pub(super) struct Sentence {
    /// What was done.
    pub words: String,
    /// To what.
    pub object: Option<Object>,
}

/// What something was done to.
pub(super) struct Object {
    /// What it is and what it is called: `account ada`, `run 12`.
    pub name: String,
    /// Where it is shown, as far as it is still there.
    pub href: Option<String>,
}

impl Sentence {
    /// What an entry tells. An action this version does not know is spelled
    /// out.
    pub(super) fn from_item(item: &AuditItem, names: &Names) -> Self {
        let action = action_of(item);
        let known = AuditAction::ALL.iter().find(|known| known.as_str() == action);
        let (words, leads) = match known {
            Some(known) => more_exactly(*known, item).unwrap_or_else(|| {
                let (words, leads) = done(*known);
                (words.into(), leads)
            }),
            None => (in_words(action).into(), ""),
        };
        // What people do about their own account is not said to be done to it.
        let is_own = item.target_type.as_deref() == Some("user") && item.target_id == item.actor.user_id;
        let object = Object::from_item(item, names).filter(|_| leads.is_empty() || !is_own);
        let words = match &object {
            Some(_) if !leads.is_empty() => format!("{words} {leads}"),
            _ => words.into_owned(),
        };
        Self { words, object }
    }
}

/// The word of what was done; a tool of the MCP endpoint tells it in the
/// detail.
fn action_of(item: &AuditItem) -> &str {
    let by_tool = item.detail.get("action").and_then(Value::as_str);
    by_tool.filter(|_| item.action == AuditAction::McpWrite.as_str()).unwrap_or(&item.action)
}

/// What was done, and what leads from there to what it was done to, if that
/// can be left out.
const fn done(action: AuditAction) -> (&'static str, &'static str) {
    match action {
        AuditAction::Setup => ("Set up the service", "with"),
        AuditAction::LoginSucceeded => ("Signed in", "as"),
        AuditAction::LoginFailed => ("Failed to sign in", "as"),
        AuditAction::LoginLimited => ("Blocked after too many failed sign-ins", "as"),
        AuditAction::Logout => ("Signed out", "as"),
        AuditAction::SessionsRevoked => ("Ended sessions", "of"),
        AuditAction::PasswordChanged => ("Changed the password", "of"),
        AuditAction::PasswordChangeFailed => ("Failed to change the password", "of"),
        AuditAction::PasswordReset => ("Set a password with an emailed link", "for"),
        AuditAction::PasswordResetRequested => ("Requested a password link", "for"),
        AuditAction::EmailChanged => ("Changed the e-mail address", "of"),
        AuditAction::EmailVerificationRequested => ("Requested an email confirmation", "of"),
        AuditAction::EmailVerified => ("Confirmed the e-mail address", "of"),
        AuditAction::UserDisabled => ("Disabled", ""),
        AuditAction::UserEnabled => ("Enabled", ""),
        AuditAction::KeyRevoked => ("Revoked", ""),
        AuditAction::InvitationCreated => ("Invited", ""),
        AuditAction::InvitationResent => ("Resent the invitation", "to"),
        AuditAction::InvitationAccepted => ("Accepted the invitation", "of"),
        AuditAction::InvitationRevoked => ("Revoked the invitation", "of"),
        AuditAction::AssignmentsChanged => ("Changed access to projects", "of"),
        AuditAction::OauthSucceeded => ("Signed in at a provider", "as"),
        AuditAction::OauthRefused => ("Provider sign-in denied", "as"),
        AuditAction::OauthLinked => ("Linked a provider", "to"),
        AuditAction::OauthUnlinked => ("Unlinked a provider", "from"),
        AuditAction::LinkCreated => ("Added a link", "to"),
        AuditAction::LinkChanged => ("Changed a link", "of"),
        AuditAction::LinkDeleted => ("Removed a link", "from"),
        AuditAction::ExportCreated => ("Requested an export", "of"),
        AuditAction::LocatorPicked => ("Chose another locator", "for"),
        AuditAction::GateJudged => ("Evaluated a gate", ""),
        AuditAction::TestClassified => ("Looked for the cause of flakiness", "of"),
        AuditAction::QuarantineEntered => ("Put into quarantine", ""),
        AuditAction::QuarantineLeft => ("Released from quarantine", ""),
        AuditAction::SettingsChanged => ("Changed settings", "of"),
        AuditAction::RetentionQueued => ("Shortened retention (pending)", "of"),
        AuditAction::RetentionUndone => ("Undid shortening retention", "of"),
        AuditAction::RetentionApplied => ("Shortened retention", "of"),
        AuditAction::SecretSet => ("Set a secret", "of"),
        AuditAction::SecretCleared => ("Removed a secret", "of"),
        AuditAction::TokenMinted => ("Issued a token", "for"),
        AuditAction::TokenRevoked => ("Revoked the tokens", "of"),
        AuditAction::AccessRefused => ("Access denied", "to"),
        AuditAction::ChangeRefused => ("Change denied", "of"),
        AuditAction::DiagnosisRequested => ("Requested a diagnosis", "of"),
        AuditAction::DiagnosisCancelled => ("Cancelled a diagnosis", "of"),
        AuditAction::DiagnosisRated => ("Rated a diagnosis", "of"),
        AuditAction::ClusterMerged => ("Merged", ""),
        AuditAction::ClusterExtracted => ("Moved tests out", "of"),
        AuditAction::McpWrite => ("Changed through MCP", ""),
        AuditAction::CleanedUp => ("Deleted old runs", ""),
        AuditAction::ChannelUnsubscribed => ("Unsubscribed from", ""),
        AuditAction::DeliveryRepeated => ("Sent a message again", "through"),
        AuditAction::FeedbackRepeated => ("Posted comment and status again of", ""),
        AuditAction::DeletionRestored => ("Restored a deletion", ""),
        AuditAction::UserCreated
        | AuditAction::KeyCreated
        | AuditAction::ProjectCreated
        | AuditAction::TagCreated
        | AuditAction::MarkerCreated
        | AuditAction::FunctionCreated
        | AuditAction::ChannelCreated
        | AuditAction::SubscriptionCreated
        | AuditAction::PolicyCreated => ("Created", ""),
        AuditAction::UserChanged
        | AuditAction::TestCaseChanged
        | AuditAction::ProjectChanged
        | AuditAction::TagChanged
        | AuditAction::MarkerChanged
        | AuditAction::FunctionChanged
        | AuditAction::ChannelChanged
        | AuditAction::SubscriptionChanged
        | AuditAction::RunChanged
        | AuditAction::PolicyChanged
        | AuditAction::ClusterChanged => ("Changed", ""),
        AuditAction::UserDeleted
        | AuditAction::ProjectDeleted
        | AuditAction::TagDeleted
        | AuditAction::MarkerDeleted
        | AuditAction::FunctionDeleted
        | AuditAction::ChannelDeleted
        | AuditAction::SubscriptionDeleted
        | AuditAction::RunDeleted
        | AuditAction::PolicyDeleted => ("Deleted", ""),
    }
}

/// The same where the detail or the target says more than the action.
fn more_exactly(action: AuditAction, item: &AuditItem) -> Option<(Cow<'static, str>, &'static str)> {
    let text = |name: &str| item.detail.get(name).and_then(Value::as_str);
    let about = |name: &str| text(name).map(|about| in_words(about).to_lowercase());
    let target = item.target_type.as_deref();
    Some(match action {
        AuditAction::UserChanged if item.detail.contains_key("role") => ("Changed the role".into(), "of"),
        AuditAction::AssignmentsChanged if target == Some("project") => ("Changed the members".into(), "of"),
        AuditAction::AssignmentsChanged if target.is_none() => ("Enabled sign-in".into(), ""),
        AuditAction::RunChanged if text("status") == Some("cancelled") => ("Cancelled".into(), ""),
        AuditAction::RunChanged => match item.detail.get("pinned")?.as_bool()? {
            true => ("Pinned".into(), ""),
            false => ("Unpinned".into(), ""),
        },
        AuditAction::RunDeleted if target == Some("deletion") => ("Deleted runs".into(), ""),
        AuditAction::DeletionRestored => (format!("Restored {}", text("label")?).into(), ""),
        AuditAction::SettingsChanged => {
            (format!("Changed the settings for {}", about("group")?).into(), "of")
        }
        AuditAction::SecretSet => (format!("Set the {}", about("secret")?).into(), "of"),
        AuditAction::SecretCleared => (format!("Removed the {}", about("secret")?).into(), "of"),
        AuditAction::AccessRefused | AuditAction::ChangeRefused => {
            (format!("Denied: {}", about("route")?.replace("api key", "API key")).into(), "on")
        }
        _ => return None,
    })
}

impl Object {
    /// What an entry is about: of a link what it hangs on, of an invitation
    /// who is invited.
    fn from_item(item: &AuditItem, names: &Names) -> Option<Self> {
        let number = |name: &str| item.detail.get(name).and_then(Value::as_i64);
        let text = |name: &str| item.detail.get(name).and_then(Value::as_str);
        let is_invited = item.target_type.as_deref() == Some("invitation") && number("user").is_some();
        let (kind, id) = match item.target_type.as_deref()? {
            // Neither is shown anywhere; what was deleted or set is in the sentence.
            "deletion" | "settings" => return None,
            "link" if text("entityType").is_some() => (text("entityType")?, number("entityId")),
            "invitation" if is_invited => ("user", number("user")),
            kind => (kind, item.target_id),
        };
        let told = match kind {
            "user" => text("username").or_else(|| names.get(&id?).map(String::as_str)),
            "api_key" => text("prefix"),
            "tag" => text("text"),
            "marker" => text("label"),
            "project" | "gate_policy" | "test_function" => text("name"),
            _ => None,
        };
        let name = item.target_name.as_deref().or(told);
        let folder = match kind {
            // Without a name it is gone, unless it is not the target itself.
            "user" => (item.target_name.is_some() || is_invited).then_some("/settings/users"),
            "project" => item.target_name.is_some().then_some("/projects"),
            "run" => (item.action != AuditAction::RunDeleted.as_str()).then_some("/test-runs"),
            "cluster" => Some("/failure-clusters"),
            "test_case" => Some("/test-cases"),
            "execution" => Some("/test-run-cases"),
            _ => None,
        };
        let name = match (name, id) {
            (Some(name), _) => format!("{} {name}", kind_in_words(kind)),
            (None, Some(id)) => format!("{} {id}", kind_in_words(kind)),
            (None, None) => kind_in_words(kind),
        };
        Some(Self { name, href: folder.zip(id).map(|(folder, id)| format!("{folder}/{id}")) })
    }

    /// Whether its name ends with this.
    fn says(&self, said: &str) -> bool {
        self.name.ends_with(&format!(" {said}"))
    }
}

/// A kind of thing, inside a sentence.
fn kind_in_words(kind: &str) -> String {
    match kind {
        "user" => "account".to_owned(),
        "api_key" => "API key".to_owned(),
        "test_case" => "test".to_owned(),
        "execution" => "result".to_owned(),
        kind => in_words(kind).to_lowercase(),
    }
}

/// What several actions are about, by the first part of their spelling.
pub(super) fn subject_in_words(subject: &str) -> String {
    let words = match subject {
        "setup" => "First administrator",
        "login" => "Signing in",
        "logout" => "Signing out",
        "oauth" => "Signing in at a provider",
        "sessions" => "Sessions",
        "password" => "Passwords",
        "email" => "E-mail addresses",
        "user" => "Accounts",
        "key" => "API keys",
        "invitation" => "Invitations",
        "assignments" => "Access to projects",
        "policy" => "Gate policies",
        "settings" => "Settings",
        "retention" => "Retention",
        "quarantine" => "Quarantine",
        "access" => "Refused access",
        "change" => "Refused changes",
        "mcp" => "Changes through MCP",
        "cleanup" => "Clean-ups",
        other => return format!("{}s", in_words(other)),
    };
    words.to_owned()
}

/// `password_reset` as `Password reset`, `isGlobal` as `Is global`.
fn in_words(word: &str) -> String {
    let mut words = String::new();
    for char in word.chars() {
        match char {
            '.' | '_' | '-' => words.push(' '),
            _ if words.is_empty() => words.extend(char.to_uppercase()),
            _ if char.is_uppercase() => {
                words.push(' ');
                words.extend(char.to_lowercase());
            }
            _ => words.push(char),
        }
    }
    words
}

/// What else is known, without what says nothing and what the sentence tells.
pub(super) fn details(item: &AuditItem, object: Option<&Object>, names: &Names) -> Vec<(String, String)> {
    let detail = &item.detail;
    // The account a detail names; what is one's own goes without saying.
    let account = |name: &str, value: &Value| value.as_i64().filter(|_| name == "user");
    let named = |id: i64| names.get(&id).cloned().unwrap_or_else(|| id.to_string());
    let is_told = |name: &str, value: &Value| {
        let account = account(name, value);
        let said = account.map(named).or_else(|| value.as_str().map(str::to_owned));
        IN_SENTENCE.contains(&name)
            || account.is_some() && account == item.actor.user_id
            || said.is_some_and(|said| object.is_some_and(|object| object.says(&said)))
            || name == "changed" && are_told(value, detail)
    };
    let rest = detail.iter().filter(|(name, value)| !is_told(name, value));
    rest.filter_map(|(name, value)| {
        let read = plain(value)?;
        let value = account(name, value).map_or(read, named);
        Some(match name.as_str() {
            // An error code reads as words do.
            "code" => ("reason".to_owned(), in_words(&value).to_lowercase()),
            "user" => ("of account".to_owned(), value),
            "isGlobal" => ("all projects".to_owned(), value),
            "globalAccounts" => ("accounts that kept all projects".to_owned(), value),
            "tool" => ("through MCP with".to_owned(), value),
            _ => (in_words(name).to_lowercase(), value),
        })
    })
    .collect()
}

/// Whether a list names only what a detail has a value of.
fn are_told(names: &Value, detail: &Map<String, Value>) -> bool {
    let is_told = |name: &Value| name.as_str().is_some_and(|name| detail.contains_key(name));
    names.as_array().is_some_and(|names| names.iter().all(is_told))
}

/// A value as people read it; a change as what it led from and to.
fn plain(value: &Value) -> Option<String> {
    let read = match value {
        Value::Null => return None,
        Value::String(text) => text.clone(),
        Value::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        Value::Array(list) => list.iter().filter_map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(entries) => {
            let change = [("before", "after"), ("from", "to")].into_iter().find_map(|(from, to)| {
                let side = |value: &Value| plain(value).unwrap_or_else(|| "none".to_owned());
                Some(format!("{} → {}", side(entries.get(from)?), side(entries.get(to)?)))
            });
            change.unwrap_or_else(|| {
                let read = entries.iter().filter_map(|(name, value)| {
                    Some(format!("{} {}", in_words(name).to_lowercase(), plain(value)?))
                });
                read.collect::<Vec<_>>().join(", ")
            })
        }
        Value::Number(number) => number.to_string(),
    };
    (!read.is_empty()).then_some(read)
}

#[cfg(test)]
mod tests {
    use callboard_domain::time::Timestamp;
    use callboard_query::audit::AuditActor;
    use serde_json::json;

    use super::*;

    /// An entry by account 1 about something in a detail.
    fn entry(action: &str, (kind, id, name): (&str, i64, Option<&str>), detail: Value) -> AuditItem {
        let actor = AuditActor {
            user_id: Some(1),
            username: Some("ada".to_owned()),
            key_id: None,
            key_prefix: None,
            system: false,
        };
        let Value::Object(detail) = detail else { unreachable!("an object is given below") };
        AuditItem {
            id: 1,
            at: Timestamp(0),
            actor,
            action: action.to_owned(),
            target_type: Some(kind.to_owned()),
            target_id: Some(id),
            target_name: name.map(str::to_owned),
            project_id: None,
            project_name: None,
            address_hash: None,
            detail,
        }
    }

    fn read(item: &AuditItem) -> String {
        let names = Names::from([(1, "ada".to_owned()), (3, "cy".to_owned())]);
        let Sentence { words, object } = Sentence::from_item(item, &names);
        let mut read = words;
        for (name, value) in details(item, object.as_ref(), &names) {
            read = format!("{read} [{name} {value}]");
        }
        match object {
            Some(object) => format!("{read} / {}", object.name),
            None => read,
        }
    }

    #[test]
    fn an_entry_reads_as_what_somebody_did() {
        let bo = ("user", 2, Some("bo"));
        let role = json!({ "changed": ["role"], "role": { "from": "reporter", "to": "user" } });
        let key = |of: i64| json!({ "user": of, "prefix": "cb_12", "expiresAt": null });
        let refused = json!({ "route": "DeleteUser", "code": "insufficient_role" });
        let of_invitation = json!({ "route": "RevokeInvitation", "code": "insufficient_role" });
        let own_key = json!({ "route": "CreateApiKey", "code": "limit_reached" });
        let invited = json!({ "user": 12, "role": "user" });
        let by_tool =
            json!({ "tool": "set_status", "action": "cluster.changed", "before": null, "after": null });
        for (item, expected) in [
            (entry("user.changed", bo, role), "Changed the role of [role reporter → user] / account bo"),
            (entry("user.deleted", ("user", 2, None), json!({ "username": "bo" })), "Deleted / account bo"),
            (entry("key.created", ("api_key", 7, None), key(1)), "Created / API key cb_12"),
            (entry("key.created", ("api_key", 7, None), key(3)), "Created [of account cy] / API key cb_12"),
            (entry("key.created", ("api_key", 7, None), key(4)), "Created [of account 4] / API key cb_12"),
            (entry("password.changed", ("user", 1, Some("ada")), json!({})), "Changed the password"),
            (entry("run.changed", ("run", 5, None), json!({ "pinned": true })), "Pinned / run 5"),
            (
                entry("gate.judged", ("run", 5, None), json!({ "policy": null, "passed": false })),
                "Evaluated a gate [passed no] / run 5",
            ),
            (
                entry("test.classified", ("test_case", 6, None), json!({ "rootCause": "timing" })),
                "Looked for the cause of flakiness of [root cause timing] / test 6",
            ),
            (
                entry("secret.set", ("project", 3, Some("shop")), json!({ "secret": "badgeToken" })),
                "Set the badge token of / project shop",
            ),
            (
                entry("change.refused", bo, refused),
                "Denied: delete user on [reason insufficient role] / account bo",
            ),
            (
                entry("change.refused", ("invitation", 4, None), of_invitation),
                "Denied: revoke invitation on [reason insufficient role] / invitation 4",
            ),
            (
                entry("change.refused", ("user", 1, Some("ada")), own_key),
                "Denied: create API key [reason limit reached]",
            ),
            (
                entry("invitation.created", ("invitation", 4, None), invited),
                "Invited [role user] / account 12",
            ),
            (
                entry("invitation.created", ("invitation", 4, None), json!({ "user": 3 })),
                "Invited / account cy",
            ),
            (
                entry("mcp.write", ("cluster", 4, None), by_tool),
                "Changed [through MCP with set_status] / cluster 4",
            ),
            (entry("moon.landed", ("moon", 1, None), json!({})), "Moon landed / moon 1"),
        ] {
            assert_eq!(read(&item), expected);
        }
    }

    #[test]
    fn spellings_become_words() {
        assert_eq!(in_words("password.reset_requested"), "Password reset requested");
        assert_eq!(in_words("projectIds"), "Project ids");
        let told = json!({
            "username": "ada", "isGlobal": true, "added": [1, 2], "removed": [], "x": null,
            "note": { "before": null, "after": "known" }, "limit": { "perDay": 5 },
        });
        let item = entry("user.created", ("user", 2, None), told);
        let read: Vec<String> = details(&item, None, &Names::new())
            .iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        assert_eq!(
            read,
            ["added 1, 2", "all projects yes", "limit per day 5", "note none → known", "username ada"]
        );
    }
}
