//! Remembers which elements the locators of a test found, so that a locator
//! that finds nothing one day can be healed.
//!
//! Called while the states of the tests are locked: whoever writes locators of
//! a test holds its state, so two runs never mix theirs.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use callboard_domain::ids::TestCaseId;
use callboard_domain::ingest::{LocatorSnapshot, TestCaseEntry};
use callboard_domain::status::TestStatus;
use callboard_domain::time::Timestamp;
use callboard_playwright::healing::Finder;
use callboard_store::db::Session;
use callboard_store::locators::{self, KnownLocator, NewLocator};
use callboard_store::runs::RunRow;
use sha2::{Digest as _, Sha256};

use crate::Result;

/// Call sites kept of one attempt.
const MAX_SITES: usize = 100;
/// Call sites kept of one test.
const MAX_STORED: usize = locators::MAX_PER_TEST as usize;
/// Bytes of an element or of its other locators, as JSON.
const MAX_JSON_BYTES: usize = 8_000;
/// How long the run that a locator was last seen in may be out of date, ms.
const REFRESH_MS: i64 = 24 * 60 * 60 * 1000;

/// Locators of some tests, from what one run says about them.
#[derive(Debug, Default)]
pub(crate) struct Sites {
    seen: BTreeMap<(TestCaseId, String), NewLocator>,
    /// Tests that passed: what they do not use any more is gone.
    passed: BTreeSet<TestCaseId>,
    told: BTreeSet<TestCaseId>,
}

impl Sites {
    /// Takes an entry about a test.
    pub(crate) fn take(&mut self, case: TestCaseId, entry: &TestCaseEntry) {
        let Some(snapshots) = &entry.locator_snapshots else { return };
        self.told.insert(case);
        if entry.status == TestStatus::Passed {
            self.passed.insert(case);
        }
        for snapshot in snapshots.iter().take(MAX_SITES) {
            if let Some(locator) = to_store(case, snapshot) {
                self.seen.insert((case, locator.location.clone()), locator);
            }
        }
    }

    /// Writes what is new and forgets what is gone.
    pub(crate) async fn write(self, session: &mut Session, run: &RunRow) -> Result<()> {
        if self.told.is_empty() {
            return Ok(());
        }
        let cases = self.told.iter().map(|case| case.get()).collect();
        let mut counts: HashMap<TestCaseId, usize> = HashMap::new();
        let mut known = HashMap::new();
        for row in locators::known(session, run.project, cases).await? {
            *counts.entry(row.test_case).or_default() += 1;
            known.insert((row.test_case, row.location.clone()), row);
        }
        let mut gone: Vec<(TestCaseId, String)> = known
            .keys()
            .filter(|key| self.passed.contains(&key.0) && !self.seen.contains_key(*key))
            .cloned()
            .collect();
        gone.sort_unstable();
        if !gone.is_empty() {
            locators::forget(session, run.project, run.order_at, &gone).await?;
        }
        let is_news = |known: &KnownLocator, locator: &NewLocator| {
            let is_newer = known.last_seen_at <= run.order_at;
            is_newer
                && (known.content_hash != locator.content_hash || is_stale(known.last_seen_at, run.order_at))
        };
        let news: Vec<NewLocator> = self
            .seen
            .into_iter()
            .filter(|(key, locator)| match known.get(key) {
                Some(known) => is_news(known, locator),
                None => {
                    let count = counts.entry(key.0).or_default();
                    *count += 1;
                    *count <= MAX_STORED
                }
            })
            .map(|(_, locator)| locator)
            .collect();
        if !news.is_empty() {
            locators::write(session, run.project, run.id, run.order_at, &news).await?;
        }
        Ok(())
    }
}

fn is_stale(seen: Timestamp, now: Timestamp) -> bool {
    now.millis() - seen.millis() >= REFRESH_MS
}

/// A snapshot as it is stored; nothing without an element.
fn to_store(case: TestCaseId, snapshot: &LocatorSnapshot) -> Option<NewLocator> {
    let element = serde_json::to_string(snapshot.element.as_ref()?).ok()?;
    let alternatives = serde_json::to_string(&snapshot.alternatives).ok()?;
    if element.len() > MAX_JSON_BYTES {
        return None;
    }
    let alternatives = if alternatives.len() > MAX_JSON_BYTES { "[]".to_owned() } else { alternatives };
    let finder = Finder::of_capture(&snapshot.used);
    let args = serde_json::to_string(&finder.args).ok().filter(|args| args.len() <= MAX_JSON_BYTES)?;
    let mut hash = Sha256::new();
    for part in [&snapshot.used.raw, &finder.method, &args, &stable(&element), &alternatives] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    Some(NewLocator {
        test_case: case,
        location: snapshot.location.clone(),
        method: finder.method.clone(),
        raw: snapshot.used.raw.clone(),
        args,
        args_fp: finder.fingerprint(),
        element,
        alternatives,
        content_hash: hash.finalize().into(),
    })
}

/// The element without where it was drawn, which differs from run to run.
fn stable(element: &str) -> String {
    match serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(element) {
        Ok(mut fields) => {
            fields.remove("center");
            serde_json::Value::Object(fields).to_string()
        }
        Err(_) => element.to_owned(),
    }
}
