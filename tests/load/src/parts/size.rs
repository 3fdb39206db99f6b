//! `size`: the binaries that were built, beside this one and as functions.

use std::path::Path;

use anyhow::{Context, Result};

use crate::report::{Table, tenths};

/// Measures what is there.
///
/// # Errors
/// When this program does not know where it lies.
pub fn measure() -> Result<Table> {
    let own = std::env::current_exe()?;
    let folder = own.parent().context("this program has no folder")?;
    let mut table = Table::new("Binary sizes", &["binary", "profile", "MB", "target"]);
    add_from(&mut table, folder, "release")?;
    // Those of the deployable profile, when they were built.
    if let Some(target) = folder.parent() {
        add_from(&mut table, &target.join("function"), "function")?;
    }
    table.note("The function profile is what `make functions` builds and what is deployed.");
    Ok(table)
}

fn add_from(table: &mut Table, folder: &Path, profile: &str) -> Result<()> {
    if !folder.is_dir() {
        table.note(format!("No binaries of the {profile} profile were built."));
        return Ok(());
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_ours = name == "callboard" || name.starts_with("callboard-");
        let is_served =
            !name.contains('.') && !matches!(name.as_str(), "callboard-load" | "callboard-test-database");
        if is_ours && is_served && entry.metadata()?.is_file() {
            found.push((name, entry.metadata()?.len()));
        }
    }
    found.sort();
    for (name, bytes) in found {
        let target = if name == "callboard" { "–" } else { "≤ 15" };
        table.row(vec![name.into(), profile.into(), tenths(bytes as f64 / 1e6), target.into()]);
    }
    Ok(())
}
