//! The metadata object of a run: bounded in size, without credentials, and
//! what it says about branch, commit, author, change request and build.

use serde_json::{Map, Value};

use crate::evidence::url_text::{is_web_url, strip_user_info};
use crate::text::cut_str;

/// Most bytes of metadata as JSON.
pub const MAX_METADATA_BYTES: usize = 256 * 1024;
/// Keys only the server writes.
const RESERVED: [&str; 2] = ["import", DROPPED];
const DROPPED: &str = "_dropped";
/// Keys whose meaning is known; they go last when room runs out.
const KNOWN: [&str; 14] = [
    "projectDescription",
    "relatedIssue",
    "tags",
    "customData",
    "scm",
    "ci",
    "host",
    "playwrightConfig",
    "performance",
    "ciInfo",
    "htmlReport",
    "playwrightProject",
    "branch",
    "gitBranch",
];
/// Keys the run's own columns are read from; they go after everything else.
const ESSENTIAL: [&str; 4] = ["scm", "ci", "branch", "gitBranch"];
/// Names listed under `_dropped`, and their length.
const MAX_DROPPED_NAMES: usize = 100;
const MAX_DROPPED_NAME_CHARS: usize = 100;
const MAX_TEXT_CHARS: usize = 500;
const MAX_URL_CHARS: usize = 2_048;

/// Takes reserved keys and credentials out and drops keys until the rest
/// fits: unknown ones first, the largest first. `_dropped` names them.
#[must_use]
pub fn bounded_metadata(mut metadata: Map<String, Value>) -> Map<String, Value> {
    metadata.retain(|key, _| !RESERVED.contains(&key.as_str()));
    for section in ["scm", "ci"] {
        if let Some(Value::Object(fields)) = metadata.get_mut(section) {
            for value in fields.values_mut() {
                if let Value::String(text) = value
                    && text.contains('@')
                {
                    *text = without_credentials(std::mem::take(text));
                }
            }
        }
    }
    drop_until_it_fits(&mut metadata);
    metadata
}

/// Only addresses have credentials in front of an `@`; sentences keep theirs.
fn without_credentials(text: String) -> String {
    if text.chars().any(char::is_whitespace) { text } else { strip_user_info(text) }
}

fn drop_until_it_fits(metadata: &mut Map<String, Value>) {
    // Two bytes for the braces, and quotes, colon and comma around each entry.
    let size = |key: &str, value: &Value| serialised_len(key) + serialised_len(value) + 2;
    let mut sizes: Vec<(bool, bool, usize, String)> = metadata
        .iter()
        .map(|(key, value)| {
            let name = key.as_str();
            (ESSENTIAL.contains(&name), KNOWN.contains(&name), size(key, value), key.clone())
        })
        .collect();
    let mut total = 2 + sizes.iter().map(|entry| entry.2).sum::<usize>();
    if total <= MAX_METADATA_BYTES {
        return;
    }
    sizes.sort_by(|one, other| (one.0, one.1, other.2, &one.3).cmp(&(other.0, other.1, one.2, &other.3)));
    let mut dropped = Vec::new();
    let mut total_dropped_names = serialised_len(DROPPED) + 4;
    for (_, _, size, key) in sizes {
        if total + total_dropped_names <= MAX_METADATA_BYTES {
            break;
        }
        metadata.remove(&key);
        total -= size;
        if dropped.len() < MAX_DROPPED_NAMES {
            let name = cut_str(&key, MAX_DROPPED_NAME_CHARS).to_owned();
            total_dropped_names += serialised_len(&name) + 1;
            dropped.push(Value::String(name));
        }
    }
    metadata.insert(DROPPED.to_owned(), Value::Array(dropped));
}

/// Bytes of a value as JSON, without writing it anywhere.
fn serialised_len<T: serde::Serialize + ?Sized>(value: &T) -> usize {
    struct Counter(usize);
    impl std::io::Write for Counter {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        // What cannot be written has no place in SQL either.
        Err(_) => usize::MAX / 4,
    }
}

