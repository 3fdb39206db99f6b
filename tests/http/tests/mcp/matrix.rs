//! Every tool, called wrongly in every way: the error is a sentence in the
//! result, and it tells nothing it should not.

use callboard_domain::account::{KeyPermission, Role};
use callboard_domain::ids::ProjectId;
use callboard_store::Backend;
use callboard_test_support::accounts::secured_settings;
use callboard_test_support::{Service, TestDatabase};
use serde_json::{Map, Value, json};

use super::agent::Agent;
use crate::builders::{attempt, run, with};
use crate::rows::{changed, every_row};

/// What is noted of whoever asks, refused or not, and what the timer keeps.
const MAY_CHANGE: [&str; 5] = ["jobs", "rate_limits", "audit_events", "api_keys", "id_counters"];

const SECRET_NAME: &str = "unannounced product";
/// Larger than every id there is.
const UNKNOWN: i64 = (1 << 53) - 1;

/// Ids of what a project holds, under the names arguments have.
pub(super) struct Holding(Map<String, Value>);

impl Holding {
    /// A project with a red run, stored by a service that lets everybody.
    async fn store(open: &Service, name: &str) -> Self {
        let red = with(run(name, "failed", vec![attempt("pays", "failed", 0)]), json!({"branch": "main"}));
        let stored = open.client().post_json("/api/test-runs/submit", &red).await.expect("stored");
        Self::new(open, &stored).await
    }

    /// What came with a run whose first failure is asked about.
    pub(super) async fn new(open: &Service, stored: &Value) -> Self {
        let run = stored["runId"].as_i64().expect("an id");
        let agent = Agent::at(open.client().clone(), "/mcp");
        let failed = agent.call("get_run", json!({"runId": run})).await.expect("a run");
        let failed = &failed["cases"][0];
        let mut ids = json!({
            "projectId": stored["projectId"], "runId": run, "testCaseId": failed["testCaseId"],
            "executionId": failed["executionId"], "entityId": run,
        });
        if !failed["clusterId"].is_null() {
            ids["clusterId"] = failed["clusterId"].clone();
        }
        Self(ids.as_object().cloned().expect("ids"))
    }

    fn unknown(&self) -> Self {
        Self(self.0.keys().map(|name| (name.clone(), json!(UNKNOWN))).collect())
    }

    /// Arguments that a tool accepts, about this project.
    pub(super) fn arguments(&self, tool: &Value) -> Value {
        let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
        let names = required.filter_map(Value::as_str);
        let mut arguments = Map::new();
        for name in names {
            let value = self.0.get(name).cloned().unwrap_or_else(|| plausible(tool, name));
            arguments.insert(name.to_owned(), value);
        }
        Value::Object(arguments)
    }
}

/// A value a required argument can have that names nothing stored.
fn plausible(tool: &Value, name: &str) -> Value {
    let property = &tool["inputSchema"]["properties"][name];
    if let Some(word) = property["enum"].get(0) {
        return word.clone();
    }
    match name {
        "sha" | "commit" => json!("abcdef1"),
        "module" => json!("./pages/checkout"),
        "steps" => json!([{"action": "goto", "value": "/"}]),
        "clusterId" | "diagnosisId" => json!(UNKNOWN),
        _ => json!("pays"),
    }
}

pub(super) fn name_of(tool: &Value) -> &str {
    tool["name"].as_str().expect("a name")
}

/// Nobody learns from an error what was not theirs to know.
fn assert_harmless(tool: &str, arguments: &Value, text: &str) {
    for forbidden in ["SELECT", "INSERT", "sqlx", ".rs", "/tmp", "panicked", SECRET_NAME] {
        assert!(!text.contains(forbidden), "{tool} {arguments}: {text}");
    }
    assert!(!text.contains("Internal error"), "{tool} {arguments}: {text}");
}

async fn with_two_projects(test: impl AsyncFn(Service, Holding, Holding)) {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let open = Service::over(TestDatabase::fresh(backend).await.expect("a scene"), &Vec::new())
            .await
            .expect("a scene");
        let mine = Holding::store(&open, "shop").await;
        let other = Holding::store(&open, SECRET_NAME).await;
        crate::comparison::work(&open).await;
        let mut settings = secured_settings();
        settings.push(("SERVICE_RATE_LIMITS".to_owned(), "off".to_owned()));
        let service = Service::over(open.into_database().await, &settings).await.expect("a scene");
        test(service, mine, other).await;
    }
}

async fn agent_of(service: &Service, name: &str, role: Role, project: &Value) -> Agent {
    let user = service.account(name, role).await.expect("a scene");
    service.assign(user, project.as_i64().map(ProjectId)).await.expect("a scene");
    Agent::at(service.program_of(user, KeyPermission::Full).await.expect("a scene"), "/mcp")
}

