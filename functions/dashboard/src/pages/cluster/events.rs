//! What happened to a cluster, in words.

use callboard_domain::time::Timestamp;
use callboard_query::clusters::{ClusterEvent, FieldChange, Happening};

use crate::text::{date_of, short_commit};

/// An entry of the history.
pub(super) struct Event {
    /// When.
    pub at: Timestamp,
    /// Who; nobody for what runs show.
    pub by: Option<String>,
    /// What, in one sentence.
    pub sentence: String,
    /// What somebody wrote down with it.
    pub note: Option<String>,
    /// The run that shows it.
    pub run: Option<i64>,
    /// Where else it leads.
    pub href: Option<String>,
    /// Class of the dot in front of it.
    pub class: &'static str,
}

impl Event {
    /// An event in words; nothing for a change that says nothing.
    pub(super) fn from_event(event: ClusterEvent) -> Option<Self> {
        let ClusterEvent { at, by, what } = event;
        let told = |sentence: &str, run: Option<i64>, class| Self {
            at,
            by: by.clone(),
            sentence: sentence.to_owned(),
            note: None,
            run,
            href: None,
            class,
        };
        Some(match what {
            Happening::Appeared { run } => told("First seen", Some(run), "failed"),
            Happening::CameBack { run } => told("Came back after it was resolved", Some(run), "failed"),
            Happening::StoppedFailing { run, commit } => {
                let sentence = match commit {
                    Some(commit) => format!("Stopped failing with commit {}", short_commit(&commit)),
                    None => "Stopped failing".to_owned(),
                };
                told(&sentence, Some(run), "passed")
            }
            Happening::Extracted { into, tests } => {
                let tests = if tests == 1 { "1 test".to_owned() } else { format!("{tests} tests") };
                let sentence = format!("{tests} moved to cluster {into}");
                Self { href: Some(format!("/failure-clusters/{into}")), ..told(&sentence, None, "quiet") }
            }
            Happening::Changed(changes) => {
                let words: Vec<String> = changes.iter().filter_map(words).collect();
                let note =
                    changes.iter().find(|change| change.field == "note").and_then(|note| note.after.clone());
                let mut sentence = words.join(", ");
                if sentence.is_empty() {
                    note.as_ref()?;
                    "note changed".clone_into(&mut sentence);
                }
                let class = match status(&changes) {
                    Some("resolved") => "passed",
                    Some("open") => "failed",
                    _ => "quiet",
                };
                Self { note, ..told(&capitalized(&sentence), None, class) }
            }
        })
    }
}

impl Event {
    /// Whether the cluster is another one from here on: seen, gone, or back.
    pub(super) fn is_turn(&self) -> bool {
        self.class != "quiet"
    }
}

fn status(changes: &[FieldChange]) -> Option<&str> {
    changes.iter().find(|change| change.field == "status")?.after.as_deref()
}

/// A change of a field inside a sentence; the note stands by itself.
fn words(change: &FieldChange) -> Option<String> {
    let after = change.after.as_deref();
    Some(match (change.field, after) {
        ("status", Some("open")) => "reopened".to_owned(),
        ("status", Some(status)) => status.to_owned(),
        ("assignee", Some(who)) => format!("assigned to {who}"),
        ("assignee", None) => "unassigned".to_owned(),
        ("title", Some(title)) => format!("named “{title}”"),
        ("title", None) => "name removed".to_owned(),
        ("snoozedUntil", Some(until)) => {
            let day = Timestamp::parse_iso(until).map_or_else(|| until.to_owned(), date_of);
            format!("snoozed until {day}")
        }
        ("snoozedUntil", None) => "unsnoozed".to_owned(),
        ("baseCommit", Some(commit)) => format!("compared from commit {}", short_commit(commit)),
        ("baseCommit", None) => "compared from the last green run".to_owned(),
        _ => return None,
    })
}

fn capitalized(sentence: &str) -> String {
    let mut chars = sentence.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(changes: &[(&'static str, Option<&str>)]) -> ClusterEvent {
        let change = |(field, after): &(&'static str, Option<&str>)| FieldChange {
            field,
            before: None,
            after: after.map(str::to_owned),
        };
        let what = Happening::Changed(changes.iter().map(change).collect());
        ClusterEvent { at: Timestamp(0), by: Some("ada".to_owned()), what }
    }

    #[test]
    fn a_decision_is_one_sentence_and_its_note_stands_by_itself() {
        let event = Event::from_event(changed(&[
            ("status", Some("resolved")),
            ("note", Some("Fixed by #7")),
            ("assignee", Some("bo")),
            ("snoozedUntil", Some("2026-01-31T10:00:00.000Z")),
        ]));
        let event = event.unwrap();
        assert!(event.sentence.starts_with("Resolved, assigned to bo, snoozed until "), "{}", event.sentence);
        assert!(!event.sentence.contains('T'), "{}", event.sentence);
        assert_eq!((event.note.as_deref(), event.class), (Some("Fixed by #7"), "passed"));
        assert_eq!(Event::from_event(changed(&[("note", Some("later"))])).unwrap().sentence, "Note changed");
        assert!(Event::from_event(changed(&[("note", None)])).is_none());
    }
}
