//! What templates may do with a value: `{{ run.duration|duration }}`. Askama
//! looks filters up in the module of this name. Anything that is HTML says so
//! by its type; everything else is escaped.

use askama::filters::HtmlSafeOutput;
use askama::{Result, Values};
use callboard_auth::{KeyPermission, Role};
use callboard_domain::time::{Day, Timestamp};
use callboard_query::shapes::ExecutionItem;

use crate::assets::Asset;
use crate::components::{Badge, Mark, PathText, Tries};
use crate::outcome::Toned;
use crate::text::{self, AnsiHtml, InlineCode};

/// `1.3 s`.
#[askama::filter_fn]
pub(crate) fn duration(ms: &i64, _: &dyn Values) -> Result<String> {
    Ok(text::duration(*ms))
}

/// `3 d 4 h`: how long something lasted that took days.
#[askama::filter_fn]
pub(crate) fn long_duration(ms: &i64, _: &dyn Values) -> Result<String> {
    Ok(text::long_duration(*ms))
}

/// `3.1 MB`.
#[askama::filter_fn]
pub(crate) fn size(bytes: &i64, _: &dyn Values) -> Result<String> {
    Ok(text::size(*bytes))
}

/// `12 345`.
#[askama::filter_fn]
pub(crate) fn grouped(number: &i64, _: &dyn Values) -> Result<String> {
    Ok(text::grouped(*number))
}

/// `98.5%`.
#[askama::filter_fn]
pub(crate) fn percent(rate: &f64, _: &dyn Values) -> Result<String> {
    Ok(text::percent(*rate))
}

/// `98.5%`, `100.0%`: as one of a column.
#[askama::filter_fn]
pub(crate) fn column_percent(rate: &f64, _: &dyn Values) -> Result<String> {
    Ok(text::column_percent(*rate))
}

/// `1 run`, `3 runs`: the noun in its number, with the number.
#[askama::filter_fn]
pub(crate) fn counted(number: &i64, _: &dyn Values, noun: &str) -> Result<String> {
    let plural = if *number == 1 { "" } else { "s" };
    Ok(format!("{}\u{a0}{noun}{plural}", text::grouped(*number)))
}

/// How many of some runs have kept their details, behind their number: `, details
/// kept for 18`. Nothing when all of them have.
#[askama::filter_fn]
pub(crate) fn details_kept(total: &i64, _: &dyn Values, kept: &i64) -> Result<String> {
    let are_all = kept >= total;
    Ok(if are_all { String::new() } else { format!(", details kept for {}", text::grouped(*kept)) })
}

/// [`details_kept`] on a line of its own below a number in a column.
#[askama::filter_fn]
pub(crate) fn details_kept_below(total: &i64, _: &dyn Values, kept: &i64) -> Result<HtmlSafeOutput<String>> {
    let are_all = kept >= total;
    let kept = text::grouped(*kept);
    let line = format!("<span class=\"sub\">details kept for {kept}</span>");
    Ok(HtmlSafeOutput(if are_all { String::new() } else { line }))
}

/// A moment, relative, with the exact one on hover.
#[askama::filter_fn]
pub(crate) fn ago(at: &Timestamp, _: &dyn Values, now: &Timestamp) -> Result<HtmlSafeOutput<String>> {
    let (iso, exact, relative) = (at.to_iso(), text::date_and_time(*at), text::relative(*at, *now));
    Ok(HtmlSafeOutput(format!("<time datetime=\"{iso}\" title=\"{exact}\">{relative}</time>")))
}

/// How long it has been since a moment, with the exact one on hover.
#[askama::filter_fn]
pub(crate) fn lasting(at: &Timestamp, _: &dyn Values, now: &Timestamp) -> Result<HtmlSafeOutput<String>> {
    let (iso, exact, passed) = (at.to_iso(), text::date_and_time(*at), text::lasting(*at, *now));
    Ok(HtmlSafeOutput(format!("<time datetime=\"{iso}\" title=\"{exact}\">{passed}</time>")))
}

/// A moment, relative, with the exact one on hover; the start of a day stands
/// for the day, of which no more is known.
#[askama::filter_fn]
pub(crate) fn ago_or_day(at: &Timestamp, _: &dyn Values, now: &Timestamp) -> Result<HtmlSafeOutput<String>> {
    let day = at.day();
    let (datetime, exact, relative) = if *at == day.start() {
        (day.to_iso(), text::date_of(*at), text::days_ago(day, now.day()))
    } else {
        (at.to_iso(), text::date_and_time(*at), text::relative(*at, *now))
    };
    Ok(HtmlSafeOutput(format!("<time datetime=\"{datetime}\" title=\"{exact}\">{relative}</time>")))
}

/// How long until a moment: `in 12 d`.
#[askama::filter_fn]
pub(crate) fn ahead(at: &Timestamp, _: &dyn Values, now: &Timestamp) -> Result<String> {
    Ok(text::ahead(*at, *now))
}

/// A moment, exactly.
#[askama::filter_fn]
pub(crate) fn exact(at: &Timestamp, _: &dyn Values) -> Result<String> {
    Ok(text::date_and_time(*at))
}

