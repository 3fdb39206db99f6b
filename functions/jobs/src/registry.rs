//! Which kinds of jobs there are. A kind exists when it stands here.

use std::sync::LazyLock;
use std::time::Duration;

use callboard_domain::time::Timestamp;
use callboard_store::StoreError;
use callboard_store::jobs::{Payload, PeriodicJob, lease, to_json};
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::job::{JobContext, JobError, Outcome};
use crate::{
    account_mails, culprits, deletions, diagnoses, events, exports, feedback, links, notifications, owners,
    retention, runs, sweeps, upkeep, uploads,
};

/// Every kind.
pub(crate) static KINDS: LazyLock<Kinds> = LazyLock::new(|| {
    Kinds::new(vec![
        Kind::new(account_mails::send_reset),
        Kind::new(account_mails::send_verify),
        Kind::new(account_mails::send_notice),
        Kind::new(account_mails::send_invitation),
        Kind::new(diagnoses::diagnose),
        Kind::new(culprits::find_culprit),
        Kind::new(exports::make_export),
        Kind::new(links::unfurl),
        Kind::every(MINUTE * 15, owners::refresh_owners),
        Kind::every(HOUR, sweeps::purge_jobs),
        Kind::every(MINUTE * 15, sweeps::purge_short_lived),
        Kind::every(MINUTE * 5, sweeps::sweep_objects),
        Kind::every(HOUR, sweeps::sweep_staging),
        Kind::every(MINUTE / 2, upkeep::look_after_tables),
        Kind::new(deletions::hide_target),
        Kind::new(deletions::restore_target),
        Kind::new(deletions::delete_target),
        Kind::every(HOUR, deletions::resume_deletions),
        Kind::every(HOUR, retention::sweep_retention),
        Kind::every(HOUR, retention::estimate_retention),
        Kind::every(HOUR * 24, retention::forget_numbers),
        Kind::new(retention::redate_expiry),
        Kind::new(retention::apply_retention),
        Kind::new(runs::completion).in_demo(),
        Kind::new(runs::recompute).in_demo(),
        Kind::new(runs::move_executions).in_demo(),
        Kind::new(runs::join_histories).in_demo(),
        Kind::new(runs::find_histories).in_demo(),
        Kind::new(runs::compare_behind).in_demo(),
        Kind::new(runs::compare_project).in_demo(),
        Kind::new(runs::reevaluate_outcomes).in_demo(),
        Kind::new(runs::pool_traces),
        Kind::new(runs::join_evidence),
        Kind::new(runs::unpack_report).in_demo(),
        Kind::new(uploads::verify_upload),
        Kind::every(HOUR, runs::resume_storing),
        Kind::every(MINUTE / 2, runs::sweep_stale_runs),
        Kind::new(events::deliver_events),
        Kind::every(MINUTE, events::resume_deliveries),
        Kind::every(HOUR, events::purge_events),
        Kind::new(notifications::send_notification),
        Kind::every(MINUTE, notifications::send_held_notifications),
        Kind::every(HOUR, notifications::purge_deliveries),
        Kind::new(feedback::post_feedback),
        Kind::every(HOUR, feedback::purge_feedback),
        Kind::every(MINUTE * 15, notifications::check_quotas),
        Kind::every(MINUTE, runs::purge_feeds),
        Kind::every(MINUTE, runs::end_quarantines),
        Kind::every(HOUR, runs::re_fingerprint),
    ])
});

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How a handler ended, with the payload of what is left to do.
type Ended = Result<Option<String>, JobError>;
type Start = Box<dyn Fn(JobContext, &str) -> BoxFuture<'static, Ended> + Send + Sync>;

/// A kind of job.
pub(crate) struct Kind {
    name: &'static str,
    pub(crate) is_secret: bool,
    period: Option<Period>,
    /// Whether it runs in demo mode, too.
    is_in_demo: bool,
    start: Start,
}

struct Period {
    length_ms: i64,
    payload: fn() -> Result<String, StoreError>,
}

