//! A provider to sign in at: an OpenID Connect one and a code host in one
//! process. It checks what a provider has to check (client, redirect address,
//! PKCE verifier, single use of codes) and remembers what it was asked.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use base64ct::{Base64UrlUnpadded, Encoding};
use bytes::Bytes;
use http::header::{AUTHORIZATION, LINK};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

use crate::Settings;

const CLIENT_ID: &str = "callboard";
const CLIENT_SECRET: &str = "the secret of the client";

/// A running provider. Dropping it stops it.
#[derive(Debug)]
pub struct Provider {
    address: String,
    known: Known,
    serving: JoinHandle<()>,
}

type Known = Arc<Mutex<Knowledge>>;

#[derive(Debug, Default)]
struct Knowledge {
    address: String,
    profile: Value,
    emails: Value,
    organisations: Vec<String>,
    page_size: Option<usize>,
    next_page: Option<String>,
    codes: HashMap<String, Value>,
    issued: u64,
    token_requests: u64,
    organisation_requests: u64,
}

impl Drop for Provider {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Provider {
    /// Starts a provider on a free port.
    ///
    /// # Errors
    /// When there is no port.
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = format!("http://{}", listener.local_addr()?);
        let known = Known::default();
        lock(&known).address.clone_from(&address);
        let router = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .route("/user", get(userinfo))
            .route("/user/emails", get(emails))
            .route("/user/orgs", get(organisations))
            .with_state(Arc::clone(&known));
        let serving = tokio::spawn(async move {
            // It ends with the test.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { address, known, serving })
    }

    /// Settings of a service that offers both kinds of sign-in here.
    #[must_use]
    pub fn settings(&self) -> Settings {
        let at = |path: &str| format!("{}{path}", self.address);
        [
            ("SERVICE_OAUTH_IDP_CLIENT_ID", CLIENT_ID.to_owned()),
            ("SERVICE_OAUTH_IDP_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
            ("SERVICE_OAUTH_IDP_ISSUER", self.address.clone()),
            ("SERVICE_OAUTH_CODEHOST_CLIENT_ID", CLIENT_ID.to_owned()),
            ("SERVICE_OAUTH_CODEHOST_CLIENT_SECRET", CLIENT_SECRET.to_owned()),
            ("SERVICE_OAUTH_CODEHOST_AUTHORIZE_URL", at("/authorize")),
            ("SERVICE_OAUTH_CODEHOST_TOKEN_URL", at("/token")),
            ("SERVICE_OAUTH_CODEHOST_USERINFO_URL", at("/user")),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }

    /// What the provider will say about the person who signs in.
    pub fn set_profile(&self, profile: Value) {
        lock(&self.known).profile = profile;
    }

    /// The addresses the code host will list.
    pub fn set_emails(&self, emails: Value) {
        lock(&self.known).emails = emails;
    }

    /// The organisations the code host will list.
    pub fn set_organisations(&self, names: impl IntoIterator<Item = String>) {
        lock(&self.known).organisations = names.into_iter().collect();
    }

    /// The code host lists organisations in pages of this many at most, linked
    /// with `rel="next"`, however many are asked for.
    pub fn set_page_size(&self, organisations: usize) {
        lock(&self.known).page_size = Some(organisations);
    }

    /// Every page of organisations names this address as the next one.
    pub fn set_next_page(&self, address: Option<String>) {
        lock(&self.known).next_page = address;
    }

    /// How often organisations were asked for.
    #[must_use]
    pub fn organisation_requests(&self) -> u64 {
        lock(&self.known).organisation_requests
    }

    /// How often a code was presented to it.
    #[must_use]
    pub fn token_requests(&self) -> u64 {
        lock(&self.known).token_requests
    }

    /// The person agrees on the provider's page: what was asked in the
    /// address becomes a code, and the address to go back to is returned.
    ///
    /// # Errors
    /// When the address lacks what a provider insists on.
    pub fn agree(&self, authorize: &str) -> Result<Url> {
        let asked: HashMap<String, String> = Url::parse(authorize)?.query_pairs().into_owned().collect();
        let of = |name: &str| {
            asked.get(name).cloned().ok_or_else(|| anyhow::anyhow!("{name} is missing in {authorize}"))
        };
        anyhow::ensure!(of("response_type")? == "code" && of("client_id")? == CLIENT_ID);
        anyhow::ensure!(of("code_challenge_method")? == "S256");
        let mut known = lock(&self.known);
        known.issued += 1;
        let code = format!("code-{}", known.issued);
        let grant = json!({ "challenge": of("code_challenge")?, "redirect": of("redirect_uri")? });
        known.codes.insert(code.clone(), grant);
        let mut back = Url::parse(&of("redirect_uri")?)?;
        back.query_pairs_mut().append_pair("code", &code).append_pair("state", &of("state")?);
        Ok(back)
    }
}

fn lock(known: &Known) -> MutexGuard<'_, Knowledge> {
    known.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn discovery(State(known): State<Known>) -> Json<Value> {
    let address = lock(&known).address.clone();
    Json(json!({
        "issuer": address,
        "authorization_endpoint": format!("{address}/authorize"),
        "token_endpoint": format!("{address}/token"),
        "userinfo_endpoint": format!("{address}/userinfo"),
    }))
}

async fn token(State(known): State<Known>, headers: HeaderMap, body: Bytes) -> Response {
    let given: HashMap<String, String> = url::form_urlencoded::parse(&body).into_owned().collect();
    let mut known = lock(&known);
    known.token_requests += 1;
    let grant = given.get("code").and_then(|code| known.codes.remove(code));
    let challenge = given
        .get("code_verifier")
        .map(|verifier| Base64UrlUnpadded::encode_string(&Sha256::digest(verifier.as_bytes())));
    let is_right = grant.is_some_and(|grant| {
        grant["challenge"].as_str() == challenge.as_deref()
            && grant["redirect"].as_str() == given.get("redirect_uri").map(String::as_str)
    });
    if !is_right || !headers.contains_key(AUTHORIZATION) {
        return (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    }
    Json(json!({ "access_token": "an access token", "token_type": "bearer", "expires_in": 60 }))
        .into_response()
}

fn has_token(headers: &HeaderMap) -> bool {
    headers.get(AUTHORIZATION).is_some_and(|value| value == "Bearer an access token")
}

async fn userinfo(State(known): State<Known>, headers: HeaderMap) -> Response {
    if !has_token(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    Json(lock(&known).profile.clone()).into_response()
}

async fn emails(State(known): State<Known>, headers: HeaderMap) -> Response {
    let emails = lock(&known).emails.clone();
    if !has_token(&headers) || emails.is_null() {
        return StatusCode::NOT_FOUND.into_response();
    }
    Json(emails).into_response()
}

async fn organisations(
    State(known): State<Known>,
    headers: HeaderMap,
    Query(page): Query<HashMap<String, usize>>,
) -> Response {
    if !has_token(&headers) {
        return StatusCode::UNAUTHORIZED.into_response();
    }
    let mut known = lock(&known);
    known.organisation_requests += 1;
    let asked = page.get("per_page").copied().unwrap_or(30);
    let size = known.page_size.unwrap_or(asked).min(asked);
    let number = page.get("page").copied().unwrap_or(1).max(1);
    let names = known.organisations.iter().skip(size * (number - 1)).take(size);
    let list = Json(names.map(|login| json!({ "login": login })).collect::<Vec<_>>());
    let mut links = vec![format!("<{}/user/orgs?per_page={asked}&page=1>; rel=\"first\"", known.address)];
    if let Some(next) = &known.next_page {
        links.push(format!("<{next}>; rel=\"next\""));
    } else if known.organisations.len() > size * number {
        links.push(format!("</user/orgs?per_page={asked}&page={}>; rel=\"next\"", number + 1));
    }
    match known.page_size.is_some() || known.next_page.is_some() {
        true => ([(LINK, links.join(", "))], list).into_response(),
        false => list.into_response(),
    }
}
