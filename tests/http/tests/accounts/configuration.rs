//! Starts that are refused because nobody could be kept out.

use callboard_platform::Config;
use callboard_test_support::Process;

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

#[tokio::test]
async fn a_start_that_is_refused_ends_at_once_and_says_why() {
    for secret in ["", "changeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"] {
        let settings = [("SERVICE_AUTH_ENABLED", "true"), ("SERVICE_AUTH_SECRET", secret)];
        let settings = settings.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let mut process = Process::start("callboard", &settings).expect("a process");
        // The exit code of a refused configuration.
        assert_eq!(process.end().await.expect("an end").code(), Some(78), "{}", process.output());
        assert!(process.output().contains("SERVICE_AUTH_SECRET"), "{}", process.output());
    }
}

#[test]
fn nothing_is_sealed_with_a_key_that_can_be_guessed() {
    assert!(start(&[]).expect("starts").secret_keys.is_empty(), "there is none unless it is set");
    for key in
        ["changemechangeme", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "too short", "$(openssl rand -hex 32)"]
    {
        let good = callboard_test_support::access::AUTH_SECRET;
        for keys in [key.to_owned(), format!("{good},{key}")] {
            let refused = start(&[("SERVICE_SECRET_KEY", &keys)]).expect_err(key);
            assert!(refused.contains("SERVICE_SECRET_KEY") && !refused.contains(key), "{refused}");
        }
    }
}

#[test]
fn what_others_can_reach_is_limited_whatever_is_set() {
    let off = ("SERVICE_RATE_LIMITS", "off");
    assert!(!start(&[off]).expect("starts").rate_limits);
    let database = ("SERVICE_DATABASE_URL", "postgres://db/callboard");
    let function = [("AWS_LAMBDA_FUNCTION_NAME", "auth"), database, ("SERVICE_STORAGE_URL", "s3://bucket")];
    for reachable in [&[("SERVICE_HOST", "0.0.0.0")][..], &[("SERVICE_HOST", "192.0.2.7")], &function] {
        let config = start(&[&[off][..], reachable].concat()).expect("starts");
        assert!(config.rate_limits, "{reachable:?}");
    }
}

#[test]
fn the_switch_takes_two_words_in_any_case() {
    let secret = ("SERVICE_AUTH_SECRET", callboard_test_support::access::AUTH_SECRET);
    assert!(start(&[("SERVICE_AUTH_ENABLED", " TRUE "), secret]).expect("starts").auth_enabled);
    assert!(!start(&[("SERVICE_AUTH_ENABLED", "False"), secret]).expect("starts").auth_enabled);
    assert!(start(&[("SERVICE_AUTH_ENABLED", "yes"), secret]).is_err());
}
