//! `GET /api/projects/{id}/badge.svg` and `badge.json`: one word about a
//! project, for its readme; `/badge/<token>.svg` the same for pages outside.

use std::fmt::Write as _;

use axum::extract::State;
use axum::response::Response;
use axum::{Extension, Json};
use callboard_auth::client_address::ClientAddress;
use callboard_auth::limits::BADGE;
use callboard_auth::scope::Authorized;
use callboard_domain::bidi::visible;
use callboard_domain::human::percent_number;
use callboard_domain::ids::ProjectId;
use callboard_domain::status::RunStatus;
use callboard_http::conditional::{tagged, tagged_json};
use callboard_http::extract::{Caller, FromQuery, JsonBytes, Path, Query, QueryReader, Visit};
use callboard_http::{ApiError, AppState, Site, TellsSecret};
use callboard_query::shapes::RunBrief;
use callboard_query::{Context, badges, projects, resolve, runs};
use http::StatusCode;
use http::header::{CACHE_CONTROL, HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

const METRICS: [&str; 4] = ["status", "passRate", "tests", "flaky"];
const STYLES: [&str; 2] = ["flat", "square"];

callboard_query::vocabularies! {
    /// What a badge tells.
    MetricWord => METRICS;
    /// How a badge looks.
    StyleWord => STYLES;
}

/// Most characters of a label: a badge is one line.
const LABEL_CHARS: usize = 40;
/// Width of a character of the font at 11 px, in tenths of a pixel. The text is stretched to what is
/// reckoned with, so that another font fits too.
const CHAR_TENTHS: usize = 66;
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// What a badge tells, and how it looks.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Query)]
pub(crate) struct Params {
    /// `status` (the default), `passRate`, `tests` or `flaky`.
    #[param(value_type = Option<MetricWord>, example = "passRate", inline)]
    metric: Metric,
    /// Branch; the default branch, where one is known, when none is given.
    branch: Option<String>,
    /// Environment; all when none is given.
    environment: Option<String>,
    /// What stands on its left side, at most 40 characters; `tests` when none is given.
    label: Option<String>,
    /// `flat` (the default) or `square`.
    #[param(value_type = Option<StyleWord>, example = "flat", inline)]
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Metric {
    #[default]
    Status,
    PassRate,
    Tests,
    Flaky,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Style {
    #[default]
    Flat,
    Square,
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let metric = query.word("metric", &METRICS, |word| match word {
            "status" => Some(Metric::Status),
            "passRate" => Some(Metric::PassRate),
            "tests" => Some(Metric::Tests),
            "flaky" => Some(Metric::Flaky),
            _ => None,
        })?;
        let style = query.word("style", &STYLES, |word| match word {
            "flat" => Some(Style::Flat),
            "square" => Some(Style::Square),
            _ => None,
        })?;
        let label = query.text("label")?;
        if label.as_ref().is_some_and(|label| label.chars().count() > LABEL_CHARS) {
            let message = format!("label may have at most {LABEL_CHARS} characters.");
            return Err(ApiError::invalid_query("label", message));
        }
        Ok(Self {
            metric: metric.unwrap_or_default(),
            branch: query.recorded("branch")?,
            environment: query.recorded("environment")?,
            label,
            style: style.unwrap_or_default(),
        })
    }
}

/// A badge in the words of those who draw it themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Badge {
    /// Always 1.
    schema_version: u8,
    /// Left side.
    #[schema(example = "tests")]
    label: String,
    /// Right side; `unknown` when no run fits.
    #[schema(example = "passing")]
    message: String,
    /// Colour of the right side.
    #[schema(example = "#2e7d32")]
    color: &'static str,
}

const GREEN: &str = "#2e7d32";
const AMBER: &str = "#b26a00";
const RED: &str = "#c62828";
const BLUE: &str = "#1565c0";
const GREY: &str = "#616161";

impl Badge {
    fn new(metric: Metric, label: Option<String>, run: Option<&RunBrief>) -> Self {
        let (message, color) = run.map_or_else(|| ("unknown".to_owned(), GREY), |run| told(metric, run));
        Self { schema_version: 1, label: label.unwrap_or_else(|| "tests".to_owned()), message, color }
    }

    /// The picture. Nothing in it is taken as markup.
    fn svg(&self, style: Style) -> String {
        let (label, message) = (escaped(&self.label), escaped(&self.message));
        let width = |text: &str| text.chars().count() * CHAR_TENTHS / 10 + 10;
        let (left, right) = (width(&self.label), width(&self.message));
        let (whole, corner) = (left + right, if style == Style::Flat { 3 } else { 0 });
        let (left_middle, right_middle) = (left / 2, left + right / 2);
        let (left_text, right_text) = (left - 10, right - 10);
        let color = self.color;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{whole}\" height=\"20\" role=\"img\" \
             aria-label=\"{label}: {message}\"><title>{label}: {message}</title>\
             <clipPath id=\"r\"><rect width=\"{whole}\" height=\"20\" rx=\"{corner}\"/></clipPath>\
             <g clip-path=\"url(#r)\"><rect width=\"{left}\" height=\"20\" fill=\"#424242\"/>\
             <rect x=\"{left}\" width=\"{right}\" height=\"20\" fill=\"{color}\"/></g>\
             <g fill=\"#fff\" text-anchor=\"middle\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\
             <text x=\"{left_middle}\" y=\"14\" textLength=\"{left_text}\">{label}</text>\
             <text x=\"{right_middle}\" y=\"14\" textLength=\"{right_text}\">{message}</text></g></svg>\n"
        )
    }
}

