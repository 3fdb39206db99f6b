//! Statements written once, rendered per engine.
//!
//! Both engines understand `$1`, `ON CONFLICT`, `RETURNING`, row comparisons
//! and window functions. What differs is written as a small call in the text:
//!
//! | In the text | PostgreSQL | SQLite |
//! |---|---|---|
//! | `in_ints($2)`, `in_texts($2)` | `= ANY($2)` | `IN (SELECT value FROM json_each($2))` |
//! | `in_bytes($2)` | `= ANY($2)` | `IN (SELECT unhex(value) FROM json_each($2))` |
//! | `for_update()` | `FOR UPDATE` | nothing: a write transaction holds the only lock |
//! | `skip_locked()` | `FOR UPDATE SKIP LOCKED` | nothing, likewise |

use std::fmt::Write as _;
use std::sync::OnceLock;

use super::{Backend, Row};
use crate::Result;

/// A named SQL statement. Rendered once per process and engine.
#[derive(Debug)]
pub struct Statement {
    /// Name for logs and for the test that prepares every statement.
    pub name: &'static str,
    sqlite_text: &'static str,
    postgres_text: &'static str,
    /// See [`Statement::whole`].
    columns: Option<&'static str>,
    sqlite: OnceLock<&'static str>,
    postgres: OnceLock<&'static str>,
}

impl Statement {
    /// Declares a statement; see the module's table for what may be in it.
    #[must_use]
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self::of_each(name, text, text)
    }

    /// Declares a statement that the engines need worded differently beyond
    /// what dialect calls can say.
    #[must_use]
    pub const fn of_each(name: &'static str, sqlite_text: &'static str, postgres_text: &'static str) -> Self {
        Self {
            name,
            sqlite_text,
            postgres_text,
            columns: None,
            sqlite: OnceLock::new(),
            postgres: OnceLock::new(),
        }
    }

    /// Has SQLite tell all rows as one, a JSON text: every row by itself is a message
    /// of the thread that holds the file, whose reader it wakes, which takes longer
    /// than most rows do. For what is asked for hundreds of rows at a time and reads
    /// all of them. `columns` has a letter for each column: `b` for bytes that are
    /// never null, `v` for integers and texts; there is none for fractions, which JSON
    /// would round.
    #[must_use]
    pub const fn whole(mut self, columns: &'static str) -> Self {
        self.columns = Some(columns);
        self
    }

    /// The text for one engine.
    pub fn sql(&self, backend: Backend) -> &'static str {
        let (slot, text) = match backend {
            Backend::Sqlite => (&self.sqlite, self.sqlite_text),
            Backend::Postgres => (&self.postgres, self.postgres_text),
        };
        // Statements are statics, so what is rendered lives as long as the
        // process and is made at most once per engine.
        slot.get_or_init(|| {
            let text = render(text, backend);
            let text = match (self.columns, backend) {
                (Some(columns), Backend::Sqlite) => told_whole(&text, columns),
                _ => text,
            };
            Box::leak(text.into_boxed_str())
        })
    }

    /// The rows that SQLite answered: those of one that are told as one.
    pub(super) fn rows(&self, answered: Vec<Row>) -> Result<Vec<Row>> {
        if self.columns.is_none() {
            return Ok(answered);
        }
        answered.first().map_or_else(|| Ok(Vec::new()), Row::unfold)
    }
}

/// A text whose rows come as one.
fn told_whole(text: &str, columns: &str) -> String {
    let (mut names, mut cells) = (String::new(), String::new());
    for (at, letter) in columns.char_indices() {
        let separator = if at == 0 { "" } else { ", " };
        let _ = write!(names, "{separator}c{at}");
        let _ = match letter {
            'b' => write!(cells, "{separator}hex(c{at})"),
            _ => write!(cells, "{separator}c{at}"),
        };
    }
    format!("WITH told ({names}) AS ({text}) SELECT json_group_array(json_array({cells})) FROM told")
}

const CALLS: [&str; 5] = ["in_ints", "in_texts", "in_bytes", "for_update", "skip_locked"];

