//! What ties a changed file to a failure.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::FileChange;
use super::clues::Clues;
use super::imports::without_ending;
use super::patch::{Hunk, Patch};

/// Lines around a frame within which a change counts as one of its place.
const NEAR_LINES: u32 = 10;
/// Status from which on a request failed at the server.
const SERVER_ERROR: i64 = 500;

/// A tie between a file and a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReasonKind {
    /// It takes away a text, test id or class that the test wants.
    RemovesWanted,
    /// It adds what was there instead.
    AddsReceived,
    /// It adds or changes lines with what the test wants.
    TouchesWanted,
    /// It is in the stack of the failure.
    InStack,
    /// The test imports it.
    Imported,
    /// What the test imports imports it.
    ImportedByImport,
    /// It changes the path of a failed request or of the page.
    ChangesRoute,
    /// It deals with the path of a failed request.
    DealsWithRequest,
    /// It changes a name of an uncaught error.
    ChangesSymbol,
    /// It changes what hides or disables elements.
    ChangesState,
    /// It changes what stands beside the element that was found.
    TouchesElement,
    /// It changes what differs in the environment.
    ChangesEnvironment,
    /// Its path is about the same thing as the test.
    SameTopic,
    /// It holds documents.
    Documents,
    /// It holds other tests.
    OtherTests,
    /// It changes no code: blanks and comments only.
    FormattingOnly,
}

/// A tie with its weight.
#[derive(Debug, Clone, PartialEq)]
pub struct Reason {
    /// What ties them.
    pub kind: ReasonKind,
    /// The text, path or name that ties them; empty where there is none.
    pub detail: String,
    /// How strongly; below 0 when it speaks against the file.
    pub weight: f64,
}

impl fmt::Display for Reason {
    /// A clause about the file, such as ``removes `Place order`, which the test looks for``.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let detail = &self.detail;
        match self.kind {
            ReasonKind::RemovesWanted => write!(f, "removes “{detail}”, which the test looks for"),
            ReasonKind::AddsReceived => write!(f, "adds “{detail}”, which the test found instead"),
            ReasonKind::TouchesWanted => write!(f, "changes lines with “{detail}”, which the test looks for"),
            ReasonKind::InStack => f.write_str("is in the stack of the failure"),
            ReasonKind::Imported => f.write_str("is imported by the test"),
            ReasonKind::ImportedByImport => f.write_str("is imported by a file that the test imports"),
            ReasonKind::ChangesRoute => write!(f, "changes the path {detail}"),
            ReasonKind::DealsWithRequest => write!(f, "handles the failed request {detail}"),
            ReasonKind::ChangesSymbol => write!(f, "changes “{detail}”, named by an uncaught error"),
            ReasonKind::ChangesState => {
                write!(f, "changes “{detail}”, which decides how elements can be used")
            }
            ReasonKind::TouchesElement => write!(f, "changes lines beside “{detail}”, which the test needs"),
            ReasonKind::ChangesEnvironment => {
                write!(f, "changes “{detail}”, which differs in the environment")
            }
            ReasonKind::SameTopic => write!(f, "its path is about “{detail}”"),
            ReasonKind::Documents => f.write_str("holds documents"),
            ReasonKind::OtherTests => f.write_str("holds other tests"),
            ReasonKind::FormattingOnly => f.write_str("changes blanks and comments only"),
        }
    }
}

fn reason(kind: ReasonKind, detail: &str, weight: f64) -> Reason {
    Reason { kind, detail: detail.to_owned(), weight }
}

/// Words of paths that say nothing of what a file is about.
const COMMON: [&str; 42] = [
    "src",
    "web",
    "app",
    "apps",
    "packages",
    "lib",
    "libs",
    "index",
    "main",
    "test",
    "tests",
    "spec",
    "specs",
    "e2e",
    "page",
    "pages",
    "component",
    "components",
    "route",
    "routes",
    "api",
    "server",
    "client",
    "service",
    "services",
    "util",
    "utils",
    "helper",
    "helpers",
    "common",
    "shared",
    "screen",
    "screens",
    "hook",
    "hooks",
    "style",
    "styles",
    "view",
    "views",
    "http",
    "https",
    "localhost",
];

