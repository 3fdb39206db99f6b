//! A locator that works instead of one that finds nothing: from what a person
//! chose, from what the test and others found before, and from the failing
//! page itself.
//!
//! A source counts only when its candidate is on the failing page, exactly
//! once. Where nothing is certain, nothing is recommended.

mod answer;
mod site;

use callboard_auth::scope::Authorized;
use callboard_domain::explain::{OtherPage, other_page};
use callboard_domain::failure::Kind;
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::ingest::AlternativeLocator;
use callboard_domain::locator;
use callboard_playwright::healing::rewrite::{rewrite, rewrite_as_is};
use callboard_playwright::healing::{
    Answer, Element, Finder, Page, Ranked, Recommendation, Verdict, aria, chain_in_error, found_by, heal,
    inventory, is_like, locators, recommend,
};
use callboard_store::boxed;
use callboard_store::locators::{self as stored, LocatorRow};
use serde_json::Value;

use super::failed_requests::{new_broken_request, request_name};
use super::subject::Subject;
use super::trace::{failing_aria, failing_document};
use crate::{Context, Result};

pub use answer::{
    HealedLine, HealingAdvice, HealingEdit, HealingSource, LocatorHealing, LostLocator, RankedLocator,
};
pub(super) use site::{Site, is_same_file, row_at};
use site::{edit_of, healed_in, source_around};

/// Locators listed of each kind.
const MAX_LISTED: usize = 10;
/// Other locators of an element that are tried again: those that say something.
const MIN_ALTERNATIVE_SCORE: i64 = 50;
/// How sure one can be of a locator that found the element before and finds
/// one element now.
const PRIOR_SCORE: u8 = 95;
/// Margin from which an element that is known by role and name only is more
/// than an offer.
const MIN_ARIA_MARGIN: f64 = 5.0;
pub(super) const DEFAULT_TEST_ID_ATTRIBUTE: &str = "data-testid";

