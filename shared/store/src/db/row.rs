//! Rows of either engine, read from left to right.

use serde_json::Value;
use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row as _, ValueRef as _};

use callboard_domain::time::Timestamp;

use crate::{Result, StoreError};

/// One row.
#[derive(Debug)]
pub enum Row {
    /// From SQLite.
    Sqlite(SqliteRow),
    /// From PostgreSQL.
    Postgres(PgRow),
    /// One of several that SQLite told as one, as
    /// [`Statement::whole`](super::Statement::whole) has it do.
    Told(Vec<Value>),
}

impl Row {
    /// Reads the columns in the order of the select list.
    #[must_use]
    pub fn reader(&self) -> Reader<'_> {
        Reader { row: self, at: 0 }
    }

    /// The rows that this one tells.
    pub(super) fn unfold(&self) -> Result<Vec<Self>> {
        let Self::Sqlite(row) = self else { return Err(OTHER) };
        let told: &str = row.try_get(0)?;
        let rows: Vec<Vec<Value>> = serde_json::from_str(told).map_err(|_| OTHER)?;
        Ok(rows.into_iter().map(Self::Told).collect())
    }
}

const OTHER: StoreError = StoreError::Damaged("rows that were told as one");

/// A cell of a row that was told.
fn cell(row: &[Value], at: usize) -> Result<&Value> {
    row.get(at).ok_or(OTHER)
}

/// Reads a row column by column; each call moves one column on.
#[derive(Debug)]
pub struct Reader<'r> {
    row: &'r Row,
    at: usize,
}

impl Reader<'_> {
    fn next(&mut self) -> usize {
        self.at += 1;
        self.at - 1
    }

    /// An integer of any width, or null.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the column holds something else.
    pub fn opt_int(&mut self) -> Result<Option<i64>> {
        let at = self.next();
        match self.row {
            Row::Sqlite(row) => Ok(row.try_get::<Option<i64>, _>(at)?),
            Row::Told(row) => match cell(row, at)? {
                Value::Null => Ok(None),
                value => value.as_i64().map(Some).ok_or(OTHER),
            },
            Row::Postgres(row) => {
                let raw = row.try_get_raw(at)?;
                if raw.is_null() {
                    return Ok(None);
                }
                let bytes = raw.as_bytes().map_err(sqlx::Error::Decode)?;
                // Binary integers are big-endian and as wide as their column.
                match *bytes {
                    [a, b] => Ok(Some(i64::from(i16::from_be_bytes([a, b])))),
                    [a, b, c, d] => Ok(Some(i64::from(i32::from_be_bytes([a, b, c, d])))),
                    [a, b, c, d, e, f, g, h] => Ok(Some(i64::from_be_bytes([a, b, c, d, e, f, g, h]))),
                    // A boolean expression, e.g. a comparison in the select list.
                    [flag] => Ok(Some(i64::from(flag != 0))),
                    _ => Err(StoreError::Damaged("an integer column of unknown width")),
                }
            }
        }
    }

    /// An integer of any width.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the column is null or holds something else.
    pub fn int(&mut self) -> Result<i64> {
        self.opt_int()?.ok_or(StoreError::Damaged("an integer column is null"))
    }

    /// A 0/1 column or a comparison.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn flag(&mut self) -> Result<bool> {
        Ok(self.int()? != 0)
    }

    /// A point in time, or null.
    ///
    /// # Errors
    /// As [`Reader::opt_int`].
    pub fn opt_time(&mut self) -> Result<Option<Timestamp>> {
        Ok(self.opt_int()?.map(Timestamp))
    }

    /// A point in time.
    ///
    /// # Errors
    /// As [`Reader::int`].
    pub fn time(&mut self) -> Result<Timestamp> {
        self.int().map(Timestamp)
    }

    /// A score or ratio, or null.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the column holds something else.
    pub fn opt_real(&mut self) -> Result<Option<f64>> {
        let at = self.next();
        Ok(match self.row {
            Row::Sqlite(row) => row.try_get(at)?,
            Row::Postgres(row) => row.try_get(at)?,
            Row::Told(_) => return Err(OTHER),
        })
    }

    /// Text, or null.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the column holds something else.
    pub fn opt_text(&mut self) -> Result<Option<String>> {
        let at = self.next();
        Ok(match self.row {
            Row::Sqlite(row) => row.try_get(at)?,
            Row::Postgres(row) => row.try_get(at)?,
            Row::Told(row) => match cell(row, at)? {
                Value::Null => None,
                value => Some(value.as_str().ok_or(OTHER)?.to_owned()),
            },
        })
    }

    /// Text.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the column is null.
    pub fn text(&mut self) -> Result<String> {
        self.opt_text()?.ok_or(StoreError::Damaged("a text column is null"))
    }

    /// Bytes, or null.
    ///
    /// # Errors
    /// [`StoreError::Database`] when the column holds something else.
    pub fn opt_bytes(&mut self) -> Result<Option<Vec<u8>>> {
        let at = self.next();
        Ok(match self.row {
            Row::Sqlite(row) => row.try_get(at)?,
            Row::Postgres(row) => row.try_get(at)?,
            Row::Told(row) => {
                let hex = cell(row, at)?.as_str().ok_or(OTHER)?;
                Some(hex::decode(hex).map_err(|_| OTHER)?)
            }
        })
    }

    /// Bytes.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the column is null.
    pub fn bytes(&mut self) -> Result<Vec<u8>> {
        self.opt_bytes()?.ok_or(StoreError::Damaged("a bytes column is null"))
    }
}
