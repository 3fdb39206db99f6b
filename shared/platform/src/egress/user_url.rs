//! Requests to addresses that callers of this service named: links today,
//! whatever else is sent to them later. They reach the open internet and what
//! the environment opens, and nothing else: every name is resolved here, only
//! addresses that were judged are connected to, and each redirect is judged
//! as the first address was. No stored secret is ever sent this way.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use http::header::{AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, COOKIE, HeaderMap, LOCATION};
use http::{Method, StatusCode};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

use super::targets::{Allowed, is_local_name, is_open};
use super::{CONNECT_TIMEOUT, EgressError, OUR_NAME, TOTAL_TIMEOUT, read_body};

/// Most bytes read of an answer.
const MAX_BYTES: usize = 512 * 1024;
/// Redirects followed.
const MAX_REDIRECTS: usize = 3;

/// Turns a name into addresses. Tests give their own.
pub trait Lookup: Send + Sync {
    /// The addresses of a name, in the order in which they are tried.
    fn lookup(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>>;
}

/// Asks the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemLookup;

impl Lookup for SystemLookup {
    fn lookup(&self, host: String) -> BoxFuture<'static, std::io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            Ok(tokio::net::lookup_host((host, 0)).await?.map(|address| address.ip()).collect())
        })
    }
}

/// Gives the client only addresses it may connect to, so that what was judged
/// is what is connected.
struct Judged {
    lookup: Arc<dyn Lookup>,
    allowed: Arc<Allowed>,
    /// The environment opens the name: wherever it leads.
    is_opened: bool,
}

impl Resolve for Judged {
    fn resolve(&self, name: Name) -> Resolving {
        let found = self.lookup.lookup(name.as_str().to_owned());
        let (allowed, is_opened) = (Arc::clone(&self.allowed), self.is_opened);
        Box::pin(async move {
            let mut addresses = found.await?;
            addresses.retain(|ip| is_opened || is_open(*ip) || allowed.opens_address(*ip));
            if addresses.is_empty() {
                return Err(EgressError::Refused.into());
            }
            let addresses: Addrs = Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0)));
            Ok(addresses)
        })
    }
}

/// An address behind a host and port that administrators set, of those that may be connected to.
///
/// # Errors
/// [`EgressError::Refused`] when there are only others; [`EgressError::TooSlow`] when the name leads nowhere.
pub async fn reachable(host: &str, port: u16, allowed: &Allowed) -> Result<IpAddr, EgressError> {
    let is_opened = allowed.opens(&format!("http://{host}:{port}"));
    let found = match host.parse::<IpAddr>() {
        Ok(address) => vec![address],
        Err(_) => {
            let asked = SystemLookup.lookup(host.to_owned());
            let found = tokio::time::timeout(super::CONNECT_TIMEOUT, asked).await;
            found.map_err(|_| EgressError::TooSlow)?.map_err(|_| EgressError::TooSlow)?
        }
    };
    let may_connect = |ip: &IpAddr| is_opened || is_open(*ip) || allowed.opens_address(*ip);
    found.into_iter().find(may_connect).ok_or(EgressError::Refused)
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status after the last redirect.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// The beginning of its body.
    pub body: Vec<u8>,
}

/// A client for addresses that callers named.
#[derive(Clone)]
pub struct UserUrl {
    lookup: Arc<dyn Lookup>,
    allowed: Arc<Allowed>,
}

impl std::fmt::Debug for UserUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("UserUrl")
    }
}

impl UserUrl {
    /// A client that reaches the open internet, and what is allowed besides.
    #[must_use]
    pub fn new(allowed: Allowed) -> Self {
        Self::with_lookup(allowed, Arc::new(SystemLookup))
    }

    /// The same with another way of looking names up.
    #[must_use]
    pub fn with_lookup(allowed: Allowed, lookup: Arc<dyn Lookup>) -> Self {
        Self { lookup, allowed: Arc::new(allowed) }
    }

    /// Reads what lies at an address, at most its first 512 KiB.
    ///
    /// # Errors
    /// [`EgressError::Refused`] for an address that is not reached, whatever
    /// the reason; other [`EgressError`]s when there is no answer.
    pub async fn get(&self, address: &str) -> Result<Answer, EgressError> {
        self.send(Method::GET, address, HeaderMap::new(), Vec::new()).await
    }

