//! Untrusted content never opens with the powers of the dashboard, and a grant
//! opens what it was sealed for.

use callboard_auth::{GrantTarget, Identity};
use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use callboard_test_support::{Client, Service, Settings, TestDatabase, for_each_service};
use reqwest::header::{ACCEPT, HOST, HeaderName, IF_NONE_MATCH, ORIGIN};
use reqwest::{StatusCode, Url};

use super::{DRAWING, PAGE, ask, head, path_of, raw, sent_to, store};

/// The listener behind an address of this machine, asked by the name it is given:
/// what is granted for one name opens under no other.
pub(crate) fn listener_of(address: &str) -> Client {
    let authority =
        address.strip_prefix("http://").and_then(|rest| rest.split('/').next()).expect("an authority");
    let port = authority.rsplit(':').next().expect("a port");
    let client = Client::new(format!("http://127.0.0.1:{port}")).expect("a client");
    client.with_header("host", authority).expect("a name")
}

/// A service whose address is public: nothing but the browser isolates then,
/// unless `settings` name another origin.
async fn for_each_public_service(settings: &[(&str, &str)], test: impl AsyncFn(&Service)) {
    let site = ("SERVICE_SITE_URL", "https://tests.example.org");
    let settings =
        settings.iter().chain([&site]).map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let settings: Settings = settings.collect();
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let database = TestDatabase::fresh(backend).await.expect("a database");
        test(&Service::over(database, &settings).await.expect("a service")).await;
    }
}

#[tokio::test]
async fn html_and_svg_never_open_on_the_origin_of_the_dashboard() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let active = [
            (format!("/api/files/{}", stored.id("page")), "text/html; charset=utf-8", PAGE),
            (format!("/api/files/{}", stored.id("drawing")), "image/svg+xml", DRAWING),
            (format!("/api/files/{}index.html", stored.report), "text/html; charset=utf-8", PAGE),
            (format!("/api/files/{}drawing.svg", stored.report), "image/svg+xml", DRAWING),
        ];
        for (path, kind, content) in active {
            let address = sent_to(service, &path).await;
            assert!(!address.starts_with(service.base_url()), "{path} opens elsewhere: {address}");
            assert!(
                address.starts_with("http://localhost:"),
                "under the other name of this machine: {address}"
            );
            assert_eq!(head(service.client(), &path).await.status, StatusCode::FOUND);

            let opened = ask(&listener_of(&address), path_of(&address), &[(ACCEPT, "text/html")]).await;
            assert_eq!((opened.status, opened.header("content-type")), (StatusCode::OK, kind));
            assert_eq!(opened.text(), content);
            let port = address.rsplit(':').next().and_then(|rest| rest.split('/').next()).expect("a port");
            let own = Client::new(format!("http://127.0.0.1:{port}")).expect("a client");
            assert_eq!(
                ask(&own, path_of(&address), &[]).await.status,
                StatusCode::NOT_FOUND,
                "under our name"
            );
            let policy = opened.header("content-security-policy");
            assert!(
                policy.contains("connect-src 'self'") && policy.contains("form-action 'none'"),
                "{policy}"
            );
            assert_eq!(opened.header("cross-origin-resource-policy"), "cross-origin");
            assert_eq!(opened.header("referrer-policy"), "no-referrer");

            for path in [format!("{path}?download=1"), format!("{}?download=1", path_of(&address))] {
                let saved = ask(service.client(), &path, &[(ACCEPT, "text/html")]).await;
                assert_eq!((saved.status, saved.text().as_str()), (StatusCode::OK, content), "{path}");
                assert_eq!(saved.header("content-type"), "application/octet-stream");
                assert!(saved.header("content-disposition").starts_with("attachment"), "{path}");
            }
        }
        for path in
            [format!("/api/files/{}", stored.id("unknown")), format!("/api/files/{}app.js", stored.report)]
        {
            let answer = ask(service.client(), &path, &[]).await;
            assert_eq!(answer.header("content-type"), "application/octet-stream", "{path}");
            assert!(answer.header("content-disposition").starts_with("attachment"), "{path}");
        }
    })
    .await;
}

