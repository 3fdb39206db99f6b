//! `/login`, and the same form in the place of every other page.

use askama::Template;
use axum::extract::State;
use axum::response::Response;
use callboard_auth::Principal;
use callboard_auth::oauth::{OauthRefusal, Provider};
use callboard_http::extract::{Caller, FromQuery, Query, QueryReader};
use callboard_http::{ApiError, AppState, mail};
use callboard_query::accounts::setup as first_administrator;

use super::{NoticePage, home, notice};
use crate::filters;
use crate::visit::answer;

/// How a sign-in at a provider ended, as the provider's callback says it.
pub(crate) struct Asked {
    refusal: Option<OauthRefusal>,
}

impl FromQuery for Asked {
    fn from_query(query: &QueryReader) -> Result<Self, ApiError> {
        // A code this version does not know still was a refusal.
        let code = query.text("error")?;
        Ok(Self { refusal: code.map(|code| OauthRefusal::parse(&code).unwrap_or(OauthRefusal::Failed)) })
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
struct LoginPage {
    title: &'static str,
    is_in_place: bool,
    /// `reload`, or the address to go to.
    afterwards: &'static str,
    refusal: Option<String>,
    providers: Vec<ProviderButton>,
    /// Whether a link for a new password can be mailed.
    sends_mail: bool,
}

/// The form that signs in.
pub(super) fn form(
    state: &AppState,
    afterwards: &'static str,
    refusal: Option<OauthRefusal>,
) -> Result<Response, ApiError> {
    answer(&LoginPage {
        title: "Sign in",
        is_in_place: afterwards == "reload",
        afterwards,
        refusal: refusal.map(|refusal| refusal.to_string()),
        providers: providers(state),
        sends_mail: mail::is_configured(state.config()),
    })
}

/// Signing in at its own address; afterwards there is the home page.
pub(crate) async fn login(
    State(state): State<AppState>,
    caller: Caller,
    Query(asked): Query<Asked>,
) -> Result<Response, ApiError> {
    if !matches!(caller.principal(), Principal::Anonymous) {
        // Whoever is in already hears all the same how the sign-in at the provider ended.
        return match asked.refusal {
            None => Ok(home()),
            Some(refusal) => notice(&NoticePage {
                title: "No new sign-in",
                sentence: refusal.to_string().into(),
                href: "/",
                leads_to: "Go on to Callboard",
            }),
        };
    }
    if first_administrator::is_needed(state.store()).await? {
        return super::setup::form(&state, "/", asked.refusal);
    }
    form(&state, "/", asked.refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(query: &str) -> Option<OauthRefusal> {
        Asked::from_query(&QueryReader::parse(query).unwrap()).unwrap().refusal
    }

    #[test]
    fn nothing_of_the_address_is_shown() {
        assert_eq!(refusal(""), None);
        assert_eq!(refusal("error=account-exists"), Some(OauthRefusal::AccountExists));
        assert_eq!(refusal("error=%3Cb%3Ecall+us%3C/b%3E"), Some(OauthRefusal::Failed));
    }
}
