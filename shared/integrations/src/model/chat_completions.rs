//! Endpoints that answer `POST /chat/completions`: OpenAI, gateways, and local
//! servers such as Ollama, vLLM, llama.cpp and LM Studio.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::error::ModelError;
use super::event_stream::EventReader;
use super::language_model::{Draft, Form, LanguageModel, ModelReply, ModelRequest, OutputMode, Turn};
use super::transport::{Received, Transport, tokens};

/// The one host whose newer models refuse the older name of the output limit.
const OPENAI: &str = "api.openai.com";

/// Client of the chat completions API.
pub(super) struct ChatCompletions(Transport);

impl ChatCompletions {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    fn body(&self, request: &ModelRequest, form: Form) -> Value {
        let system = json!({ "role": "system", "content": request.instructions_for(form.mode) });
        let mut pictures = request.pictures_for(form);
        let turns = request.turns.iter().map(|turn| match turn {
            Turn::User(text) if pictures.is_empty() => json!({ "role": "user", "content": text }),
            Turn::User(text) => {
                let text = json!({ "type": "text", "text": text });
                let images = std::mem::take(&mut pictures).iter().map(|picture| {
                    let url = format!("data:{};base64,{}", picture.media_type, picture.base64);
                    json!({ "type": "image_url", "image_url": { "url": url } })
                });
                json!({ "role": "user", "content": std::iter::once(text).chain(images).collect::<Vec<_>>() })
            }
            Turn::Model(text) => json!({ "role": "assistant", "content": text }),
        });
        let messages: Vec<Value> = std::iter::once(system).chain(turns).collect();
        let limit = if self.0.is_host(OPENAI) { "max_completion_tokens" } else { "max_tokens" };
        let mut body = json!({ "model": self.0.model(), "messages": messages, "stream": form.is_streamed });
        if form.is_streamed {
            // Without it a stream counts no tokens.
            body["stream_options"] = json!({ "include_usage": true });
        }
        body[limit] = request.max_output_tokens.into();
        match (&request.schema, form.mode) {
            (Some((name, schema)), OutputMode::Schema) => {
                let schema = json!({ "name": name, "strict": true, "schema": schema });
                body["response_format"] = json!({ "type": "json_schema", "json_schema": schema });
            }
            (Some(_), OutputMode::Json) => body["response_format"] = json!({ "type": "json_object" }),
            _ => {}
        }
        body
    }
}

/// An answer, as far as it has arrived.
struct Chunks<'d> {
    draft: &'d Draft,
    text: String,
    /// Why the model stopped.
    finish: Option<String>,
    input_tokens: i64,
    output_tokens: i64,
    has_failed: bool,
}

impl<'d> Chunks<'d> {
    fn new(draft: &'d Draft) -> Self {
        draft.clear();
        Self {
            draft,
            text: String::new(),
            finish: None,
            input_tokens: 0,
            output_tokens: 0,
            has_failed: false,
        }
    }

    /// Reads a choice: the whole message, or what a chunk adds to it.
    fn choice(&mut self, choice: &Value, part: &str) {
        if let Some(text) = choice[part]["content"].as_str() {
            self.text.push_str(text);
            self.draft.push(text);
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish = Some(reason.to_owned());
        }
    }

    fn count(&mut self, usage: &Value) {
        self.input_tokens = self.input_tokens.max(tokens(&usage["prompt_tokens"]));
        self.output_tokens = self.output_tokens.max(tokens(&usage["completion_tokens"]));
    }

    fn reply(self, mode: OutputMode, calls: i64) -> Result<ModelReply, ModelError> {
        if self.finish.as_deref() == Some("length") || self.finish.is_none() {
            return Err(ModelError::CutOff);
        }
        let text = self.text.trim();
        if text.is_empty() {
            return Err(ModelError::NoAnswer);
        }
        let (input_tokens, output_tokens) = (self.input_tokens, self.output_tokens);
        Ok(ModelReply { text: text.to_owned(), input_tokens, output_tokens, mode, calls })
    }
}

impl EventReader for Chunks<'_> {
    fn event(&mut self, event: &Value) {
        self.has_failed |= event["error"].is_object();
        self.choice(&event["choices"][0], "delta");
        self.count(&event["usage"]);
    }
}

#[async_trait]
impl LanguageModel for ChatCompletions {
    async fn ask(&self, request: &ModelRequest, draft: &Draft) -> Result<ModelReply, ModelError> {
        let mut refused = 400;
        for (calls, form) in (1..).zip(request.forms(true)) {
            let mut chunks = Chunks::new(draft);
            match self.0.post("chat/completions", &self.body(request, form), &mut chunks).await? {
                Received::Streamed if chunks.has_failed => return Err(self.0.failed(502)),
                Received::Streamed => return chunks.reply(form.mode, calls),
                Received::Answer(answer) => {
                    let choice = answer["choices"].get(0).ok_or_else(|| self.0.unreadable())?;
                    chunks.choice(choice, "message");
                    chunks.count(&answer["usage"]);
                    // Whoever answers whole does not always say why it stopped.
                    chunks.finish.get_or_insert_with(|| "stop".to_owned());
                    return chunks.reply(form.mode, calls);
                }
                Received::Refused(status) => refused = status,
            }
        }
        Err(self.0.refused(refused))
    }
}
