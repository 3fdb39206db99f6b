//! What counts of a provider's answer about a person.

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Longest name and picture address kept, characters.
const MAX_TEXT_CHARS: usize = 200;
/// Longest e-mail address kept, characters (RFC 5321 §4.5.3.1).
const MAX_EMAIL_CHARS: usize = 254;

/// A person at a provider.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// The account's id there; never changes.
    pub id: String,
    /// Name to show.
    pub name: Option<String>,
    /// E-mail address.
    pub email: Option<String>,
    /// Whether the provider asserts that the address is the person's.
    pub email_verified: bool,
    /// Address of a picture.
    pub avatar: Option<String>,
}

impl Profile {
    /// Reads the claims of an OpenID Connect provider.
    #[must_use]
    pub fn of_idp(claims: &Value) -> Option<Self> {
        // The standard claim decides; the other name is that of a provider that leaves it out.
        let claim = claims.get("email_verified").unwrap_or(&claims["verified_email"]);
        let verified = is_true(claim);
        let email = email(&claims["email"]);
        Some(Self {
            id: identifier(&claims["sub"]).or_else(|| identifier(&claims["id"]))?,
            name: text(&claims["name"]),
            email_verified: verified && email.is_some(),
            email,
            avatar: picture(&claims["picture"]),
        })
    }

    /// Reads the account of a code host. Its public address proves nothing;
    /// `verified_email` is the primary, verified one of its list.
    #[must_use]
    pub fn of_codehost(account: &Value, verified_email: Option<String>) -> Option<Self> {
        Some(Self {
            id: identifier(&account["id"])?,
            name: text(&account["name"]).or_else(|| text(&account["login"])),
            email_verified: verified_email.is_some(),
            email: verified_email,
            avatar: picture(&account["avatar_url"]),
        })
    }

    /// A short name for the id, where the id itself is too long or too odd to
    /// be part of a name.
    #[must_use]
    pub fn id_fingerprint(&self) -> String {
        const BYTES: usize = 12;
        hex::encode(&Sha256::digest(self.id.as_bytes())[..BYTES])
    }

    /// The address, when the provider asserts it.
    #[must_use]
    pub fn verified_email(&self) -> Option<&str> {
        self.email.as_deref().filter(|_| self.email_verified)
    }
}

/// The primary address of a code host's list, when it is verified.
#[must_use]
pub fn primary_email(list: &Value) -> Option<String> {
    let entries = list.as_array()?;
    let primary = entries.iter().find(|entry| is_true(&entry["primary"]) && is_true(&entry["verified"]))?;
    email(&primary["email"])
}

fn is_true(value: &Value) -> bool {
    value == &Value::Bool(true) || value.as_str().is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// Providers write ids as numbers or as texts.
fn identifier(value: &Value) -> Option<String> {
    let id = match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => return None,
    };
    let is_plain = !id.is_empty() && id.len() <= 255 && !id.chars().any(char::is_control);
    is_plain.then_some(id)
}

fn text(value: &Value) -> Option<String> {
    let clean: String = value.as_str()?.chars().filter(|c| !c.is_control()).take(MAX_TEXT_CHARS).collect();
    let trimmed = clean.trim();
    (!trimmed.is_empty()).then(|| trimmed.to_owned())
}

fn email(value: &Value) -> Option<String> {
    let address = value.as_str()?.trim();
    let fits = address.chars().count() <= MAX_EMAIL_CHARS
        && !address.chars().any(|c| c.is_control() || c.is_whitespace())
        && super::domain_of(address).is_some();
    fits.then(|| address.to_owned())
}

fn picture(value: &Value) -> Option<String> {
    let address = value.as_str()?;
    let fits = address.starts_with("https://")
        && address.chars().count() <= MAX_TEXT_CHARS
        && !address.chars().any(|c| c.is_control() || c.is_whitespace());
    fits.then(|| address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_address_counts_only_when_the_provider_asserts_it() {
        let of = |claims: Value| Profile::of_idp(&claims).unwrap();
        let verified = of(json!({ "sub": "7", "email": "a@b.example", "email_verified": true }));
        assert_eq!(verified.verified_email(), Some("a@b.example"));
        for claims in [
            json!({ "sub": "7", "email": "a@b.example" }),
            json!({ "sub": "7", "email": "a@b.example", "email_verified": "no" }),
            json!({ "sub": "7", "email_verified": true }),
            json!({ "sub": "7", "email": "a@b.example", "email_verified": false, "verified_email": true }),
        ] {
            assert_eq!(of(claims).verified_email(), None);
        }
        assert_eq!(Profile::of_idp(&json!({ "email": "a@b.example" })), None);
    }

    #[test]
    fn a_code_hosts_public_address_is_never_used() {
        let account = json!({ "id": 42, "login": "ada", "email": "public@b.example",
            "avatar_url": "http://insecure.example/a.png" });
        let profile = Profile::of_codehost(&account, None).unwrap();
        assert_eq!((profile.id.as_str(), profile.name.as_deref()), ("42", Some("ada")));
        assert_eq!((profile.email, profile.avatar), (None, None));
    }

    #[test]
    fn of_a_list_the_primary_verified_address_is_taken() {
        let list = json!([
            { "email": "old@b.example", "primary": false, "verified": true },
            { "email": "new@b.example", "primary": true, "verified": true },
        ]);
        assert_eq!(primary_email(&list).as_deref(), Some("new@b.example"));
        assert_eq!(
            primary_email(&json!([{ "email": "x@b.example", "primary": true, "verified": false }])),
            None
        );
        assert_eq!(primary_email(&json!({ "message": "not found" })), None);
    }
}
