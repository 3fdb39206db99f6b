//! Every statement of the store, for the test that prepares each of them on
//! both engines.

use crate::db::{Backend, Bulk, Filter, Statement};

const MODULES: &[&[&Statement]] = &[
    crate::accounts::api_keys::STATEMENTS,
    crate::accounts::assignments::STATEMENTS,
    crate::accounts::invitations::STATEMENTS,
    crate::accounts::sessions::STATEMENTS,
    crate::accounts::tokens::STATEMENTS,
    crate::accounts::used_states::STATEMENTS,
    crate::accounts::users::STATEMENTS,
    crate::audit::STATEMENTS,
    crate::blobs::STATEMENTS,
    crate::blobs::collect::STATEMENTS,
    crate::branch_states::STATEMENTS,
    crate::clusters::STATEMENTS,
    crate::clusters::counts::STATEMENTS,
    crate::clusters::edit::STATEMENTS,
    crate::clusters::list::STATEMENTS,
    crate::clusters::reads::STATEMENTS,
    crate::clusters::reshape::STATEMENTS,
    crate::clusters::routes::STATEMENTS,
    crate::clusters::suggestions::STATEMENTS,
    crate::clusters::verify::STATEMENTS,
    crate::clusters::versions::STATEMENTS,
    crate::blobs::content::STATEMENTS,
    crate::blobs::pool::STATEMENTS,
    crate::blobs::freeing::STATEMENTS,
    crate::deletions::STATEMENTS,
    crate::deletions::kept::STATEMENTS,
    crate::deletions::project::STATEMENTS,
    crate::deletions::runs::STATEMENTS,
    crate::diagnoses::STATEMENTS,
    crate::evidence::STATEMENTS,
    crate::evidence::joining::STATEMENTS,
    crate::executions::STATEMENTS,
    crate::executions::brief::STATEMENTS,
    crate::executions::counting::STATEMENTS,
    crate::executions::grid::STATEMENTS,
    crate::executions::moving::STATEMENTS,
    crate::exports::STATEMENTS,
    crate::feed::STATEMENTS,
    crate::files::STATEMENTS,
    crate::gates::STATEMENTS,
    crate::history_joins::STATEMENTS,
    crate::idempotency::STATEMENTS,
    crate::ids::STATEMENTS,
    crate::instance::STATEMENTS,
    crate::instance::WORDED_APART,
    crate::intake::STATEMENTS,
    crate::intake::WORDED_APART,
    crate::jobs::STATEMENTS,
    crate::jobs::lease::STATEMENTS,
    crate::lanes::STATEMENTS,
    crate::locators::STATEMENTS,
    crate::links::STATEMENTS,
    crate::markers::STATEMENTS,
    crate::migrate::STATEMENTS,
    crate::model_usage::STATEMENTS,
    crate::notifications::channels::STATEMENTS,
    crate::notifications::deliveries::STATEMENTS,
    crate::notifications::held::STATEMENTS,
    crate::notifications::subscriptions::STATEMENTS,
    crate::outbox::STATEMENTS,
    crate::projects::STATEMENTS,
    crate::projects::edit::STATEMENTS,
    crate::quarantine::STATEMENTS,
    crate::rate_limits::STATEMENTS,
    crate::reports::STATEMENTS,
    crate::rollups::browsers::STATEMENTS,
    crate::retention::STATEMENTS,
    crate::retention::counting::STATEMENTS,
    crate::retention::due::STATEMENTS,
    crate::retention::exempt::STATEMENTS,
    crate::retention::lanes::STATEMENTS,
    crate::retention::trimming::STATEMENTS,
    crate::rollups::catalogue::STATEMENTS,
    crate::rollups::days::STATEMENTS,
    crate::rollups::endpoints::STATEMENTS,
    crate::rollups::portfolio::STATEMENTS,
    crate::rollups::scores::STATEMENTS,
    crate::rollups::specs::STATEMENTS,
    crate::rollups::states::STATEMENTS,
    crate::runs::STATEMENTS,
    crate::runs::compared::STATEMENTS,
    crate::runs::counting::STATEMENTS,
    crate::runs::creating::STATEMENTS,
    crate::runs::details::STATEMENTS,
    crate::runs::groups::STATEMENTS,
    crate::runs::expired::OF_EACH_ENGINE,
    crate::runs::expired::STATEMENTS,
    crate::runs::newest::STATEMENTS,
    crate::runs::slots::STATEMENTS,
    crate::runs::tokens::STATEMENTS,
    crate::runs::writing::STATEMENTS,
    crate::code_owners::STATEMENTS,
    crate::scm_cache::STATEMENTS,
    crate::search::STATEMENTS,
    crate::source_paths::STATEMENTS,
    crate::settings::STATEMENTS,
    crate::storage::STATEMENTS,
    crate::tags::STATEMENTS,
    crate::test_cases::STATEMENTS,
    crate::test_cases::carrying::STATEMENTS,
    crate::test_functions::STATEMENTS,
    crate::unclaimed::STATEMENTS,
    crate::upload_tickets::STATEMENTS,
    crate::upkeep::STATEMENTS,
];

