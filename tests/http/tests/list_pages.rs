//! Numbers on a page and the lists they lead to, and what a list says when
//! there is nothing in it.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Client, Service, for_each_service};
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::comparison::work;
use crate::detail_pages::{page, words_after};

/// Rows of the lists of a page.
async fn rows(client: &Client, path: &str) -> usize {
    page(client, path).await.matches("<tr data-row>").count()
}

/// The address of the page after this one.
fn next_page(html: &str) -> Option<String> {
    let from = html.find("rel=\"next\"")?;
    let link = &html[html[..from].rfind("href=\"")? + 6..from];
    Some(link.trim_end().trim_end_matches('"').replace("&#38;", "&").replace("&amp;", "&"))
}

/// A run of the default branch that began some hours ago.
async fn submit(service: &Service, hours: i64, status: &str, cases: Vec<Value>) -> i64 {
    let start = Timestamp(service.state().now().millis() - hours * 3_600_000).to_iso();
    let fields = json!({ "startTime": start, "branch": "main" });
    let body = with(run("shop", status, cases), fields);
    let stored = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    stored["runId"].as_i64().expect("an id")
}

/// A failed attempt whose error is that of others as well.
fn fails(title: &str, error: &str) -> Value {
    with(
        attempt(title, "failed", 0),
        json!({ "error": format!("Error: {error}\n    at tests/shop.spec.ts:9:3") }),
    )
}

#[tokio::test]
async fn what_a_run_counts_is_what_its_lists_hold() {
    for_each_service(async |service| {
        let client = service.client();
        let steady = |title: &str| attempt(title, "passed", 0);
        let before =
            vec![steady("ships"), fails("pays", "no card"), steady("wobbles"), fails("mails", "no post")];
        submit(service, 3, "failed", before).await;
        let aside =
            client.json("/api/projects/1/test-cases?q=wobbles").await.expect("tests")["items"][0]["id"]
                .clone();
        client
            .post("/api/projects/1/quarantine", &json!({ "testCaseId": aside }))
            .await
            .expect("an answer")
            .success()
            .expect("aside");
        let now = vec![
            fails("ships", "no truck"),
            fails("pays", "no card"),
            fails("wobbles", "no luck"),
            steady("mails"),
            fails("is new", "no truck"),
        ];
        let id = submit(service, 1, "failed", now).await;
        work(service).await;

        let counts =
            client.json(&format!("/api/test-runs/{id}/insights")).await.expect("insights")["counts"].clone();
        for (count, change, expected) in
            [("newRegressions", "regression", 1), ("recurrences", "recurring", 1), ("recovered", "fixed", 1)]
        {
            assert_eq!(counts[count], expected, "{count}: {counts}");
            assert_eq!(rows(client, &format!("/test-runs/{id}?change={change}")).await, expected, "{change}");
        }
        let all = page(client, &format!("/test-runs/{id}")).await;
        assert!(words_after(&all, "wobbles").starts_with("wobbles in quarantine"), "not a new failure");

        let groups = client.json(&format!("/api/test-runs/{id}/failure-groups")).await.expect("groups");
        for group in groups["items"].as_array().expect("groups") {
            let listed = rows(client, &format!("/test-runs/{id}?cluster={}", group["id"])).await;
            assert_eq!(json!(listed), group["count"], "{group}");
        }
        let none = page(client, &format!("/test-runs/{id}?cluster=none")).await;
        assert!(none.contains("No executions match"), "every failure has a cluster");
        let insights = page(client, &format!("/test-runs/{id}?tab=insights")).await;
        assert!(insights.contains("change=recurring"), "{insights}");
    })
    .await;
}

#[tokio::test]
async fn every_test_of_a_cluster_can_be_reached() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = (0..23).map(|n| fails(&format!("test {n}"), "the basket is gone")).collect();
        submit(service, 1, "failed", cases).await;
        let overview = page(client, "/failure-clusters/1").await;
        assert!(
            words_after(&overview, "Affected tests").starts_with("Affected tests the 20 it fails most of 23"),
            "{overview}"
        );
        let first = page(client, "/failure-clusters/1?tab=tests&limit=20").await;
        assert!(first.contains("20 of 23 tests"), "{first}");
        let next = next_page(&first).expect("a next page");
        assert_eq!(rows(client, &next).await, 3, "{next}");
    })
    .await;
}

