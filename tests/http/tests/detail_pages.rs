//! What pages tell beyond what an answer of the API holds: the life of a
//! cluster, what a trace shows, where durations changed, what turns a run down.

use callboard_domain::time::Timestamp;
use callboard_test_support::{Answer, Client, Form, Service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};

pub(crate) async fn page(client: &Client, path: &str) -> String {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(path).await.expect("an answer");
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
    answer.text()
}

/// A run that began `minutes` from now.
async fn submit(service: &Service, minutes: i64, cases: Vec<Value>, more: Value) -> (i64, i64) {
    let start = Timestamp(service.state().now().millis() + minutes * 60_000);
    let body = with(run("shop", "failed", cases), with(json!({ "startTime": start.to_iso() }), more));
    let stored = service.client().post_json("/api/test-runs/submit", &body).await.expect("stored");
    let number = |name: &str| stored[name].as_i64().expect("an id");
    (number("projectId"), number("runId"))
}

/// The words of a page from a heading on, without its markup.
pub(crate) fn words_after(html: &str, heading: &str) -> String {
    let from = html.find(heading).unwrap_or_else(|| panic!("{heading} is not on the page"));
    let mut words = String::new();
    let mut is_markup = false;
    for char in html[from..].chars() {
        match char {
            '<' => is_markup = true,
            '>' => {
                is_markup = false;
                words.push(' ');
            }
            char if !is_markup => words.push(char),
            _ => {}
        }
    }
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[tokio::test]
async fn a_cluster_tells_what_changed_when_it_appeared_and_what_became_of_it() {
    for_each_service(async |service| {
        let client = service.client();
        let green = "a".repeat(40);
        let red = "b".repeat(40);
        let code = |commit: &str| json!({ "branch": "main", "commit": commit, "commitMessage": "Reword the button", "author": "Ada" });
        let host = |node: &str| json!({ "metadata": { "host": { "node": node } } });
        let passed = with(run("shop", "passed", vec![attempt("pays", "passed", 0)]), code(&green));
        let start = Timestamp(service.state().now().millis() - 7_200_000);
        let passed = with(with(passed, host("24.1")), json!({ "startTime": start.to_iso() }));
        client.post_json("/api/test-runs/submit", &passed).await.expect("stored");
        let failed = || vec![attempt("pays", "failed", 0)];
        let (project, first) = submit(service, -60, failed(), with(code(&red), host("24.2"))).await;
        let repository = json!({ "repositoryUrl": "https://github.com/teashop/shop" });
        client.send_json(Method::PATCH, &format!("/api/projects/{project}"), &repository).await.expect("an answer");
        let list = client.json(&format!("/api/projects/{project}/failure-clusters")).await.expect("clusters");
        let cluster = &list["items"][0]["id"];
        let path = format!("/failure-clusters/{cluster}");

        let html = page(client, &path).await;
        assert!(html.contains(&format!("https://github.com/teashop/shop/compare/{green}...{red}")), "{html}");
        let origin = words_after(&html, "What changed when it appeared");
        assert!(origin.contains("Last green run before Run 1") && origin.contains("First seen Run 2: Reword the button"), "{origin}");
        assert!(origin.contains("Node.js 24.1 → 24.2"), "{origin}");
        assert!(words_after(&html, ">History<").contains(&format!("First seen in run {first}")));

        let status = format!("/api{path}/status");
        let body = json!({ "status": "resolved", "note": "Mended in 9fceb02" });
        client.send_json(Method::PATCH, &status, &body).await.expect("an answer");
        let (_, later) = submit(service, 30, failed(), json!({})).await;
        let history = words_after(&page(client, &path).await, ">History<");
        let (back, resolved) = (format!("Came back after it was resolved in run {later}"), "Resolved Mended in 9fceb02");
        let at = |words: &str| history.find(words).unwrap_or_else(|| panic!("{words}: {history}"));
        assert!(at(&back) < at(resolved) && at(resolved) < at("First seen"), "newest first: {history}");

        let base = json!({ "commit": "c".repeat(40) });
        client.send_json(Method::PATCH, &format!("/api{path}/base-commit"), &base).await.expect("an answer");
        let html = page(client, &path).await;
        assert!(html.contains(&format!("git log --oneline {}..{red}", "c".repeat(40))), "{html}");
    })
    .await;
}

#[tokio::test]
async fn commits_that_were_tested_since_green_are_told_with_their_messages() {
    for_each_service(async |service| {
        let client = service.client();
        let code = |letter: &str, message: &str, branch: &str| {
            json!({ "branch": branch, "commit": letter.repeat(40), "commitMessage": message, "author": "Ada" })
        };
        let broken = |title: &str, error: &str| vec![with(attempt(title, "failed", 0), json!({ "error": error }))];
        let (pays, adds) = ("Error: expected 200, got 500", "TypeError: cart is undefined");
        let green = with(code("a", "Show prices", "main"), json!({ "status": "passed" }));
        submit(service, -120, vec![attempt("pays", "passed", 0), attempt("adds", "passed", 0)], green).await;
        submit(service, -110, broken("adds", adds), code("a", "Show prices", "main")).await;
        submit(service, -100, broken("adds", adds), code("c", "Move the cart\n\nIt was in the way.", "main")).await;
        let (_, again) = submit(service, -90, broken("adds", adds), code("c", "Move the cart", "main")).await;
        submit(service, -80, broken("adds", adds), code("d", "Try something", "try")).await;
        let (project, first) = submit(service, -70, broken("pays", pays), code("b", "Charge twice", "main")).await;
        submit(service, -60, broken("pays", pays), code("e", "Style the footer", "main")).await;

        let list = client.json(&format!("/api/projects/{project}/failure-clusters")).await.expect("clusters");
        let clusters = list["items"].as_array().expect("clusters");
        let cluster = clusters.iter().find(|each| each["firstSeenRunId"] == first).expect("what broke then");
        let path = format!("/failure-clusters/{}", cluster["id"]);
        let told = |html: &str| {
            let table = words_after(html, "Tested commit");
            table.split("What else differs").next().unwrap_or_default().to_owned()
        };
        for page_of in [path.clone(), format!("/test-runs/{first}?tab=regression")] {
            let words = told(&page(client, &page_of).await);
            let newest = format!("Charge twice {} Ada cause of 1 failure, seen first in run {first} Run {first}", "b".repeat(7));
            let older = format!("Move the cart {} Ada Run {again}", "c".repeat(7));
            let at = |text: &str| words.find(text).unwrap_or_else(|| panic!("{page_of}: {text}: {words}"));
            assert!(at(&newest) < at(&older), "{page_of}: {words}");
            // What was green, what came later, and what was tried elsewhere did not break it.
            assert_eq!(words.matches(" Ada ").count(), 2, "{page_of}: {words}");
        }

        let base = json!({ "commit": "c".repeat(40) });
        client.send_json(Method::PATCH, &format!("/api{path}/base-commit"), &base).await.expect("an answer");
        assert!(!page(client, &path).await.contains("Tested commit"), "only one is left since the base");
    })
    .await;
}

#[tokio::test]
async fn a_trace_is_told_where_it_is_asked_for() {
    for_each_service(async |service| {
        let client = service.client();
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/traces");
        let trace =
            std::fs::read(format!("{folder}/playwright-1.65/renamed-button.zip")).expect("a recorded trace");
        let submission =
            run("shop", "failed", vec![attempt("pays", "failed", 0), attempt("looks", "failed", 0)]);
        let form = Form::new()
            .field("projectName", "shop")
            .field("testRun", submission.to_string())
            .field("testCases", submission["testCases"].to_string())
            .file("trace_0", "trace.zip", "application/zip", &trace);
        let request = client.request(Method::POST, "/api/test-runs/upload");
        let request = request.header("content-type", Form::content_type()).body(form.into_body());
        let stored = Answer::send(request).await.expect("an answer").success().expect("stored");
        let found = client
            .json(&format!("/api/test-runs/{}/executions?sort=id", stored["runId"]))
            .await
            .expect("executions");
        let of = |title: &str| {
            let rows = found["items"].as_array().expect("executions");
            rows.iter().find(|row| row["title"] == title).expect("the test")["id"].clone()
        };
        let path = format!("/test-run-cases/{}", of("pays"));
        let html = page(client, &path).await;
        assert!(html.contains(&format!("data-later=\"{path}?evidence=trace\"")), "{html}");
        assert!(!html.contains("Sign in"), "the trace is not read for the page itself");
        let told = page(client, &format!("{path}?evidence=trace")).await;
        assert!(told.contains("&#60;button&#62;Sign in&#60;/button&#62;"), "{told}");
        assert!(told.contains("- button &#34;Sign in&#34;"), "{told}");
        // What has no trace offers none, and tells nothing when it is asked all the same.
        let bare = page(client, &format!("/test-run-cases/{}?evidence=trace&trace=1", of("looks"))).await;
        assert!(!bare.contains("From the trace") && !bare.contains("<iframe"), "{bare}");
    })
    .await;
}

#[tokio::test]
async fn charts_mark_where_durations_changed_for_good() {
    for_each_service(async |service| {
        let client = service.client();
        let mut ids = (0, 0);
        for number in 0..30_i64 {
            let wobble = number * 37 % 60;
            let duration = if number < 16 { 1_000 + wobble } else { 1_800 + wobble };
            let case = with(attempt("pays", "passed", 0), json!({ "duration": duration }));
            let more = json!({ "status": "passed", "branch": "main", "commit": format!("{number:040x}"), "isFullRun": true });
            ids = submit(service, number * 60 - 2_400, vec![case], more).await;
        }
        let (project, newest) = ids;
        let rows = client.json(&format!("/api/test-runs/{newest}/executions")).await.expect("executions");
        let case = page(client, &format!("/test-cases/{}", rows["items"][0]["testCaseId"])).await;
        assert!(case.contains("shift-line") && words_after(&case, "Lasting changes").contains("slower 1"), "{case}");
        let runs = page(client, &format!("/projects/{project}?tab=performance&branch=main")).await;
        assert!(runs.contains("mark-line") && runs.contains(&format!("{:07x}", 0)), "{runs}");
        assert!(words_after(&runs, "Lasting changes").contains("mean of a test since"), "{runs}");
    })
    .await;
}

#[tokio::test]
async fn charts_mark_where_a_test_broke_and_was_repaired() {
    for_each_service(async |service| {
        let client = service.client();
        let mut newest = 0;
        // One run a day; two browsers break in the same one, and are one mark.
        for (number, status) in ["passed", "failed", "failed", "passed"].into_iter().enumerate() {
            let number = i64::try_from(number).expect("a few");
            let browser = |name: &str| with(attempt("pays", status, 0), json!({ "browser": { "projectName": name } }));
            let more = json!({ "status": status, "branch": "main", "commit": format!("{number:040x}"), "isFullRun": true });
            let cases = vec![browser("desktop"), browser("phone")];
            newest = submit(service, (number - 3) * 1_440, cases, more).await.1;
        }
        let found = client.json(&format!("/api/test-runs/{newest}/executions")).await.expect("executions");
        let case = page(client, &format!("/test-cases/{}", found["items"][0]["testCaseId"])).await;
        let told = words_after(&case, "Where it broke and was fixed");
        let (repaired, broke) = (told.find("fixed in"), told.find("broke in"));
        assert!(repaired.is_some() && repaired < broke, "newest first: {told}");
        assert_eq!(told.matches("broke in").count(), 1, "{told}");
        assert!(told.contains(&format!("{:07x}", 0)) && told.contains("desktop"), "{told}");
        let (_, chart) = case.split_once("aria-label=\"Reliability by day\"").expect("a chart");
        let (chart, _) = chart.split_once("</section>").expect("its end");
        // Two on the days, one in the legend.
        assert_eq!(chart.matches("mark-line").count(), 3, "{chart}");
        assert!(chart.contains("</svg>broke or fixed</li>"), "{chart}");
    })
    .await;
}

#[tokio::test]
async fn a_project_reads_as_it_is_labelled_wherever_people_read_it() {
    for_each_service(async |service| {
        let client = service.client();
        let (project, newest) = submit(service, -5, vec![attempt("pays", "failed", 0)], json!({})).await;
        let label = json!({ "label": "Web shop" });
        client
            .send_json(Method::PATCH, &format!("/api/projects/{project}"), &label)
            .await
            .expect("an answer");
        for path in [format!("/projects/{project}"), format!("/test-runs/{newest}"), "/projects".to_owned()] {
            assert!(page(client, &path).await.contains("Web shop"), "{path}");
        }
        let home = page(client, "/").await;
        assert!(home.contains("Web shop") && !home.contains(">shop<"), "{home}");
    })
    .await;
}

#[tokio::test]
async fn the_settings_of_a_project_say_what_turns_a_run_down() {
    for_each_service(async |service| {
        let client = service.client();
        let (project, _) = submit(service, -5, vec![attempt("pays", "passed", 0)], json!({})).await;
        let settings = format!("/projects/{project}?tab=settings");
        let html = page(client, &settings).await;
        assert!(words_after(&html, "id=\"gates-title\"").contains("No policies yet"), "{html}");
        let policy = json!({ "name": "release", "isDefault": true, "policy": { "maxFailed": 2, "minPassRate": 0.985, "requireTags": ["smoke"] } });
        client.post_json(&format!("/api/projects/{project}/gate-policies"), &policy).await.expect("stored");
        let html = page(client, &settings).await;
        let gates = words_after(&html, "id=\"gates-title\"").replace('\u{a0}', " ");
        assert!(gates.contains("Fails for: an error outside tests, more than 2 failed tests, less than 98.5% passed, a failed @smoke test."), "{gates}");
        assert!(html.contains("value=\"98.5\"") && html.contains("{\"policy\":\"release\"}"), "{html}");
    })
    .await;
}

#[tokio::test]
async fn the_map_of_a_project_leads_from_folders_to_files_to_tests() {
    for_each_service(async |service| {
        let client = service.client();
        let of = |file: &str, title: &str, status: &str| {
            with(attempt(title, status, 0), json!({ "location": format!("{file}:7:5") }))
        };
        let cases = vec![
            of("tests/shop/cart.spec.ts", "adds", "passed"),
            of("tests/shop/pay & go.spec.ts", "pays", "failed"),
            of("tests/account.spec.ts", "signs in", "passed"),
        ];
        let (project, _) = submit(service, -5, cases, json!({ "branch": "main" })).await;
        let folders = page(client, &format!("/projects/{project}?tab=health&branch=main&sort=name")).await;
        let to_files =
            format!("href=\"/projects/{project}?tab=health&#38;branch=main&#38;sort=name&#38;folder=tests%2Fshop\"");
        assert!(folders.contains(&to_files) && folders.contains(">2 folders<"), "{folders}");

        let address = format!("/projects/{project}?tab=health&branch=main&sort=name&folder=tests%2Fshop");
        let files = page(client, &address).await;
        assert!(files.contains(">2 files<") && !files.contains("account.spec.ts"), "{files}");
        let to_tests =
            format!("href=\"/projects/{project}?tab=cases&#38;file=tests%2Fshop%2Fpay+%26+go.spec.ts&#38;branch=main\"");
        assert!(files.contains(&to_tests), "{files}");
        assert!(folders.contains(&to_tests), "the map of the folders shows their files: {folders}");
        // Another period of the same folder.
        assert!(files.contains("type=\"hidden\" name=\"folder\" value=\"tests/shop\""), "{files}");
        let tests =
            page(client, &format!("/projects/{project}?tab=cases&file=tests%2Fshop%2Fpay+%26+go.spec.ts")).await;
        assert!(tests.contains(">1 test<") && tests.contains("pays"), "{tests}");

        let first = page(client, &format!("{address}&limit=1")).await;
        let next = first.split("rel=\"next\"").next().and_then(|html| html.rsplit("href=\"").next());
        let next = next.expect("a second page").trim_end_matches(['"', ' ']).replace("&#38;", "&");
        let second = page(client, &next).await;
        assert!(first.contains(">1 of 2 files<") && first.contains("cart.spec.ts") && !first.contains("pay &#38; go"), "{first}");
        assert!(second.contains("pay &#38; go") && !second.contains("cart.spec.ts"), "{second}");
    })
    .await;
}

#[tokio::test]
async fn a_timeline_shows_what_attempts_before_the_last_took() {
    for_each_service(async |service| {
        let client = service.client();
        let ran = |title: &str, status: &str, retry: u32, duration: i64| {
            let at = Timestamp(service.state().now().millis() + i64::from(retry) * 10_000).to_iso();
            // Whose worker never started is told as -1.
            let slot = if title == "pays" { 1 } else { -1 };
            let place = json!({ "workerIndex": slot, "parallelIndex": slot });
            with(with(attempt(title, status, retry), json!({ "startedAt": at, "duration": duration })), place)
        };
        let cases = vec![
            ran("ships", "passed", 0, 4_000),
            ran("pays", "failed", 0, 3_000),
            ran("pays", "passed", 1, 1_000),
        ];
        let (_, run) = submit(service, -5, cases, json!({})).await;
        let address = format!("/test-runs/{run}?tab=timeline");
        let html = page(client, &address).await;
        assert!(
            html.contains("pays: flaky, 4.0\u{a0}s, retried once, 3.0\u{a0}s in the other attempts"),
            "{html}"
        );
        assert_eq!(html.matches("class=\"flaky earlier\"").count(), 1, "{html}");
        let again = page(client, &format!("{address}&tried=again")).await;
        assert!(again.contains(">1 execution<") && !again.contains("ships: passed"), "{again}");
        let once = page(client, &format!("{address}&tried=once")).await;
        assert!(once.contains("ships: passed") && !once.contains("pays: flaky"), "{once}");

        let first = page(client, &format!("{address}&phase=first")).await;
        assert!(
            first.contains("ships: passed, 4.0\u{a0}s") && first.contains("pays: flaky, 3.0\u{a0}s<"),
            "{first}"
        );
        let retries = page(client, &format!("{address}&phase=retries")).await;
        assert!(
            retries.contains(">1 execution<") && retries.contains("pays: flaky, 1.0\u{a0}s<"),
            "{retries}"
        );
        // What took longest is what is drawn.
        assert!(html.contains("data-label=\"All attempts\">4.0\u{a0}s<"), "{html}");
        assert!(retries.contains("data-label=\"Retries\">1.0\u{a0}s<"), "{retries}");
        let none = page(client, &format!("{address}&phase=retries&tried=once")).await;
        assert!(none.contains("No executions match"), "{none}");
        assert!(!retries.contains("ships: passed") && !retries.contains("flaky earlier"), "{retries}");
        assert!(html.contains(&format!("href=\"{address}&#38;worker=2\"")), "{html}");
        let second = page(client, &format!("{address}&worker=2")).await;
        assert!(second.contains(">1 execution<") && second.contains("pays: flaky"), "{second}");
        assert!(words_after(&second, "Filters in force").contains("Worker Worker 2"), "{second}");
        assert!(
            second.contains("<option value=\"1\">Worker 1</option>"),
            "the others can be chosen: {second}"
        );
        let first = page(client, &format!("{address}&worker=1")).await;
        assert!(first.contains(">1 execution<") && first.contains("ships: passed"), "{first}");
        assert!(!first.contains("Worker 0"), "{first}");
        let elsewhere = page(client, &format!("{address}&worker=1.2")).await;
        assert!(elsewhere.contains("No executions match"), "{elsewhere}");
        for (wrong, told) in [
            ("worker=0", "a number such as 2, shard and number such as 1.2"),
            ("phase=evening", "it is one of setup, tests, first, retries."),
        ] {
            let refused = client.with_header("accept", "text/html").expect("a header");
            let refused = refused.get(&format!("{address}&{wrong}")).await.expect("an answer");
            assert!(refused.status == 400 && refused.text().contains(told), "{wrong}: {}", refused.text());
        }
    })
    .await;
}

#[tokio::test]
async fn a_default_branch_that_no_run_has_is_pointed_out() {
    for_each_service(async |service| {
        let client = service.client();
        let cases = vec![attempt("pays", "passed", 0)];
        let (project, _) = submit(service, -5, cases, json!({ "branch": "main" })).await;
        let settings = format!("/projects/{project}?tab=settings");
        for (branch, is_pointed_out) in [("mian", true), ("main", false)] {
            let body = json!({ "defaultBranch": branch });
            let path = format!("/api/projects/{project}");
            client.send_json(Method::PATCH, &path, &body).await.expect("an answer");
            let html = page(client, &settings).await;
            assert_eq!(html.contains("is stored. Runs came from"), is_pointed_out, "{branch}: {html}");
            assert!(html.contains("<option value=\"main\">"), "{html}");
        }
    })
    .await;
}

#[tokio::test]
async fn tags_are_searched_and_paged() {
    for_each_service(async |service| {
        let client = service.client();
        for text in ["critical", "critters", "payments"] {
            client.post_json("/api/tags", &json!({ "text": text, "color": "neutral" })).await.expect("a tag");
        }
        let all = page(client, "/settings/tags").await;
        assert!(all.contains(">3 tags<") && all.contains(">payments<"), "{all}");
        let some = page(client, "/settings/tags?q=CRIT&limit=1").await;
        assert!(
            some.contains(">1 of 2 tags<")
                && some.contains(">critical<")
                && some.contains("rel=\"next\"")
                && !some.contains(">critters<"),
            "{some}"
        );
        assert!(page(client, "/settings/tags?q=none").await.contains("No tags match"));
    })
    .await;
}

#[tokio::test]
async fn a_result_of_long_ago_leads_to_the_one_after_it() {
    for_each_service(async |service| {
        let client = service.client();
        // More than the page shows of the history, some of them on one day, and one long after the others.
        let mut runs = Vec::new();
        for n in 0..33 {
            let minutes =
                if n == 2 { -100_000 } else { -200_000 + n * 500 + if n > 2 { 100_000 } else { 0 } };
            let other = with(attempt("pays", "passed", 0), json!({ "browserProject": "webkit" }));
            let cases =
                vec![with(attempt("pays", "passed", 0), json!({ "browserProject": "chromium" })), other];
            runs.push(submit(service, minutes, cases, json!({ "status": "passed" })).await.1);
        }
        let mut ids = Vec::new();
        for run in &runs {
            let found = client.json(&format!("/api/test-runs/{run}/executions?browser=chromium")).await;
            ids.push(found.expect("executions")["items"][0]["id"].as_i64().expect("an id"));
        }
        let linked = |html: &str, rel: &str| {
            let link = html.split(&format!("rel=\"{rel}\" href=\"/test-run-cases/")).nth(1)?;
            link.split('"').next()?.parse::<i64>().ok()
        };
        for at in [0, 1, 2, 3, 20, 31, 32] {
            let html = page(client, &format!("/test-run-cases/{}", ids[at])).await;
            let earlier = at.checked_sub(1).map(|at| ids[at]);
            assert_eq!(
                (linked(&html, "prev"), linked(&html, "next")),
                (earlier, ids.get(at + 1).copied()),
                "{at}"
            );
        }
    })
    .await;
}

#[tokio::test]
async fn what_the_author_of_a_test_noted_stands_among_its_facts() {
    for_each_service(async |service| {
        let client = service.client();
        let notes = json!([
            { "type": "issue", "description": "https://git.test/shop/issues/7" },
            { "type": "slow" },
            { "type": "phone", "description": "<b>on iOS</b>" },
            { "type": "x-locator-suggestion", "description": "getByRole('button')" },
            { "type": "callboard:owner", "description": "payments" },
        ]);
        let cases = vec![with(attempt("pays", "failed", 0), json!({ "testAnnotations": notes }))];
        let (_, run) = submit(service, -5, cases, json!({})).await;
        let found = client.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        let html = page(client, &format!("/test-run-cases/{}", found["items"][0]["id"])).await;
        let words = words_after(&html, ">Facts<");
        let told = "issue https://git.test/shop/issues/7 slow yes phone &#60;b&#62;on iOS&#60;/b&#62;";
        assert!(words.contains(told) && words.contains("Owner payments"), "{words}");
        assert!(!words.contains("locator-suggestion") && !words.contains("callboard:"), "{words}");
        assert!(html.contains("<a href=\"https://git.test/shop/issues/7\" rel=\"noopener"), "{html}");
    })
    .await;
}

#[tokio::test]
async fn a_default_branch_that_is_not_known_is_named_where_nothing_is_measured() {
    for_each_service(async |service| {
        let client = service.client();
        let green = json!({ "status": "passed", "branch": "main", "isFullRun": true });
        let (project, _) = submit(service, -60, vec![attempt("pays", "passed", 0)], green).await;
        let red = json!({ "branch": "topic", "isFullRun": true });
        let mut failing = attempt("pays", "failed", 0);
        failing["error"] = json!("Error: no such button");
        let (_, run) = submit(service, -5, vec![failing], red).await;
        let found = client.json(&format!("/api/test-runs/{run}/failure-groups")).await.expect("groups");
        let cluster = &found["items"][0]["id"];
        let pages = [
            format!("/test-runs/{run}?tab=insights"),
            format!("/test-runs/{run}?tab=regression"),
            format!("/test-runs/{run}?tab=compare"),
            format!("/failure-clusters/{cluster}"),
        ];
        let link = format!("<a href=\"/projects/{project}?tab=settings#branches-title\">");
        for address in &pages {
            assert!(page(client, address).await.contains(&link), "{address}");
        }
        let body = json!({ "defaultBranch": "main" });
        client.send_json(Method::PATCH, &format!("/api/projects/{project}"), &body).await.expect("an answer");
        for address in &pages {
            assert!(!page(client, address).await.contains(&link), "{address}");
        }
    })
    .await;
}
