//! The retention settings of one level as their row holds them: what is in
//! force, and changes that keep less and wait for their grace.

use callboard_domain::ids::UserId;
use callboard_domain::retention::{Edit, Overrides, Policy};
use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::settings::StoredSettings;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::held_branches::HeldBranches;
use super::preview::Preview;
use crate::Result;

const DAMAGED: StoreError = StoreError::Damaged("settings of retention");

/// A change that keeps less and is not in force yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Pending {
    /// What is to be set.
    pub waiting: Edit,
    /// When it comes into force.
    pub effective_at: Timestamp,
    /// When it was asked for.
    pub requested_at: Timestamp,
    /// Who asked for it; nobody for what the environment sets.
    pub requested_by: Option<UserId>,
    /// What it deletes.
    pub preview: Preview,
}

/// What a row says. Rows of earlier releases hold [`Stored::set`] alone.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stored {
    /// What people set, as far as it is in force.
    pub set: Overrides,
    /// What people set that is not in force yet.
    pub pending: Option<Pending>,
    /// What `SERVICE_RETENTION` sets, as far as it is in force; `None` before
    /// a start noted it. Of the installation only.
    pub environment: Option<Overrides>,
    /// What `SERVICE_RETENTION` sets that is not in force yet.
    pub pending_environment: Option<Pending>,
    /// Branches that are no longer tracked and still kept as before. Of projects only.
    pub held_branches: Option<HeldBranches>,
}

impl Stored {
    /// Reads a row; nothing is set where there is none.
    ///
    /// # Errors
    /// [`crate::QueryError::Store`] when the row cannot be read.
    pub fn read(row: Option<&StoredSettings>) -> Result<Self> {
        let Some(row) = row else { return Ok(Self::default()) };
        let value: Value = serde_json::from_str(&row.value).map_err(|_| DAMAGED)?;
        let environment = value.get("environment").map(|set| overrides(&set.to_string())).transpose()?;
        Ok(Self {
            set: overrides(&row.value)?,
            pending: value.get("pending").and_then(Pending::read),
            environment,
            pending_environment: value.get("pendingEnvironment").and_then(Pending::read),
            held_branches: value.get("heldBranches").and_then(|held| HeldBranches::deserialize(held).ok()),
        })
    }

    /// As the row holds it.
    #[must_use]
    pub fn to_json(&self) -> String {
        let mut value = json!(self.set);
        if let Some(pending) = &self.pending {
            value["pending"] = pending.to_json();
        }
        if let Some(environment) = &self.environment {
            value["environment"] = json!(environment);
        }
        if let Some(pending) = &self.pending_environment {
            value["pendingEnvironment"] = pending.to_json();
        }
        if let Some(held) = &self.held_branches {
            value["heldBranches"] = json!(held);
        }
        value.to_string()
    }

    /// What people set, whether it is in force or not.
    #[must_use]
    pub fn wanted(&self) -> Overrides {
        self.pending.as_ref().map_or_else(|| self.set.clone(), |pending| self.set.with(&pending.waiting))
    }

    /// What `SERVICE_RETENTION` sets, whether it is in force or not.
    #[must_use]
    pub fn wanted_environment(&self) -> Overrides {
        let environment = self.environment.clone().unwrap_or_default();
        match &self.pending_environment {
            Some(pending) => environment.with(&pending.waiting),
            None => environment,
        }
    }

    /// The policy of the installation when people set this.
    #[must_use]
    pub fn policy_with(&self, set: &Overrides) -> Policy {
        let policy = set.over(&Policy::default());
        self.environment.as_ref().map_or_else(|| policy.clone(), |environment| environment.over(&policy))
    }

    /// The policy of the installation that is in force.
    #[must_use]
    pub fn policy(&self) -> Policy {
        self.policy_with(&self.set)
    }
}

impl Pending {
    fn read(value: &Value) -> Option<Self> {
        Some(Self {
            waiting: Edit::from_json(value),
            effective_at: Timestamp(value["effectiveAt"].as_i64()?),
            requested_at: Timestamp(value["requestedAt"].as_i64()?),
            requested_by: value["requestedBy"].as_i64().map(UserId),
            preview: serde_json::from_value(value["preview"].clone()).unwrap_or_default(),
        })
    }

    fn to_json(&self) -> Value {
        let mut value = self.waiting.to_json();
        value["effectiveAt"] = json!(self.effective_at.millis());
        value["requestedAt"] = json!(self.requested_at.millis());
        value["requestedBy"] = json!(self.requested_by.map(UserId::get));
        value["preview"] = json!(self.preview);
        value
    }
}

fn overrides(text: &str) -> Result<Overrides> {
    Ok(Overrides::from_json(text).map_err(|_| DAMAGED)?)
}

#[cfg(test)]
mod tests {
    use callboard_domain::retention::Level;

    use super::*;

    fn row(value: &str) -> StoredSettings {
        StoredSettings { value: value.to_owned(), updated_at: Timestamp(1), updated_by: None }
    }

    #[test]
    fn a_row_reads_as_it_was_written_and_earlier_rows_read_as_what_is_set() {
        let edit = |value: Value| Edit::read(value.as_object().unwrap(), Level::Instance).unwrap();
        let set = Overrides::default().with(&edit(json!({ "runs": { "days": 30 } })));
        let pending = |value: Value| Pending {
            waiting: edit(value),
            effective_at: Timestamp(9),
            requested_at: Timestamp(5),
            requested_by: Some(UserId(7)),
            preview: Preview { runs: 12, partial: true, ..Preview::default() },
        };
        let stored = Stored {
            set: set.clone(),
            pending: Some(pending(json!({ "runs": { "days": 1 }, "evidence": null }))),
            environment: Some(Overrides::default()),
            pending_environment: Some(pending(json!({ "files": { "reportDays": 4 } }))),
            held_branches: None,
        };
        assert_eq!(Stored::read(Some(&row(&stored.to_json()))).unwrap(), stored);
        assert_eq!(
            (stored.policy().runs.days, stored.wanted().get("runs.days")),
            (Some(30), Some(&json!(1)))
        );
        let earlier = Stored::read(Some(&row(r#"{"runs.days":30}"#))).unwrap();
        assert_eq!(earlier, Stored { set, ..Stored::default() });
    }
}
