//! `get_locator_healing`: a locator that works instead of one that does not.

use callboard_auth::routes::Roles;
use callboard_domain::ids::ExecutionId;
use callboard_domain::time::Timestamp;
use callboard_query::failures::{self, HealingEdit, HealingSource, LocatorHealing, RankedLocator};
use serde::Serialize;
use utoipa::ToSchema;

use crate::budget::Sections;
use crate::error::ToolError;
use crate::outputs;
use crate::parameter::Parameter;
use crate::tool::{Answer, Group, Hints, Tool, ToolCall, answer};

/// Locators listed of each kind.
const LISTED: usize = 8;

pub(super) static TOOL: Tool = Tool {
    name: "get_locator_healing",
    title: "Locator healing",
    description: "For a locator that found nothing or several elements: what to write instead, with the edit of the \
                  test as a unified diff. source none: nothing is known, or the locator is not what failed.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[Parameter::id("executionId", "get_run or list_failed_cases").also(&["id"])],
    sections: Sections {
        optional: &[("fromAriaSnapshot", "fromAriaSnapshot"), ("fromElementMatch", "fromElementMatch")],
        chronological: &[],
    },
    result: outputs::schema::<Output>,
    call: |asked| Box::pin(heal(asked)),
};

/// All that is said when nothing is known.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Nothing {
    execution_id: i64,
    source: HealingSource,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Output {
    execution_id: i64,
    source: HealingSource,
    #[schema(value_type = Option<String>)]
    captured_at: Option<Timestamp>,
    failing_locator: Option<String>,
    target: Option<String>,
    source_line: Option<String>,
    edit: Option<HealingEdit>,
    healed_in_run_id: Option<i64>,
    recommendation: Option<Recommendation>,
    from_prior_success: Vec<Ranked>,
    from_element_match: Vec<Ranked>,
    from_aria_snapshot: Vec<Ranked>,
    prior_name_may_be_stale: bool,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Recommendation {
    recommended: Option<String>,
    durable: Option<String>,
    preserves_convention: bool,
    has_durable_alternative: bool,
    suggest_add_test_id: bool,
}

#[derive(Serialize, ToSchema)]
struct Ranked {
    locator: String,
    method: String,
    score: u8,
}

async fn heal(asked: ToolCall<'_>) -> Result<Answer, ToolError> {
    let execution_id: ExecutionId = asked.argument("executionId")?;
    let context = asked.context;
    let project = context.execution(execution_id).await?;
    let found = failures::locator_healing(&context.query, project, execution_id).await?;
    if found.source == HealingSource::None {
        return answer(&Nothing { execution_id: execution_id.get(), source: found.source });
    }
    answer(&Output::new(execution_id, found))
}

impl Output {
    fn new(id: ExecutionId, found: LocatorHealing) -> Self {
        let failing_locator = found.failing_text().map(str::to_owned);
        Self {
            execution_id: id.get(),
            source: found.source,
            captured_at: found.captured_at,
            failing_locator,
            target: found.location,
            source_line: found.source_line.map(|line| line.text),
            edit: found.edit,
            healed_in_run_id: found.healed_in_run_id,
            recommendation: found.recommendation.map(|advice| Recommendation {
                recommended: advice.recommended.map(|locator| locator.locator),
                durable: advice.durable.map(|locator| locator.locator),
                preserves_convention: advice.preserves_convention,
                has_durable_alternative: advice.has_durable_alternative,
                suggest_add_test_id: advice.suggest_add_test_id,
            }),
            from_prior_success: ranked(found.from_prior_success),
            from_element_match: ranked(found.from_element_match),
            from_aria_snapshot: ranked(found.from_aria_snapshot),
            prior_name_may_be_stale: found.prior_name_may_be_stale,
        }
    }
}

fn ranked(locators: Vec<RankedLocator>) -> Vec<Ranked> {
    let ranked = |locator: RankedLocator| Ranked {
        locator: locator.locator,
        method: locator.method,
        score: locator.score,
    };
    locators.into_iter().take(LISTED).map(ranked).collect()
}
