//! The tests of a run as one file, part by part.

use callboard_auth::scope::Authorized;
use callboard_domain::export::ExportFormat;
use callboard_domain::ids::{ProjectId, RunId};
use callboard_store::boxed;

use super::{ExportHead, ExportWish, ExportedTest, csv, ctrf, head, junit, page};
use crate::{Context, Result};

/// The tests of a run as a file.
#[derive(Debug, Clone)]
pub struct RunFile {
    /// What it is read with.
    pub ctx: Context,
    /// Project of the run.
    pub project: Authorized<ProjectId>,
    /// The run.
    pub run: RunId,
    /// Form of the file.
    pub format: ExportFormat,
    /// What it holds.
    pub wish: ExportWish,
}

/// A part of a file.
#[derive(Debug, Clone)]
pub struct Part {
    /// Its bytes.
    pub bytes: String,
    /// Where the next one begins; `None` for the last.
    pub next: Option<i64>,
}

impl RunFile {
    /// The name to save it under.
    #[must_use]
    pub fn name(&self) -> String {
        format!("callboard-run-{}.{}", self.run, self.format.extension())
    }

    /// What is known before the first test.
    ///
    /// # Errors
    /// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
    #[boxed]
    pub async fn head(&self) -> Result<ExportHead> {
        head(&self.ctx, self.project, self.run, &self.wish).await
    }

    /// A page of the file: its beginning on the first, its end on the last.
    ///
    /// # Errors
    /// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
    #[boxed]
    pub async fn part(&self, head: &ExportHead, after: Option<i64>) -> Result<Part> {
        let page = page(&self.ctx, self.project, self.run, &self.wish, after).await?;
        let mut bytes = if after.is_none() { self.beginning(head) } else { String::new() };
        for (at, test) in page.items.iter().enumerate() {
            let is_first = after.is_none() && at == 0 && head.run_errors.is_empty();
            bytes.push_str(&self.test(test, is_first));
        }
        if page.next.is_none() {
            match self.format {
                ExportFormat::Junit => bytes.push_str(&junit::tail()),
                ExportFormat::Ctrf => bytes.push_str(&ctrf::tail(head)),
                ExportFormat::Csv | ExportFormat::Ndjson => {}
            }
        }
        Ok(Part { bytes, next: page.next })
    }

    fn beginning(&self, head: &ExportHead) -> String {
        match self.format {
            ExportFormat::Junit => junit::head(head),
            ExportFormat::Ctrf => ctrf::head(head),
            ExportFormat::Csv => csv::head(&self.wish, false),
            ExportFormat::Ndjson => String::new(),
        }
    }

    fn test(&self, test: &ExportedTest, is_first: bool) -> String {
        match self.format {
            ExportFormat::Junit => junit::test(test),
            ExportFormat::Ctrf => ctrf::test(test, is_first),
            ExportFormat::Csv => csv::row(test, &self.wish),
            ExportFormat::Ndjson => json_line(test),
        }
    }
}

/// A value as a line of NDJSON.
pub(super) fn json_line(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).map(|line| line + "\n").unwrap_or_default()
}
