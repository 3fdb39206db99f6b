//! Lists are read to their last row, cursors belong to their list, and no
//! answer is longer than its bound.

use std::collections::BTreeSet;

use crate::support::{Service, run, test};
use serde_json::{Map, Value, json};

const RUNS: usize = 57;
const TESTS: usize = 61;
const PROJECTS: usize = 23;

/// Many runs that start at the same moment, and one with many failures.
async fn crowd() -> (Service, i64, i64) {
    let service = Service::start().await;
    for _ in 0..RUNS - 1 {
        let mut green = run("shop", 60, &[test("common", "passed")]);
        green["status"] = json!("passed");
        service.submit(green).await;
    }
    let tests: Vec<Value> = (0..TESTS).map(|number| test(&format!("common {number}"), "failed")).collect();
    let large = service.submit(run("shop", 60, &tests)).await;
    for number in 1..PROJECTS {
        service.submit(run(&format!("project {number}"), 60, &[test("x", "passed")])).await;
    }
    (service, large.project.get(), large.run.get())
}

/// Reads a list to its end; gives the ids of its rows in their order.
async fn all(service: &Service, tool: &str, arguments: &Value, list: &str, id: &str) -> Vec<i64> {
    let mut arguments = arguments.clone();
    let mut ids = Vec::new();
    loop {
        let mut page =
            service.call(tool, arguments.clone()).await.unwrap_or_else(|error| panic!("{tool}: {error}"));
        if list == "recentExecutions" {
            page = json!({list: page[list]["items"], "nextCursor": page[list]["nextCursor"]});
        }
        let rows = page[list].as_array().unwrap();
        ids.extend(rows.iter().map(|row| row[id].as_i64().unwrap()));
        assert!(ids.len() < 1000, "{tool} does not end");
        match page["nextCursor"].clone() {
            Value::Null => return ids,
            cursor => {
                assert!(!rows.is_empty(), "{tool} has an empty page before its end");
                arguments["cursor"] = cursor;
            }
        }
    }
}

#[tokio::test]
async fn every_row_comes_exactly_once_whatever_the_page_size() {
    let (service, project, run) = crowd().await;
    let case =
        service.call("search_test_cases", json!({"projectId": project, "query": "common"})).await.unwrap();
    let oldest = all(
        &service,
        "search_test_cases",
        &json!({"projectId": project, "query": "common"}),
        "items",
        "testCaseId",
    )
    .await;
    assert!(case["nextCursor"].is_string());
    let common = *oldest.last().unwrap();
    let lists = [
        ("list_projects", json!({}), "items", "projectId", PROJECTS),
        ("list_recent_activity", json!({}), "items", "runId", RUNS + PROJECTS - 1),
        ("get_project", json!({"projectId": project}), "runs", "runId", RUNS),
        ("list_runs", json!({"projectId": project}), "items", "runId", RUNS),
        ("list_runs", json!({"projectId": project, "status": "passed"}), "items", "runId", RUNS - 1),
        ("get_run", json!({"runId": run}), "cases", "executionId", TESTS),
        ("get_run", json!({"runId": run, "statusFilter": "all"}), "cases", "executionId", TESTS),
        ("list_failed_cases", json!({"projectId": project}), "items", "executionId", TESTS),
        ("list_failed_cases", json!({"runId": run}), "items", "executionId", TESTS),
        (
            "search_test_cases",
            json!({"projectId": project, "query": "common"}),
            "items",
            "testCaseId",
            TESTS + 1,
        ),
        ("get_project_test_catalog", json!({"projectId": project}), "items", "testCaseId", TESTS + 1),
        ("get_test_case", json!({"testCaseId": common}), "recentExecutions", "executionId", RUNS - 1),
    ];
    for (tool, arguments, list, id, expected) in lists {
        let mut orders = Vec::new();
        for page_size in [1, 7, 50] {
            let mut arguments = arguments.clone();
            arguments["pageSize"] = json!(page_size);
            orders.push(all(&service, tool, &arguments, list, id).await);
        }
        let distinct: BTreeSet<i64> = orders[0].iter().copied().collect();
        assert_eq!((orders[0].len(), distinct.len()), (expected, expected), "{tool} {arguments}");
        assert!(orders.iter().all(|order| *order == orders[0]), "{tool} {arguments}");
    }
}