impl Kind {
    /// A kind whose jobs are enqueued somewhere.
    pub(crate) fn new<P, F, R>(handler: F) -> Self
    where
        P: Payload,
        F: Fn(JobContext, P) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome<P>, JobError>> + Send + 'static,
    {
        let start = move |context: JobContext, payload: &str| -> BoxFuture<'static, Ended> {
            let payload: P = match serde_json::from_str(payload) {
                Ok(payload) => payload,
                Err(error) => {
                    let error = JobError::final_(format!("its payload cannot be read: {error}"));
                    return std::future::ready(Err(error)).boxed();
                }
            };
            let running = handler(context, payload);
            async move {
                match running.await? {
                    Outcome::Done => Ok(None),
                    Outcome::GoOn(rest) => Ok(Some(to_json(&rest)?)),
                }
            }
            .boxed()
        };
        Self {
            name: P::KIND,
            is_secret: P::IS_SECRET,
            period: None,
            is_in_demo: false,
            start: Box::new(start),
        }
    }

    /// Runs in demo mode as well: work that completes results which were accepted
    /// before. Whatever deletes, mails, calls other systems or ends something does not.
    fn in_demo(self) -> Self {
        Self { is_in_demo: true, ..self }
    }

    /// A kind that runs once in every period, as soon as some process looks.
    pub(crate) fn every<P, F, R>(period: Duration, handler: F) -> Self
    where
        P: Payload + Default,
        F: Fn(JobContext, P) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Outcome<P>, JobError>> + Send + 'static,
    {
        let length_ms = i64::try_from(period.as_millis()).unwrap_or(i64::MAX).max(1);
        let payload = || to_json(&P::default());
        Self { period: Some(Period { length_ms, payload }), ..Self::new(handler) }
    }

    /// Runs a job of this kind.
    pub(crate) fn start(&self, context: JobContext, payload: &str) -> BoxFuture<'static, Ended> {
        (self.start)(context, payload)
    }
}

/// Kinds by name.
pub(crate) struct Kinds {
    list: Vec<Kind>,
    known: lease::Kinds,
    in_demo: lease::Kinds,
}

impl Kinds {
    fn new(list: Vec<Kind>) -> Self {
        let names = |filter: fn(&Kind) -> bool| list.iter().filter(|k| filter(k)).map(|k| k.name).collect();
        let known = lease::Kinds { names: names(|_| true), secret: names(|kind| kind.is_secret) };
        let in_demo = lease::Kinds {
            names: names(|kind| kind.is_in_demo),
            secret: names(|kind| kind.is_in_demo && kind.is_secret),
        };
        Self { list, known, in_demo }
    }

    /// The kind of this name. Only jobs of known kinds are claimed.
    pub(crate) fn find(&self, name: &str) -> Option<&Kind> {
        self.list.iter().find(|kind| kind.name == name)
    }

    /// Their names, as the queue asks for them.
    pub(crate) const fn known(&self) -> &lease::Kinds {
        &self.known
    }

    /// The names of those that run in demo mode.
    pub(crate) const fn in_demo(&self) -> &lease::Kinds {
        &self.in_demo
    }

    /// Names of the kinds that nobody enqueues.
    pub(crate) fn periodic_names(&self) -> Vec<&'static str> {
        self.list.iter().filter(|kind| kind.period.is_some()).map(|kind| kind.name).collect()
    }

    /// The job of the current period of every periodic kind.
    pub(crate) fn periodic_jobs(&self, now: Timestamp) -> Result<Vec<PeriodicJob>, StoreError> {
        let periodic = self.list.iter().filter_map(|kind| Some((kind.name, kind.period.as_ref()?)));
        periodic
            .map(|(kind, period)| {
                let start = now.millis().div_euclid(period.length_ms) * period.length_ms;
                Ok(PeriodicJob {
                    key: format!("{kind}:{}", start / 1000),
                    kind,
                    payload: (period.payload)()?,
                })
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn kinds_have_names_of_their_own() {
        let names = &KINDS.known().names;
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
    }

    #[test]
    fn a_period_has_one_key_and_the_next_one_another() {
        let keys = |at: i64| {
            let jobs = KINDS.periodic_jobs(Timestamp(at)).unwrap();
            jobs.into_iter().map(|job| job.key).collect::<BTreeSet<_>>()
        };
        let day = 24 * 60 * 60 * 1000;
        assert_eq!(keys(1_000 * day), keys(1_000 * day + 20_000));
        assert!(keys(1_000 * day).is_disjoint(&keys(1_001 * day)));
    }
}