/// What a run says of a metric, and its colour.
fn told(metric: Metric, run: &RunBrief) -> (String, &'static str) {
    let counted =
        |count: i64, one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
    let status = match run.status {
        RunStatus::Passed => ("passing".to_owned(), GREEN),
        RunStatus::Failed | RunStatus::TimedOut => ("failing".to_owned(), RED),
        other => (other.as_str().to_owned(), GREY),
    };
    match metric {
        Metric::Status => status,
        // Counts of tests would hide what made the run red.
        _ if run.status_reason.is_some() => status,
        Metric::PassRate => match run.pass_rate {
            Some(rate) => {
                let number = percent_number(rate);
                (format!("{}%", number.strip_suffix(".0").unwrap_or(&number)), rate_color(rate))
            }
            None => ("unknown".to_owned(), GREY),
        },
        Metric::Tests => (counted(run.totals.total_tests, "test", "tests"), BLUE),
        Metric::Flaky => {
            let flaky = run.totals.flaky_tests;
            (format!("{flaky} flaky"), if flaky == 0 { GREEN } else { AMBER })
        }
    }
}

fn rate_color(rate: f64) -> &'static str {
    match rate {
        _ if rate >= 1.0 => GREEN,
        _ if rate >= 0.9 => AMBER,
        _ => RED,
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in visible(text).chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' | '\'' => {
                let _ = write!(escaped, "&#{};", u32::from(char));
            }
            // XML cannot hold them, not even escaped.
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

async fn badge(
    state: &AppState,
    site: &Site,
    caller: &Caller,
    id: ProjectId,
    asked: Params,
) -> Result<Badge, ApiError> {
    let ctx = state.context(site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    load(&ctx, project, asked).await
}

async fn load(ctx: &Context, project: Authorized<ProjectId>, asked: Params) -> Result<Badge, ApiError> {
    let branch = match asked.branch {
        Some(branch) => Some(branch),
        None => projects::get(ctx, project).await?.default_branch,
    };
    let run = runs::latest_full(ctx, project, branch.as_deref(), asked.environment.as_deref()).await?;
    Ok(Badge::new(asked.metric, asked.label, run.as_ref()))
}

/// The newest finished full run of a project as a picture.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/badge.svg", tag = "projects",
    params(("id" = i64, Path, description = "Project"), Params),
    responses(
        (status = 200, description = "The picture", body = String, content_type = "image/svg+xml"),
        (status = 304, description = "The client has this picture")
    ))]
pub(crate) async fn picture(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let style = asked.style;
    let svg = badge(&state, &site, &caller, id, asked).await?.svg(style);
    let mut response = tagged(&headers, "image/svg+xml", svg.into());
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    // Pages elsewhere show it.
    response.headers_mut().insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    Ok(response)
}

/// The newest finished full run of a project as a badge that others draw.
///
/// # Errors
/// 404 `project_not_found`, 403 `project_access_denied`.
#[utoipa::path(get, path = "/api/projects/{id}/badge.json", tag = "projects",
    params(("id" = i64, Path, description = "Project"), Params),
    responses((status = 200, body = Badge)))]
pub(crate) async fn words(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    Path(id): Path<ProjectId>,
    Query(asked): Query<Params>,
) -> Result<Json<Badge>, ApiError> {
    Ok(Json(badge(&state, &site, &caller, id, asked).await?))
}

