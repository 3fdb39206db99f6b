//! What each tool answers about a small known history.

use crate::support::{Service, run, test};
use serde_json::{Value, json};

/// Two projects; `shop` has a red run on a branch and a green one before it.
struct History {
    service: Service,
    project: i64,
    red: i64,
    green: i64,
    failed: i64,
    cluster: i64,
}

async fn history() -> History {
    let service = Service::start().await;
    service.submit(run("docs", 5, &[test("opens", "passed")])).await;
    let mut green = run("shop", 10, &[test("pays", "passed"), test("ships", "passed")]);
    green["status"] = json!("passed");
    green["branch"] = json!("pay-later");
    let green = service.submit(green).await;
    let mut pays = test("pays", "failed");
    pays["startedAt"] = json!("2026-01-01T00:00:21.000Z");
    pays["error"] = json!(
        "\u{1b}[31mError: expected 200\u{1b}[0m\n  at pay (tests/shop.spec.ts:9:3)\nAuthorization: Bearer abcdef"
    );
    pays["steps"] = json!([{"title": "goto /pay", "duration": 900, "category": "navigation", "startTime": 1_767_225_621_000_i64}]);
    pays["consoleLogs"] = json!([{"type": "error", "text": "boom", "timestamp": 1_767_225_621_500_i64}]);
    pays["testAnnotations"] = json!([{"type": "issue", "description": "SHOP-7"}]);
    let mut flaky_first = test("ships", "failed");
    flaky_first["retries"] = json!(0);
    let mut flaky_last = test("ships", "passed");
    flaky_last["retries"] = json!(1);
    let mut red = run("shop", 20, &[pays, flaky_first, flaky_last, test("returns", "skipped")]);
    red["branch"] = json!("pay-later");
    red["commit"] = json!("0123456789abcdef0123456789abcdef01234567");
    red["playwrightVersion"] = json!("1.50.0");
    let red = service.submit(red).await;
    let failed = red.executions[0].1.get();
    let shown = service.call("get_run", json!({"runId": red.run.get()})).await.unwrap();
    let cluster = shown["cases"][0]["clusterId"].as_i64().unwrap();
    History {
        project: red.project.get(),
        red: red.run.get(),
        green: green.run.get(),
        failed,
        cluster,
        service,
    }
}

impl History {
    async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.service.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error}"))
    }

    fn red_run(&self) -> Value {
        json!({
            "runId": self.red, "id": self.red, "projectId": self.project, "status": "failed",
            "startedAt": "2026-01-01T00:00:20.000Z", "duration": 5000,
            "total": 3, "passed": 1, "failed": 1, "flaky": 1, "skipped": 1, "didNotRun": 0, "interrupted": 0,
            "branch": "pay-later", "commit": "01234567",
            "url": format!("http://localhost:3000/test-runs/{}", self.red),
        })
    }
}

#[tokio::test]
async fn projects_and_their_runs_are_told_newest_first() {
    let history = history().await;
    let projects = history.call("list_projects", json!({})).await;
    let names: Vec<&str> =
        projects["items"].as_array().unwrap().iter().map(|p| p["name"].as_str().unwrap()).collect();
    assert_eq!((names, projects["nextCursor"].clone()), (vec!["shop", "docs"], Value::Null));
    let latest = &projects["items"][0]["latestRun"];
    assert_eq!(
        *latest,
        json!({
            "runId": history.red, "status": "failed", "startedAt": "2026-01-01T00:00:20.000Z",
            "passed": 1, "failed": 1, "flaky": 1, "branch": "pay-later", "commit": "01234567",
        })
    );

    let project = history.call("get_project", json!({"projectId": history.project})).await;
    assert_eq!(project["runs"][0], history.red_run());
    assert_eq!(project["runs"].as_array().unwrap().len(), 2);
    assert_eq!(project["url"], format!("http://localhost:3000/projects/{}", history.project));

    let red = json!({"project": history.project.to_string(), "branch": "pay-later", "status": "failed"});
    let runs = history.call("list_runs", red).await;
    assert_eq!(runs, json!({"items": [history.red_run()], "nextCursor": null}));
    let passed = history.call("list_runs", json!({"projectId": history.project, "status": "PASSED"})).await;
    assert_eq!(passed["items"][0]["runId"], history.green);
    let none = history.call("list_runs", json!({"projectId": history.project, "branch": "gone"})).await;
    assert_eq!(none, json!({"items": [], "nextCursor": null}));

    let recent = history.call("list_recent_activity", json!({"pageSize": 1})).await;
    let mut expected = history.red_run();
    expected["projectName"] = json!("shop");
    assert_eq!(recent["items"], json!([expected]));
    assert!(recent["nextCursor"].is_string());

    assert_eq!(
        history.call("get_instance_stats", json!({})).await,
        json!({
            "totalProjects": 2, "totalRuns": 3, "keptRuns": 3, "totalTestCases": 4, "totalExecutions": 6,
            "totalFiles": 0, "totalFileSize": 0,
        })
    );
}

