//! `Idempotency-Key`: a POST that changes something and is sent again under
//! its key is answered with the first answer, for 24 hours per credential.
//!
//! [`Routes`](crate::Routes) puts this behind the checks of every such route.
//! The work of a key goes on when its client hangs up, because that client is
//! the one that will ask again. A request is known again by a hash over its
//! address and its body, taken while the body passes; what separates the parts
//! of a form is left out of it, because clients draw it anew for every attempt.
//! Refusals, answers that blame us, those that tell a secret ([`TellsSecret`])
//! and those to a body that was not read to its end are not kept: the request
//! may be made again.

mod kept;

use std::panic::AssertUnwindSafe;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use callboard_auth::keys::{KeyRing, Purpose, Secrets};
use callboard_auth::{Identity, Principal, Scope};
use callboard_store::idempotency::{self, Claim, FirstAnswer, Found};
use callboard_store::{Db, Session, StoreError, boxed};
use futures::{FutureExt, StreamExt};
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use http::{StatusCode, request::Parts};
use http_body::{Body as HttpBody, Frame, SizeHint};
use sha2::{Digest as _, Sha256};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use self::kept::Kept;
use crate::error::ApiError;
use crate::extract::CountedBody;
use crate::register::refuse;
use crate::request_id;
use crate::state::AppState;

const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const MAX_KEY_BYTES: usize = 200;
/// A third of how long a claim holds.
const RENEW_EVERY: Duration = Duration::from_secs(20);
/// How long the answer to a form waits for what stands behind its last part.
const REST_TIME: Duration = Duration::from_secs(5);
/// Larger answers are not kept; ours are a few kilobytes.
const MAX_ANSWER_BYTES: u64 = 1024 * 1024;

/// Answers a request, at most once for each key of the caller. A request
/// without a key, or of nobody in particular, is simply answered.
#[boxed]
pub(crate) async fn answer(
    state: &AppState,
    identity: &Identity,
    limit_bytes: u64,
    request: Request,
    next: Next,
) -> Response {
    let key = match key_of(request.headers()) {
        Ok(Some(key)) if *identity.principal() != Principal::Anonymous => key,
        Ok(_) => return next.run(request).await,
        Err(error) => return refuse(request, error),
    };
    let key = hex::encode(Sha256::digest(key));
    match claim(state, &identity.credential(), &key).await {
        Ok(Found::Claimed(claim)) => {
            work(state.clone(), claim, identity.scope().clone(), request, next).await
        }
        Ok(Found::Running) => refuse(request, in_progress()),
        Ok(Found::Answered(first)) => again(identity, request, limit_bytes, first).await,
        Err(error) => refuse(request, error.into()),
    }
}

fn key_of(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut values = headers.get_all(HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    let key = value.as_bytes();
    let is_usable = (1..=MAX_KEY_BYTES).contains(&key.len()) && key.iter().all(u8::is_ascii_graphic);
    match value.to_str() {
        Ok(key) if is_usable && values.next().is_none() => Ok(Some(key)),
        _ => Err(ApiError::invalid_field(
            "Idempotency-Key",
            "Idempotency-Key must be 1 to 200 visible ASCII characters, sent once.",
        )),
    }
}

fn in_progress() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "idempotency_in_progress",
        "A request with this Idempotency-Key is being answered; ask again for its answer.",
    )
    .with_header(RETRY_AFTER, HeaderValue::from_static("2"))
}

fn conflict() -> ApiError {
    ApiError::new(
        StatusCode::CONFLICT,
        "idempotency_conflict",
        "This Idempotency-Key was used for another request; draw a new key for every new request.",
    )
}

/// Runs one statement about a key in a transaction of its own.
async fn write<T>(
    db: &Db,
    statement: impl AsyncFnOnce(&mut Session) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let mut session = db.begin().await?;
    let done = statement(&mut session).await?;
    session.commit().await?;
    Ok(done)
}

async fn claim(state: &AppState, principal: &str, key: &str) -> Result<Found, StoreError> {
    let now = state.now();
    write(state.store().db(), async |session| idempotency::claim(session, principal, key, now).await).await
}

