//! Whatever the order of the steps, a file is linked once, with its own bytes.

use callboard_test_support::for_each_service;
use serde_json::json;

use super::{Uploader, counts, link, read, refusal};
use crate::builders::attempt;
use crate::live::start;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Result,
    Send,
    SendOthers,
    Commit,
}

const STEPS: [Step; 4] = [Step::Result, Step::Send, Step::SendOthers, Step::Commit];
const BYTES: &[u8] = b"PK\x03\x04 a trace";

/// Every order of the steps.
fn orders(steps: &[Step]) -> Vec<Vec<Step>> {
    if steps.is_empty() {
        return vec![Vec::new()];
    }
    (0..steps.len())
        .flat_map(|at| {
            let mut rest = steps.to_vec();
            let first = rest.remove(at);
            orders(&rest).into_iter().map(move |order| [vec![first], order].concat())
        })
        .collect()
}

#[tokio::test]
async fn every_order_of_the_steps_ends_with_one_file() {
    for_each_service(async |service| {
        for (number, order) in orders(&STEPS).into_iter().enumerate() {
            let feeder = start(service.client(), json!({ "clientRunId": format!("order-{number}") })).await;
            let uploader = Uploader::token(&feeder.client, feeder.run, &feeder.token);
            // Bytes of its own, so that runs do not help each other out.
            let bytes = [BYTES, format!(" of order {number}").as_bytes()].concat();
            let ticket = uploader.ticket("trace", &bytes).await;
            let item = ticket.linked(link("trace", "pays", 0));
            let (mut has_result, mut is_sent, mut is_linked) = (false, false, false);
            for step in order.iter().chain([&Step::Result, &Step::Send, &Step::Commit, &Step::Commit]) {
                match step {
                    Step::Result => {
                        feeder.results(vec![attempt("pays", "failed", 0)]).await;
                        has_result = true;
                    }
                    Step::Send => {
                        ticket.put(bytes.clone()).await.success().expect("received");
                        is_sent = true;
                    }
                    Step::SendOthers => {
                        let expected = if is_sent { (409, "ticket_used") } else { (422, "hash_mismatch") };
                        let refused = refusal(&ticket.put(vec![1; bytes.len()]).await);
                        assert_eq!((refused.0, refused.1.as_str()), expected, "{order:?}");
                    }
                    Step::Commit => {
                        let expected = match (has_result, is_sent, is_linked) {
                            (false, ..) => "case_not_found",
                            (_, false, _) => "not_uploaded",
                            (_, _, true) => "duplicate",
                            _ => "linked",
                        };
                        let done = uploader.commit(item.clone()).await;
                        assert_eq!(done["status"], expected, "{order:?}: {done}");
                        is_linked |= expected == "linked";
                        if is_linked {
                            assert_eq!(read(service.client(), &done).await, bytes, "{order:?}");
                        }
                    }
                }
            }
            assert_eq!(counts(service.client(), feeder.run).await, (1, 0), "{order:?}");
        }
    })
    .await;
}
