//! The trace reader: what it says about recorded traces of several versions of
//! Playwright, against what is known of them in `tests/data/traces`.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::ops::Range;
use std::path::Path;
use std::pin::pin;
use std::task::{Context as TaskContext, Poll, Waker};

use anyhow::{Context, Result, bail, ensure};
use callboard_domain::failure::{ErrorText, signature};
use callboard_domain::locator;
use callboard_playwright::healing::{Element, Verdict, heal, inventory, locators};
use callboard_playwright::trace::{Archive, ByteRanges, Limits, Trace, TraceFiles};
use serde::Deserialize;

use crate::table::{Table, Target};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    trace_version: u32,
    failing: Option<String>,
    kind: Option<String>,
    reason: Option<String>,
    locator: Option<String>,
    failed_request: Option<FailedRequest>,
    console_error: Option<String>,
    step: Option<String>,
    covering: Option<String>,
    healing: Option<String>,
}

#[derive(Deserialize)]
struct FailedRequest {
    method: String,
    path: String,
    status: i64,
}

/// Reads every recorded trace.
pub(crate) fn measure(data: &Path, details: bool) -> Result<Table> {
    let mut folders: Vec<_> = std::fs::read_dir(data.join("traces"))
        .context("cannot read tests/data/traces")?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("expected.json").exists())
        .collect();
    folders.sort();
    let (mut right, mut facts, mut trivially_right, mut failed) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut wrong = Vec::new();
    for folder in &folders {
        let text = std::fs::read_to_string(folder.join("expected.json"))?;
        let expected: BTreeMap<String, Expected> = serde_json::from_str(&text)?;
        for (name, expected) in expected {
            let label = format!("{} {name}", folder.file_name().unwrap_or_default().to_string_lossy());
            let file = InMemory(std::fs::read(folder.join(&name))?);
            let trace = read(&file).with_context(|| label.clone())?;
            let judged = judge(&trace, &expected);
            facts += judged.len();
            right += judged.iter().filter(|(_, is_right)| *is_right).count();
            wrong.extend(
                judged.iter().filter(|(_, is_right)| !is_right).map(|(fact, _)| format!("{label}: {fact}")),
            );
            // The trivial way: the action that ended last.
            let last = trace.actions.iter().rev().find_map(|action| action.api.clone());
            failed += usize::from(expected.failing.is_some());
            trivially_right += usize::from(expected.failing.is_some() && last == expected.failing);
        }
    }
    ensure!(facts > 0, "there are no traces");
    let mut table = Table::new(format!("Trace reader: {} versions, {facts} facts", folders.len()));
    let trivial = trivially_right as f64 / (failed as f64).max(1.0);
    table.add("facts right", right as f64 / facts as f64, Target::AtLeast(1.0), Some(trivial));
    if details || !wrong.is_empty() {
        wrong.into_iter().for_each(|fact| table.note(fact));
    }
    Ok(table)
}

/// Each fact that is known, and whether the reader says the same.
fn judge(trace: &Trace, expected: &Expected) -> Vec<(&'static str, bool)> {
    let failing = trace.failing_action(|_| false);
    let api = failing.as_ref().and_then(|failing| failing.action.api.clone());
    let mut facts = vec![
        ("version", trace.version == expected.trace_version),
        ("failing action", api == expected.failing),
    ];
    let Some(failing) = failing else { return facts };
    let signature = signature(&[ErrorText { message: failing.message, stack: None }], &[]);
    if let Some(kind) = &expected.kind {
        facts.push(("kind", signature.as_ref().is_some_and(|signature| signature.kind.as_str() == kind)));
    }
    if let Some(reason) = &expected.reason {
        facts.push(("reason", signature.as_ref().is_some_and(|signature| signature.reason == *reason)));
    }
    if expected.locator.is_some() {
        facts.push(("locator", failing.locator() == expected.locator));
    }
    facts.push((
        "place",
        failing.frames().first().is_some_and(|frame| frame.file.ends_with("shop.spec.ts") && frame.line > 1),
    ));
    let window = Some(failing.window());
    if let Some(request) = &expected.failed_request {
        let is_it = trace.relevant_exchanges(window).iter().any(|exchange| {
            exchange.method == request.method
                && exchange.url.ends_with(&request.path)
                && exchange.status == request.status
        });
        facts.push(("failed request", is_it));
    }
    if let Some(text) = &expected.console_error {
        facts.push((
            "console error",
            trace.relevant_console(window).iter().any(|line| line.text == *text && line.kind == "error"),
        ));
    }
    if let Some(step) = &expected.step {
        facts.push(("step", trace.named_steps().any(|action| action.title == *step)));
    }
    if let Some(covering) = &expected.covering {
        facts.push(("covering element", covered_by(failing.message).as_ref() == Some(covering)));
    }
    if let Some(healing) = &expected.healing {
        facts.push((
            "healing",
            healed(trace, &failing.locator().unwrap_or_default()).as_ref() == Some(healing),
        ));
    }
    facts
}

/// `<div id="overlay"></div> intercepts pointer events` as `div#overlay`.
fn covered_by(message: &str) -> Option<String> {
    let line = message.lines().find(|line| line.contains("intercepts pointer events"))?;
    let element = line[line.find('<')? + 1..].split('>').next()?;
    let (tag, attributes) = element.split_once(' ').unwrap_or((element, ""));
    let id = attributes.split_once("id=\"").and_then(|(_, rest)| rest.split('"').next());
    Some(id.map_or_else(|| tag.to_owned(), |id| format!("{tag}#{id}")))
}

/// What a healer that knows the failing page only offers first.
fn healed(trace: &Trace, failing: &str) -> Option<String> {
    let chain = locator::parse(failing)?;
    let call = chain.calls.last()?;
    let target = Element {
        role: call.text()?.to_owned(),
        name: call.option("name")?.value.as_text()?.to_owned(),
        ..Element::default()
    };
    let failing = trace.failing_action(|_| false)?;
    let document = trace.document(Some(failing.action)).ok()??;
    let page = inventory::page(&document.root, &trace.test_id_attribute);
    let answer = heal(&target, &[], page.elements());
    let Verdict::Answer(best) = answer.verdict else { return None };
    Some(locators(&page, best.index).first()?.locator.written('\''))
}

fn read(file: &InMemory) -> Result<Trace> {
    let archive = now(Archive::open(file, Limits::DEFAULT))??;
    let files = now(TraceFiles::fetch(&archive, file, true))??;
    Ok(Trace::parse(&files, true)?)
}

struct InMemory(Vec<u8>);

impl ByteRanges for InMemory {
    type Error = Infallible;

    fn size(&self) -> u64 {
        self.0.len() as u64
    }

    fn read(&self, range: Range<u64>) -> impl Future<Output = Result<Vec<u8>, Infallible>> + Send {
        let place = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(self.0.len());
        std::future::ready(Ok(self.0[place(range.start)..place(range.end)].to_vec()))
    }
}

/// Reading from memory never waits.
fn now<T>(future: impl Future<Output = T>) -> Result<T> {
    match pin!(future).poll(&mut TaskContext::from_waker(Waker::noop())) {
        Poll::Ready(value) => Ok(value),
        Poll::Pending => bail!("reading from memory waits"),
    }
}
