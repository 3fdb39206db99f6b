//! What handlers ask for in their signatures. Parsing, limits and the
//! sentences of their errors live here, so a handler starts with values it
//! can trust.

mod body;
mod browser_form;
mod caller;
mod fields;
mod json;
mod multipart;
mod path;
mod payload;
mod pulse;
mod query;
mod visit;

pub(crate) use body::discard;
pub use body::{BodyError, BodyRules, CountedBody, limited_bytes};
pub use browser_form::{BrowserForm, is_browser_form, own_page};
pub use caller::Caller;
pub use fields::Fields;
pub(crate) use json::check_content_type;
pub use json::{JsonBody, JsonBytes, JsonPayload};
pub use multipart::{Multipart, Part};
pub use path::{EntityId, Granted, Path, Tail};
pub use payload::{Payload, Received, read_payload};
pub use pulse::Pulse;
pub use query::{FromQuery, Query, QueryReader};
pub use visit::Visit;
