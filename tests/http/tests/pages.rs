//! Pages and who may see them: the form to sign in takes the place of a page,
//! at its address; programs are answered as ever.

use callboard_domain::ids::{ProjectId, RunId};
use callboard_test_support::accounts::PASSWORD;
use callboard_test_support::{Answer, Client, for_each_secured_service, for_each_service};
use reqwest::Method;
use serde_json::{Value, json};

use crate::builders::{attempt, run, with};
use crate::live::context;

const PAGES: [&str; 17] = [
    "/",
    "/analytics",
    "/projects",
    "/failure-clusters/999",
    "/settings/tags",
    "/projects/999",
    "/test-runs/999",
    "/test-cases/999",
    "/settings",
    "/settings/account",
    "/settings/users",
    "/settings/audit",
    "/settings/projects",
    "/settings/source-control",
    "/settings/flakiness",
    "/settings/timeouts",
    "/settings/diagnosis",
];

async fn page(client: &Client, path: &str) -> Answer {
    let client = client.with_header("accept", "text/html").expect("a header");
    let answer = client.get(path).await.expect("an answer");
    assert!(answer.header("content-type").starts_with("text/html"), "{path}: {}", answer.text());
    answer
}

async fn signed_in(client: &Client, username: &str) -> Client {
    let browser = client.browser();
    let body = json!({ "username": username, "password": PASSWORD });
    browser.post_json("/api/auth/login", &body).await.expect("signed in");
    browser
}

/// A service with an administrator, two projects, and a reader of the first.
async fn furnished(client: &Client) -> (Client, i64, i64) {
    let administrator = client.browser();
    let body = json!({ "username": "ada", "password": PASSWORD });
    administrator.post_json("/api/auth/setup", &body).await.expect("the first administrator");
    let mut projects = Vec::new();
    for name in ["first", "second"] {
        let stored = administrator.post_json("/api/test-runs/submit", &run(name, "passed", Vec::new())).await;
        projects.push(stored.expect("stored")["projectId"].as_i64().expect("an id"));
    }
    let reader = json!({ "username": "rosa", "password": PASSWORD, "role": "user", "isGlobal": false, "projectIds": [projects[0]] });
    assert_eq!(administrator.post("/api/users", &reader).await.expect("an answer").status, 201);
    (administrator, projects[0], projects[1])
}

#[tokio::test]
async fn nobody_sees_a_page_before_signing_in() {
    for_each_secured_service(async |service| {
        let nobody = service.client();
        for path in PAGES {
            let answer = page(nobody, path).await;
            assert_eq!(answer.status, 401, "{path}");
            assert!(
                answer.text().contains("data-api=\"POST /api/auth/setup\" data-done=\"reload\""),
                "{path}"
            );
        }
        furnished(nobody).await;
        for path in PAGES {
            let answer = page(nobody, path).await;
            assert_eq!(answer.status, 401, "{path}");
            assert!(
                answer.text().contains("data-api=\"POST /api/auth/login\" data-done=\"reload\""),
                "{path}"
            );
            assert!(!answer.text().contains("first"), "{path} tells a name");
        }
        let answer = page(nobody, "/login?error=%3Cb%3E").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("The sign-in did not work"));
        let api = nobody.get("/api/projects").await.expect("an answer");
        assert_eq!(
            (api.status.as_u16(), &api.json().expect("JSON")["code"]),
            (401, &json!("authentication_required"))
        );
    })
    .await;
}

#[tokio::test]
async fn a_reader_sees_their_project_and_is_told_about_others() {
    for_each_secured_service(async |service| {
        let (_, own, other) = furnished(service.client()).await;
        let reader = signed_in(service.client(), "rosa").await;
        let answer = page(&reader, &format!("/projects/{own}")).await;
        assert_eq!(answer.status, 200);
        assert!(!answer.text().contains("tab=members"));
        let refused = [
            (format!("/projects/{other}"), "no access to this project"),
            (format!("/projects/{own}?tab=members"), "Your role has no access"),
            (format!("/projects/{own}?tab=settings"), "Your role has no access"),
            ("/settings/tags".to_owned(), "Your role has no access"),
            ("/settings/users?show=invitations".to_owned(), "Your role has no access"),
            ("/settings/users/1".to_owned(), "Your role has no access"),
            ("/settings/users/1/keys".to_owned(), "Your role has no access"),
            ("/settings/audit".to_owned(), "Your role has no access"),
            ("/settings/projects".to_owned(), "Your role has no access"),
            ("/settings/source-control".to_owned(), "Your role has no access"),
            ("/settings/flakiness".to_owned(), "Your role has no access"),
        ];
        for (path, sentence) in refused {
            let answer = page(&reader, &path).await;
            assert_eq!(answer.status, 403, "{path}");
            let text = answer.text();
            assert!(text.contains(sentence) && text.contains("signed in as <b>rosa</b>"), "{path}: {text}");
            assert!(!text.contains("second"), "{path} tells a name");
        }
        let answer = page(&reader, "/settings/account").await;
        assert_eq!(answer.status, 200);
        assert!(answer.text().contains("Access: 1 project"));
    })
    .await;
}