/// Where a run came from: the first value of each kind that says something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Branch, `pull/7` for a change request's ref.
    pub branch: Option<String>,
    /// Default branch of the repository.
    pub default_branch: Option<String>,
    /// Commit hash as sent.
    pub commit_sha: Option<String>,
    /// Commit message, ≤ 500 characters.
    pub commit_message: Option<String>,
    /// Author of the commit.
    pub author: Option<String>,
    /// Number or address of the change request.
    pub pull_request: Option<String>,
    /// Absolute http or https URL of the build.
    pub build_url: Option<String>,
    /// Name of the build system.
    pub ci_provider: Option<String>,
    /// The work tree had uncommitted changes.
    pub is_dirty: bool,
}

impl Origin {
    /// Resolves each kind: the request's own `fields` first, then `metadata`
    /// section by section.
    #[must_use]
    pub fn resolve(fields: &Map<String, Value>, metadata: &Map<String, Value>) -> Self {
        let field = |name: &str| text(fields.get(name));
        let meta = |name: &str| text(metadata.get(name));
        let inside =
            |section: &str, name: &str| text(metadata.get(section).and_then(|section| section.get(name)));
        let first =
            |candidates: &[Option<String>]| candidates.iter().flatten().next().map(|text| short(text));
        Self {
            branch: [
                field("branch"),
                inside("scm", "branch"),
                meta("branch"),
                meta("gitBranch"),
                inside("ci", "branch"),
                inside("ci", "headRef"),
                inside("ci", "ref"),
            ]
            .into_iter()
            .flatten()
            .find_map(|name| branch_name(&name)),
            default_branch: inside("scm", "defaultBranch").and_then(|name| branch_name(&name)),
            commit_sha: [
                field("commit"),
                inside("scm", "commit"),
                inside("ci", "commit"),
                inside("ci", "sha"),
            ]
            .iter()
            .flatten()
            .find(|commit| *commit != "HEAD")
            .map(|commit| short(commit)),
            commit_message: first(&[field("commitMessage"), inside("scm", "commitMessage")]),
            author: first(&[field("author"), inside("scm", "author")]),
            pull_request: first(&[field("pullRequest"), inside("ci", "pullRequest")]),
            build_url: [
                field("buildUrl"),
                inside("ci", "buildUrl"),
                inside("ci", "pipelineUrl"),
                inside("ci", "jobUrl"),
            ]
            .into_iter()
            .flatten()
            .find(|address| is_web_url(address, MAX_URL_CHARS)),
            ci_provider: first(&[inside("ci", "provider")]),
            is_dirty: metadata.get("scm").and_then(|scm| scm.get("dirty")) == Some(&Value::Bool(true)),
        }
    }
}

fn short(text: &str) -> String {
    cut_str(text, MAX_TEXT_CHARS).to_owned()
}

