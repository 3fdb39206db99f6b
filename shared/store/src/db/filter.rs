//! The one place where SQL is put together at run time: optional conditions
//! of a list. Column names and operators come from the code, values are
//! always bound.

use super::{Args, Backend, Value};

/// A statement under construction: a base text with its bound values, to
/// which optional conditions are added.
#[derive(Debug)]
pub struct Filter {
    backend: Backend,
    text: String,
    args: Args,
}

impl Filter {
    /// Starts with a text that ends inside a `WHERE` clause and the values it
    /// already binds.
    #[must_use]
    pub fn new(backend: Backend, base: &'static str, args: Args) -> Self {
        Self { backend, text: super::dialect::render(base, backend), args }
    }

    /// Adds ` AND <condition>`; each `?` in it binds the next of `values`.
    /// Dialect calls of [`super::Statement`] may be used.
    #[must_use]
    pub fn and(self, condition: &'static str, values: Args) -> Self {
        self.push(" AND ", condition, values)
    }

    /// [`Filter::and`] when there is a value.
    #[must_use]
    pub fn and_if<T>(self, condition: &'static str, value: Option<T>) -> Self
    where
        Value: From<T>,
    {
        match value {
            Some(value) => self.and(condition, vec![Value::from(value)]),
            None => self,
        }
    }

    /// [`Filter::and`] for each of some values.
    #[must_use]
    pub fn and_each<T>(self, condition: &'static str, values: impl IntoIterator<Item = T>) -> Self
    where
        Value: From<T>,
    {
        values.into_iter().fold(self, |filter, value| filter.and(condition, vec![Value::from(value)]))
    }

    /// Ends the statement, e.g. with `ORDER BY … LIMIT ?`.
    #[must_use]
    pub fn end(self, tail: &'static str, values: Args) -> Self {
        self.push(" ", tail, values)
    }

    fn push(mut self, joiner: &str, part: &'static str, values: Args) -> Self {
        self.text.push_str(joiner);
        let mut numbered = String::with_capacity(part.len() + 8);
        let mut next = self.args.len();
        for piece in part.split_inclusive('?') {
            if let Some(head) = piece.strip_suffix('?') {
                next += 1;
                numbered.push_str(head);
                numbered.push('$');
                numbered.push_str(&next.to_string());
            } else {
                numbered.push_str(piece);
            }
        }
        self.text.push_str(&super::dialect::render(&numbered, self.backend));
        self.args.extend(values);
        debug_assert_eq!(next, self.args.len(), "placeholders and values differ: {}", self.text);
        self
    }

    /// The text, for the test that prepares every statement.
    #[must_use]
    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(super) fn into_parts(self) -> (String, Args) {
        (self.text, self.args)
    }
}
