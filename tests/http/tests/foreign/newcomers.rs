//! Whoever reaches nothing finds what an empty installation shows, and whoever
//! reaches little finds it among whatever else there is.

use super::*;

#[tokio::test]
async fn whoever_reaches_nothing_finds_an_empty_installation() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let mut settings = secured_settings();
        settings.push(("SERVICE_SSE_MAX_SECONDS".to_owned(), "1".to_owned()));
        let (service, administrator) = administered(backend, &settings).await;
        let newcomer = service.account("a newcomer", Role::User).await.expect("an account");
        let newcomer = service.browser_of(newcomer).await.expect("a browser");
        let lists = || reads().filter(|route| route.project == ProjectSource::Listed && !is_stream(route));
        let whole = async || {
            let mut all = BTreeMap::new();
            for route in lists().filter(|route| route.id.name() != "ListLinks") {
                let query = if route.pattern == "/api/search" { format!("?q={WORD}") } else { String::new() };
                let path = format!("{}{query}", route.pattern);
                let answer = newcomer.get(&path).await.expect("an answer");
                assert_eq!(answer.status, 200, "{path}: {}", answer.text());
                let mut body = answer.json().unwrap_or_else(|_| json!(answer.text()));
                still(&mut body);
                all.insert(path, body.to_string());
            }
            all
        };
        let empty = whole().await;
        assert!(empty.len() > 18, "{:?}", empty.keys());
        assert!(empty.values().all(|answer| !answer.contains(SECRET)));
        for path in ["/api/projects", "/api/projects/menu", "/api/projects/overview", "/api/test-runs"] {
            let list: Value = serde_json::from_str(&empty[path]).expect("JSON");
            assert_eq!(list["items"], json!([]), "{path}");
        }
        fill(&service, &administrator, WORD, SECRET).await;
        let shown = administrator.json("/api/projects").await.expect("projects");
        assert_eq!(shown["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(differences(&empty, &whole().await), Vec::<String>::new());
    }
}

#[tokio::test]
async fn what_others_have_more_of_pushes_nothing_off_the_page() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let (service, administrator) = administered(backend, &secured_settings()).await;
        let submitted = async |project: String, minute: u8| {
            let case = with(
                attempt("common pays", "failed", 0),
                json!({ "error": format!("Error: {project} common") }),
            );
            let limps = attempt("common limps", "failed", 0);
            let retried = attempt("common limps", "passed", 1);
            let body = with(
                run(&project, "failed", vec![case, limps, retried]),
                json!({ "startTime": format!("2026-01-01T10:{minute:02}:00.000Z"), "label": "common" }),
            );
            administrator.post_json("/api/test-runs/submit", &body).await.expect("stored")
        };
        // The oldest of all.
        let own = submitted("common own".to_owned(), 0).await;
        for number in 1..=5 {
            submitted(format!("common other {number}"), number).await;
        }
        crate::comparison::work(&service).await;
        let user = service.account("ada", Role::User).await.expect("an account");
        let project = ProjectId(own["projectId"].as_i64().expect("an id"));
        service.assign(user, Some(project)).await.expect("assigned");
        let reader = service.browser_of(user).await.expect("a browser");
        for path in [
            "/api/search?q=common&limit=5",
            "/api/projects?limit=5",
            "/api/projects/menu?limit=5",
            "/api/projects/overview?limit=5",
            "/api/test-runs?limit=5",
            "/api/test-runs/recent?limit=5",
            "/api/failure-clusters?limit=5",
        ] {
            let everything = administrator.get(path).await.expect("an answer").text();
            assert!(everything.contains("common other 5"), "{path}: {everything}");
            let found = reader.get(path).await.expect("an answer");
            assert_eq!(found.status, 200, "{path}: {}", found.text());
            assert!(found.text().contains("common own"), "{path}: {}", found.text());
            assert!(!found.text().contains("common other"), "{path}: {}", found.text());
        }
    }
}