/// Words of a text, in lower case: `CartSummary.tsx` has `cart` and `summary`.
pub(super) fn path_words(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut word = String::new();
    let mut was_lower = false;
    let mut end = |word: &mut String| {
        let known = std::mem::take(word);
        if known.chars().count() >= 3 && !COMMON.contains(&known.as_str()) {
            // Plural and singular are one word here.
            found.insert(known.strip_suffix('s').filter(|bare| bare.len() > 3).unwrap_or(&known).to_owned());
        }
    };
    for letter in text.chars().take(2_000) {
        if !letter.is_alphabetic() || (letter.is_uppercase() && was_lower) {
            end(&mut word);
        }
        if letter.is_alphabetic() {
            word.extend(letter.to_lowercase());
        }
        was_lower = letter.is_lowercase();
    }
    end(&mut word);
    found
}

/// Scores the files of one range.
pub(super) struct Scorer<'c> {
    clues: &'c Clues,
    /// Words of the failure with how rare they are among the changed paths, 0 to 1.
    topic: BTreeMap<String, f64>,
}

/// Occurrences of a text that begin and end where a word does.
fn count(text: &str, wanted: &str) -> usize {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let occurrences = text.match_indices(wanted);
    let is_whole = |at: usize| {
        let before = text[..at].chars().next_back();
        let after = text[at + wanted.len()..].chars().next();
        let begins =
            !(wanted.starts_with(is_word) || wanted.starts_with('/')) || !before.is_some_and(is_word);
        begins && (!wanted.ends_with(is_word) || !after.is_some_and(is_word))
    };
    occurrences.filter(|(at, _)| is_whole(*at)).count()
}

impl Hunk {
    fn removes(&self, wanted: &str) -> bool {
        count(&self.removed, wanted) > count(&self.added, wanted)
    }

    fn adds(&self, wanted: &str) -> bool {
        count(&self.added, wanted) > count(&self.removed, wanted)
    }

    fn changes(&self, wanted: &str) -> bool {
        count(&self.removed, wanted) + count(&self.added, wanted) > 0
    }

    fn has(&self, wanted: &str) -> bool {
        self.changes(wanted) || count(&self.context, wanted) > 0
    }

    /// Whether the code before and after is the same but for blanks and comments.
    fn is_formatting(&self) -> bool {
        code(&self.removed) == code(&self.added)
    }
}

/// A text without blanks and without comments that end a line.
fn code(text: &str) -> String {
    let bare = |line: &str| {
        let mut line = line.trim();
        for comment in ["// ", "/* ", "# ", "<!--", "{/*"] {
            line = line.split(comment).next().unwrap_or(line);
        }
        line.split_whitespace().collect::<String>()
    };
    text.lines().map(bare).collect()
}

/// Whether two paths name the same file: one may have folders before it that
/// the other does not know.
fn is_same_file(one: &str, other: &str) -> bool {
    let ends = |long: &str, short: &str| {
        long.strip_suffix(short).is_some_and(|before| before.is_empty() || before.ends_with('/'))
    };
    let (one, other) = (one.trim_start_matches("./"), other.trim_start_matches("./"));
    !one.is_empty() && !other.is_empty() && (ends(one, other) || ends(other, one))
}

fn is_document(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let is_in_folder = lower.starts_with("docs/") || lower.contains("/docs/");
    is_in_folder || [".md", ".mdx", ".rst", ".txt", ".adoc"].iter().any(|ending| lower.ends_with(ending))
}

fn is_test(path: &str) -> bool {
    path.contains(".spec.") || path.contains(".test.") || path.contains("__tests__/")
}

fn is_manifest(path: &str) -> bool {
    const NAMES: [&str; 10] = [
        "package.json",
        "package-lock.json",
        "npm-shrinkwrap.json",
        "yarn.lock",
        "pnpm-lock.yaml",
        "bun.lock",
        "Dockerfile",
        ".nvmrc",
        ".node-version",
        ".tool-versions",
    ];
    NAMES.contains(&path.rsplit('/').next().unwrap_or(path))
}

impl<'c> Scorer<'c> {
    /// What is looked for, among the files that changed.
    pub(super) fn new(clues: &'c Clues, paths: BTreeSet<&str>) -> Self {
        let stem = clues.test_file.rsplit('/').next().unwrap_or_default();
        let mut topic = path_words(stem);
        let requests = clues.requests.iter().map(|(path, _)| path.as_str());
        let texts = clues.wanted.iter().map(String::as_str).chain(clues.page.as_deref()).chain(requests);
        topic.extend(texts.flat_map(path_words));
        let all: Vec<BTreeSet<String>> = paths.iter().map(|path| path_words(path)).collect();
        let total = all.len() as f64;
        let rarity = |word: &String| {
            let with = all.iter().filter(|words| words.contains(word)).count() as f64;
            if total < 2.0 { 1.0 } else { ((total + 1.0) / (with + 1.0)).ln() / (total + 1.0).ln() }
        };
        Self {
            clues,
            topic: topic.into_iter().map(|word| (rarity(&word), word)).map(|(r, w)| (w, r)).collect(),
        }
    }

