//! Runs to send: seeded and deterministic, shaped like those of a real suite.
//! 2 % of the tests fail, 1 % are flaky, runs spread over five branches, two
//! environments and 90 days. The same seed, project and number give the same
//! bytes.

mod errors;
mod evidence;
mod random;
mod suite;

use bytes::Bytes;
use callboard_domain::time::Timestamp;
use serde_json::{Map, Value, json};

pub use random::Random;
use suite::{Test, suite};

/// Of 1,000 tests so many fail.
const FAILING_PERMILLE: u64 = 20;
/// Of 1,000 tests so many fail first and pass then.
const FLAKY_PERMILLE: u64 = 10;
/// Days over which runs are spread.
const DAYS: i64 = 90;
const DAY_MS: i64 = 86_400_000;
const BRANCHES: [&str; 5] = ["main", "release/2.4", "feature/vouchers", "feature/new-cart", "fix/rounding"];
const ENVIRONMENTS: [&str; 2] = ["staging", "production"];

/// How much a run tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Payload {
    /// Exactly the smallest documented body: two lanes of rollups.
    Minimal,
    /// The same with branch and environment: four lanes.
    Lean,
    /// With evidence, about 5 KB per test.
    Rich,
}

impl Payload {
    /// Its name in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Lean => "lean",
            Self::Rich => "rich",
        }
    }
}

/// The runs of one project.
#[derive(Debug)]
pub struct Runs {
    seed: u64,
    project: String,
    payload: Payload,
    tests: Vec<Test>,
    count: u64,
    until: Timestamp,
}

impl Runs {
    /// `count` runs of `tests` tests each; the last one starts just before
    /// `until`.
    #[must_use]
    pub fn new(
        seed: u64,
        project: &str,
        payload: Payload,
        tests: usize,
        count: u64,
        until: Timestamp,
    ) -> Self {
        Self { seed, project: project.to_owned(), payload, tests: suite(seed, tests), count, until }
    }

    /// When a run starts: runs follow one another evenly.
    fn start_of(&self, number: u64) -> Timestamp {
        let age = i64::try_from(self.count.saturating_sub(number)).unwrap_or_default();
        let count = i64::try_from(self.count.max(1)).unwrap_or(i64::MAX);
        Timestamp(self.until.millis() - (DAYS * DAY_MS / count).max(1) * age)
    }