#[tokio::test]
async fn a_cursor_belongs_to_its_list() {
    let service = Service::start().await;
    for project in ["a", "b"] {
        for second in 0..3 {
            service.submit(run(project, second, &[test("x", "failed")])).await;
        }
    }
    let projects = service.call("list_projects", json!({"pageSize": 1})).await.unwrap();
    let (mine, other) = (projects["items"][0]["projectId"].clone(), projects["nextCursor"].clone());
    let foreign = service.call("list_projects", json!({})).await.unwrap()["items"][1]["projectId"].clone();
    let page = service.call("list_runs", json!({"projectId": mine, "pageSize": 1})).await.unwrap();
    let cursor = page["nextCursor"].as_str().unwrap();
    let next = |arguments: Value| service.call("list_runs", arguments);
    assert!(next(json!({"projectId": mine, "cursor": cursor, "pageSize": 50})).await.is_ok());
    assert!(next(json!({"project": mine.to_string(), "cursor": cursor, "unknown": 1})).await.is_ok());
    let refused = Err("Invalid cursor. Omit `cursor` to start from the first page.".to_owned());
    let mut altered = cursor.to_owned();
    altered.replace_range(5..6, if altered.as_bytes()[5] == b'A' { "B" } else { "A" });
    for arguments in [
        json!({"projectId": mine, "cursor": other}),
        json!({"projectId": foreign, "cursor": cursor}),
        json!({"projectId": mine, "branch": "main", "cursor": cursor}),
        json!({"projectId": mine, "cursor": altered}),
        json!({"projectId": mine, "cursor": "x"}),
        json!({"projectId": mine, "cursor": "x".repeat(5000)}),
    ] {
        assert_eq!(next(arguments.clone()).await, refused, "{arguments}");
    }
    assert_eq!(service.call("get_project", json!({"projectId": mine, "cursor": cursor})).await, refused);
}

#[tokio::test]
async fn a_page_that_is_too_long_is_shortened_and_read_on() {
    let service = Service::start().await;
    let tests: Vec<Value> = (0..120)
        .map(|number| {
            let mut fat = test(&format!("{number} {}", "word ".repeat(180)), "failed");
            fat["location"] = json!(format!("{}/a.spec.ts:1:1", "folder/".repeat(60)));
            fat["error"] = json!("e".repeat(3000));
            fat
        })
        .collect();
    let run = service.submit(run("fat", 1, &tests)).await.run.get();
    let arguments = json!({"runId": run, "pageSize": 50});
    let page = service.result("tools/call", json!({"name": "get_run", "arguments": arguments})).await;
    let text = page["content"][0]["text"].as_str().unwrap();
    assert!(text.chars().count() <= 40_000, "{}", text.chars().count());
    let page: Value = serde_json::from_str(text).unwrap();
    let rows = page["cases"].as_array().unwrap().len();
    assert!((1..50).contains(&rows), "{rows}");
    assert_eq!(page["truncated"]["hint"], "pass nextCursor as cursor");
    let ids = all(&service, "get_run", &arguments, "cases", "executionId").await;
    assert_eq!((ids.len(), ids.iter().collect::<BTreeSet<_>>().len()), (120, 120));
}