    /// Everything that ties a file to the failure.
    pub(super) fn score(&self, file: &FileChange, patch: Option<&Patch>) -> Vec<Reason> {
        let mut reasons = Vec::new();
        self.by_path(file, patch, &mut reasons);
        if let Some(patch) = patch {
            self.by_texts(patch, &mut reasons);
            self.by_requests(file, patch, &mut reasons);
            self.by_state(file, patch, &mut reasons);
            if !patch.hunks.is_empty() && patch.hunks.iter().all(Hunk::is_formatting) {
                // What is moved and reindented breaks next to nothing.
                let sum: f64 = reasons.iter().map(|found: &Reason| found.weight.max(0.0)).sum();
                reasons.push(reason(ReasonKind::FormattingOnly, "", -sum * 0.75));
            }
        }
        reasons
    }

    /// By where it is.
    fn by_path(&self, file: &FileChange, patch: Option<&Patch>, reasons: &mut Vec<Reason>) {
        let clues = self.clues;
        let mut paths = std::iter::once(file.path.as_str()).chain(file.previous_path.as_deref());
        let is = |wanted: &str| paths.clone().any(|path| is_same_file(path, wanted));
        let frames: Vec<_> = clues.frames.iter().filter(|frame| is(&frame.path)).collect();
        let is_own = is(&clues.test_file);
        let bare: Vec<&str> = paths.clone().map(without_ending).collect();
        let imported = |depth: usize| {
            clues.imports[depth].iter().any(|wanted| bare.iter().any(|path| is_same_file(path, wanted)))
        };
        if !frames.is_empty() || is_own {
            let is_near = frames.iter().any(|frame| match (frame.line, patch) {
                (Some(line), Some(patch)) => patch.hunks.iter().any(|hunk| {
                    let (first, end) = hunk.lines;
                    (first.saturating_sub(NEAR_LINES)..end.saturating_add(NEAR_LINES)).contains(&line)
                }),
                _ => true,
            });
            reasons.push(reason(ReasonKind::InStack, "", if is_near { 5.0 } else { 3.0 }));
        } else if imported(0) {
            reasons.push(reason(ReasonKind::Imported, "", 4.0));
        } else if imported(1) {
            reasons.push(reason(ReasonKind::ImportedByImport, "", 2.0));
        } else if paths.any(is_test) {
            reasons.push(reason(ReasonKind::OtherTests, "", -3.0));
        }
        if is_document(&file.path) {
            reasons.push(reason(ReasonKind::Documents, "", -3.0));
        }
        let own = path_words(&file.path);
        let shared = self.topic.iter().filter(|(word, _)| own.contains(*word));
        if let Some((word, rarity)) = shared.max_by(|one, other| one.1.total_cmp(other.1)) {
            reasons.push(reason(ReasonKind::SameTopic, word, 3.0 * rarity));
        }
        if is_manifest(&file.path) && !clues.environment.is_empty() {
            reasons.push(reason(ReasonKind::ChangesEnvironment, &file.path, 2.0));
        }
    }