#[tokio::test]
async fn a_run_shows_its_failures_unless_asked_for_more() {
    let history = history().await;
    let run = history.call("get_run", json!({"runId": history.red})).await;
    assert_eq!((run["filter"].clone(), run["projectName"].clone()), (json!("failed"), json!("shop")));
    assert_eq!(
        run["cases"],
        json!([{
            "executionId": history.failed, "testCaseId": run["cases"][0]["testCaseId"], "title": "pays",
            "filePath": "tests/shop.spec.ts", "status": "failed", "duration": 1200, "retries": 0,
            "error": "Error: expected 200", "line": 7, "clusterId": history.cluster,
        }])
    );
    for (key, value) in history.red_run().as_object().unwrap() {
        assert_eq!(run[key], *value, "{key}");
    }
    let titles = async |filter: &str| -> Vec<String> {
        let run = history.call("get_run", json!({"id": history.red, "status": filter})).await;
        run["cases"]
            .as_array()
            .unwrap()
            .iter()
            .map(|case| case["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles("flaky").await, ["ships"]);
    assert_eq!(titles("All").await.len(), 3);
    let green = history.call("get_run", json!({"runId": history.green})).await;
    assert_eq!((green["cases"].clone(), green["nextCursor"].clone()), (json!([]), Value::Null));

    let failed = history.call("list_failed_cases", json!({"projectId": history.project})).await;
    let row = &failed["items"][0];
    assert_eq!(
        (row["executionId"].clone(), row["runStatus"].clone()),
        (json!(history.failed), json!("failed"))
    );
    assert_eq!(row["startedAt"], "2026-01-01T00:00:20.000Z");
    let of_run = history.call("list_failed_cases", json!({"runId": history.red})).await;
    assert_eq!(of_run["items"], failed["items"]);
    assert_eq!((&of_run["run"], failed.get("run")), (&json!({"status": "failed"}), None));
    assert_eq!(history.call("list_failed_cases", json!({"runId": history.green})).await["items"], json!([]));
}

#[tokio::test]
async fn an_execution_tells_its_whole_error_and_the_parts_asked_for() {
    let history = history().await;
    let bare = history.call("get_test_run_case", json!({"executionId": history.failed})).await;
    assert_eq!(
        bare["error"],
        "Error: expected 200\n  at pay (tests/shop.spec.ts:9:3)\nAuthorization: Bearer ***"
    );
    assert_eq!(
        bare["attempts"],
        json!([{
            "retry": 0, "status": "failed", "duration": 1200, "startedAt": "2026-01-01T00:00:21.000Z",
            "error": "Error: expected 200",
        }])
    );
    assert_eq!(bare["isNewRegression"], true);
    assert_eq!(bare["annotations"][0]["description"], "SHOP-7");
    assert!(
        bare["available"]["steps"].as_i64().unwrap() > 20
            && bare["available"]["console"].as_i64().unwrap() > 20
    );
    assert_eq!(bare["clusterId"], history.cluster);
    for part in ["steps", "console", "network", "webVitals", "ariaSnapshot", "testSource", "truncated"] {
        assert!(bare.get(part).is_none(), "{part}");
    }
    let parts = history
        .call("get_test_run_case", json!({"caseId": history.failed, "include": "steps,console"}))
        .await;
    assert_eq!(parts["steps"][0]["startTime"], "2026-01-01T00:00:21.000Z");
    assert_eq!(
        parts["console"],
        json!([{"type": "error", "text": "boom", "timestamp": "2026-01-01T00:00:21.500Z"}])
    );
    assert_eq!(
        history.call("list_case_traces", json!({"executionId": history.failed})).await,
        json!({"items": [], "nextCursor": null})
    );
}

#[tokio::test]
async fn a_test_is_found_by_its_words_and_told_across_runs() {
    let history = history().await;
    let found = history.call("search_test_cases", json!({"projectId": history.project, "q": "PAY"})).await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    let row = &found["items"][0];
    assert_eq!(
        *row,
        json!({
            "testCaseId": row["id"], "id": row["id"], "title": "pays", "filePath": "tests/shop.spec.ts",
            "lastStatus": "failed", "lastRunAt": "2026-01-01T00:00:20.000Z", "totalRuns": 2,
        })
    );
    for literal in ["%", "_", "\\", "p%s"] {
        let found =
            history.call("search_test_cases", json!({"projectId": history.project, "query": literal})).await;
        assert_eq!(found["items"], json!([]), "{literal}");
    }
    let blank = history.call("search_test_cases", json!({"projectId": history.project, "query": "  "})).await;
    assert_eq!(blank, json!({"items": [], "nextCursor": null}));

    let case = history.call("get_test_case", json!({"id": row["id"]})).await;
    assert_eq!(case["project"], json!({"projectId": history.project, "name": "shop"}));
    assert_eq!(
        case["stats"],
        json!({"totalRuns": 2, "passed": 1, "failed": 1, "flaky": 0, "skipped": 0, "recentFlaky": 0, "avgDuration": 1200, "passRate": 0.5})
    );
    let executions = case["recentExecutions"]["items"].as_array().unwrap();
    assert_eq!(
        (executions.len(), executions[0]["runId"].clone(), executions[0]["branch"].clone()),
        (2, json!(history.red), json!("pay-later"))
    );
    assert_eq!(case["clusters"][0]["clusterId"], history.cluster);

    let trend =
        history.call("get_test_stability_trend", json!({"testCaseId": row["id"], "buckets": 5})).await;
    assert_eq!(trend["items"].as_array().unwrap().len(), 2);
    assert_eq!(
        trend["items"][1],
        json!({"date": "2026-01-01", "passRate": 0.0, "flakyRate": 0.0, "totalRuns": 1})
    );

    let catalog = history.call("get_project_test_catalog", json!({"projectId": history.project})).await;
    assert_eq!((catalog["total"].clone(), catalog["items"].as_array().unwrap().len()), (json!(3), 3));
    let filtered = history
        .call("get_project_test_catalog", json!({"projectId": history.project, "search": "ships"}))
        .await;
    assert_eq!((filtered["total"].clone(), filtered["items"][0]["flaky"].clone()), (json!(1), json!(1)));
    let filtered = json!({"projectId": history.project, "search": "s", "pageSize": 1});
    let filtered = history.call("get_project_test_catalog", filtered).await;
    assert_eq!((filtered["total"].clone(), filtered["items"].as_array().unwrap().len()), (json!(3), 1));
    let second = history
        .call("get_project_test_catalog", json!({"projectId": history.project, "offset": 1, "pageSize": 1}))
        .await;
    assert_eq!((second["offset"].clone(), second["nextOffset"].clone()), (json!(1), json!(2)));
    assert_eq!(second["items"][0], catalog["items"][1]);
}

/// Arguments that make a tool answer, by the name of its parameter.
fn valid(history: &History, parameter: &str) -> Value {
    match parameter {
        "projectId" => json!(history.project),
        "runId" => json!(history.red),
        "executionId" => json!(history.failed),
        "testCaseId" => json!(1),
        "clusterId" => json!(history.cluster),
        "entityId" => json!(history.red),
        "entityType" => json!("test_run"),
        "query" => json!("pay"),
        "sha" | "commit" => json!("abcdef1"),
        "status" => json!("ignored"),
        "feedback" => json!("up"),
        "name" => json!("pay"),
        "kind" => json!("helper"),
        "module" => json!("./pages/checkout"),
        "steps" => json!([{"action": "goto", "value": "/"}]),
        other => panic!("what is a valid {other}?"),
    }
}

#[tokio::test]
async fn every_wrong_call_is_a_text_that_says_what_to_do() {
    let history = history().await;
    let tools = history.service.result("tools/list", json!({})).await;
    for tool in tools["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let schema = &tool["inputSchema"];
        let required: Vec<&str> = schema
            .get("required")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|r| r.as_str().unwrap())
            .collect();
        let complete: Value = required
            .iter()
            .map(|p| ((*p).to_owned(), valid(&history, p)))
            .collect::<serde_json::Map<_, _>>()
            .into();
        match history.service.call(name, complete.clone()).await {
            Ok(_) => {}
            Err(text) => {
                let lacks = [
                    "get_repo_commits",
                    "get_repo_diff",
                    "run_cluster_diagnosis",
                    "submit_diagnosis_feedback",
                ];
                let is_told =
                    text.contains("is not configured") || text.starts_with("`diagnosisId` is required");
                assert!(lacks.contains(&name) && is_told, "{name} {complete}: {text}");
            }
        }
        let mut wrong = Vec::new();
        for parameter in &required {
            let mut missing = complete.clone();
            missing.as_object_mut().unwrap().remove(*parameter);
            wrong.push((missing, format!("`{parameter}` is required")));
        }
        for (parameter, property) in schema["properties"].as_object().unwrap() {
            let mut mistyped = complete.clone();
            mistyped[parameter] = json!({"a": 1});
            let expected = if parameter == "cursor" {
                "Invalid cursor.".to_owned()
            } else {
                format!("`{parameter}` must be")
            };
            wrong.push((mistyped, expected));
            if property["type"] == "integer" && property.get("default").is_none() {
                let mut unknown = complete.clone();
                unknown[parameter] = json!(9_007_199_254_740_991_i64);
                wrong.push((unknown, "9007199254740991 not found".to_owned()));
            }
        }
        for (arguments, expected) in wrong {
            let text = history.service.call(name, arguments.clone()).await.expect_err(name);
            assert!(text.contains(&expected), "{name} {arguments}: {text}");
            assert!(!text.contains("SELECT") && !text.contains(".rs") && text.len() < 400, "{text}");
        }
    }
    let elsewhere = history.call("list_projects", json!({})).await["items"][1]["projectId"].clone();
    let text = history
        .service
        .call("list_failed_cases", json!({"projectId": elsewhere, "runId": history.red}))
        .await;
    assert_eq!(
        text,
        Err(format!(
            "`runId` must be a run of project {elsewhere}, got {}. list_runs gives the runs of a project.",
            history.red
        ))
    );
}

#[tokio::test]
async fn the_prompt_and_its_completion_know_the_projects() {
    let history = history().await;
    let service = &history.service;
    let listed = service.result("prompts/list", json!({})).await;
    assert_eq!(listed["prompts"][0]["name"], "setup_service");
    let prompt = service
        .result("prompts/get", json!({"name": "setup_service", "arguments": {"projectName": "shop"}}))
        .await;
    let text = prompt["messages"][0]["content"]["text"].as_str().unwrap();
    assert!(text.contains("Base URL: http://localhost:3000\nAuthentication: not required\nProjects that already exist: shop, docs\n"), "{text}");
    for wrong in [
        json!({}),
        json!({"name": "x"}),
        json!({"name": "setup_service", "arguments": {"projectName": "a\nb"}}),
    ] {
        assert_eq!(service.request("prompts/get", wrong).await["error"]["code"], -32602);
    }
    let complete = async |reference: Value, argument: Value| {
        service.request("completion/complete", json!({"ref": reference, "argument": argument})).await
    };
    let ours = json!({"type": "ref/prompt", "name": "setup_service"});
    let all = complete(ours.clone(), json!({"name": "projectName", "value": "O"})).await;
    assert_eq!(
        all["result"]["completion"],
        json!({"values": ["docs", "shop"], "total": 2, "hasMore": false})
    );
    let prefix = complete(ours.clone(), json!({"name": "projectName", "value": "s"})).await;
    assert_eq!(prefix["result"]["completion"]["values"], json!(["shop", "docs"]));
    let nothing = json!({"values": [], "total": 0, "hasMore": false});
    assert_eq!(complete(ours, json!({"name": "other", "value": ""})).await["result"]["completion"], nothing);
    assert_eq!(
        complete(json!({"type": "ref/resource", "uri": "x"}), json!({})).await["result"]["completion"],
        nothing
    );
    assert_eq!(
        complete(json!({"type": "ref/prompt", "name": "x"}), json!({})).await["error"]["code"],
        -32602
    );
}

#[tokio::test]
async fn a_run_tells_what_is_remarkable_and_a_first_one_compares_nothing() {
    let history = history().await;
    let insights = history.call("get_run_insights", json!({"runId": history.red})).await;
    assert_eq!(insights["newRegressions"][0]["executionId"], history.failed);
    assert_eq!(insights["newFlaky"][0]["title"], "ships");
    assert_eq!(
        (&insights["hasBaseline"], &insights["totalTests"], &insights["flakyTests"]),
        (&json!(true), &json!(3), &json!(1))
    );
    assert_eq!(insights["url"], format!("http://localhost:3000/test-runs/{}", history.red));
    let first = history.call("get_run_insights", json!({"id": history.green})).await;
    assert_eq!(first["hasBaseline"], false);
    for absent in ["baseline", "newRegressions", "recovered", "recurrences", "newFlaky", "passRateDelta"] {
        assert!(first.get(absent).is_none(), "{absent}");
    }
}

#[tokio::test]
async fn anything_is_found_by_its_words() {
    let history = history().await;
    let found = history.call("search", json!({"q": "pay"})).await;
    assert_eq!(found["projects"], json!([]));
    let runs: Vec<_> = found["runs"].as_array().unwrap().iter().map(|run| run["runId"].clone()).collect();
    assert_eq!(runs, [json!(history.red), json!(history.green)]);
    assert_eq!(
        (&found["cases"][0]["title"], &found["cases"][0]["projectName"]),
        (&json!("pays"), &json!("shop"))
    );
    let by_commit = history.call("search", json!({"query": "01234567"})).await;
    assert_eq!(by_commit["runs"][0]["runId"], history.red);
    let none = history.call("search", json!({"query": "x"})).await;
    assert_eq!((&none["projects"], &none["runs"], &none["cases"]), (&json!([]), &json!([]), &json!([])));
    assert!(none["hint"].is_string());
}

#[tokio::test]
async fn commits_that_are_asked_about_are_told_as_their_newest_runs_know_them() {
    let history = history().await;
    let asked = json!({"clusterId": history.cluster, "selectedCommitShas": ["0123456", "abcdef0"]});
    let told = history.call("get_cluster_context", asked).await;
    assert_eq!(told["coverage"]["commitsCount"], 1);
    let line = format!("0123456 by unknown author: no message (run {}, failed)", history.red);
    assert!(told["text"].as_str().unwrap().contains(&line), "{}", told["text"]);
    let wrong = json!({"clusterId": history.cluster, "selectedCommitShas": ["main"]});
    let refused = history.service.call("get_cluster_context", wrong).await.unwrap_err();
    assert!(refused.contains("`selectedCommitShas` must hold 7 to 64 hexadecimal digits each"), "{refused}");
    let shown = history.call("get_cluster", json!({"clusterId": history.cluster})).await;
    assert!(!shown["groupedBy"].as_array().unwrap().is_empty(), "{shown}");
}