    /// Sends a request and reads at most the first 512 KiB of its answer. At
    /// most three redirects are followed; body and credentials do not go
    /// to another origin.
    ///
    /// # Errors
    /// As [`UserUrl::get`].
    pub async fn send(
        &self,
        method: Method,
        address: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, EgressError> {
        let sent = self.follow(method, address, headers, body);
        tokio::time::timeout(TOTAL_TIMEOUT, sent).await.map_err(|_| EgressError::TooSlow)?
    }

    /// Sends a request once: a redirect is an answer like any other. For what
    /// must arrive at the address itself.
    ///
    /// # Errors
    /// As [`UserUrl::get`].
    pub async fn send_once(
        &self,
        method: Method,
        address: &str,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Answer, EgressError> {
        let sent = async {
            let url = Url::parse(address).map_err(|_| EgressError::Refused)?;
            let answer = self.one(method, &url, headers, body).await?;
            let (status, headers) = (answer.status(), answer.headers().clone());
            Ok(Answer { status, headers, body: read_body(answer, MAX_BYTES, true).await? })
        };
        tokio::time::timeout(TOTAL_TIMEOUT, sent).await.map_err(|_| EgressError::TooSlow)?
    }

    async fn follow(
        &self,
        mut method: Method,
        address: &str,
        mut headers: HeaderMap,
        mut body: Vec<u8>,
    ) -> Result<Answer, EgressError> {
        let mut url = Url::parse(address).map_err(|_| EgressError::Refused)?;
        for _ in 0..=MAX_REDIRECTS {
            let answer = self.one(method.clone(), &url, headers.clone(), body.clone()).await?;
            let place = answer.headers().get(LOCATION).and_then(|place| place.to_str().ok());
            let next = match place.filter(|_| answer.status().is_redirection()) {
                Some(place) => url.join(place).map_err(|_| EgressError::Refused)?,
                None => {
                    let (status, headers) = (answer.status(), answer.headers().clone());
                    return Ok(Answer { status, headers, body: read_body(answer, MAX_BYTES, true).await? });
                }
            };
            let keeps_method =
                matches!(answer.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            let is_elsewhere = next.origin() != url.origin();
            if is_elsewhere {
                headers.remove(AUTHORIZATION);
                headers.remove(COOKIE);
            }
            if is_elsewhere || !keeps_method {
                if method != Method::HEAD {
                    method = Method::GET;
                }
                body.clear();
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_LENGTH);
            }
            url = next;
        }
        Err(EgressError::Refused)
    }

    /// One request, to an address that is judged before.
    pub(super) async fn one(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, EgressError> {
        self.one_within(TOTAL_TIMEOUT, method, url, headers, body).await
    }

    /// The same with a time of its own, which the answer's body is part of.
    pub(super) async fn one_within(
        &self,
        timeout: Duration,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<reqwest::Response, EgressError> {
        let is_opened = self.judge(url)?;
        let judged =
            Judged { lookup: Arc::clone(&self.lookup), allowed: Arc::clone(&self.allowed), is_opened };
        #[expect(clippy::disallowed_methods, reason = "this is the guarded client")]
        let client = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(timeout)
            .user_agent(OUR_NAME)
            .dns_resolver(Arc::new(judged) as Arc<dyn Resolve>)
            .build()?;
        let answer = client.request(method, url.clone()).headers(headers).body(body).send().await;
        answer.map_err(|error| if is_refusal(&error) { EgressError::Refused } else { error.into() })
    }

    /// Whether the environment opens the host of an address.
    ///
    /// # Errors
    /// [`EgressError::Refused`] for an address that is not reached.
    pub(super) fn judge(&self, url: &Url) -> Result<bool, EgressError> {
        let port = url.port_or_known_default().ok_or(EgressError::Refused)?;
        let is_web = matches!(url.scheme(), "http" | "https");
        if !is_web || !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::Refused);
        }
        let is_opened = self.allowed.opens_url(url);
        // However an IPv4 address is spelled, it was read as one.
        let is_reached = match url.host().ok_or(EgressError::Refused)? {
            Host::Domain(name) => !is_local_name(&name.trim_end_matches('.').to_ascii_lowercase()),
            Host::Ipv4(ip) => is_open(ip.into()),
            Host::Ipv6(ip) => is_open(ip.into()),
        };
        let is_usual_port = matches!(port, 80 | 443);
        if is_opened || (is_reached && is_usual_port) { Ok(is_opened) } else { Err(EgressError::Refused) }
    }
}

/// Whether no address of a name was one that may be connected to.
fn is_refusal(error: &reqwest::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(EgressError::Refused) = error.downcast_ref() {
            return true;
        }
        cause = error.source();
    }
    false
}