/// Text that says something; change requests come as numbers, too.
fn text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.trim()).filter(|text| !text.is_empty()).map(str::to_owned),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The branch a ref names; nothing for `HEAD`, which names none.
fn branch_name(name: &str) -> Option<String> {
    let branch =
        if let Some(branch) = name.strip_prefix("refs/heads/").or_else(|| name.strip_prefix("refs/tags/")) {
            branch.to_owned()
        } else if let Some(pull) = name.strip_prefix("refs/pull/") {
            format!("pull/{}", pull.split('/').next().unwrap_or_default())
        } else {
            name.to_owned()
        };
    (!branch.is_empty() && branch != "HEAD").then(|| short(&branch))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other}"),
        }
    }

    fn branch(fields: Value, metadata: Value) -> Option<String> {
        Origin::resolve(&object(fields), &object(metadata)).branch
    }

    #[test]
    fn the_first_branch_that_is_one_counts() {
        let everything = json!({"scm": {"branch": "b"}, "branch": "c", "gitBranch": "d",
            "ci": {"branch": "e", "headRef": "f", "ref": "refs/heads/g"}});
        assert_eq!(branch(json!({"branch": "a"}), everything.clone()).as_deref(), Some("a"));
        let mut left = object(everything);
        for (remove, expected) in [("scm", "c"), ("branch", "d"), ("gitBranch", "e")] {
            left.remove(remove);
            assert_eq!(
                branch(json!({"branch": " "}), Value::Object(left.clone())).as_deref(),
                Some(expected)
            );
        }
        for (metadata, expected) in [
            (json!({"scm": {"branch": "HEAD"}, "ci": {"ref": "refs/heads/main"}}), Some("main")),
            (
                json!({"ci": {"branch": "HEAD", "headRef": "topic", "ref": "refs/pull/7/merge"}}),
                Some("topic"),
            ),
            (json!({"ci": {"headRef": "", "ref": "refs/pull/7/merge"}}), Some("pull/7")),
            (json!({"ci": {"ref": "refs/tags/v1.2"}}), Some("v1.2")),
            (json!({"ci": {"ref": "refs/heads/feature/x"}}), Some("feature/x")),
            (json!({"scm": {"branch": "refs/heads/main"}}), Some("main")),
            (json!({"scm": {"branch": 5, "x": 1}, "ci": {"ref": "HEAD"}}), Some("5")),
            (json!({"scm": "text", "ci": {"ref": "refs/heads/HEAD"}}), None),
        ] {
            assert_eq!(branch(json!({}), metadata.clone()).as_deref(), expected, "{metadata}");
        }
    }

    #[test]
    fn origin_is_completed_from_metadata() {
        let fields = object(
            json!({"commit": "HEAD", "buildUrl": "javascript:alert(1)", "commitMessage": "ä".repeat(501)}),
        );
        let metadata = object(
            json!({"scm": {"author": "Ada", "commitMessage": "other", "defaultBranch": " refs/heads/main", "dirty": true},
            "ci": {"sha": "abc", "jobUrl": "https://ci.test/1", "pullRequest": 7, "provider": "GitLab CI"}}),
        );
        let origin = Origin::resolve(&fields, &metadata);
        let expected = Origin {
            branch: None,
            default_branch: Some("main".into()),
            commit_sha: Some("abc".into()),
            commit_message: Some("ä".repeat(500)),
            author: Some("Ada".into()),
            pull_request: Some("7".into()),
            build_url: Some("https://ci.test/1".into()),
            ci_provider: Some("GitLab CI".into()),
            is_dirty: true,
        };
        assert_eq!(origin, expected);
    }

    #[test]
    fn metadata_keeps_its_bound_and_says_what_it_lost() {
        let filler = |bytes: usize| "x".repeat(bytes);
        let fitting = json!({"big": filler(MAX_METADATA_BYTES - 11)});
        let kept = bounded_metadata(object(fitting.clone()));
        assert_eq!(Value::Object(kept.clone()), fitting);
        assert!(serde_json::to_string(&kept).expect("is accepted").len() <= MAX_METADATA_BYTES);

        let above = json!({"scm": {"branch": "main"}, "customData": filler(100_000), "mine": filler(60_000), "other": filler(120_000)});
        let kept = bounded_metadata(object(above));
        assert_eq!(kept.keys().collect::<Vec<_>>(), ["_dropped", "customData", "mine", "scm"]);
        assert_eq!(kept["_dropped"], json!(["other"]));

        let hopeless = json!({"scm": {"x": filler(300_000)}, "a": filler(300_000), "tags": filler(300_000)});
        let kept = bounded_metadata(object(hopeless));
        assert_eq!(Value::Object(kept), json!({"_dropped": ["a", "tags", "scm"]}));
    }

    #[test]
    fn reserved_keys_and_credentials_are_removed() {
        let sent = json!({"import": {"source": "x"}, "_dropped": ["x"],
            "scm": {"remoteUrl": "https://bot:s3cret@git.test/a.git", "author": "Ada <ada@x.test>"},
            "ci": {"repository": "https://s3cret@git.test/a", "actor": "ada@x.test"}});
        let kept = bounded_metadata(object(sent));
        assert_eq!(
            Value::Object(kept),
            json!({"scm": {"remoteUrl": "https://git.test/a.git", "author": "Ada <ada@x.test>"},
                "ci": {"repository": "https://git.test/a", "actor": "ada@x.test"}})
        );
    }
}
