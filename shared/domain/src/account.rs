//! Words about accounts: roles, and what an API key may be used for.

/// What an account may do. There is no inheritance between roles: a route
/// lists every role it admits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Everything, in all projects.
    Administrator,
    /// Sends results and triages, in assigned projects.
    Reporter,
    /// Reads, in assigned projects.
    User,
}

impl Role {
    /// Every role, the mightiest first.
    pub const ALL: [Self; 3] = [Self::Administrator, Self::Reporter, Self::User];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Administrator => "administrator",
            Self::Reporter => "reporter",
            Self::User => "user",
        }
    }

    /// Reads the spelling of [`Role::as_str`]; any other is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text)
    }
}

/// What an API key may be used for, at most what its owner may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum KeyPermission {
    /// All that its owner may do.
    Full,
    /// Sending results, and what a pipeline asks about them.
    Ingest,
    /// Reading.
    Read,
    /// The counters for monitoring, nothing else.
    Metrics,
}

impl KeyPermission {
    /// Every permission, the widest first.
    pub const ALL: [Self; 4] = [Self::Full, Self::Ingest, Self::Read, Self::Metrics];

    /// The spelling on the wire and in SQL.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Ingest => "ingest",
            Self::Read => "read",
            Self::Metrics => "metrics",
        }
    }

    /// Reads the spelling of [`KeyPermission::as_str`]; any other is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|permission| permission.as_str() == text)
    }

    /// Whether a key of this permission may create one of `other`.
    #[must_use]
    pub fn includes(self, other: Self) -> bool {
        self == Self::Full || self == other
    }
}

/// The form in which trusted addresses are compared: in any case, except that
/// no letter beyond ASCII becomes one of ASCII (as the Kelvin sign would become
/// a `k`). Such an address is another mailbox.
#[must_use]
pub fn email_key(address: &str) -> String {
    let mut key = String::with_capacity(address.len());
    for char in address.chars() {
        let mut lower = char.to_lowercase();
        if char.is_ascii() || !lower.clone().any(|lower| lower.is_ascii()) {
            key.extend(&mut lower);
        } else {
            key.push(char);
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_are_read_back() {
        assert!(Role::ALL.iter().all(|role| Role::parse(role.as_str()) == Some(*role)));
        assert!(KeyPermission::ALL.iter().all(|p| KeyPermission::parse(p.as_str()) == Some(*p)));
        assert_eq!(Role::parse("Administrator"), None);
        assert!(!KeyPermission::Ingest.includes(KeyPermission::Full));
    }

    #[test]
    fn addresses_are_one_in_any_case_and_look_alikes_are_others() {
        assert_eq!(email_key("Ada@Corp.Example"), "ada@corp.example");
        assert_eq!(email_key("ЗОЯ@пример.рф"), email_key("зоя@ПРИМЕР.рф"));
        for (other, own) in [("\u{212a}im@corp.example", "kim@corp.example"), ("m\u{130}a@x", "mia@x")] {
            assert_ne!(email_key(other), email_key(own));
            assert_ne!(email_key(other), email_key(&own.to_uppercase()));
        }
    }
}
