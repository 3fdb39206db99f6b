//! The Anthropic messages API. A structured answer is the input of one tool
//! that the model has to call, which all its models support.

use async_trait::async_trait;
use serde_json::{Value, json};

use super::error::ModelError;
use super::event_stream::EventReader;
use super::language_model::{Draft, Form, LanguageModel, ModelReply, ModelRequest, OutputMode, Turn};
use super::transport::{Received, Transport, tokens};

/// Client of the messages API.
pub(super) struct Messages(Transport);

impl Messages {
    pub(super) const fn new(transport: Transport) -> Self {
        Self(transport)
    }

    fn body(&self, request: &ModelRequest, form: Form) -> Value {
        let mut pictures = request.pictures_for(form);
        let turns = request.turns.iter().map(|turn| match turn {
            Turn::User(text) if pictures.is_empty() => json!({ "role": "user", "content": text }),
            Turn::User(text) => {
                let images = std::mem::take(&mut pictures).iter().map(|picture| {
                    let (kind, data) = (picture.media_type, &picture.base64);
                    json!({ "type": "image", "source": { "type": "base64", "media_type": kind, "data": data } })
                });
                let text = json!({ "type": "text", "text": text });
                json!({ "role": "user", "content": images.chain([text]).collect::<Vec<_>>() })
            }
            Turn::Model(text) => json!({ "role": "assistant", "content": text }),
        });
        let mut body = json!({
            "model": self.0.model(),
            "max_tokens": request.max_output_tokens,
            "system": request.instructions_for(form.mode),
            "messages": turns.collect::<Vec<_>>(),
            "stream": form.is_streamed,
        });
        if let (Some((name, schema)), OutputMode::Schema) = (&request.schema, form.mode) {
            let description = "Records the answer. Call it exactly once.";
            body["tools"] = json!([{ "name": name, "description": description, "input_schema": schema }]);
            body["tool_choice"] = json!({ "type": "tool", "name": name });
        }
        body
    }
}

/// An answer, as far as it has arrived.
struct Blocks<'d> {
    draft: &'d Draft,
    /// The tool that takes the answer.
    tool: Option<&'static str>,
    /// Words of the model.
    text: String,
    /// The answer as the tool's input.
    input: String,
    /// The block of the stream that is the tool's input.
    tool_block: Option<i64>,
    /// Why the model stopped.
    stop: Option<String>,
    input_tokens: i64,
    output_tokens: i64,
    /// Status of an error in the stream.
    failed: Option<u16>,
}

impl<'d> Blocks<'d> {
    fn new(draft: &'d Draft, request: &ModelRequest) -> Self {
        draft.clear();
        Self {
            draft,
            tool: request.schema.as_ref().map(|(name, _)| *name),
            text: String::new(),
            input: String::new(),
            tool_block: None,
            stop: None,
            input_tokens: 0,
            output_tokens: 0,
            failed: None,
        }
    }

    fn is_tool(&self, block: &Value) -> bool {
        block["type"] == "tool_use" && self.tool.is_some_and(|tool| block["name"] == tool)
    }

    fn count(&mut self, usage: &Value) {
        self.input_tokens = self.input_tokens.max(tokens(&usage["input_tokens"]));
        self.output_tokens = self.output_tokens.max(tokens(&usage["output_tokens"]));
    }

    fn stopped(&mut self, reason: &Value) {
        if let Some(reason) = reason.as_str() {
            self.stop = Some(reason.to_owned());
        }
    }

    /// Reads an answer that came whole.
    fn whole(&mut self, answer: &Value, blocks: &[Value]) {
        for block in blocks {
            if self.input.is_empty() && self.is_tool(block) {
                self.input = block["input"].to_string();
            }
            self.text.push_str(block["text"].as_str().unwrap_or_default());
        }
        self.count(&answer["usage"]);
        self.stop = Some("end_turn".to_owned());
        self.stopped(&answer["stop_reason"]);
    }

    fn reply(self, mode: OutputMode, calls: i64) -> Result<ModelReply, ModelError> {
        if self.stop.as_deref() == Some("max_tokens") || self.stop.is_none() {
            return Err(ModelError::CutOff);
        }
        let text = if self.input.is_empty() { self.text } else { self.input };
        if text.trim().is_empty() {
            return Err(ModelError::NoAnswer);
        }
        let (input_tokens, output_tokens) = (self.input_tokens, self.output_tokens);
        Ok(ModelReply { text, input_tokens, output_tokens, mode, calls })
    }
}

impl EventReader for Blocks<'_> {
    fn event(&mut self, event: &Value) {
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => self.count(&event["message"]["usage"]),
            "content_block_start" if self.tool_block.is_none() && self.is_tool(&event["content_block"]) => {
                self.tool_block = event["index"].as_i64();
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                if let Some(text) = delta["text"].as_str() {
                    self.text.push_str(text);
                    self.draft.push(text);
                }
                let is_input = self.tool_block.is_some() && event["index"].as_i64() == self.tool_block;
                if let Some(json) = delta["partial_json"].as_str().filter(|_| is_input) {
                    self.input.push_str(json);
                    self.draft.push(json);
                }
            }
            "message_delta" => {
                self.stopped(&event["delta"]["stop_reason"]);
                self.count(&event["usage"]);
            }
            "error" => {
                self.failed = Some(if event["error"]["type"] == "overloaded_error" { 529 } else { 500 });
            }
            _ => {}
        }
    }
}

#[async_trait]
impl LanguageModel for Messages {
    async fn ask(&self, request: &ModelRequest, draft: &Draft) -> Result<ModelReply, ModelError> {
        let mut refused = 400;
        for (calls, form) in (1..).zip(request.forms(false)) {
            let mut blocks = Blocks::new(draft, request);
            match self.0.post("v1/messages", &self.body(request, form), &mut blocks).await? {
                Received::Streamed => {
                    let failed = blocks.failed;
                    return failed
                        .map_or_else(|| blocks.reply(form.mode, calls), |status| Err(self.0.failed(status)));
                }
                Received::Answer(answer) => {
                    let found = answer["content"].as_array().ok_or_else(|| self.0.unreadable())?;
                    blocks.whole(&answer, found);
                    return blocks.reply(form.mode, calls);
                }
                Received::Refused(status) => refused = status,
            }
        }
        Err(self.0.refused(refused))
    }
}
