//! Flaky tests as they are listed, and tests that are set aside.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::{submit, work};
use crate::detail_pages::{page, words_after};
use crate::rows::settled;

/// The run of a day of January, of `shop` on `main`.
fn day(number: usize, cases: Vec<Value>) -> Value {
    let is_red = cases.iter().any(|case| case["status"] == "failed");
    let status = if is_red { "failed" } else { "passed" };
    let start = format!("2026-01-{number:02}T10:00:00.000Z");
    let id = format!("client-run-of-day-{number}");
    with(run("shop", status, cases), json!({ "startTime": start, "branch": "main", "clientRunId": id }))
}

/// The attempts of a test: `P` passed, `F` failed, `x` passed on a retry.
fn outcome(title: &str, letter: char) -> Vec<Value> {
    match letter {
        'P' => vec![attempt(title, "passed", 0)],
        'F' => vec![attempt(title, "failed", 0)],
        _ => vec![attempt(title, "failed", 0), attempt(title, "passed", 1)],
    }
}

/// Submits a run a day; each test has a letter per day.
async fn history(client: &Client, tests: &[(&str, &str)]) {
    let days = tests.iter().map(|(_, letters)| letters.len()).max().unwrap_or(0);
    for number in 0..days {
        let cases = tests
            .iter()
            .filter_map(|(title, letters)| letters.chars().nth(number).map(|letter| outcome(title, letter)));
        submit(client, day(number + 1, cases.flatten().collect())).await;
    }
}

async fn get(client: &Client, path: &str) -> Value {
    client.json(path).await.expect("an answer")
}

async fn flaky(client: &Client, query: &str) -> Vec<Value> {
    let found = get(client, &format!("/api/projects/1/flaky-tests{query}")).await;
    found["items"].as_array().expect("items").clone()
}

fn titles(list: &[Value]) -> Vec<&str> {
    list.iter().map(|test| test["title"].as_str().expect("a title")).collect()
}

#[tokio::test]
async fn tests_that_pass_on_a_retry_are_flaky_and_repaired_ones_are_not() {
    for_each_service(async |service| {
        let client = service.client();
        history(
            client,
            &[
                ("wobbles", "PPxPPPxPPPxPPP"),
                ("was broken", "PPPPFFFFPPPPPP"),
                ("is broken", "PPPPPPPPPFFFFF"),
                ("alternates", "PFPPFPFPPFPPFP"),
                ("is fine", "PPPPPPPPPPPPPP"),
                ("reads", "PPPPPPPPPPPPPP"),
                ("writes", "PPPPPPPPPPPPPP"),
            ],
        )
        .await;
        let found = flaky(client, "").await;
        assert_eq!(titles(&found), ["alternates", "wobbles"]);
        let wobbles = &found[1];
        assert_eq!(wobbles["class"], "flaky");
        assert_eq!(
            json!([
                wobbles["runCount"],
                wobbles["failCount"],
                wobbles["retryPassCount"],
                wobbles["alternationCount"],
                wobbles["failureRate"],
            ]),
            json!([14, 0, 3, 0, 0.0])
        );
        // Each failed attempt took 100 ms.
        assert_eq!(
            json!([wobbles["avgFailedDuration"], wobbles["wastedDuration"], wobbles["impact"]]),
            json!([100, 300, 27])
        );
        assert_eq!(wobbles["lastFlakeAt"], "2026-01-11T10:00:00.000Z");
        assert_eq!(wobbles["regressionProbability"], Value::Null);
        let alternates = &found[0];
        assert_eq!(
            json!([alternates["runCount"], alternates["failCount"], alternates["alternationCount"]]),
            json!([14, 5, 10])
        );
        // The values of the slow implementation of the same filter: 0.9990 and 0.9916.
        assert_eq!(json!([alternates["flakyScore"], wobbles["flakyScore"]]), json!([100, 99]));

        let html = page(client, &format!("/test-cases/{}", wobbles["testCaseId"])).await;
        let panel = words_after(&html, "id=\"flaky-title\"").replace('\u{a0}', " ");
        for told in ["last 14 executions, excluding mass failures", "Time lost 300 ms , 100 ms each time"] {
            assert!(panel.contains(told), "{told}: {panel}");
        }
        let all = get(client, "/api/projects/1/test-cases?q=reads").await;
        let html = page(client, &format!("/test-cases/{}", all["items"][0]["id"])).await;
        assert!(!html.contains("flaky-title"), "{html}");

        // Only the last five runs: the first flakes are out of sight.
        let few = flaky(client, "?runs=5").await;
        let wobbles = few.iter().find(|test| test["title"] == "wobbles").expect("still listed");
        assert_eq!(json!([wobbles["runCount"], wobbles["retryPassCount"]]), json!([5, 1]));
        assert_eq!(titles(&flaky(client, "?sort=impact").await), ["wobbles", "alternates"]);
        let html = page(client, "/projects/1?tab=flaky&sort=lost").await;
        assert!(html.find(">wobbles<") < html.find(">alternates<"), "only the first lost time: {html}");
        assert!(flaky(client, "?branch=other").await.is_empty());
        assert!(flaky(client, "?owner=nobody").await.is_empty());
        for bad in ["?runs=2", "?runs=201", "?minScore=101", "?rootCause=magic", "?sort=title"] {
            let answer = client.get(&format!("/api/projects/1/flaky-tests{bad}")).await.expect("an answer");
            assert_eq!(answer.status, 400, "{bad}");
        }

        let catalogue = get(client, "/api/projects/1/test-cases?sort=flakyScore&branch=main").await;
        let items = catalogue["items"].as_array().expect("items");
        assert_eq!(titles(items)[..2], ["alternates", "wobbles"]);
        assert_eq!(items.len(), 7);
        let fine = items.iter().find(|test| test["title"] == "is fine").expect("listed");
        assert_eq!(fine["flakyScore"], 0);
    })
    .await;
}

