//! What results of a request need to know of their project.

use std::collections::{BTreeMap, HashMap};

use callboard_domain::ids::{ProjectId, TestCaseId};
use callboard_domain::time::Timestamp;
use callboard_store::lanes::{self, BrowserProject};
use callboard_store::test_cases::Resolved;
use callboard_store::{Store, StoreError};

use crate::Result;
use crate::apply::attempt_merge::Group;

/// What the chunks of one request need to know of their project. It is read
/// before the transactions that use it, which nobody should wait for longer
/// than needed.
#[derive(Debug, Default)]
pub(crate) struct ProjectLookups {
    /// Ids of browser projects by name.
    browsers: HashMap<String, i64>,
    /// Tests in quarantine, ascending.
    aside: Vec<TestCaseId>,
}

impl ProjectLookups {
    /// Reads it. Browser projects of the groups that are not known are made, each in
    /// a short transaction: one that is being made holds up everyone who makes
    /// another.
    pub(crate) async fn read(
        store: &Store,
        project: ProjectId,
        groups: &[Group],
        now: Timestamp,
    ) -> Result<Self> {
        if groups.is_empty() {
            return Ok(Self::default());
        }
        let mut session = store.db().read().await?;
        let (browsers, aside) = lanes::browsers_and_quarantine(&mut session, project, now).await?;
        drop(session);
        let mut known = Self::from_browsers(browsers, aside);
        for (name, browser_name) in known.missing(groups) {
            let mut session = store.db().begin().await?;
            let id = lanes::browser(&mut session, project, name, browser_name).await?;
            session.commit().await?;
            known.browsers.insert(name.to_owned(), id);
        }
        Ok(known)
    }

    fn from_browsers(browsers: Vec<BrowserProject>, aside: Vec<TestCaseId>) -> Self {
        Self { browsers: browsers.into_iter().map(|browser| (browser.name, browser.id)).collect(), aside }
    }

    /// The test and the browser project of a group.
    pub(crate) fn series(&self, resolved: &Resolved, group: &Group) -> Result<(TestCaseId, i64)> {
        let case = group.newest().and_then(|newest| resolved.ids.get(&newest.identity));
        let browser = group.newest().and_then(|newest| self.browsers.get(newest.browser_project.as_str()));
        let case = *case.ok_or(StoreError::Damaged("an unresolved test case"))?;
        Ok((case, browser.copied().unwrap_or_default()))
    }

    /// Whether a test is in quarantine.
    pub(crate) fn is_aside(&self, case: TestCaseId) -> bool {
        self.aside.binary_search(&case).is_ok()
    }

    /// The browser projects of some groups that are not known, with their browsers.
    fn missing<'g>(&self, groups: &'g [Group]) -> BTreeMap<&'g str, Option<&'g str>> {
        let mut missing = BTreeMap::new();
        for entry in groups.iter().filter_map(Group::newest) {
            if !self.browsers.contains_key(&entry.browser_project) {
                missing.entry(entry.browser_project.as_str()).or_insert(entry.browser_name.as_deref());
            }
        }
        missing
    }
}
