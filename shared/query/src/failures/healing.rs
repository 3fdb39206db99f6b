//! A locator that works instead of one that finds nothing: from what a person
//! chose, from what the test and others found before, and from the failing
//! page itself.
//!
//! A source counts only when its candidate is on the failing page, exactly
//! once. Where nothing is certain, nothing is recommended.

use callboard_auth::scope::Authorized;
use callboard_domain::failure::Kind;
use callboard_domain::healing::rewrite::{Lines, numbered_lines, rewrite, rewrite_as_is, unified_diff};
use callboard_domain::healing::{
    Answer, Element, Finder, Locator, Ranked, Recommendation, Verdict, aria, chain_in_error, found_by, heal,
    inventory, locators, recommend,
};
use callboard_domain::ids::{ExecutionId, ProjectId, RunId};
use callboard_domain::ingest::{AlternativeLocator, Location};
use callboard_domain::locator;
use callboard_domain::time::Timestamp;
use callboard_store::locators::{self as stored, LocatorRow};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::subject::Subject;
use super::trace::{failing_aria, failing_document};
use crate::{Context, Result};

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
const DEFAULT_TEST_ID_ATTRIBUTE: &str = "data-testid";

/// A locator as a call.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct LostLocator {
    /// Method.
    #[schema(example = "getByRole")]
    pub method: String,
    /// Arguments.
    #[schema(value_type = Vec<Value>)]
    pub args: Vec<Value>,
}

/// A locator that may be used instead.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RankedLocator {
    /// As it is written.
    #[schema(example = "getByRole('button', { name: 'Sign in' })")]
    pub locator: String,
    /// Method that finds the element.
    #[schema(example = "getByRole")]
    pub method: String,
    /// Its arguments.
    #[schema(value_type = Vec<Value>)]
    pub args: Vec<Value>,
    /// How likely it is the right one, 0 to 100.
    pub score: u8,
    /// Whether a person chose it.
    pub picked_by_user: bool,
}

impl RankedLocator {
    fn of(locator: &Locator, score: u8) -> Self {
        Self {
            locator: locator.written('\''),
            method: locator.method().to_owned(),
            args: locator.args().to_vec(),
            score,
            picked_by_user: false,
        }
    }
}

/// What to use.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealingAdvice {
    /// What to write; null when nothing is certain enough.
    pub recommended: Option<RankedLocator>,
    /// What will hold longest.
    pub durable: Option<RankedLocator>,
    /// Whether the recommended one is of the kind the test uses.
    pub preserves_convention: bool,
    /// Whether the most durable one is another one.
    pub has_durable_alternative: bool,
    /// Whether the element should get a test id: nothing good finds it.
    pub suggest_add_test_id: bool,
}

/// A line of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct HealedLine {
    /// Number.
    pub line: u32,
    /// Text.
    pub text: String,
}

/// The change of the test.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct HealingEdit {
    /// File.
    pub file_path: String,
    /// Line.
    pub line: u32,
    /// The line as it was when the test failed.
    pub old_line: String,
    /// The line with the recommended locator.
    pub new_line: String,
    /// Both as a unified diff with the lines around them.
    pub unified_diff: String,
}

/// Where a healed locator comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HealingSource {
    /// The same call in an earlier run, or what a person chose for it.
    PriorRun,
    /// The element it found, looked for on the failing page.
    ElementMatch,
    /// The same locator elsewhere in the test.
    Fingerprint,
    /// The same locator in another test.
    CrossTest,
    /// Roles and names of the failing page.
    AriaSnapshot,
    /// Nothing is known.
    None,
}

/// A lost locator and what may replace it.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LocatorHealing {
    /// The locator that failed.
    pub failing_locator: Option<LostLocator>,
    /// Where the answer comes from.
    pub source: HealingSource,
    /// What to use.
    pub recommendation: Option<HealingAdvice>,
    /// What found the element before and finds one now.
    pub from_prior_success: Vec<RankedLocator>,
    /// Of the element the locator found before.
    pub from_element_match: Vec<RankedLocator>,
    /// Of the element that role and name fit.
    pub from_aria_snapshot: Vec<RankedLocator>,
    /// When the element was last found.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub captured_at: Option<Timestamp>,
    /// Whether the name the test looks for may be an old one.
    pub prior_name_may_be_stale: bool,
    /// Where the locator is used: `file:line:column`.
    pub location: Option<String>,
    /// That line.
    pub source_line: Option<HealedLine>,
    /// A later run in which the recommended locator passed there.
    pub healed_in_run_id: Option<i64>,
    /// The change of the test.
    pub edit: Option<HealingEdit>,
    /// The failing locator as it is written.
    #[serde(skip)]
    pub(crate) failing_text: Option<String>,
    /// Margin of the matcher's answer, when it gave one.
    #[serde(skip)]
    pub(crate) margin: Option<f64>,
}

