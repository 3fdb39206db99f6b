//! The trace reader: never a panic, never more than its limits, whatever the
//! archive claims.
#![no_main]

use std::convert::Infallible;
use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use callboard_playwright::trace::{Archive, ByteRanges, Limits, Trace, TraceFiles};
use libfuzzer_sys::fuzz_target;

struct InMemory<'a>(&'a [u8]);

impl ByteRanges for InMemory<'_> {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, Infallible>> + Send {
        std::future::ready(Ok(self.0[range.start as usize..range.end as usize].to_vec()))
    }
}

fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("reading from memory waits"),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let file = InMemory(bytes);
    let Ok(archive) = now(Archive::open(&file, Limits::DEFAULT)) else { return };
    let Ok(files) = now(TraceFiles::fetch(&archive, &file, true)) else { return };
    let Ok(trace) = Trace::parse(&files, true) else { return };
    let failing = trace.failing_action(|_| false);
    let document = trace.document(failing.as_ref().map(|failing| failing.action));
    if let Ok(Some(document)) = document {
        let html = document.html();
        assert!(!html.contains("<script"));
        let page = callboard_playwright::healing::inventory::page(&document.root, "data-testid");
        let _ = callboard_playwright::healing::locators(&page, 0);
    }
    let _ = failing.and_then(|failing| failing.locator());
    let _ = trace.relevant_exchanges(None);
});
