//! Starts that are refused because nobody could be kept out.

use callboard_http::Config;

fn start(pairs: &[(&str, &str)]) -> Result<Config, String> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Config::from_env(pairs).map_err(|errors| errors.to_string())
}

#[test]
fn authentication_without_a_secret_worth_the_name_does_not_start() {
    let on = ("SERVICE_AUTH_ENABLED", "true");
    assert!(start(&[on]).expect_err("refused").contains("SERVICE_AUTH_SECRET"));
    for secret in ["changeme", "changemechangeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too short", ""] {
        let refused = start(&[on, ("SERVICE_AUTH_SECRET", secret)]).expect_err(secret);
        assert!(refused.contains("SERVICE_AUTH_SECRET"), "{refused}");
    }
}

#[test]
fn the_switch_takes_two_words_in_any_case() {
    let secret = ("SERVICE_AUTH_SECRET", callboard_test_support::access::AUTH_SECRET);
    assert!(start(&[("SERVICE_AUTH_ENABLED", " TRUE "), secret]).expect("starts").auth_enabled);
    assert!(!start(&[("SERVICE_AUTH_ENABLED", "False"), secret]).expect("starts").auth_enabled);
    assert!(start(&[("SERVICE_AUTH_ENABLED", "yes"), secret]).is_err());
}
