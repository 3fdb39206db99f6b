//! Who of a provider's accounts may sign in here.

/// Domains and organisations that may sign in; an empty list asks nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Allowlist {
    /// E-mail domains, for every provider.
    pub domains: Vec<String>,
    /// Organisations at the code host.
    pub organisations: Vec<String>,
}

impl Allowlist {
    /// Whether an address that the provider verified may sign in. With a
    /// list, an account without such an address may not.
    #[must_use]
    pub fn admits_email(&self, verified: Option<&str>) -> bool {
        if self.domains.is_empty() {
            return true;
        }
        let Some(domain) = verified.and_then(domain_of) else { return false };
        self.domains.iter().any(|allowed| normalised(allowed).as_deref() == Some(domain.as_str()))
    }

    /// Whether a member of these organisations may sign in.
    #[must_use]
    pub fn admits_organisations<'o>(&self, memberships: impl IntoIterator<Item = &'o str>) -> bool {
        self.organisations.is_empty()
            || memberships
                .into_iter()
                .any(|member| self.organisations.iter().any(|allowed| allowed.eq_ignore_ascii_case(member)))
    }
}

/// The domain of an address: what follows the last `@`, in the one form in
/// which domains are compared.
#[must_use]
pub fn domain_of(address: &str) -> Option<String> {
    let (local, domain) = address.rsplit_once('@')?;
    if local.is_empty() || local.contains('@') {
        // Two signs: the part a reader takes for the domain need not be it.
        return None;
    }
    normalised(domain)
}

fn normalised(domain: &str) -> Option<String> {
    match url::Host::parse(domain.trim()).ok()? {
        url::Host::Domain(domain) => Some(domain),
        url::Host::Ipv4(_) | url::Host::Ipv6(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn corp() -> Allowlist {
        Allowlist { domains: vec!["Corp.example".to_owned()], organisations: vec!["Acme".to_owned()] }
    }

    #[test]
    fn only_the_exact_domain_passes_in_any_case() {
        for address in ["a@corp.example", "a@CORP.Example"] {
            assert!(corp().admits_email(Some(address)), "{address}");
        }
        for address in [
            "a@other.example",
            "a@sub.corp.example",
            "a@x@corp.example",
            "a@corp.example.evil",
            "@corp.example",
            "corp.example",
            "",
        ] {
            assert!(!corp().admits_email(Some(address)), "{address}");
        }
        assert!(!corp().admits_email(None));
        assert!(Allowlist::default().admits_email(None));
    }

    #[test]
    fn domains_in_letters_and_in_their_ascii_form_are_the_same() {
        let list = Allowlist { domains: vec!["bücher.example".to_owned()], ..Allowlist::default() };
        assert!(list.admits_email(Some("a@xn--bcher-kva.example")));
    }

    #[test]
    fn one_organisation_is_enough() {
        assert!(corp().admits_organisations(["other", "acme"]));
        assert!(!corp().admits_organisations(["acme-corp"]));
        assert!(!corp().admits_organisations([]));
        assert!(Allowlist::default().admits_organisations([]));
    }
}
