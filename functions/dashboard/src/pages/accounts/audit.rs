//! `/settings/audit`: who did what.

mod words;

use askama::Template;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_query::accounts::users::{self, UserFilters};
use callboard_query::audit::{self, AuditActor, AuditFilters, AuditItem};
use callboard_store::audit::KEPT_DAYS;
use serde::Serialize;

use self::words::{Names, Sentence};
use crate::components::{Choice, FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::text;
use crate::visit::{Visit, answer};

/// Entries per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };
/// Accounts one can choose from; the page of any other leads here as well.
const OFFERED: usize = 200;
const DAY_MS: i64 = 86_400_000;
/// Periods one can choose, in days.
const PERIODS: [(&str, i64, &str); 3] =
    [("1", 1, "Last 24 hours"), ("7", 7, "Last 7 days"), ("30", 30, "Last 30 days")];

/// What is asked for; the parameters are those of the API, and `days`.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    actor: Option<UserId>,
    action: Option<String>,
    project: Option<ProjectId>,
    target_kind: Option<String>,
    target_id: Option<i64>,
    days: Option<i64>,
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let (from, to) = query.window()?;
        Ok(Self {
            actor: query.id("actor")?,
            action: query.text("action")?,
            project: query.id("project")?,
            target_kind: query.text("targetType")?,
            target_id: query.number("targetId", 1..=i64::MAX)?,
            days: query.one_of("days", &PERIODS.map(|(word, days, _)| (word, days)))?,
            from,
            to,
            page: query.page(SIZE)?,
        })
    }
}

impl Params {
    fn filters(&self, now: Timestamp) -> AuditFilters {
        let since = self.days.map(|days| Timestamp(now.millis() - days * DAY_MS));
        AuditFilters {
            user: self.actor,
            action: self.action.clone(),
            project: self.project,
            target_kind: self.target_kind.clone(),
            target_id: self.target_id,
            from: self.from.max(since),
            to: self.to,
        }
    }

    fn is_filtered(&self, now: Timestamp) -> bool {
        let AuditFilters { user, action, project, target_kind, target_id, from, to } = self.filters(now);
        let times = from.is_some() || to.is_some();
        let places = project.is_some() || target_kind.is_some() || target_id.is_some();
        user.is_some() || action.is_some() || places || times
    }

    fn bar(&self, visit: &Visit, people: Vec<Choice>) -> FilterBar {
        let periods = PERIODS.map(|(word, _, label)| Choice::new(word, label));
        let id = |id: Option<i64>| id.map(|id| id.to_string());
        let moment = |at: Option<Timestamp>| at.map(text::date_and_time);
        FilterBar::new(&visit.address, &[])
            .select("actor", "Who", "Anybody", people, id(self.actor.map(UserId::get)).as_slice())
            .select("action", "What", "Everything", subjects(), self.action.as_slice())
            .select("days", "When", "Any time", periods, id(self.days).as_slice())
            .chip_only("project", "In project", id(self.project.map(ProjectId::get)).as_ref())
            .chip_only("targetType", "To a", self.target_kind.as_ref())
            .chip_only("targetId", "With id", id(self.target_id).as_ref())
            .chip_only("from", "From", moment(self.from).as_ref())
            .chip_only("to", "Until", moment(self.to).as_ref())
    }
}

/// Those with an account, as many as one can choose from.
async fn people(visit: &Visit) -> Result<Names, ApiError> {
    let found = users::list(&visit.ctx, &visit.caller, &UserFilters::default(), None, OFFERED).await?;
    Ok(found.items.into_iter().map(|user| (user.id, user.username)).collect())
}

/// Whose doings one can choose, by name: people, and who is asked for.
fn choices(people: &Names, asked: Option<UserId>) -> Vec<Choice> {
    let mut named: Vec<(&str, i64)> = people.iter().map(|(id, name)| (name.as_str(), *id)).collect();
    named.sort_unstable();
    let mut choices: Vec<Choice> =
        named.into_iter().map(|(name, id)| Choice::new(id.to_string(), name)).collect();
    if let Some(id) = asked.map(UserId::get)
        && !people.contains_key(&id)
    {
        choices.push(Choice::new(id.to_string(), format!("account {id}")));
    }
    choices
}

/// The subjects of all actions, each once, in their order.
fn subjects() -> Vec<Choice> {
    let mut subjects: Vec<&str> = Vec::new();
    for action in AuditAction::ALL {
        let subject = action.as_str().split('.').next().unwrap_or_default();
        if !subjects.contains(&subject) {
            subjects.push(subject);
        }
    }
    subjects.into_iter().map(|subject| Choice::new(subject, words::subject_in_words(subject))).collect()
}

/// An entry in words.
struct Entry {
    at: Timestamp,
    actor: String,
    actor_href: Option<String>,
    key_prefix: Option<String>,
    /// The action as the API spells it.
    action: String,
    sentence: Sentence,
    details: Vec<(String, String)>,
    project: Option<(i64, String)>,
}

impl Entry {
    fn from_item(item: AuditItem, names: &Names) -> Self {
        let sentence = Sentence::from_item(&item, names);
        let details = words::details(&item, sentence.object.as_ref(), names);
        Self {
            at: item.at,
            actor: actor(&item.actor),
            actor_href: item
                .actor
                .username
                .as_ref()
                .and(item.actor.user_id)
                .map(|id| format!("/settings/users/{id}")),
            key_prefix: item.actor.key_prefix,
            details,
            sentence,
            action: item.action,
            project: item
                .project_id
                // What was done to a project itself names it already.
                .filter(|id| item.target_type.as_deref() != Some("project") || item.target_id != Some(*id))
                .map(|id| (id, item.project_name.unwrap_or_else(|| id.to_string()))),
        }
    }
}

fn actor(actor: &AuditActor) -> String {
    match (&actor.username, actor.user_id) {
        (Some(username), _) => username.clone(),
        (None, Some(id)) => format!("deleted account {id}"),
        (None, None) if actor.system => "Callboard itself".to_owned(),
        (None, None) => "nobody signed in".to_owned(),
    }
}

/// Inputs of `pages/accounts/audit.html`.
#[derive(Template)]
#[template(path = "pages/accounts/audit.html")]
struct AuditPage {
    shell: Shell,
    tabs: SettingsTabs,
    kept_days: i64,
    filters: FilterBar,
    is_filtered: bool,
    entries: Vec<Entry>,
    pager: Pager,
}

/// The audit log.
pub(crate) async fn audit(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::AuditPage, &asked)?;
    let after = cursors.decode(asked.page.cursor.as_deref())?;
    let found = audit::list(&visit.ctx, &asked.filters(visit.now), after, asked.page.rows()).await?;
    let found = cursors.page(found)?;
    let (shown, goes_on) = (found.items.len(), found.next_cursor.is_some());
    let total = if visit.address.is_part(goes_on) {
        audit::count(&visit.ctx, &asked.filters(visit.now)).await?
    } else {
        None
    };
    let people = people(&visit).await?;
    answer(&AuditPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Audit),
        kept_days: KEPT_DAYS,
        filters: asked.bar(&visit, choices(&people, asked.actor)).tally("action", shown, goes_on, total),
        is_filtered: asked.is_filtered(visit.now),
        entries: found.items.into_iter().map(|item| Entry::from_item(item, &people)).collect(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        shell: Shell::new(&visit, Section::Settings, "Audit log")
            .await?
            .under("Settings", "/settings")
            .here("Audit log"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_action_can_be_filtered_by_its_subject() {
        for choice in subjects() {
            assert!(AuditAction::beginning_with(&choice.value).next().is_some(), "{}", choice.value);
        }
    }
}
