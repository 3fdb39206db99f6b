//! How the paths of a run relate to those that earlier releases of the reporter
//! sent for the same files: these began at the working directory, now they begin
//! at the root of the sources.

use serde_json::{Map, Value};

use super::location::normalise_path;
use crate::text::cut_str;

/// Most paths of a run that are said to be those of several files.
const MAX_SHARED: usize = 500;
const MAX_PREFIX_CHARS: usize = 1_000;

/// What stands in front of the paths of files now, and what stood there before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PathPrefix {
    /// Of paths below the working directory now; empty at the root of the sources.
    pub present: String,
    /// Of the same paths before; empty for the working directory itself.
    pub earlier: String,
}

impl PathPrefix {
    /// Whether paths are written otherwise than before.
    #[must_use]
    pub fn is_change(&self) -> bool {
        self.present != self.earlier
    }

    /// The path that earlier releases sent for a path of today, when it is another.
    #[must_use]
    pub fn earlier_path(&self, path: &str) -> Option<String> {
        moved((&self.present, &self.earlier), path)
    }

    /// The path of today for one that earlier releases sent, when it is another.
    #[must_use]
    pub fn present_path(&self, path: &str) -> Option<String> {
        let present = moved((&self.earlier, &self.present), path)?;
        // A path that leads out of the sources has no counterpart.
        let is_inside = !present.starts_with("../") && !present.starts_with('/');
        (is_inside && self.earlier_path(&present).as_deref() == Some(path)).then_some(present)
    }
}

/// What a run says about its paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourcePaths {
    /// Whether they begin at the root of a work tree of git.
    pub is_of_git: bool,
    /// How they were written before.
    pub prefix: PathPrefix,
    /// Earlier paths that may have been those of other files.
    pub shared: Vec<String>,
}

impl SourcePaths {
    /// Reads them from the metadata of a run; `None` of one whose client does not say.
    #[must_use]
    pub fn from_metadata(metadata: &Map<String, Value>) -> Option<Self> {
        let scm = metadata.get("scm")?.as_object()?;
        let text = |name: &str| scm.get(name).and_then(Value::as_str);
        let prefix = |name: &str| match text(name).map(|text| cut_str(text.trim(), MAX_PREFIX_CHARS)) {
            None | Some("" | "." | "./") => String::new(),
            Some(text) => normalise_path(text).trim_end_matches('/').to_owned(),
        };
        text("pathPrefix")?;
        let shared = scm.get("sharedPaths").and_then(Value::as_array).into_iter().flatten();
        Some(Self {
            is_of_git: text("pathRoot") == Some("git"),
            prefix: PathPrefix { present: prefix("pathPrefix"), earlier: prefix("earlierPathPrefix") },
            shared: shared.filter_map(Value::as_str).map(normalise_path).take(MAX_SHARED).collect(),
        })
    }

    /// The same from stored metadata.
    #[must_use]
    pub fn from_json(metadata: &str) -> Option<Self> {
        // Most runs say nothing, and metadata may be long.
        if !metadata.contains("pathPrefix") {
            return None;
        }
        serde_json::from_str(metadata).ok().as_ref().and_then(Self::from_metadata)
    }

    /// Whether an earlier path may have been that of other files, too.
    #[must_use]
    pub fn is_shared(&self, earlier: &str) -> bool {
        self.shared.iter().any(|path| path == earlier)
    }
}

/// A path below the first folder as the same path below the second, when that is another.
fn moved((from, to): (&str, &str), path: &str) -> Option<String> {
    let below = relative(from, path);
    let moved = if to.is_empty() { normalise_path(&below) } else { normalise_path(&format!("{to}/{below}")) };
    (moved != path).then_some(moved)
}

/// The way from a folder to a file, both below the same root.
fn relative(folder: &str, path: &str) -> String {
    let folder: Vec<&str> = folder.split('/').filter(|name| !name.is_empty()).collect();
    let path: Vec<&str> = path.split('/').collect();
    // The last name is that of the file.
    let folders = &path[..path.len().saturating_sub(1)];
    let common = folder.iter().zip(folders).take_while(|(one, other)| one == other).count();
    let up = folder[common..].iter().map(|_| "..");
    up.chain(path[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn paths(scm: Value) -> Option<SourcePaths> {
        SourcePaths::from_metadata(json!({ "scm": scm }).as_object()?)
    }

    #[test]
    fn earlier_paths_began_at_the_working_directory() {
        for (scm, path, earlier) in [
            (json!({ "pathPrefix": "" }), "tests/a.ts", None),
            (json!({ "pathPrefix": "packages/web" }), "packages/web/tests/a.ts", Some("tests/a.ts")),
            (json!({ "pathPrefix": r"packages\web\" }), "packages/web/tests/a.ts", Some("tests/a.ts")),
            (json!({ "pathPrefix": "packages/web" }), "e2e/a.ts", Some("../../e2e/a.ts")),
            (json!({ "pathPrefix": "packages/web" }), "packages/admin/a.ts", Some("../admin/a.ts")),
            (json!({ "pathPrefix": "", "earlierPathPrefix": "shop" }), "tests/a.ts", Some("shop/tests/a.ts")),
            (
                json!({ "pathPrefix": "web/tests", "earlierPathPrefix": "../w1/tests" }),
                "web/tests/a.ts",
                Some("../w1/tests/a.ts"),
            ),
        ] {
            let prefix = paths(scm.clone()).expect("paths").prefix;
            assert_eq!(prefix.earlier_path(path).as_deref(), earlier, "{scm} {path}");
            if let Some(earlier) = earlier {
                assert_eq!(prefix.present_path(earlier).as_deref(), Some(path), "{scm} {earlier}");
            }
        }
        assert_eq!(paths(json!({ "branch": "main" })), None);
    }

    #[test]
    fn a_path_outside_of_the_sources_has_no_counterpart() {
        let prefix = PathPrefix { present: "packages/web".into(), earlier: String::new() };
        assert_eq!(prefix.present_path("../../../elsewhere/a.ts"), None);
        let prefix = PathPrefix { present: String::new(), earlier: "shop".into() };
        assert_eq!(prefix.present_path("other/a.ts"), None);
    }

    proptest! {
        #[test]
        fn a_path_of_today_comes_back_from_its_earlier_one(
            present in "([ab]/){0,3}[ab]?", path in "([ab]/){0,4}c"
        ) {
            let prefix = PathPrefix { present: present.trim_end_matches('/').into(), earlier: String::new() };
            if let Some(earlier) = prefix.earlier_path(&path) {
                prop_assert_eq!(prefix.present_path(&earlier), Some(path));
            }
        }
    }
}
