//! The files of a run in their folders, with what came of the tests of each.

use std::collections::BTreeMap;

use askama::Template;
use askama::filters::HtmlSafe;
use callboard_query::page::Slice;
use callboard_query::run_views::{SpecItem, SpecKey};

use crate::address::Address;
use crate::filters;

/// So many files are seen without opening folders; of more, those in which
/// something failed.
const SEEN_AT_ONCE: usize = 12;

/// Folders inside of each other; what is deeper is part of the name of the
/// last. Clients choose the paths, and each level takes some of the stack.
const MOST_LEVELS: usize = 16;

/// What came of the tests of a file or a folder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Counts {
    tests: i64,
    failed: i64,
    flaky: i64,
    duration_ms: i64,
}

impl Counts {
    const fn from_file(file: &SpecItem) -> Self {
        Self {
            tests: file.totals.total_tests,
            failed: file.totals.failed_tests,
            flaky: file.totals.flaky_tests,
            duration_ms: file.duration,
        }
    }

    const fn add(&mut self, other: Self) {
        self.tests += other.tests;
        self.failed += other.failed;
        self.flaky += other.flaky;
        self.duration_ms += other.duration_ms;
    }
}

/// A folder with what is in it, or a file.
#[derive(Template)]
#[template(path = "components/file_node.html")]
struct Node {
    name: String,
    counts: Counts,
    /// Whether a folder shows what is in it.
    is_open: bool,
    /// The executions of the file; none for a folder.
    href: Option<String>,
    children: Vec<Node>,
}

impl HtmlSafe for Node {}

/// Inputs of `components/file_tree.html`.
#[derive(Template)]
#[template(path = "components/file_tree.html")]
pub(crate) struct FileTree {
    files: usize,
    /// Whether the run has more files than these.
    is_cut: bool,
    nodes: Vec<Node>,
}

impl HtmlSafe for FileTree {}

/// A folder that is being filled.
#[derive(Default)]
struct Folder<'a> {
    folders: BTreeMap<&'a str, Folder<'a>>,
    files: BTreeMap<&'a str, &'a SpecItem>,
}

impl FileTree {
    /// The tree of some files; `address` is that of the list they narrow.
    /// `None` where a tree says no more than its only file does.
    pub(crate) fn from_files(found: &Slice<SpecItem, SpecKey>, address: &Address) -> Option<Self> {
        let files = &found.items;
        if files.len() < 2 {
            return None;
        }
        let mut root = Folder::default();
        for file in files {
            let (path, name) = file.file_path.rsplit_once('/').unwrap_or(("", &file.file_path));
            let mut folder = &mut root;
            for part in path.splitn(MOST_LEVELS, '/').filter(|part| !part.is_empty()) {
                folder = folder.folders.entry(part).or_default();
            }
            folder.files.insert(name, file);
        }
        let are_open = files.len() <= SEEN_AT_ONCE;
        Some(Self { files: files.len(), is_cut: found.next.is_some(), nodes: root.nodes(address, are_open) })
    }
}

impl Folder<'_> {
    fn nodes(self, address: &Address, are_open: bool) -> Vec<Node> {
        let folders = self.folders.into_iter().map(|(name, folder)| folder.node(name, address, are_open));
        let files = self.files.into_iter().map(|(name, file)| Node {
            name: name.to_owned(),
            counts: Counts::from_file(file),
            is_open: false,
            href: Some(address.with("file", &file.file_path)),
            children: Vec::new(),
        });
        folders.chain(files).collect()
    }

    /// The folder as a line. One that holds nothing but another is named
    /// together with it.
    fn node(self, name: &str, address: &Address, are_open: bool) -> Node {
        let is_only_a_way = self.files.is_empty() && self.folders.len() == 1;
        let mut children = self.nodes(address, are_open);
        if is_only_a_way && let Some(only) = children.pop() {
            return Node { name: format!("{name}/{}", only.name), ..only };
        }
        let mut counts = Counts::default();
        children.iter().for_each(|child| counts.add(child.counts));
        Node { name: name.to_owned(), counts, is_open: are_open || counts.failed > 0, href: None, children }
    }
}

#[cfg(test)]
mod tests {
    use callboard_query::shapes::Totals;

    use super::*;

    fn file(path: &str, tests: i64, failed: i64) -> SpecItem {
        let totals = callboard_domain::totals::Totals {
            total_tests: tests,
            failed_tests: failed,
            ..callboard_domain::totals::Totals::default()
        };
        SpecItem { file_path: path.to_owned(), totals: Totals::from(totals), duration: 10 * tests }
    }

    fn lines(nodes: &[Node], depth: usize, into: &mut Vec<String>) {
        for node in nodes {
            let Counts { tests, failed, .. } = node.counts;
            let href = node.href.as_deref().unwrap_or("–");
            into.push(format!("{}{} {failed}/{tests} {href}", " ".repeat(depth), node.name));
            lines(&node.children, depth + 1, into);
        }
    }

    #[test]
    fn folders_sum_up_what_is_in_them_and_lead_to_their_files() {
        let address = Address::from_uri(&"/test-runs/1?sort=file".parse().unwrap());
        let deep = format!("{}f.spec.ts", "d/".repeat(400));
        let files = [
            file("tests/e2e/cart/add.spec.ts", 3, 1),
            file("tests/e2e/cart/remove.spec.ts", 2, 0),
            file("tests/e2e/login.spec.ts", 4, 2),
            file("smoke.spec.ts", 1, 0),
        ];
        let cut = |items: &[SpecItem]| Slice { items: items.to_vec(), next: None };
        let tree = FileTree::from_files(&cut(&files), &address).unwrap();
        let mut found = Vec::new();
        lines(&tree.nodes, 0, &mut found);
        assert_eq!(
            found,
            [
                "tests/e2e 3/9 –",
                " cart 1/5 –",
                "  add.spec.ts 1/3 /test-runs/1?sort=file&file=tests%2Fe2e%2Fcart%2Fadd.spec.ts",
                "  remove.spec.ts 0/2 /test-runs/1?sort=file&file=tests%2Fe2e%2Fcart%2Fremove.spec.ts",
                " login.spec.ts 2/4 /test-runs/1?sort=file&file=tests%2Fe2e%2Flogin.spec.ts",
                "smoke.spec.ts 0/1 /test-runs/1?sort=file&file=smoke.spec.ts",
            ]
        );
        assert!(FileTree::from_files(&cut(&files[..1]), &address).is_none());

        let tree =
            FileTree::from_files(&cut(&[file(&deep, 1, 0), file("d/e.spec.ts", 1, 0)]), &address).unwrap();
        let mut found = Vec::new();
        lines(&tree.nodes, 0, &mut found);
        let names: Vec<&str> = found.iter().filter_map(|line| line.trim_start().split(' ').next()).collect();
        let way = deep[2..].trim_end_matches("/f.spec.ts");
        assert_eq!(names, ["d", way, "f.spec.ts", "e.spec.ts"], "folders that are only a way are one line");
    }
}
