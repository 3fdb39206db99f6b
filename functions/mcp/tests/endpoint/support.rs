//! The endpoint over a fresh SQLite database, behind the front door, as the
//! local runner mounts it; and runs to ask about.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::Request;
use callboard_auth::{Identity, Origin};
use callboard_domain::ingest::{Need, RunFields, SubmitBody};
use callboard_http::{AppState, Door, Sandbox, Site, front};
use callboard_ingest::{Entries, Submission, Submitted, open_project, submit};
use callboard_platform::config::Config;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

/// A running endpoint. Its data goes with it.
pub struct Service {
    router: Router,
    pub state: AppState,
    _folder: tempfile::TempDir,
}

/// A whole answer.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {}", self.text))
    }

    pub fn header(&self, name: &str) -> Vec<&str> {
        self.headers.get_all(name).iter().map(|value| value.to_str().unwrap()).collect()
    }
}

impl Service {
    pub async fn start() -> Self {
        Self::with(&[]).await
    }

    pub async fn with(settings: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let data = ("SERVICE_DATA_DIR", folder.path().to_str().unwrap());
        // Tests ask faster than one address may.
        let unlimited = ("SERVICE_RATE_LIMITS", "off");
        let pairs = settings
            .iter()
            .chain([&data, &unlimited])
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let state = AppState::connect(Config::from_env(pairs).unwrap()).await.unwrap();
        state.store().migrate().await.unwrap();
        // What every process does at its start.
        state.refresh_auth_mode().await.unwrap();
        let state = state.with_sandbox(Sandbox::Loopback { port: 3001, main_port: 3000 });
        let router = front(callboard_fn_mcp::router(state.clone()), state.clone(), Door::Main);
        Self { router, state, _folder: folder }
    }

    pub async fn send(&self, mut request: Request) -> Answer {
        request.headers_mut().entry("host").or_insert("localhost:3000".parse().unwrap());
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.unwrap();
        Answer {
            status: parts.status,
            headers: parts.headers,
            text: String::from_utf8(bytes.to_vec()).unwrap(),
        }
    }

    pub async fn post(&self, body: impl Into<Body>) -> Answer {
        self.send(Request::post("/mcp").header("content-type", "application/json").body(body.into()).unwrap())
            .await
    }

    /// The answer to one request message.
    pub async fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.post(message.to_string()).await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        answer.json()
    }

    pub async fn result(&self, method: &str, params: Value) -> Value {
        let answer = self.request(method, params).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// What a tool answers, or the text of its error.
    pub async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let result = self.result("tools/call", json!({"name": tool, "arguments": arguments})).await;
        let content = result["content"].as_array().unwrap();
        assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
        let text = content[0]["text"].as_str().unwrap();
        match result.get("isError") {
            Some(Value::Bool(true)) => Err(text.strip_prefix("Error: ").unwrap().to_owned()),
            None => Ok(serde_json::from_str(text).unwrap()),
            other => panic!("isError is {other:?}"),
        }
    }

    pub async fn names_of_tools(&self) -> Vec<String> {
        let result = self.result("tools/list", json!({})).await;
        result["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Stores a run as a reporter would send it.
    pub async fn submit(&self, run: Value) -> Submitted {
        let site = Site(Origin::parse("http://localhost:3000").unwrap());
        let context = self.state.context(&site);
        let identity = Identity::auth_off();
        let mut body = SubmitBody::parse(run.to_string().into_bytes(), &self.state.config().caps).unwrap();
        let (fields, _) = RunFields::parse(&mut body.fields, Need::Submit).unwrap();
        let now = self.state.now();
        let name = fields.project_name.clone().unwrap();
        let project = open_project(
            &context,
            identity.scope(),
            &name,
            None,
            callboard_store::audit::Actor::default(),
            now,
        )
        .await
        .unwrap();
        let entries = Entries::Parsed(body.test_cases.unwrap_or_default().entries);
        submit(&context, project, Submission { fields, entries, ..Submission::default() }, now).await.unwrap()
    }
}

/// A run of `project`, started that many seconds into 2026, with these tests.
pub fn run(project: &str, second: u32, tests: &[Value]) -> Value {
    json!({
        "projectName": project,
        "status": "failed",
        "startTime": format!("2026-01-01T{:02}:{:02}:{:02}.000Z", second / 3600, second / 60 % 60, second % 60),
        "duration": 5000,
        "testCases": tests,
    })
}

/// A test of a run.
pub fn test(title: &str, status: &str) -> Value {
    json!({
        "title": title, "status": status, "duration": 1200, "location": "tests/shop.spec.ts:7:5", "retries": 0,
        "error": (status == "failed").then_some("Error: expected 200, got 500"),
    })
}
