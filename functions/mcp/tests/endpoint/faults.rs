//! A store that is gone: what needs it says so with a reference, and what does
//! not goes on.

use callboard_store::Db;
use serde_json::json;

use crate::support::Service;

#[tokio::test]
async fn a_store_that_is_gone_is_told_with_a_reference_and_nothing_else() {
    let service = Service::start().await;
    let Db::Sqlite { readers, .. } = service.state.store().db() else { panic!("another database") };
    readers.close().await;
    for (tool, arguments) in [("list_projects", json!({})), ("get_run", json!({"runId": 1}))] {
        let text = service.call(tool, arguments).await.unwrap_err();
        let reference = text
            .strip_prefix(&format!("Internal error in {tool} (reference "))
            .and_then(|rest| rest.strip_suffix("). Try again; quote the reference if it persists."));
        assert!(
            reference.is_some_and(|reference| !reference.is_empty() && !reference.contains(' ')),
            "{text}"
        );
    }
    let prompt = service.request("prompts/get", json!({"name": "setup_service"})).await;
    assert_eq!(prompt["error"]["code"], -32603);
    assert!(prompt["error"]["message"].as_str().unwrap().starts_with("Internal error (reference "));
    // Neither the list nor the handshake asks the store.
    assert_eq!(service.names_of_tools().await.len(), 40);
    service.result("initialize", json!({})).await;
}
