//! A real S3 API server in the test process, over a temporary folder. It
//! verifies signatures, so a request with wrong credentials fails here as it
//! would at a provider.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use axum::body::Body;
use futures::StreamExt as _;
use http::header::{ACCESS_CONTROL_ALLOW_ORIGIN, RANGE};
use http::{HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::Settings;

const BUCKET: &str = "callboard";
const ACCESS_KEY: &str = "test-access-key";
const SECRET_KEY: &str = "test-secret-key";

/// An object, or a part of it, that somebody asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRead {
    /// Path of the request.
    pub path: String,
    /// Which bytes of it; all when it says nothing.
    pub range: Option<String>,
}

/// How the server fails one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BucketFault {
    /// It answers 503.
    Unavailable,
    /// It closes the connection after so many bytes of the answer's body.
    CutAfter(usize),
}

#[derive(Debug)]
struct PlannedFault {
    method: Method,
    path_part: String,
    fault: BucketFault,
    left: usize,
}

/// A running S3 server with one bucket. Dropping it ends it.
#[derive(Debug)]
pub struct S3Server {
    endpoint: String,
    folder: TempDir,
    reads: Arc<Mutex<Vec<ObjectRead>>>,
    faults: Arc<Mutex<Vec<PlannedFault>>>,
    has_cors: Arc<AtomicBool>,
    accepting: JoinHandle<()>,
}

impl S3Server {
    /// Starts a server on a free port.
    ///
    /// # Errors
    /// When no port or folder can be had.
    pub async fn start() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        // In this server a bucket is a folder.
        std::fs::create_dir(folder.path().join(BUCKET))?;
        let files = s3s_fs::FileSystem::new(folder.path()).map_err(|error| anyhow::anyhow!("{error:?}"))?;
        let mut service = S3ServiceBuilder::new(files);
        service.set_auth(SimpleAuth::from_single(ACCESS_KEY, SECRET_KEY));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let endpoint = format!("http://{}", listener.local_addr()?);
        let (reads, faults, has_cors) = (Arc::default(), Arc::default(), Arc::default());
        let watched = (Arc::clone(&reads), Arc::clone(&faults), Arc::clone(&has_cors));
        let accepting = tokio::spawn(accept(listener, service.build(), watched));
        Ok(Self { endpoint, folder, reads, faults, has_cors, accepting })
    }

    /// Its address.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    /// What a service needs in its environment to use this server.
    #[must_use]
    pub fn settings(&self) -> Settings {
        [
            ("SERVICE_STORAGE_URL", format!("s3://{BUCKET}/results").as_str()),
            ("SERVICE_S3_ENDPOINT", &self.endpoint),
            ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
            ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
            ("AWS_REGION", "us-east-1"),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// What was read since this was asked before.
    #[must_use]
    pub fn reads(&self) -> Vec<ObjectRead> {
        std::mem::take(&mut locked(&self.reads))
    }

    /// Fails the next `times` requests of a method whose path holds `path_part`.
    pub fn fail(&self, method: Method, path_part: &str, times: usize, fault: BucketFault) {
        let planned = PlannedFault { method, path_part: path_part.to_owned(), fault, left: times };
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).push(planned);
    }

    /// Lets pages of any origin read objects from now on, as a CORS rule does.
    pub fn add_cors_rule(&self) {
        self.has_cors.store(true, Ordering::Relaxed);
    }

    /// Forgets the faults that are planned.
    pub fn heal(&self) {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Keys of the bucket, sorted.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn keys(&self) -> Result<Vec<String>> {
        let bucket = self.folder.path().join(BUCKET);
        let mut keys = Vec::new();
        let mut folders = vec![bucket.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder)? {
                let path = entry?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    keys.push(path.strip_prefix(&bucket)?.display().to_string());
                }
            }
        }
        keys.sort();
        Ok(keys)
    }
}

impl Drop for S3Server {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn locked(reads: &Mutex<Vec<ObjectRead>>) -> MutexGuard<'_, Vec<ObjectRead>> {
    reads.lock().unwrap_or_else(PoisonError::into_inner)
}

fn note(reads: &Mutex<Vec<ObjectRead>>, request: &Request<Incoming>) {
    if request.method() != Method::GET {
        return;
    }
    let range =
        request.headers().get(RANGE).map(|range| String::from_utf8_lossy(range.as_bytes()).into_owned());
    locked(reads).push(ObjectRead { path: request.uri().path().to_owned(), range });
}

/// The fault that is planned for a request.
fn fault_of(faults: &Mutex<Vec<PlannedFault>>, request: &Request<Incoming>) -> Option<BucketFault> {
    let mut faults = faults.lock().unwrap_or_else(PoisonError::into_inner);
    let path = request.uri().path();
    let is_meant = |planned: &&mut PlannedFault| {
        planned.left > 0 && planned.method == *request.method() && path.contains(&planned.path_part)
    };
    let planned = faults.iter_mut().find(is_meant)?;
    planned.left -= 1;
    Some(planned.fault)
}

/// The answer as far as a fault lets it through.
fn failed(answer: Response<Body>, fault: BucketFault) -> Response<Body> {
    match fault {
        BucketFault::Unavailable => {
            let mut refused = Response::new(Body::empty());
            *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            refused
        }
        BucketFault::CutAfter(bytes) => answer.map(|body| {
            let mut left = bytes;
            Body::from_stream(body.into_data_stream().map(move |chunk| {
                let mut chunk = chunk.map_err(std::io::Error::other)?;
                if left == 0 {
                    return Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
                }
                chunk.truncate(left);
                left -= chunk.len();
                Ok(chunk)
            }))
        }),
    }
}

/// What a server notes, fails and allows.
type Watched = (Arc<Mutex<Vec<ObjectRead>>>, Arc<Mutex<Vec<PlannedFault>>>, Arc<AtomicBool>);

async fn accept(listener: TcpListener, service: S3Service, watched: Watched) {
    while let Ok((stream, _)) = listener.accept().await {
        let service = service.clone();
        let (reads, faults, has_cors) = watched.clone();
        let noting = service_fn(move |request| {
            note(&reads, &request);
            let fault = fault_of(&faults, &request);
            let answered = Service::call(&service, request);
            let has_cors = has_cors.load(Ordering::Relaxed);
            async move {
                answered.await.map(|answer| {
                    let mut answer = answer.map(Body::new);
                    if has_cors {
                        let anybody = HeaderValue::from_static("*");
                        answer.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, anybody);
                    }
                    match fault {
                        Some(fault) => failed(answer, fault),
                        None => answer,
                    }
                })
            }
        });
        tokio::spawn(async move {
            // A connection that breaks is the client's to notice.
            let _ =
                auto::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(stream), noting).await;
        });
    }
}