impl LocatorHealing {
    const fn nothing() -> Self {
        Self {
            failing_locator: None,
            source: HealingSource::None,
            recommendation: None,
            from_prior_success: Vec::new(),
            from_element_match: Vec::new(),
            from_aria_snapshot: Vec::new(),
            captured_at: None,
            prior_name_may_be_stale: false,
            location: None,
            source_line: None,
            healed_in_run_id: None,
            edit: None,
            failing_text: None,
            margin: None,
        }
    }

    /// The failing locator as it is written.
    #[must_use]
    pub fn failing_text(&self) -> Option<&str> {
        self.failing_text.as_deref()
    }

    /// The recommended locator.
    #[must_use]
    pub fn recommended(&self) -> Option<&RankedLocator> {
        self.recommendation.as_ref()?.recommended.as_ref()
    }
}

/// The locator to use instead of the one that failed. Nothing known is
/// `source: none`, not an error.
///
/// # Errors
/// [`crate::QueryError::NotFound`], [`crate::QueryError::Store`].
pub async fn locator_healing(
    ctx: &Context,
    project: Authorized<ProjectId>,
    id: ExecutionId,
) -> Result<LocatorHealing> {
    let subject = Subject::read(ctx, project, id).await?;
    of_subject(ctx, project, &subject).await
}

/// Where the failing call stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Site {
    /// Path as the client of this run would write it.
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) column: Option<u32>,
}

impl Site {
    /// From the stack of the error, else from the step that failed, else from
    /// the stored source.
    pub(super) fn of(subject: &Subject) -> Option<Self> {
        let frame = subject.evidence.test_source_frames.first();
        let error = subject.error().unwrap_or_default();
        let step = subject.evidence.steps.iter().rev().find(|step| step.failed && step.location.is_some());
        let from_step = step.and_then(|step| step.location.clone());
        let from_stack = error.lines().find_map(|line| {
            let place = line.trim().strip_prefix("at ")?;
            let place = place.rsplit_once('(').map_or(place, |(_, place)| place).trim_end_matches(')');
            (!place.contains("node_modules") && place.contains(':')).then(|| place.to_owned())
        });
        let parsed = from_stack.or(from_step).map(|place| Location::parse(&place));
        let place = parsed.filter(|place| place.line.is_some_and(|line| line > 0));
        match (frame, place) {
            (Some(frame), Some(place)) if is_same_file(&place.path, &frame.file) => {
                Some(Self { file: frame.file.clone(), line: place.line?, column: place.column })
            }
            (Some(frame), _) => {
                Some(Self { file: frame.file.clone(), line: u32::try_from(frame.line?).ok()?, column: None })
            }
            (None, Some(place)) if is_same_file(&place.path, &subject.case.file_path) => {
                Some(Self { file: subject.case.file_path.clone(), line: place.line?, column: place.column })
            }
            (None, Some(place)) => Some(Self { file: place.path, line: place.line?, column: place.column }),
            (None, None) => None,
        }
    }

    pub(super) fn written(&self) -> String {
        match self.column {
            Some(column) => format!("{}:{}:{column}", self.file, self.line),
            None => format!("{}:{}", self.file, self.line),
        }
    }

    /// How well a stored call site fits: its column too, or its line only.
    fn fits(&self, location: &str) -> Option<bool> {
        let place = Location::parse(location);
        let is_here = is_same_file(&place.path, &self.file) && place.line == Some(self.line);
        is_here.then(|| place.column == self.column)
    }
}

/// Whether one path names the same file as another that is relative to some
/// folder of it.
fn is_same_file(one: &str, other: &str) -> bool {
    let (long, short) = if one.len() >= other.len() { (one, other) } else { (other, one) };
    !short.is_empty() && (long == short || long.ends_with(&format!("/{short}")))
}

