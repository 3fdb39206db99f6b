//! The protocol of resources that a function makes for a CloudFormation stack: an
//! event says what the stack does and where it waits for the answer.

use callboard_platform::egress::{EgressError, FixedHost};
use http::{Method, Request};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::MigrateError;

/// The whole answer may have 4,096 bytes.
const MAX_REASON_CHARS: usize = 1_000;
/// Never changes, so that the stack removes nothing.
const RESOURCE: &str = "callboard-schema";

/// What a stack asks for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct StackRequest {
    request_type: String,
    #[serde(rename = "ResponseURL")]
    response_url: String,
    stack_id: String,
    request_id: String,
    logical_resource_id: String,
}

impl StackRequest {
    /// The request an event holds, when it is one.
    pub(crate) fn read(event: &Value) -> Option<Self> {
        Self::deserialize(event).ok()
    }

    /// Whether the stack is removed; the database stays as it is.
    pub(crate) fn is_removal(&self) -> bool {
        self.request_type == "Delete"
    }

    /// Tells the stack how it went.
    ///
    /// # Errors
    /// [`MigrateError::Answer`] when it is not reached.
    pub(crate) async fn answer(&self, outcome: Result<i64, MigrateError>) -> Result<(), MigrateError> {
        let (status, reason, schema) = match outcome {
            Ok(schema) => ("SUCCESS", String::new(), Some(schema)),
            Err(error) => ("FAILED", error.to_string().chars().take(MAX_REASON_CHARS).collect(), None),
        };
        let answer = json!({
            "Status": status,
            "Reason": reason,
            "PhysicalResourceId": RESOURCE,
            "StackId": self.stack_id,
            "RequestId": self.request_id,
            "LogicalResourceId": self.logical_resource_id,
            "Data": { "Schema": schema.unwrap_or_default().to_string() },
        });
        // The address is signed for a request without a content type.
        let request = Request::builder().method(Method::PUT).uri(&self.response_url);
        let answered = FixedHost::new()?.send(request.body(answer.to_string().into_bytes())?).await?;
        match answered.status().is_success() {
            true => Ok(()),
            false => Err(EgressError::Status(answered.status()).into()),
        }
    }
}
