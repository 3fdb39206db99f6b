//! Playwright's trace viewer, compiled in when its files were there:
//! `make assets` brings them from the npm package that `package.json` pins.
//!
//! Lives here: the files and nothing else. Must not live here: who may see
//! them and where, which is the business of the function that serves them.

include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// The page that opens a trace.
pub const PAGE: &str = "index.html";

/// A file of the viewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewerFile {
    /// Its bytes.
    pub bytes: &'static [u8],
    /// Its type by extension.
    pub content_type: &'static str,
    /// Whether its name changes with its bytes.
    pub is_fingerprinted: bool,
}

/// Whether the viewer was there when this was built.
#[must_use]
pub const fn is_included() -> bool {
    !FILES.is_empty()
}

/// A file by its path below the viewer's folder. Names are compared, never
/// joined to a folder.
#[must_use]
pub fn file(path: &str) -> Option<ViewerFile> {
    let at = FILES.binary_search_by(|(name, _)| (*name).cmp(path)).ok()?;
    let (name, bytes) = FILES[at];
    let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
    // The bundler's fingerprint: eight letters behind a dot or hyphen.
    let is_fingerprinted = stem.len() > 9 && matches!(stem.as_bytes()[stem.len() - 9], b'.' | b'-');
    Some(ViewerFile { bytes, content_type: type_of(name), is_fingerprinted })
}

fn type_of(name: &str) -> &'static str {
    match name.rsplit_once('.').map_or("", |(_, extension)| extension) {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        "ttf" => "font/ttf",
        "webmanifest" => "application/manifest+json",
        "txt" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_is_whole_or_absent() {
        for needed in [PAGE, "sw.bundle.js", "LICENSE.txt"] {
            assert_eq!(file(needed).is_some(), is_included(), "{needed}");
        }
        assert!(FILES.is_sorted(), "names are searched in order");
        for (name, _) in FILES {
            let found = file(name).unwrap();
            assert_ne!(found.content_type, "application/octet-stream", "{name} has no type");
            assert!(!name.starts_with("uiMode"), "pages that run tests are left out");
        }
        for stable in [PAGE, "sw.bundle.js", "snapshot.html"] {
            assert!(file(stable).is_none_or(|file| !file.is_fingerprinted), "{stable}");
        }
        assert!(file("../Cargo.toml").is_none() && file("").is_none());
    }
}
