//! Every statement of the store, for the test that prepares each of them on
//! both engines.

use crate::db::{Backend, Bulk, Statement};

const MODULES: &[&[&Statement]] = &[
    crate::blobs::STATEMENTS,
    crate::evidence::STATEMENTS,
    crate::executions::STATEMENTS,
    crate::files::STATEMENTS,
    crate::ids::STATEMENTS,
    crate::instance::STATEMENTS,
    crate::lanes::STATEMENTS,
    crate::migrate::STATEMENTS,
    crate::projects::STATEMENTS,
    crate::reports::STATEMENTS,
    crate::rollups::days::STATEMENTS,
    crate::rollups::states::STATEMENTS,
    crate::runs::STATEMENTS,
    crate::runs::slots::STATEMENTS,
    crate::test_cases::STATEMENTS,
];

const BULKS: &[&[&Bulk]] = &[
    crate::executions::BULKS,
    crate::ids::BULKS,
    crate::rollups::days::BULKS,
    crate::rollups::states::BULKS,
    crate::test_cases::BULKS,
];

/// Name and text of every statement for one engine.
pub fn all(backend: Backend) -> impl Iterator<Item = (&'static str, &'static str)> {
    let statements = MODULES.iter().copied().flatten().map(move |s| (s.name, s.sql(backend)));
    let bulks = BULKS.iter().copied().flatten();
    let bulks = bulks.flat_map(move |b| b.texts(backend).into_iter().map(|text| (b.name, text)));
    statements.chain(bulks)
}
