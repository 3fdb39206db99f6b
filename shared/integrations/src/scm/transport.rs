//! One request to the API of a provider: credentials, limits, and what its
//! failures mean.

use base64ct::{Base64, Encoding};
use callboard_domain::time::Timestamp;
use callboard_platform::egress::{AdminUrl, Answer, EgressError};
use http::header::{
    ACCEPT, AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderMap, HeaderName, HeaderValue, IF_NONE_MATCH,
};
use http::{Method, StatusCode, header};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::error::ScmError;
use super::failures::{failure, lacks};
use super::repository::{Provider, Repository, encode_segment};
use super::types::Fetched;

/// Bytes read of one answer.
const MAX_ANSWER_BYTES: usize = 8_000_000;
const PRIVATE_TOKEN: HeaderName = HeaderName::from_static("private-token");
const API_VERSION: HeaderName = HeaderName::from_static("x-github-api-version");

/// The client of one repository's API.
pub(super) struct Transport {
    client: AdminUrl,
    repository: Repository,
    headers: HeaderMap,
    now: Timestamp,
}

/// An answer with a status of success.
pub(super) struct Reply {
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Query parameters of a request.
pub(super) type Parameters<'a> = &'a [(&'a str, &'a str)];

impl Transport {
    pub(super) fn new(client: AdminUrl, repository: Repository, token: &str, now: Timestamp) -> Self {
        let headers = headers(repository.provider(), token);
        Self { client, repository, headers, now }
    }

    /// Reads a place below the repository.
    ///
    /// # Errors
    /// [`ScmError`]; 404 is [`ScmError::RepositoryNotFound`].
    pub(super) async fn get(&self, path: &str, parameters: Parameters<'_>) -> Result<Reply, ScmError> {
        self.accepting("application/json", path, parameters).await
    }

