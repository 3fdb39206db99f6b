//! Sign-in at providers: which are configured, where they are, and who of
//! them may come in.

use callboard_auth::oauth::{Allowlist, Provider};

use super::Secret;
use super::reader::Reader;
use super::registry::{Kind, Value, Variable};

/// The variables of one provider.
#[derive(Debug, Clone, Copy)]
struct ProviderVariables {
    client_id: Variable,
    client_secret: Variable,
    issuer: Option<Variable>,
    authorize_url: Variable,
    token_url: Variable,
    userinfo_url: Variable,
}

const fn address(name: &'static str, default: Value, meaning: &'static str) -> Variable {
    Variable { name, kind: Kind::Address, default, meaning }
}

const IDP: ProviderVariables = ProviderVariables {
    client_id: Variable {
        name: "SERVICE_OAUTH_IDP_CLIENT_ID",
        kind: Kind::Text,
        default: Value::Unset,
        meaning: "Client id at the identity provider (OpenID Connect). With id and secret people can sign in there; its \
                  redirect address is `<site>/api/auth/oauth/idp/callback`.",
    },
    client_secret: Variable {
        name: "SERVICE_OAUTH_IDP_CLIENT_SECRET",
        kind: Kind::Secret,
        default: Value::Unset,
        meaning: "Client secret at the identity provider.",
    },
    issuer: Some(address(
        "SERVICE_OAUTH_IDP_ISSUER",
        Value::Text("https://accounts.google.com"),
        "Issuer of the identity provider; its endpoints are read from `/.well-known/openid-configuration` below it.",
    )),
    authorize_url: address(
        "SERVICE_OAUTH_IDP_AUTHORIZE_URL",
        Value::Unset,
        "Where people sign in, instead of what the issuer says.",
    ),
    token_url: address(
        "SERVICE_OAUTH_IDP_TOKEN_URL",
        Value::Unset,
        "Where a code is exchanged, instead of what the issuer says.",
    ),
    userinfo_url: address(
        "SERVICE_OAUTH_IDP_USERINFO_URL",
        Value::Unset,
        "Where the profile is read, instead of what the issuer says. With all three addresses the issuer is not asked.",
    ),
};

const CODEHOST: ProviderVariables = ProviderVariables {
    client_id: Variable {
        name: "SERVICE_OAUTH_CODEHOST_CLIENT_ID",
        kind: Kind::Text,
        default: Value::Unset,
        meaning: "Client id at the code host (GitHub, or one that answers like it). Redirect address: \
                  `<site>/api/auth/oauth/codehost/callback`.",
    },
    client_secret: Variable {
        name: "SERVICE_OAUTH_CODEHOST_CLIENT_SECRET",
        kind: Kind::Secret,
        default: Value::Unset,
        meaning: "Client secret at the code host.",
    },
    issuer: None,
    authorize_url: address(
        "SERVICE_OAUTH_CODEHOST_AUTHORIZE_URL",
        Value::Text("https://github.com/login/oauth/authorize"),
        "Where people sign in at the code host.",
    ),
    token_url: address(
        "SERVICE_OAUTH_CODEHOST_TOKEN_URL",
        Value::Text("https://github.com/login/oauth/access_token"),
        "Where a code is exchanged at the code host.",
    ),
    userinfo_url: address(
        "SERVICE_OAUTH_CODEHOST_USERINFO_URL",
        Value::Text("https://api.github.com/user"),
        "Where the account is read at the code host; its addresses and organisations are read from `/emails` and `/orgs` \
         below it.",
    ),
};

/// `SERVICE_OAUTH_ALLOWED_DOMAINS`
const ALLOWED_DOMAINS: Variable = Variable {
    name: "SERVICE_OAUTH_ALLOWED_DOMAINS",
    kind: Kind::Words,
    default: Value::Unset,
    meaning: "E-mail domains that may sign in at a provider. Not set: all.",
};
/// `SERVICE_OAUTH_CODEHOST_ALLOWED_ORGS`
const ALLOWED_ORGS: Variable = Variable {
    name: "SERVICE_OAUTH_CODEHOST_ALLOWED_ORGS",
    kind: Kind::Words,
    default: Value::Unset,
    meaning: "Organisations at the code host whose members may sign in; asks for the scope `read:org`. Not set: all.",
};

/// The variables of this part, in the order of the table.
pub(super) fn variables() -> Vec<Variable> {
    let of = |provider: ProviderVariables| {
        let issuer = provider.issuer.into_iter();
        [provider.client_id, provider.client_secret].into_iter().chain(issuer).chain([
            provider.authorize_url,
            provider.token_url,
            provider.userinfo_url,
        ])
    };
    of(IDP).chain(of(CODEHOST)).chain([ALLOWED_DOMAINS, ALLOWED_ORGS]).collect()
}

