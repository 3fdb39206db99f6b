//! How long what an execution left behind is kept: its evidence, which is what
//! the client told of the attempts, and its files.

use callboard_domain::time::Timestamp;
use callboard_query::shapes::ExecutionDetail;

/// Days before the end from which the page says so at its head.
const SOON_MS: i64 = 3 * 86_400_000;

/// What goes, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keeping {
    /// What it is, as the fact is named, with its end; the soonest first.
    pub ends: Vec<(&'static str, Timestamp)>,
    /// The end to warn of.
    pub soon: Option<Timestamp>,
}

impl Keeping {
    /// The ends of what an execution left behind; nothing of what is kept.
    pub(crate) fn from_detail(detail: &ExecutionDetail, now: Timestamp) -> Self {
        let files = detail.attachments.iter().chain(&detail.traces);
        Self::until(detail.evidence_expires_at, files.filter_map(|file| file.expires_at).min(), now)
    }

    fn until(evidence: Option<Timestamp>, files: Option<Timestamp>, now: Timestamp) -> Self {
        let is_one_day = matches!((evidence, files), (Some(left), Some(right)) if left.day() == right.day());
        let mut ends: Vec<(&'static str, Timestamp)> = if is_one_day {
            evidence.into_iter().map(|at| ("Kept until", at)).collect()
        } else {
            let evidence = evidence.map(|at| ("Evidence until", at));
            evidence.into_iter().chain(files.map(|at| ("Files until", at))).collect()
        };
        ends.sort_by_key(|(_, at)| *at);
        let first = ends.first().map(|(_, at)| *at);
        Self { soon: first.filter(|at| at.millis() - now.millis() < SOON_MS), ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_MS: i64 = 86_400_000;

    #[test]
    fn what_goes_on_one_day_is_said_once_and_in_time() {
        let at = |days: i64| Some(Timestamp(days * DAY_MS));
        let of = |evidence, files| Keeping::until(evidence, files, Timestamp(0));
        assert_eq!(of(None, None), Keeping { ends: Vec::new(), soon: None });
        assert_eq!(of(at(30), at(30)).ends, [("Kept until", Timestamp(30 * DAY_MS))]);
        let apart = of(at(30), at(2));
        let names: Vec<_> = apart.ends.iter().map(|(name, _)| *name).collect();
        assert_eq!((names.as_slice(), apart.soon), (["Files until", "Evidence until"].as_slice(), at(2)));
        assert_eq!(of(at(3), None).soon, None);
    }
}
