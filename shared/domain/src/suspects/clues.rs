//! What a failure shows that can be found again in a patch.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;
use url::Url;

use super::imports::{imported_files, without_ending};
use crate::evidence::Evidence;
use crate::text::{cut_str, strip_ansi};

/// Characters of an error and of an entry of the console that are looked at.
const MAX_ERROR_CHARS: usize = 20_000;
const MAX_ENTRY_CHARS: usize = 2_000;
/// Texts of one kind that are looked for.
const MAX_TEXTS: usize = 24;
/// Shortest and longest text that is looked for, characters.
const TEXT_CHARS: (usize, usize) = (3, 200);

/// A place in a stack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) path: String,
    pub(super) line: Option<u32>,
}

/// What a failure shows: files, texts and names to look for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Clues {
    /// File of the test.
    pub(super) test_file: String,
    /// Files of the stacks.
    pub(super) frames: Vec<Frame>,
    /// What the test imports, without endings, and what these import.
    pub(super) imports: [BTreeSet<String>; 2],
    /// Texts, test ids and classes that the failing locator or assertion wants.
    pub(super) wanted: BTreeSet<String>,
    /// Texts that were there instead.
    pub(super) received: BTreeSet<String>,
    /// Ids, classes and labels of the element that the locator found.
    pub(super) element: BTreeSet<String>,
    /// Words of code that bring about the state the element was in.
    pub(super) state: Vec<&'static str>,
    /// Paths of failed requests, with their status.
    pub(super) requests: BTreeSet<(String, i64)>,
    /// Path of the page.
    pub(super) page: Option<String>,
    /// Names in errors that nobody caught.
    pub(super) symbols: BTreeSet<String>,
    /// Last words of what differs in the environment since the last pass.
    pub(super) environment: BTreeSet<String>,
}

fn pattern(text: &str) -> Option<Regex> {
    Regex::new(text).ok()
}

