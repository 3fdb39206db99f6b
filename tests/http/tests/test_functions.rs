//! Functions of suites: what is kept of them, what is refused, and that people
//! and agents keep the same.

use callboard_test_support::{Answer, Client, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::mcp::Agent;

fn paying() -> Value {
    json!({
        "name": "payWithCard", "kind": "page-object-method", "module": "./pages/checkout", "receiver": "CheckoutPage",
        "params": [{ "name": "card", "type": "string" }], "returnsPage": false, "urlPattern": "/checkout*",
        "steps": [
            { "action": "goto", "value": "/checkout" },
            { "action": "fill", "role": "textbox", "name": "Card", "value": "{{card}}" },
            { "action": "click", "role": "button", "name": "It's \"paid\"" },
        ],
    })
}

async fn send(client: &Client, method: Method, path: &str, body: Value) -> Answer {
    client.send_json(method, path, &body).await.expect("an answer")
}

#[track_caller]
fn refused(answer: &Answer, status: u16, code: &str) -> Value {
    let body = answer.json().expect("an error");
    assert_eq!((answer.status.as_u16(), body["code"].as_str()), (status, Some(code)), "{body}");
    body
}

async fn project_of(client: &Client) -> Value {
    let body = run("shop", "failed", vec![attempt("pays", "failed", 0)]);
    client.post_json("/api/test-runs/submit", &body).await.expect("stored")["projectId"].clone()
}

#[tokio::test]
async fn a_function_is_kept_changed_and_removed() {
    for_each_service(async |service| {
        let client = service.client();
        let path = format!("/api/projects/{}/test-functions", project_of(client).await);
        let stored = send(client, Method::POST, &path, paying()).await;
        assert_eq!(stored.status.as_u16(), 201, "{}", stored.text());
        let function = stored.json().expect("a body")["testFunction"].clone();
        assert_eq!((&function["source"], &function["confidence"]), (&json!("manual"), &json!(0.9333)));
        assert_eq!((&function["warnings"], &function["steps"][1]["name"]), (&json!([]), &json!("Card")));
        assert_eq!(
            function["code"],
            "async payWithCard(card: string): Promise<void> {\n  await this.page.goto('/checkout');\n  \
             await this.page.getByRole('textbox', { name: 'Card' }).fill(card);\n  \
             await this.page.getByRole('button', { name: 'It\\'s \"paid\"' }).click();\n}\n"
        );
        refused(&send(client, Method::POST, &path, paying()).await, 409, "already_exists");
        let helper = with(paying(), json!({ "name": "payAsGuest", "kind": "helper" }));
        let helper = send(client, Method::POST, &path, helper).await.success().expect("stored");

        let one = format!("/api/test-functions/{}", function["id"]);
        refused(
            &send(client, Method::PATCH, &one, json!({ "name": "payAsGuest" })).await,
            409,
            "already_exists",
        );
        refused(&send(client, Method::PATCH, &one, json!({ "colour": "red" })).await, 400, "no_fields");
        // Without its parameter the second step means nothing any more.
        let told =
            refused(&send(client, Method::PATCH, &one, json!({ "params": [] })).await, 400, "invalid_field");
        assert!(
            told["message"].as_str().expect("text").starts_with("steps[1]: \"card\" is no parameter"),
            "{told}"
        );
        for method in [Method::PATCH, Method::PUT] {
            let change = json!({ "urlPattern": null, "module": "./pages/pay" });
            let changed = send(client, method, &one, change).await.success().expect("changed");
            let changed = &changed["testFunction"];
            assert_eq!((&changed["module"], changed.get("urlPattern")), (&json!("./pages/pay"), None));
            assert_eq!(changed["receiver"], "CheckoutPage");
        }

        let names = |page: &Value| -> Vec<String> {
            let items = page["items"].as_array().expect("items").iter();
            items.map(|item| item["name"].as_str().expect("a name").to_owned()).collect()
        };
        let first = client.json(&format!("{path}?limit=1")).await.expect("a page");
        assert_eq!(names(&first), ["payAsGuest"]);
        let next = format!("{path}?limit=1&cursor={}", first["nextCursor"].as_str().expect("more"));
        let second = client.json(&next).await.expect("a page");
        assert_eq!((names(&second), &second["nextCursor"]), (vec!["payWithCard".to_owned()], &Value::Null));
        let helpers = client.json(&format!("{path}?kind=helper")).await.expect("a page");
        assert_eq!(helpers["items"], json!([helper["testFunction"]]));
        refused(&client.get(&format!("{path}?kind=class")).await.expect("an answer"), 400, "invalid_query");

        let removed = client.send(client.request(Method::DELETE, &one)).await.expect("an answer");
        assert_eq!(removed.status.as_u16(), 200);
        let gone = client.send(client.request(Method::DELETE, &one)).await.expect("an answer");
        refused(&gone, 404, "function_not_found");
        let log = client.json("/api/audit?action=function.").await.expect("entries");
        let words = log["items"].as_array().expect("items").iter().map(|item| item["action"].as_str());
        assert_eq!(
            words.flatten().collect::<Vec<_>>(),
            [
                "function.deleted",
                "function.changed",
                "function.changed",
                "function.created",
                "function.created"
            ]
        );
    })
    .await;
}

#[tokio::test]
async fn everything_that_is_wrong_is_told_at_once_and_nothing_is_kept() {
    for_each_service(async |service| {
        let client = service.client();
        let project = project_of(client).await;
        let path = format!("/api/projects/{project}/test-functions");
        refused(&send(client, Method::POST, &path, json!({ "name": "pay" })).await, 400, "missing_field");
        let wrong = with(
            paying(),
            json!({ "name": "pay-now", "steps": [{ "action": "hover" }, { "action": "click", "name": "Pay" }] }),
        );
        let told = refused(&send(client, Method::POST, &path, wrong.clone()).await, 400, "invalid_field");
        assert_eq!(told["data"]["field"], "name");
        let sentence = told["message"].as_str().expect("text");
        for part in ["name: must be an identifier", "steps[0].action: must be one of", "steps[1].role: is required"] {
            assert!(sentence.contains(part), "{sentence}");
        }
        let agent = Agent::at(client.clone(), "/mcp");
        let mut arguments = with(wrong, json!({ "projectId": project }));
        arguments["steps"][0]["action"] = json!("hover");
        let text = agent.call("create_test_function", arguments).await.unwrap_err();
        assert_eq!(text, sentence, "an agent reads the same");
        assert_eq!(client.json(&path).await.expect("a page")["items"], json!([]));
    })
    .await;
}

#[tokio::test]
async fn an_agent_keeps_what_a_person_reads() {
    for_each_service(async |service| {
        let client = service.client();
        let project = project_of(client).await;
        let agent = Agent::at(client.clone(), "/mcp");
        // As agents send it: numbers and lists as text, other spellings, the element as an object.
        let arguments = json!({
            "project": project.to_string(), "name": "payWithCard", "kind": "Helper", "module": "./pages/checkout",
            "import_name": "pay", "params": [{ "name": "card", "type": "STRING" }],
            "steps": "[{\"action\":\"fill\",\"target\":{\"role\":\"textbox\",\"name\":\"Card\"},\"value\":\"4242\"},\
                       {\"action\":\"click\",\"test_id\":\"pay\"}]",
            "param_sources": [{ "param": "card", "step_index": "0", "from": "value" }],
        });
        let stored = agent.call("create_test_function", arguments.clone()).await.expect("stored");
        let id = &stored["functionId"];
        assert_eq!(
            stored,
            json!({
                "ok": true, "functionId": id, "id": id, "projectId": project, "name": "payWithCard", "kind": "helper",
                "module": "./pages/checkout", "source": "ai-extracted",
            })
        );
        let twice = agent.call("create_test_function", arguments).await.unwrap_err();
        assert!(twice.contains("already exists"), "{twice}");
        let path = format!("/api/projects/{project}/test-functions");
        let page = client.json(&path).await.expect("a page");
        let function = &page["items"][0];
        assert_eq!((&function["id"], &function["importName"]), (id, &json!("pay")));
        assert_eq!(
            function["code"],
            "export async function payWithCard(page: Page, card: string): Promise<void> {\n  \
             await page.getByRole('textbox', { name: 'Card' }).fill(card);\n  \
             await page.getByTestId('pay').click();\n}\n"
        );
        let log = client.json("/api/audit?targetType=test_function").await.expect("entries");
        let entries = log["items"].as_array().expect("items");
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!((&entries[0]["action"], &entries[0]["targetId"]), (&json!("mcp.write"), id));
        assert_eq!(
            entries[0]["detail"],
            json!({
                "tool": "create_test_function", "action": "function.created", "before": null,
                "after": { "name": "payWithCard", "module": "./pages/checkout" },
            })
        );
    })
    .await;
}
