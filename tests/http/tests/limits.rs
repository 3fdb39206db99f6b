//! Limits that hold whoever asks how many times at once, and the audit log.

use std::net::IpAddr;

use callboard_auth::client_address::{ClientAddress, Peer, TrustProxy};
use callboard_auth::keys::{MacKey, Purpose, Secrets};
use callboard_auth::limits::{self, CounterNames, Guesses, Steady, Window};
use callboard_domain::audit::AuditAction;
use callboard_domain::ids::{ProjectId, UserId};
use callboard_domain::time::Timestamp;
use callboard_query::limits::{LimitError, Limits, LoginAttempt, Ticket};
use callboard_store::audit::{self, Actor, AuditEvent, AuditFilter, Target};
use callboard_store::{Backend, Store, rate_limits};
use callboard_test_support::{Service, TestDatabase, for_each_database};
use futures::future::join_all;
use serde_json::Map;

use crate::builders::run;

const NOW: Timestamp = Timestamp(1_767_261_600_000);

fn later(ms: i64) -> Timestamp {
    Timestamp(NOW.millis() + ms)
}

/// Limits of a process of its own over a database.
async fn limits_over(database: &TestDatabase) -> (Store, Limits) {
    let store = database.store().await.expect("a store");
    let secrets = Secrets::new(&[b"a secret of thirty-two bytes!!!!"]);
    let names = CounterNames::new(MacKey::derive(&secrets, Purpose::RATE).expect("a key"));
    (store.clone(), Limits::new(store, names))
}

fn address(text: &str) -> ClientAddress {
    let ip: IpAddr = text.parse().expect("an address");
    TrustProxy::Nobody.client(Some(Peer(ip)), &Default::default())
}

fn login<'a>(from: &str, account: &'a str) -> LoginAttempt<'a> {
    LoginAttempt { address: address(from), account, device: None }
}

fn wait(refused: Result<Ticket, LimitError>) -> i64 {
    match refused {
        Err(LimitError::Limited { retry_after_seconds }) => retry_after_seconds,
        other => panic!("not limited: {other:?}"),
    }
}

#[tokio::test]
async fn parallel_guesses_are_bounded_by_failures_and_tries_under_way() {
    for_each_database(async |database| {
        let processes = [limits_over(database).await.1, limits_over(database).await.1];
        let guess = async |number: usize| {
            // Addresses of their own: it is the account that is guarded here.
            let from = format!("192.0.2.{number}");
            let admitted = processes[number % 2].admit_login(login(&from, "ada"), NOW).await;
            match admitted {
                Ok(ticket) => ticket.failed(NOW).await.map(|()| true).expect("settled"),
                Err(LimitError::Limited { retry_after_seconds }) => {
                    assert!(retry_after_seconds >= 1);
                    false
                }
                Err(LimitError::Store(error)) => panic!("{error}"),
            }
        };
        let evaluated = join_all((0..200).map(guess)).await.into_iter().filter(|admitted| *admitted).count();
        let bound = limits::LOGIN_ACCOUNT.failures + limits::LOGIN_ACCOUNT.in_flight;
        assert!(evaluated >= 5 && evaluated as i64 <= bound, "{evaluated}");
        // The account is closed to the right password too, everywhere, until the window is over.
        let fresh = limits_over(database).await.1;
        assert_eq!(wait(fresh.admit_login(login("203.0.113.9", "ada"), later(1000)).await), 899);
        let over = later(limits::LOGIN_ACCOUNT.window_ms);
        fresh
            .admit_login(login("203.0.113.9", "ada"), over)
            .await
            .expect("open again")
            .released(over)
            .await
            .unwrap();
    })
    .await;
}