    /// The same in another format.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(super) async fn accepting(
        &self,
        format: &'static str,
        path: &str,
        parameters: Parameters<'_>,
    ) -> Result<Reply, ScmError> {
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static(format));
        let Answer { status, headers, body } = self.send(path, parameters, headers).await?;
        if status.is_success() {
            Ok(Reply { headers, body })
        } else {
            Err(failure(&self.repository, status, &headers, &body, self.now))
        }
    }

    /// Reads a place below the repository unless it is as it was.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(super) async fn get_changed(
        &self,
        path: &str,
        parameters: Parameters<'_>,
        etag: Option<&str>,
    ) -> Result<Fetched<Reply>, ScmError> {
        let mut headers = self.headers.clone();
        let known = etag.and_then(|etag| HeaderValue::from_str(etag).ok());
        let is_conditional = known.is_some();
        if let Some(known) = known {
            headers.insert(IF_NONE_MATCH, known);
        }
        let Answer { status, headers, body } = self.send(path, parameters, headers).await?;
        if status == StatusCode::NOT_MODIFIED && is_conditional {
            return Ok(Fetched::NotModified);
        }
        if !status.is_success() {
            return Err(failure(&self.repository, status, &headers, &body, self.now));
        }
        let etag = headers.get(ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        Ok(Fetched::Fresh { value: Reply { headers, body }, etag })
    }

    /// Reads a place below the repository as JSON.
    ///
    /// # Errors
    /// As [`Transport::get`]; [`ScmError::Unreadable`].
    pub(super) async fn json<T: DeserializeOwned>(
        &self,
        path: &str,
        parameters: Parameters<'_>,
    ) -> Result<T, ScmError> {
        self.read(&self.get(path, parameters).await?)
    }

    /// Reads an answer as JSON.
    ///
    /// # Errors
    /// [`ScmError::Unreadable`].
    pub(super) fn read<T: DeserializeOwned>(&self, reply: &Reply) -> Result<T, ScmError> {
        serde_json::from_slice(&reply.body).map_err(|_| self.unreadable())
    }

    /// Writes below the repository; `permission` is what that takes, as the provider calls it.
    ///
    /// # Errors
    /// As [`Transport::get`].
    pub(super) async fn write(
        &self,
        method: Method,
        path: &str,
        body: &Value,
        permission: &'static str,
    ) -> Result<Reply, ScmError> {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let address = format!("{}{path}", self.repository.api());
        let body = body.to_string().into_bytes();
        let answer = self.client.write(method, &address, headers, body, MAX_ANSWER_BYTES).await;
        let Answer { status, headers, body } = answer.map_err(|error| self.no_answer(&error))?;
        if status.is_success() {
            Ok(Reply { headers, body })
        } else {
            let error = failure(&self.repository, status, &headers, &body, self.now);
            Err(lacks(error, permission))
        }
    }

    /// Reads a list, unless it is as it was; an empty one where the repository
    /// lacks what it is of.
    ///
    /// # Errors
    /// As [`Transport::get`]; [`ScmError::Unreadable`].
    pub(super) async fn list_of<T: DeserializeOwned + Default>(
        &self,
        path: &str,
        parameters: Parameters<'_>,
        etag: Option<&str>,
    ) -> Result<Fetched<T>, ScmError> {
        match self.get_changed(path, parameters, etag).await {
            Ok(Fetched::NotModified) => Ok(Fetched::NotModified),
            Ok(Fetched::Fresh { value, etag }) => Ok(Fetched::Fresh { value: self.read(&value)?, etag }),
            Err(ScmError::Failed { status, .. }) if status == StatusCode::UNPROCESSABLE_ENTITY.as_u16() => {
                Ok(Fetched::Fresh { value: T::default(), etag: None })
            }
            Err(error) => match self.explained(error, String::new).await {
                ScmError::NotInRepository { .. } => Ok(Fetched::Fresh { value: T::default(), etag: None }),
                error => Err(error),
            },
        }
    }

    /// Reads something that may not be there.
    ///
    /// # Errors
    /// As [`Transport::get`]; [`ScmError::Unreadable`].
    pub(super) async fn json_or_missing<T: DeserializeOwned>(
        &self,
        path: &str,
    ) -> Result<Option<T>, ScmError> {
        match self.json(path, &[]).await {
            Ok(found) => Ok(Some(found)),
            Err(ScmError::Failed { status, .. }) if status == StatusCode::GONE.as_u16() => Ok(None),
            Err(error) => match self.explained(error, String::new).await {
                ScmError::NotInRepository { .. } => Ok(None),
                error => Err(error),
            },
        }
    }

    /// Whose repository it is.
    pub(super) fn owner(&self) -> &str {
        self.repository.path().split('/').next().unwrap_or_default()
    }

    /// The answer is not what the API promises.
    pub(super) fn unreadable(&self) -> ScmError {
        let host = self.repository.host().to_owned();
        ScmError::Unreadable { provider: self.repository.provider(), host }
    }

    /// Providers answer 404 for a missing commit as for a missing repository; one
    /// more request tells them apart.
    pub(super) async fn explained(
        &self,
        error: ScmError,
        wanted: impl FnOnce() -> String + Send,
    ) -> ScmError {
        if !matches!(error, ScmError::RepositoryNotFound { .. }) {
            return error;
        }
        match self.get("", &[]).await {
            Ok(_) => self.not_in_repository(wanted()),
            Err(error) => error,
        }
    }

    /// The repository is there and lacks what was asked for.
    pub(super) fn not_in_repository(&self, wanted: String) -> ScmError {
        ScmError::NotInRepository { repository: self.repository.path().to_owned(), wanted }
    }

    async fn send(
        &self,
        path: &str,
        parameters: Parameters<'_>,
        headers: HeaderMap,
    ) -> Result<Answer, ScmError> {
        let mut address = format!("{}{path}", self.repository.api());
        for (at, (name, value)) in parameters.iter().enumerate() {
            address.push(if at == 0 { '?' } else { '&' });
            address.push_str(&format!("{name}={}", encode_segment(value)));
        }
        let answer = self.client.get(&address, headers, MAX_ANSWER_BYTES).await;
        answer.map_err(|error| self.no_answer(&error))
    }

    fn no_answer(&self, error: &EgressError) -> ScmError {
        let (host, provider) = (self.repository.host().to_owned(), self.repository.provider());
        match error {
            EgressError::Refused => ScmError::AddressRefused { host },
            EgressError::Redirected => ScmError::Redirected { host },
            EgressError::TooLarge => ScmError::TooLarge { provider, limit_bytes: MAX_ANSWER_BYTES },
            EgressError::TooSlow => ScmError::TooSlow { host },
            EgressError::Request(error) if error.is_timeout() => ScmError::TooSlow { host },
            _ => ScmError::Unreachable { host },
        }
    }
}

/// What goes along with every request.
fn headers(provider: Provider, token: &str) -> HeaderMap {
    let (name, text) = match provider {
        Provider::GitHub => (AUTHORIZATION, format!("Bearer {token}")),
        Provider::GitLab => (PRIVATE_TOKEN, token.to_owned()),
        Provider::Gitea => (AUTHORIZATION, format!("token {token}")),
        // API tokens of a person come with their name; those of a repository stand alone.
        Provider::Bitbucket if token.contains(':') => {
            (AUTHORIZATION, format!("Basic {}", Base64::encode_string(token.as_bytes())))
        }
        Provider::Bitbucket => (AUTHORIZATION, format!("Bearer {token}")),
    };
    let mut headers = HeaderMap::new();
    // A token that no header can hold is sent as none, and so rejected.
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    if provider == Provider::GitHub {
        headers.insert(API_VERSION, HeaderValue::from_static("2022-11-28"));
    }
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers
}

/// The contents of a file, or none where the provider finds no such file.
pub(super) fn or_missing(found: Result<Reply, ScmError>) -> Result<Option<Vec<u8>>, ScmError> {
    match found {
        Ok(reply) => Ok(Some(reply.body)),
        Err(ScmError::RepositoryNotFound { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// What was written, or none where the provider finds no such thing any more.
pub(super) fn or_gone<T>(written: Result<T, ScmError>) -> Result<Option<T>, ScmError> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(ScmError::RepositoryNotFound { .. } | ScmError::Failed { status: 410, .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
