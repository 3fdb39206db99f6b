//! Any bytes as an inflated report archive, in any chunks: every path that
//! comes out stays inside the report's directory.
#![no_main]

use callboard_playwright::report_archive::{ArchiveEvent, ArchiveLimits, ArchiveReader};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (u8, &[u8])| {
    let (step, bytes) = input;
    let mut reader = ArchiveReader::new(ArchiveLimits::default());
    for mut chunk in bytes.chunks(usize::from(step).max(1)) {
        loop {
            match reader.next_event(&mut chunk) {
                Ok(Some(ArchiveEvent::Entry { path, .. })) => {
                    assert!(path.split('/').all(|segment| !matches!(segment, "" | "." | "..")));
                    assert!(!path.contains(['\\', '\0']));
                }
                Ok(Some(_)) => {}
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    let _ = reader.finish();
});