#[tokio::test]
async fn everybody_reaches_their_keys_from_the_list_of_users() {
    for_each_secured_service(async |service| {
        let (administrator, ..) = furnished(service.client()).await;
        let reader = signed_in(service.client(), "rosa").await;
        let id =
            async |client: &Client| client.json("/api/users/me").await.expect("an account")["id"].clone();
        let (ada, rosa) = (id(&administrator).await, id(&reader).await);
        let path = |account: &Value| format!("/settings/users/{account}/keys");
        let icon = |account: &Value, name: &str| {
            format!("href=\"{}\" title=\"API keys\" aria-label=\"API keys of {name}\"", path(account))
        };
        let all = page(&administrator, "/settings/users").await.text();
        assert!(all.contains(&icon(&ada, "ada")) && all.contains(&icon(&rosa, "rosa")), "{all}");
        let own = page(&reader, "/settings/users").await;
        assert_eq!(own.status, 200);
        let own = own.text();
        assert!(own.contains(&icon(&rosa, "rosa")) && !own.contains("API keys of ada"), "{own}");
        assert!(!own.contains("/api/invitations") && !own.contains("POST /api/users\""), "{own}");

        let key = json!({ "name": "nightly", "expiresAt": "2100-01-01T00:00:00.000Z" });
        reader.post_json("/api/users/me/api-keys", &key).await.expect("a key");
        for (client, create) in [(&reader, "You have"), (&administrator, "There are")] {
            let keys = page(client, &path(&rosa)).await;
            let text = keys.text();
            assert_eq!(keys.status, 200, "{text}");
            let calls =
                [format!("POST /api/users/{rosa}/api-keys"), format!("DELETE /api/users/{rosa}/api-keys/")];
            assert!(calls.iter().all(|call| text.contains(call)), "{text}");
            assert!(text.contains("<b>nightly</b>") && !text.contains(create), "{text}");
        }
        assert_eq!(page(&reader, &path(&ada)).await.status, 403);
        assert_eq!(page(&administrator, &path(&json!(999))).await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn an_administrator_sees_accounts_and_what_was_done() {
    for_each_secured_service(async |service| {
        let (administrator, own, _) = furnished(service.client()).await;
        let users: Value = administrator.json("/api/users?q=rosa").await.expect("users");
        let rosa = &users["items"][0]["id"];
        let listed = page(&administrator, "/settings/users?q=ros&role=user&state=active").await.text();
        assert!(listed.contains(&format!("href=\"/settings/users/{rosa}\"")) && !listed.contains(">ada</a>"));
        let one = page(&administrator, &format!("/settings/users/{rosa}")).await.text();
        assert!(one.contains(&format!("name=\"projectIds[]\" value=\"{own}\" checked")), "{one}");
        let members = page(&administrator, &format!("/projects/{own}?tab=members")).await.text();
        assert!(members.contains(&format!("name=\"userIds[]\" value=\"{rosa}\" checked")), "{members}");
        let audit = page(&administrator, "/settings/audit?action=user").await.text();
        let created =
            format!("title=\"user.created\">Created</b> <a href=\"/settings/users/{rosa}\">account rosa</a>");
        assert!(audit.contains(&created) && !audit.contains("title=\"setup\""), "{audit}");
        let hers = page(&administrator, &format!("/settings/audit?actor={rosa}")).await.text();
        assert!(hers.contains(&format!("<option value=\"{rosa}\" selected>rosa</option>")), "{hers}");
        assert!(!hers.contains("title=\"user.created\""), "{hers}");
        assert_eq!(page(&administrator, "/settings/users/999").await.status, 404);
    })
    .await;
}

#[tokio::test]
async fn without_authentication_there_is_nobody_to_sign_in() {
    for_each_service(async |service| {
        let client = service.client();
        for path in ["/", "/settings/users", "/settings/audit", "/settings/account"] {
            let answer = page(client, path).await;
            assert_eq!(answer.status, 200, "{path}");
            assert!(!answer.text().contains("Sign out"), "{path}");
        }
        assert!(page(client, "/setup").await.text().contains("Nothing to set up"));
    })
    .await;
}

#[tokio::test]
async fn a_cell_of_the_grid_shows_the_worst_browser_and_leads_to_it() {
    for_each_service(async |service| {
        let client = service.client();
        let in_browser = |status: &str, browser: &str| {
            with(attempt("pays", status, 0), json!({ "browser": { "projectName": browser } }))
        };
        let cases = vec![in_browser("passed", "chromium"), in_browser("failed", "firefox")];
        let stored =
            client.post_json("/api/test-runs/submit", &run("shop", "failed", cases)).await.expect("stored");
        let (project, run) = (&stored["projectId"], &stored["runId"]);
        let executions: Value = client
            .json(&format!("/api/test-runs/{run}/executions?outcome=failing"))
            .await
            .expect("executions");
        let failed = &executions["items"][0]["id"];
        let grid = page(client, &format!("/projects/{project}?tab=grid")).await.text();
        let cell = format!("<a class=\"failed\" href=\"/test-run-cases/{failed}\"");
        assert_eq!(grid.matches(&cell).count(), 1, "{grid}");
        assert_eq!(grid.matches("href=\"/test-run-cases/").count(), 1, "{grid}");
        let none = page(client, &format!("/projects/{project}?tab=grid&q=nothing")).await.text();
        assert!(none.contains("No tests match"), "{none}");
    })
    .await;
}

#[tokio::test]
async fn two_ticked_runs_are_compared_the_newer_with_the_older() {
    for_each_service(async |service| {
        let client = service.client();
        let mut runs = Vec::new();
        for hour in 10..13 {
            let body = with(
                run("shop", "passed", vec![attempt("pays", "passed", 0)]),
                json!({ "startTime": format!("2026-01-01T{hour}:00:00.000Z") }),
            );
            let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            runs.push((
                stored["projectId"].as_i64().expect("an id"),
                stored["runId"].as_i64().expect("an id"),
            ));
        }
        let [(project, first), (_, second), (_, third)] = runs[..] else { panic!("three runs") };
        let compare = format!("/projects/{project}?tab=compare");
        let client = client.with_header("accept", "text/html").expect("a header");
        let answer = client.get(&format!("{compare}&run={third}&run={first}")).await.expect("an answer");
        assert_eq!(answer.header("location"), format!("/test-runs/{third}?tab=compare&with={first}"));
        let one = page(&client, &format!("{compare}&run={second}")).await;
        assert!(one.text().contains(&format!("<option value=\"{second}\" selected")), "{}", one.text());
        let many = page(&client, &format!("{compare}&run={first}&run={second}&run={third}")).await;
        assert!(many.text().contains("You can compare two runs at a time"));
        assert_eq!(page(&client, &format!("{compare}&run=x")).await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn who_only_reads_finds_no_form_that_changes_something() {
    for_each_secured_service(async |service| {
        let (administrator, own, _) = furnished(service.client()).await;
        let body = run("first", "failed", vec![attempt("pays", "failed", 0)]);
        let stored = administrator.post_json("/api/test-runs/submit", &body).await.expect("stored");
        let run = &stored["runId"];
        let executions: Value =
            administrator.json(&format!("/api/test-runs/{run}/executions")).await.expect("executions");
        let case = &executions["items"][0]["testCaseId"];
        let reader = signed_in(service.client(), "rosa").await;
        let pages = [
            format!("/test-runs/{run}"),
            format!("/test-cases/{case}"),
            format!("/projects/{own}?tab=quarantine"),
            format!("/projects/{own}"),
            format!("/projects/{own}?tab=clusters"),
            format!("/projects/{own}?tab=performance"),
            format!("/test-runs/{run}?tab=details"),
            format!("/test-run-cases/{}", executions["items"][0]["id"]),
        ];
        for path in pages {
            let calls = async |client: &Client| {
                let text = page(client, &path).await.text();
                // Everybody signs out and has subscriptions of their own.
                let own = ["POST /api/auth/logout", "POST /api/subscriptions", "DELETE /api/subscriptions/"];
                let own = own.iter().map(|call| text.matches(&format!("data-api=\"{call}")).count());
                text.matches("data-api=\"").count() - own.sum::<usize>()
            };
            assert_eq!(calls(&reader).await, 0, "{path}");
            if !path.contains("tab=") {
                assert!(calls(&administrator).await > 0, "{path}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn the_settings_say_what_is_missing_for_source_control() {
    for_each_service(async |service| {
        let client = service.client();
        let charted = with(
            run("charted", "passed", Vec::new()),
            json!({ "branch": "main", "commit": "0123456789abcdef" }),
        );
        let project =
            client.post_json("/api/test-runs/submit", &charted).await.expect("stored")["projectId"].clone();
        client.post_json("/api/test-runs/submit", &run("blank", "passed", Vec::new())).await.expect("stored");
        let repository = json!({ "repositoryUrl": "https://github.com/acme/charted" });
        let path = format!("/api/projects/{project}");
        assert_eq!(client.send_json(Method::PATCH, &path, &repository).await.expect("an answer").status, 200);
        let row = async |path: &str| {
            let text = page(client, path).await.text();
            let rows: Vec<String> = text.split("<tr data-row>").skip(1).map(str::to_owned).collect();
            assert_eq!(rows.len(), 1, "{path}: {text}");
            rows[0].clone()
        };
        let known = row("/settings/source-control?q=charted").await;
        assert!(
            known.contains("https://github.com/acme/charted") && known.contains("<code>0123456</code>"),
            "{known}"
        );
        let unknown = row("/settings/source-control?q=blank").await;
        assert!(unknown.contains("no branch") && unknown.contains("no commit"), "{unknown}");
        let listed = row("/settings/projects?q=blank").await;
        assert!(listed.contains("?tab=settings") && listed.contains("not set"), "{listed}");
    })
    .await;
}

#[tokio::test]
async fn analytics_offers_the_branches_of_the_project_that_is_chosen() {
    for_each_service(async |service| {
        let client = service.client();
        let mut project = Value::Null;
        for branch in ["main", "feature/tea"] {
            let stored = with(
                run("shop", "passed", vec![attempt("pays", "passed", 0)]),
                json!({ "branch": branch, "startTime": service.state().now().to_iso() }),
            );
            project = client.post_json("/api/test-runs/submit", &stored).await.expect("stored")["projectId"]
                .clone();
        }
        let all = page(client, "/analytics").await.text();
        assert!(!all.contains("name=\"branch\""), "every project has branches of its own");
        let one = page(client, &format!("/analytics?project={project}&branch=feature/tea&days=7")).await;
        assert_eq!(one.status, 200);
        let text = one.text();
        assert!(text.contains("<option value=\"feature/tea\" selected>"), "{text}");
        let runs = text.split("data-label=\"Runs\">").nth(1).and_then(|rest| rest.split('<').next());
        assert_eq!(runs, Some("1"), "{text}");
        assert_eq!(page(client, "/analytics?days=8").await.status, 400);
    })
    .await;
}

#[tokio::test]
async fn analytics_adds_up_the_days_between_two_dates() {
    for_each_service(async |service| {
        let client = service.client();
        let today = service.state().now().day();
        for days in [1, 5, 9] {
            let at = callboard_domain::time::Day(today.0 - days).start();
            let stored = with(
                run("shop", "passed", vec![attempt("pays", "passed", 0)]),
                json!({ "startTime": at.to_iso() }),
            );
            client.post_json("/api/test-runs/submit", &stored).await.expect("stored");
        }
        let day = |days: i64| callboard_domain::time::Day(today.0 - days).to_iso();
        let runs = async |query: String| {
            let text = page(client, &format!("/analytics?{query}")).await.text();
            text.split("data-label=\"Runs\">")
                .nth(1)
                .and_then(|rest| rest.split('<').next())
                .map(str::to_owned)
        };
        for (query, expected) in [
            (format!("from={}&to={}", day(6), day(2)), "1"),
            (format!("from={}", day(6)), "2"),
            (format!("to={}", day(2)), "2"),
            (format!("from={}&to={}", day(9), day(0)), "3"),
        ] {
            assert_eq!(runs(query.clone()).await.as_deref(), Some(expected), "{query}");
        }
        let chosen = page(client, &format!("/analytics?from={}", day(6))).await.text();
        assert!(!chosen.contains("name=\"days\""), "the dates are the period");
        let wide = page(client, &format!("/analytics?from={}&to={}", day(90), day(0))).await;
        assert_eq!(wide.status, 400);
        assert!(wide.text().contains("at most 90 days"), "{}", wide.text());
        assert!(chosen.contains("Failure streaks are current"), "{chosen}");
        let tomorrow = page(client, &format!("/analytics?from={}", day(-1))).await;
        assert_eq!(tomorrow.status, 400);
    })
    .await;
}

#[tokio::test]
async fn attempts_lead_to_their_evidence_and_flaky_tests_are_counted() {
    for_each_service(async |service| {
        let client = service.client();
        let mut stored = Value::Null;
        for hour in 0..12 {
            let cases = vec![
                attempt("pays", "failed", 0),
                attempt("pays", "passed", 1),
                attempt("leaves", "passed", 0),
            ];
            let at = format!("2026-01-01T{hour:02}:00:00.000Z");
            let body = with(run("shop", "passed", cases), json!({ "startTime": at, "branch": "main" }));
            stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
        }
        let run = &stored["runId"];
        let flaky: Value =
            client.json(&format!("/api/test-runs/{run}/executions?outcome=flaky")).await.expect("executions");
        let id = &flaky["items"][0]["id"];
        let again = page(client, &format!("/test-runs/{run}?tried=again")).await.text();
        for retry in [0, 1] {
            let chip = format!("href=\"/test-run-cases/{id}?retry={retry}&amp;repetition=0\"");
            assert_eq!(again.matches(&chip).count(), 1, "{again}");
        }
        assert!(again.contains("1 execution") && !again.contains("leaves"), "{again}");
        let once = page(client, &format!("/test-runs/{run}?tried=once")).await.text();
        assert!(once.contains("leaves") && !once.contains("class=\"tries\""), "{once}");
        let projects = page(client, "/projects").await.text();
        assert!(projects.contains(">1\u{a0}flaky test</a>"), "{projects}");
    })
    .await;
}

#[tokio::test]
async fn what_people_add_stands_beside_the_results() {
    for_each_service(async |service| {
        let client = service.client();
        let now = service.state().now().millis();
        let at = |hours: i64| callboard_domain::time::Timestamp(now - hours * 3_600_000).to_iso();
        let mut ids = Vec::new();
        for (hours, status) in [(3, "passed"), (2, "failed"), (1, "failed")] {
            let case = with(
                attempt("pays", status, 0),
                json!({ "browser": { "projectName": "chromium" }, "duration": 9_000 }),
            );
            let body = with(run("shop", status, vec![case]), json!({ "startTime": at(hours) }));
            let stored = client.post_json("/api/test-runs/submit", &body).await.expect("stored");
            let id = |name: &str| stored[name].as_i64().expect("an id");
            let (project, run) = (ProjectId(id("projectId")), RunId(id("runId")));
            let now = service.state().now();
            callboard_ingest::check_run(&context(service), project, run, now).await.expect("checked");
            let path = format!("/api/test-runs/{run}/executions");
            let found: Value = client.json(&path).await.expect("executions");
            ids.push((stored, found["items"][0].clone()));
        }
        let [(_, first), (_, second), (newest, third)] = &ids[..] else { panic!("three runs") };
        let (project, run, case) = (&newest["projectId"], &newest["runId"], &third["testCaseId"]);
        let clusters: Value =
            client.json(&format!("/api/projects/{project}/failure-clusters")).await.expect("clusters");
        let cluster = &clusters["items"][0]["id"];
        let marker = json!({ "label": "Release <2.4>", "category": "release", "occurredAt": at(2) });
        let link = |kind: &str, id: &Value| {
            json!({ "entityType": kind, "entityId": id, "url": "https://github.com/acme/shop/issues/8" })
        };
        let written = [
            (format!("/api/projects/{project}/markers"), marker),
            ("/api/links".to_owned(), link("test_case", case)),
            ("/api/links".to_owned(), link("failure_cluster", cluster)),
            ("/api/links".to_owned(), link("execution", &second["id"])),
            ("/api/links".to_owned(), link("test_run", run)),
            (
                format!("/api/projects/{project}/quarantine"),
                json!({ "testCaseId": case, "reason": "Known to be slow" }),
            ),
        ];
        for (path, body) in written {
            let answer = client.post(&path, &body).await.expect("an answer");
            assert!(answer.status.is_success(), "{path}: {}", answer.text());
        }
        let shown = [
            (format!("/projects/{project}"), vec!["class=\"flag\"", "Release: Release &#60;2.4&#62;, ", ">3 runs<"]),
            (format!("/projects/{project}?tab=performance"), vec!["class=\"flag\"", "median <b>5.0\u{a0}s</b>"]),
            (
                format!("/projects/{project}?tab=clusters&sort=often"),
                vec!["name=\"ids[]\"", "aria-sort=\"descending\"", ">1 cluster<"],
            ),
            (
                format!("/projects/{project}?tab=cases&sort=title"),
                vec!["aria-sort=\"ascending\"", "&#38;sort=slow", ">1 test<"],
            ),
            (format!("/test-cases/{case}"), vec!["Known to be slow", "0 of ", ">#8<", "GitHub issue", ">3 executions<"]),
            (format!("/failure-clusters/{cluster}"), vec![">#8<", "name=\"snoozedUntil\"", ">2 failures<"]),
            (format!("/test-runs/{run}?tab=details"), vec![">#8<", "id=\"delete-run\""]),
            (format!("/test-runs/{run}?tab=endpoints"), vec!["No requests"]),
        ];
        for (path, parts) in shown {
            let text = page(client, &path).await.text();
            for part in parts {
                assert!(text.contains(part), "{path} lacks {part}: {text}");
            }
        }
        let text = page(client, &format!("/test-run-cases/{}", second["id"])).await.text();
        for (way, to) in [("prev", first), ("next", third)] {
            let neighbour = format!("rel=\"{way}\" href=\"/test-run-cases/{}\"", to["id"]);
            assert!(text.contains(&neighbour), "{neighbour}: {text}");
        }
        assert!(text.contains(">#8<") && text.contains("the test passed in its last run."), "{text}");
    })
    .await;
}

#[tokio::test]
async fn a_project_that_fails_is_named_however_many_were_active_later() {
    for_each_service(async |service| {
        let client = service.client();
        for number in 0..14 {
            let (status, day) = if number == 0 { ("failed", 1) } else { ("passed", 2 + number) };
            let sent = run(&format!("project {number}"), status, vec![attempt("works", status, 0)]);
            let sent =
                with(sent, json!({ "branch": "main", "startTime": format!("2026-01-{day:02}T10:00:00Z") }));
            client.post_json("/api/test-runs/submit", &sent).await.expect("stored");
        }
        let home = page(client, "/").await.text();
        assert!(home.contains("1 of 14 projects is failing"), "{home}");
        let also = home.split("Also failing:").nth(1).and_then(|rest| rest.split("</p>").next());
        assert!(
            also.is_some_and(|also| also.contains(">project 0</a>") && !also.contains(">project 1</a>")),
            "{also:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn a_part_of_a_filtered_list_says_how_many_there_are() {
    for_each_service(async |service| {
        let client = service.client();
        let submit = async |fields: Value| {
            let cases = ["pays", "pays later", "ships"].map(|title| {
                let attempt = attempt(title, if title == "ships" { "failed" } else { "passed" }, 0);
                with(attempt, json!({ "startedAt": "2026-01-01T10:00:00Z" }))
            });
            let run = with(run("shop", "failed", cases.to_vec()), fields);
            client.post_json("/api/test-runs/submit", &run).await.expect("stored")
        };
        let stored = submit(json!({ "branch": "main", "startTime": "2026-01-01T10:00:00Z" })).await;
        submit(json!({ "branch": "main", "startTime": "2026-01-02T23:30:00Z" })).await;
        submit(json!({ "branch": "main", "startTime": "2026-01-03T10:00:00Z" })).await;
        submit(json!({ "branch": "other", "startTime": "2026-01-02T10:00:00Z" })).await;
        submit(json!({ "projectName": "Shop floor", "startTime": "2026-01-01T10:00:00Z" })).await;
        submit(json!({ "projectName": "bank", "startTime": "2026-01-01T10:00:00Z" })).await;
        let (run, project) = (&stored["runId"], &stored["projectId"]);
        let found =
            client.json(&format!("/api/test-runs/{run}/executions?q=ships")).await.expect("an answer");
        let case = &found["items"][0]["testCaseId"];
        for (path, tally) in [
            ("/projects?limit=1".to_owned(), "1 of 3 projects"),
            ("/projects?q=shop&limit=1".to_owned(), "1 of 2 projects"),
            ("/settings/projects?q=shop&limit=1".to_owned(), "1 of 2 projects"),
            (format!("/projects/{project}?branch=main&limit=1"), "1 of 3 runs"),
            (
                format!("/projects/{project}?status=failed&status=passed&branch=other&branch=main&limit=1"),
                "1 of 4 runs",
            ),
            (format!("/projects/{project}?from=2026-01-02&to=2026-01-02&order=asc&limit=1"), "1 of 2 runs"),
            (format!("/projects/{project}?to=2026-01-02&suite=full&limit=1"), "1 of 3 runs"),
            (format!("/projects/{project}?tab=cases&q=pays&limit=1"), "1 of 2 tests"),
            (format!("/test-runs/{run}?q=pays&limit=1"), "1 of 2 executions"),
            (format!("/test-runs/{run}?tab=timeline&outcome=passed&limit=1"), "1 of 2 executions"),
            (format!("/test-cases/{case}?branch=main&status=failed&limit=1"), "1 of 3 executions"),
        ] {
            let text = page(client, &path).await.text();
            assert!(
                text.contains(tally),
                "{path}: {:?}",
                text.split("filter-tally").nth(1).map(|rest| rest.chars().take(80).collect::<String>())
            );
        }
        for (query, told) in [
            ("from=2026-01-03&to=2026-01-02", "from must not be after to."),
            ("from=yesterday", "from must be a date or an ISO 8601 time"),
            ("order=random", "it is one of desc, asc."),
            ("suite=whole", "it is one of full, partial."),
            ("status=green", "it is one of initializing, running, "),
            ("tab=moon", "it is one of runs, grid, cases, "),
            ("tab=cases&sort=size", "it is one of last-run, title, file, "),
            ("tab=cases&result=green", "it is one of failed, flaky, "),
            ("tab=clusters&status=new", "it is one of open, resolved, ignored, all."),
            ("tab=clusters&assignee=ada", "it is one of nobody, the id of an account."),
            ("tab=flaky&sort=title", "it is one of score, impact, lost."),
            ("tab=health&days=8", "it is one of 7, 30, 60, 90."),
            ("tab=quarantine&state=old", "it is one of active, released."),
        ] {
            let refused = page(client, &format!("/projects/{project}?{query}")).await;
            assert!(refused.status == 400 && refused.text().contains(told), "{query}: {}", refused.text());
        }
        for (path, told) in [
            ("/projects?sort=sideways".to_owned(), "it is one of updated, name."),
            (format!("/test-runs/{run}?tab=moon"), "it is one of executions, insights, "),
            (format!("/test-runs/{run}?outcome=green"), "it is one of failing, flaky, "),
            (format!("/test-runs/{run}?cluster=some"), "it is one of none, the id of a cluster."),
            (
                format!("/test-runs/{run}?tab=compare&with=last"),
                "it is one of baseline, previous, the id of a run.",
            ),
            (format!("/test-runs/{run}?tab=endpoints&sort=path"), "often."),
            ("/analytics?days=8".to_owned(), "it is one of 7, 14, 30, 90."),
        ] {
            let refused = page(client, &path).await;
            assert!(refused.status == 400 && refused.text().contains(told), "{path}: {}", refused.text());
        }
        let oldest = page(client, &format!("/projects/{project}?order=asc&limit=1")).await.text();
        assert!(oldest.contains(&format!("/test-runs/{run}\"")), "the oldest run comes first");
        for (order, says, leads_to) in [
            ("", "descending", "asc"),
            ("&order=desc", "descending", "asc"),
            ("&order=asc", "ascending", "desc"),
        ] {
            let html = page(client, &format!("/projects/{project}?branch=main{order}")).await.text();
            let head = html.split("aria-sort=\"").nth(1).expect("a head that says the order");
            let link = format!("/projects/{project}?branch=main&#38;order={leads_to}\"");
            assert!(head.starts_with(says) && head.contains(&link), "{order}: {head}");
        }
    })
    .await;
}
