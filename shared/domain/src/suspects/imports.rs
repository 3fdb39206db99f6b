//! What a file of tests imports, by its text.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

/// Imports of one file that are looked at.
const MAX_IMPORTS: usize = 60;

static IMPORT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r#"(?:\bfrom\s*|\bimport\s*\(?\s*|\brequire\s*\(\s*)['"`](\.{1,2}/[^'"`\n]{1,300})['"`]"#).ok()
});

/// Files of the same repository that a script imports, without their endings:
/// `./pages/cart` in `e2e/cart.spec.ts` is `e2e/pages/cart`. Packages and
/// aliases of paths are left out.
#[must_use]
pub fn imported_files(path: &str, source: &str) -> BTreeSet<String> {
    let Some(pattern) = IMPORT.as_ref() else { return BTreeSet::new() };
    let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
    let found = pattern.captures_iter(source).take(MAX_IMPORTS);
    found.filter_map(|found| resolved(folder, found.get(1)?.as_str())).collect()
}

/// A relative path from a folder; `None` when it leads out of the repository.
fn resolved(folder: &str, relative: &str) -> Option<String> {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in relative.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    (!parts.is_empty()).then(|| without_ending(&parts.join("/")).to_owned())
}

/// Endings of scripts.
const ENDINGS: [&str; 9] = [".d.ts", ".tsx", ".ts", ".jsx", ".js", ".mts", ".cts", ".mjs", ".cjs"];

/// A path without the ending of a script, and without `/index`.
pub(super) fn without_ending(path: &str) -> &str {
    let bare = ENDINGS.iter().find_map(|ending| path.strip_suffix(ending)).unwrap_or(path);
    bare.strip_suffix("/index").unwrap_or(bare)
}