    /// By the texts and names that its patch changes.
    fn by_texts(&self, patch: &Patch, reasons: &mut Vec<Reason>) {
        let clues = self.clues;
        let any = |test: &dyn Fn(&Hunk) -> bool| patch.hunks.iter().any(test);
        let find = |texts: &'c BTreeSet<String>, test: &dyn Fn(&Hunk, &str) -> bool| {
            texts.iter().filter(|text| any(&|hunk| test(hunk, text))).max_by_key(|text| text.len())
        };
        if let Some(text) = find(&clues.wanted, &Hunk::removes) {
            reasons.push(reason(ReasonKind::RemovesWanted, text, 8.0));
        } else if let Some(text) = find(&clues.wanted, &Hunk::adds) {
            // The test may want something new that is not there yet.
            reasons.push(reason(ReasonKind::TouchesWanted, text, 4.0));
        } else if let Some(text) = find(&clues.wanted, &Hunk::changes) {
            reasons.push(reason(ReasonKind::TouchesWanted, text, 2.0));
        }
        if let Some(text) = find(&clues.received, &Hunk::adds) {
            reasons.push(reason(ReasonKind::AddsReceived, text, 6.0));
        }
        if let Some(text) = find(&clues.symbols, &|hunk, text| hunk.removes(text)) {
            reasons.push(reason(ReasonKind::ChangesSymbol, text, 6.0));
        } else if let Some(text) = find(&clues.symbols, &Hunk::changes) {
            reasons.push(reason(ReasonKind::ChangesSymbol, text, 4.0));
        }
        if let Some(text) = find(&clues.environment, &Hunk::changes) {
            reasons.push(reason(ReasonKind::ChangesEnvironment, text, 4.0));
        }
        if let Some(sign) = self.changed_sign(patch) {
            reasons.push(reason(ReasonKind::TouchesWanted, &sign.to_string(), 3.0));
        }
    }

    /// A sign such as `€` that the wanted and the received text both have, in a
    /// line that is written in another way now: how values are shown changed.
    fn changed_sign(&self, patch: &Patch) -> Option<char> {
        let clues = self.clues;
        let is_sign = |letter: &char| !letter.is_alphanumeric() && !letter.is_ascii();
        let mut signs =
            clues.wanted.iter().chain(&clues.received).flat_map(|text| text.chars()).filter(is_sign);
        if clues.received.is_empty() {
            return None;
        }
        signs
            .find(|sign| patch.hunks.iter().any(|hunk| hunk.removed.contains(*sign) && !hunk.is_formatting()))
    }

    /// By the paths of failed requests and of the page.
    fn by_requests(&self, file: &FileChange, patch: &Patch, reasons: &mut Vec<Reason>) {
        let clues = self.clues;
        let pages = clues.page.iter().map(String::as_str);
        let requested = clues.requests.iter().map(|(path, _)| path.as_str());
        let removed = |path: &&str| patch.hunks.iter().any(|hunk| hunk.removes(path));
        if let Some(path) = requested.chain(pages).find(removed) {
            reasons.push(reason(ReasonKind::ChangesRoute, path, 7.0));
            return;
        }
        // Tests send requests; they do not answer them.
        let of_tests =
            [ReasonKind::InStack, ReasonKind::Imported, ReasonKind::OtherTests, ReasonKind::Documents];
        if reasons.iter().any(|found| of_tests.contains(&found.kind)) {
            return;
        }
        let own = path_words(&file.path);
        for (path, status) in &clues.requests {
            let mentions = patch.hunks.iter().any(|hunk| hunk.has(path));
            let is_about = path_words(path).iter().any(|word| own.contains(word));
            if mentions || is_about {
                let is_served = *status >= SERVER_ERROR && is_of_server(&file.path);
                let weight = if mentions { 3.0 } else { 2.0 } + if is_served { 2.0 } else { 0.0 };
                reasons.push(reason(ReasonKind::DealsWithRequest, path, weight));
                return;
            }
        }
    }

    /// By what it changes of the element that was found and could not be used.
    fn by_state(&self, file: &FileChange, patch: &Patch, reasons: &mut Vec<Reason>) {
        let clues = self.clues;
        let word = clues.state.iter().find(|word| {
            patch
                .hunks
                .iter()
                .any(|hunk| !hunk.is_formatting() && !hunk.removed.is_empty() && hunk.changes(word))
        });
        if let Some(word) = word {
            reasons.push(reason(ReasonKind::ChangesState, word, 4.0));
        }
        let own = path_words(&file.path);
        let texts = clues.element.iter().chain(&clues.wanted);
        let beside = |text: &&String| patch.hunks.iter().any(|hunk| count(&hunk.context, text) > 0);
        match texts.clone().filter(beside).max_by_key(|text| text.len()) {
            Some(text) => {
                let weight = if clues.element.contains(text) { 3.0 } else { 1.0 };
                reasons.push(reason(ReasonKind::TouchesElement, text, weight));
            }
            None => {
                let about =
                    clues.element.iter().find(|text| path_words(text).iter().any(|word| own.contains(word)));
                if let Some(text) = about {
                    reasons.push(reason(ReasonKind::TouchesElement, text, 1.0));
                }
            }
        }
    }
}

/// Whether a path looks like code that runs at the server.
fn is_of_server(path: &str) -> bool {
    const FOLDERS: [&str; 10] = [
        "server",
        "backend",
        "api",
        "services",
        "controllers",
        "models",
        "db",
        "database",
        "migrations",
        "routes",
    ];
    const ENDINGS: [&str; 9] = ["sql", "py", "go", "rb", "java", "kt", "php", "rs", "cs"];
    let ending = path.rsplit('.').next().unwrap_or_default();
    path.split('/').any(|folder| FOLDERS.contains(&folder)) || ENDINGS.contains(&ending)
}
