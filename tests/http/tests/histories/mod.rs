//! A test is the same test wherever its run was started: its history goes on under
//! another path, is joined with the one it has there, and can be taken apart again.
//! Numbers are those of a project whose runs had one path, or two, from the beginning.

use callboard_test_support::{Client, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::{get, submit, work};

mod order;

const SHORT: &str = "tests/shop.spec.ts";
const LONG: &str = "packages/web/tests/shop.spec.ts";
const OTHER: &str = "packages/admin/tests/shop.spec.ts";

/// How a run was started, and what its reporter knew.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Started {
    /// Inside of `packages/web`, by a reporter that sends paths from there.
    EarlierInside,
    /// From the root, by such a reporter.
    EarlierAtRoot,
    /// Inside of `packages/web`.
    Inside,
    /// From the root.
    AtRoot,
    /// Inside of `packages/web`, in a repository in which another file ends like this one.
    InsideOfMany,
    /// Inside of `packages/admin`.
    InsideOther,
    /// The suite at the root, whose files are called as those of `packages/web` were.
    OtherSuite,
}

use Started::{AtRoot, EarlierAtRoot, EarlierInside, Inside, InsideOfMany, InsideOther, OtherSuite};

impl Started {
    const fn path(self) -> &'static str {
        match self {
            EarlierInside | OtherSuite => SHORT,
            EarlierAtRoot | Inside | AtRoot | InsideOfMany => LONG,
            InsideOther => OTHER,
        }
    }

    fn scm(self) -> Value {
        match self {
            EarlierInside | EarlierAtRoot => json!({}),
            Inside => json!({ "pathRoot": "git", "pathPrefix": "packages/web" }),
            InsideOfMany => {
                json!({ "pathRoot": "git", "pathPrefix": "packages/web", "sharedPaths": [SHORT] })
            }
            InsideOther => json!({ "pathRoot": "git", "pathPrefix": "packages/admin" }),
            AtRoot | OtherSuite => json!({ "pathRoot": "git", "pathPrefix": "" }),
        }
    }
}

