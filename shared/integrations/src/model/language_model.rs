//! What every client of a model can do.

use async_trait::async_trait;
use serde_json::Value;

use super::error::ModelError;

/// How the answer is made to be JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMode {
    /// The endpoint enforces the schema.
    Schema,
    /// The endpoint enforces JSON; the schema is part of the instructions.
    Json,
    /// The instructions alone.
    Text,
}

/// A turn of the conversation, the newest last. The first one is the person's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// What the model is asked.
    User(String),
    /// What it answered.
    Model(String),
}

/// A question.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Instructions, which hold no evidence.
    pub instructions: String,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// Name and JSON schema of the answer; none for an answer in words.
    pub schema: Option<(&'static str, Value)>,
    /// Tokens of the answer.
    pub max_output_tokens: u32,
}

/// An answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelReply {
    /// Text, or the JSON of a structured answer.
    pub text: String,
    /// Tokens that the endpoint counted for the request; 0 where it says nothing.
    pub input_tokens: i64,
    /// Tokens of the answer.
    pub output_tokens: i64,
    /// How the answer was made to be JSON.
    pub mode: OutputMode,
    /// Requests it took: endpoints that know no schema are asked again without.
    pub calls: i64,
}

/// A model behind an endpoint.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Asks a question. With a schema, endpoints that refuse it are asked again
    /// with JSON mode, and then with instructions alone.
    async fn ask(&self, request: &ModelRequest) -> Result<ModelReply, ModelError>;
}

impl ModelRequest {
    /// Instructions for an output mode: where the endpoint does not enforce the
    /// schema, it is part of them.
    pub(super) fn instructions_for(&self, mode: OutputMode) -> String {
        match (&self.schema, mode) {
            (None, _) | (_, OutputMode::Schema) => self.instructions.clone(),
            (Some((_, schema)), OutputMode::Json | OutputMode::Text) => format!(
                "{}\n\nAnswer with one JSON object and nothing else. It must match this JSON schema:\n{schema}",
                self.instructions
            ),
        }
    }

    /// The modes that are tried, best first.
    pub(super) const fn modes(&self, with_json: bool) -> &'static [OutputMode] {
        match (&self.schema, with_json) {
            (None, _) => &[OutputMode::Text],
            (Some(_), true) => &[OutputMode::Schema, OutputMode::Json, OutputMode::Text],
            (Some(_), false) => &[OutputMode::Schema, OutputMode::Text],
        }
    }
}
