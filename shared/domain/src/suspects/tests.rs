use proptest::prelude::*;

use super::*;
use crate::evidence::{ConsoleEntry, Evidence, NetworkRequest};

fn change(sha: &str, path: &str, patch: &str) -> CommitChange {
    let file = FileChange { path: path.to_owned(), previous_path: None, patch: Some(patch.to_owned()) };
    CommitChange { sha: sha.to_owned(), files: vec![file] }
}

fn lost_button() -> Clues {
    let error = "TimeoutError: locator.click: Timeout 30000ms exceeded.\nCall log:\n  - waiting for \
        getByRole('button', { name: 'Place order' })\n\n    at /ci/shop/e2e/checkout.spec.ts:9:3";
    let evidence = Evidence {
        error: Some(error.to_owned()),
        test_source: Some(
            "import { Screen } from './screens/checkout';\nimport fs from 'node:fs';".to_owned(),
        ),
        ..Evidence::default()
    };
    Clues::of_failure("e2e/checkout.spec.ts", &evidence, &[])
}

#[test]
fn the_commit_that_removes_the_text_of_a_locator_comes_first_and_says_so() {
    let commits = [
        change("c3", "README.md", "@@ -1 +1 @@\n-Old\n+New"),
        change(
            "c2",
            "src/checkout.tsx",
            "@@ -1,3 +1,3 @@\n <form>\n-<button>Place order</button>\n+<button>Buy</button>",
        ),
        change("c1", "e2e/checkout.spec.ts", "@@ -40,2 +40,3 @@\n a\n+b\n c"),
    ];
    let ranking = rank(&lost_button(), &commits, &[]);
    let first = &ranking.commits[0];
    assert_eq!((first.sha.as_str(), first.is_top), ("c2", true), "{ranking:?}");
    assert_eq!(first.reasons[0].1.to_string(), "removes “Place order”, which the test looks for");
    assert_eq!(ranking.files[0].path, "src/checkout.tsx");
    assert!(ranking.files.iter().all(|file| file.path != "README.md"), "{ranking:?}");
}

#[test]
fn imports_are_followed_and_packages_are_not() {
    let clues = lost_button();
    assert_eq!(clues.import_paths().collect::<Vec<_>>(), ["e2e/screens/checkout.ts"]);
    let commits = [change("c2", "e2e/screens/checkout.ts", "@@ -1 +1 @@\n-a\n+b"), change("c1", "x.ts", "")];
    let ranking = rank(&clues, &commits, &[]);
    assert_eq!(ranking.files[0].reasons[0].kind, ReasonKind::Imported);
    let source = "import '../../a';\nexport * from './b/index.ts';\nconst c = require(\"../c.js\")";
    let found: Vec<String> = imported_files("e2e/x/y.ts", source).into_iter().collect();
    assert_eq!(found, ["a", "e2e/c", "e2e/x/b"]);
}

#[test]
fn requests_and_uncaught_errors_lead_to_their_code() {
    let evidence = Evidence {
        network_requests: vec![NetworkRequest {
            url: "https://shop.test/api/cart?x=1".to_owned(),
            status: 500,
            ..NetworkRequest::default()
        }],
        console_logs: vec![ConsoleEntry {
            kind: "pageerror".to_owned(),
            text: "TypeError: Cannot read properties of undefined (reading 'amount')".to_owned(),
            ..ConsoleEntry::default()
        }],
        ..Evidence::default()
    };
    let clues = Clues::of_failure("e2e/x.spec.ts", &evidence, &[]);
    let commits = [
        change("c3", "server/routes/cart.ts", "@@ -1 +1 @@\n-a\n+b"),
        change("c2", "web/total.ts", "@@ -1 +1 @@\n-sum.amount\n+sum.value"),
        change("c1", "web/other.ts", "@@ -1 +1 @@\n-a\n+b"),
    ];
    let kinds: Vec<_> =
        rank(&clues, &commits, &[]).files.into_iter().map(|file| (file.path, file.reasons[0].kind)).collect();
    let expected = [
        ("web/total.ts".to_owned(), ReasonKind::ChangesSymbol),
        ("server/routes/cart.ts".to_owned(), ReasonKind::DealsWithRequest),
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn a_pass_in_between_acquits_what_came_before_it() {
    let commits: Vec<CommitChange> =
        ["d", "c", "b", "a"].iter().map(|sha| change(sha, "x", "@@ -1 +1 @@\n-a\n+b")).collect();
    let seen = |sha: &str, has_failed| Observation { sha: sha.to_owned(), has_failed, flake_rate: 0.0 };
    let ranking = rank(&Clues::default(), &commits, &[seen("b", false), seen("c", true)]);
    assert_eq!(ranking.commits[0].sha, "c");
    assert!(ranking.commits[0].probability > 0.9, "{ranking:?}");
    assert!(!ranking.commits[0].is_top, "nothing ties its files to the failure");
}

proptest! {
    #[test]
    fn any_error_and_any_patch_give_probabilities(
        error in "\\PC{0,200}", patches in proptest::collection::vec("[-+ @\\PC\n]{0,120}", 0..6),
        failed in any::<bool>(), rate in any::<f64>(),
    ) {
        let evidence = Evidence { error: Some(error.clone()), test_source: Some(error), ..Evidence::default() };
        let clues = Clues::of_failure("a/b.spec.ts", &evidence, &["browser.version".to_owned()]);
        let commits: Vec<CommitChange> = patches
            .iter()
            .enumerate()
            .map(|(number, patch)| change(&number.to_string(), "a/c.ts", &format!("@@ -1 +1 @@\n{patch}")))
            .collect();
        let rate = if rate.is_finite() { rate } else { 0.1 };
        let seen = [Observation { sha: "0".to_owned(), has_failed: failed, flake_rate: rate }];
        let ranking = rank(&clues, &commits, &seen);
        prop_assert_eq!(ranking.commits.len(), commits.len());
        let sum: f64 = ranking.commits.iter().map(|commit| commit.probability).sum();
        prop_assert!(commits.is_empty() || (sum - 1.0).abs() < 1e-9);
        prop_assert!(ranking.commits.windows(2).all(|pair| pair[0].probability >= pair[1].probability));
        prop_assert!(ranking.files.iter().all(|file| file.score > 0.0 && !file.commits.is_empty()));
    }
}