/// A token of a badge.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BadgeToken {
    /// Always true.
    success: bool,
    /// The token. It is not shown again.
    #[schema(example = "sbg_k3JvPq0Zr7TnW1yXb5LcD8fGh2MsVa_0aB3xY")]
    token: String,
    /// Address of the picture.
    #[schema(example = "https://tests.example.org/badge/sbg_k3JvPq0Zr7TnW1yXb5LcD8fGh2MsVa_0aB3xY.svg")]
    url: String,
}

/// Makes the badge of a project visible to whoever has its address, for pages
/// outside. The address before it shows `unknown` from now on.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(post, path = "/api/projects/{id}/badge-token", tag = "projects", operation_id = "create_badge_token",
    params(("id" = i64, Path, description = "Project")),
    responses((status = 201, body = BadgeToken), (status = 404, description = "`project_not_found`")))]
pub(crate) async fn make_token(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
    JsonBytes { bytes: body, .. }: JsonBytes,
) -> Result<Response, ApiError> {
    // There is nothing to say; what is said nevertheless is at least an object.
    if !body.is_empty() {
        serde_json::from_slice::<Map<String, Value>>(&body)
            .map_err(|error| ApiError::invalid_json(format!("The body cannot be read: {error}.")))?;
    }
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    let token = badges::make_token(&ctx, visit.acting(&caller, state.now()), project).await?;
    let url = format!("{}/badge/{token}.svg", ctx.links.origin());
    Ok(TellsSecret.mark((StatusCode::CREATED, Json(BadgeToken { success: true, token, url }))))
}

/// A badge is not shown outside any more.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BadgeTokenTaken {
    /// Always true.
    success: bool,
}

/// Takes the address of a badge back: it shows `unknown` from now on.
///
/// # Errors
/// 404 `project_not_found`.
#[utoipa::path(delete, path = "/api/projects/{id}/badge-token", tag = "projects", operation_id = "revoke_badge_token",
    params(("id" = i64, Path, description = "Project")),
    responses((status = 200, body = BadgeTokenTaken), (status = 404, description = "`project_not_found`")))]
pub(crate) async fn take_token(
    State(state): State<AppState>,
    site: Site,
    caller: Caller,
    visit: Visit,
    Path(id): Path<ProjectId>,
) -> Result<Json<BadgeTokenTaken>, ApiError> {
    let ctx = state.context(&site);
    let project = resolve::project(&ctx, caller.scope(), id).await?;
    badges::take_token(&ctx, visit.acting(&caller, state.now()), project).await?;
    Ok(Json(BadgeTokenTaken { success: true }))
}

/// The badge of a project, for whoever has its address: `<token>.svg` or
/// `<token>.json`. A token that is unknown or was taken back shows `unknown`.
///
/// # Errors
/// 404 `route_not_found` for another ending, 429 `rate_limited`.
#[utoipa::path(get, path = "/badge/{file}", tag = "projects", operation_id = "public_badge",
    params(("file" = String, Path, description = "The token, and `.svg` or `.json`"), Params),
    responses(
        (status = 200, description = "The badge", content((String = "image/svg+xml"), (Badge = "application/json"))),
        (status = 304, description = "The client has this badge"),
        (status = 404, description = "`route_not_found`"),
        (status = 429, description = "`rate_limited`")
    ))]
pub(crate) async fn outside(
    State(state): State<AppState>,
    site: Site,
    address: Option<Extension<ClientAddress>>,
    axum::extract::Path(file): axum::extract::Path<String>,
    Query(asked): Query<Params>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (token, form) = file.rsplit_once('.').ok_or_else(ApiError::route_not_found)?;
    if !matches!(form, "svg" | "json") {
        return Err(ApiError::route_not_found());
    }
    if let Some(Extension(address)) = address {
        state.limits().await?.check(BADGE, &address.subject(), state.now()).await?;
    }
    let ctx = state.context(&site);
    let style = asked.style;
    let badge = match badges::opened_by(&ctx, token).await? {
        Some(project) => load(&ctx, project, asked).await?,
        None => Badge::new(asked.metric, asked.label, None),
    };
    let mut response = match form {
        "svg" => tagged(&headers, "image/svg+xml", badge.svg(style).into()),
        _ => tagged_json(&headers, &badge)?,
    };
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("max-age=60"));
    response.headers_mut().insert(RESOURCE_POLICY, HeaderValue::from_static("cross-origin"));
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_badge_says_is_never_markup() {
        let badge = Badge::new(Metric::Status, Some("<script>'\"&\u{1}".to_owned()), None);
        let svg = badge.svg(Style::Flat);
        assert!(svg.contains(">&lt;script&gt;&#39;&#34;&amp;\u{fffd}</text>"), "{svg}");
        assert!(!svg.contains("<script>"));
    }
}
