//! Names of entries beside the events. They come from the trace or from a
//! caller, and are only ever looked up in the directory.

use sha1::{Digest as _, Sha1};

use super::{Archive, FailingAction, Trace};

/// The entry that holds a body: its hash, and the ending some formats add.
/// `None` for what is no such name.
#[must_use]
pub fn resource_name(archive: &Archive, hash: &str) -> Option<String> {
    let (digest, ending) = hash.split_once('.').map_or((hash, ""), |(digest, ending)| (digest, ending));
    let is_hash = digest.len() == 40 && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_ending = ending.len() <= 10 && ending.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_hash || !is_ending {
        return None;
    }
    let exact = format!("resources/{hash}");
    if archive.has(&exact) {
        return Some(exact);
    }
    // Formats differ in whether the ending is part of what a request refers to.
    let prefix = format!("resources/{digest}.");
    archive.names().into_iter().find(|name| name.starts_with(&prefix)).map(str::to_owned)
}

/// The entry that holds a source file, named after the hash of its path.
#[must_use]
pub fn source_name(archive: &Archive, path: &str) -> Option<String> {
    let hash = hex::encode(Sha1::digest(path.as_bytes()));
    let ending = path.rsplit_once('.').map_or("", |(_, ending)| ending);
    let candidates = [
        format!("src/{hash}.{ending}"),
        format!("src/{hash}"),
        format!("src/{hash}.txt"),
        format!("resources/src@{hash}.txt"),
    ];
    candidates.into_iter().find(|name| archive.has(name))
}

impl Trace {
    /// The entry with a picture of the failure: what the test attached as its
    /// screenshot, else the last picture before the action ended.
    #[must_use]
    pub fn screenshot(&self, failing: Option<&FailingAction<'_>>) -> Option<&str> {
        let attached = self.attachment(|name, content_type| {
            (name == "screenshot" || name.starts_with("test-failed")) && content_type.starts_with("image/")
        });
        attached.or_else(|| {
            let end = failing.and_then(|failing| failing.action.end).unwrap_or(f64::INFINITY);
            let before = self.screencast.iter().rev().find(|frame| frame.at <= end);
            before.or(self.screencast.last()).map(|frame| frame.entry.as_str())
        })
    }

    /// The entry with what the runner wrote about the failure.
    #[must_use]
    pub fn error_context(&self) -> Option<&str> {
        self.attachment(|name, _| name == "error-context" || name.starts_with("error-context"))
    }

    fn attachment(&self, is_wanted: impl Fn(&str, &str) -> bool) -> Option<&str> {
        let attachments = self.actions.iter().rev().flat_map(|action| action.attachments.iter().rev());
        attachments
            .into_iter()
            .find(|each| is_wanted(&each.name, &each.content_type))
            .map(|each| each.entry.as_str())
    }
}
