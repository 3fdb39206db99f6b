use std::convert::Infallible;
use std::future::Future;
use std::io::Write as _;
use std::ops::Range;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use flate2::write::DeflateEncoder;
use proptest::prelude::*;

use super::dom::Node;
use super::*;

/// An archive in memory that counts what is read of it.
struct Bytes {
    bytes: Vec<u8>,
    read: std::sync::atomic::AtomicU64,
}

impl Bytes {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: 0.into() }
    }
}

impl ByteRanges for Bytes {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, Infallible>> + Send {
        self.read.fetch_add(range.end - range.start, std::sync::atomic::Ordering::Relaxed);
        let range = usize::try_from(range.start).unwrap()..usize::try_from(range.end).unwrap();
        std::future::ready(Ok(self.bytes[range].to_vec()))
    }
}

/// Nothing here waits.
fn now<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("it waits"),
    }
}

fn read(file: &Bytes, limits: Limits) -> Result<(Archive, Trace), ParseError> {
    let archive = now(Archive::open(file, limits))?;
    let files = now(TraceFiles::fetch(&archive, file, true))?;
    let trace = Trace::parse(&files, true)?;
    Ok((archive, trace))
}

/// An archive of these entries; `claims` may lie about inflated sizes.
fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
    zip_with(entries, |_, size| size)
}

fn zip_with(entries: &[(&str, &[u8])], claimed: impl Fn(&str, u32) -> u32) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in entries {
        let mut packer = DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packer.write_all(content).unwrap();
        let packed = packer.finish().unwrap();
        let at = u32::try_from(out.len()).unwrap();
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).unwrap().to_le_bytes();
        let name_length = u16::try_from(name.len()).unwrap().to_le_bytes();
        let size = claimed(name, u32::try_from(content.len()).unwrap()).to_le_bytes();
        let middle = [&8_u16.to_le_bytes()[..], &[0; 8], &length(&packed), &size, &name_length].concat();
        out.extend([&b"PK\x03\x04\x14\0\0\0"[..], &middle, &[0; 2], name.as_bytes(), &packed].concat());
        directory.extend(
            [&b"PK\x01\x02\x14\0\x14\0\0\0"[..], &middle, &[0; 12], &at.to_le_bytes(), name.as_bytes()]
                .concat(),
        );
    }
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    let at = u32::try_from(out.len()).unwrap().to_le_bytes();
    let length = u32::try_from(directory.len()).unwrap().to_le_bytes();
    out.extend(&directory);
    out.extend([&b"PK\x05\x06\0\0\0\0"[..], &count, &count, &length, &at, &[0; 2]].concat());
    out
}

const BEGIN: &str =
    r#"{"version":7,"type":"context-options","origin":"testRunner","wallTime":1000,"monotonicTime":0}"#;

fn trace_of(lines: &[&str]) -> Result<(Archive, Trace), ParseError> {
    let content = lines.join("\n");
    read(&Bytes::new(zip(&[("test.trace", content.as_bytes())])), Limits::DEFAULT)
}

#[test]
fn a_failing_step_knows_its_words_place_steps_and_log() {
    let (_, trace) = trace_of(&[
        BEGIN,
        r#"{"type":"before","callId":"test.step@1","startTime":1,"class":"Test","method":"step","apiName":"pay","stack":[]}"#,
        r#"{"type":"before","callId":"pw:api@2","parentId":"test.step@1","startTime":2,"class":"Test","method":"step","apiName":"locator.click","stack":[{"file":"a.ts","line":3,"column":4}]}"#,
        r#"{"type":"after","callId":"pw:api@2","endTime":5,"error":{"message":"\u001b[31mlocator.click: Timeout\u001b[39m\n  - waiting for getByText('Pay').first()\n"}}"#,
        r#"{"type":"after","callId":"test.step@1","endTime":6,"error":{"message":"locator.click: Timeout"}}"#,
        r#"{"type":"before","callId":"hook@3","startTime":7,"class":"Test","method":"step","apiName":"After Hooks","stack":[]}"#,
        r#"{"type":"after","callId":"hook@3","endTime":8}"#,
        "half a li",
    ])
    .unwrap();
    let failing = trace.failing_action(|_| false).unwrap();
    assert_eq!(failing.action.api.as_deref(), Some("click"));
    assert_eq!(failing.steps, ["pay"]);
    assert_eq!(failing.locator().as_deref(), Some("getByText('Pay').first()"));
    assert_eq!(failing.window(), (1002.0, Some(1005.0)));
    assert_eq!(failing.frames()[0].line, 3);
}

