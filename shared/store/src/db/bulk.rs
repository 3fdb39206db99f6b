//! Many rows in few statements: arrays with `unnest` on PostgreSQL, lists of
//! `VALUES` on SQLite. Rows are written in the order in which they were pushed,
//! so writers that push in key order lock in key order.
//!
//! Measured on 4,000 rows of 26 columns: SQLite needs 20 ms with `VALUES` and
//! 71 ms with one JSON parameter, most of it for taking the JSON apart.

use std::fmt::Write as _;
use std::ops::Range;
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
    sqlite: [OnceLock<&'static str>; SQLITE_ROWS.len()],
    postgres: OnceLock<&'static str>,
}

/// Rows per statement on SQLite: as many of the first as fit, then of the next.
/// Every statement is a way to the connection's thread and back, which takes
/// longer than a row; the batches of running reporters are small, so those
/// need one or two. Still few enough that those which are used stay prepared.
pub(super) const SQLITE_ROWS: [usize; 11] = [128, 64, 32, 20, 10, 6, 5, 4, 3, 2, 1];

/// Bytes of rows per statement on PostgreSQL. The driver leaves Nagle's
/// algorithm on, so a message that does not fit into one small packet waits up
/// to 40 ms for a delayed acknowledgement; measured over loopback, a submission
/// of 100 tests takes 160 ms in whole messages and 30 ms in these.
const POSTGRES_MESSAGE_BYTES: usize = 8_000;

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
        Self {
            name,
            head,
            columns,
            tail,
            scalars,
            sqlite: [const { OnceLock::new() }; SQLITE_ROWS.len()],
            postgres: OnceLock::new(),
        }
    }

    /// Every text this renders to on one engine.
    pub fn texts(&self, backend: Backend) -> Vec<&'static str> {
        match backend {
            Backend::Sqlite => (0..SQLITE_ROWS.len()).map(|size| self.sqlite_sql(size)).collect(),
            Backend::Postgres => vec![self.postgres_sql()],
        }
    }

    /// The text for PostgreSQL: scalars first, then an array per column.
    pub(super) fn postgres_sql(&self) -> &'static str {
        self.postgres.get_or_init(|| {
            let text = format!("{} {} {}", self.head, self.postgres_source(), self.tail);
            leak(&super::dialect::render(&text, Backend::Postgres))
        })
    }

    /// The text for SQLite with so many rows as `SQLITE_ROWS[size]`: the cells
    /// row by row, then the scalars.
    pub(super) fn sqlite_sql(&self, size: usize) -> &'static str {
        self.sqlite[size].get_or_init(|| {
            let count = SQLITE_ROWS[size];
            let cells = count * self.columns.len();
            let mut text = String::new();
            renumber(self.head, cells, &mut text);
            let _ = write!(text, " {} ", self.sqlite_source(count));
            renumber(self.tail, cells, &mut text);
            leak(&super::dialect::render(&text, Backend::Sqlite))
        })
    }

    /// Cells are anonymous parameters: SQLite looks the named ones up in a list.
    fn sqlite_source(&self, count: usize) -> String {
        let mut text = "(SELECT ".to_owned();
        for (at, column) in self.columns.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            let _ = write!(text, "{separator}column{} AS {}", at + 1, column.name());
        }
        let row = vec!["?"; self.columns.len()].join(", ");
        let rows = vec![format!("({row})"); count].join(", ");
        let _ = write!(text, " FROM (VALUES {rows})) AS r");
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
        Rows { columns: self.columns.iter().map(|column| Cells::new(*column)).collect(), len: 0 }
    }
}

/// Adds a text whose numbers of scalars are moved behind the cells.
pub(super) fn renumber(text: &str, cells: usize, into: &mut String) {
    let mut parts = text.split('$');
    into.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number: usize = part[..digits].parse().unwrap_or_default();
        // Writing to a String cannot fail.
        let _ = write!(into, "${}", number + cells);
        into.push_str(&part[digits..]);
    }
}

