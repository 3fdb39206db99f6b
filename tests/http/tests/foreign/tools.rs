//! Agents ask by arguments: each of them names something of the other project
//! in turn.

use super::*;

#[tokio::test]
async fn no_tool_tells_of_another_project_whichever_argument_names_it() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let other = world.other().await;
        let before = state_of(&world.administrator, &other).await;
        let user = world.service.account("an agent", Role::Reporter).await.expect("an account");
        let project = ProjectId(world.mine.ids.project);
        world.service.assign(user, Some(project)).await.expect("assigned");
        let agent = world.service.program_of(user, KeyPermission::Full).await.expect("a key");
        let mut asked = 0;
        for client in [&agent, world.caller("a narrowed administrator"), world.caller("a newcomer")] {
            let message = |method: &str, params: Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let listed = client.post_json("/mcp", &message("tools/list", json!({}))).await.expect("tools");
            for tool in listed["result"]["tools"].as_array().expect("tools") {
                let properties = tool["inputSchema"]["properties"].as_object().expect("properties");
                let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
                let good: BTreeMap<&str, Value> = required
                    .iter()
                    .filter_map(Value::as_str)
                    .map(|name| (name, argument(name, &properties[name], &world.mine)))
                    .collect();
                let foreign =
                    properties.iter().map(|(name, schema)| (name.as_str(), argument(name, schema, &other)));
                let mut calls: Vec<BTreeMap<&str, Value>> = vec![foreign.clone().collect()];
                for (name, value) in foreign {
                    let mut call = good.clone();
                    call.insert(name, value);
                    calls.push(call);
                }
                for arguments in calls {
                    let params = json!({ "name": tool["name"], "arguments": arguments });
                    let answer =
                        client.post("/mcp", &message("tools/call", params.clone())).await.expect("an answer");
                    assert_eq!(answer.status, 200, "{params}");
                    assert!(!told(&answer).contains(SECRET), "{params}: {}", answer.text());
                    asked += 1;
                }
            }
            let params = json!({ "name": "setup_service", "arguments": { "projectName": WORD } });
            let answer = client.post("/mcp", &message("prompts/get", params)).await.expect("an answer");
            assert!(!told(&answer).contains(SECRET), "{}", answer.text());
            let completed = json!({
                "ref": { "type": "ref/prompt", "name": "setup_service" },
                "argument": { "name": "projectName", "value": &WORD[..3] },
            });
            let answer =
                client.post("/mcp", &message("completion/complete", completed)).await.expect("an answer");
            assert!(!told(&answer).contains(SECRET), "{}", answer.text());
            // Counts over all projects are for whom all of them are.
            let counts = json!({ "name": "get_instance_stats", "arguments": {} });
            let answer = client.post_json("/mcp", &message("tools/call", counts)).await.expect("an answer");
            assert_eq!(answer["result"]["isError"], true, "{answer}");
        }
        assert!(asked > 300, "{asked} calls");
        assert_eq!(differences(&before, &state_of(&world.administrator, &other).await), Vec::<String>::new());
    }
}

/// A value for an argument of a tool, out of what a project holds.
fn argument(name: &str, schema: &Value, held: &Held) -> Value {
    let ids = &held.ids;
    match name {
        "projectId" => json!(ids.project),
        "runId" | "testRunId" | "entityId" => json!(ids.run),
        "baselineRunId" | "otherRunId" => json!(held.green),
        "testCaseId" | "caseId" => json!(ids.test_case),
        "executionId" | "testRunCaseId" | "testRunsCaseId" => json!(ids.execution),
        "clusterId" | "diagnosisId" => json!(ids.cluster),
        "steps" => json!([{ "action": "goto", "value": "/" }]),
        "sha" | "commit" => json!("abcdef1"),
        "query" | "q" | "branch" | "project" | "projectName" => json!(WORD),
        _ => match (schema["type"].as_str(), schema["enum"].get(0)) {
            (_, Some(word)) => word.clone(),
            (Some("integer"), _) => json!(1),
            (Some("boolean"), _) => json!(true),
            (Some("array"), _) => json!([]),
            (Some("object"), _) => json!({}),
            _ => json!(WORD),
        },
    }
}