/// Does the work of a claim, beside the connection that asked for it. What the
/// work was let into is read from the scope of its caller afterwards.
async fn work(state: AppState, mut claim: Claim, scope: Scope, request: Request, next: Next) -> Response {
    let (request, seen) = hashed(request);
    let work = async move {
        let response = {
            let mut answer = pin!(AssertUnwindSafe(next.run(request)).catch_unwind());
            loop {
                tokio::select! {
                    done = &mut answer => break done,
                    () = sleep(RENEW_EVERY) => {}
                }
                // The work goes on meanwhile: what the renewal waits for may be a connection that the work has.
                let mut renewal = pin!(renew(&state, &mut claim));
                tokio::select! {
                    () = &mut renewal => {}
                    done = &mut answer => {
                        renewal.await;
                        break done;
                    }
                }
            }
        };
        match response {
            Ok(response) => settle(&state, &claim, &scope, seen, response).await,
            Err(_) => {
                release(&state, &claim).await;
                ApiError::internal("a handler panicked").into_response()
            }
        }
    };
    let done = tokio::spawn(request_id::scope(request_id::current(), work)).await;
    done.unwrap_or_else(|error| ApiError::internal(error).into_response())
}

async fn renew(state: &AppState, claim: &mut Claim) {
    let now = state.now();
    let renewed =
        write(state.store().db(), async |session| idempotency::renew(session, claim, now).await).await;
    match renewed {
        Ok(true) => {}
        Ok(false) => tracing::warn!("a request lost its idempotency key to another one"),
        Err(error) => tracing::warn!(%error, "an idempotency key could not be held"),
    }
}

async fn release(state: &AppState, claim: &Claim) {
    let released =
        write(state.store().db(), async |session| idempotency::release(session, claim).await).await;
    if let Err(error) = released {
        // It ends by itself after a minute.
        tracing::warn!(%error, "an idempotency key could not be given back");
    }
}

/// Keeps the answer, or gives the key back where there is none to keep.
async fn settle(
    state: &AppState,
    claim: &Claim,
    scope: &Scope,
    seen: oneshot::Receiver<Seen>,
    response: Response,
) -> Response {
    let request = match response.status() {
        status if status.is_success() => timeout(REST_TIME, seen).await.ok().and_then(Result::ok),
        // Whatever was refused may be asked again: access is given, limits pass.
        _ => None,
    };
    let (Some(request), true) = (request, is_kept(&response)) else {
        release(state, claim).await;
        return response;
    };
    let (parts, body) = response.into_parts();
    // Its length is known and small.
    let body = to_bytes(body, usize::MAX).await.unwrap_or_default();
    let now = state.now();
    let kept = Kept { entered: scope.entered(), body: &body };
    let Ok(sealed) = request.ring().seal_text(&kept.encode(), &[]) else {
        release(state, claim).await;
        return Response::from_parts(parts, Body::from(body));
    };
    let first = FirstAnswer { request: request.name(), status: parts.status.as_u16(), body: sealed };
    let kept =
        write(state.store().db(), async |session| idempotency::complete(session, claim, &first, now).await)
            .await;
    if let Err(error) = kept {
        tracing::warn!(%error, "an answer could not be kept under its idempotency key");
    }
    Response::from_parts(parts, Body::from(body))
}

/// Marks an answer that tells a secret which is kept nowhere: it is given
/// once, also under an idempotency key.
#[derive(Debug, Clone, Copy)]
pub struct TellsSecret;

