//! The bodies of this function. They are read field by field, so that absent
//! and null are two things and every error names its field.

use std::collections::BTreeSet;

use callboard_domain::ids::TagId;
use callboard_domain::ingest::project_name;
use callboard_domain::run_life::Reruns;
use callboard_http::ApiError;
use callboard_http::extract::Fields;
use callboard_platform::egress::Allowed;
use callboard_query::Change;
use callboard_query::project_editing::{NewProject, ProjectEdit};
use callboard_query::scm::Provider;
use callboard_query::shapes::words::RerunsWord;
use utoipa::ToSchema;

const MAX_LABEL_CHARS: usize = 200;
const MAX_DESCRIPTION_CHARS: usize = 2_000;
const MAX_INSTRUCTIONS_CHARS: usize = 20_000;
const MAX_BRANCH_CHARS: usize = 255;
const MAX_TOKEN_CHARS: usize = 4_096;
const MOST_PATTERNS: usize = 50;
const MOST_TAGS: usize = 100;

/// A new project.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct NewProjectBody {
    /// Unique name: 1 to 255 characters.
    #[schema(example = "shop")]
    name: String,
    /// Name to show instead, at most 200 characters.
    label: Option<String>,
    /// Free text, at most 2,000 characters.
    description: Option<String>,
    /// Default branch.
    default_branch: Option<String>,
    /// Tags, by id.
    tag_ids: Option<Vec<i64>>,
}

/// What changes of a project: an absent field stays, null clears it.
#[derive(Debug, ToSchema)]
#[schema(rename_all = "camelCase")]
#[expect(dead_code, reason = "describes the body; its fields are read one by one")]
pub(crate) struct ProjectBody {
    /// Unique name; it cannot be cleared. Submissions name the project by it.
    #[schema(example = "shop")]
    name: Option<String>,
    /// Name to show instead, at most 200 characters.
    label: Option<String>,
    /// Free text, at most 2,000 characters.
    description: Option<String>,
    /// What a diagnosis should know about the project, at most 20,000 characters.
    diagnosis_instructions: Option<String>,
    /// Default branch.
    default_branch: Option<String>,
    /// Branches that are followed like the default one: names, in which `*` stands for anything.
    tracked_branches: Option<Vec<String>>,
    /// Address of the repository, such as `https://github.com/acme/shop`; with http only on hosts that
    /// `SERVICE_EGRESS_ALLOW` names. On another host `scm_token` has to be sent along; null also clears the token.
    repository_url: Option<String>,
    /// `github`, `gitlab`, `gitea` (also Forgejo) or `bitbucket` (Cloud), for hosts whose name does not tell; null leaves it
    /// to the name.
    repository_provider: Option<String>,
    /// Token for the code host. It is sealed and never shown again.
    #[schema(format = Password)]
    scm_token: Option<String>,
    /// What becomes of re-runs from now on: `join` the run that they repeat, or stay `separate`.
    #[schema(value_type = Option<RerunsWord>)]
    reruns: Option<String>,
    /// Exactly these tags, by id.
    tag_ids: Option<Vec<i64>>,
}

const EDITABLE: [&str; 11] = [
    "name",
    "label",
    "description",
    "diagnosisInstructions",
    "defaultBranch",
    "trackedBranches",
    "repositoryUrl",
    "repositoryProvider",
    "scmToken",
    "reruns",
    "tagIds",
];

/// A name as submissions may spell it.
fn name(fields: &Fields) -> Result<Option<String>, ApiError> {
    match fields.text("name")? {
        Change::Keep => Ok(None),
        Change::Clear => Err(ApiError::invalid_field("name", "name cannot be cleared.")),
        Change::Set(text) => project_name(&text).map(Some).map_err(|_| {
            ApiError::invalid_field(
                "name",
                "name must be text of 1 to 255 characters without control characters.",
            )
        }),
    }
}

fn tags(fields: &Fields) -> Result<Change<BTreeSet<TagId>>, ApiError> {
    fields.ids("tagIds", MOST_TAGS)
}

pub(crate) fn new_project(fields: &Fields) -> Result<NewProject, ApiError> {
    fields.require(&["name"])?;
    let name = name(fields)?.ok_or_else(|| ApiError::missing_fields(&["name"]))?;
    let edit = ProjectEdit {
        label: fields.line("label", MAX_LABEL_CHARS)?,
        description: fields.prose("description", MAX_DESCRIPTION_CHARS)?,
        default_branch: fields.line("defaultBranch", MAX_BRANCH_CHARS)?,
        tags: tags(fields)?,
        ..ProjectEdit::default()
    };
    Ok(NewProject { name, edit })
}

/// Address of a repository. Its token goes there, so it takes https, unless the
/// environment opens the host.
fn repository_url(fields: &Fields, allowed: &Allowed) -> Result<Change<String>, ApiError> {
    let url = fields.address("repositoryUrl", false)?;
    let is_safe = url.value().is_none_or(|url| url.starts_with("https:") || allowed.opens(url));
    if is_safe { Ok(url) } else { fields.address("repositoryUrl", true) }
}

fn repository_provider(fields: &Fields) -> Result<Change<Provider>, ApiError> {
    if fields.text("repositoryProvider")? == Change::Clear {
        return Ok(Change::Clear);
    }
    let wanted = fields.word("repositoryProvider", &Provider::ALL.map(Provider::as_str), Provider::parse)?;
    Ok(wanted.map_or(Change::Keep, Change::Set))
}

pub(crate) fn project_edit(fields: &Fields, allowed: &Allowed) -> Result<ProjectEdit, ApiError> {
    fields.require_any(&EDITABLE)?;
    Ok(ProjectEdit {
        name: name(fields)?,
        label: fields.line("label", MAX_LABEL_CHARS)?,
        description: fields.prose("description", MAX_DESCRIPTION_CHARS)?,
        diagnosis_instructions: fields.prose("diagnosisInstructions", MAX_INSTRUCTIONS_CHARS)?,
        default_branch: fields.line("defaultBranch", MAX_BRANCH_CHARS)?,
        tracked_branches: fields.lines("trackedBranches", MOST_PATTERNS, MAX_BRANCH_CHARS)?,
        repository_url: repository_url(fields, allowed)?,
        repository_provider: repository_provider(fields)?,
        scm_token: fields.line("scmToken", MAX_TOKEN_CHARS)?,
        reruns: fields.word("reruns", &Reruns::ALL.map(Reruns::as_str), Reruns::parse)?,
        tags: tags(fields)?,
    })
}
