//! Requests to addresses that somebody named reach the open internet and what
//! the environment opens, however the address is spelled, whatever its name
//! resolves to, wherever a redirect leads.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use callboard_platform::egress::{AdminUrl, Allowed, EgressError, Lookup, UserUrl};
use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, HeaderMap, HeaderValue, LOCATION};
use http::{Method, StatusCode};
use tokio::net::TcpListener;

/// A service of this machine that remembers who asked.
#[derive(Clone, Default)]
struct Sink(Arc<Mutex<Vec<String>>>);

impl Sink {
    async fn start(&self) -> u16 {
        // Several tests start clients in one process.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let seen = self.0.clone();
        let answer = move |request: Request| {
            let seen = seen.clone();
            async move { answer(&seen, &request) }
        };
        tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
        port
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

fn answer(seen: &Mutex<Vec<String>>, request: &Request) -> Response {
    let authorization = request.headers().get(AUTHORIZATION).map_or("", |value| value.to_str().unwrap());
    seen.lock().unwrap().push(format!("{} {} {authorization}", request.method(), request.uri().path()));
    let query = request.uri().query().unwrap_or_default();
    match request.uri().path() {
        "/to" => (StatusCode::FOUND, [(LOCATION, query.to_owned())]).into_response(),
        "/loop" => (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, "/loop")]).into_response(),
        "/large" => "x".repeat(2 * 1024 * 1024).into_response(),
        _ => "<title>here</title>".into_response(),
    }
}

