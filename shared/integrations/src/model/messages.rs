//! The Anthropic messages API. A structured answer is the input of one tool
//! that the model has to call, which all its models support.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::error::ModelError;
use super::language_model::{LanguageModel, ModelReply, ModelRequest, OutputMode, Turn};
use super::transport::{Received, Transport, tokens};

/// Client of the messages API.
pub(super) struct Messages(Transport);

impl Messages {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    fn body(&self, request: &ModelRequest, mode: OutputMode) -> Value {
        let turns = request.turns.iter().map(|turn| match turn {
            Turn::User(text) => json!({ "role": "user", "content": text }),
            Turn::Model(text) => json!({ "role": "assistant", "content": text }),
        });
        let mut body = json!({
            "model": self.0.model(),
            "max_tokens": request.max_output_tokens,
            "system": request.instructions_for(mode),
            "messages": turns.collect::<Vec<_>>(),
        });
        if let (Some((name, schema)), OutputMode::Schema) = (&request.schema, mode) {
            let description = "Records the answer. Call it exactly once.";
            body["tools"] = json!([{ "name": name, "description": description, "input_schema": schema }]);
            body["tool_choice"] = json!({ "type": "tool", "name": name });
        }
        body
    }

    fn read(
        &self,
        request: &ModelRequest,
        answer: &Value,
        mode: OutputMode,
        calls: i64,
    ) -> Result<ModelReply, ModelError> {
        let blocks = answer["content"].as_array().ok_or_else(|| self.0.unreadable())?;
        if answer["stop_reason"] == "max_tokens" {
            return Err(ModelError::CutOff);
        }
        let name = request.schema.as_ref().map(|(name, _)| *name);
        let call = blocks
            .iter()
            .find(|block| block["type"] == "tool_use" && name.is_some_and(|name| block["name"] == name));
        let text = match call {
            Some(call) => call["input"].to_string(),
            None => blocks.iter().filter_map(|block| block["text"].as_str()).collect(),
        };
        if text.trim().is_empty() {
            return Err(ModelError::NoAnswer);
        }
        Ok(ModelReply {
            text,
            input_tokens: tokens(&answer["usage"]["input_tokens"]),
            output_tokens: tokens(&answer["usage"]["output_tokens"]),
            mode,
            calls,
        })
    }
}

#[async_trait]
impl LanguageModel for Messages {
    async fn ask(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let mut refused = 400;
        for (calls, mode) in (1..).zip(request.modes(false)) {
            match self.0.post("v1/messages", &self.body(request, *mode)).await? {
                Received::Answer(answer) => return self.read(request, &answer, *mode, calls),
                Received::Refused(status) => refused = status,
            }
        }
        Err(self.0.refused(refused))
    }
}