impl TellsSecret {
    /// The answer, marked.
    pub fn mark(self, answer: impl IntoResponse) -> Response {
        let mut response = answer.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

fn is_kept(response: &Response) -> bool {
    if response.extensions().get::<TellsSecret>().is_some() {
        return false;
    }
    let is_json = |kind: &HeaderValue| kind.as_bytes().starts_with(b"application/json");
    response.headers().get(CONTENT_TYPE).is_some_and(is_json)
        && response.body().size_hint().exact().is_some_and(|size| size <= MAX_ANSWER_BYTES)
}

/// Answers as the first time, once the body has proved to be the same and the
/// caller to have what the first request had.
async fn again(identity: &Identity, request: Request, limit_bytes: u64, first: FirstAnswer) -> Response {
    let (request, seen) = hashed(request);
    let mut body = CountedBody::new(request.into_body(), limit_bytes);
    while let Some(piece) = body.next().await {
        if let Err(error) = piece {
            return error.into_api("invalid_body").into_response();
        }
    }
    match seen.await {
        Ok(seen) if seen.name() == first.request => seen.answer(identity, &first).into_response(),
        _ => conflict().into_response(),
    }
}

/// A request that was read to its end: a hash of its key, address and body.
#[derive(Debug, PartialEq, Eq)]
struct Seen([u8; 32]);

impl Seen {
    /// What is stored to know it again, which tells nothing about it.
    fn name(&self) -> [u8; 32] {
        Sha256::new_with_prefix(b"name").chain_update(self.0).finalize().into()
    }

    /// The key of its answer.
    fn ring(&self) -> KeyRing {
        KeyRing::derive(&Secrets::new(&[self.0]), Purpose::KEPT_ANSWER)
    }

    fn answer(&self, identity: &Identity, first: &FirstAnswer) -> Result<Response, ApiError> {
        let damaged = || ApiError::internal("a kept answer cannot be opened");
        let status = StatusCode::from_u16(first.status).map_err(ApiError::internal)?;
        let opened = self.ring().open_text(&first.body, &[], usize::MAX).ok_or_else(damaged)?;
        let Kept { entered, body } = Kept::decode(&opened.value).ok_or_else(damaged)?;
        identity.may_enter_again(&entered)?;
        Ok((status, [(CONTENT_TYPE, "application/json")], body.to_vec()).into_response())
    }
}

/// The request with a body that is hashed while it is read, and where the hash
/// arrives once that has been read to its end.
fn hashed(request: Request) -> (Request, oneshot::Receiver<Seen>) {
    let (parts, body) = request.into_parts();
    let (told, seen) = oneshot::channel();
    let body = HashedBody { body, hasher: BodyHasher::new(&parts), told: Some(told) };
    (Request::from_parts(parts, Body::new(body)), seen)
}

struct HashedBody {
    body: Body,
    hasher: BodyHasher,
    told: Option<oneshot::Sender<Seen>>,
}

impl HashedBody {
    fn end(&mut self) {
        if let Some(told) = self.told.take() {
            // Nobody may be waiting any more.
            let _ = told.send(self.hasher.finish());
        }
    }
}

impl HttpBody for HashedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => {
                if let Some(bytes) = frame.data_ref() {
                    self.hasher.add(bytes);
                }
                if self.body.is_end_stream() {
                    self.end();
                }
            }
            Some(Err(_)) => self.told = None,
            None => self.end(),
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for HashedBody {
    /// An empty body has nothing that anybody would read.
    fn drop(&mut self) {
        if self.body.is_end_stream() {
            self.end();
        }
    }
}

/// A hash over what a request asks for, without what separates the parts of
/// its form.
struct BodyHasher {
    hash: Sha256,
    boundary: Vec<u8>,
    /// What may be the beginning of a boundary.
    held: Vec<u8>,
}

impl BodyHasher {
    fn new(parts: &Parts) -> Self {
        let kind = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let boundary = kind.and_then(|kind| multer::parse_boundary(kind).ok()).unwrap_or_default();
        let mut hash = Sha256::new();
        let key = parts.headers.get(HEADER).map(HeaderValue::as_bytes).unwrap_or_default();
        hash.update(key);
        let target = parts.uri.path_and_query().map_or("/", |target| target.as_str());
        for text in ["\n", parts.method.as_str(), " ", target, "\n"] {
            hash.update(text);
        }
        Self { hash, boundary: boundary.into_bytes(), held: Vec::new() }
    }

    fn add(&mut self, bytes: &[u8]) {
        if self.boundary.is_empty() {
            self.hash.update(bytes);
            return;
        }
        self.held.extend_from_slice(bytes);
        let mut rest = self.held.as_slice();
        let length = self.boundary.len();
        while let Some(at) = rest.windows(length).position(|window| window == self.boundary) {
            self.hash.update(&rest[..at]);
            rest = &rest[at + length..];
        }
        let certain = rest.len().saturating_sub(length - 1);
        self.hash.update(&rest[..certain]);
        self.held = rest[certain..].to_vec();
    }

    fn finish(&mut self) -> Seen {
        self.hash.update(&self.held);
        Seen(std::mem::take(&mut self.hash).finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use callboard_auth::scope::Entered;
    use callboard_domain::ids::ProjectId;
    use proptest::prelude::*;

    use super::*;

    fn hash(target: &str, kind: &str, body: &[u8], piece: usize) -> Seen {
        let request = Request::post(target).header(CONTENT_TYPE, kind).body(()).unwrap();
        let mut hasher = BodyHasher::new(&request.into_parts().0);
        body.chunks(piece).for_each(|piece| hasher.add(piece));
        hasher.finish()
    }

    fn form(boundary: &str, content: &str) -> (String, Vec<u8>) {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=a\r\n\r\n{content}\r\n--{boundary}--\r\n"
        );
        (format!("multipart/form-data; boundary={boundary}"), body.into_bytes())
    }

    proptest! {
        #[test]
        fn a_form_is_known_again_under_another_boundary(
            content in "[ab-]{0,40}", first in "[ab-]{6,12}x", second in "[ab-]{6,12}y", piece in 1_usize..50,
        ) {
            let hashes = [(&first, 7), (&second, piece)].map(|(boundary, piece)| {
                let (kind, body) = form(boundary, &content);
                hash("/a", &kind, &body, piece)
            });
            prop_assert_eq!(&hashes[0], &hashes[1]);
            let (kind, body) = form(&first, &format!("{content}a"));
            prop_assert_ne!(&hashes[0], &hash("/a", &kind, &body, piece));
        }
    }

    #[test]
    fn another_address_or_body_is_another_request() {
        let json = "application/json";
        assert_eq!(hash("/a?b", json, b"{}", 1), hash("/a?b", json, b"{}", 2));
        assert_ne!(hash("/a?b", json, b"{}", 1), hash("/a?c", json, b"{}", 1));
        assert_ne!(hash("/a?b", json, b"{}", 1), hash("/a?b", json, b"{ }", 1));
    }

    #[test]
    fn a_kept_answer_opens_for_the_same_request_only() {
        let (seen, nobody) = (hash("/a", "application/json", b"{}", 1), Identity::anonymous());
        let kept = Kept { entered: Entered::default(), body: b"secret" };
        let body = seen.ring().seal_text(&kept.encode(), &[]).unwrap();
        assert!(!body.contains("secret"));
        let first = FirstAnswer { request: seen.name(), status: 200, body };
        assert_eq!(seen.answer(&nobody, &first).unwrap().status(), StatusCode::OK);
        assert!(hash("/a", "application/json", b"[]", 1).answer(&nobody, &first).is_err());
    }

    #[test]
    fn a_kept_answer_is_bound_to_what_its_request_was_let_into() {
        let seen = hash("/a", "application/json", b"{}", 1);
        let kept =
            Kept { entered: Entered { projects: [ProjectId(3)].into(), ..Entered::default() }, body: b"{}" };
        let body = seen.ring().seal_text(&kept.encode(), &[]).unwrap();
        let first = FirstAnswer { request: seen.name(), status: 200, body };
        assert_eq!(seen.answer(&Identity::anonymous(), &first).unwrap_err().code(), "project_access_denied");
        assert!(seen.answer(&Identity::auth_off(), &first).is_ok());
    }

    #[test]
    fn a_key_is_visible_ascii_of_a_bounded_length() {
        let key = |values: &[&[u8]]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_bytes(value).unwrap());
            }
            key_of(&headers).map(|key| key.map(str::to_owned)).map_err(|error| error.code().to_owned())
        };
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[b"a-1/~"]), Ok(Some("a-1/~".to_owned())));
        assert!(key(&["x".repeat(200).as_bytes()]).is_ok());
        let long = "x".repeat(201);
        for wrong in [&[&b""[..]][..], &[b"a b"], &[b"a\xc3\xa4"], &[long.as_bytes()], &[b"a", b"a"]] {
            assert_eq!(key(wrong), Err("invalid_field".to_owned()), "{wrong:?}");
        }
    }
}
