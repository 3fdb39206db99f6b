//! Runs, shards, faults and crashes in any order leave one comment, which shows the newest run as it is in the end.

use std::time::Duration;

use callboard_fn_jobs::{Budget, run_due};
use callboard_store::Backend;
use callboard_test_support::{Dialect, Fault, Service};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};

use super::feedback::{host_with_request, later, open_request, switch_on, tested};
use super::{connected, started};
use crate::builders::with;
use crate::comparison::submit;
use crate::rows::settled;
use crate::store::sql;

/// What happens between two arrivals.
#[derive(Debug, Clone, Copy)]
enum Then {
    Nothing,
    Settles,
    /// The process ends after so many milliseconds of work.
    Dies(u64),
}

/// A fault of the code host.
#[derive(Debug, Clone, Copy)]
enum Mishap {
    None,
    Cut,
    Down,
    Busy,
}

impl Mishap {
    fn fault(self) -> Option<Fault> {
        match self {
            Self::None => None,
            Self::Cut => Some(Fault::Cuts),
            Self::Down => Some(Fault::Answers(502, Vec::new(), String::new())),
            Self::Busy => Some(Fault::Answers(429, vec![("retry-after", "5".to_owned())], String::new())),
        }
    }
}

/// Parts that arrive: an older run, and two shards of the newest one.
const PARTS: [&str; 4] = ["oldest", "older", "shard 1", "shard 2"];

type Story = (Vec<usize>, Vec<Then>, Vec<Mishap>, [bool; 4]);

fn stories() -> impl Strategy<Value = Story> {
    let then = prop_oneof![Just(Then::Nothing), Just(Then::Settles), (1_u64..120).prop_map(Then::Dies)];
    let mishap = prop_oneof![Just(Mishap::None), Just(Mishap::Cut), Just(Mishap::Down), Just(Mishap::Busy)];
    let order = Just((0..PARTS.len()).collect::<Vec<_>>()).prop_shuffle();
    let failing = proptest::array::uniform4(proptest::bool::ANY);
    (order, proptest::collection::vec(then, PARTS.len()), proptest::collection::vec(mishap, 0..6), failing)
}

/// What a dead process held is free when its leases have ended.
async fn revive(service: &Service) {
    sql(
        service,
        "UPDATE jobs SET state = 'queued', run_after = 0, lease_id = NULL, lease_until = NULL WHERE state = 'leased'",
    )
    .await;
}

fn part(service: &Service, project: &str, at: usize, branch: &str, tip: &str, fails: bool) -> Value {
    let outcome = if fails { "failed" } else { "passed" };
    let place = (branch, tip);
    match at {
        0 => tested(service, project, 30, place, &[("pays", outcome), ("ships", "passed")]),
        1 => tested(service, project, 20, place, &[("pays", outcome), ("ships", "passed")]),
        _ => {
            let title = if at == 2 { "pays" } else { "ships" };
            let shard = json!({ "instanceId": branch, "shardIndex": at - 1, "shardTotal": 2 });
            with(tested(service, project, 10, place, &[(title, outcome)]), shard)
        }
    }
}

fn one_comment_in_any_order(backend: Backend, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (service, host) = runtime.block_on(async {
        let service = started(backend).await;
        let (host, _) = host_with_request("first", 1).await;
        let project = connected(service.client(), &host, Dialect::GitHub).await;
        switch_on(service.client(), &project).await;
        (service, host)
    });
    let made = std::cell::Cell::new(1_u64);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&stories(), |(order, thens, mishaps, failing)| {
            made.set(made.get() + 1);
            let (number, branch) = (made.get(), format!("case-{}", made.get()));
            runtime.block_on(async {
                let tip = open_request(&host, &branch, number);
                host.plan_writes(mishaps.iter().map(|mishap| mishap.fault()));
                let mut newest = 0;
                for (at, then) in order.iter().zip(&thens) {
                    let sent = part(&service, "shop on github", *at, &branch, &tip, failing[*at]);
                    let run = submit(service.client(), sent).await;
                    if *at >= 2 {
                        newest = run;
                    }
                    match then {
                        Then::Nothing => {}
                        Then::Settles => settled(&service).await,
                        Then::Dies(after) => {
                            let work = run_due(service.state(), Budget::new(Duration::from_secs(20)));
                            let _ = tokio::time::timeout(Duration::from_millis(*after), work).await;
                            revive(&service).await;
                        }
                    }
                }
                settled(&service).await;
                for _ in 0..8 {
                    later(&service).await;
                }
                let comments = host.comments(number);
                prop_assert_eq!(comments.len(), 1, "{:#?}", comments);
                let body = &comments[0].body;
                let fails = failing[2] || failing[3];
                prop_assert!(body.contains(&format!("[Run {newest}]")), "{newest} {body}");
                prop_assert!(!body.contains("Partial run"), "{body}");
                prop_assert_eq!(body.contains("### ✅"), !fails, "{}", body);
                let status = host.statuses(&tip).pop().expect("a status");
                prop_assert_eq!(status.state, if fails { "failure" } else { "success" });
                prop_assert!(status.url.ends_with(&format!("/test-runs/{newest}")), "{}", status.url);
                Ok(())
            })
        })
        .expect("every order leaves one comment");
}

/// Ends the process at every call in turn, before it is carried out and after, and again at the same call of the next
/// attempt.
async fn crashes_at_every_call(backend: Backend) {
    let service = started(backend).await;
    let (host, _) = host_with_request("first", 1).await;
    let project = connected(service.client(), &host, Dialect::GitHub).await;
    switch_on(service.client(), &project).await;
    let mut calls = [0, 0];
    for is_done in [false, true] {
        for call in 0.. {
            let number = 100 * (1 + u64::from(is_done)) + call;
            let branch = format!("case-{number}");
            let tip = open_request(&host, &branch, number);
            let outcomes = [("pays", "failed"), ("ships", "passed")];
            let sent = tested(&service, "shop on github", 30, (&branch, &tip), &outcomes);
            let run = submit(service.client(), sent).await;
            let mut has_died = false;
            for _ in 0..2 {
                host.hang_after(usize::try_from(call).expect("few calls"), is_done);
                let work = run_due(service.state(), Budget::new(Duration::from_secs(60)));
                has_died |= tokio::select! {
                    () = host.until_it_hangs() => true,
                    done = work => { done.expect("the work"); false }
                };
                let _ = host.stop_hanging();
                revive(&service).await;
                sql(&service, "UPDATE scm_feedback_targets SET lease_until = NULL").await;
            }
            later(&service).await;
            later(&service).await;
            let comments = host.comments(number);
            assert_eq!(comments.len(), 1, "at call {call}: {comments:#?}");
            assert!(comments[0].body.contains(&format!("[Run {run}]")), "at call {call}");
            let status = host.statuses(&tip).pop().expect("a status");
            assert!(status.url.ends_with(&format!("/test-runs/{run}")), "at call {call}: {}", status.url);
            if !has_died {
                break;
            }
            calls[usize::from(is_done)] += 1;
        }
    }
    assert!(calls.iter().all(|calls| *calls >= 3), "the request, the comment and the status: {calls:?}");
}

#[tokio::test]
async fn a_process_that_ends_at_any_call_leaves_one_comment() {
    callboard_test_support::for_each_backend(crashes_at_every_call).await;
}

#[test]
fn shards_reruns_faults_and_crashes_leave_one_comment_on_sqlite() {
    one_comment_in_any_order(Backend::Sqlite, 16);
}

#[test]
fn shards_reruns_faults_and_crashes_leave_one_comment_on_postgres() {
    one_comment_in_any_order(Backend::Postgres, 10);
}