#[tokio::test]
async fn without_an_origin_of_their_own_pages_open_sandboxed_and_drawings_are_saved() {
    for_each_public_service(&[], async |service| {
        let stored = store(service, "shop").await;
        let address = sent_to(service, &format!("/api/files/{}index.html", stored.report)).await;
        let path = address.strip_prefix("https://tests.example.org").expect("the same origin");

        let opened = ask(service.client(), path, &[(ACCEPT, "text/html,*/*")]).await;
        let policy = opened.header("content-security-policy");
        assert!(policy.starts_with("sandbox allow-scripts allow-popups allow-downloads;"), "{policy}");
        assert!(!policy.contains("allow-same-origin"), "{policy}");
        // Looking at storage throws in such a page, so it brings its own; a browser alone needs that.
        let (before, after) = PAGE.split_once("<title>").expect("a title");
        let text = opened.text();
        assert!(text.starts_with(before.trim_end()), "the document type stays in front: {text}");
        assert!(text.ends_with(after) && text.contains("localStorage"), "{text}");
        assert_eq!(opened.header("content-length"), text.len().to_string());
        assert_eq!(opened.header("vary"), "accept, range, sec-fetch-dest");
        let stored_page = ask(service.client(), path, &[]).await;
        assert_eq!(stored_page.text(), PAGE);
        assert_ne!(stored_page.header("etag"), opened.header("etag"));
        let again =
            ask(service.client(), path, &[(ACCEPT, "text/html"), (IF_NONE_MATCH, opened.header("etag"))])
                .await;
        assert_eq!(again.status, StatusCode::NOT_MODIFIED);

        let drawing = ask(service.client(), &path.replace("index.html", "drawing.svg"), &[]).await;
        assert!(drawing.header("content-disposition").starts_with("attachment"));
        assert!(drawing.header("content-security-policy").starts_with("sandbox"));
        assert_eq!(
            drawing.header("cross-origin-resource-policy"),
            "cross-origin",
            "so that its report shows it"
        );
    })
    .await;
}

#[tokio::test]
async fn a_configured_origin_answers_with_granted_files_and_nothing_else() {
    let origin = [("SERVICE_SANDBOX_ORIGIN", "https://files.example.org")];
    for_each_public_service(&origin, async |service| {
        let stored = store(service, "shop").await;
        let address = sent_to(service, &format!("/api/files/{}index.html", stored.report)).await;
        let path = address.strip_prefix("https://files.example.org").expect("the configured origin");
        let there = (HOST, "files.example.org");

        let opened = ask(service.client(), path, &[there.clone(), (ACCEPT, "text/html")]).await;
        assert_eq!((opened.status, opened.text().as_str()), (StatusCode::OK, PAGE));
        let policy = opened.header("content-security-policy");
        assert!(policy.ends_with("frame-ancestors https://tests.example.org"), "{policy}");
        for closed in ["/", "/api/projects", "/mcp", &format!("/api/files/{}", stored.id("shot"))] {
            let answer = ask(service.client(), closed, std::slice::from_ref(&there)).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "{closed}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_grant_opens_its_report_or_its_file_for_a_while_and_nothing_else() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let sibling = store(service, "shop").await;
        let client = service.client();
        let address = sent_to(service, &format!("/api/files/{}index.html", stored.report)).await;
        let below = path_of(&address).strip_suffix("index.html").expect("an entry page");
        let opens = async |path: &str| ask(client, path, &[]).await;
        for (entry, kind) in [
            ("data/shot.png", "image/png"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("odd%20%231%3B%20100%25.txt", "text/plain; charset=utf-8"),
        ] {
            let answer = opens(&format!("{below}{entry}")).await;
            assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, kind), "{entry}");
            assert_eq!(answer.header("cache-control"), "private, no-cache");
        }
        let sibling_id = sibling.report.trim_end_matches('/').rsplit('/').next().expect("an id");
        for entry in [
            "nothing.html".to_owned(),
            format!("{}index.html", stored.report),
            format!("{}index.html", sibling.report),
            format!("../{sibling_id}/index.html"),
            format!("%2e%2e/{sibling_id}/index.html"),
            stored.id("shot").to_string(),
        ] {
            let answer = raw(service, &format!("{below}{entry}")).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{entry}: {answer}");
            assert!(answer.contains("no-store"), "{entry}: {answer}");
        }

        let file = sent_to(service, &format!("/api/files/{}", stored.id("page"))).await;
        let file = path_of(&file);
        assert_eq!(opens(file).await.text(), PAGE);
        let (folder, _) = file.rsplit_once('/').expect("a name");
        assert_eq!(opens(&format!("{folder}/shot.png")).await.status, StatusCode::NOT_FOUND);

        let worker = HeaderName::from_static("service-worker");
        let refused = ask(client, &format!("{below}app.js"), &[(worker, "script")]).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    })
    .await;
}

