//! Modules that import each other in a circle cannot be read one after the other. In
//! each crate, a circle has at most two modules; what is longer is listed below and
//! may only get shorter.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

type Module = Vec<String>;

/// Longest circle that needs no entry below.
const MAX_CIRCLE: usize = 2;

/// Circles that are left, by crate, sorted. Take out what is resolved.
const LEFT: [(&str, &[&str]); 8] = [
    ("functions/mcp", &["completion", "era", "methods", "prompt", "version"]),
    (
        "shared/domain",
        &[
            "ingest::identity",
            "ingest::locators",
            "ingest::test_case",
            "ingest::test_case::reader",
            "ingest::test_case::summaries",
            "ingest::test_case_input",
        ],
    ),
    ("shared/http", &["front", "idempotency", "register"]),
    ("shared/platform", &["config", "config::mail", "config::oauth", "config::reader", "config::registry"]),
    ("shared/query", &["clusters::reading", "executions", "flakiness", "test_cases"]),
    ("shared/query", &["comparison", "gates", "runs"]),
    ("shared/query", &["deletions::freeing", "deletions::hiding", "deletions::restoring"]),
    ("shared/query", &["projects", "projects::standing", "shapes::project", "shapes::run"]),
];

#[test]
fn modules_do_not_import_each_other_in_long_circles() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut unknown = Vec::new();
    let mut resolved: BTreeSet<usize> = (0..LEFT.len()).collect();
    for name in crates(&root) {
        for circle in Crate::read(&root.join(&name).join("src")).circles() {
            let is_left = |(_, (of, modules)): &(usize, &(&str, &[&str]))| {
                *of == name && circle.iter().all(|module| modules.contains(&module.as_str()))
            };
            match LEFT.iter().enumerate().find(is_left) {
                Some((at, _)) => _ = resolved.remove(&at),
                None => unknown.push(format!("{name}: {}", circle.join(", "))),
            }
        }
    }
    assert!(unknown.is_empty(), "modules import each other in a circle:\n{}", unknown.join("\n"));
    let resolved: Vec<_> = resolved.into_iter().map(|at| LEFT[at]).collect();
    assert!(resolved.is_empty(), "take these out of the list, they are resolved: {resolved:?}");
}

#[test]
fn a_circle_is_found_through_use_trees_exports_and_plain_paths() {
    let module =
        |path: &str, source: &str| (path.split("::").map(str::to_owned).collect(), source.to_owned());
    let sources = BTreeMap::from([
        (Vec::new(), "pub use a::Shared;".to_owned()),
        module("a", "use crate::{b::{self, One}, c};\npub struct Shared;"),
        module("b", "mod inner;\n// use crate::d;\nfn f() { super::c::g() }"),
        module("b::inner", "fn f() {}"),
        module("c", "use crate::Shared;"),
        module("d", "use crate::a;\n#[cfg(test)]\nmod tests { use crate::d; }"),
    ]);
    assert_eq!(Crate::from_sources(sources).circles(), [["a", "b", "c"]]);
}

/// Folders of the crates that are deployed, below the root.
fn crates(root: &Path) -> Vec<String> {
    let mut found = vec!["local-runner".to_owned()];
    for group in ["functions", "shared"] {
        for entry in fs::read_dir(root.join(group)).expect("a folder of crates") {
            let name = entry.expect("a crate").file_name().to_string_lossy().into_owned();
            if root.join(group).join(&name).join("src").is_dir() {
                found.push(format!("{group}/{name}"));
            }
        }
    }
    found.sort_unstable();
    found
}

/// The modules of a crate, each with those it imports.
struct Crate {
    sources: BTreeMap<Module, String>,
    /// What a module exports of others: name and path.
    exports: BTreeMap<Module, BTreeMap<String, String>>,
}