#[tokio::test]
async fn lists_without_rows_say_what_there_is() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = vec![fails("pays", "no card"), fails("ships", "no truck")];
        submit(service, 3, "failed", cases.clone()).await;
        let id = submit(service, 2, "failed", cases).await;
        let tab = "/projects/1?tab=clusters";
        let open = page(client, tab).await;
        assert!(!open.contains("Nothing is open") && open.contains("2 clusters"), "{open}");
        let resolved = page(client, &format!("{tab}&status=resolved")).await;
        assert!(words_after(&resolved, "No cluster is resolved").contains("2 open, 0 ignored"), "{resolved}");
        let part = page(client, &format!("{tab}&status=all&q=no&limit=1")).await;
        assert!(part.contains("1 of 2 clusters"), "a filtered list is counted: {part}");

        let setup = json!({ "projectName": "shop", "branch": "main" });
        client.post_json("/api/test-runs/setup", &setup).await.expect("registered");
        assert_eq!(rows(client, "/projects/1?status=running").await, 1, "what is shown as running");
        let same = page(client, &format!("/projects/1?tab=compare&run={id}&run={id}")).await;
        assert!(same.contains("Select two different runs"), "{same}");
        let flaky = page(client, "/projects/1?tab=flaky&minScore=90").await;
        assert!(flaky.contains("No flaky tests match"), "{flaky}");
    })
    .await;
}

#[tokio::test]
async fn the_set_up_before_the_tests_has_a_lane_of_its_own() {
    for_each_service(async |service| {
        let client = service.client();
        let now = service.state().now().millis();
        let ran = with(attempt("pays", "passed", 0), json!({ "startedAt": now, "duration": 1_000, "workerIndex": 0 }));
        let step = json!({ "title": "seeds the shop", "category": "hook", "startedAt": now - 9_000, "duration": 8_000, "status": "passed", "workerIndex": 0 });
        let body = with(run("shop", "passed", vec![ran]), json!({ "setupSteps": [step] }));
        let id = client.post_json("/api/test-runs/submit", &body).await.expect("stored")["runId"].clone();
        let html = page(client, &format!("/test-runs/{id}?tab=timeline")).await;
        assert!(html.contains("seeds the shop: 8.0\u{a0}s"), "{html}");
        assert_eq!(html.matches("class=\"setup\"").count(), 1);
        let filtered = page(client, &format!("/test-runs/{id}?tab=timeline&outcome=passed")).await;
        assert!(!filtered.contains("seeds the shop"), "only what the filters are about");
        let alone = page(client, &format!("/test-runs/{id}?tab=timeline&phase=setup")).await;
        assert!(words_after(&alone, ">Steps<").contains("seeds the shop 8.0 s"), "{alone}");
        assert!(alone.contains(">1 step<") && !alone.contains("pays: passed"), "{alone}");
        let without = page(client, &format!("/test-runs/{id}?tab=timeline&phase=tests")).await;
        assert!(!without.contains("seeds the shop") && without.contains("pays: passed"), "{without}");
    })
    .await;
}

#[tokio::test]
async fn the_history_of_a_test_pages_whatever_its_chart_reads() {
    for_each_service(async |service| {
        let client = service.client();
        let mut ran = Vec::new();
        for hours in (1..=12).rev() {
            ran.push(submit(service, hours, "passed", vec![attempt("pays", "passed", 0)]).await);
        }
        ran.reverse();
        // Pages within what the chart shows, of just as many as there are, and longer than the chart.
        for limit in [1, 5, 11, 12, 13, 70] {
            let mut listed = Vec::new();
            let mut address = Some(format!("/test-cases/1?limit={limit}"));
            while let Some(path) = address {
                let html = page(client, &path).await;
                let rows = html.split("<tr data-row>").skip(1);
                let run = |row: &str| {
                    words_after(row, ">Run ").split(' ').nth(1).and_then(|id| id.parse::<i64>().ok())
                };
                listed.extend(rows.filter_map(run));
                assert!(html.contains("last <b>12</b> executions"), "the chart shows all of them");
                address = next_page(&html);
            }
            assert_eq!(listed, ran, "by {limit}: each once, the newest first");
        }
    })
    .await;
}

/// The names of the projects on a page of their list, in their order.
fn listed(html: &str) -> Vec<String> {
    let rows = html.split("<tr data-row>").skip(1);
    let name = |row: &str| {
        let from = row.split("class=\"row-link\"").nth(1)?;
        Some(from.split('>').nth(1)?.split('<').next()?.to_owned())
    };
    rows.filter_map(name).collect()
}