#[tokio::test]
async fn a_wrong_call_of_any_tool_is_told_in_a_sentence() {
    with_two_projects(async |service, mine, other| {
        let reporter = agent_of(&service, "ada", Role::Reporter, &mine.0["projectId"]).await;
        let user = agent_of(&service, "ben", Role::User, &mine.0["projectId"]).await;
        let before = every_row(&service, &MAY_CHANGE).await;
        for tool in reporter.tools().await {
            let name = name_of(&tool);
            if name == "get_instance_stats" {
                let text = reporter.call(name, json!({})).await.unwrap_err();
                assert_eq!(text, "This action requires the administrator role (yours: reporter).");
                continue;
            }
            let properties = tool["inputSchema"]["properties"].as_object().expect("properties");
            let good = mine.arguments(&tool);

            // Missing.
            for missing in good.as_object().expect("an object").keys() {
                let mut arguments = good.clone();
                arguments.as_object_mut().expect("an object").remove(missing);
                let text = reporter.call(name, arguments.clone()).await.unwrap_err();
                assert!(text.starts_with(&format!("`{missing}` is required (")), "{name}: {text}");
                assert_harmless(name, &arguments, &text);
            }

            // Of a wrong type.
            for (argument, schema) in properties {
                let wrong = match (schema["type"].as_str(), schema.get("enum")) {
                    (Some("integer"), _) => json!("x"),
                    (Some("boolean"), _) => json!("perhaps"),
                    (Some("string"), Some(_)) => json!("nonsense"),
                    _ => json!(7),
                };
                let mut arguments = good.clone();
                arguments[argument] = wrong;
                let text = reporter.call(name, arguments.clone()).await.unwrap_err();
                let is_told = text.starts_with(&format!("`{argument}` must be "));
                let is_cursor = argument == "cursor" && text.starts_with("Invalid cursor.");
                assert!(is_told || is_cursor, "{name}.{argument}: {text}");
                assert_harmless(name, &arguments, &text);
            }

            // Of somebody else, and of nobody.
            let names_something =
                good.as_object().expect("an object").keys().any(|name| name.ends_with("Id"));
            if names_something {
                let arguments = mine.unknown().arguments(&tool);
                let text = reporter.call(name, arguments.clone()).await.unwrap_err();
                assert!(text.contains(&format!("{UNKNOWN} not found.")), "{name}: {text}");
                assert_harmless(name, &arguments, &text);
            }
            let arguments = other.arguments(&tool);
            let is_foreign = names_something && good != arguments;
            if is_foreign {
                let text = reporter.call(name, arguments.clone()).await.unwrap_err();
                assert!(text.starts_with("No access to "), "{name} {arguments}: {text}");
                assert_harmless(name, &arguments, &text);
            }

            // In a role that only reads.
            let writes = tool["annotations"]["readOnlyHint"] == json!(false);
            if writes {
                let text = user.call(name, good).await.unwrap_err();
                assert_eq!(
                    text, "This action requires the reporter or administrator role (yours: user).",
                    "{name}"
                );
            }
        }
        assert_eq!(changed(&before, &every_row(&service, &MAY_CHANGE).await), Vec::<&str>::new());
    })
    .await;
}

#[tokio::test]
async fn the_list_is_the_same_for_everybody_and_others_see_nothing_of_a_project() {
    with_two_projects(async |service, mine, _| {
        let lists = [
            agent_of(&service, "admin", Role::Administrator, &Value::Null).await,
            agent_of(&service, "reporter", Role::Reporter, &Value::Null).await,
            agent_of(&service, "user", Role::User, &mine.0["projectId"]).await,
        ];
        let first = lists[0].tools().await;
        for agent in &lists {
            assert_eq!(agent.tools().await, first);
        }
        let [_, everything, one] = &lists;
        let newcomer = service.account("newcomer", Role::User).await.unwrap();
        let none = Agent::at(service.program_of(newcomer, KeyPermission::Full).await.unwrap(), "/mcp");
        for tool in &first {
            let name = name_of(tool);
            let asks_nothing = tool["inputSchema"].get("required").is_none();
            if !(asks_nothing || name == "search") || name == "get_instance_stats" {
                continue;
            }
            let arguments = if name == "search" { json!({"query": "unannounced"}) } else { json!({}) };
            let seen = everything.call(name, arguments.clone()).await.unwrap().to_string();
            let is_about_projects = seen.contains(SECRET_NAME);
            for (agent, who) in [(one, "one"), (&none, "none")] {
                let text = agent.call(name, arguments.clone()).await.unwrap().to_string();
                assert!(!text.contains(SECRET_NAME), "{name} for {who}: {text}");
            }
            assert!(
                is_about_projects || name == "list_tags" || name == "list_open_clusters",
                "{name}: {seen}"
            );
        }
    })
    .await;
}
