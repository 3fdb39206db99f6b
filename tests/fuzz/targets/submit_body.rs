//! Any bytes as the body of a submission: no panic, and what is accepted keeps
//! its bounds.
#![no_main]

use callboard_domain::ingest::{Caps, MAX_TEST_CASES, Need, RunFields, SubmitBody};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let caps = Caps::default();
    let Ok(mut body) = SubmitBody::parse(bytes.to_vec(), &caps) else { return };
    let _ = RunFields::parse(&mut body.fields, Need::Submit);
    let cases = body.test_cases.unwrap_or_default();
    assert!(cases.entries.len() <= MAX_TEST_CASES);
    for entry in &cases.entries {
        assert!(!entry.title.contains('\0') && !entry.file_path.contains('\0'));
        assert!(entry.duration_ms >= 0);
    }
});