#[tokio::test]
async fn many_right_sign_ins_pass_together_and_forget_the_failures() {
    for_each_database(async |database| {
        let (_, limits) = limits_over(database).await;
        for _ in 0..4 {
            limits.admit_login(login("192.0.2.1", "ada"), NOW).await.unwrap().failed(NOW).await.unwrap();
        }
        let admitted = join_all((0..50).map(|_| limits.admit_login(login("192.0.2.1", "ada"), NOW))).await;
        for ticket in admitted {
            ticket.expect("admitted").succeeded(NOW).await.unwrap();
        }
        for _ in 0..5 {
            limits.admit_login(login("192.0.2.1", "ada"), NOW).await.unwrap().failed(NOW).await.unwrap();
        }
        assert_eq!(wait(limits.admit_login(login("192.0.2.1", "ada"), NOW).await), 900);
        // Nine failures so far: the address is not closed, and other accounts are open.
        limits.admit_login(login("192.0.2.1", "bob"), NOW).await.unwrap().released(NOW).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn an_address_is_closed_after_twenty_failures_over_any_names() {
    for_each_database(async |database| {
        let (_, limits) = limits_over(database).await;
        for number in 0..20 {
            let name = format!("user {number}");
            limits.admit_login(login("192.0.2.1", &name), NOW).await.unwrap().failed(NOW).await.unwrap();
        }
        assert_eq!(wait(limits.admit_login(login("192.0.2.1", "another"), NOW).await), 900);
        limits.admit_login(login("192.0.2.2", "another"), NOW).await.unwrap().released(NOW).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_known_browser_is_not_locked_out_by_strangers() {
    for_each_database(async |database| {
        let (_, limits) = limits_over(database).await;
        for _ in 0..5 {
            limits.admit_login(login("192.0.2.66", "ada"), NOW).await.unwrap().failed(NOW).await.unwrap();
        }
        let known = LoginAttempt { device: Some(b"sixteen bytes id"), ..login("192.0.2.1", "ada") };
        for _ in 0..5 {
            limits.admit_login(known, NOW).await.unwrap().failed(NOW).await.unwrap();
        }
        assert_eq!(wait(limits.admit_login(known, NOW).await), 900);
    })
    .await;
}

#[tokio::test]
async fn tries_whose_end_is_never_told_stop_counting_as_under_way() {
    for_each_database(async |database| {
        const CLASS: Guesses = limits::CHANGE_PASSWORD;
        let (_, limits) = limits_over(database).await;
        let mut under_way = Vec::new();
        for _ in 0..CLASS.in_flight {
            under_way.push(limits.admit(&[(CLASS, b"7")], NOW).await.expect("admitted"));
        }
        assert_eq!(wait(limits.admit(&[(CLASS, b"7")], NOW).await), 1);
        under_way.push(limits.admit(&[(CLASS, b"7")], later(limits::IN_FLIGHT_MS)).await.expect("admitted"));
        // More ends are told than tries are known to be under way.
        for ticket in under_way {
            ticket.released(NOW).await.unwrap();
        }
        limits.admit(&[(CLASS, b"7")], NOW).await.expect("admitted").released(NOW).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn calls_are_counted_exactly_however_many_come_at_once() {
    for_each_database(async |database| {
        const CLASS: Window = limits::RESET;
        let (_, limits) = limits_over(database).await;
        let calls = join_all((0..60).map(|_| limits.check(CLASS, b"192.0.2.1", NOW))).await;
        assert_eq!(calls.iter().filter(|call| call.is_ok()).count() as i64, CLASS.calls);
        assert!(limits.check(CLASS, b"192.0.2.2", NOW).await.is_ok());
        let Err(LimitError::Limited { retry_after_seconds }) =
            limits.check(CLASS, b"192.0.2.1", later(CLASS.window_ms - 1)).await
        else {
            panic!("not limited")
        };
        assert_eq!(retry_after_seconds, 1);
        assert!(limits.check(CLASS, b"192.0.2.1", later(CLASS.window_ms)).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn a_steady_rate_lets_a_burst_through_and_then_one_at_a_time() {
    for_each_database(async |database| {
        const CLASS: Steady = limits::MCP;
        let (_, limits) = limits_over(database).await;
        let burst = join_all((0..CLASS.burst + 20).map(|_| limits.check_steady(CLASS, b"key 7", NOW))).await;
        assert_eq!(burst.iter().filter(|call| call.is_ok()).count() as i64, CLASS.burst);
        assert!(limits.check_steady(CLASS, b"key 7", later(CLASS.interval_ms)).await.is_ok());
        assert!(limits.check_steady(CLASS, b"key 7", later(CLASS.interval_ms)).await.is_err());
        assert!(limits.check_steady(CLASS, b"key 8", NOW).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn counters_are_purged_when_they_say_nothing_any_more() {
    for_each_database(async |database| {
        let (store, limits) = limits_over(database).await;
        limits.check(limits::SETUP, b"192.0.2.1", NOW).await.unwrap();
        limits.admit_login(login("192.0.2.1", "ada"), NOW).await.unwrap().failed(NOW).await.unwrap();
        let purge = async |at| {
            let mut session = store.db().begin().await.expect("a transaction");
            let purged = rate_limits::purge(&mut session, at, 100).await.expect("purged");
            session.commit().await.expect("committed");
            purged
        };
        assert_eq!(purge(later(1000)).await, 0);
        assert_eq!(purge(later(limits::SETUP.window_ms)).await, 3);
    })
    .await;
}

#[tokio::test]
async fn the_audit_log_is_listed_newest_first_by_what_is_asked() {
    for_each_database(async |database| {
        let store = database.store().await.expect("a store");
        let mut session = store.db().begin().await.expect("a transaction");
        let event = |at, action, user, target, project| AuditEvent {
            at: later(at),
            actor: Actor { user, key: None, address_hash: Some([7; 32]) },
            action,
            target,
            project,
            detail: Map::from_iter([("name".to_owned(), "ada".into())]),
        };
        let user = |id| Some(Target { kind: "user", id });
        let project = Some(ProjectId(3));
        for written in [
            event(0, AuditAction::LoginFailed, None, user(7), None),
            event(1, AuditAction::LoginSucceeded, Some(UserId(7)), user(7), None),
            event(1, AuditAction::RunDeleted, Some(UserId(7)), Some(Target { kind: "run", id: 42 }), project),
            event(2, AuditAction::UserChanged, Some(UserId(8)), user(7), None),
        ] {
            audit::record(&mut session, written).await.expect("recorded").committed();
        }
        session.commit().await.expect("committed");
        let mut session = store.db().read().await.expect("a connection");
        let mut list = async |filter: AuditFilter| {
            let page = audit::list(&mut session, &filter, 3).await.expect("a list");
            page.into_iter()
                .map(|entry| (entry.at.millis() - NOW.millis(), entry.id, entry.action))
                .collect::<Vec<_>>()
        };
        let actions = |page: &[(i64, i64, String)]| page.iter().map(|row| row.2.clone()).collect::<Vec<_>>();
        let first = list(AuditFilter::default()).await;
        assert_eq!(actions(&first), ["user.changed", "run.deleted", "login.succeeded"]);
        let after = first.last().map(|row| (NOW.millis() + row.0, row.1));
        assert_eq!(actions(&list(AuditFilter { after, ..AuditFilter::default() }).await), ["login.failed"]);
        let logins = Some(AuditAction::beginning_with("login.").collect());
        let logins = list(AuditFilter { actions: logins, ..AuditFilter::default() }).await;
        assert_eq!(actions(&logins), ["login.succeeded", "login.failed"]);
        for (filter, expected) in [
            (AuditFilter { user: Some(UserId(8)), ..AuditFilter::default() }, "user.changed"),
            (AuditFilter { project, ..AuditFilter::default() }, "run.deleted"),
            (
                AuditFilter {
                    target_kind: Some("run".to_owned()),
                    target_id: Some(42),
                    ..AuditFilter::default()
                },
                "run.deleted",
            ),
            (AuditFilter { before: Some(later(1)), ..AuditFilter::default() }, "login.failed"),
            (AuditFilter { from: Some(later(2)), ..AuditFilter::default() }, "user.changed"),
        ] {
            assert_eq!(actions(&list(filter).await), [expected]);
        }
        drop(session);
        let mut session = store.db().begin().await.expect("a transaction");
        assert_eq!(audit::purge(&mut session, later(1), 100).await.expect("purged"), 1);
    })
    .await;
}

#[tokio::test]
async fn a_configured_rate_of_results_is_kept_for_each_credential() {
    let settings = [("SERVICE_INGEST_RATE_PER_MINUTE".to_owned(), "2".to_owned())].to_vec();
    let database = TestDatabase::fresh(Backend::Sqlite).await.expect("a database");
    let service = Service::over(database, &settings).await.expect("a service");
    let submission = run("shop", "passed", Vec::new());
    for _ in 0..2 {
        service.client().post_json("/api/test-runs/submit", &submission).await.expect("stored");
    }
    let refused = service.client().post("/api/test-runs/submit", &submission).await.expect("an answer");
    assert_eq!(
        (refused.status.as_u16(), &refused.json().expect("JSON")["code"]),
        (429, &"rate_limited".into())
    );
    assert!(refused.header("retry-after").parse::<u32>().is_ok_and(|seconds| (1..=30).contains(&seconds)));
    service.client().json("/api/projects").await.expect("reading is not counted");
}