/// Bulk statements are statics: a text is made once and lives as long.
fn leak(text: &str) -> &'static str {
    Box::leak(text.into())
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
    fn new(column: Column) -> Self {
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
    pub fn push<R>(&mut self, row: R)
    where
        R: IntoIterator<Item = Value, IntoIter: ExactSizeIterator>,
    {
        let row = row.into_iter();
        assert_eq!(row.len(), self.columns.len(), "a bulk row must fill every column");
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

    /// Ranges of rows that fit into [`POSTGRES_MESSAGE_BYTES`], one per statement.
    pub(super) fn messages(&self) -> Vec<Range<usize>> {
        let mut ranges = Vec::new();
        let (mut start, mut bytes) = (0, 0);
        for at in 0..self.len {
            let row: usize = self.columns.iter().map(|cells| cells.bytes(at)).sum();
            if at > start && bytes + row > POSTGRES_MESSAGE_BYTES {
                ranges.push(start..at);
                (start, bytes) = (at, 0);
            }
            bytes += row;
        }
        ranges.push(start..self.len);
        ranges
    }

    /// Indexes into [`SQLITE_ROWS`] and ranges of rows, one per statement.
    pub(super) fn lists(&self) -> Vec<(usize, Range<usize>)> {
        let mut lists = Vec::new();
        let mut start = 0;
        for (size, count) in SQLITE_ROWS.into_iter().enumerate() {
            while self.len - start >= count {
                lists.push((size, start..start + count));
                start += count;
            }
        }
        lists
    }
}

impl Cells {
    /// Bytes of a cell in a PostgreSQL array: its length and itself.
    fn bytes(&self, at: usize) -> usize {
        4 + match self {
            Self::Int(cells) => cells[at].map_or(0, |_| 8),
            Self::Real(cells) => cells[at].map_or(0, |_| 8),
            Self::Text(cells) => cells[at].as_ref().map_or(0, String::len),
            Self::Bytes(cells) => cells[at].as_ref().map_or(0, Vec::len),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static ADD: Bulk = Bulk::new(
        "tests::ADD",
        2,
        "INSERT INTO t (p, q, a, b) SELECT $1, $2, r.a, r.b FROM",
        &[Column::Int("a"), Column::Text("b")],
        "WHERE true",
    );

    #[test]
    fn the_scalars_of_sqlite_follow_the_cells() {
        assert_eq!(
            ADD.sqlite_sql(SQLITE_ROWS.len() - 1),
            "INSERT INTO t (p, q, a, b) SELECT $3, $4, r.a, r.b FROM \
             (SELECT column1 AS a, column2 AS b FROM (VALUES (?, ?))) AS r WHERE true"
        );
        assert_eq!(
            ADD.postgres_sql(),
            "INSERT INTO t (p, q, a, b) SELECT $1, $2, r.a, r.b FROM unnest($3::bigint[], $4::text[]) AS r(a, b) WHERE true"
        );
    }

    #[test]
    fn numbers_of_scalars_are_read_whole() {
        let mut moved = "x = ".to_owned();
        renumber("($1, $2, $10)", 12, &mut moved);
        assert_eq!(moved, "x = ($13, $14, $22)");
    }

    #[test]
    fn every_row_is_in_exactly_one_statement() {
        for count in [1_usize, 7, 8, 31, 32, 33, 71, 200, 300] {
            let mut rows = ADD.rows();
            for at in 0..count {
                rows.push([Value::Int(i64::try_from(at).ok()), Value::Text(Some("x".repeat(at * 40)))]);
            }
            let messages: Vec<usize> = rows.messages().into_iter().flatten().collect();
            assert_eq!(messages, (0..count).collect::<Vec<_>>());
            let lists: Vec<usize> = rows.lists().into_iter().flat_map(|(_, range)| range).collect();
            assert_eq!(lists, (0..count).collect::<Vec<_>>());
        }
    }
}
