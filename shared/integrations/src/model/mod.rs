//! Language models: one question with a structured answer, over the APIs that
//! most endpoints speak.
//!
//! Every client is a [`LanguageModel`]. Requests go through
//! [`AdminUrl`](callboard_platform::egress::AdminUrl), so a key reaches the
//! configured host and no other. Budgets, retries of whole diagnoses and what
//! is asked are the caller's.

mod chat_completions;
mod error;
mod event_stream;
mod language_model;
mod messages;
mod transport;

use callboard_domain::diagnosis::ModelProtocol;
use callboard_domain::time::Timestamp;
use callboard_platform::egress::AdminUrl;

pub use error::ModelError;
pub use language_model::{Draft, LanguageModel, ModelReply, ModelRequest, OutputMode, Picture, Turn};
pub use transport::ModelEndpoint;

use chat_completions::ChatCompletions;
use messages::Messages;
use transport::Transport;

/// Makes the client of an endpoint. `now` is the time that waiting periods of
/// answers count from.
#[must_use]
pub fn connect(client: AdminUrl, endpoint: ModelEndpoint, now: Timestamp) -> Box<dyn LanguageModel> {
    let protocol = endpoint.protocol;
    let transport = Transport::new(client, endpoint, now);
    match protocol {
        ModelProtocol::ChatCompletions => Box::new(ChatCompletions::new(transport)),
        ModelProtocol::Messages => Box::new(Messages::new(transport)),
    }
}
