//! `/login`, and the same form in the place of every other page.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::Principal;
use callboard_auth::oauth::{OauthRefusal, Provider};
use callboard_auth::session_cookie::RefusedName;
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader, own_page};
use callboard_http::{ApiError, AppState};
use callboard_platform::mail;
use callboard_query::accounts::setup::{self as first_administrator, SetupState};
use http::HeaderMap;

use super::{NoticePage, home, notice};
use crate::filters;
use crate::visit::answer;

/// How a sign-in ended that was sent by navigation, at a provider or with the
/// form of a browser without scripts, and where it was to lead.
pub(crate) struct Params {
    refusal: Option<Refusal>,
    next: Option<String>,
}

/// Why a sign-in was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Refusal {
    /// By a provider, or because of what it said.
    Provider(OauthRefusal),
    /// Name and password open nothing.
    Credentials,
    /// Too many have failed.
    Limited,
    /// The service could not check them.
    Busy,
}

impl Refusal {
    /// Reads a code of an address. One this version does not know still was a
    /// refusal.
    fn parse(code: &str) -> Self {
        match code {
            "invalid_credentials" => Self::Credentials,
            "rate_limited" => Self::Limited,
            "busy" | "database_unavailable" => Self::Busy,
            code => Self::Provider(OauthRefusal::parse(code).unwrap_or(OauthRefusal::Failed)),
        }
    }

    /// What to tell people.
    pub(super) fn sentence(self) -> String {
        match self {
            Self::Provider(refusal) => refusal.to_string(),
            Self::Credentials => "The username or the password is wrong.".to_owned(),
            Self::Limited => "Too many attempts have failed. Try again in a few minutes.".to_owned(),
            Self::Busy => "The service is busy and could not sign you in. Try again in a moment.".to_owned(),
        }
    }
}

impl FromQuery for Params {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        let refusal = query.text("error")?.map(|code| Refusal::parse(&code));
        let next = query.text("next")?.filter(|next| own_page(next).is_some());
        Ok(Self { refusal, next })
    }
}

/// A way to sign in without a password.
struct ProviderButton {
    name: &'static str,
    icon: &'static str,
    href: String,
}

/// The providers that are configured, in the order of their buttons.
fn providers(state: &AppState) -> Vec<ProviderButton> {
    let button = |provider: Provider| ProviderButton {
        name: name_of(provider),
        icon: icon_of(provider),
        href: format!("/api/auth/oauth/{}/login", provider.as_str()),
    };
    state.config().oauth.configured().map(button).collect()
}

/// A provider as people call it.
pub(crate) const fn name_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Idp => "single sign-on",
        Provider::Codehost => "the code host",
    }
}

/// Its icon.
const fn icon_of(provider: Provider) -> &'static str {
    match provider {
        Provider::Idp => "person",
        Provider::Codehost => "branch",
    }
}

/// Inputs of `pages/entrance/login.html`.
#[derive(Template)]
#[template(path = "pages/entrance/login.html")]
struct LoginPage<'a> {
    title: &'static str,
    is_demo: bool,
    is_in_place: bool,
    /// `reload`, or the address to go to.
    afterwards: &'a str,
    /// The address to go to where no script reloads anything.
    next: &'a str,
    refusal: Option<String>,
    /// The name that was typed before, if a form was refused.
    username: String,
    providers: Vec<ProviderButton>,
    /// Whether a link for a new password can be mailed.
    sends_mail: bool,
}

/// Where the form stands.
pub(super) enum Place<'a> {
    /// In the place of this page.
    Of(&'a str),
    /// On its own page, on the way to this one.
    Before(&'a str),
}

/// A sign-in that was refused, and the name it was tried with, as far as that
/// is known.
pub(super) struct Refused {
    refusal: Refusal,
    username: String,
}

/// The form that signs in.
pub(super) async fn form(
    state: &AppState,
    place: &Place<'_>,
    refused: Option<Refused>,
) -> Result<Response, ApiError> {
    let (is_in_place, afterwards, next) = match *place {
        Place::Of(page) => (true, "reload", page),
        Place::Before(page) => (false, page, page),
    };
    let (refusal, username) = match refused {
        Some(Refused { refusal, username }) => (Some(refusal.sentence()), username),
        None => (None, String::new()),
    };
    answer(&LoginPage {
        title: "Sign in",
        is_demo: state.config().demo,
        is_in_place,
        afterwards,
        next,
        refusal,
        username,
        providers: providers(state),
        sends_mail: state.mail_config().await.is_ok_and(|config| mail::is_configured(&config)),
    })
}

/// Signing in at its own address; afterwards there is the home page.
pub(crate) async fn login(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    Query(asked): Query<Params>,
) -> Result<Response, ApiError> {
    if !matches!(caller.principal(), Principal::Anonymous) {
        // Whoever is in already hears all the same how the sign-in at the provider ended.
        return match asked.refusal {
            None => Ok(home()),
            Some(refusal) => notice(&NoticePage {
                is_demo: state.config().demo,
                title: "No new sign-in",
                sentence: refusal.sentence().into(),
                href: "/",
                leads_to: "Continue to Callboard",
            }),
        };
    }
    match first_administrator::state(state.store()).await? {
        SetupState::Needed => return super::setup::form(&state, "/", asked.refusal),
        SetupState::NoAccountLeft => return super::setup::no_account_left(&state),
        SetupState::Done => {}
    }
    let refused = asked.refusal.map(|refusal| {
        let open = || state.cookies().open::<RefusedName>(&headers, state.cookie_form(&headers), state.now());
        // A provider was given no name here.
        let typed = if matches!(refusal, Refusal::Provider(_)) { None } else { open() };
        Refused { refusal, username: typed.map(|typed| typed.value.into_name()).unwrap_or_default() }
    });
    form(&state, &Place::Before(asked.next.as_deref().unwrap_or("/")), refused).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(query: &str) -> Params {
        Params::from_query(&QueryReader::parse(query).unwrap()).unwrap()
    }

    fn refusal(query: &str) -> Option<Refusal> {
        asked(query).refusal
    }

    #[test]
    fn nothing_of_the_address_is_shown() {
        assert_eq!(refusal(""), None);
        assert_eq!(refusal("error=account-exists"), Some(Refusal::Provider(OauthRefusal::AccountExists)));
        assert_eq!(refusal("error=invalid_credentials"), Some(Refusal::Credentials));
        assert_eq!(refusal("error=%3Cb%3Ecall+us%3C/b%3E"), Some(Refusal::Provider(OauthRefusal::Failed)));
        assert_eq!(asked("next=/projects/3").next.as_deref(), Some("/projects/3"));
        assert_eq!(asked("next=//evil.example").next, None);
    }
}
