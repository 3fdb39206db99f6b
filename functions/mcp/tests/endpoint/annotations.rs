//! What people attached, as the tools tell it.

use callboard_auth::{Identity, Origin};
use callboard_domain::annotations::{LinkTarget, TagColor};
use callboard_http::Site;
use callboard_query::accounts::Acting;
use callboard_query::links::{self, Hook};
use callboard_query::tags;
use serde_json::json;

use crate::support::Service;

#[tokio::test]
async fn tags_and_links_are_told_as_they_were_attached() {
    let service = Service::start().await;
    let stored = service
        .submit(json!({
            "projectName": "shop", "status": "passed", "startTime": "2026-01-01T00:00:00.000Z", "duration": 1,
            "testCases": [{ "title": "pays", "status": "passed", "duration": 1, "location": "tests/a.spec.ts:1:1", "retries": 0 }],
        }))
        .await;
    let (run, execution) = (stored.run.get(), stored.executions[0].1.get());
    let ctx = service.state.context(&Site(Origin::localhost(3000)));
    let identity = Identity::auth_off();
    let acting = Acting::directly(&identity, None, service.state.now());
    for (text, color) in [("web", TagColor::Teal), ("api", TagColor::Red)] {
        tags::create(&ctx, acting, text, color).await.unwrap();
    }
    let told = service.call("list_tags", json!({})).await.unwrap();
    assert_eq!(
        told,
        json!({ "items": [
            { "tagId": 2, "text": "api", "color": "red" }, { "tagId": 1, "text": "web", "color": "teal" }
        ], "nextCursor": null })
    );

    let project = identity.scope().authorize(stored.project).unwrap();
    for (target, id) in [(LinkTarget::Run, run), (LinkTarget::Execution, execution)] {
        let url = format!("https://github.com/acme/shop/issues/{id}");
        let title = (id == run).then(|| "The bug".to_owned());
        links::create(&ctx, acting, project, Hook { target, id }, url, title).await.unwrap();
    }
    let asked = json!({ "entityType": "run", "id": run });
    let told = service.call("list_links", asked).await.unwrap();
    assert_eq!(
        told["items"],
        json!([{
            "linkId": 1, "url": format!("https://github.com/acme/shop/issues/{run}"), "provider": "github-issue",
            "key": format!("#{run}"), "title": "The bug",
        }])
    );
    let asked = json!({ "entityType": "test_runs_case", "entityId": execution });
    let told = service.call("list_links", asked).await.unwrap();
    assert_eq!(told["items"][0]["linkId"], 2);
    let refused =
        service.call("list_links", json!({ "entityType": "project", "entityId": 1 })).await.unwrap_err();
    assert!(
        refused.contains("test_run") && refused.contains("execution") && refused.contains("test_case"),
        "{refused}"
    );

    // More tags than one answer has.
    for n in 0..200 {
        tags::create(&ctx, acting, &format!("team {n:03}"), TagColor::Blue).await.unwrap();
    }
    let first = service.call("list_tags", json!({})).await.unwrap();
    assert_eq!(first["items"].as_array().unwrap().len(), 200);
    let rest = service.call("list_tags", json!({ "cursor": first["nextCursor"] })).await.unwrap();
    let texts: Vec<&str> =
        rest["items"].as_array().unwrap().iter().filter_map(|tag| tag["text"].as_str()).collect();
    assert_eq!((texts, &rest["nextCursor"]), (vec!["team 199", "web"], &serde_json::Value::Null));
    assert!(service.call("list_links", json!({ "entityType": "run", "entityId": 999 })).await.is_err());
}
