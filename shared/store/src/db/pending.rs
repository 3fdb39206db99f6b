//! Statements that SQLite runs one after the other on one way to its thread:
//! writes that are kept until they have to run, and reads that are asked
//! together.
//!
//! The driver takes several statements in one text. Their values are one list:
//! anonymous parameters take its head in the order of their appearance, `$n`
//! its n-th value whichever statement it stands in.

use std::ops::Range;

use sqlx::{AssertSqlSafe, SqlSafeStr as _, SqlStr};

use super::bulk::{Cells, renumber};
use super::{Args, Rows, Value};

/// Most values of statements that run together: their text stays prepared, and
/// how many tests there are would make too many different ones of long lists.
const MOST_TOGETHER: usize = 320;
/// Values from which on what is kept runs before there is more.
const MOST_KEPT: usize = 8_192;

/// Writes that are kept.
#[derive(Debug, Default)]
pub(super) struct Pending {
    writes: Vec<Kept>,
    values: usize,
}

#[derive(Debug)]
struct Kept {
    text: &'static str,
    /// Values of anonymous parameters.
    cells: Args,
    /// Those of the numbered ones, whose numbers follow.
    scalars: Args,
}

impl Kept {
    fn len(&self) -> usize {
        self.cells.len() + self.scalars.len()
    }
}

impl Pending {
    /// Keeps a statement with numbered parameters.
    pub(super) fn add(&mut self, text: &'static str, scalars: Args) {
        self.keep(Kept { text, cells: Args::new(), scalars });
    }

    /// Keeps a bulk statement for some of its rows, which are taken out.
    pub(super) fn add_rows(
        &mut self,
        text: &'static str,
        scalars: Args,
        rows: &mut Rows,
        range: Range<usize>,
    ) {
        let mut values = Args::with_capacity(range.len() * rows.columns.len());
        for at in range {
            for cells in &mut rows.columns {
                values.push(match cells {
                    Cells::Int(cells) => Value::Int(cells[at]),
                    Cells::Real(cells) => Value::Real(cells[at]),
                    Cells::Text(cells) => Value::Text(cells[at].take()),
                    Cells::Bytes(cells) => Value::Bytes(cells[at].take()),
                });
            }
        }
        self.keep(Kept { text, cells: values, scalars });
    }

    fn keep(&mut self, kept: Kept) {
        self.values += kept.len();
        self.writes.push(kept);
    }

    /// Whether it is time to run what is kept.
    pub(super) fn is_full(&self) -> bool {
        self.values >= MOST_KEPT
    }

    /// Takes what is kept, in texts to be run one after the other.
    pub(super) fn take(&mut self) -> Vec<Text> {
        self.values = 0;
        let mut texts = Vec::new();
        let mut together: Vec<Kept> = Vec::new();
        let mut values = 0;
        for kept in std::mem::take(&mut self.writes) {
            if values + kept.len() > MOST_TOGETHER && !together.is_empty() {
                texts.push(joined(std::mem::take(&mut together)));
                values = 0;
            }
            values += kept.len();
            together.push(kept);
        }
        if !together.is_empty() {
            texts.push(joined(together));
        }
        texts
    }
}

/// Statements that run one after the other.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) sql: SqlStr,
    pub(super) args: Args,
    /// How many they are.
    pub(super) statements: usize,
}

impl Text {
    /// One statement.
    pub(super) fn one(sql: SqlStr, args: Args) -> Self {
        Self { sql, args, statements: 1 }
    }
}

fn joined(mut writes: Vec<Kept>) -> Text {
    if let [_] = writes[..]
        && let Some(Kept { text, mut cells, scalars }) = writes.pop()
    {
        cells.extend(scalars);
        return Text::one(text.into_sql_str(), cells);
    }
    let statements = writes.len();
    let all_cells: usize = writes.iter().map(|kept| kept.cells.len()).sum();
    // Numbers grow longer where they are moved; twice the text is room for all of them.
    let mut text = String::with_capacity(2 * writes.iter().map(|kept| kept.text.len()).sum::<usize>());
    let mut cells = Args::with_capacity(writes.iter().map(Kept::len).sum());
    let mut scalars = Args::new();
    for kept in writes {
        let behind = all_cells - kept.cells.len() + scalars.len();
        renumber(kept.text, behind, &mut text);
        text.push_str(";\n");
        cells.extend(kept.cells);
        scalars.extend(kept.scalars);
    }
    cells.extend(scalars);
    // Put together from constants and numbers.
    Text { sql: AssertSqlSafe(text).into_sql_str(), args: cells, statements }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::{Bulk, Column};

    static ADD: Bulk = Bulk::new(
        "tests::ADD",
        1,
        "INSERT INTO t (p, a) SELECT $1, r.a FROM",
        &[Column::Int("a")],
        "WHERE true",
    );

    fn ints(args: &Args) -> Vec<i64> {
        args.iter().map(|value| if let Value::Int(Some(value)) = value { *value } else { -1 }).collect()
    }

    #[test]
    fn values_of_lists_come_first_and_numbers_follow_them() {
        let mut pending = Pending::default();
        pending.add("UPDATE t SET a = $2 WHERE p = $1", vec![7.into(), 8.into()]);
        for value in [1, 2] {
            let mut rows = ADD.rows();
            rows.push([Value::from(value)]);
            let last = super::super::bulk::SQLITE_ROWS.len() - 1;
            pending.add_rows(ADD.sqlite_sql(last), vec![9.into()], &mut rows, 0..1);
        }
        let [Text { sql: text, args, statements: 3 }] = &pending.take()[..] else {
            panic!("one text of three")
        };
        let list = "(SELECT column1 AS a FROM (VALUES (?))) AS r WHERE true";
        assert_eq!(
            text.as_str(),
            format!(
                "UPDATE t SET a = $4 WHERE p = $3;\nINSERT INTO t (p, a) SELECT $5, r.a FROM {list};\n\
                 INSERT INTO t (p, a) SELECT $6, r.a FROM {list};\n"
            )
        );
        assert_eq!(ints(args), [1, 2, 7, 8, 9, 9]);
        assert!(pending.take().is_empty());
    }

    #[test]
    fn long_lists_run_by_themselves() {
        let mut pending = Pending::default();
        for _ in 0..3 {
            pending.add("UPDATE t SET a = $1", vec![Value::from(1); MOST_TOGETHER - 10]);
        }
        assert_eq!(pending.take().len(), 3);
    }
}