/// Names of this test, each with its addresses by turns.
struct Names(AtomicUsize, Vec<Vec<&'static str>>);

impl Lookup for Names {
    fn lookup(&self, _: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        let turn = self.0.fetch_add(1, Ordering::Relaxed).min(self.1.len() - 1);
        let addresses = self.1[turn].iter().map(|ip| ip.parse().unwrap()).collect();
        Box::pin(std::future::ready(Ok(addresses)))
    }
}

fn allowed(words: &[String]) -> Allowed {
    Allowed::read(words).unwrap()
}

async fn is_refused(client: &UserUrl, address: &str) -> bool {
    matches!(client.get(address).await, Err(EgressError::Refused))
}

#[tokio::test]
async fn no_spelling_of_this_machine_or_a_private_network_is_reached() {
    let sink = Sink::default();
    let port = sink.start().await;
    let client = UserUrl::new(Allowed::default());
    for host in [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.01",
        "0",
        "0.0.0.0",
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "x.internal",
        "printer.local",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "169.254.169.254",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::127.0.0.1]",
        "[2002:7f00:1::]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b:1::7f00:1]",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00::1]",
    ] {
        for address in
            [format!("http://{host}/"), format!("https://{host}/"), format!("http://{host}:{port}/")]
        {
            assert!(is_refused(&client, &address).await, "{address}");
        }
    }
    for address in [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "http://user@example.com/",
        "http://user:pw@example.com/",
        "http://example.com:22/",
        "http://",
        "nothing",
    ] {
        assert!(is_refused(&client, address).await, "{address}");
    }
    assert_eq!(sink.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn a_name_is_connected_to_at_the_address_that_was_judged() {
    let sink = Sink::default();
    let port = sink.start().await;
    // A name of this machine, one that mixes, and one that turns to this machine.
    for turns in [
        vec![vec!["127.0.0.1"]],
        vec![vec!["::1", "10.0.0.1", "::ffff:127.0.0.1"]],
        vec![vec!["169.254.169.254"], vec!["127.0.0.1"]],
    ] {
        let client = UserUrl::with_lookup(Allowed::default(), Arc::new(Names(AtomicUsize::new(0), turns)));
        for _ in 0..2 {
            assert!(is_refused(&client, "http://flips.example/").await);
        }
        assert!(is_refused(&client, &format!("http://flips.example:{port}/")).await);
    }
    assert_eq!(sink.seen(), Vec::<String>::new());
}

#[tokio::test]
async fn redirects_are_judged_one_by_one_and_end() {
    let sink = Sink::default();
    let port = sink.start().await;
    let host = format!("hook.test:{port}");
    let names = Arc::new(Names(AtomicUsize::new(0), vec![vec!["127.0.0.1"]]));
    let client = UserUrl::with_lookup(allowed(std::slice::from_ref(&host)), names);
    let answer = client.get(&format!("http://{host}/page")).await.unwrap();
    assert_eq!((answer.status, answer.body), (StatusCode::OK, b"<title>here</title>".to_vec()));
    assert_eq!(client.get(&format!("http://{host}/to?/page")).await.unwrap().status, StatusCode::OK);
    assert_eq!(sink.seen().len(), 3);
    for place in [
        format!("http://127.0.0.1:{port}/private"),
        "http://169.254.169.254/".into(),
        "file:///etc/passwd".into(),
        format!("//localhost:{port}/private"),
    ] {
        assert!(is_refused(&client, &format!("http://{host}/to?{place}")).await, "{place}");
    }
    assert!(is_refused(&client, &format!("http://{host}/loop")).await);
    let seen = sink.seen();
    assert_eq!(seen.iter().filter(|line| line.contains("/loop")).count(), 4);
    assert!(!seen.iter().any(|line| line.contains("private")), "{seen:?}");
    let large = client.get(&format!("http://{host}/large")).await.unwrap();
    assert_eq!(large.body.len(), 512 * 1024);
}

#[tokio::test]
async fn credentials_and_bodies_stay_at_their_origin() {
    let (first, second) = (Sink::default(), Sink::default());
    let (one, other) = (first.start().await, second.start().await);
    let names = Arc::new(Names(AtomicUsize::new(0), vec![vec!["127.0.0.1"]]));
    let client = UserUrl::with_lookup(allowed(&["hook.test".to_owned()]), names);
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
    let address = format!("http://hook.test:{one}/to?http://hook.test:{other}/there");
    client.send(Method::POST, &address, headers, b"{}".to_vec()).await.unwrap();
    assert_eq!(first.seen(), ["POST /to Bearer secret"]);
    assert_eq!(second.seen(), ["GET /there "]);
}

#[tokio::test]
async fn a_secret_goes_to_its_own_host_and_with_https() {
    let (first, second) = (Sink::default(), Sink::default());
    let (one, other) = (first.start().await, second.start().await);
    let names = || Arc::new(Names(AtomicUsize::new(0), vec![vec!["127.0.0.1"]]));
    let client = AdminUrl::with_lookup(allowed(&[format!("code.test:{one}")]), names());
    let get = async |address: String| {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Bearer secret"));
        client.get(&address, headers, 1024).await
    };
    let host = format!("http://code.test:{one}");
    // A renamed repository is on the same host.
    assert_eq!(get(format!("{host}/to?/renamed")).await.unwrap().status, StatusCode::OK);
    assert_eq!(first.seen(), ["GET /to Bearer secret", "GET /renamed Bearer secret"]);
    for place in [
        format!("http://code.test:{other}/"),
        format!("https://code.test:{one}/"),
        format!("http://127.0.0.1:{one}/"),
        "http://169.254.169.254/".to_owned(),
    ] {
        assert!(matches!(get(format!("{host}/to?{place}")).await, Err(EgressError::Redirected)), "{place}");
    }
    assert!(matches!(get(format!("{host}/loop")).await, Err(EgressError::Redirected)));
    assert!(matches!(get(format!("{host}/large")).await, Err(EgressError::TooLarge)));
    assert_eq!(second.seen(), Vec::<String>::new());
    // What the environment does not open is called with https only, and not on this machine.
    let _ = first.seen();
    for address in [
        format!("http://other.test:{one}/"),
        "http://example.org/".to_owned(),
        "https://10.0.0.1/".to_owned(),
    ] {
        assert!(matches!(get(address.clone()).await, Err(EgressError::Refused)), "{address}");
    }
    assert_eq!(first.seen(), Vec::<String>::new());
}