/// A day, `Fri 20 Nov`.
#[askama::filter_fn]
pub(crate) fn day(day: &Day, _: &dyn Values) -> Result<String> {
    Ok(text::day_of(*day))
}

/// A day as the number it has in its month.
#[askama::filter_fn]
pub(crate) fn day_of_month(day: &Day, _: &dyn Values) -> Result<String> {
    Ok(text::day_of_month(*day))
}

/// A path whose folder shrinks where there is no room.
#[askama::filter_fn]
pub(crate) fn path<'p>(path: &'p str, _: &dyn Values) -> Result<PathText<'p>> {
    Ok(PathText::new(path))
}

/// Terminal text with its colours.
#[askama::filter_fn]
pub(crate) fn ansi<'t>(text: &'t str, _: &dyn Values) -> Result<AnsiHtml<'t>> {
    Ok(AnsiHtml(text))
}

/// A sentence in which backticks mark code.
#[askama::filter_fn]
pub(crate) fn inline_code<'t>(text: &'t str, _: &dyn Values) -> Result<InlineCode<'t>> {
    Ok(InlineCode(text))
}

/// An icon of `assets/icons.svg`; decoration, so nothing is read out.
#[askama::filter_fn]
pub(crate) fn icon(name: &str, _: &dyn Values) -> Result<HtmlSafeOutput<String>> {
    let icons = Asset::Icons.url();
    Ok(HtmlSafeOutput(format!(
        "<svg class=\"icon\" aria-hidden=\"true\"><use href=\"{icons}#{name}\"/></svg>"
    )))
}

/// The glyph of a result; its word is read out.
#[askama::filter_fn]
pub(crate) fn mark<T: Toned + ?Sized>(result: &T, _: &dyn Values) -> Result<Mark> {
    Ok(Mark::from_result(result))
}

/// The glyph and the word of a result.
#[askama::filter_fn]
pub(crate) fn badge<T: Toned + ?Sized>(result: &T, _: &dyn Values) -> Result<Badge> {
    Ok(Badge::from_result(result))
}

/// The attempts of an execution as chips.
#[askama::filter_fn]
pub(crate) fn tries<'i>(item: &'i ExecutionItem, _: &dyn Values) -> Result<Tries<'i>> {
    Ok(Tries::from_item(item))
}

/// The day of a moment, with the exact one on hover.
#[askama::filter_fn]
pub(crate) fn date(at: &Timestamp, _: &dyn Values) -> Result<HtmlSafeOutput<String>> {
    let (iso, exact, date) = (at.to_iso(), text::date_and_time(*at), text::date_of(*at));
    Ok(HtmlSafeOutput(format!("<time datetime=\"{iso}\" title=\"{exact}\">{date}</time>")))
}

/// What a role may do.
#[askama::filter_fn]
pub(crate) fn role_means(role: &Role, _: &dyn Values) -> Result<&'static str> {
    Ok(text::role_means(*role))
}

/// A role as people read it, from its spelling in answers.
#[askama::filter_fn]
pub(crate) fn role_word(role: &str, _: &dyn Values) -> Result<String> {
    Ok(Role::parse(role).map_or_else(|| role.to_owned(), |role| text::role(role).to_owned()))
}

/// What a key may be used for, as people read it.
#[askama::filter_fn]
pub(crate) fn permission(permission: &KeyPermission, _: &dyn Values) -> Result<&'static str> {
    Ok(text::permission(*permission))
}

/// A role as people read it.
#[askama::filter_fn]
pub(crate) fn role(role: &Role, _: &dyn Values) -> Result<&'static str> {
    Ok(text::role(*role))
}

/// The first seven digits of a commit.
#[askama::filter_fn]
pub(crate) fn short_commit(commit: &str, _: &dyn Values) -> Result<String> {
    Ok(text::short_commit(commit))
}

/// A text as the value of a parameter of an address.
#[askama::filter_fn]
pub(crate) fn parameter(value: &str, _: &dyn Values) -> Result<String> {
    Ok(crate::address::encoded(value))
}

/// The page of what an owner of tests has to look at in a project.
#[askama::filter_fn]
pub(crate) fn owner_page(owner: &str, _: &dyn Values, project: &i64) -> Result<String> {
    Ok(format!("/projects/{project}?tab=owners&owner={}", crate::address::encoded(owner)))
}

#[cfg(test)]
mod tests {
    use askama::Template;

    use super::*;
    use crate::filters;

    #[derive(Template)]
    #[template(ext = "html", source = "{{ at|ago_or_day(now) }}")]
    struct When {
        at: Timestamp,
        now: Timestamp,
    }

    #[test]
    fn of_the_start_of_a_day_no_hour_is_told() {
        let at = |text: &str| Timestamp::parse_iso(text).unwrap();
        let when = |text: &str| {
            let when = When { at: at(text), now: at("2026-11-20T12:00:00Z") };
            when.to_string().replace('\u{a0}', " ")
        };
        let day = "<time datetime=\"2026-11-18\" title=\"18 Nov 2026\">2 d ago</time>";
        assert_eq!(when("2026-11-18T00:00:00Z"), day);
        assert!(when("2026-11-18T00:00:01Z").contains("title=\"18 Nov 2026, 00:00:01 UTC\""));
        assert!(when("2026-11-20T00:00:00Z").contains(">today<"));
    }
}
