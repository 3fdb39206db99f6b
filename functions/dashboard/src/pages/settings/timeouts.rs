//! `/settings/timeouts`: when a timeout counts as longer than it need be.

use askama::Template;
use axum::response::Response;
use callboard_domain::timeouts::{TimeoutOverrides, TimeoutRules};
use callboard_http::ApiError;
use callboard_query::settings;

use super::numbers::{self, Number, decimal, seconds, whole};
use crate::components::{SettingsTab, SettingsTabs};
use crate::filters;
use crate::shell::{Section, Shell};
use crate::visit::{Visit, answer};

/// Inputs of `pages/timeouts.html`.
#[derive(Template)]
#[template(path = "pages/timeouts.html")]
struct TimeoutsPage {
    shell: Shell,
    tabs: SettingsTabs,
    changed: Option<String>,
    numbers: Vec<Number>,
}

/// By what timeouts are judged; for administrators.
pub(crate) async fn timeouts(visit: Visit) -> Result<Response, ApiError> {
    let found = settings::of_instance::<TimeoutOverrides>(&visit.ctx).await?;
    answer(&TimeoutsPage {
        tabs: SettingsTabs::new(&visit, SettingsTab::Timeouts),
        changed: numbers::changed(&found, visit.now),
        numbers: fields(&found.set),
        shell: Shell::new(&visit, Section::Settings, "Timeouts")
            .await?
            .under("Settings", "/settings")
            .here("Timeouts"),
    })
}

/// What is set, beside what holds where nothing is.
fn fields(set: &TimeoutOverrides) -> Vec<Number> {
    let otherwise = TimeoutOverrides::all_of(&TimeoutRules::default());
    let in_seconds = ("0", "86400", "any");
    vec![
        Number {
            key: "factor",
            label: "Flag timeouts longer than (x longest run)",
            hint: "Timeouts above this multiple of the longest run are listed.",
            kind: "number-or-null",
            bounds: ("1", "100", "any"),
            value: decimal(set.factor),
            instead: decimal(otherwise.factor),
        },
        Number {
            key: "floorMs",
            label: "Ignore timeouts below (seconds)",
            hint: "Shorter timeouts are not listed.",
            kind: "seconds-or-null",
            bounds: in_seconds,
            value: seconds(set.floor_ms),
            instead: seconds(otherwise.floor_ms),
        },
        Number {
            key: "minRuns",
            label: "Minimum runs",
            hint: "Passes needed before a timeout is suggested.",
            kind: "number-or-null",
            bounds: ("1", "200", "1"),
            value: whole(set.min_runs),
            instead: whole(otherwise.min_runs),
        },
        Number {
            key: "safety",
            label: "Suggested timeout (x p95)",
            hint: "Suggested timeout = this factor x p95.",
            kind: "number-or-null",
            bounds: ("1", "100", "any"),
            value: decimal(set.safety),
            instead: decimal(otherwise.safety),
        },
        Number {
            key: "recommendedFloorMs",
            label: "Minimum suggested timeout (seconds)",
            hint: "Shorter timeouts are never suggested.",
            kind: "seconds-or-null",
            bounds: in_seconds,
            value: seconds(set.recommended_floor_ms),
            instead: seconds(otherwise.recommended_floor_ms),
        },
        Number {
            key: "slowStaleP95Ms",
            label: "Suggest removing “slow” below (seconds)",
            hint: "Tests marked as slow with a p95 below this no longer need the mark.",
            kind: "seconds-or-null",
            bounds: in_seconds,
            value: seconds(set.slow_stale_p95_ms),
            instead: seconds(otherwise.slow_stale_p95_ms),
        },
    ]
}
