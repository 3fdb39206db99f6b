//! The way between the settings: each leads to what its reader may see.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::visit::Visit;

/// A page of the settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SettingsTab {
    /// About this instance
    Instance,
    /// One's own account.
    Account,
    /// Accounts and their keys.
    Users,
    /// All projects.
    Projects,
    /// Tags of projects.
    Tags,
    /// Channels and subscriptions.
    Notifications,
    /// The mail server.
    Mail,
    /// Repositories of projects.
    SourceControl,
    /// What is kept, and how much of it.
    Storage,
    /// How long things are kept.
    Retention,
    /// The model for diagnoses.
    Diagnosis,
    /// By what tests are judged.
    Flakiness,
    /// When a timeout is too long.
    Timeouts,
    /// The audit log.
    Audit,
}

struct Tab {
    label: &'static str,
    href: &'static str,
    is_here: bool,
}

/// Inputs of `components/settings_tabs.html`.
#[derive(Template)]
#[template(path = "components/settings_tabs.html")]
pub(crate) struct SettingsTabs {
    tabs: Vec<Tab>,
}

impl HtmlSafe for SettingsTabs {}

impl SettingsTabs {
    /// The tabs of somebody who looks at one of them. Nobody has an account
    /// of their own while authentication is off.
    pub(crate) fn new(visit: &Visit, here: SettingsTab) -> Self {
        let all = [
            (SettingsTab::Instance, "Instance", "/settings", true),
            (SettingsTab::Account, "Account", "/settings/account", visit.caller.account().is_some()),
            (SettingsTab::Users, "Users", "/settings/users", true),
            (SettingsTab::Projects, "Projects", "/settings/projects", visit.caller.is_administrator()),
            (SettingsTab::Tags, "Tags", "/settings/tags", visit.caller.is_administrator()),
            (SettingsTab::Notifications, "Notifications", "/settings/notifications", true),
            (SettingsTab::Mail, "Mail", "/settings/mail", visit.caller.is_administrator()),
            (
                SettingsTab::SourceControl,
                "Source control",
                "/settings/source-control",
                visit.caller.is_administrator(),
            ),
            (SettingsTab::Diagnosis, "Diagnosis", "/settings/diagnosis", visit.caller.is_administrator()),
            (SettingsTab::Flakiness, "Flakiness", "/settings/flakiness", visit.caller.is_administrator()),
            (SettingsTab::Timeouts, "Timeouts", "/settings/timeouts", visit.caller.is_administrator()),
            (SettingsTab::Storage, "Storage", "/settings/storage", visit.caller.is_administrator()),
            (SettingsTab::Retention, "Retention", "/settings/retention", visit.caller.is_administrator()),
            (SettingsTab::Audit, "Audit log", "/settings/audit", visit.caller.is_administrator()),
        ];
        let shown = all.into_iter().filter(|(.., is_shown)| *is_shown);
        Self { tabs: shown.map(|(tab, label, href, _)| Tab { label, href, is_here: tab == here }).collect() }
    }
}