#[test]
fn the_action_with_the_reported_error_wins_else_the_first_else_one_that_never_ended() {
    let action = |id: u32, message: &str| {
        [
            format!(r#"{{"type":"before","callId":"pw:api@{id}","startTime":{id},"class":"Test","method":"step","apiName":"page.goto"}}"#),
            format!(r#"{{"type":"after","callId":"pw:api@{id}","endTime":{id}{message}}}"#),
        ]
        .join("\n")
    };
    let first = action(1, r#","error":{"message":"one"}"#);
    let second = action(2, r#","error":{"message":"two"}"#);
    let open = r#"{"type":"before","callId":"pw:api@9","startTime":9,"class":"Test","method":"step","apiName":"page.waitForURL"}"#;
    let id = |trace: &Trace, reported: &str| {
        trace.failing_action(|message| message == reported).map(|failing| failing.action.id.clone())
    };
    let (_, trace) = trace_of(&[BEGIN, &first, &second, open]).unwrap();
    assert_eq!(id(&trace, "two").as_deref(), Some("pw:api@2"));
    assert_eq!(id(&trace, "other").as_deref(), Some("pw:api@1"));
    let (_, trace) = trace_of(&[BEGIN, &action(1, ""), open]).unwrap();
    assert_eq!(id(&trace, "other").as_deref(), Some("pw:api@9"));
    let (_, trace) = trace_of(&[BEGIN, &action(1, "")]).unwrap();
    assert_eq!(id(&trace, "other"), None);
}

fn page(html: &str) -> String {
    format!(
        r#"{{"type":"frame-snapshot","snapshot":{{"callId":"c","phase":"before","frameId":"f","frameUrl":"http://x/?token=abc","isMainFrame":true,"html":{html}}}}}"#
    )
}

#[test]
fn a_document_follows_its_references_and_can_do_nothing() {
    let (_, trace) = trace_of(&[
        BEGIN,
        &page(r#"["HTML",{},["HEAD",{},["SCRIPT",{},"evil()"],["META",{"http-equiv":"refresh"}]],["BODY",{"onload":"evil()"},["P",{},"kept & <b>"]]]"#),
        &page(r#"["HTML",{},["BODY",{},[[1,5]],["A",{"href":"java\tscript:evil()","title":"\"x"},"go"],["INPUT",{"type":"password","__playwright_value_":"hunter2"}],["INPUT",{"__playwright_value_":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdef"}],[[9,9]],[[0,0]]]]"#),
    ])
    .unwrap();
    let document = trace.document(None).unwrap().unwrap();
    assert_eq!(document.url, "http://x/?token=***");
    assert_eq!(
        document.html(),
        "<!doctype html><html><body><p>kept &amp; &lt;b&gt;</p><a title=\"&quot;x\">go</a>\
         <input value=\"***\" type=\"password\"><input value=\"***\"></body></html>"
    );
}

#[test]
fn a_call_with_arguments_nested_as_deep_as_programs_nest_them_is_read() {
    // Three levels for each level of the argument.
    let nested = |levels: usize| {
        let argument = format!("{}1{}", r#"{"o":[{"v":"#.repeat(levels), "}]}".repeat(levels));
        format!(
            r#"{{"type":"before","callId":"call@{levels}","class":"Frame","method":"evaluate","params":{{"arg":{argument}}}}}"#
        )
    };
    let (_, trace) = trace_of(&[BEGIN, &nested(21), &nested(1_000), &nested(1)]).unwrap();
    let ids: Vec<&str> = trace.actions.iter().map(|action| action.id.as_str()).collect();
    assert_eq!(ids, ["call@21", "call@1"]);
}

#[test]
fn a_text_that_was_cut_inside_of_a_character_is_read() {
    let (_, trace) = trace_of(&[
        BEGIN,
        r#"{"type":"before","callId":"call@1","startTime":1,"class":"Frame","method":"click"}"#,
        r#"{"type":"after","callId":"call@1","endTime":5,"error":{"message":"no \ud83d"}}"#,
        &page(r#"["P",{},"so \ud83d"]"#),
    ])
    .unwrap();
    let failing = trace.failing_action(|_| false).unwrap();
    assert_eq!((failing.message, failing.action.end), ("no \u{fffd}", Some(1005.0)));
    let html = trace.document(None).unwrap().unwrap().html();
    assert_eq!(html, "<!doctype html><p>so \u{fffd}</p>");
}

#[test]
fn a_line_that_is_too_long_says_nothing_about_the_others() {
    let limits = Limits { line_bytes: 600, ..Limits::DEFAULT };
    let parse = |lines: &[&str]| {
        let file = Bytes::new(zip(&[("test.trace", lines.join("\n").as_bytes())]));
        let archive = now(Archive::open(&file, limits)).unwrap();
        let files = now(TraceFiles::fetch(&archive, &file, true)).unwrap();
        (Trace::parse(&files, false).unwrap(), Trace::parse(&files, true).unwrap())
    };
    let error = r#"{"type":"error","message":"told"}"#;
    let as_long_as_allowed = format!("{error}{}", " ".repeat(600 - error.len()));
    let large = page(&format!(r#"["P",{{}},"{}"]"#, "x".repeat(2_000)));
    let small = page(r#"["P",{},"kept"]"#);
    let over_it = page(r#"["DIV",{},[[2,0]]]"#);
    let lines = [BEGIN, &small, &large, &as_long_as_allowed, error, &over_it, error];
    let (without_pages, trace) = parse(&lines);
    assert_eq!((without_pages.errors.len(), trace.errors.len()), (3, 3));
    // Its place counts: what is meant lies two before.
    assert_eq!(trace.document(None).unwrap().unwrap().html(), "<!doctype html><div>kept</div>");
    for on_it in [&[BEGIN, &large, &page(r#"["DIV",{},[[1,0]]]"#)][..], &[BEGIN, &small, &large]] {
        assert_eq!(parse(on_it).1.document(None), Err(TraceError::TooLarge("a page is too large")));
    }
}

#[test]
fn an_error_is_compared_once_and_a_flood_of_them_not_at_all() {
    let mut lines = vec![BEGIN.to_owned()];
    for id in 1..=2_000 {
        // Each message twice, each in a call inside of a step that fails with it.
        let error = format!(r#"{{"message":"no {}"}}"#, id / 2);
        for (kind, parent) in [("step", "test"), ("call", "step")] {
            lines.push(format!(
                r#"{{"type":"before","callId":"{kind}{id}","parentId":"{parent}{id}","startTime":{id},"class":"Test","method":"step"}}"#
            ));
            lines.push(format!(r#"{{"type":"after","callId":"{kind}{id}","endTime":{id},"error":{error}}}"#));
        }
        lines.push(format!(r#"{{"type":"error","message":"told {id}"}}"#));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (_, trace) = trace_of(&lines).unwrap();
    assert_eq!((trace.actions.len(), trace.errors.len()), (4_000, 200));
    let compared = std::cell::RefCell::new(Vec::new());
    let id_of = |reported: &str| {
        compared.borrow_mut().clear();
        let failing = trace.failing_action(|message| {
            compared.borrow_mut().push(message.to_owned());
            message == reported
        });
        failing.unwrap().action.id.clone()
    };
    assert_eq!(id_of("no 990"), "call1981");
    assert_eq!(compared.borrow().len(), 11);
    assert_eq!(id_of("nothing of it"), "call1");
    assert_eq!(compared.borrow().len(), 200);
}

#[test]
fn content_that_references_multiply_is_too_large() {
    for content in [
        format!(r#"["P",{{}},"{}"]"#, "x".repeat(20_000)),
        format!(r#"["P",{{"title":"{}"}}]"#, "x".repeat(20_000)),
        // Many small ones take more than their letters.
        format!(r#"["P",{{{}}}]"#, (10..70).map(|n| format!(r#""{n}":"""#)).collect::<Vec<_>>().join(",")),
    ] {
        let of = |times: usize| {
            let repeated = page(&format!(r#"["DIV",{{}}{}]"#, ",[[1,0]]".repeat(times)));
            trace_of(&[BEGIN, &page(&content), &repeated]).unwrap().1.document(None)
        };
        let Node::Element { children, .. } = of(100).unwrap().unwrap().root else { panic!("no element") };
        assert_eq!(children.len(), 100);
        assert_eq!(of(50_000), Err(TraceError::TooLarge("a page is too large")));
    }
}

#[test]
fn references_that_multiply_a_document_are_too_large() {
    let mut lines = vec![BEGIN.to_owned(), page(r#"["P",{},"x"]"#)];
    // Each page holds the one before it ten times.
    for _ in 0..8 {
        lines.push(page(
            &format!(r#"["DIV",{{}}{}]"#, ",[[1,0]]".repeat(10))
                .replace("[[1,0]]", if lines.len() == 2 { "[[1,1]]" } else { "[[1,0]]" }),
        ));
    }
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    let (_, trace) = trace_of(&lines).unwrap();
    assert_eq!(trace.document(None), Err(TraceError::TooLarge("a page is too large")));
}

#[test]
fn requests_lose_their_secrets_and_those_that_broke_are_always_told() {
    let request = |second: u32, status: u32| {
        format!(
            r#"{{"type":"resource-snapshot","snapshot":{{"startedDateTime":"1970-01-01T00:00:{second:02}.000Z","time":4.5,
            "request":{{"method":"GET","url":"http://u:p@h/a?apiKey=s3cret&page=2#t","headers":[{{"name":"Cookie","value":"s3cret"}},{{"name":"X-Auth-Token","value":"s3cret"}},{{"name":"Accept","value":"*/*"}}]}},
            "response":{{"status":{status},"headers":[],"content":{{"size":3,"mimeType":"text/plain","_sha1":"{}.txt"}}}}}}}}"#,
            "a".repeat(40)
        )
        .replace('\n', " ")
    };
    let network = [request(1, 200), request(5, 200), request(2, 503), request(3, 404)].join("\n");
    let file = Bytes::new(zip(&[
        ("test.trace", BEGIN.as_bytes()),
        ("0-trace.network", network.as_bytes()),
        (&format!("resources/{}.txt", "a".repeat(40)), b"abc"),
    ]));
    let (archive, trace) = read(&file, Limits::DEFAULT).unwrap();
    assert_eq!(trace.exchanges.len(), 4);
    assert!(!format!("{:?}", trace.exchanges).contains("s3cret"));
    assert_eq!(trace.exchanges[0].url, "http://h/a?apiKey=***&page=2");
    let told: Vec<i64> =
        trace.relevant_exchanges(Some((4500.0, Some(6000.0)))).iter().map(|each| each.status).collect();
    assert_eq!(told, [503, 200]);
    assert_eq!(trace.relevant_exchanges(None).len(), 4);
    let body = trace.exchanges[0].response_body.as_ref().and_then(|body| body.entry.clone()).unwrap();
    let packed = now(archive.fetch(&file, &body)).unwrap().unwrap();
    assert_eq!(packed.inflate(3).unwrap(), b"abc");
    assert_eq!(packed.inflate(2), Err(TraceError::TooLarge("an entry is too large")));
    assert_eq!(resource_name(&archive, &"a".repeat(40)).as_deref(), Some(body.as_str()));
    for odd in ["../../etc/passwd", "test.trace", "", &format!("{}.t/x", "a".repeat(40))] {
        assert_eq!(resource_name(&archive, odd), None);
    }
}

#[test]
fn bombs_lies_and_floods_are_refused_within_the_limits() {
    let small = Limits { entries: 3, events: 5, line_bytes: 2_000, entry_bytes: 3 << 20, ..Limits::DEFAULT };
    let refuse = |bytes: Vec<u8>, limits: Limits| read(&Bytes::new(bytes), limits).map(|_| ()).unwrap_err();
    let blanks = vec![b'\n'; 4 << 20];
    // Says so.
    assert_eq!(refuse(zip(&[("test.trace", &blanks)]), small), TraceError::TooLarge("an entry is too large"));
    // Lies about it.
    let lying = zip_with(&[("test.trace", &blanks)], |_, _| 10);
    assert_eq!(refuse(lying, small), TraceError::TooLarge("an entry is too large"));
    // Within the size of an entry, yet out of any proportion.
    let ratio = Limits { ratio: 20, ..Limits::DEFAULT };
    assert_eq!(refuse(zip(&[("test.trace", &blanks)]), ratio), TraceError::TooLarge("an entry is too large"));
    let total = Limits { total_bytes: 3 << 20, ratio: 10_000, ..Limits::DEFAULT };
    assert_eq!(
        refuse(zip(&[("a.trace", &blanks[..2 << 20]), ("b.trace", &blanks[..2 << 20])]), total),
        TraceError::TooLarge("it inflates to too much")
    );
    // What is not kept of a line counts all the same.
    let long = Limits { total_bytes: 9_000, ..small };
    assert_eq!(
        refuse(zip(&[("test.trace", &[b'{'; 10_000])]), long),
        TraceError::TooLarge("it inflates to too much")
    );
    assert_eq!(
        refuse(zip(&[("test.trace", "{}\n".repeat(6).as_bytes())]), small),
        TraceError::TooLarge("too many events")
    );
    let many: Vec<(&str, &[u8])> = vec![("a", b""), ("b", b""), ("c", b""), ("d", b"")];
    assert_eq!(refuse(zip(&many), small), TraceError::TooLarge("too many entries"));
    assert_eq!(refuse(zip(&[]), small), TraceError::Unreadable("there are no events in it"));
}

#[test]
fn damaged_archives_are_unreadable() {
    let whole = zip(&[("test.trace", BEGIN.as_bytes())]);
    let refuse = |bytes: Vec<u8>| read(&Bytes::new(bytes), Limits::DEFAULT).map(|_| ()).unwrap_err();
    assert!(matches!(refuse(Vec::new()), TraceError::Unreadable(_)));
    assert!(matches!(refuse(b"no archive at all".repeat(9_000)), TraceError::Unreadable(_)));
    let patched = |at: usize, bytes: &[u8]| {
        let mut copy = whole.clone();
        copy[at..at + bytes.len()].copy_from_slice(bytes);
        copy
    };
    let end = whole.len() - 22;
    let directory = u32::from_le_bytes(whole[end + 16..end + 20].try_into().unwrap()) as usize;
    // The directory lies beyond the end; an entry does; it is encrypted; its method is unknown; its bytes are not its own.
    assert!(matches!(refuse(patched(end + 16, &[0xff; 4])), TraceError::Unreadable(_)));
    assert!(matches!(refuse(patched(directory + 42, &[0xff, 0xff, 0, 0])), TraceError::Unreadable(_)));
    assert!(matches!(refuse(patched(directory + 8, &[1, 0])), TraceError::Unreadable(_)));
    assert!(matches!(refuse(patched(directory + 10, &[12, 0])), TraceError::Unreadable(_)));
    assert!(matches!(refuse(patched(40, &[0xff; 8])), TraceError::Unreadable(_)));
    // A directory of one byte at the last place there is.
    let wide_end = [&b"PK\x06\x06"[..], &[0; 36], &1_u64.to_le_bytes(), &u64::MAX.to_le_bytes()].concat();
    let locator = [&b"PK\x06\x07\0\0\0\0"[..], &0_u64.to_le_bytes(), &[0; 4]].concat();
    let wide = [&wide_end, &locator, &whole[end..]].concat();
    assert_eq!(refuse(wide), TraceError::Unreadable("the archive points outside of itself"));
}

#[test]
fn a_large_trace_is_read_in_its_small_part() {
    let noise: Vec<u8> =
        (0..20_u64 << 20).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40) as u8).collect();
    let mut bytes = zip(&[("resources/video.webm", &noise), ("test.trace", BEGIN.as_bytes())]);
    // A comment at the end, with the signature of an end inside.
    let at = bytes.len() - 2;
    bytes[at..].copy_from_slice(&9_u16.to_le_bytes());
    bytes.extend(b"PK\x05\x06 abc\n");
    let file = Bytes::new(bytes);
    assert!(read(&file, Limits::DEFAULT).is_ok());
    assert!(file.read.into_inner() < 100_000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_bytes_and_any_change_of_a_trace_are_read_without_panic(
        bytes in prop::collection::vec(any::<u8>(), 0..400),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..12),
        line in "(\\PC|[{}\\[\\]\":,0-9])*",
    ) {
        let _ = read(&Bytes::new(bytes), Limits::DEFAULT);
        let lines = [BEGIN, &page(r#"["A",{},[[1,0]],"x"]"#), &line].join("\n");
        let mut whole = zip(&[("test.trace", lines.as_bytes()), ("0-trace.stacks", br#"{"files":["a"],"stacks":[[1,[[0,1,2,""]]]]}"#)]);
        for (at, byte) in changes {
            let at = at.index(whole.len());
            whole[at] = byte;
        }
        if let Ok((_, trace)) = read(&Bytes::new(whole), Limits::DEFAULT) {
            let _ = trace.document(None).map(|document| document.map(|document| document.html()));
            let failing = trace.failing_action(|_| false);
            let _ = (trace.screenshot(failing.as_ref()), failing.and_then(|failing| failing.locator()));
        }
    }

    #[test]
    fn masking_keeps_what_is_no_secret(text in "[a-z0-9 .:/_-]{0,60}") {
        let is_suspicious = text.contains("eyj") || text.contains("pd_") || text.contains("data:") || text.contains("bearer") || text.split(|char: char| !char.is_ascii_hexdigit()).any(|run| run.len() >= 32);
        if !is_suspicious {
            prop_assert_eq!(callboard_domain::secrets::masked(&text).into_owned(), text.clone());
        }
    }
}
