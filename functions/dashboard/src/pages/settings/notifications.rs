//! `/settings/notifications`: channels, subscriptions to events, and what
//! became of each message.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::RouteId;
use callboard_domain::ids::{ChannelId, ProjectId, SubscriptionId};
use callboard_domain::notifications::{ChannelKind, DeliveryState, NotificationEvent, Weekday};
use callboard_domain::time::Timestamp;
use callboard_http::cursor::CursorScope;
use callboard_http::extract::{FromQuery, Path, Query, QueryReader};
use callboard_http::page::{PageRequest, PageSize};
use callboard_http::{ApiError, AppState};
use callboard_platform::mail;
use callboard_query::notifications::{self, Channel, Delivery, QuietHoursShape, Subscription};
use callboard_query::project_names::{self, Choice};
use serde::Serialize;

use crate::components::{Choice as StateChoice, FilterBar, Pager, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Channels of the page; nobody has more in practice.
const CHANNELS: usize = 200;
/// Subscriptions per page.
const SIZE: PageSize = PageSize { min: 1, default: 50, max: 200 };

/// What an event is called on the page.
pub(crate) fn event_label(word: &str) -> &'static str {
    match NotificationEvent::parse(word) {
        Some(NotificationEvent::RunFinished) => "Run finished",
        Some(NotificationEvent::RunFailed) => "Run failed",
        Some(NotificationEvent::BranchRed) => "Branch went red",
        Some(NotificationEvent::BranchRecovered) => "Branch is green again",
        Some(NotificationEvent::ShardMissing) => "Shard missing",
        Some(NotificationEvent::ClusterNew) => "New failure",
        Some(NotificationEvent::ClusterRegressed) => "Fixed failure is back",
        Some(NotificationEvent::ClusterVerified) => "Fix held",
        Some(NotificationEvent::QuarantineReleased) => "Test left quarantine",
        Some(NotificationEvent::TestFailed) => "Test fails (of one test)",
        Some(NotificationEvent::TestFixed) => "Test passes again (of one test)",
        Some(NotificationEvent::TestFlaky) => "Test became flaky",
        Some(NotificationEvent::TestSlower) => "Test became slower",
        Some(NotificationEvent::EvidenceDropped) => "Evidence not stored",
        Some(NotificationEvent::DiagnosisCompleted) => "Failure diagnosed",
        Some(NotificationEvent::StorageQuota) => "Storage quota",
        Some(NotificationEvent::RunRevised) => "Run changed",
        Some(NotificationEvent::ChannelPaused) => "Channel paused",
        Some(NotificationEvent::Summary) => "Summary",
        Some(NotificationEvent::Test) => "Test message",
        None => "Unknown event",
    }
}

/// Kinds with an address in the order they are offered.
const KINDS: [ChannelKind; 5] =
    [ChannelKind::Slack, ChannelKind::Teams, ChannelKind::Discord, ChannelKind::Email, ChannelKind::Webhook];
/// Kinds that a person has once.
const OWN_KINDS: [ChannelKind; 2] = [ChannelKind::Browser, ChannelKind::PersonalEmail];

const fn kind_label(kind: ChannelKind) -> &'static str {
    match kind {
        ChannelKind::Slack => "Slack",
        ChannelKind::Teams => "Microsoft Teams",
        ChannelKind::Discord => "Discord",
        ChannelKind::Email => "Email",
        ChannelKind::Webhook => "Webhook",
        ChannelKind::Browser => "In the browser",
        ChannelKind::PersonalEmail => "My email address",
    }
}

/// A subscription as its row shows it.
struct SubscriptionRow {
    id: i64,
    events: Vec<&'static str>,
    project: String,
    branches: String,
    channel: String,
    /// When it sends, unless that is immediately.
    schedule: Option<String>,
    active: bool,
    /// Silent until then.
    muted_until: Option<Timestamp>,
    /// Whether the reader may change it.
    may_change: bool,
}

impl SubscriptionRow {
    fn new(
        found: Subscription,
        channels: &[Channel],
        projects: &[Choice],
        is_administrator: bool,
        now: Timestamp,
    ) -> Self {
        let filters = &found.filters;
        let mut places: Vec<String> = filters.branches.clone();
        if filters.default_branch_only {
            places.insert(0, "default branch".to_owned());
        }
        places.extend(filters.environments.iter().map(|environment| format!("in {environment}")));
        places.extend(filters.statuses.iter().map(|status| status_label(status).to_lowercase()));
        places.extend(filters.owners.iter().map(|owner| format!("tests of {owner}")));
        places.extend(filters.tags.iter().map(|tag| format!("tests with @{tag}")));
        Self {
            id: found.id,
            schedule: schedule_of(&found),
            events: found.events.iter().map(|word| event_label(word)).collect(),
            project: place_of(&found, projects),
            branches: if places.is_empty() { "All branches".to_owned() } else { places.join(", ") },
            channel: channels
                .iter()
                .find(|channel| channel.id == found.channel_id)
                .map_or_else(String::new, |channel| channel.name.clone()),
            active: found.active,
            muted_until: found.muted_until.filter(|until| *until > now),
            may_change: !found.is_global || is_administrator,
        }
    }
}

