//! Figures: tables for people, the same as JSON for comparison later.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use callboard_domain::time::Timestamp;
use serde_json::{Map, Value, json};

use crate::machine;

/// One cell of a table.
#[derive(Debug, Clone)]
pub enum Cell {
    /// Words.
    Text(String),
    /// A figure, with the digits to show after the point.
    Number(f64, usize),
    /// Nothing was measured.
    None,
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A whole number.
#[must_use]
pub fn whole(value: f64) -> Cell {
    Cell::Number(value, 0)
}

/// A number with one digit after the point.
#[must_use]
pub fn tenths(value: f64) -> Cell {
    Cell::Number(value, 1)
}

/// A number with two digits after the point.
#[must_use]
pub fn hundredths(value: f64) -> Cell {
    Cell::Number(value, 2)
}

impl Cell {
    fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Number(value, digits) => format!("{value:.digits$}"),
            Self::None => "–".to_owned(),
        }
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!(text),
            Self::Number(value, digits) => {
                let scale = 10_f64.powi(i32::try_from(*digits).unwrap_or_default());
                json!((value * scale).round() / scale)
            }
            Self::None => Value::Null,
        }
    }
}

/// The figures of one section.
#[derive(Debug)]
pub struct Table {
    title: String,
    columns: Vec<&'static str>,
    rows: Vec<Vec<Cell>>,
    notes: Vec<String>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(title: impl Into<String>, columns: &[&'static str]) -> Self {
        Self { title: title.into(), columns: columns.to_vec(), rows: Vec::new(), notes: Vec::new() }
    }

    /// Adds a row: one cell per column.
    pub fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// Adds a sentence below the table.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    fn text(&self) -> String {
        let shown: Vec<Vec<String>> =
            self.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
        let mut widths: Vec<usize> = self.columns.iter().map(|column| column.chars().count()).collect();
        for row in &shown {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        // Writing to a String cannot fail.
        let mut text = format!("\n## {}\n", self.title);
        let header: Vec<String> = self.columns.iter().map(|column| (*column).to_owned()).collect();
        write_line(&mut text, &header, &widths, &[]);
        let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
        write_line(&mut text, &rule, &widths, &[]);
        for (cells, row) in shown.iter().zip(&self.rows) {
            write_line(&mut text, cells, &widths, row);
        }
        for note in &self.notes {
            let _ = writeln!(text, "{note}");
        }
        text
    }

    fn json(&self, load: &str) -> Value {
        let rows: Vec<Value> = self
            .rows
            .iter()
            .map(|row| {
                let cells =
                    self.columns.iter().zip(row).map(|(column, cell)| ((*column).to_owned(), cell.json()));
                Value::Object(cells.collect::<Map<_, _>>())
            })
            .collect();
        json!({"title": self.title, "rows": rows, "notes": self.notes, "loadAverage": load})
    }
}

/// A line of a Markdown table; numbers stand at the right.
fn write_line(text: &mut String, cells: &[String], widths: &[usize], row: &[Cell]) {
    for (at, (cell, width)) in cells.iter().zip(widths).enumerate() {
        let is_number = matches!(row.get(at), Some(Cell::Number(..) | Cell::None));
        let gap = " ".repeat(width.saturating_sub(cell.chars().count()));
        let _ = if is_number { write!(text, "| {gap}{cell} ") } else { write!(text, "| {cell}{gap} ") };
    }
    text.push_str("|\n");
}

/// Everything measured in one call of the program.
#[derive(Debug)]
pub struct Report {
    at: Timestamp,
    seed: u64,
    machine: String,
    sections: Vec<Value>,
}

impl Report {
    /// An empty report.
    #[must_use]
    pub fn new(at: Timestamp, seed: u64) -> Self {
        Self { at, seed, machine: machine::description(), sections: Vec::new() }
    }

    /// Prints what is known before anything is measured.
    pub fn print_head(&self) {
        say(&format!("Callboard bench, {}, seed {}\n{}", self.at.to_iso(), self.seed, self.machine));
    }

    /// Prints a table and keeps it, with how busy the machine is now.
    pub fn add(&mut self, table: &Table) {
        let load = machine::load_average();
        say(&format!("{}machine load: {load}", table.text()));
        self.sections.push(table.json(&load));
    }

    /// Writes the report as JSON and answers where.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
        let name: String =
            self.at.to_iso().chars().take(16).map(|c| if c == ':' { '-' } else { c }).collect();
        let path = folder.join(format!("{name}.json"));
        let report = json!({
            "at": self.at.to_iso(), "seed": self.seed, "machine": self.machine, "sections": self.sections,
        });
        std::fs::write(&path, serde_json::to_vec_pretty(&report)?)
            .with_context(|| format!("cannot write {}", path.display()))?;
        Ok(path)
    }
}

/// Says something on the terminal.
#[expect(clippy::print_stdout, reason = "this is a command; its figures go to the terminal")]
pub fn say(text: &str) {
    println!("{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_markdown_with_numbers_at_the_right() {
        let mut table = Table::new("Reads", &["what", "p50 ms"]);
        table.row(vec!["runs".into(), hundredths(1.2)]);
        table.row(vec!["everything".into(), Cell::None]);
        table.note("all well");
        assert_eq!(
            table.text(),
            "\n## Reads\n\
             | what       | p50 ms |\n\
             | ---------- | ------ |\n\
             | runs       |   1.20 |\n\
             | everything |      – |\n\
             all well\n"
        );
    }
}
