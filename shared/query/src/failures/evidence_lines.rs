//! Evidence as lines of text, for packed contexts and for agents. Nothing is
//! masked here: whoever writes the lines into a text does that.

use callboard_domain::evidence::{Evidence, NetworkRequest};
use callboard_domain::text::cut_str;

/// Characters of the title of a step, so that it leaves room for how the step
/// ended.
const STEP_TITLE_CHARS: usize = 160;

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EvidenceLine {
    /// What is written.
    pub text: String,
    /// Whether it tells of a failure.
    pub has_failed: bool,
}

/// The steps of an attempt, with how those that failed ended.
#[must_use]
pub fn step_lines(evidence: &Evidence) -> Vec<EvidenceLine> {
    let steps = evidence.steps.iter().map(|step| {
        let has_failed = step.failed || step.error.is_some();
        let failed = if has_failed { " FAILED" } else { "" };
        let skipped = match &step.skip_reason {
            Some(reason) => format!(" SKIPPED: {reason}"),
            None if step.skipped => " SKIPPED".to_owned(),
            None => String::new(),
        };
        let params = step.params.as_deref().map(|params| format!(" {params}")).unwrap_or_default();
        let location = step.location.as_deref().map(|place| format!(" at {place}")).unwrap_or_default();
        let error = step.error.as_ref().map(|error| format!(": {}", error.message)).unwrap_or_default();
        let full_title = step.full_title();
        let title = shortened(&full_title);
        EvidenceLine {
            text: format!("{title}{params} ({} ms){failed}{skipped}{location}{error}", step.duration),
            has_failed,
        }
    });
    steps.collect()
}

fn shortened(title: &str) -> String {
    if title.chars().nth(STEP_TITLE_CHARS).is_none() {
        return title.to_owned();
    }
    format!("{}…", cut_str(title, STEP_TITLE_CHARS - 1))
}

/// What the page of an attempt wrote to its console.
#[must_use]
pub fn console_lines(evidence: &Evidence) -> Vec<EvidenceLine> {
    let entries = evidence.console_logs.iter();
    let line = |entry: &callboard_domain::evidence::ConsoleEntry| {
        // Browsers say only there what could not be loaded.
        let place = entry.location.as_deref().map(|place| format!(" ({place})")).unwrap_or_default();
        EvidenceLine { text: format!("{}: {}{place}", entry.kind, entry.text), has_failed: entry.is_error() }
    };
    entries.map(line).collect()
}

/// The requests of an attempt, the failed ones last.
#[must_use]
pub fn request_lines(evidence: &Evidence) -> Vec<EvidenceLine> {
    let mut requests: Vec<&NetworkRequest> = evidence.network_requests.iter().collect();
    requests.sort_by_key(|request| request.is_failing());
    let page = evidence.page_state.as_ref().and_then(|page| origin(&page.url));
    let lines = requests.into_iter().map(|request| {
        let outcome = request.outcome();
        let waiting = if request.pending { " when the test ended" } else { "" };
        let logs = request.server_logs.iter().map(|log| format!(" [{}: {}]", log.level, log.message));
        let logs: String = logs.collect();
        let (method, url) = (&request.method, &request.normalized_url);
        // A request elsewhere may fail for what only its host tells.
        let elsewhere = origin(&request.url).filter(|origin| page.is_some_and(|page| page != *origin));
        let host = elsewhere.filter(|origin| !url.starts_with(origin)).unwrap_or_default();
        EvidenceLine {
            text: format!("{method} {host}{url} {outcome}{waiting}, {} ms{logs}", request.duration),
            has_failed: request.is_failing(),
        }
    });
    lines.collect()
}

/// Scheme and host of an address, as it is written.
fn origin(url: &str) -> Option<&str> {
    let host = url.find("://")? + "://".len();
    let end = url[host..].find(['/', '?', '#']).map_or(url.len(), |end| host + end);
    Some(&url[..end])
}

/// The frames of the stack, else what stands around the failing line.
#[must_use]
pub fn source_text(evidence: &Evidence) -> String {
    let frames = evidence.test_source_frames.iter().map(|frame| {
        let line = frame.line.map(|line| format!(":{line}")).unwrap_or_default();
        format!("{}{line}\n{}", frame.file, frame.snippet)
    });
    let frames: Vec<String> = frames.collect();
    if frames.is_empty() { evidence.test_source.clone().unwrap_or_default() } else { frames.join("\n\n") }
}

/// Where the page was and what was measured of it.
#[must_use]
pub fn page_lines(evidence: &Evidence) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(state) = &evidence.page_state {
        let fragment = state.hash.as_deref().unwrap_or_default();
        lines.push(format!("address: {}{fragment}", state.url));
        let names = |what: &str, names: Vec<&str>| {
            (!names.is_empty()).then(|| format!("{what}: {}", names.join(", ")))
        };
        lines.extend(names("cookies", state.cookies.iter().map(|each| each.name.as_str()).collect()));
        lines.extend(names(
            "local storage",
            state.local_storage.iter().map(|each| each.key.as_str()).collect(),
        ));
        lines.extend(names(
            "session storage",
            state.session_storage.iter().map(|each| each.key.as_str()).collect(),
        ));
    }
    if let Some(vitals) = evidence.web_vitals.as_ref().and_then(|vitals| vitals.vitals.as_ref()) {
        let shown = serde_json::to_string(vitals).unwrap_or_default();
        lines.push(format!("web vitals: {shown}"));
    }
    lines
}