/// Runs by how they were started, and how the test `pays` ended in each.
type Runs<'r> = &'r [(Started, &'r str)];

/// The paths that a project gets, and whether it learns where they began.
#[derive(Clone, Copy, PartialEq)]
enum Told {
    AsStarted,
    OnePath,
    NoPrefix,
}

async fn send(
    client: &Client,
    project: &str,
    (hour, started, pays): (usize, Started, &str),
    told: Told,
) -> i64 {
    let start = format!("2026-01-0{}T{:02}:00:00.000Z", 1 + hour / 20, hour % 20);
    submit(client, submission(project, (started, pays), told, &start)).await
}

fn submission(project: &str, (started, pays): (Started, &str), told: Told, start: &str) -> Value {
    let mut cases = vec![attempt("looks", "passed", 0)];
    match pays {
        "flaky" => cases.extend([attempt("pays", "failed", 0), attempt("pays", "passed", 1)]),
        status => cases.push(attempt("pays", status, 0)),
    }
    let path = if told == Told::OnePath { LONG } else { started.path() };
    for case in &mut cases {
        case["location"] = json!(format!("{path}:7:5"));
    }
    let status = if pays == "failed" { "failed" } else { "passed" };
    let mut scm = json!({ "defaultBranch": "main" });
    if told == Told::AsStarted {
        scm = with(scm, started.scm());
    }
    let more = json!({ "startTime": start, "branch": "main", "metadata": { "scm": scm }, "isFullRun": true });
    with(run(project, status, cases), more)
}

async fn sent(service: &Service, project: &str, runs: Runs<'_>, told: Told) -> i64 {
    for (hour, (started, pays)) in runs.iter().enumerate() {
        send(service.client(), project, (hour, *started, pays), told).await;
        work(service).await;
    }
    project_of(service.client(), project).await
}

async fn project_of(client: &Client, name: &str) -> i64 {
    let projects = get(client, "/api/projects").await;
    let items = projects["items"].as_array().expect("a list");
    items.iter().find(|item| item["name"] == name).expect("a project")["id"].as_i64().expect("an id")
}

/// Without what tells a project from another one: ids, names, links and times of storing.
fn plain(mut value: Value) -> Value {
    const OWN: [&str; 8] =
        ["id", "createdAt", "updatedAt", "nextCursor", "projectName", "links", "project", "url"];
    // Why a test is flaky is found out when it fails, and not by a pass that arrives late.
    const FOUND_LATER: &str = "rootCause";
    // A run without a test in common with others is compared with them when they came first. Then it has these numbers.
    const COMPARED: [&str; 4] = ["newRegressions", "newFlaky", "fixedTests", "newClusters"];
    match &mut value {
        Value::Object(fields) => {
            fields.retain(|key, _| {
                !key.ends_with("Id")
                    && !key.ends_with("Url")
                    && key != FOUND_LATER
                    && !OWN.contains(&key.as_str())
            });
            for (key, value) in fields.iter_mut() {
                if COMPARED.contains(&key.as_str()) && (value.is_null() || key == "newClusters") {
                    *value = json!(0);
                }
            }
            fields.values_mut().for_each(|field| *field = plain(field.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = plain(item.take())),
        _ => {}
    }
    value
}

/// Everything that summarises the runs of a project.
async fn numbers(client: &Client, project: i64) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for path in [
        "test-cases?sort=title",
        "test-cases?sort=title&branch=main",
        "flaky-tests",
        "slow-tests",
        "daily?from=2026-01-01&to=2026-01-02",
        "failure-clusters",
        "test-runs",
    ] {
        let mut answer = get(client, &format!("/api/projects/{project}/{path}")).await;
        if path.starts_with("test-cases") {
            for case in answer["items"].as_array().expect("a list") {
                let id = &case["id"];
                let name = format!("{} {}", case["filePath"], case["title"]);
                for of_case in ["history", "stability-trend"] {
                    let detail = get(client, &format!("/api/test-cases/{id}/{of_case}")).await;
                    found.push((format!("{of_case} of {name}"), plain(detail)));
                }
            }
        }
        // Tests of one title stand in the order in which they came.
        if let Some(items) = answer["items"].as_array_mut() {
            items.sort_by_key(|item| plain(item.clone()).to_string());
        }
        found.push((path.to_owned(), plain(answer)));
    }
    let own = get(client, &format!("/api/projects/{project}")).await;
    found.push(("tests".to_owned(), own["totalTestCases"].clone()));
    found.sort_by(|(one, _), (other, _)| one.cmp(other));
    found
}

async fn assert_same(client: &Client, project: i64, oracle: i64, what: &str) {
    let (own, expected) = (numbers(client, project).await, numbers(client, oracle).await);
    for ((path, own), (expected_path, expected)) in own.iter().zip(&expected) {
        assert_eq!(path, expected_path, "{what}");
        assert_eq!(own, expected, "{what}: {path}");
    }
    assert_eq!(own.len(), expected.len(), "{what}");
}

async fn joins(client: &Client, project: i64, status: &str) -> Vec<Value> {
    let list = get(client, &format!("/api/projects/{project}/joined-histories?status={status}")).await;
    list["items"].as_array().expect("a list").clone()
}

async fn decide(client: &Client, project: i64, join: &Value, status: &str) -> Value {
    let path = format!("/api/projects/{project}/joined-histories/{}", join["id"]);
    let answer =
        client.send_json(Method::PATCH, &path, &json!({ "status": status })).await.expect("an answer");
    answer.success().expect("decided")["history"].clone()
}

async fn case_of(client: &Client, project: i64, title: &str) -> Value {
    let cases = get(client, &format!("/api/projects/{project}/test-cases?sort=title")).await;
    let items = cases["items"].as_array().expect("a list");
    items.iter().find(|case| case["title"] == title).expect("a test").clone()
}

#[tokio::test]
async fn a_history_goes_on_under_the_path_from_the_root() {
    for_each_service(async |service| {
        let client = service.client();
        let runs: Runs<'_> = &[
            (EarlierInside, "passed"),
            (EarlierInside, "failed"),
            (EarlierInside, "passed"),
            (Inside, "failed"),
            (EarlierInside, "flaky"),
            (Inside, "passed"),
            (EarlierAtRoot, "failed"),
        ];
        let project = sent(service, "shop", &runs[..3], Told::AsStarted).await;
        let before = case_of(client, project, "pays").await["id"].clone();
        let aside = json!({ "testCaseId": before, "reason": "flaky" });
        client.post_json(&format!("/api/projects/{project}/quarantine"), &aside).await.expect("set aside");
        let fourth = send(client, "shop", (3, runs[3].0, runs[3].1), Told::AsStarted).await;
        // From the first result on it is the same test, also before any job has run.
        let run = get(client, &format!("/api/test-runs/{fourth}/executions?status=failed")).await;
        assert_eq!(run["items"][0]["testCaseId"], before, "{run}");
        assert_eq!(run["items"][0]["isQuarantined"], true, "{run}");
        work(service).await;
        for (hour, (started, pays)) in runs.iter().enumerate().skip(4) {
            send(client, "shop", (hour, *started, pays), Told::AsStarted).await;
            work(service).await;
        }

        let after = case_of(client, project, "pays").await;
        assert_eq!((&after["id"], &after["filePath"]), (&before, &json!(LONG)));
        let joined = joins(client, project, "joined").await;
        assert_eq!(joined.len(), 2, "{joined:?}");
        assert_eq!(joined[0]["kept"]["filePath"], SHORT);
        assert_eq!((&joined[0]["filePath"], &joined[0]["status"]), (&json!(LONG), &json!("joined")));

        // Links and plans in either path lead to it.
        let pays = joined.iter().find(|join| join["title"] == "pays").expect("a join");
        let other = get(client, &format!("/api/test-cases/{}", pays["joined"]["testCaseId"])).await;
        assert_eq!(other["id"], before);
        let plan = get(client, &format!("/api/projects/{project}/quarantine-plan")).await;
        let planned: Vec<&Value> =
            plan["items"].as_array().expect("a list").iter().map(|item| &item["filePath"]).collect();
        assert_eq!(planned, [LONG, SHORT]);
        let path = format!("/api/projects/{project}/quarantine/{before}");
        client.send_json(Method::DELETE, &path, &json!({})).await.expect("released");

        let one = sent(service, "one path", runs, Told::OnePath).await;
        let two = sent(service, "two paths", runs, Told::NoPrefix).await;
        for id in [one, two] {
            let pays = case_of(client, id, "pays").await["id"].clone();
            let aside = json!({ "testCaseId": pays, "reason": "flaky" });
            client.post_json(&format!("/api/projects/{id}/quarantine"), &aside).await.expect("set aside");
            let path = format!("/api/projects/{id}/quarantine/{pays}");
            client.send_json(Method::DELETE, &path, &json!({})).await.expect("released");
        }
        assert_tests_alike(client, project, one, "joined").await;

        for join in &joined {
            assert_eq!(decide(client, project, join, "undone").await["status"], "undoing");
        }
        work(service).await;
        assert_eq!(joins(client, project, "undone").await.len(), 2);
        assert_tests_alike(client, project, two, "made two again").await;
    })
    .await;
}

/// Like [`assert_same`], but for runs: one of them was judged with a test in quarantine.
async fn assert_tests_alike(client: &Client, project: i64, oracle: i64, what: &str) {
    let of_tests = |numbers: Vec<(String, Value)>| {
        numbers.into_iter().filter(|(path, _)| {
            !path.starts_with("history") && !path.starts_with("daily") && path != "test-runs"
        })
    };
    let own: Vec<_> = of_tests(numbers(client, project).await).collect();
    let expected: Vec<_> = of_tests(numbers(client, oracle).await).collect();
    assert_eq!(own, expected, "{what}");
}

#[tokio::test]
async fn histories_of_two_folders_become_one_and_two_again() {
    for_each_service(async |service| {
        let client = service.client();
        let runs: Runs<'_> = &[
            (EarlierInside, "passed"),
            (EarlierAtRoot, "failed"),
            (EarlierInside, "failed"),
            (EarlierInside, "passed"),
            (EarlierAtRoot, "passed"),
            (EarlierInside, "flaky"),
            (Inside, "failed"),
            (EarlierInside, "failed"),
        ];
        let project = sent(service, "shop", runs, Told::AsStarted).await;
        let one = sent(service, "one path", runs, Told::OnePath).await;
        let two = sent(service, "two paths", runs, Told::NoPrefix).await;
        let joined = joins(client, project, "joined").await;
        assert_eq!(joined.len(), 2, "{:?}", joins(client, project, "all").await);
        assert_same(client, project, one, "joined").await;
        for join in &joined {
            decide(client, project, join, "undone").await;
        }
        work(service).await;
        assert_same(client, project, two, "made two again").await;

        // And people may join them once more.
        for join in joins(client, project, "undone").await {
            decide(client, project, &join, "joined").await;
        }
        work(service).await;
        assert_same(client, project, one, "joined once more").await;
    })
    .await;
}

#[tokio::test]
async fn where_several_tests_may_be_meant_people_are_asked() {
    for_each_service(async |service| {
        let client = service.client();
        let runs: Runs<'_> =
            &[(EarlierInside, "passed"), (EarlierInside, "failed"), (InsideOfMany, "failed")];
        let project = sent(service, "shop", runs, Told::AsStarted).await;
        let two = sent(service, "two paths", runs, Told::NoPrefix).await;
        assert_same(client, project, two, "proposed").await;
        let proposed = joins(client, project, "proposed").await;
        assert_eq!(proposed.len(), 2, "{proposed:?}");
        assert_eq!(proposed[0]["reason"], "another file of the repository had the earlier path, too");
        let [one, other] = &proposed[..] else { panic!("{proposed:?}") };
        assert_eq!(decide(client, project, one, "dismissed").await["status"], "dismissed");
        assert_eq!(decide(client, project, other, "joined").await["status"], "joining");
        work(service).await;
        assert_eq!(joins(client, project, "joined").await[0]["title"], other["title"]);
        let path = format!("/api/projects/{project}/joined-histories/{}", one["id"]);
        let again =
            client.send_json(Method::PATCH, &path, &json!({ "status": "undone" })).await.expect("an answer");
        assert_eq!(
            (again.status.as_u16(), &again.json().expect("an error")["code"]),
            (409, &json!("not_pending"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_run_that_has_its_own_test_under_the_earlier_path_makes_them_two_again() {
    for_each_service(async |service| {
        let client = service.client();
        let runs: Runs<'_> =
            &[(EarlierInside, "passed"), (Inside, "failed"), (OtherSuite, "passed"), (Inside, "failed")];
        let project = sent(service, "shop", runs, Told::AsStarted).await;
        let two = sent(service, "two paths", runs, Told::NoPrefix).await;
        assert_eq!(
            joins(client, project, "undone").await.len(),
            2,
            "{:?}",
            joins(client, project, "all").await
        );
        assert_same(client, project, two, "contradicted").await;
    })
    .await;
}

#[tokio::test]
async fn tests_of_two_folders_that_had_one_path_stay_two() {
    for_each_service(async |service| {
        let client = service.client();
        let runs: Runs<'_> =
            &[(EarlierInside, "passed"), (Inside, "failed"), (InsideOther, "passed"), (Inside, "failed")];
        let project = sent(service, "shop", runs, Told::AsStarted).await;
        let all = joins(client, project, "all").await;
        let states: Vec<&Value> = all.iter().map(|join| &join["status"]).collect();
        assert_eq!(states, ["proposed"; 4], "{all:?}");
        let three = sent(service, "three paths", runs, Told::NoPrefix).await;
        assert_same(client, project, three, "disputed").await;

        // People know which of the two it was.
        let pays =
            all.iter().find(|join| join["title"] == "pays" && join["filePath"] == OTHER).expect("a join");
        decide(client, project, pays, "joined").await;
        work(service).await;
        let (old, other) = (&pays["kept"]["testCaseId"], &pays["joined"]["testCaseId"]);
        let [old, other] = [old, other].map(|id| format!("/api/test-cases/{id}"));
        assert_eq!(get(client, &old).await["filePath"], OTHER);
        assert_eq!(get(client, &other).await["id"], pays["kept"]["testCaseId"]);
    })
    .await;
}
