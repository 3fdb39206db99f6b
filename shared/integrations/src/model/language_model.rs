//! What every client of a model can do.

use std::sync::{Mutex, PoisonError};

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

/// An image that goes along with the first turn.
#[derive(Clone, PartialEq, Eq)]
pub struct Picture {
    /// Media type: `image/png`, `image/jpeg` or `image/webp`.
    pub media_type: &'static str,
    /// The image in base64.
    pub base64: String,
}

impl std::fmt::Debug for Picture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Picture({}, {} characters)", self.media_type, self.base64.len())
    }
}

/// A question.
#[derive(Debug, Clone)]
pub struct ModelRequest {
    /// Instructions, which hold no evidence.
    pub instructions: String,
    /// The conversation.
    pub turns: Vec<Turn>,
    /// Images that belong to the first turn. Endpoints that take none are asked again without.
    pub pictures: Vec<Picture>,
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

/// What a model has written so far, for those who watch it. It is filled while the endpoint streams.
#[derive(Debug, Default)]
pub struct Draft(Mutex<String>);

impl Draft {
    /// The text so far.
    #[must_use]
    pub fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Bytes of the text so far.
    #[must_use]
    pub fn size(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// A new request begins.
    pub fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn push(&self, text: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push_str(text);
    }
}

/// A model behind an endpoint.
#[async_trait]
pub trait LanguageModel: Send + Sync {
    /// Asks a question; `draft` holds what the model has written so far. With a schema, endpoints that refuse it are
    /// asked again with JSON mode, and then with instructions alone; last of all without streaming.
    async fn ask(&self, request: &ModelRequest, draft: &Draft) -> Result<ModelReply, ModelError>;
}

/// The form of a request. Endpoints differ in what they take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    pub(super) mode: OutputMode,
    pub(super) has_pictures: bool,
    pub(super) is_streamed: bool,
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

    /// The forms that are tried, best first: a refused request is made again with less.
    pub(super) fn forms(&self, with_json: bool) -> Vec<Form> {
        let modes: &[OutputMode] = match (&self.schema, with_json) {
            (None, _) => &[OutputMode::Text],
            (Some(_), true) => &[OutputMode::Schema, OutputMode::Json, OutputMode::Text],
            (Some(_), false) => &[OutputMode::Schema, OutputMode::Text],
        };
        let with_pictures = modes.first().filter(|_| !self.pictures.is_empty());
        let with_pictures =
            with_pictures.map(|mode| Form { mode: *mode, has_pictures: true, is_streamed: true });
        let streamed = modes.iter().map(|mode| Form { mode: *mode, has_pictures: false, is_streamed: true });
        let plain = Form { mode: OutputMode::Text, has_pictures: false, is_streamed: false };
        with_pictures.into_iter().chain(streamed).chain([plain]).collect()
    }

    /// The images of a form.
    pub(super) fn pictures_for(&self, form: Form) -> &[Picture] {
        if form.has_pictures { &self.pictures } else { &[] }
    }
}
