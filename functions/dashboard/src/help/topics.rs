//! Which part of the documentation explains a page.

use crate::address::Address;

/// Pages by how their path begins, then tabs of pages; the first that fits counts.
const TOPICS: &[(&str, &str)] = &[
    ("/projects?tab=grid", "/help/guides/dashboard#tests-and-their-history"),
    ("/projects?tab=cases", "/help/guides/dashboard#tests-and-their-history"),
    ("/projects?tab=clusters", "/help/guides/dashboard#failure-clusters"),
    ("/projects?tab=flaky", "/help/guides/flaky-and-quarantine"),
    ("/projects?tab=performance", "/help/guides/dashboard#durations-and-timeouts"),
    ("/projects?tab=health", "/help/guides/dashboard#tests-and-their-history"),
    ("/projects?tab=quarantine", "/help/guides/flaky-and-quarantine#quarantine"),
    ("/projects?tab=compare", "/help/guides/dashboard#compare-runs"),
    ("/projects?tab=members", "/help/guides/access-and-sign-in"),
    ("/projects?tab=settings", "/help/guides/dashboard#settings-of-a-project"),
    ("/projects", "/help/guides/dashboard#projects"),
    ("/analytics", "/help/guides/dashboard#analytics"),
    ("/test-runs?tab=compare", "/help/guides/dashboard#compare-runs"),
    ("/test-runs?tab=regression", "/help/guides/source-control"),
    ("/test-runs?tab=groups", "/help/guides/dashboard#failure-clusters"),
    ("/test-runs?tab=details", "/help/guides/retention-and-deletion"),
    ("/test-runs", "/help/guides/dashboard#a-run"),
    ("/test-run-cases", "/help/guides/dashboard#a-failure"),
    ("/test-cases", "/help/guides/dashboard#tests-and-their-history"),
    ("/failure-clusters?tab=diagnosis", "/help/guides/diagnosis"),
    ("/failure-clusters", "/help/guides/dashboard#failure-clusters"),
    ("/settings/account", "/help/guides/access-and-sign-in"),
    ("/settings/users", "/help/guides/access-and-sign-in"),
    ("/settings/audit", "/help/guides/access-and-sign-in"),
    ("/settings/storage", "/help/operate/sizing"),
    ("/settings/retention", "/help/guides/retention-and-deletion"),
    ("/settings/notifications", "/help/guides/notifications"),
    ("/notifications", "/help/guides/notifications"),
    ("/settings/tags", "/help/guides/dashboard#projects"),
    ("/settings/projects", "/help/guides/dashboard#settings-of-a-project"),
    ("/settings/source-control", "/help/guides/source-control"),
    ("/settings/flakiness", "/help/guides/flaky-and-quarantine#change-the-thresholds"),
    ("/settings/timeouts", "/help/guides/dashboard#durations-and-timeouts"),
    ("/settings/diagnosis", "/help/guides/diagnosis"),
    ("/settings", "/help/reference/configuration"),
    ("/login", "/help/guides/access-and-sign-in"),
    ("/setup", "/help/guides/access-and-sign-in"),
    ("/reset", "/help/guides/access-and-sign-in"),
    ("/verify", "/help/guides/access-and-sign-in"),
    ("/unsubscribe", "/help/guides/notifications"),
];

/// Where the page at this address is explained.
pub(crate) fn topic(address: &Address) -> &'static str {
    if address.path() == "/" {
        return "/help/guides/dashboard";
    }
    let tab = address.pairs_named(&["tab"]).into_iter().map(|(_, tab)| tab).next().unwrap_or_default();
    let fits = |pattern: &str| {
        let (path, wanted) = pattern.split_once("?tab=").unwrap_or((pattern, ""));
        let below = address.path().strip_prefix(path);
        let is_path = below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        is_path && (wanted.is_empty() || wanted == tab)
    };
    TOPICS.iter().find(|(pattern, _)| fits(pattern)).map_or("/help", |(_, topic)| topic)
}

#[cfg(test)]
mod tests {
    use callboard_auth::routes::{Method, ROUTES};

    use super::super::{DOCUMENTS, INDEX, RENDERED};
    use super::*;

    fn at(uri: &str) -> &'static str {
        topic(&Address::from_uri(&uri.parse().unwrap()))
    }

    fn exists(topic: &str) -> bool {
        let (path, anchor) = topic.split_once('#').unwrap_or((topic, ""));
        let path = path.strip_prefix("/help/").unwrap_or(INDEX);
        let document = DOCUMENTS.iter().position(|document| document.path == path);
        document.is_some_and(|at| RENDERED[at].has_anchor(anchor))
    }

    #[test]
    fn every_page_has_help_that_exists() {
        for (pattern, topic) in TOPICS {
            assert!(exists(topic), "{pattern}: {topic}");
        }
        let apart = ["/api", "/docs", "/mcp", "/viewer", "/badge", "/static", "/help", "/f/", "/internal"];
        let pages = ROUTES.iter().filter(|route| {
            route.method == Method::Get && !apart.iter().any(|start| route.pattern.starts_with(start))
        });
        let mut seen = 0;
        for route in pages {
            let topic = at(&route.pattern.replace("{id}", "7"));
            assert!(exists(topic) && topic != "/help", "{}: {topic}", route.pattern);
            seen += 1;
        }
        assert!(seen > 25, "{seen} pages were found");
    }

    #[test]
    fn every_topic_is_reached() {
        for (pattern, topic) in TOPICS {
            let uri = match pattern.split_once('?') {
                Some((path, query)) => format!("{path}/7?branch=main&{query}"),
                None => (*pattern).to_owned(),
            };
            assert_eq!(at(&uri), *topic, "{pattern}");
        }
        assert_eq!(at("/"), "/help/guides/dashboard");
        assert_eq!(at("/projectsx"), "/help");
    }

    #[test]
    fn tabs_that_templates_link_to_are_no_typing_errors_here() {
        let templates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("templates/pages");
        let texts: String = std::fs::read_dir(templates)
            .unwrap()
            .filter_map(|entry| std::fs::read_to_string(entry.unwrap().path()).ok())
            .collect();
        for (pattern, _) in TOPICS {
            if let Some((_, tab)) = pattern.split_once('?') {
                assert!(texts.contains(tab), "{pattern}");
            }
        }
    }
}
