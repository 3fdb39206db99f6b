//! What has an address below something else is found there and below nothing
//! else.

use callboard_test_support::access::Holding;

use super::*;

#[tokio::test]
async fn an_execution_is_found_below_its_own_run_and_no_other() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        let world = World::new(backend).await;
        let other = world.other().await;
        let (mine, their) = (&world.mine.ids, &other.ids);
        let everything = &world.administrator;
        let shown = async |path: String| {
            let mut shown = everything.json(&path).await.expect("an execution");
            still(&mut shown);
            shown
        };
        let below = format!("/api/test-runs/{}/cases/{}", mine.run, mine.execution);
        let alone = format!("/api/test-run-cases/{}", mine.execution);
        assert_eq!(shown(below).await, shown(alone).await);

        let mut asked = 0;
        for route in ROUTES.iter().filter(|route| route.pattern.contains("{caseId}")) {
            let method: Method = route.method.as_str().parse().expect("a method");
            for (run, execution) in [
                (mine.run, their.execution),
                (their.run, mine.execution),
                // Of one project, which hides nothing from itself.
                (world.mine.green, mine.execution),
            ] {
                let path = address(route, &Holding { run, execution, ..mine.clone() }, 1);
                for client in
                    [everything, world.caller("a reporter"), world.caller("a narrowed administrator")]
                {
                    let answer =
                        client.send_json(method.clone(), &path, &json!({})).await.expect("an answer");
                    let code = answer.json().expect("an error")["code"].clone();
                    assert_eq!(
                        (answer.status.as_u16(), code),
                        (404, json!("execution_not_found")),
                        "{method} {path}"
                    );
                    asked += 1;
                }
            }
        }
        assert!(asked > 90, "{asked} requests");
    }
}
