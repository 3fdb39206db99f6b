use callboard_auth::{Identity, Origin, Role};
use callboard_http::{AppState, Site};
use callboard_platform::config::Config;

use super::*;
use crate::context::Narrowing;

const PLAIN: Tool = Tool {
    name: "a_tool",
    title: "A tool",
    description: "Does nothing.",
    group: Group::Runs,
    roles: Roles::ALL,
    hints: Hints::READ,
    parameters: &[],
    sections: Sections::NONE,
    result: outputs::empty,
    call: |_| Box::pin(async { answer(&json!({"ok": true})) }),
};
static PANICS: Tool = Tool { call: |_| panic!("SELECT secret"), ..PLAIN };
static FAILS: Tool = Tool { call: |_| Box::pin(async { Err(ToolError::fault("SELECT secret")) }), ..PLAIN };
static FOR_USERS: Tool =
    Tool { roles: Roles::new(&[Role::User]), parameters: &[Parameter::id("runId", "list_runs")], ..PLAIN };
static WRITES: Tool = Tool {
    hints: Hints { read_only: false, destructive: false, idempotent: true, open_world: false },
    ..PLAIN
};

async fn run(tool: &'static Tool, query: &str) -> Result<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let data = [("SERVICE_DATA_DIR".to_owned(), folder.path().to_str().unwrap().to_owned())];
    let state = AppState::connect(Config::from_env(data).unwrap()).await.unwrap();
    state.store().migrate().await.unwrap();
    let site = Site(Origin::parse("http://localhost:3000").unwrap());
    let identity = Identity::auth_off();
    let context = Context::new(state, site, identity, Narrowing::parse(query));
    tool.run(&context, None).await.map(|answered| answered.text).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_panic_ends_the_call_and_not_the_connection() {
    assert_eq!(run(&PANICS, "").await, Err("panic: SELECT secret".to_owned()));
    assert_eq!(run(&FAILS, "").await, Err("SELECT secret".to_owned()));
    for fault in ["panic: SELECT secret", "SELECT secret"] {
        let told = crate::methods::sentence("a_tool", &ToolError::fault(fault));
        assert_eq!(
            told,
            "Internal error in a_tool (reference -). Try again; quote the reference if it persists."
        );
    }
}

#[tokio::test]
async fn work_that_never_ends_is_given_up() {
    let never = std::future::pending::<Result<(), ToolError>>();
    let given_up = guarded(Duration::ZERO, never).await.map_err(|error| error.to_string());
    assert_eq!(given_up, Err("no answer within 0 s".to_owned()));
}

#[tokio::test]
async fn the_role_is_judged_before_the_arguments() {
    let refused = run(&FOR_USERS, "").await;
    assert_eq!(refused, Err("This action requires the user role (yours: administrator).".to_owned()));
}

#[tokio::test]
async fn a_read_only_connection_refuses_what_writes() {
    assert_eq!(run(&WRITES, "").await, Ok("{\"ok\":true}".to_owned()));
    assert!(run(&WRITES, "readonly=1").await.unwrap_err().contains("read-only"));
    assert!(run(&FAILS, "readonly=1").await.is_err_and(|error| error == "SELECT secret"));
    assert!(!Narrowing::parse("readonly=1").lists(&WRITES));
}
