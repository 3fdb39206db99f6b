//! Endpoints that answer `POST /chat/completions`: OpenAI, gateways, and local
//! servers such as Ollama, vLLM, llama.cpp and LM Studio.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::error::ModelError;
use super::language_model::{LanguageModel, ModelReply, ModelRequest, OutputMode, Turn};
use super::transport::{Received, Transport, tokens};

/// The one host whose newer models refuse the older name of the output limit.
const OPENAI: &str = "api.openai.com";

/// Client of the chat completions API.
pub(super) struct ChatCompletions(Transport);

impl ChatCompletions {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    fn body(&self, request: &ModelRequest, mode: OutputMode) -> Value {
        let system = json!({ "role": "system", "content": request.instructions_for(mode) });
        let turns = request.turns.iter().map(|turn| match turn {
            Turn::User(text) => json!({ "role": "user", "content": text }),
            Turn::Model(text) => json!({ "role": "assistant", "content": text }),
        });
        let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
        let limit = if self.0.is_host(OPENAI) { "max_completion_tokens" } else { "max_tokens" };
        let mut body = json!({ "model": self.0.model(), "messages": messages, "stream": false });
        body[limit] = request.max_output_tokens.into();
        match (&request.schema, mode) {
            (Some((name, schema)), OutputMode::Schema) => {
                let schema = json!({ "name": name, "strict": true, "schema": schema });
                body["response_format"] = json!({ "type": "json_schema", "json_schema": schema });
            }
            (Some(_), OutputMode::Json) => body["response_format"] = json!({ "type": "json_object" }),
            _ => {}
        }
        body
    }

    fn read(&self, answer: &Value, mode: OutputMode, calls: i64) -> Result<ModelReply, ModelError> {
        let choice = answer["choices"].get(0).ok_or_else(|| self.0.unreadable())?;
        if choice["finish_reason"] == "length" {
            return Err(ModelError::CutOff);
        }
        let text = choice["message"]["content"].as_str().unwrap_or_default().trim();
        if text.is_empty() {
            return Err(ModelError::NoAnswer);
        }
        Ok(ModelReply {
            text: text.to_owned(),
            input_tokens: tokens(&answer["usage"]["prompt_tokens"]),
            output_tokens: tokens(&answer["usage"]["completion_tokens"]),
            mode,
            calls,
        })
    }
}

#[async_trait]
impl LanguageModel for ChatCompletions {
    async fn ask(&self, request: &ModelRequest) -> Result<ModelReply, ModelError> {
        let mut refused = 400;
        for (calls, mode) in (1..).zip(request.modes(true)) {
            match self.0.post("chat/completions", &self.body(request, *mode)).await? {
                Received::Answer(answer) => return self.read(&answer, *mode, calls),
                Received::Refused(status) => refused = status,
            }
        }
        Err(self.0.refused(refused))
    }
}
