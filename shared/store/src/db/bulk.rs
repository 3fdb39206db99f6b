//! Many rows in one statement: arrays with `unnest` on PostgreSQL, one JSON
//! parameter with `json_each` on SQLite. Measured to be the fastest way into
//! either engine short of its private copy protocol.

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::{Backend, Value};

/// The type of a column of a bulk source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// Any integer.
    Int(&'static str),
    /// A score or ratio.
    Real(&'static str),
    /// Text.
    Text(&'static str),
    /// Bytes.
    Bytes(&'static str),
}

impl Column {
    fn name(self) -> &'static str {
        match self {
            Self::Int(name) | Self::Real(name) | Self::Text(name) | Self::Bytes(name) => name,
        }
    }
}

/// A statement of the form `<head> <source of rows> <tail>`. The source is a
/// relation `r` with the declared columns. Scalar parameters come first
/// (`$1` to `$scalars`).
#[derive(Debug)]
pub struct Bulk {
    /// Name for logs and for the test that prepares every statement.
    pub name: &'static str,
    head: &'static str,
    columns: &'static [Column],
    tail: &'static str,
    scalars: usize,
    sqlite: OnceLock<&'static str>,
    postgres: OnceLock<&'static str>,
}

impl Bulk {
    /// Declares a bulk statement. `head` ends where a relation is expected
    /// (`… FROM`), `tail` goes on after it.
    #[must_use]
    pub const fn new(
        name: &'static str,
        scalars: usize,
        head: &'static str,
        columns: &'static [Column],
        tail: &'static str,
    ) -> Self {
        Self { name, head, columns, tail, scalars, sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    /// The text for one engine.
    pub fn sql(&self, backend: Backend) -> &'static str {
        let slot = match backend {
            Backend::Sqlite => &self.sqlite,
            Backend::Postgres => &self.postgres,
        };
        slot.get_or_init(|| {
            let source = match backend {
                Backend::Sqlite => self.sqlite_source(),
                Backend::Postgres => self.postgres_source(),
            };
            let text = format!("{} {source} {}", self.head, self.tail);
            Box::leak(super::dialect::render(&text, backend).into_boxed_str())
        })
    }

    fn sqlite_source(&self) -> String {
        let mut text = "(SELECT ".to_owned();
        for (at, column) in self.columns.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let name = column.name();
            let cell = format!("value->>{at}");
            let cell = match column {
                Column::Bytes(_) => format!("unhex({cell})"),
                _ => cell,
            };
            let _ = write!(text, "{separator}{cell} AS {name}");
        }
        let _ = write!(text, " FROM json_each(${})) AS r", self.scalars + 1);
        text
    }

    fn postgres_source(&self) -> String {
        let mut arrays = String::new();
        let mut names = String::new();
        for (at, column) in self.columns.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let kind = match column {
                Column::Int(_) => "bigint",
                Column::Real(_) => "float8",
                Column::Text(_) => "text",
                Column::Bytes(_) => "bytea",
            };
            let _ = write!(arrays, "{separator}${}::{kind}[]", self.scalars + 1 + at);
            let _ = write!(names, "{separator}{}", column.name());
        }
        format!("unnest({arrays}) AS r({names})")
    }

    /// An empty set of rows for this statement.
    #[must_use]
    pub fn rows(&self) -> Rows {
        Rows { columns: self.columns.iter().map(|column| Cells::of(*column)).collect(), len: 0 }
    }
}

/// Rows on their way into a [`Bulk`] statement, kept by column.
#[derive(Debug)]
pub struct Rows {
    pub(super) columns: Vec<Cells>,
    len: usize,
}

#[derive(Debug)]
pub(super) enum Cells {
    Int(Vec<Option<i64>>),
    Real(Vec<Option<f64>>),
    Text(Vec<Option<String>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Cells {
    fn of(column: Column) -> Self {
        match column {
            Column::Int(_) => Self::Int(Vec::new()),
            Column::Real(_) => Self::Real(Vec::new()),
            Column::Text(_) => Self::Text(Vec::new()),
            Column::Bytes(_) => Self::Bytes(Vec::new()),
        }
    }
}

impl Rows {
    /// Adds a row: one value per declared column, of its type.
    ///
    /// # Panics
    /// When the row does not have the declared form; a mistake in the store
    /// that its first test shows.
    pub fn push<const N: usize>(&mut self, row: [Value; N]) {
        assert_eq!(N, self.columns.len(), "a bulk row must fill every column");
        for (cells, value) in self.columns.iter_mut().zip(row) {
            match (cells, value) {
                (Cells::Int(cells), Value::Int(value)) => cells.push(value),
                (Cells::Real(cells), Value::Real(value)) => cells.push(value),
                (Cells::Text(cells), Value::Text(value)) => cells.push(value),
                (Cells::Bytes(cells), Value::Bytes(value)) => cells.push(value),
                (cells, value) => panic!("a bulk column of {cells:?} was given {value:?}"),
            }
        }
        self.len += 1;
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing to write.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The rows as one JSON array of arrays; bytes as hex.
    pub(super) fn to_json(&self) -> String {
        let mut text = String::with_capacity(self.len * self.columns.len() * 8 + 2);
        text.push('[');
        for at in 0..self.len {
            text.push_str(if at == 0 { "[" } else { ",[" });
            for (column, cells) in self.columns.iter().enumerate() {
                if column > 0 {
                    text.push(',');
                }
                cells.write_json(at, &mut text);
            }
            text.push(']');
        }
        text.push(']');
        text
    }
}

impl Cells {
    fn write_json(&self, at: usize, text: &mut String) {
        match self {
            Self::Int(cells) => match cells[at] {
                Some(value) => {
                    let _ = write!(text, "{value}");
                }
                None => text.push_str("null"),
            },
            Self::Real(cells) => match cells[at] {
                Some(value) => {
                    let _ = write!(text, "{value:?}");
                }
                None => text.push_str("null"),
            },
            Self::Text(cells) => match &cells[at] {
                Some(value) => write_json_text(value, text),
                None => text.push_str("null"),
            },
            Self::Bytes(cells) => match &cells[at] {
                Some(value) => {
                    text.push('"');
                    text.push_str(&hex::encode(value));
                    text.push('"');
                }
                None => text.push_str("null"),
            },
        }
    }
}

fn write_json_text(value: &str, text: &mut String) {
    // Serialising a str cannot fail; the empty string would be the honest
    // remainder if it ever did.
    text.push_str(&serde_json::to_string(value).unwrap_or_else(|_| "\"\"".to_owned()));
}