    /// The body of the run of this number, from 0 on.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    pub fn body(&self, number: u64) -> anyhow::Result<Bytes> {
        let mut random = Random::new(self.seed, number + 1);
        let start = self.start_of(number);
        let mut cases = Vec::with_capacity(self.tests.len() + self.tests.len() / 50);
        let (mut failed, mut duration) = (0, 0);
        let mut at = start.millis();
        for test in &self.tests {
            let taken = self.add_test(&mut random, test, at, &mut cases, &mut failed);
            duration += taken / 4;
            at += i64::try_from(taken / 4).unwrap_or_default();
        }
        let total = self.tests.len() as u64;
        let mut run = json!({
            "projectName": self.project,
            "status": if failed > 0 { "failed" } else { "passed" },
            "startTime": start.to_iso(),
            "duration": duration,
            "totalTests": total,
            "passedTests": total - failed,
            "failedTests": failed,
            "skippedTests": 0,
            "testCases": cases,
        });
        self.add_origin(&mut random, &mut run, number);
        Ok(serde_json::to_vec(&run)?.into())
    }

    fn add_origin(&self, random: &mut Random, run: &mut Value, number: u64) {
        let branch = if random.chance(500) { BRANCHES[0] } else { random.pick(&BRANCHES) };
        let environment = random.pick(&ENVIRONMENTS);
        let commit = format!("{:016x}{:016x}{:08x}", random.next(), random.next(), number);
        match self.payload {
            Payload::Minimal => {}
            Payload::Lean => {
                run["branch"] = json!(branch);
                run["environment"] = json!(environment);
                run["commit"] = json!(commit);
            }
            Payload::Rich => {
                run["environment"] = json!(environment);
                run["instanceId"] = json!(format!("{:016x}", random.next()));
                run["playwrightVersion"] = json!("1.61.1");
                run["reporterVersion"] = json!("0.25.0");
                run["isFullRun"] = json!(true);
                run["metadata"] = json!({
                    "scm": {"branch": branch, "commit": commit, "author": "Ada", "message": "Round prices once"},
                    "ci": {"provider": "generic", "buildUrl": format!("https://ci.example.org/builds/{number}")},
                });
            }
        }
    }

    /// Adds the attempts of a test; answers how long they took, ms.
    fn add_test(
        &self,
        random: &mut Random,
        test: &Test,
        at: i64,
        cases: &mut Vec<Value>,
        failed: &mut u64,
    ) -> u64 {
        let usual = test.usual_ms * random.between(85, 125) / 100;
        let failing = random.chance(FAILING_PERMILLE);
        let flaky = !failing && random.chance(FLAKY_PERMILLE);
        let mut taken = 0;
        if failing || flaky {
            let error = errors::error(random, test.weakness, &test.location());
            let status = if error.starts_with("Test timeout") { "timedOut" } else { "failed" };
            taken += usual * 3;
            cases.push(self.attempt(random, test, 0, (status, usual * 3, at), Some(error)));
            *failed += u64::from(failing);
        }
        if !failing {
            let begun = at + i64::try_from(taken).unwrap_or_default();
            cases.push(self.attempt(random, test, u64::from(flaky), ("passed", usual, begun), None));
            taken += usual;
        }
        taken
    }

    fn attempt(
        &self,
        random: &mut Random,
        test: &Test,
        retry: u64,
        (status, duration, at): (&str, u64, i64),
        error: Option<String>,
    ) -> Value {
        let failing = error.is_some();
        let mut entry = Map::new();
        entry.insert("title".to_owned(), json!(test.title));
        entry.insert("status".to_owned(), json!(status));
        entry.insert("duration".to_owned(), json!(duration));
        entry.insert("location".to_owned(), json!(test.location()));
        entry.insert("retries".to_owned(), json!(retry));
        if let Some(error) = error {
            entry.insert("error".to_owned(), json!(error));
        }
        if self.payload == Payload::Rich {
            entry.insert("suitePath".to_owned(), json!(test.describes));
            entry.insert("tags".to_owned(), json!(test.tags));
            entry.insert("startedAt".to_owned(), json!(at));
            entry.insert("timeout".to_owned(), json!(30_000));
            entry.insert("workerIndex".to_owned(), json!(random.between(0, 3)));
            let browser = json!({
                "projectName": "chromium", "browserName": "chromium",
                "viewport": {"width": 1280, "height": 720}, "locale": "en-GB",
            });
            entry.insert("browser".to_owned(), browser);
            evidence::add(&mut entry, random, test, failing, at);
        }
        Value::Object(entry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(payload: Payload) -> Runs {
        Runs::new(1, "shop", payload, 1_000, 500, Timestamp(1_767_225_600_000))
    }

    fn cases(payload: Payload, number: u64) -> Vec<Value> {
        let body: Value = serde_json::from_slice(&runs(payload).body(number).unwrap()).unwrap();
        body["testCases"].as_array().unwrap().clone()
    }

    #[test]
    fn the_same_seed_gives_the_same_bytes_and_another_run_others() {
        assert_eq!(runs(Payload::Rich).body(3).unwrap(), runs(Payload::Rich).body(3).unwrap());
        assert_ne!(runs(Payload::Lean).body(3).unwrap(), runs(Payload::Lean).body(4).unwrap());
    }

    #[test]
    fn shares_of_failing_and_flaky_tests_are_about_what_is_promised() {
        let cases: Vec<Value> = (0..10).flat_map(|number| cases(Payload::Lean, number)).collect();
        let flaky = cases.iter().filter(|case| case["retries"] == 1).count();
        let failing = cases.iter().filter(|case| case["status"] != "passed").count() - flaky;
        assert_eq!(cases.len() - flaky, 10_000);
        assert!((120..=280).contains(&failing), "{failing}");
        assert!((50..=150).contains(&flaky), "{flaky}");
    }

    #[test]
    fn rich_entries_have_about_five_kilobytes() {
        let body = runs(Payload::Rich).body(1).unwrap();
        let each = body.len() / 1_000;
        assert!((4_000..=6_500).contains(&each), "{each}");
    }

    #[test]
    fn runs_follow_one_another_over_ninety_days() {
        let runs = runs(Payload::Lean);
        assert!(runs.start_of(0).millis() >= runs.until.millis() - DAYS * DAY_MS);
        assert!((1..500).all(|number| runs.start_of(number - 1) < runs.start_of(number)));
        assert!(runs.start_of(499) < runs.until);
    }
}
