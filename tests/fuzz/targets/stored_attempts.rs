//! Any text as stored attempts: reading never panics, and what is read is
//! written back to itself.
#![no_main]

use callboard_domain::attempts::AttemptSet;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let Ok(set) = AttemptSet::from_json(text) else { return };
    let _ = set.decide();
    if let Some(json) = set.to_json() {
        let again = AttemptSet::from_json(&json).expect("what was written is readable");
        assert_eq!(again.to_json(), Some(json));
    }
});
