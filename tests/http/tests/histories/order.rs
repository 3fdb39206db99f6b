//! Histories of two paths do not depend on the order in which runs arrive, and folders keep the
//! results that came under their paths.

use callboard_domain::ids::ProjectId;
use callboard_domain::time::Timestamp;
use callboard_ingest::{JoinHistories, join_histories};
use callboard_store::Backend;
use callboard_test_support::{Client, Service, for_each_service};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use reqwest::Method;
use serde_json::{Value, json};

use super::Started::{
    self, AtRoot, EarlierAtRoot, EarlierInside, Inside, InsideOfMany, InsideOther, OtherSuite,
};
use super::{Told, assert_same, decide, joins, numbers, project_of, send, sent, submission};
use crate::comparison::{get, submit, work};

#[tokio::test]
async fn folders_count_results_under_the_path_they_came_with() {
    for_each_service(async |service| {
        let client = service.client();
        for (hours, started) in [(4, EarlierInside), (3, EarlierAtRoot), (2, Inside), (1, EarlierInside)] {
            let start = Timestamp(service.state().now().millis() - hours * 3_600_000);
            submit(client, submission("shop", (started, "passed"), Told::AsStarted, &start.to_iso())).await;
            work(service).await;
        }
        let project = project_of(client, "shop").await;
        assert_eq!(joins(client, project, "joined").await.len(), 2);
        assert_eq!(folders(client, project).await, json!([["packages/web", 4], ["tests", 4]]));
        let list = get(client, &format!("/api/projects/{project}/test-runs")).await;
        for run in list["items"].as_array().expect("a list") {
            let path = format!("/api/test-runs/{}", run["id"]);
            client
                .send_json(Method::DELETE, &path, &json!({}))
                .await
                .expect("an answer")
                .success()
                .expect("deleted");
            work(service).await;
        }
        assert_eq!(folders(client, project).await, json!([]));
    })
    .await;
}

/// The folders of a project, with how many executions each has.
async fn folders(client: &Client, project: i64) -> Value {
    let health = get(client, &format!("/api/projects/{project}/spec-health")).await;
    let items = health["items"].as_array().expect("a list").iter();
    items.map(|folder| json!([folder["prefix"], folder["executionCount"]])).collect()
}

/// Runs that arrive in some order, each at the hour of its place.
fn arrivals() -> impl Strategy<Value = (Vec<(Started, &'static str)>, Vec<usize>)> {
    let started = prop_oneof![
        3 => Just(EarlierInside),
        2 => Just(EarlierAtRoot),
        3 => Just(Inside),
        2 => Just(AtRoot),
        1 => Just(InsideOfMany),
        1 => Just(InsideOther),
        1 => Just(OtherSuite),
    ];
    let pays = prop_oneof![Just("passed"), Just("failed"), Just("flaky")];
    proptest::collection::vec((started, pays), 3..6).prop_flat_map(|runs| {
        let order: Vec<usize> = (0..runs.len()).collect();
        (Just(runs), Just(order).prop_shuffle())
    })
}

fn every_order_gives_the_same_histories(backend: Backend, cases: u32) {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let service = runtime.block_on(Service::start(backend)).expect("a service");
    let client = service.client();
    let made = std::cell::Cell::new(0);
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    runner
        .run(&arrivals(), |(runs, order)| {
            made.set(made.get() + 1);
            runtime.block_on(async {
                let in_turn =
                    sent(&service, &format!("in turn {}", made.get()), &runs, Told::AsStarted).await;
                let name = format!("shuffled {}", made.get());
                for at in order {
                    send(client, &name, (at, runs[at].0, runs[at].1), Told::AsStarted).await;
                    // Some runs arrive while the work on others goes on.
                    if at % 2 == 0 {
                        work(&service).await;
                    }
                }
                work(&service).await;
                let shuffled = project_of(client, &name).await;
                let (own, expected) = (numbers(client, shuffled).await, numbers(client, in_turn).await);
                for (own, expected) in own.iter().zip(&expected) {
                    prop_assert_eq!(own, expected);
                }
                prop_assert_eq!(own.len(), expected.len());
                Ok(())
            })
        })
        .expect("every order gives the same histories");
}

#[test]
fn runs_in_any_order_give_the_same_histories_on_sqlite() {
    every_order_gives_the_same_histories(Backend::Sqlite, 12);
}

#[test]
fn runs_in_any_order_give_the_same_histories_on_postgres() {
    every_order_gives_the_same_histories(Backend::Postgres, 6);
}

#[tokio::test]
async fn work_that_is_done_twice_and_by_two_at_once_changes_nothing_more() {
    for_each_service(async |service| {
        let client = service.client();
        // More runs than one step moves. How the older ones compare is not known any more.
        let runs: Vec<(Started, &str)> = (0..24)
            .map(|at| match at % 4 {
                0 if at < 14 => (EarlierAtRoot, "passed"),
                _ if at < 14 => (EarlierInside, "passed"),
                0 => (EarlierAtRoot, "failed"),
                1 => (EarlierInside, "flaky"),
                2 => (EarlierAtRoot, "passed"),
                _ => (EarlierInside, "passed"),
            })
            .collect();
        for (name, told) in
            [("shop", Told::AsStarted), ("one path", Told::OnePath), ("two paths", Told::NoPrefix)]
        {
            for (hour, (started, pays)) in runs.iter().enumerate() {
                send(client, name, (hour, *started, pays), told).await;
            }
            send(client, name, (24, Inside, "failed"), told).await;
            work(service).await;
        }
        let project = project_of(client, "shop").await;
        let [one, two] = [project_of(client, "one path").await, project_of(client, "two paths").await];
        assert_same(client, project, one, "joined").await;
        for (status, oracle) in [("undone", two), ("joined", one)] {
            for join in joins(client, project, "all").await {
                decide(client, project, &join, status).await;
            }
            let context = service.state().background();
            let mut left =
                Some(JoinHistories { project: ProjectId(project), joins: Vec::new(), after: None });
            while let Some(step) = left {
                let now = service.state().now();
                let again = join_histories(&context, step.clone(), now);
                let (next, again) = tokio::join!(join_histories(&context, step, now), again);
                again.expect("done again");
                left = next.expect("done");
            }
            work(service).await;
            assert_same(client, project, oracle, status).await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_test_that_an_earlier_reporter_adds_joins_the_one_from_the_root() {
    for_each_service(async |service| {
        let client = service.client();
        for (name, runs) in [
            ("inside", [(Inside, "passed"), (EarlierInside, "failed"), (Inside, "passed")]),
            ("root", [(Inside, "passed"), (EarlierInside, "failed"), (AtRoot, "passed")]),
        ] {
            let project = sent(service, name, &runs, Told::AsStarted).await;
            let one = sent(service, &format!("{name}, one path"), &runs, Told::OnePath).await;
            assert_same(client, project, one, name).await;
            assert_eq!(joins(client, project, "joined").await.len(), 2, "{name}");
        }
    })
    .await;
}
