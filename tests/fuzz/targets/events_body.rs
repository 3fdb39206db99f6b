//! Any bytes as the body of an events call: no panic, and every event either
//! counts or is told to be ignored.
#![no_main]

use callboard_domain::ingest::{Caps, EventsBody};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(body) = EventsBody::parse(bytes.to_vec(), &Caps::default()) else { return };
    assert!(body.completes.entries.len() + body.begun.len() + body.steps.len() <= body.processed);
    for begun in &body.begun {
        assert!(!begun.title.contains('\0') && !begun.file_path.contains('\0'));
    }
});
