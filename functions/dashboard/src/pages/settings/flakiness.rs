//! `/settings/flakiness`: by what tests are judged, everywhere and in one
//! project.

use askama::Template;
use axum::response::Response;
use callboard_domain::flakiness::{FlakinessOverrides, FlakinessSettings};
use callboard_domain::ids::ProjectId;
use callboard_http::ApiError;
use callboard_http::extract::{FromQuery, Query, QueryReader};
use callboard_query::flakiness::settings as of_projects;
use callboard_query::{projects, resolve, settings};

use super::numbers::{self, Number, percent, seconds, whole};
use crate::components::{Choice, FilterBar, SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Projects one can choose from.
const OFFERED: usize = 200;

/// What is asked for.
#[derive(Debug)]
pub(crate) struct Params {
    project: Option<ProjectId>,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { project: query.id("project")? })
    }
}

/// Inputs of `pages/flakiness.html`.
#[derive(Template)]
#[template(path = "pages/flakiness.html")]
struct FlakinessPage {
    shell: Shell,
    tabs: SettingsTabs,
    filters: FilterBar,
    /// The call that saves it.
    call: String,
    /// The project it is about; none for all.
    project: Option<String>,
    changed: Option<String>,
    numbers: Vec<Number>,
}

/// By what tests are judged; for administrators.
pub(crate) async fn flakiness(visit: Visit, Query(asked): Query<Params>) -> Result<Response, ApiError> {
    let ctx = &visit.ctx;
    let everywhere = settings::of_instance::<FlakinessOverrides>(ctx).await?;
    let held = everywhere.set.over(&FlakinessSettings::default());
    let offered = projects::names(ctx, visit.scope(), OFFERED).await?;
    let chosen: Vec<String> = asked.project.iter().map(|id| id.get().to_string()).collect();
    let name = |id: i64| offered.iter().find(|each| each.id == id).map(|each| each.name.clone());
    let (call, project, numbers, changed) = match asked.project {
        Some(id) => {
            let authorized = resolve::project(ctx, visit.scope(), id).await?;
            let found = of_projects::of_project(ctx, authorized).await?;
            let project = name(id.get()).unwrap_or_else(|| format!("project {}", id.get()));
            let call = format!("PATCH /api/projects/{}/flakiness", id.get());
            (call, Some(project), fields(&found.settings, &held), None)
        }
        None => {
            let changed = numbers::changed(&everywhere, visit.now);
            let call = "PATCH /api/settings/flakiness".to_owned();
            (call, None, fields(&everywhere.set, &FlakinessSettings::default()), changed)
        }
    };
    let choices = offered.into_iter().map(|each| Choice::new(each.id.to_string(), each.name));
    answer(&FlakinessPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Flakiness),
        filters: FilterBar::new(&visit.address, &[]).select(
            "project",
            "Project",
            "All projects",
            choices,
            &chosen,
        ),
        call,
        project,
        changed,
        numbers,
        shell: Shell::new(&visit, Section::Settings, "Flakiness")
            .await?
            .under("Settings", "/settings")
            .here("Flakiness"),
    })
}

/// What is set, beside what holds where nothing is.
fn fields(set: &FlakinessOverrides, otherwise: &FlakinessSettings) -> Vec<Number> {
    let otherwise = FlakinessOverrides::all_of(otherwise);
    vec![
        Number {
            key: "minRuns",
            label: "Minimum runs",
            hint: "Passed or failed runs needed before a test can count as flaky.",
            kind: "number-or-null",
            bounds: ("1", "200", "1"),
            value: whole(set.min_runs),
            instead: whole(otherwise.min_runs),
        },
        Number {
            key: "quarantineScore",
            label: "Quarantine score",
            hint: "Minimum flaky score (0-100) to suggest quarantine.",
            kind: "number-or-null",
            bounds: ("0", "100", "1"),
            value: whole(set.quarantine_score),
            instead: whole(otherwise.quarantine_score),
        },
        Number {
            key: "quarantineWasteMs",
            label: "Quarantine time lost (seconds)",
            hint: "Minimum time lost in the last 50 runs.",
            kind: "seconds-or-null",
            bounds: ("0", "2592000", "any"),
            value: seconds(set.quarantine_waste_ms),
            instead: seconds(otherwise.quarantine_waste_ms),
        },
        Number {
            key: "releaseAfterPasses",
            label: "Passes needed to release",
            hint: "Consecutive passes before release is suggested.",
            kind: "number-or-null",
            bounds: ("1", "200", "1"),
            value: whole(set.release_after_passes),
            instead: whole(otherwise.release_after_passes),
        },
        Number {
            key: "massFailureRate",
            label: "Mass failure (percent)",
            hint: "Runs in which at least this share fails do not count for single tests. Applies to future runs.",
            kind: "percent-or-null",
            bounds: ("10", "100", "1"),
            value: percent(set.mass_failure_rate),
            instead: percent(otherwise.mass_failure_rate),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_field_says_what_holds_instead() {
        let set = FlakinessOverrides { quarantine_waste_ms: Some(90_500), ..FlakinessOverrides::default() };
        let shown = fields(&set, &FlakinessSettings::default());
        let of = |key: &str| shown.iter().find(|number| number.key == key).unwrap();
        assert_eq!(of("quarantineWasteMs").value, "90.5");
        assert_eq!(
            (of("massFailureRate").value.as_str(), of("massFailureRate").instead.as_str()),
            ("", "80")
        );
        assert!(shown.iter().all(|number| !number.instead.is_empty()));
    }
}
