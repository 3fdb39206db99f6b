//! The dialogue with a provider: where its endpoints are, the address people
//! are sent to, and what a code is worth. An access token lives in one call
//! here and is neither kept nor logged.

use callboard_auth::oauth::{OauthRefusal, OauthTransaction, Profile, Provider, primary_email};
use futures::future::BoxFuture;
use oauth2::basic::BasicClient;
use oauth2::{
    AsyncHttpClient, AuthUrl, AuthorizationCode, ClientId, ClientSecret, CsrfToken, EndpointNotSet,
    EndpointSet, PkceCodeChallenge, PkceCodeVerifier, RedirectUrl, Scope, TokenResponse, TokenUrl,
};
use serde_json::Value;

use crate::config::oauth::{OauthConfig, ProviderConfig};
use crate::egress::{EgressError, FixedHost, JsonPage, Next};

/// Most organisations a page is asked for.
const ORGANISATIONS_PER_PAGE: usize = 100;
/// Nobody is in more organisations than fit on this many pages.
const MAX_ORGANISATION_PAGES: usize = 20;

type Client = BasicClient<EndpointSet, EndpointNotSet, EndpointNotSet, EndpointNotSet, EndpointSet>;

/// A provider whose endpoints are known.
#[derive(Debug)]
pub struct Dialogue<'c> {
    provider: Provider,
    oauth: &'c OauthConfig,
    http: FixedHost,
    client: Client,
    userinfo_url: String,
    issuer: Option<String>,
}

/// Why a dialogue failed. The cause is for our log; people get the refusal.
#[derive(Debug, thiserror::Error)]
pub enum DialogueError {
    /// The configuration or the discovery document is not usable.
    #[error("the endpoints of the provider are not usable: {0}")]
    Endpoints(String),
    /// The provider did not answer as it should.
    #[error("{0}: {1}")]
    Answer(&'static str, #[source] EgressError),
    /// The code was not accepted.
    #[error("the code was not exchanged: {0}")]
    Exchange(String),
    /// The provider's account may not come in.
    #[error("refused")]
    Refused(OauthRefusal),
}

impl DialogueError {
    /// What people are told.
    #[must_use]
    pub const fn refusal(&self) -> OauthRefusal {
        match self {
            Self::Refused(refusal) => *refusal,
            _ => OauthRefusal::Failed,
        }
    }
}

impl<'c> AsyncHttpClient<'c> for FixedHost {
    type Error = EgressError;
    type Future = BoxFuture<'c, Result<oauth2::HttpResponse, EgressError>>;