/// The locator to use instead of the one that failed. Nothing known is
/// `source: none`, not an error.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
#[boxed]
pub async fn locator_healing(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<LocatorHealing> {
    let subject = Subject::read(ctx, project, id).await?;
    of_subject(ctx, project, &subject).await
}

pub(super) async fn of_subject(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: &Subject,
) -> Result<LocatorHealing> {
    let mut answer = LocatorHealing::nothing();
    let Some(signature) = subject.has_failed().then(|| subject.signature()).flatten() else {
        return Ok(answer);
    };
    let Some(failing_text) = subject.error().as_deref().and_then(chain_in_error) else { return Ok(answer) };
    let Some(failing) = Finder::of_text(&failing_text) else { return Ok(answer) };
    answer.failing_locator = Some(LostLocator { method: failing.method.clone(), args: failing.args.clone() });
    answer.failing_text = Some(failing_text.clone());
    let site = Site::from_subject(subject);
    answer.location = site.as_ref().map(Site::written);
    let source = site.as_ref().map(|site| source_around(subject, site)).unwrap_or_default();
    answer.source_line = site
        .as_ref()
        .and_then(|site| Some(HealedLine { line: site.line, text: source.line(site.line)?.to_owned() }));
    // An element that is there, and covered or disabled, is no matter of its locator.
    if signature.reason != "not-found" && signature.kind != Kind::Strict {
        return Ok(answer);
    }
    answer.other_page = page_it_was_on(ctx, subject).await?;
    if answer.other_page.is_some() {
        return Ok(answer);
    }
    // What is known of the page is its own document: neither is the element
    // there, nor would a locator of that document find anything in the frame.
    if is_in_frame(&failing_text) {
        return Ok(answer);
    }
    let Some((page, test_id_attribute)) = failing_page(ctx, project, subject).await? else {
        return Ok(answer);
    };
    let is_there = found_by(&failing_text, &page).is_some_and(|found| !found.places.is_empty());
    if signature.kind != Kind::Strict && is_there {
        return Ok(answer);
    }

    let mut session = ctx.store.db().read().await?;
    let mut rows = stored::of_case(&mut session, project.get(), subject.case.id).await?;
    rows.retain(|row| !is_in_frame(&row.raw));
    let fingerprint = failing.fingerprint();
    let here =
        site.as_ref().and_then(|site| row_at(&rows, site, &failing, &test_id_attribute, subject.run.id));
    let same = rows.iter().find(|row| row.args_fp == fingerprint);
    let mut elsewhere = match here.or(same) {
        None => stored::elsewhere(&mut session, project.get(), fingerprint, subject.case.id).await?,
        Some(_) => Vec::new(),
    };
    elsewhere.retain(|row| !is_in_frame(&row.raw));
    drop(session);
    let known = here.or(same).or(elsewhere.first());
    answer.captured_at = known.map(|row| row.last_seen_at);

    let elements = page.elements();
    let before: Vec<Element> = rows.iter().filter_map(|row| element_of(row, &test_id_attribute)).collect();
    let element = known.and_then(|row| element_of(row, &test_id_attribute));
    let matched = element.as_ref().map(|element| heal(element, &before, elements));
    // Without a stored element there is what the locator itself says.
    let by_name = heal(&failing.target(), &before, elements);

    let ladder = [
        (HealingSource::PriorRun, here),
        (HealingSource::Fingerprint, same),
        (HealingSource::CrossTest, elsewhere.first()),
    ];
    let mut chosen: Option<usize> = None;
    for (source, row) in ladder {
        let Some(row) = row else { continue };
        let prior = prior_successes(row, &page, &failing_text, matched.as_ref());
        if let Some((first, _)) = prior.first() {
            chosen = Some(*first);
            answer.source = source;
            answer.from_prior_success =
                prior.into_iter().map(|(_, locator)| locator).take(MAX_LISTED).collect();
            break;
        }
    }
    let mut certain = chosen.is_some();
    if let Some(matched) = &matched {
        answer.from_element_match = listed(matched, &page);
        if chosen.is_none() && !answer.from_element_match.is_empty() {
            answer.source = HealingSource::ElementMatch;
            // Its role alone sets the only button of an accessibility tree far
            // apart: there the name has to be like it too.
            let is_enough = |best: &Ranked| {
                page.has_attributes()
                    || matched.margin >= MIN_ARIA_MARGIN
                    || element.as_ref().is_some_and(|element| is_like(element, &elements[best.index]))
            };
            if let Some(best) = answered(matched).filter(is_enough) {
                (chosen, certain) = (Some(best.index), true);
                answer.margin = Some(matched.margin);
            }
        }
    }
    if !is_known_by_attribute_only(&failing) {
        answer.from_aria_snapshot = listed(&by_name, &page);
    }
    if answer.source == HealingSource::None && !answer.from_aria_snapshot.is_empty() {
        answer.source = HealingSource::AriaSnapshot;
        if let Some(best) = answered(&by_name).filter(|_| by_name.margin >= MIN_ARIA_MARGIN) {
            (chosen, certain) = (Some(best.index), true);
            answer.margin = Some(by_name.margin);
        }
    }
    let Some(index) = chosen.filter(|_| certain) else { return Ok(answer) };
    let picked = answer.from_prior_success.iter().find(|locator| locator.picked_by_user).cloned();
    let score = match answer.source {
        HealingSource::ElementMatch => matched.as_ref().map_or(0, Answer::confidence),
        HealingSource::AriaSnapshot => by_name.confidence(),
        _ => PRIOR_SCORE,
    };
    let Some(best) = recommend(&locators(&page, index), &failing.method) else { return Ok(answer) };
    let recommended = best.recommended.locator.clone();
    answer.prior_name_may_be_stale = names_differ(&failing, &elements[index]);
    let edited = |line: &str| match &picked {
        Some(picked) => rewrite_as_is(line, &failing_text, &picked.locator),
        None => rewrite(line, &failing_text, &recommended),
    };
    answer.edit = site.as_ref().and_then(|site| edit_of(site, &source, edited));
    let wanted = Finder::of_text(&recommended.written('\'')).map(|finder| finder.fingerprint());
    answer.healed_in_run_id = site
        .as_ref()
        .zip(wanted)
        .and_then(|(site, wanted)| healed_in(&rows, site, subject.run.id, fingerprint, wanted))
        .map(RunId::get);
    answer.recommendation = Some(advice(&best, score, picked));
    Ok(answer)
}

/// The page the test failed on, when it is not the one it was to be on, or when
/// the application failed on it.
async fn page_it_was_on(ctx: &Context, subject: &Subject) -> Result<Option<OtherPage>> {
    let passed = match subject.last_passed(ctx).await? {
        Some(last) => Some(last.evidence(ctx).await?),
        None => None,
    };
    let failing = &subject.evidence;
    let error = || {
        let request = new_broken_request(failing, passed?)?;
        Some(OtherPage::BrokenRequest(request_name(request), request.outcome().into_owned()))
    };
    Ok(other_page(failing, passed).or_else(error))
}

/// The failing page and the attribute that holds its test ids: from the trace's
/// document, else from the accessibility tree.
async fn failing_page(
    ctx: &Context,
    project: Authorized<ProjectId>,
    subject: &Subject,
) -> Result<Option<(Page, String)>> {
    if subject.row.traces > 0
        && let Some((document, test_id_attribute)) = failing_document(ctx, project, subject).await?
    {
        let page = inventory::page(&document.root, &test_id_attribute);
        if !page.elements().is_empty() {
            return Ok(Some((page, test_id_attribute)));
        }
    }
    let snapshot = match &subject.evidence.aria_snapshot {
        Some(snapshot) => Some(snapshot.clone()),
        None if subject.row.traces > 0 => failing_aria(ctx, project, subject).await?,
        None => None,
    };
    let page = snapshot.map(|snapshot| aria::page(&snapshot)).filter(|page| !page.elements().is_empty());
    Ok(page.map(|page| (page, DEFAULT_TEST_ID_ATTRIBUTE.to_owned())))
}

fn is_in_frame(text: &str) -> bool {
    locator::parse(text).is_some_and(|chain| chain.crosses_frames())
}

fn element_of(row: &LocatorRow, test_id_attribute: &str) -> Option<Element> {
    let captured: serde_json::Map<String, Value> = serde_json::from_str(&row.element).ok()?;
    (!captured.is_empty()).then(|| Element::from_capture(&captured, test_id_attribute))
}

/// What found the element before and finds one element now: what a person
/// chose, the locator that is stored there, and its other locators. The place
/// of the element comes with each.
fn prior_successes(
    row: &LocatorRow,
    page: &Page,
    failing: &str,
    matched: Option<&Answer>,
) -> Vec<(usize, RankedLocator)> {
    // Where the matcher is sure of another element, an old locator found a stranger.
    let contradicts = |index: usize| matched.and_then(answered).is_some_and(|best| best.index != index);
    let mut found: Vec<(usize, RankedLocator)> = Vec::new();
    let mut add = |written: &str, method: &str, args: &Value, picked: bool| {
        // Whoever sends results chose it, and it is proposed as code.
        if !locator::is_only_locator(written) {
            return;
        }
        let alone = found_by(written, page).and_then(|found| found.only());
        let Some(index) = alone.filter(|index| picked || !contradicts(*index)) else { return };
        if written == failing || found.iter().any(|(_, known)| known.locator == written) {
            return;
        }
        let args = args.as_array().cloned().unwrap_or_default();
        let locator = RankedLocator {
            locator: written.to_owned(),
            method: method.to_owned(),
            args,
            score: if picked { 100 } else { PRIOR_SCORE },
            picked_by_user: picked,
        };
        found.push((index, locator));
    };
    if let Some(picked) =
        row.picked.as_deref().and_then(|picked| serde_json::from_str::<AlternativeLocator>(picked).ok())
    {
        add(&picked.locator, &picked.method, &picked.args, true);
    }
    add(&row.raw, &row.method, &serde_json::from_str(&row.args).unwrap_or_default(), false);
    let alternatives: Vec<AlternativeLocator> = serde_json::from_str(&row.alternatives).unwrap_or_default();
    for alternative in alternatives.iter().filter(|alternative| alternative.score >= MIN_ALTERNATIVE_SCORE) {
        add(&alternative.locator, &alternative.method, &alternative.args, alternative.picked_by_user);
    }
    found
}

const fn answered(answer: &Answer) -> Option<Ranked> {
    match answer.verdict {
        Verdict::Answer(best) => Some(best),
        Verdict::Offer(_) | Verdict::Abstain => None,
    }
}

/// Locators of the element a matcher answers, or the first of each it offers.
fn listed(answer: &Answer, page: &Page) -> Vec<RankedLocator> {
    let score = answer.confidence();
    let of = |best: &Ranked, count: usize| -> Vec<RankedLocator> {
        locators(page, best.index)
            .iter()
            .take(count)
            .map(|priced| RankedLocator::from_locator(&priced.locator, score))
            .collect()
    };
    match &answer.verdict {
        Verdict::Answer(best) => of(best, MAX_LISTED),
        Verdict::Offer(offers) => offers.iter().flat_map(|offer| of(offer, 1)).collect(),
        Verdict::Abstain => Vec::new(),
    }
}

/// Whether the locator says nothing that an accessibility tree knows.
fn is_known_by_attribute_only(failing: &Finder) -> bool {
    let target = failing.target();
    target.role.is_empty() && target.name.is_empty()
}

fn names_differ(failing: &Finder, element: &Element) -> bool {
    let wanted = failing.target().name;
    !wanted.is_empty() && !element.name.to_lowercase().contains(&wanted.to_lowercase())
}

fn advice(best: &Recommendation, score: u8, picked: Option<RankedLocator>) -> HealingAdvice {
    let durable = RankedLocator::from_locator(&best.durable.locator, score);
    HealingAdvice {
        recommended: Some(
            picked.unwrap_or_else(|| RankedLocator::from_locator(&best.recommended.locator, score)),
        ),
        durable: Some(durable),
        preserves_convention: best.preserves_convention,
        has_durable_alternative: best.has_durable_alternative,
        suggest_add_test_id: best.suggest_add_test_id,
    }
}
