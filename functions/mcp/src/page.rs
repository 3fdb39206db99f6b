//! The page people see at `/mcp`: the address, what to paste where, and a
//! button that tries it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use askama::Template;
use axum::response::{IntoResponse, Response};
use callboard_http::extract::Tail;
use callboard_http::{ApiError, lone};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::Value;

use crate::parameter::{Need, Parameter};
use crate::tool::{Group, Tool};
use crate::tools::TOOLS;

static STYLE: LazyLock<String> =
    LazyLock::new(|| format!("{}{}", lone::STYLE, include_str!("../assets/page.css")));

/// Inputs of the page. It shows nothing of what is stored.
#[derive(Debug, Template)]
#[template(path = "setup.html")]
pub(crate) struct SetupPage {
    /// Address of the endpoint.
    pub endpoint: String,
    /// Whether callers need a key.
    pub key_required: bool,
    /// Whether this is a read-only demo.
    pub is_demo: bool,
}

impl SetupPage {
    /// The page.
    ///
    /// # Errors
    /// When the template cannot be written.
    pub(crate) fn html(&self) -> Result<String, askama::Error> {
        self.render()
    }

    fn tools(&self) -> &'static [&'static Tool] {
        TOOLS
    }

    fn groups(&self) -> [Group; Group::ALL.len()] {
        Group::ALL
    }

    /// Whether clients have to be told that the address is meant to be plain HTTP.
    fn is_plain_http(&self) -> bool {
        self.endpoint.starts_with("http://")
    }

    /// What a tool can be told: `runId*, statusFilter {failed|all} = failed`.
    fn arguments(&self, tool: &Tool) -> String {
        let advertised = tool.parameters.iter().filter(|parameter| parameter.is_advertised);
        advertised.map(argument).collect::<Vec<_>>().join(", ")
    }

    /// What a tool answers: `{clusterId, affectedTestCases[{testCaseId, title}]}`.
    fn result(&self, tool: &Tool) -> String {
        fields(&(tool.result)())
    }
}

fn argument(parameter: &Parameter) -> String {
    let schema = parameter.schema();
    let mut text = parameter.name.to_owned();
    if parameter.need == Need::Required {
        text.push('*');
    }
    if schema["type"] == "array" {
        text.push_str("[]");
    }
    let words = schema["enum"].as_array().or_else(|| schema["items"]["enum"].as_array());
    if let Some(words) = words {
        let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
        // Writing to a string cannot fail.
        let _ = write!(text, " {{{}}}", words.join("|"));
    }
    if schema["items"]["type"] == "object" {
        text.push_str(&fields(&schema["items"]));
    }
    match (&schema["default"], &schema["minimum"], &schema["maximum"]) {
        (Value::Number(default), min, max) => {
            let _ = write!(text, " {min}..{max} = {default}");
        }
        (Value::String(default), ..) => {
            let _ = write!(text, " = {default}");
        }
        _ => {}
    }
    text
}

/// The fields of an object and what is inside them; nothing where that is not said.
fn fields(schema: &Value) -> String {
    let Some(fields) = schema["properties"].as_object().filter(|fields| !fields.is_empty()) else {
        return String::new();
    };
    let each = fields.iter().map(|(name, field)| match field["type"].as_str() {
        Some("array") => format!("{name}[{}]", self::fields(&field["items"])),
        _ => format!("{name}{}", self::fields(field)),
    });
    format!("{{{}}}", each.collect::<Vec<_>>().join(", "))
}

/// The style and the scripts of the page.
pub(crate) async fn asset(Tail(name): Tail) -> Result<Response, ApiError> {
    let (kind, text) = match name.as_str() {
        "page.css" => ("text/css; charset=utf-8", STYLE.as_str()),
        "lone.js" => ("text/javascript; charset=utf-8", lone::SCRIPT),
        "page.js" => ("text/javascript; charset=utf-8", include_str!("../assets/page.js")),
        _ => return Err(ApiError::route_not_found()),
    };
    // They have no fingerprint in their address, so they are asked for again.
    Ok(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_address_and_nothing_inline() {
        let page = |key_required| {
            SetupPage { endpoint: "https://t.example/mcp".to_owned(), key_required, is_demo: false }
                .html()
                .unwrap()
        };
        let open = page(false);
        assert!(open.contains("claude mcp add --transport http callboard https://t.example/mcp"));
        assert!(open.contains("No key is needed"));
        assert!(TOOLS.iter().all(|tool| open.contains(tool.name)));
        for forbidden in ["<script>", "<style", "style=", "onclick", "pd_"] {
            assert!(!open.contains(forbidden), "{forbidden}");
        }
        assert!(page(true).contains("Authorization: Bearer pd_"));
        assert!(!open.contains("--allow-http"));
        let plain = SetupPage {
            endpoint: "http://callboard.lan:3000/mcp".to_owned(),
            key_required: false,
            is_demo: false,
        };
        assert!(plain.html().unwrap().contains(r#""http://callboard.lan:3000/mcp", "--allow-http"]"#));
        assert!(
            open.contains("runId*, statusFilter {failed|flaky|all} = failed, pageSize 1..50 = 10, cursor")
        );
        assert!(open.contains("{items[{avgDuration, date, flakyRate, passRate, totalRuns}], "));
    }
}