/// `at name (file:line:column)` and `at file:line:column`.
static FRAME: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?m)^\s*at (?:.*\()?((?:[A-Za-z]:)?[^():\n]+):(\d+):\d+\)?\s*$"));
/// Lines of an error that hold its locator.
static LOCATOR: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r"(?m)(?:^\s*Locator:|waiting for|^\s*-? ?waiting for) (.+)$"));
static EXPECTED: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^\s*Expected(?: \w+)?: (.+)$"));
static RECEIVED: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"(?m)^\s*Received(?: \w+)?: (.+)$"));
static RESOLVED: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r"locator resolved to (<.+>)"));
static QUOTED: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|/((?:[^/\\\n]|\\.)+)/[a-z]*"#));
/// The first argument of `getByRole`.
static ROLE: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r#"getByRole\(\s*['"][\w-]+['"]\s*,?"#));
/// Class, id or attribute of a CSS selector.
static SELECTOR: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"[.#]([A-Za-z_][\w-]{2,})|\[[\w-]+[~|^$*]?=['"]?([^\]'"]+)['"]?\]"#));
static ATTRIBUTE: LazyLock<Option<Regex>> =
    LazyLock::new(|| pattern(r#"(?:class|id|data-[\w-]+|aria-label|name|for)="([^"]+)""#));
static CONTENT: LazyLock<Option<Regex>> = LazyLock::new(|| pattern(r">([^<>]{3,100})<"));
/// Names in the errors of JavaScript engines.
static SYMBOL: LazyLock<Option<Regex>> = LazyLock::new(|| {
    pattern(
        r#"\(reading '([\w$]+)'\)|([\w$.]+) is not (?:a function|defined|a constructor|iterable)|[Cc]an't find variable: ([\w$]+)|property '([\w$]+)'|"([\w$]+)" (?:of undefined|is undefined|is not)"#,
    )
});

/// What Playwright says of an element it could not use, with the words of code
/// that make it so.
const STATES: [(&str, &[&str]); 6] = [
    ("element is not visible", &["display", "visibility", "hidden", "opacity"]),
    ("element is not enabled", &["disabled"]),
    ("element is not editable", &["readonly", "readOnly"]),
    ("intercepts pointer events", &["z-index", "position", "overlay", "pointer-events"]),
    ("element is outside of the viewport", &["position", "overflow", "transform"]),
    ("element is not stable", &["animation", "transition", "transform"]),
];

/// All groups of a pattern that matched, in a text.
fn found<'t>(pattern: &'static LazyLock<Option<Regex>>, text: &'t str) -> impl Iterator<Item = &'t str> {
    let pattern = pattern.as_ref();
    let matches = pattern.into_iter().flat_map(move |pattern| pattern.captures_iter(text));
    matches.flat_map(|found| found.iter().skip(1).flatten().map(|group| group.as_str()).collect::<Vec<_>>())
}

/// Adds a text that is worth looking for.
fn add(texts: &mut BTreeSet<String>, text: &str) {
    let text = text.trim();
    let chars = text.chars().count();
    let is_telling = text.chars().any(|letter| !letter.is_ascii_digit() && !letter.is_whitespace());
    if texts.len() < MAX_TEXTS && (TEXT_CHARS.0..=TEXT_CHARS.1).contains(&chars) && is_telling {
        texts.insert(text.to_owned());
    }
}

/// Engines that a locator may begin with, and other words that name no element.
const NO_TEXTS: [&str; 4] = ["internal:", "css=", "xpath=", "nth="];

/// Adds what a locator looks for: its texts, and classes and ids of selectors.
fn add_locator(texts: &mut BTreeSet<String>, locator: &str) {
    // The role is a word that half of all pages have.
    let named = match ROLE.as_ref() {
        Some(role) => role.replace_all(locator, "("),
        None => locator.into(),
    };
    for quoted in found(&QUOTED, &named) {
        let mut is_selector = false;
        for part in found(&SELECTOR, quoted) {
            is_selector = true;
            add(texts, part);
        }
        if !is_selector && !NO_TEXTS.iter().any(|engine| quoted.starts_with(engine)) {
            add(texts, &quoted.replace("\\'", "'").replace("\\\"", "\""));
        }
    }
}

/// The path of an address, without its last slash.
fn path_of(address: &str) -> Option<String> {
    let path = match Url::parse(address) {
        Ok(url) => url.path().to_owned(),
        Err(_) => address.strip_prefix('/').map(|rest| format!("/{rest}"))?,
    };
    let path = path.trim_end_matches('/');
    (path.len() > 1).then(|| path.to_owned())
}

impl Clues {
    /// What the failure of a test shows. `environment` are the names of what
    /// differs since its last pass, such as `browser.version`.
    #[must_use]
    pub fn of_failure(test_file: &str, evidence: &Evidence, environment: &[String]) -> Self {
        let mut clues = Self { test_file: test_file.to_owned(), ..Self::default() };
        if let Some(error) = &evidence.error {
            let plain = strip_ansi(error);
            clues.read_error(cut_str(&plain, MAX_ERROR_CHARS));
        }
        for frame in &evidence.test_source_frames {
            let line = frame.line.and_then(|line| u32::try_from(line).ok());
            clues.frames.push(Frame { path: frame.file.clone(), line });
        }
        for request in evidence.network_requests.iter().filter(|request| request.is_failing()) {
            if let Some(path) = path_of(&request.url).filter(|_| clues.requests.len() < MAX_TEXTS) {
                clues.requests.insert((path, request.status));
            }
        }
        for entry in evidence.console_logs.iter().filter(|entry| entry.is_page_error()) {
            let text = cut_str(&entry.text, MAX_ENTRY_CHARS);
            for symbol in found(&SYMBOL, text) {
                add(&mut clues.symbols, symbol.rsplit('.').next().unwrap_or(symbol));
            }
            clues.add_frames(text);
        }
        clues.page = evidence.page_state.as_ref().and_then(|page| path_of(&page.url));
        if let Some(source) = &evidence.test_source {
            clues.imports[0] = imported_files(test_file, source);
        }
        for name in environment {
            let last = name.rsplit('.').next().unwrap_or(name);
            add(&mut clues.environment, last);
        }
        clues
    }

    fn read_error(&mut self, error: &str) {
        self.add_frames(error);
        for locator in found(&LOCATOR, error) {
            add_locator(&mut self.wanted, locator);
        }
        for expected in found(&EXPECTED, error) {
            for text in found(&QUOTED, expected) {
                add(&mut self.wanted, text);
            }
        }
        for received in found(&RECEIVED, error) {
            for text in found(&QUOTED, received) {
                add(&mut self.received, text);
            }
        }
        for element in found(&RESOLVED, error) {
            for value in found(&ATTRIBUTE, element) {
                value.split_whitespace().for_each(|word| add(&mut self.element, word));
            }
            found(&CONTENT, element).for_each(|text| add(&mut self.element, text));
        }
        for (sign, words) in STATES {
            if error.contains(sign) {
                self.state.extend(words);
            }
        }
    }

    fn add_frames(&mut self, text: &str) {
        let Some(pattern) = FRAME.as_ref() else { return };
        for found in pattern.captures_iter(text) {
            let (Some(path), line) = (found.get(1), found.get(2)) else { continue };
            let path = path.as_str().trim_start_matches("file://").replace('\\', "/");
            if self.frames.len() < MAX_TEXTS && !path.contains("node_modules/") {
                self.frames.push(Frame { path, line: line.and_then(|line| line.as_str().parse().ok()) });
            }
        }
    }

    /// Paths of the scripts that the test imports itself, with the ending of the
    /// file of the test.
    pub fn import_paths(&self) -> impl Iterator<Item = String> {
        let ending = if self.test_file.contains(".js") { "js" } else { "ts" };
        self.imports[0].iter().map(move |path| format!("{path}.{ending}"))
    }

    /// Adds what one of these files imports.
    pub fn add_imports_of(&mut self, path: &str, source: &str) {
        let known = without_ending(&self.test_file).to_owned();
        let found = imported_files(path, source).into_iter();
        let [direct, indirect] = &mut self.imports;
        indirect.extend(found.filter(|file| !direct.contains(file) && *file != known));
    }
}