/// One configured provider.
#[derive(Debug, Clone)]
pub struct ProviderConfig {
    /// Client id.
    pub client_id: String,
    /// Client secret.
    pub client_secret: Secret,
    /// Where endpoints that are not given are discovered.
    pub issuer: Option<String>,
    /// Where people sign in.
    pub authorize_url: Option<String>,
    /// Where a code is exchanged.
    pub token_url: Option<String>,
    /// Where the profile is read.
    pub userinfo_url: Option<String>,
}

/// Sign-in at providers.
#[derive(Debug, Clone, Default)]
pub struct OauthConfig {
    idp: Option<ProviderConfig>,
    codehost: Option<ProviderConfig>,
    /// Who may come in.
    pub allowlist: Allowlist,
    /// Providers with half of their id and secret.
    half: Vec<&'static str>,
}

impl OauthConfig {
    /// A provider, when it is configured.
    #[must_use]
    pub const fn provider(&self, provider: Provider) -> Option<&ProviderConfig> {
        match provider {
            Provider::Idp => self.idp.as_ref(),
            Provider::Codehost => self.codehost.as_ref(),
        }
    }

    /// The configured providers, in the order of the buttons.
    pub fn configured(&self) -> impl Iterator<Item = Provider> + '_ {
        Provider::ALL.into_iter().filter(|provider| self.provider(*provider).is_some())
    }

    /// What the operator should know.
    pub(super) fn warnings(&self) -> impl Iterator<Item = String> + '_ {
        self.half.iter().map(|prefix| {
            format!("{prefix}_CLIENT_ID and {prefix}_CLIENT_SECRET belong together; one is missing, so this sign-in is hidden")
        })
    }
}

/// Reads this part of the configuration.
pub(super) fn read(reader: &Reader) -> OauthConfig {
    let mut half = Vec::new();
    let mut of = |variables: ProviderVariables, prefix| {
        let found = provider(reader, variables);
        if found.is_none()
            && (reader.is_set(variables.client_id.name) || reader.is_set(variables.client_secret.name))
        {
            half.push(prefix);
        }
        found
    };
    let (idp, codehost) = (of(IDP, "SERVICE_OAUTH_IDP"), of(CODEHOST, "SERVICE_OAUTH_CODEHOST"));
    let allowlist =
        Allowlist { domains: reader.words(&ALLOWED_DOMAINS), organisations: reader.words(&ALLOWED_ORGS) };
    OauthConfig { idp, codehost, allowlist, half }
}

fn provider(reader: &Reader, variables: ProviderVariables) -> Option<ProviderConfig> {
    let client_id = reader.optional_text(&variables.client_id);
    let client_secret = reader.optional_text(&variables.client_secret);
    // Every variable is read, so that a wrong address is told before the rest is there.
    let issuer = variables.issuer.and_then(|issuer| reader.address(&issuer));
    let authorize_url = reader.address(&variables.authorize_url);
    let token_url = reader.address(&variables.token_url);
    let userinfo_url = reader.address(&variables.userinfo_url);
    Some(ProviderConfig {
        client_id: client_id.filter(|id| !id.is_empty())?,
        client_secret: client_secret
            .filter(|secret| !secret.is_empty())
            .map(|secret| Secret::new(&secret))?,
        issuer,
        authorize_url,
        token_url,
        userinfo_url,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::Config;
    use callboard_auth::oauth::Provider;

    fn read(pairs: &[(&str, &str)]) -> Result<Config, String> {
        let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::from_env(pairs).map_err(|errors| errors.to_string())
    }

    #[test]
    fn a_provider_takes_both_halves() {
        let id = ("SERVICE_OAUTH_IDP_CLIENT_ID", "callboard");
        let half = read(&[id]).unwrap();
        assert_eq!(half.oauth.configured().count(), 0);
        assert!(
            half.warnings.iter().any(|warning| warning.contains("belong together")),
            "{:?}",
            half.warnings
        );
        let whole = read(&[id, ("SERVICE_OAUTH_IDP_CLIENT_SECRET", "s3cret-value")]).unwrap();
        assert_eq!(whole.oauth.configured().collect::<Vec<_>>(), [Provider::Idp]);
        assert!(!format!("{whole:?}").contains("s3cret-value"));
    }

    #[test]
    fn an_address_has_to_be_safe_or_on_this_machine() {
        let text = read(&[("SERVICE_OAUTH_IDP_TOKEN_URL", "http://idp.example/token")]).unwrap_err();
        assert!(text.contains("SERVICE_OAUTH_IDP_TOKEN_URL must be an https address"), "{text}");
        assert!(read(&[("SERVICE_OAUTH_IDP_TOKEN_URL", "http://127.0.0.1:9/token")]).is_ok());
    }
}
