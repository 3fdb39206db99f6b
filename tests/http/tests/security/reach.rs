//! What no route does.

use callboard_auth::ROUTES;

#[test]
fn nothing_alters_the_audit_log() {
    let about_it = ROUTES.iter().filter(|route| route.pattern.contains("audit"));
    let methods: Vec<&str> = about_it.map(|route| route.method.as_str()).collect();
    assert_eq!(methods, ["GET", "GET"], "the list, and its page");
}