#[tokio::test]
async fn an_altered_or_expired_grant_opens_nothing() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let address = sent_to(service, &format!("/api/files/{}index.html", stored.report)).await;
        let grant = path_of(&address).split('/').nth(2).expect("a grant");
        for at in (0..grant.len()).step_by(7) {
            let flipped = if grant.as_bytes()[at] == b'A' { "B" } else { "A" };
            let altered = format!("{}{flipped}{}", &grant[..at], &grant[at + 1..]);
            let answer = ask(service.client(), &format!("/f/{altered}/index.html"), &[]).await;
            assert_eq!(answer.status, StatusCode::NOT_FOUND, "character {at}");
            assert_eq!(answer.json().expect("an error")["code"], "file_not_found");
        }

        let state = service.state();
        let project: i64 =
            stored.report["project-".len()..].split('/').next().expect("a project").parse().expect("an id");
        let everyone = Identity::auth_off();
        let seal = async |project: i64, minutes_ago: i64| {
            let project = everyone.authorize(ProjectId(project)).expect("access");
            let then = Timestamp(state.now().millis() - minutes_ago * 60_000);
            let target = GrantTarget::Prefix(stored.report.clone());
            state
                .grants()
                .await
                .expect("grants")
                .seal(project, &target, None, "localhost", then, i64::MAX)
                .expect("a grant")
        };
        for (project, minutes_ago, status) in [
            (project, 59, StatusCode::OK),
            (project, 61, StatusCode::NOT_FOUND),
            // Sealed for a project that is gone, or for another than its prefix.
            (project + 999, 0, StatusCode::NOT_FOUND),
        ] {
            let grant = seal(project, minutes_ago).await;
            let answer = ask(service.client(), &format!("/f/{grant}/index.html"), &[]).await;
            assert_eq!(answer.status, status, "{project} {minutes_ago}");
        }
        let grant = seal(project, 61).await;
        let page = ask(service.client(), &format!("/f/{grant}/index.html"), &[(ACCEPT, "text/html")]).await;
        assert!(page.text().contains("expired"), "{}", page.text());
    })
    .await;
}

#[tokio::test]
async fn viewers_elsewhere_fetch_traces_where_the_settings_name_them_and_nothing_else() {
    let viewer = "https://viewer.example.org";
    for_each_public_service(&[("SERVICE_TRACE_VIEWER_ORIGINS", viewer)], async |service| {
        let stored = store(service, "shop").await;
        let opened = sent_to(service, &format!("/api/files/{}?viewer=1", stored.id("trace"))).await;
        let opened = Url::parse(&opened).expect("an address");
        assert_eq!(
            opened.origin().ascii_serialization(),
            viewer,
            "nothing isolates the viewer of this service"
        );
        let (_, granted) = opened.query_pairs().next().expect("the address of the trace");
        let fetch = async |path: &str, origin: &str| ask(service.client(), path, &[(ORIGIN, origin)]).await;

        let trace = fetch(path_of(&granted), viewer).await;
        assert_eq!((trace.status, trace.header("access-control-allow-origin")), (StatusCode::OK, viewer));
        assert_eq!(trace.header("vary"), "origin");
        assert_eq!(trace.header("access-control-allow-credentials"), "");
        assert_eq!(trace.body.as_ref(), stored.trace);
        let other = fetch(path_of(&granted), "https://other.example.org").await;
        assert_eq!((other.header("access-control-allow-origin"), other.header("vary")), ("", "origin"));
        let page = sent_to(service, &format!("/api/files/{}", stored.id("page"))).await;
        assert_eq!(fetch(path_of(&page), viewer).await.header("access-control-allow-origin"), "");
        let shot = format!("/api/files/{}", stored.id("shot"));
        assert_eq!(fetch(&shot, viewer).await.header("access-control-allow-origin"), "");
    })
    .await;
}