/// What a subscription is about: `All projects`, `shop`, `shop, one test`.
fn place_of(found: &Subscription, projects: &[Choice]) -> String {
    let Some(id) = found.project_id else { return "All projects".to_owned() };
    let known = projects.iter().find(|project| project.id == id);
    let name = known.map_or_else(|| format!("Project {id}"), |project| project.name.clone());
    match (found.test_case_id, found.cluster_id) {
        (Some(_), _) => format!("{name}, one test"),
        (None, Some(_)) => format!("{name}, one failure"),
        (None, None) => name,
    }
}

const fn day_label(day: Weekday) -> &'static str {
    match day {
        Weekday::Monday => "Monday",
        Weekday::Tuesday => "Tuesday",
        Weekday::Wednesday => "Wednesday",
        Weekday::Thursday => "Thursday",
        Weekday::Friday => "Friday",
        Weekday::Saturday => "Saturday",
        Weekday::Sunday => "Sunday",
    }
}

/// `Every day at 08:00, not from 22:00 to 07:00 (Europe/Berlin)`.
fn schedule_of(found: &Subscription) -> Option<String> {
    let digest = found.digest_at.as_ref().map(|time| match found.digest_day {
        Some(day) => format!("Every {} at {time}", day_label(day)),
        None => format!("Every day at {time}"),
    });
    let quiet = found.quiet_hours.as_ref().map(|hours| format!("not from {} to {}", hours.from, hours.to));
    let times = match (digest, quiet) {
        (Some(digest), Some(quiet)) => format!("{digest}, {quiet}"),
        (Some(digest), None) => digest,
        (None, Some(quiet)) => format!("Immediately, {quiet}"),
        (None, None) => return None,
    };
    Some(format!("{times} ({})", found.time_zone))
}

/// The form of a subscription, new or as it is.
struct SubscriptionForm {
    /// The subscription that is edited.
    id: Option<i64>,
    channel: Option<i64>,
    project: Option<i64>,
    /// Word, label, and whether it is chosen.
    events: Vec<(&'static str, &'static str, bool)>,
    default_branch_only: bool,
    branches: String,
    environments: String,
    is_digest: bool,
    digest_at: String,
    digest_day: Option<Weekday>,
    time_zone: &'static str,
    quiet: Option<QuietHoursShape>,
    owners: String,
    tags: String,
    /// Word, label, and whether it is chosen.
    statuses: Vec<(&'static str, &'static str, bool)>,
    includes_backfilled: bool,
    is_muted: bool,
    /// Whether it has a condition that is shown on request only.
    has_more: bool,
}

/// Statuses of runs that are over.
const STATUSES: [&str; 5] = ["passed", "failed", "timedout", "interrupted", "cancelled"];

fn status_label(word: &str) -> &'static str {
    match word {
        "passed" => "Passed",
        "failed" => "Failed",
        "timedout" => "Timed out",
        "interrupted" => "Interrupted",
        "cancelled" => "Cancelled",
        _ => "Unknown",
    }
}

fn statuses(is_chosen: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str, bool)> {
    STATUSES.iter().map(|word| (*word, status_label(word), is_chosen(word))).collect()
}

/// What is suggested for a project; nothing of it is on by itself.
const SUGGESTIONS: [(&str, &str); 2] =
    [("branch", "The default branch goes red or recovers"), ("failures", "A daily digest of new failures")];

/// Where the form is filled in with a suggestion.
fn suggestion_address(word: &str, project: Option<i64>) -> String {
    let project = project.map(|id| format!("&project={id}")).unwrap_or_default();
    format!("/settings/notifications?suggest={word}{project}#subscription-form")
}

/// Days of the week with their labels.
const DAYS: [(Weekday, &str); 7] = [
    (Weekday::Monday, day_label(Weekday::Monday)),
    (Weekday::Tuesday, day_label(Weekday::Tuesday)),
    (Weekday::Wednesday, day_label(Weekday::Wednesday)),
    (Weekday::Thursday, day_label(Weekday::Thursday)),
    (Weekday::Friday, day_label(Weekday::Friday)),
    (Weekday::Saturday, day_label(Weekday::Saturday)),
    (Weekday::Sunday, day_label(Weekday::Sunday)),
];