/// What no other engine understands.
const SQLITE_ALONE: &[&[&Statement]] = &[crate::intake::SQLITE_ALONE];

const BULKS: &[&[&Bulk]] = &[
    crate::clusters::counts::BULKS,
    crate::executions::BULKS,
    crate::executions::counting::BULKS,
    crate::executions::moving::BULKS,
    crate::history_joins::BULKS,
    crate::evidence::BULKS,
    crate::evidence::joining::BULKS,
    crate::feed::BULKS,
    crate::outbox::BULKS,
    crate::ids::BULKS,
    crate::intake::BULKS,
    crate::locators::BULKS,
    crate::rollups::browsers::BULKS,
    crate::rollups::days::BULKS,
    crate::rollups::endpoints::BULKS,
    crate::rollups::specs::BULKS,
    crate::rollups::states::BULKS,
    crate::search::BULKS,
    crate::storage::BULKS,
    crate::tags::BULKS,
    crate::test_cases::BULKS,
];

type Shapes = fn(Backend) -> Vec<Filter>;

/// Lists whose conditions are optional, each with what it can look like.
const LISTS: &[(&str, Shapes)] = &[
    ("accounts::users", crate::accounts::users::shapes),
    ("audit", crate::audit::shapes),
    ("clusters::list", crate::clusters::list::shapes),
    ("clusters::reads", crate::clusters::reads::shapes),
    ("executions::brief", crate::executions::brief::shapes),
    ("deletions", crate::deletions::shapes),
    ("deletions::runs", crate::deletions::runs::shapes),
    ("executions::history", crate::executions::history::shapes),
    ("executions::list", crate::executions::list::shapes),
    ("files", crate::files::shapes),
    ("lanes", crate::lanes::shapes),
    ("markers", crate::markers::shapes),
    ("projects", crate::projects::shapes),
    ("quarantine", crate::quarantine::shapes),
    ("rollups::catalogue", crate::rollups::catalogue::shapes),
    ("rollups::owners", crate::rollups::owners::shapes),
    ("rollups::scores", crate::rollups::scores::shapes),
    ("runs::list", crate::runs::list::shapes),
    ("search", crate::search::shapes),
    ("tags", crate::tags::shapes),
    ("test_functions", crate::test_functions::shapes),
];

/// Name and text of every list for one engine: with all conditions and with
/// none, in every order.
pub fn all_lists(backend: Backend) -> impl Iterator<Item = (&'static str, String)> {
    let shapes =
        LISTS.iter().flat_map(move |(name, shapes)| shapes(backend).into_iter().map(|list| (*name, list)));
    shapes.map(|(name, list)| (name, list.into_text()))
}

/// Name and text of every statement for one engine.
pub fn all(backend: Backend) -> impl Iterator<Item = (&'static str, &'static str)> {
    let alone = if backend == Backend::Sqlite { SQLITE_ALONE } else { &[] };
    let statements = MODULES.iter().chain(alone).copied().flatten().map(move |s| (s.name, s.sql(backend)));
    let bulks = BULKS.iter().copied().flatten();
    let bulks = bulks.flat_map(move |b| b.texts(backend).into_iter().map(|text| (b.name, text)));
    statements.chain(bulks).chain(crate::accounts::principal::statements(backend))
}