    fn call(&'c self, request: oauth2::HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}

struct Endpoints {
    authorize: String,
    token: String,
    userinfo: String,
    issuer: Option<String>,
}

impl<'c> Dialogue<'c> {
    /// Finds the endpoints of a provider. `redirect` is our callback address.
    ///
    /// # Errors
    /// [`DialogueError`]; [`OauthRefusal::InvalidProvider`] when the provider
    /// is not configured.
    pub async fn open(
        oauth: &'c OauthConfig,
        provider: Provider,
        redirect: &str,
    ) -> Result<Self, DialogueError> {
        let config = oauth.provider(provider).ok_or(DialogueError::Refused(OauthRefusal::InvalidProvider))?;
        let http = FixedHost::new().map_err(|error| DialogueError::Answer("no HTTP client", error))?;
        let endpoints = endpoints(&http, config).await?;
        let unusable = |error: oauth2::url::ParseError| DialogueError::Endpoints(error.to_string());
        let secret = String::from_utf8_lossy(config.client_secret.as_ref()).into_owned();
        let client = BasicClient::new(ClientId::new(config.client_id.clone()))
            .set_client_secret(ClientSecret::new(secret))
            .set_auth_uri(AuthUrl::new(endpoints.authorize).map_err(unusable)?)
            .set_token_uri(TokenUrl::new(endpoints.token).map_err(unusable)?)
            .set_redirect_uri(RedirectUrl::new(redirect.to_owned()).map_err(unusable)?);
        Ok(Self { provider, oauth, http, client, userinfo_url: endpoints.userinfo, issuer: endpoints.issuer })
    }

    /// The address people are sent to.
    #[must_use]
    pub fn authorize_url(&self, transaction: &OauthTransaction) -> String {
        let verifier = PkceCodeVerifier::new(transaction.verifier());
        let state = transaction.state();
        let scopes: &[&str] = match self.provider {
            Provider::Idp => &["openid", "email", "profile"],
            Provider::Codehost if self.oauth.allowlist.organisations.is_empty() => {
                &["read:user", "user:email"]
            }
            Provider::Codehost => &["read:user", "user:email", "read:org"],
        };
        let (address, _) = self
            .client
            .authorize_url(|| CsrfToken::new(state))
            .add_scopes(scopes.iter().map(|scope| Scope::new((*scope).to_owned())))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        address.into()
    }

    /// Whether the `iss` a callback names is this provider's (RFC 9207); one
    /// that is not sent says nothing.
    #[must_use]
    pub fn is_issuer(&self, named: Option<&str>) -> bool {
        match (named, &self.issuer) {
            (Some(named), Some(issuer)) => named.trim_end_matches('/') == issuer.trim_end_matches('/'),
            _ => true,
        }
    }

    /// Exchanges a code and reads the profile behind it, when the allowlists
    /// admit it.
    ///
    /// # Errors
    /// [`DialogueError`].
    pub async fn profile(
        &self,
        code: String,
        transaction: &OauthTransaction,
    ) -> Result<Profile, DialogueError> {
        let answer = self
            .client
            .exchange_code(AuthorizationCode::new(code))
            .set_pkce_verifier(PkceCodeVerifier::new(transaction.verifier()))
            .request_async(&self.http)
            .await
            .map_err(|error| DialogueError::Exchange(kind_of(&error).to_owned()))?;
        let token = answer.access_token().secret();
        let account = self.get(&self.userinfo_url, token, "the profile was not read").await?;
        let profile = match self.provider {
            Provider::Idp => Profile::of_idp(&account),
            Provider::Codehost => {
                // A list that cannot be read means that no address is proven.
                let emails = self.http.json(&format!("{}/emails", self.userinfo_url), Some(token)).await.ok();
                Profile::of_codehost(&account, emails.as_ref().and_then(primary_email))
            }
        };
        let profile =
            profile.ok_or_else(|| DialogueError::Exchange("the profile names no account".to_owned()))?;
        self.admit(&profile, token).await?;
        Ok(profile)
    }

    async fn admit(&self, profile: &Profile, token: &str) -> Result<(), DialogueError> {
        let allowlist = &self.oauth.allowlist;
        if !allowlist.admits_email(profile.verified_email()) {
            return Err(DialogueError::Refused(OauthRefusal::DomainNotAllowed));
        }
        if self.provider != Provider::Codehost || allowlist.organisations.is_empty() {
            return Ok(());
        }
        let numbered =
            |page: usize| format!("{}/orgs?per_page={ORGANISATIONS_PER_PAGE}&page={page}", self.userinfo_url);
        let mut address = numbered(1);
        for page in 1..=MAX_ORGANISATION_PAGES {
            // An error counts as not being a member.
            let Ok(JsonPage { document, next }) = self.http.json_page(&address, Some(token)).await else {
                break;
            };
            let logins: Vec<&str> = document
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|entry| entry["login"].as_str())
                .collect();
            if allowlist.admits_organisations(logins.iter().copied()) {
                return Ok(());
            }
            // A code host may send shorter pages than it was asked for; a short one ends only a list without links.
            address = match next {
                Next::At(address) => address,
                Next::NotSaid if logins.len() >= ORGANISATIONS_PER_PAGE => numbered(page + 1),
                Next::NotSaid | Next::Last => break,
            };
        }
        Err(DialogueError::Refused(OauthRefusal::OrganisationNotAllowed))
    }

    async fn get(&self, address: &str, token: &str, what: &'static str) -> Result<Value, DialogueError> {
        self.http.json(address, Some(token)).await.map_err(|error| DialogueError::Answer(what, error))
    }
}

/// What went wrong with an exchange, without what the provider said: its text
/// may repeat secrets.
const fn kind_of<RE, T>(error: &oauth2::RequestTokenError<RE, T>) -> &'static str
where
    RE: std::error::Error + 'static,
    T: oauth2::ErrorResponse + 'static,
{
    match error {
        oauth2::RequestTokenError::ServerResponse(_) => "the provider refused it",
        oauth2::RequestTokenError::Request(_) => "the provider did not answer",
        oauth2::RequestTokenError::Parse(..) => "the provider's answer is not a token",
        oauth2::RequestTokenError::Other(_) => "the provider's answer is unusable",
    }
}

async fn endpoints(http: &FixedHost, config: &ProviderConfig) -> Result<Endpoints, DialogueError> {
    if let (Some(authorize), Some(token), Some(userinfo)) =
        (&config.authorize_url, &config.token_url, &config.userinfo_url)
    {
        return Ok(Endpoints {
            authorize: authorize.clone(),
            token: token.clone(),
            userinfo: userinfo.clone(),
            issuer: None,
        });
    }
    let issuer = config
        .issuer
        .as_deref()
        .ok_or_else(|| DialogueError::Endpoints("no issuer is configured".to_owned()))?;
    let document = http
        .json(&format!("{issuer}/.well-known/openid-configuration"), None)
        .await
        .map_err(|error| DialogueError::Answer("the provider's endpoints were not discovered", error))?;
    // OpenID Connect Discovery 1.0 §4.3: the document has to name the issuer it was asked of.
    let named = document["issuer"].as_str().unwrap_or_default();
    if named.trim_end_matches('/') != issuer {
        return Err(DialogueError::Endpoints("the discovery document names another issuer".to_owned()));
    }
    let endpoint = |given: &Option<String>, key: &str| {
        let found = given.clone().or_else(|| document[key].as_str().map(str::to_owned));
        found.ok_or_else(|| DialogueError::Endpoints(format!("{key} is missing")))
    };
    Ok(Endpoints {
        authorize: endpoint(&config.authorize_url, "authorization_endpoint")?,
        token: endpoint(&config.token_url, "token_endpoint")?,
        userinfo: endpoint(&config.userinfo_url, "userinfo_endpoint")?,
        issuer: Some(named.to_owned()),
    })
}
