//! The bodies of this function, read field by field.

use callboard_domain::annotations::{LinkTarget, MarkerCategory, TagColor};
use callboard_domain::ids::{ProjectId, RunId};
use callboard_domain::time::Timestamp;
use callboard_http::ApiError;
use callboard_http::extract::Fields;
use callboard_query::Change;
use callboard_query::links::Hook;
use callboard_query::markers::MarkerEdit;
use utoipa::ToSchema;

const MAX_TAG_CHARS: usize = 50;
const MAX_TITLE_CHARS: usize = 200;
const MAX_MARKER_CHARS: usize = 120;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// The largest id.
const MAX_ID: i64 = (1 << 53) - 1;

/// A value that is never cleared.
fn kept<T>(name: &str, change: Change<T>) -> Result<Option<T>, ApiError> {
    match change {
        Change::Keep => Ok(None),
        Change::Set(value) => Ok(Some(value)),
        Change::Clear => Err(ApiError::invalid_field(name, format!("{name} cannot be cleared."))),
    }
}

fn given<T>(name: &str, value: Option<T>) -> Result<T, ApiError> {
    value.ok_or_else(|| ApiError::missing_fields(&[name]))
}

/// A tag; when it is changed, what is absent stays.
#[derive(Debug, ToSchema)]
pub(crate) struct TagBody {
    /// The word, 1 to 50 characters.
    #[schema(example = "payments")]
    pub(crate) text: Option<String>,
    /// `neutral`, `red`, `orange`, `amber`, `green`, `teal`, `blue`, `violet` or `pink`.
    #[schema(value_type = Option<String>, example = "teal")]
    pub(crate) color: Option<TagColor>,
}

impl TagBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require_any(&["text", "color"])?;
        let text = kept("text", fields.line("text", MAX_TAG_CHARS)?)?;
        Ok(Self {
            text: text.map(|text| text.trim().to_owned()),
            color: fields.word("color", TagColor::WORDS, TagColor::parse)?,
        })
    }

    pub(crate) fn complete(fields: &Fields) -> Result<(String, TagColor), ApiError> {
        fields.require(&["text"])?;
        let Self { text, color } = Self::read(fields)?;
        Ok((given("text", text)?, color.unwrap_or(TagColor::Neutral)))
    }
}

/// Which runs a clean-up deletes.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct CleanupBody {
    /// Those that began so many days ago, at least 1.
    #[schema(example = 90, minimum = 1)]
    pub(crate) older_than_days: i64,
    /// Only in this project.
    #[schema(value_type = Option<i64>)]
    pub(crate) project_id: Option<ProjectId>,
    /// Only says how many match.
    #[schema(required = false)]
    pub(crate) dry_run: bool,
    /// Takes effect immediately, without the grace period.
    #[schema(required = false)]
    pub(crate) now: bool,
}

impl CleanupBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["olderThanDays"])?;
        let days = fields.whole("olderThanDays", 1..=36_500)?.into_value();
        Ok(Self {
            older_than_days: given("olderThanDays", days)?,
            project_id: fields.id("projectId")?.into_value(),
            dry_run: fields.flag("dryRun")?.unwrap_or_default(),
            now: fields.flag("now")?.unwrap_or_default(),
        })
    }
}

/// A new link.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct NewLinkBody {
    /// `test_run`, `execution`, `test_case` or `failure_cluster`.
    #[schema(value_type = String, example = "test_run")]
    pub(crate) entity_type: LinkTarget,
    /// Id of what it hangs on.
    pub(crate) entity_id: i64,
    /// Address with http or https.
    #[schema(example = "https://github.com/acme/shop/issues/8")]
    pub(crate) url: String,
    /// What to call it, at most 200 characters.
    pub(crate) title: Option<String>,
}

impl NewLinkBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require(&["entityType", "entityId", "url"])?;
        let entity_type = fields.word("entityType", LinkTarget::WORDS, LinkTarget::read)?;
        Ok(Self {
            entity_type: given("entityType", entity_type)?,
            entity_id: given("entityId", fields.whole("entityId", 1..=MAX_ID)?.into_value())?,
            url: given("url", fields.address("url", false)?.into_value())?,
            title: fields.line("title", MAX_TITLE_CHARS)?.into_value(),
        })
    }

    pub(crate) const fn hook(&self) -> Hook {
        Hook { target: self.entity_type, id: self.entity_id }
    }
}

/// What changes of a link: an absent field stays, null clears the title.
#[derive(Debug, ToSchema)]
pub(crate) struct LinkBody {
    /// Address with http or https.
    pub(crate) url: Option<String>,
    /// What to call it, at most 200 characters.
    #[schema(required = false, value_type = Option<String>)]
    pub(crate) title: Change<String>,
}

impl LinkBody {
    pub(crate) fn read(fields: &Fields) -> Result<Self, ApiError> {
        fields.require_any(&["url", "title"])?;
        Ok(Self {
            url: kept("url", fields.address("url", false)?)?,
            title: fields.line("title", MAX_TITLE_CHARS)?,
        })
    }
}

/// A marker; when it is changed, an absent field stays and null clears it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct MarkerBody {
    /// What it is called, 1 to 120 characters.
    #[schema(example = "Release 2.4")]
    label: Option<String>,
    /// When it happened.
    #[schema(value_type = Option<String>, format = DateTime)]
    occurred_at: Option<Timestamp>,
    /// `deploy`, `config`, `infra`, `incident`, `release` or `event`.
    #[schema(example = "deploy")]
    category: Option<String>,
    /// Where; null is everywhere.
    #[schema(example = "staging")]
    environment: Option<String>,
    /// More about it, at most 2,000 characters.
    description: Option<String>,
    /// A run of the project it goes with.
    run_id: Option<i64>,
}

pub(crate) fn new_marker(fields: &Fields) -> Result<MarkerEdit, ApiError> {
    fields.require(&["label", "occurredAt", "category"])?;
    marker_edit(fields)
}

pub(crate) fn marker_edit(fields: &Fields) -> Result<MarkerEdit, ApiError> {
    fields.require_any(&["label", "occurredAt", "category", "environment", "description", "runId"])?;
    Ok(MarkerEdit {
        occurred_at: kept("occurredAt", fields.moment("occurredAt")?)?,
        label: kept("label", fields.line("label", MAX_MARKER_CHARS)?)?,
        description: fields.prose("description", MAX_DESCRIPTION_CHARS)?,
        category: fields.word("category", MarkerCategory::WORDS, MarkerCategory::parse)?,
        environment: fields.line("environment", MAX_MARKER_CHARS)?,
        run: fields.id::<RunId>("runId")?,
    })
}
