//! What an edit says about one field: nothing, that it is cleared, or a new
//! value.

/// One field of an edit. Absent is [`Change::Keep`], `null` is
/// [`Change::Clear`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Change<T> {
    /// It stays as it is.
    #[default]
    Keep,
    /// It has no value any more.
    Clear,
    /// It has this value.
    Set(T),
}

impl<T> Change<T> {
    /// The value that is set, if one is.
    #[must_use]
    pub const fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// The value that is set, for a new entity: nothing and cleared are the
    /// same there.
    #[must_use]
    pub fn into_value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// The same change of another value.
    #[must_use]
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Change<U> {
        match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(convert(value)),
        }
    }

    /// Whether nothing is said about the field.
    #[must_use]
    pub const fn is_keep(&self) -> bool {
        matches!(self, Self::Keep)
    }

    /// The field after the edit, given what it holds.
    #[must_use]
    pub fn applied_to(self, stored: Option<T>) -> Option<T> {
        match self {
            Self::Keep => stored,
            Self::Clear => None,
            Self::Set(value) => Some(value),
        }
    }

    /// The change with its value turned into another one.
    ///
    /// # Errors
    /// Those of `turn`.
    pub fn try_map<U, E>(self, turn: impl FnOnce(T) -> Result<U, E>) -> Result<Change<U>, E> {
        Ok(match self {
            Self::Keep => Change::Keep,
            Self::Clear => Change::Clear,
            Self::Set(value) => Change::Set(turn(value)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_keeps_null_clears_and_a_value_replaces() {
        assert_eq!(Change::Keep.applied_to(Some(1)), Some(1));
        assert_eq!(Change::Clear.applied_to(Some(1)), None);
        assert_eq!(Change::Set(2).applied_to(Some(1)), Some(2));
        assert_eq!(Change::Set(2).applied_to(None), Some(2));
    }
}