/// The call site at which the failing locator was stored before, or, when a
/// later run used another one on that line, the locator that came after it.
pub(super) fn row_at<'r>(
    rows: &'r [LocatorRow],
    site: &Site,
    failing: [u8; 32],
    failed_in: RunId,
) -> Option<&'r LocatorRow> {
    let at = |exact: bool| rows.iter().filter(move |row| site.fits(&row.location) == Some(exact));
    let is_known = |row: &&LocatorRow| row.args_fp == failing || row.since_run > failed_in;
    at(true).next().or_else(|| at(false).find(is_known))
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
    let site = Site::of(subject);
    answer.location = site.as_ref().map(Site::written);
    let lines = site.as_ref().map(|site| source_around(subject, site)).unwrap_or_default();
    answer.source_line = site.as_ref().and_then(|site| {
        let text = lines.iter().find(|(number, _)| *number == site.line)?.1.clone();
        Some(HealedLine { line: site.line, text })
    });
    // An element that is there, and covered or disabled, is no matter of its locator.
    if signature.reason != "not-found" && signature.kind != Kind::Strict {
        return Ok(answer);
    }
    let Some(page) = Page::of(ctx, project, subject).await? else { return Ok(answer) };
    if signature.kind != Kind::Strict && page.has(&failing_text) {
        return Ok(answer);
    }

    let mut session = ctx.store.db().read().await?;
    let rows = stored::of_case(&mut session, project.get(), subject.case.id).await?;
    let fingerprint = failing.fingerprint();
    let here = site.as_ref().and_then(|site| row_at(&rows, site, fingerprint, subject.run.id));
    let same = rows.iter().find(|row| row.args_fp == fingerprint);
    let elsewhere = match here.or(same) {
        None => stored::elsewhere(&mut session, project.get(), fingerprint, subject.case.id).await?,
        Some(_) => Vec::new(),
    };
    drop(session);
    let known = here.or(same).or(elsewhere.first());
    answer.captured_at = known.map(|row| row.last_seen_at);

    let before: Vec<Element> =
        rows.iter().filter_map(|row| element_of(row, &page.test_id_attribute)).collect();
    let element = known.and_then(|row| element_of(row, &page.test_id_attribute));
    let matched = element.as_ref().map(|element| heal(element, &before, &page.elements));
    // Without a stored element there is what the locator itself says.
    let by_name = heal(&failing.target(), &before, &page.elements);

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
        answer.from_element_match = listed(matched, &page.elements);
        if chosen.is_none() && !answer.from_element_match.is_empty() {
            answer.source = HealingSource::ElementMatch;
            if let Verdict::Answer(best) = matched.verdict {
                (chosen, certain) = (Some(best.index), true);
                answer.margin = Some(matched.margin);
            }
        }
    }
    if !is_known_by_attribute_only(&failing) {
        answer.from_aria_snapshot = listed(&by_name, &page.elements);
    }
    if answer.source == HealingSource::None && !answer.from_aria_snapshot.is_empty() {
        answer.source = HealingSource::AriaSnapshot;
        if let (Verdict::Answer(best), true) = (&by_name.verdict, by_name.margin >= MIN_ARIA_MARGIN) {
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
    let Some(best) = recommend(&locators(&page.elements, index), &failing.method) else { return Ok(answer) };
    let recommended = best.recommended.locator.clone();
    answer.prior_name_may_be_stale = names_differ(&failing, &page.elements[index]);
    let edited = |line: &str| match &picked {
        Some(picked) => rewrite_as_is(line, &failing_text, &picked.locator),
        None => rewrite(line, &failing_text, &recommended),
    };
    answer.edit = site.as_ref().and_then(|site| edit_of(site, &lines, edited));
    answer.healed_in_run_id = healed_in(&rows, subject, site.as_ref(), &recommended);
    answer.recommendation = Some(advice(&best, score, picked));
    Ok(answer)
}

/// The elements of the failing page.
struct Page {
    elements: Vec<Element>,
    test_id_attribute: String,
}

impl Page {
    /// From the trace's document, else from the accessibility tree.
    async fn of(ctx: &Context, project: Authorized<ProjectId>, subject: &Subject) -> Result<Option<Self>> {
        let attempt = subject.attempt.0;
        if subject.row.traces > 0
            && let Some((document, test_id_attribute)) =
                failing_document(ctx, project, subject.row.id, attempt).await?
        {
            let elements = inventory::elements(&document.root, &test_id_attribute);
            if !elements.is_empty() {
                return Ok(Some(Self { elements, test_id_attribute }));
            }
        }
        let snapshot = match &subject.evidence.aria_snapshot {
            Some(snapshot) => Some(snapshot.clone()),
            None if subject.row.traces > 0 => failing_aria(ctx, project, subject.row.id, attempt).await?,
            None => None,
        };
        let elements = snapshot.map(|snapshot| aria::elements(&snapshot)).unwrap_or_default();
        let test_id_attribute = DEFAULT_TEST_ID_ATTRIBUTE.to_owned();
        Ok((!elements.is_empty()).then_some(Self { elements, test_id_attribute }))
    }

    /// The one element a locator finds here.
    fn only(&self, text: &str) -> Option<usize> {
        let chain = locator::parse(text)?;
        match found_by(&chain, &self.elements)?.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    fn has(&self, text: &str) -> bool {
        let found = locator::parse(text).and_then(|chain| found_by(&chain, &self.elements));
        found.is_some_and(|found| !found.is_empty())
    }
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
    let contradicts = |index: usize| {
        matched.is_some_and(|matched| matches!(matched.verdict, Verdict::Answer(best) if best.index != index))
    };
    let mut found: Vec<(usize, RankedLocator)> = Vec::new();
    let mut add = |written: &str, method: &str, args: &Value, picked: bool| {
        let Some(index) = page.only(written).filter(|index| picked || !contradicts(*index)) else { return };
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

/// Locators of the element a matcher answers, or the first of each it offers.
fn listed(answer: &Answer, page: &[Element]) -> Vec<RankedLocator> {
    let score = answer.confidence();
    let of = |best: &Ranked, count: usize| -> Vec<RankedLocator> {
        locators(page, best.index)
            .iter()
            .take(count)
            .map(|priced| RankedLocator::of(&priced.locator, score))
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
    let durable = RankedLocator::of(&best.durable.locator, score);
    HealingAdvice {
        recommended: Some(picked.unwrap_or_else(|| RankedLocator::of(&best.recommended.locator, score))),
        durable: Some(durable),
        preserves_convention: best.preserves_convention,
        has_durable_alternative: best.has_durable_alternative,
        suggest_add_test_id: best.suggest_add_test_id,
    }
}

/// Known lines around a place, in order.
fn source_around(subject: &Subject, site: &Site) -> Vec<(u32, String)> {
    let frames = subject.evidence.test_source_frames.iter();
    let mut pieces: Vec<&str> = frames
        .filter(|frame| is_same_file(&frame.file, &site.file))
        .map(|frame| frame.snippet.as_str())
        .collect();
    if is_same_file(&subject.case.file_path, &site.file) {
        pieces.extend(subject.evidence.test_source.as_deref());
    }
    let lines = pieces.into_iter().map(numbered_lines);
    let around = lines.filter(|lines| lines.iter().any(|(number, _)| *number == site.line));
    around
        .max_by_key(Vec::len)
        .unwrap_or_default()
        .into_iter()
        .map(|(number, text)| (number, text.trim_end_matches('\r').to_owned()))
        .collect()
}

fn edit_of(
    site: &Site,
    lines: &[(u32, String)],
    edited: impl FnOnce(&str) -> Option<String>,
) -> Option<HealingEdit> {
    let at = lines.iter().position(|(number, _)| *number == site.line)?;
    let old = &lines[at].1;
    let new = edited(old)?;
    let is_next = |(one, other): (&(u32, String), &(u32, String))| one.0 + 1 == other.0;
    // Only lines without a gap in between are context.
    let before = (0..at).rev().take_while(|&index| is_next((&lines[index], &lines[index + 1]))).count();
    let after =
        (at + 1..lines.len()).take_while(|&index| is_next((&lines[index - 1], &lines[index]))).count();
    let texts = |range: std::ops::Range<usize>| -> Vec<&str> {
        lines[range].iter().map(|(_, text)| text.as_str()).collect()
    };
    let (before, after) = (texts(at - before..at), texts(at + 1..at + 1 + after));
    let place = Lines { path: &site.file, line: site.line, before: &before, after: &after };
    Some(HealingEdit {
        file_path: site.file.clone(),
        line: site.line,
        old_line: old.clone(),
        unified_diff: unified_diff(place, old, &new)?,
        new_line: new,
    })
}

/// The run after this one in which the recommended locator was first seen to
/// work in the same file.
fn healed_in(
    rows: &[LocatorRow],
    subject: &Subject,
    site: Option<&Site>,
    recommended: &Locator,
) -> Option<i64> {
    let site = site?;
    let wanted = Finder::of_text(&recommended.written('\''))?.fingerprint();
    let healed = rows.iter().filter(|row| {
        row.args_fp == wanted
            && row.since_run > subject.run.id
            && is_same_file(&Location::parse(&row.location).path, &site.file)
    });
    healed.map(|row| row.since_run.get()).min()
}