#[tokio::test]
async fn no_tool_says_more_than_its_bound_however_much_there_is() {
    let service = Service::start().await;
    let fat = |number: usize| {
        let mut fat = test(&format!("{number} {}", "word ".repeat(100)), "failed");
        fat["location"] = json!(format!("{}/{}.spec.ts:1:1", "folder/".repeat(30), number % 40));
        fat["error"] = json!(format!("Error: {number}\u{1b}[31m {}", "e \"quoted\" ".repeat(400)));
        if number < 4 {
            fat["steps"] = (0..500)
                .map(|n| json!({"title": format!("step {n} {}", "s".repeat(100)), "duration": 1}))
                .collect();
            fat["consoleLogs"] = (0..200)
                .map(|n| json!({"type": "error", "text": format!("{n} {}", "c".repeat(1900))}))
                .collect();
            fat["networkRequests"] = (0..300)
                .map(|n| {
                    let url = format!("https://shop.example/{}/{n}", "n".repeat(200));
                    json!({"method": "GET", "url": url, "status": 500, "duration": 5})
                })
                .collect();
            fat["ariaSnapshot"] = json!("- button \"Pay\"\n".repeat(5_000));
            fat["testSource"] = json!("line\n".repeat(8_000));
        }
        fat
    };
    let tests: Vec<Value> = (0..400).map(fat).collect();
    let mut stored = None;
    for second in [1, 2] {
        let mut red = run("fat", second, &tests);
        red["branch"] = json!("b".repeat(200));
        stored = Some(service.submit(red).await);
    }
    let stored = stored.unwrap();
    let (run, execution) = (stored.run.get(), stored.executions[0].1.get());
    let case = service.call("get_test_run_case", json!({"executionId": execution})).await.unwrap();
    let listed = service.result("tools/list", json!({})).await;
    for tool in listed["tools"].as_array().unwrap() {
        if tool["annotations"]["readOnlyHint"] == json!(false) {
            continue;
        }
        let name = tool["name"].as_str().unwrap();
        let value = |parameter: &str| match parameter {
            "projectId" => json!(stored.project.get()),
            "runId" | "entityId" => json!(run),
            "executionId" => json!(execution),
            "testCaseId" => case["testCaseId"].clone(),
            "clusterId" => case["clusterId"].clone(),
            "entityType" => json!("test_run"),
            "query" => json!("word"),
            _ => json!("abcdef1"),
        };
        let required = tool["inputSchema"]["required"].as_array().into_iter().flatten();
        let mut arguments: Map<String, Value> =
            required.filter_map(Value::as_str).map(|name| (name.to_owned(), value(name))).collect();
        assert_bounded(&service, name, &arguments, 40_000).await;
        for (most, with) in [("pageSize", json!(100)), ("limit", json!(100)), ("maxChars", json!(100_000))] {
            if tool["inputSchema"]["properties"].get(most).is_some() {
                arguments.insert(most.to_owned(), with);
            }
        }
        let bound = if arguments.contains_key("maxChars") { 100_000 } else { 40_000 };
        assert_bounded(&service, name, &arguments, bound).await;
    }
}

/// One answer is JSON within a bound, or a sentence; it names what it leaves out.
async fn assert_bounded(service: &Service, name: &str, arguments: &Map<String, Value>, bound: usize) {
    let result = service.result("tools/call", json!({"name": name, "arguments": arguments})).await;
    let text = result["content"][0]["text"].as_str().unwrap();
    assert!(text.chars().count() <= bound, "{name}: {} characters", text.chars().count());
    assert!(!text.contains("Internal error"), "{name}: {text}");
    assert!(!text.contains("\u{1b}") && !text.contains("[31m"), "{name}");
    if result.get("isError").is_none() {
        let answer: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
        let truncated = answer.get("truncated");
        assert!(
            truncated.is_none_or(|truncated| truncated["omitted"]
                .as_array()
                .is_some_and(|parts| !parts.is_empty())),
            "{name}: {truncated:?}"
        );
    }
}

#[tokio::test]
async fn fat_evidence_is_cut_by_sections_and_says_so() {
    let service = Service::start().await;
    let mut fat = test("fat", "failed");
    fat["consoleLogs"] =
        (0..200).map(|n| json!({"type": "log", "text": format!("{n} {}", "c".repeat(1900))})).collect();
    fat["networkRequests"] = (0..400).map(|n| json!({"method": "GET", "url": format!("https://shop.example/{n}/{}", "n".repeat(200)), "status": 500, "duration": 5})).collect();
    fat["steps"] =
        (0..500).map(|n| json!({"title": format!("step {n} {}", "s".repeat(100)), "duration": 1})).collect();
    fat["testSource"] = json!("line\n".repeat(8_000));
    fat["error"] = json!("e".repeat(30_000));
    let execution = service.submit(run("fat", 1, &[fat])).await.executions[0].1.get();
    let every = ["steps", "console", "network", "webVitals", "aria", "source"];
    for include in [&every[..], &["steps"], &["console"], &["network"], &["source"], &[]] {
        let arguments = json!({"executionId": execution, "include": include});
        let result =
            service.result("tools/call", json!({"name": "get_test_run_case", "arguments": arguments})).await;
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.chars().count() <= 40_000, "{include:?}: {}", text.chars().count());
        let answer: Value = serde_json::from_str(text).unwrap();
        assert_eq!(answer.get("truncated").is_some(), !include.is_empty(), "{include:?}");
        assert!(answer["error"].as_str().unwrap().chars().count() <= 20_000);
    }
    let all =
        service.call("get_test_run_case", json!({"executionId": execution, "include": every})).await.unwrap();
    assert_eq!(
        all["truncated"]["hint"],
        "call get_test_run_case with include=[\"network\",\"console\",\"source\"]"
    );
    assert!(
        all["steps"].as_array().unwrap().last().unwrap()["title"].as_str().unwrap().starts_with("step 499")
    );
}