#[tokio::test]
async fn projects_are_listed_by_how_they_stand_page_after_page() {
    for_each_service(async |service| {
        let client = service.client();
        // One in three fails; the others pass, some of them not every time.
        let endings = ["passed passed", "passed failed", "failed passed"];
        for number in 0..51 {
            for (at, status) in endings[number % 3].split(' ').enumerate() {
                let sent = run(&format!("project {number:02}"), status, vec![attempt("works", status, 0)]);
                let start = format!("2026-01-{:02}T{:02}:{at:02}:00Z", 1 + number / 24, number % 24);
                let fields =
                    json!({ "branch": "main", "startTime": start, "clientRunId": format!("{number}-{at}") });
                client.post_json("/api/test-runs/submit", &with(sent, fields)).await.expect("stored");
            }
        }
        // One run alone is no tendency, and tells all the same; one that is not full tells nothing beside one that is.
        for (name, more) in [("alone", json!({})), ("partial", json!({ "isFullRun": false }))] {
            let sent = run(name, "failed", vec![attempt("works", "failed", 0)]);
            let sent = with(with(sent, json!({ "startTime": "2026-01-09T10:00:00Z" })), more);
            client.post_json("/api/test-runs/submit", &sent).await.expect("stored");
        }
        client.post_json("/api/projects", &json!({ "name": "empty" })).await.expect("made");

        let failing: Vec<String> =
            (0..51).filter(|number| number % 3 == 1).map(|number| format!("project {number:02}")).collect();
        let mut expected = failing.clone();
        expected.extend(["alone", "partial"].map(str::to_owned));
        expected.sort();
        for limit in [4, 5, 19, 50] {
            let (mut seen, mut path) =
                (Vec::new(), format!("/projects?standing=failing&sort=name&limit={limit}"));
            loop {
                let html = page(client, &path).await;
                seen.extend(listed(&html));
                let tally = if limit < 19 {
                    format!("{} of 19 projects", listed(&html).len())
                } else {
                    "19 projects".to_owned()
                };
                assert!(html.contains(&tally), "{tally}: {html}");
                let Some(next) = next_page(&html) else { break };
                path = next;
                assert!(path.contains("standing=failing"), "{path}");
            }
            assert_eq!(seen, expected, "by {limit}: each once");
        }
        let both = page(client, "/projects?standing=failing&q=project+0&limit=2").await;
        assert!(both.contains("2 of 3 projects"), "{both}");
        for (standing, count) in [("unsteady", 17), ("passing", 17)] {
            let html = page(client, &format!("/projects?standing={standing}&limit=50")).await;
            assert!(html.contains(&format!("{count} projects")), "{standing}: {html}");
        }
        let refused = client.get("/projects?standing=sideways").await.expect("an answer");
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("failing"), "it says what can be asked for: {}", refused.text());
        // Home names a handful and leads to all of them.
        let home = page(client, "/").await;
        assert!(home.contains("19 of 53 projects are failing"), "{home}");
        let also = home
            .split("Also failing:")
            .nth(1)
            .and_then(|rest| rest.split("</p>").next())
            .expect("further ones");
        let named = also.matches("href=\"/projects/").count();
        let shown = listed(&home).iter().filter(|name| expected.contains(name)).count();
        let more = format!("href=\"/projects?standing=failing\">and {} more</a>", 19 - shown - named);
        assert!(named == 5 && also.contains(&more), "{more}: {also}");
    })
    .await;
}