/// Replaces the dialect calls in a text.
pub(super) fn render(text: &str, backend: Backend) -> String {
    let mut out = String::with_capacity(text.len() + 64);
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let (head, tail) = rest.split_at(open);
        let close = tail.find(')').map_or(tail.len(), |at| at + 1);
        let argument = tail.get(1..close.saturating_sub(1)).unwrap_or_default();
        let call = CALLS.into_iter().find(|call| head.ends_with(call));
        if let Some(call) = call {
            out.push_str(&head[..head.len() - call.len()]);
            out.push_str(&expand(call, argument, backend));
            rest = &tail[close..];
        } else {
            out.push_str(head);
            out.push('(');
            rest = &tail[1..];
        }
    }
    out.push_str(rest);
    out
}

fn expand(call: &str, argument: &str, backend: Backend) -> String {
    match (call, backend) {
        ("for_update", Backend::Postgres) => "FOR UPDATE".to_owned(),
        ("skip_locked", Backend::Postgres) => "FOR UPDATE SKIP LOCKED".to_owned(),
        ("for_update" | "skip_locked", Backend::Sqlite) => String::new(),
        (_, Backend::Postgres) => format!("= ANY({argument})"),
        ("in_bytes", Backend::Sqlite) => {
            format!("IN (SELECT unhex(value) FROM json_each({argument}))")
        }
        (_, Backend::Sqlite) => format!("IN (SELECT value FROM json_each({argument}))"),
    }
}

/// Declares the statements of a module and lists them as `STATEMENTS`, from
/// where the test that prepares every statement finds them. A statement with a
/// text behind `postgres` has that one there; `whole` is [`Statement::whole`].
///
/// It has a text of its own where a list is looked up: a list of keys says nothing of how
/// many they are, and the planner, as long as it takes a young table for empty,
/// reads all rows of a project and picks those of the list. `unnest` with a
/// `LATERAL` that cannot be merged makes it look for each. There an index that
/// begins with the project and holds what is asked for seems as good as that of
/// the key, also in a large table. `key BETWEEN x AND x ORDER BY key LIMIT 1`
/// is the same row as `key = x`, but only the index of the key has that order.
macro_rules! statements {
    (@one $name:ident, $text:expr) => {
        $crate::db::Statement::new(concat!(module_path!(), "::", stringify!($name)), $text)
    };
    (@one $name:ident, $text:expr, $postgres:expr) => {
        $crate::db::Statement::of_each(concat!(module_path!(), "::", stringify!($name)), $text, $postgres)
    };
    ($($(#[$doc:meta])* $name:ident = $text:expr $(, whole $columns:literal)? $(, postgres $postgres:expr)?;)+) => {
        $($(#[$doc])* pub(crate) static $name: $crate::db::Statement =
            $crate::db::statements!(@one $name, $text $(, $postgres)?)$(.whole($columns))?;)+
        /// Every statement of this module.
        pub(crate) static STATEMENTS: &[&$crate::db::Statement] = &[$(&$name),+];
    };
}
pub(crate) use statements;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialect_calls_are_expanded_and_the_rest_is_left_alone() {
        let text = "SELECT max(a) FROM t WHERE id in_ints($2) AND h in_bytes($3) for_update()";
        assert_eq!(
            render(text, Backend::Postgres),
            "SELECT max(a) FROM t WHERE id = ANY($2) AND h = ANY($3) FOR UPDATE"
        );
        assert_eq!(
            render(text, Backend::Sqlite),
            "SELECT max(a) FROM t WHERE id IN (SELECT value FROM json_each($2)) \
             AND h IN (SELECT unhex(value) FROM json_each($3)) "
        );
    }

    #[test]
    fn rows_that_come_as_one_are_told_so_to_sqlite_alone() {
        static LIST: Statement =
            Statement::new("tests::LIST", "SELECT id, h FROM t WHERE id in_ints($1)").whole("vb");
        assert_eq!(
            LIST.sql(Backend::Sqlite),
            "WITH told (c0, c1) AS (SELECT id, h FROM t WHERE id IN (SELECT value FROM json_each($1))) \
             SELECT json_group_array(json_array(c0, hex(c1))) FROM told"
        );
        assert_eq!(LIST.sql(Backend::Postgres), "SELECT id, h FROM t WHERE id = ANY($1)");
    }
}