impl Crate {
    fn read(src: &Path) -> Self {
        let mut sources = BTreeMap::new();
        let mut folders: Vec<PathBuf> = vec![src.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder).expect("a folder of sources") {
                let path = entry.expect("a file").path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|end| end == "rs") {
                    let within = path.strip_prefix(src).expect("below it").with_extension("");
                    let mut module: Module =
                        within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
                    module.pop_if(|last| *last == "mod" || *last == "lib");
                    sources.insert(module, fs::read_to_string(&path).expect("a source"));
                }
            }
        }
        Self::from_sources(sources)
    }

    fn from_sources(mut sources: BTreeMap<Module, String>) -> Self {
        for source in sources.values_mut() {
            let code = source.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            let lines = code.lines().map(|line| line.split("//").next().unwrap_or_default());
            *source = lines.collect::<Vec<_>>().join("\n");
        }
        let exports = sources.iter().map(|(module, source)| {
            let exported = uses(source).into_iter().filter(|(is_export, _)| *is_export);
            let named = exported.flat_map(|(_, tree)| expand(tree)).filter_map(|path| {
                let name = path.rsplit("::").next()?.to_owned();
                Some((name, path))
            });
            (module.clone(), named.collect())
        });
        let exports = exports.collect();
        Self { sources, exports }
    }

    /// The module a path leads to from a module; `None` outside of the crate.
    fn target(&self, from: &[String], path: &str, depth: usize) -> Option<Module> {
        let mut parts = path.split("::").map(str::trim).peekable();
        let mut at: Module = match *parts.peek()? {
            "crate" => {
                parts.next();
                Vec::new()
            }
            "super" | "self" => from.to_vec(),
            child => {
                let child: Module = from.iter().cloned().chain([child.to_owned()]).collect();
                self.sources.contains_key(&child).then(|| from.to_vec())?
            }
        };
        while let Some(up) = parts.next_if(|part| matches!(*part, "super" | "self")) {
            if up == "super" {
                at.pop();
            }
        }
        for part in parts {
            at.push(part.to_owned());
            if !self.sources.contains_key(&at) {
                at.pop();
                let exported = self.exports.get(&at).and_then(|exports| exports.get(part));
                let leads = exported.filter(|_| depth < 8).and_then(|path| self.target(&at, path, depth + 1));
                return Some(leads.unwrap_or(at));
            }
        }
        Some(at)
    }

    fn imports(&self) -> BTreeMap<&Module, BTreeSet<Module>> {
        let of = |module: &Module, source: &str| {
            let used = uses(source).into_iter().filter(|(is_export, _)| !is_export);
            let used: Vec<String> = used.flat_map(|(_, tree)| expand(tree)).collect();
            let name = |path: &String| Some((path.rsplit("::").next()?.to_owned(), path.clone()));
            let names: BTreeMap<String, String> = used.iter().filter_map(name).collect();
            // A parent that only names its children, as routers do, imports nothing of them.
            let plain = paths_in(source).into_iter().filter_map(|path| match path.split_once("::")? {
                ("crate" | "super", _) => Some(path),
                (first, rest) => Some(format!("{}::{rest}", names.get(first)?)),
            });
            let targets = plain.chain(used.clone()).filter_map(|path| self.target(module, &path, 0));
            targets.filter(|target| target != module).collect()
        };
        self.sources.iter().map(|(module, source)| (module, of(module, source))).collect()
    }

    /// Modules that reach each other, when they are more than [`MAX_CIRCLE`].
    fn circles(&self) -> Vec<Vec<String>> {
        let imports = self.imports();
        let reached: BTreeMap<&Module, BTreeSet<Module>> = imports
            .keys()
            .map(|module| {
                let (mut reached, mut next) = (BTreeSet::new(), vec![(*module).clone()]);
                while let Some(at) = next.pop() {
                    for target in imports.get(&at).into_iter().flatten() {
                        if reached.insert(target.clone()) {
                            next.push(target.clone());
                        }
                    }
                }
                (*module, reached)
            })
            .collect();
        let circle = |module: &Module| -> Vec<String> {
            let both = reached
                .iter()
                .filter(|(other, of_other)| reached[module].contains(**other) && of_other.contains(module));
            both.map(|(other, _)| other.join("::")).collect()
        };
        let circles: BTreeSet<Vec<String>> = reached.keys().map(|module| circle(module)).collect();
        circles.into_iter().filter(|circle| circle.len() > MAX_CIRCLE).collect()
    }
}

/// The trees of the `use` declarations of a source, and whether they export.
fn uses(source: &str) -> Vec<(bool, &str)> {
    let mut found = Vec::new();
    for statement in source.split(';') {
        let Some((before, tree)) = statement.rsplit_once("use ") else { continue };
        let line = before.rsplit('\n').next().unwrap_or_default().trim();
        if line.is_empty() || line.starts_with("pub") {
            found.push((!line.is_empty(), tree));
        }
    }
    found
}

/// The paths of a `use` tree.
fn expand(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((prefix, list)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default().trim();
        let path = path.strip_suffix("::self").unwrap_or(path);
        return if path.is_empty() || path.ends_with('*') { Vec::new() } else { vec![path.to_owned()] };
    };
    let list = list.strip_suffix('}').unwrap_or(list);
    let (mut paths, mut depth, mut begin) = (Vec::new(), 0_usize, 0);
    for (at, letter) in list.char_indices().chain([(list.len(), ',')]) {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let below = expand(&list[begin..at]).into_iter();
                paths.extend(below.map(|path| format!("{}{path}", prefix.trim())));
                begin = at + 1;
            }
            _ => {}
        }
    }
    paths
}

/// Paths in the code, declarations of `use` left out.
fn paths_in(source: &str) -> Vec<String> {
    let is_path = |letter: char| letter.is_alphanumeric() || letter == '_' || letter == ':';
    let code = source.split(';').filter(|statement| !statement.contains("use "));
    let words = code.flat_map(|statement| statement.split(move |letter| !is_path(letter)));
    words.filter(|word| word.contains("::")).map(|path| path.trim_end_matches(':').to_owned()).collect()
}