impl SubscriptionForm {
    /// What is proposed for a new subscription.
    fn proposed(suggestion: Suggestion, project: Option<i64>) -> Self {
        use NotificationEvent::{BranchRecovered, BranchRed, ClusterNew, ClusterRegressed};
        let is_digest = suggestion == Suggestion::Failures;
        let proposed = if is_digest { [ClusterNew, ClusterRegressed] } else { [BranchRed, BranchRecovered] };
        Self {
            id: None,
            channel: None,
            project,
            events: choices(|word| proposed.iter().any(|event| event.as_str() == word)),
            default_branch_only: true,
            branches: String::new(),
            environments: String::new(),
            is_digest,
            digest_at: "08:00".to_owned(),
            digest_day: None,
            time_zone: "UTC",
            quiet: None,
            owners: String::new(),
            tags: String::new(),
            statuses: statuses(|_| false),
            includes_backfilled: false,
            is_muted: false,
            has_more: false,
        }
    }

    fn editing(found: Subscription, now: Timestamp) -> Self {
        let filters = &found.filters;
        Self {
            owners: filters.owners.join("\n"),
            tags: filters.tags.join("\n"),
            statuses: statuses(|word| filters.statuses.iter().any(|status| status == word)),
            includes_backfilled: filters.include_backfilled,
            is_muted: found.muted_until.is_some_and(|until| until > now),
            has_more: filters.include_backfilled
                || ![&filters.owners, &filters.tags, &filters.statuses].iter().all(|list| list.is_empty()),
            id: Some(found.id),
            channel: Some(found.channel_id),
            project: found.project_id,
            events: choices(|word| found.events.iter().any(|event| event == word)),
            default_branch_only: found.filters.default_branch_only,
            branches: found.filters.branches.join("\n"),
            environments: found.filters.environments.join("\n"),
            is_digest: found.digest_at.is_some(),
            digest_at: found.digest_at.unwrap_or_else(|| "08:00".to_owned()),
            digest_day: found.digest_day,
            time_zone: found.time_zone,
            quiet: found.quiet_hours,
        }
    }
}

/// Quiet hours as their fields show them, those that are proposed where there are none.
fn quiet_from(form: &SubscriptionForm) -> &str {
    form.quiet.as_ref().map_or("20:00", |hours| &hours.from)
}

fn quiet_to(form: &SubscriptionForm) -> &str {
    form.quiet.as_ref().map_or("08:00", |hours| &hours.to)
}

fn choices(is_chosen: impl Fn(&str) -> bool) -> Vec<(&'static str, &'static str, bool)> {
    let words = NotificationEvent::subscribable().iter();
    words.map(|word| (*word, event_label(word), is_chosen(word))).collect()
}

/// Inputs of `pages/notifications.html`.
#[derive(Template)]
#[template(path = "pages/notifications.html")]
struct NotificationsPage {
    shell: Shell,
    tabs: SettingsTabs,
    /// Whether an address can be stored at all.
    keeps_secrets: bool,
    /// Whether mail can be sent.
    sends_mail: bool,
    /// Whether the reader manages the channels of the instance.
    is_administrator: bool,
    /// Whether the reader has channels of their own.
    is_person: bool,
    /// Whether they may have those with an address.
    may_add: bool,
    /// Channels that people have once and the reader does not yet.
    offered: Vec<ChannelKind>,
    channels: Vec<Channel>,
    /// Those the reader may subscribe to.
    usable: Vec<Channel>,
    subscriptions: Vec<SubscriptionRow>,
    projects: Vec<Choice>,
    subscription: SubscriptionForm,
    pager: Pager,
}

/// What the form proposes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Suggestion {
    /// A branch that goes red or recovers.
    #[default]
    Branch,
    /// New failures, once a day.
    Failures,
}

/// Which part of the subscriptions is shown, which one is edited, and what is proposed.
#[derive(Debug, Serialize)]
pub(crate) struct Params {
    #[serde(skip)]
    suggest: Suggestion,
    #[serde(skip)]
    project: Option<ProjectId>,
    #[serde(skip)]
    edit: Option<SubscriptionId>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let suggest =
            query.one_of("suggest", &[("branch", Suggestion::Branch), ("failures", Suggestion::Failures)])?;
        Ok(Self {
            edit: query.id("edit")?,
            suggest: suggest.unwrap_or_default(),
            project: query.id("project")?,
            page: query.page(SIZE)?,
        })
    }
}