#[tokio::test]
async fn filters_of_several_values_stay_until_they_are_taken_back() {
    for_each_service(async |service| {
        let client = service.client();
        submit(service, 1, "failed", vec![fails("pays", "no card"), attempt("ships", "passed", 0)]).await;
        let both = page(client, "/test-runs/1?outcome=failing&outcome=passed").await;
        for outcome in ["failing", "passed"] {
            let carried = format!("<input type=\"hidden\" name=\"outcome\" value=\"{outcome}\">");
            assert_eq!(both.matches(&carried).count(), 1, "the form goes on with {outcome}: {both}");
        }
        let listed = page(client, "/test-runs/1?outcome=failing,passed").await;
        for other in ["failing", "passed"] {
            let link = format!("<a class=\"chip\" href=\"/test-runs/1?outcome={other}\"");
            assert_eq!(listed.matches(&link).count(), 1, "one of a comma list is taken back: {listed}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_run_that_is_sent_after_newer_ones_is_compared_as_the_older_one() {
    for_each_service(async |service| {
        let client = service.client();
        let newer = submit(service, 1, "passed", vec![attempt("pays", "passed", 0)]).await;
        let older = submit(service, 90, "failed", vec![fails("pays", "no card")]).await;
        let person = client.with_header("accept", "text/html").expect("a header");
        let chosen = person.get(&format!("/projects/1?tab=compare&run={older}&run={newer}")).await;
        let chosen = chosen.expect("an answer");
        assert_eq!(chosen.header("location"), format!("/test-runs/{newer}?tab=compare&with={older}"));
        let ticked = page(client, &format!("/test-runs/{newer}?tab=compare&with={older}")).await;
        assert!(words_after(&ticked, "versus-side").contains(&format!("Before Run {older} ")), "{ticked}");
        let alone = page(client, &format!("/test-runs/{older}?tab=compare")).await;
        assert!(alone.contains("No earlier finished run in this project."), "{alone}");
        assert!(!alone.contains("<option"), "what came later is no measure of it: {alone}");
        let turned = page(client, &format!("/test-runs/{older}?tab=compare&with={newer}")).await;
        let sides = words_after(&turned, "versus-side");
        assert!(sides.contains(&format!("A later run Run {newer} ")), "{sides}");
    })
    .await;
}

#[tokio::test]
async fn pages_of_what_is_alone_or_empty_say_so() {
    for_each_service(async |service| {
        let client = service.client();
        let empty = json!({ "projectName": "shop", "status": "passed", "branch": "main", "testCases": [] });
        let start = json!({ "startTime": service.state().now().to_iso(), "duration": 5_000 });
        client.post_json("/api/test-runs/submit", &with(empty, start)).await.expect("stored");
        // Before the days that are shown.
        submit(service, 40 * 24, "passed", vec![attempt("pays", "passed", 0)]).await;
        let trend = words_after(&page(client, "/projects/1").await, "Last 30 days").replace('\u{a0}', " ");
        assert!(trend.starts_with("Last 30 days 1 run "), "{trend}");
        assert!(trend.contains(": 1 run, no tests "), "{trend}");
        let chart = words_after(&page(client, "/test-cases/1").await, "<h2>Stability");
        assert!(chart.starts_with("Stability 1 execution; the height"), "{chart}");

        let started = client.post_json("/api/test-runs/start", &json!({ "projectName": "new" })).await;
        let started = started.expect("started");
        let (run, token) = (&started["runId"], &started["streamToken"]);
        let timeline = format!("/test-runs/{run}?tab=timeline");
        assert!(page(client, &timeline).await.contains("No results yet"));
        let ended = with(attempt("pays", "passed", 0), json!({ "type": "complete" }));
        let events = json!({ "streamToken": token, "testCases": [ended] });
        client.post_json(&format!("/api/test-runs/{run}/events"), &events).await.expect("taken");
        let timed = page(client, &timeline).await;
        assert!(!timed.contains("No results yet") && timed.contains("No times"), "{timed}");
    })
    .await;
}

#[tokio::test]
async fn the_catalogue_shows_the_scores_it_is_ordered_by() {
    for_each_service(async |service| {
        let client = service.client();
        for hour in 0..6 {
            let wobbles = |title: &str, wobbles: bool| {
                let first = attempt(title, if wobbles { "failed" } else { "passed" }, 0);
                std::iter::once(first).chain(wobbles.then(|| attempt(title, "passed", 1)))
            };
            let cases =
                wobbles("often", true).chain(wobbles("once", hour == 3)).chain(wobbles("never", false));
            submit(service, 12 - hour, "passed", cases.collect()).await;
        }
        work(service).await;
        let found = client.json("/api/projects/1/test-cases?sort=flakyScore&dir=desc").await.expect("tests");
        let found = found["items"].as_array().expect("tests");
        let scores: Vec<&Value> = found.iter().map(|case| &case["flakyScore"]).collect();
        assert!(scores[0].as_i64() > scores[1].as_i64(), "{scores:?}");
        let html = page(client, "/projects/1?tab=cases&sort=flaky").await;
        let shown: Vec<Value> = html
            .split("<span>score ")
            .skip(1)
            .map(|rest| json!(rest.split('<').next().and_then(|score| score.parse::<i64>().ok())))
            .collect();
        let wobbled = found.iter().filter(|case| case["flaky"] != json!(0));
        let some: Vec<Value> = wobbled.map(|case| case["flakyScore"].clone()).collect();
        assert_eq!(shown, some, "{html}");
    })
    .await;
}

#[tokio::test]
async fn the_start_page_says_which_projects_its_flaky_tests_are_of() {
    for_each_service(async |service| {
        let client = service.client();
        let wobbles = || vec![attempt("wobbles", "failed", 0), attempt("wobbles", "passed", 1)];
        for number in 0..12 {
            let name = json!({ "name": format!("older {number}") });
            client.post_json("/api/projects", &name).await.expect("made");
        }
        for hour in 0..6 {
            submit(service, 12 - hour, "passed", wobbles()).await;
        }
        work(service).await;
        let home = words_after(&page(client, "/").await, "Most expensive flaky tests");
        let told = home.split("Recent runs").next().expect("a panel");
        assert!(told.contains("wobbles") && told.contains("Of the projects above."), "{told}");
    })
    .await;
}
