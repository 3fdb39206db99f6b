//! The slice of a project's history that answers made of rollups are about.

use callboard_query::test_cases::LaneQuery;
use serde::Serialize;
use utoipa::IntoParams;

use crate::error::ApiError;
use crate::extract::{FromQuery, QueryReader};

/// Branch and environment, one or all of each.
#[derive(Debug, Default, PartialEq, Serialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct Lane {
    /// Numbers of this branch only.
    branch: Option<String>,
    /// Numbers of this environment only.
    environment: Option<String>,
}

impl FromQuery for Lane {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        Ok(Self { branch: query.lane("branch")?, environment: query.lane("environment")? })
    }
}

impl Lane {
    /// As questions take it.
    #[must_use]
    pub fn query(&self) -> LaneQuery {
        LaneQuery { branch: self.branch.clone(), environment: self.environment.clone() }
    }
}