/// Channels and subscriptions of the instance, and those of the reader.
pub(crate) async fn notifications(
    State(state): State<AppState>,
    visit: Visit,
    Query(params): Query<Params>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::NotificationsPage, &params)?;
    let after = cursors.decode(params.page.cursor.as_deref())?;
    let caller = &visit.caller;
    let channels = notifications::list(&visit.ctx, caller, None, CHANNELS).await?.items;
    let found = notifications::subscriptions(&visit.ctx, caller, None, after, params.page.rows()).await?;
    let found = cursors.page(found)?;
    let projects = project_names::choices(&visit.ctx, visit.caller.scope()).await?;
    let subscription = match params.edit {
        Some(id) => {
            let found = notifications::subscription(&visit.ctx, caller, id).await?;
            SubscriptionForm::editing(found, visit.now)
        }
        None => SubscriptionForm::proposed(params.suggest, params.project.map(ProjectId::get)),
    };
    let shell = Shell::new(&visit, Section::Settings, "Notifications").await?;
    let (is_administrator, is_person) = (caller.is_administrator(), caller.user_id().is_some());
    let is_known = |kind: &ChannelKind| channels.iter().any(|channel| channel.kind == *kind);
    let usable = channels.iter().filter(|channel| !channel.is_global || is_administrator).cloned().collect();
    answer(&NotificationsPage {
        shell: shell.under("Settings", "/settings").here("Notifications"),
        tabs: SettingsTabs::new(&visit, SettingsTab::Notifications),
        keeps_secrets: !state.config().secret_keys.is_empty(),
        sends_mail: mail::is_configured(&*state.mail_config().await?),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        subscriptions: found
            .items
            .into_iter()
            .map(|found| SubscriptionRow::new(found, &channels, &projects, is_administrator, visit.now))
            .collect(),
        is_administrator,
        is_person,
        may_add: caller.may_triage(),
        offered: OWN_KINDS.into_iter().filter(|kind| is_person && !is_known(kind)).collect(),
        usable,
        channels,
        projects,
        subscription,
    })
}

/// Inputs of `pages/deliveries.html`.
#[derive(Template)]
#[template(path = "pages/deliveries.html")]
struct DeliveriesPage {
    shell: Shell,
    tabs: SettingsTabs,
    channel: Channel,
    filters: FilterBar,
    is_filtered: bool,
    deliveries: Vec<Delivery>,
    pager: Pager,
}

/// Which deliveries are shown.
#[derive(Debug, Serialize)]
pub(crate) struct DeliveriesParams {
    state: Option<DeliveryState>,
    #[serde(skip)]
    page: PageRequest,
}

impl FromQuery for DeliveriesParams {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let state = query.word("state", DeliveryState::WORDS, DeliveryState::parse)?;
        Ok(Self { state, page: query.page(SIZE)? })
    }
}

/// The delivery log of a channel that the reader may change.
pub(crate) async fn deliveries(
    visit: Visit,
    Path(id): Path<ChannelId>,
    Query(params): Query<DeliveriesParams>,
) -> Result<Response, ApiError> {
    let cursors = CursorScope::new(RouteId::DeliveriesPage, &(id, &params))?;
    let before = cursors.decode(params.page.cursor.as_deref())?;
    let channel = notifications::channel(&visit.ctx, &visit.caller, id).await?;
    let limit = params.page.rows();
    let found = notifications::deliveries(&visit.ctx, &visit.caller, id, params.state, before, limit).await?;
    let found = cursors.page(found)?;
    let shell = Shell::new(&visit, Section::Settings, &channel.name).await?;
    let states = DeliveryState::WORDS.iter().map(|word| StateChoice::new(*word, state_label(word)));
    let chosen = params.state.map(|state| state.as_str().to_owned());
    let bar =
        FilterBar::new(&visit.address, &[]).select("state", "State", "Any state", states, chosen.as_slice());
    answer(&DeliveriesPage {
        shell: shell
            .under("Settings", "/settings")
            .under("Notifications", "/settings/notifications")
            .here(&channel.name),
        tabs: SettingsTabs::new(&visit, SettingsTab::Notifications),
        filters: bar.tally("message", found.items.len(), found.next_cursor.is_some(), None),
        is_filtered: params.state.is_some(),
        pager: Pager::new(&visit.address, found.next_cursor.as_ref()),
        deliveries: found.items,
        channel,
    })
}

fn state_label(word: &str) -> &'static str {
    match DeliveryState::parse(word) {
        Some(DeliveryState::Pending) => "waiting",
        Some(DeliveryState::Sending) => "sending",
        Some(DeliveryState::Sent) => "sent",
        Some(DeliveryState::Unknown) => "may not have arrived",
        Some(DeliveryState::Failed) => "failed",
        Some(DeliveryState::Parked) => "channel paused",
        Some(DeliveryState::Skipped) => "not sent",
        None => "unknown",
    }
}