/// Runs of a project, one an hour, of a test that passes on a retry where its letter is an `x`.
async fn runs_of(client: &Client, project: &str, branch: &str, day: usize, letters: &str) {
    for (hour, letter) in letters.chars().enumerate() {
        let start = format!("2026-01-{day:02}T{hour:02}:00:00.000Z");
        let cases = [outcome("wobbles", letter), outcome("reads", 'P')].concat();
        let id = format!("{project}-{start}");
        let more = json!({ "startTime": start, "branch": branch, "environment": "ci", "clientRunId": id });
        submit(client, with(run(project, "passed", cases), more)).await;
    }
}

#[tokio::test]
async fn the_list_of_projects_counts_what_the_list_of_flaky_tests_of_each_holds() {
    for_each_service(async |service| {
        let client = service.client();
        // Judged by its only branch, by a default branch with enough runs, by all runs while it has too few, where
        // tests have to run often before they are called flaky, and where nothing is flaky.
        let sent = [
            ("only branch", vec![("main", 1, "PPxPPPxPPPxPPP")], 1),
            (
                "steady default",
                vec![("main", 1, "PPPPPPPPPPPPPPPPPPPPPP"), ("other", 2, "PPxPPPxPPPxPPP")],
                0,
            ),
            ("young default", vec![("main", 1, "PPP"), ("other", 2, "PPxPPPxPPPxPPP")], 1),
            ("choosy", vec![("main", 1, "PPxPPPxPPPxPPP")], 0),
            ("less choosy", vec![("main", 1, "PPxPPPxPPPxPPP")], 1),
            ("steady", vec![("main", 1, "PPPP")], 0),
            // It was flaky before it broke, and a failure now is none of chance.
            ("broken", vec![("main", 1, "PPPPxPPPPPPxPPPFFFFF")], 0),
        ];
        for (at, (project, branches, _)) in sent.iter().enumerate() {
            for (branch, day, letters) in branches {
                runs_of(client, project, branch, *day, letters).await;
            }
            let path = format!("/api/projects/{}", at + 1);
            let edited = client.send_json(Method::PATCH, &path, &json!({ "defaultBranch": "main" })).await;
            edited.expect("an answer").success().expect("edited");
        }
        for (project, runs) in [(4, 15), (5, 14)] {
            let path = format!("/api/projects/{project}/flakiness");
            let set = client.send_json(Method::PATCH, &path, &json!({ "minRuns": runs })).await;
            set.expect("an answer").success().expect("set");
        }
        work(service).await;
        let html = page(client, "/projects?sort=name").await;
        for (at, (project, _, expected)) in sent.iter().enumerate() {
            let listed = get(client, &format!("/api/projects/{}/flaky-tests?minScore=90", at + 1)).await;
            assert_eq!(listed["items"].as_array().map(Vec::len), Some(*expected), "{project}: {listed}");
            let row = html.split("<tr data-row>").find(|row| row.contains(&format!(">{project}</a>")));
            let counted = row.expect("a row").matches(">1\u{a0}flaky test</a>").count();
            assert_eq!(counted, *expected, "{project}: {html}");
        }
        for lane in ["", "&branch=main", "&branch=other", "&environment=ci", "&branch=other&environment=ci"] {
            let told = get(client, &format!("/api/analytics/portfolio?days=30{lane}")).await;
            for item in told["items"].as_array().expect("projects") {
                let list = format!("/api/projects/{}/flaky-tests?minScore=90{lane}", item["project"]["id"]);
                let listed = get(client, &list).await["items"].as_array().map(Vec::len);
                assert_eq!(item["flakyTests"].as_u64().map(|tests| tests as usize), listed, "{lane}: {item}");
            }
            assert_eq!(told["items"].as_array().map(Vec::len), Some(sent.len()), "{lane}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_failing_feature_branch_makes_no_test_flaky() {
    for_each_service(async |service| {
        let client = service.client();
        let on = |number: usize, branch: &str, letter| {
            with(day(number, outcome("pays", letter)), json!({ "branch": branch }))
        };
        for (number, letter) in "PFPFPFPFPF".chars().enumerate() {
            let branch = if letter == 'P' { "main" } else { "feature" };
            submit(client, on(number + 1, branch, letter)).await;
        }
        assert!(flaky(client, "").await.is_empty());
        for (number, letter) in "xPxP".chars().enumerate() {
            submit(client, on(number + 11, "feature", letter)).await;
        }
        let found = flaky(client, "").await;
        assert_eq!(titles(&found), ["pays"], "a retry tells on any branch");
        assert_eq!(json!([found[0]["failCount"], found[0]["retryPassCount"]]), json!([5, 2]));
    })
    .await;
}

#[tokio::test]
async fn a_default_branch_speaks_for_its_project_when_retention_deleted_its_runs() {
    for_each_service(async |service| {
        let client = service.client();
        let scm = json!({ "metadata": { "scm": { "defaultBranch": "main" } } });
        // Without retries only a branch whose failures are believed tells chance.
        for (at, letter) in "PFPPFPFPPFPPFPPFPPFPPF".chars().enumerate() {
            let steady = ["a", "b", "c", "d"].map(|title| attempt(title, "passed", 0)).to_vec();
            submit(client, with(day(at + 1, [outcome("wobbles", letter), steady].concat()), scm.clone()))
                .await;
        }
        let young = json!({
            "branch": "feature", "startTime": service.state().now().to_iso(), "clientRunId": "young",
        });
        submit(client, with(with(day(1, outcome("wobbles", 'P')), scm), young)).await;
        work(service).await;
        let before = flaky(client, "").await;
        assert_eq!(titles(&before), ["wobbles"]);
        let cleaned = client.post_json("/api/admin/cleanup", &json!({ "olderThanDays": 1 })).await;
        assert_eq!(cleaned.expect("cleaned up")["matched"], 22);
        settled(service).await;
        let runs = get(client, "/api/test-runs").await;
        assert_eq!(runs["items"].as_array().map(Vec::len), Some(1));
        let after = flaky(client, "").await;
        assert_eq!(titles(&after), ["wobbles"]);
        assert_eq!(after[0]["flakyScore"], before[0]["flakyScore"]);
    })
    .await;
}

#[tokio::test]
async fn a_run_in_which_nearly_everything_failed_says_nothing_about_its_tests() {
    for_each_service(async |service| {
        let client = service.client();
        let names = ["a", "b", "c", "d", "e", "f"];
        let all = |letter: char| names.iter().flat_map(|name| outcome(name, letter)).collect::<Vec<_>>();
        for number in 1..=4 {
            submit(client, day(number, all('P'))).await;
        }
        let mut outages = Vec::new();
        for number in [5, 7, 9] {
            outages.push(submit(client, day(number, all('F'))).await);
            submit(client, day(number + 1, all('P'))).await;
        }
        // Every test changed three times between passing and failing.
        work(service).await;
        assert_eq!(titles(&flaky(client, "").await), Vec::<&str>::new());
        let case = get(client, "/api/projects/1/test-cases?q=a").await;
        assert_eq!(case["items"][0]["failed"], 3, "they are counted all the same");
        let catalogue = get(client, "/api/projects/1/test-cases?sort=flakyScore").await;
        assert!(catalogue["items"].as_array().expect("items").iter().all(|test| test["flakyScore"] == 0));

        // With a retry of most of it that passed, the run is none any more.
        let retried = |name: &&str| outcome(name, 'x');
        let late = day(5, names.iter().flat_map(retried).collect());
        let again = client.post_json("/api/test-runs/submit", &late).await.expect("stored");
        assert_eq!(again["runId"], outages[0]);
        work(service).await;
        let found = flaky(client, "").await;
        assert_eq!(found.len(), names.len(), "now they passed on a retry");
        assert_eq!(json!([found[0]["runCount"], found[0]["retryPassCount"]]), json!([8, 1]));
    })
    .await;
}

#[tokio::test]
async fn equal_scores_page_without_loss() {
    for_each_service(async |service| {
        let client = service.client();
        let names: Vec<String> = (0..23).map(|number| format!("test {number}")).collect();
        let same: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "PxPxP")).collect();
        history(client, &same).await;
        for limit in [1, 7, 200] {
            let mut seen = Vec::new();
            let mut cursor = String::new();
            loop {
                let page = get(client, &format!("/api/projects/1/flaky-tests?limit={limit}{cursor}")).await;
                let ids = page["items"].as_array().expect("items").iter();
                seen.extend(ids.map(|test| test["testCaseId"].as_i64().expect("an id")));
                let Some(next) = page["nextCursor"].as_str() else { break };
                cursor = format!("&cursor={next}");
            }
            let ascending: Vec<i64> = (1..=23).collect();
            assert_eq!(seen, ascending, "limit {limit}");
        }
    })
    .await;
}

#[tokio::test]
async fn the_cause_is_found_when_a_run_ends() {
    for_each_service(async |service| {
        let client = service.client();
        let waits = |number| {
            let failed = with(
                attempt("waits", "failed", 0),
                json!({ "error": "TimeoutError: locator.click: Timeout 5000ms exceeded.\nCall log:\n" }),
            );
            let differs = format!(
                "Error: expect(received).toBe(expected) // Object.is equality\n\nExpected: 1\nReceived: {number}0"
            );
            let differs = with(attempt("differs", "failed", 0), json!({ "error": differs }));
            let broken = json!({ "method": "GET", "url": "http://shop.test/api/cart", "status": 503, "duration": 5 });
            // The browser's own line about the request is no error of the page.
            let line = "Failed to load resource: the server responded with a status of 503 (Service Unavailable)";
            let lines = [json!({ "type": "error", "text": line, "timestamp": 1_767_348_000_000_i64 })];
            let loses = json!({ "error": "Error: no cart", "networkRequests": [broken], "consoleLogs": lines });
            let loses = with(attempt("loses", "failed", 0), loses);
            let flaky = vec![failed, differs, loses];
            let passes = ["waits", "differs", "loses"].map(|title| attempt(title, "passed", 1));
            let steady = ["a", "b", "c", "d"].map(|title| attempt(title, "passed", 0));
            day(number, [flaky, passes.to_vec(), steady.to_vec()].concat())
        };
        for number in 1..=3 {
            submit(client, waits(number)).await;
        }
        work(service).await;
        // On the last day nothing is up, which says nothing about any of them.
        let refused = json!({ "error": "Error: page.goto: net::ERR_CONNECTION_REFUSED at http://shop.test/" });
        let all = ["waits", "differs", "loses", "a", "b", "c", "d"];
        let down = all.map(|title| with(attempt(title, "failed", 0), refused.clone()));
        submit(client, day(4, down.to_vec())).await;
        work(service).await;
        let found = flaky(client, "?rootCause=timing").await;
        assert_eq!(titles(&found), ["waits"]);
        assert_eq!(found[0]["lastFlakeAt"], "2026-01-03T10:00:00.000Z");
        assert_eq!(titles(&flaky(client, "?rootCause=assertion").await), ["differs"]);
        assert_eq!(titles(&flaky(client, "?rootCause=network").await), ["loses"]);
        assert!(flaky(client, "?rootCause=environment").await.is_empty());
        let case = json!({ "testCaseId": found[0]["testCaseId"] });
        let classified = client.post_json("/api/projects/1/flaky-classify", &case).await.expect("classified");
        assert_eq!(classified["rootCause"], "timing");
        let missing = client.post("/api/projects/1/flaky-classify", &json!({ "testCaseId": 99 })).await;
        assert_eq!(missing.expect("an answer").json().expect("json")["code"], "test_case_not_found");
    })
    .await;
}

async fn quarantined(client: &Client, query: &str) -> Value {
    get(client, &format!("/api/projects/1/quarantine{query}")).await
}

#[tokio::test]
async fn a_test_in_quarantine_is_marked_and_let_go() {
    for_each_service(async |service| {
        let client = service.client();
        history(client, &[("wobbles", "PxPPx"), ("reads", "PPPPP")]).await;
        let case = flaky(client, "").await[0]["testCaseId"].clone();
        let body = json!({ "testCaseId": case, "reason": "wobbles too often" });
        let first = client.post("/api/projects/1/quarantine", &body).await.expect("an answer");
        assert_eq!(first.status, 201);
        let again = client.post("/api/projects/1/quarantine", &body).await.expect("an answer");
        assert_eq!(again.status, 200);
        let set_aside = first.json().expect("json")["quarantine"].clone();
        assert_eq!(again.json().expect("json")["quarantine"]["id"], set_aside["id"]);
        assert_eq!(
            json!([set_aside["reason"], set_aside["source"], set_aside["runsSince"]]),
            json!(["wobbles too often", "manual", 0])
        );

        // What was stored before keeps as it was, also when it is sent again.
        submit(client, day(5, [outcome("wobbles", 'x'), outcome("reads", 'P')].concat())).await;
        let marked = submit(client, day(6, [outcome("wobbles", 'F'), outcome("reads", 'P')].concat())).await;
        let executions = get(client, &format!("/api/test-runs/{marked}/executions")).await;
        let flags: Vec<&Value> =
            executions["items"].as_array().expect("items").iter().map(|row| &row["isQuarantined"]).collect();
        assert_eq!(flags, [&json!(true), &json!(false)], "trouble comes first");
        let only = get(client, &format!("/api/test-runs/{marked}/executions?quarantined=true")).await;
        assert_eq!(titles(only["items"].as_array().expect("items")), ["wobbles"]);
        let page = get(client, &format!("/api/test-cases/{case}")).await;
        assert_eq!(page["quarantine"]["id"], set_aside["id"]);
        let history = get(client, &format!("/api/test-cases/{case}/history")).await;
        let marks: Vec<bool> = history["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|row| row["isQuarantined"].as_bool().expect("a flag"))
            .collect();
        assert_eq!(marks, [true, false, false, false, false, false]);

        let list = quarantined(client, "").await;
        assert_eq!(list["debt"]["active"], 1);
        assert_eq!(list["debt"]["stillFailing"], 1);
        let row = &list["items"][0];
        assert_eq!(json!([row["runsSince"], row["consecutivePasses"]]), json!([1, 0]));
        let catalogue = get(client, "/api/projects/1/test-cases?quarantined=true").await;
        assert_eq!(titles(catalogue["items"].as_array().expect("items")), ["wobbles"]);
        assert_eq!(catalogue["items"][0]["isQuarantined"], true);
        let others = get(client, "/api/projects/1/test-cases?quarantined=false").await;
        assert_eq!(titles(others["items"].as_array().expect("items")), ["reads"]);

        for number in 7..=20 {
            submit(client, day(number, [outcome("wobbles", 'P'), outcome("reads", 'P')].concat())).await;
        }
        let list = quarantined(client, "").await;
        let row = &list["items"][0];
        // Half of the six runs before were not clean.
        assert_eq!(
            json!([row["consecutivePasses"], row["passesNeeded"], row["releaseProposed"]]),
            json!([14, 10, true])
        );
        assert_eq!(list["debt"]["readyToRelease"], 1);

        let path = format!("/api/projects/1/quarantine/{case}?reason=mended");
        let released = client.send_json(Method::DELETE, &path, &json!({})).await.expect("an answer");
        assert_eq!(released.json().expect("json")["quarantine"]["releasedReason"], "mended");
        let twice = client.send_json(Method::DELETE, &path, &json!({})).await.expect("an answer");
        assert_eq!(twice.status, 404);
        assert_eq!(quarantined(client, "").await["items"], json!([]));
        assert_eq!(quarantined(client, "?state=released").await["items"][0]["testCaseId"], case);
        let after = submit(client, day(21, outcome("wobbles", 'F'))).await;
        let executions = get(client, &format!("/api/test-runs/{after}/executions")).await;
        assert_eq!(executions["items"][0]["isQuarantined"], false);
    })
    .await;
}

#[tokio::test]
async fn a_plan_has_a_tag_and_forgets_what_is_over() {
    for_each_service(async |service| {
        let client = service.client();
        history(client, &[("wobbles", "Px"), ("reads", "PP")]).await;
        let empty = get(client, "/api/projects/1/quarantine-plan").await;
        assert_eq!(empty["items"], json!([]));
        let soon = Timestamp(service.state().now().millis() + 60_000).to_iso();
        for (case, until) in [(1, Value::Null), (2, json!(soon))] {
            let body = json!({ "testCaseId": case, "expiresAt": until });
            assert_eq!(
                client.post("/api/projects/1/quarantine", &body).await.expect("an answer").status,
                201
            );
        }
        let answer = client.get("/api/projects/1/quarantine-plan").await.expect("an answer");
        let plan = answer.json().expect("json");
        assert_eq!(
            plan["items"],
            json!([
                { "filePath": "tests/shop.spec.ts", "suitePath": ["Shop"], "title": "reads" },
                { "filePath": "tests/shop.spec.ts", "suitePath": ["Shop"], "title": "wobbles" },
            ])
        );
        assert_ne!(plan["version"], empty["version"]);
        let known = client.request(Method::GET, "/api/projects/1/quarantine-plan");
        let known = client.send(known.header("If-None-Match", answer.header("etag"))).await;
        assert_eq!(known.expect("an answer").status, 304);

        let past = json!({ "testCaseId": 1, "expiresAt": "2020-01-01T00:00:00Z" });
        assert_eq!(client.post("/api/projects/1/quarantine", &past).await.expect("an answer").status, 400);
        for (body, code) in [
            (json!({ "testCaseId": 99 }), "test_case_not_found"),
            (json!({ "testCaseId": "x" }), "invalid_field"),
            (json!({ "testCaseId": 1, "source": "guessed" }), "invalid_field"),
            (json!({}), "missing_field"),
        ] {
            let refused = client.post("/api/projects/1/quarantine", &body).await.expect("an answer");
            assert_eq!(refused.json().expect("json")["code"], code, "{body}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_costly_flaky_test_is_proposed_for_quarantine() {
    for_each_service(async |service: &Service| {
        let client = service.client();
        let slow = |number, letter| {
            let attempts = outcome("wobbles", letter);
            day(number, attempts.into_iter().map(|one| with(one, json!({ "duration": 60_000 }))).collect())
        };
        for (number, letter) in "PPxPPxPPxPP".chars().enumerate() {
            submit(client, slow(number + 1, letter)).await;
        }
        assert_eq!(quarantined(client, "").await["candidates"], json!([]), "only when asked for");
        let list = quarantined(client, "?candidates=true").await;
        assert_eq!(list["candidates"].as_array().expect("candidates").len(), 1);
        let proposal = &list["candidates"][0];
        assert_eq!(
            json!([proposal["title"], proposal["wastedDuration"], proposal["retryPassCount"]]),
            json!(["wobbles", 180_000, 3])
        );
        let body = json!({ "testCaseId": proposal["testCaseId"], "source": "proposed" });
        client.post_json("/api/projects/1/quarantine", &body).await.expect("set aside");
        assert_eq!(quarantined(client, "?candidates=true").await["candidates"], json!([]));
    })
    .await;
}
