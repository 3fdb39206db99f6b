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
}
