//! The bound on what one result may say. A page that is too long is asked for
//! again with fewer rows (by the dispatcher); anything else is shrunk here:
//! whole sections go first, as long as another one is left, then lists are
//! shortened, then long strings are cut. JSON itself is never cut, and the
//! result names what is missing.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::clean::shortened;

/// Characters of one result.
pub(crate) const RESULT_CHARS: usize = 40_000;
/// What the mark itself may take.
const MARK_CHARS: usize = 400;
/// Lengths that strings are cut to, one after the other.
const STRING_CHARS: [usize; 13] =
    [80_000, 60_000, 40_000, 30_000, 20_000, 10_000, 5_000, 2_000, 1_000, 500, 200, 100, 40];

/// What may go first when a result is too long.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sections {
    /// Sections that can be asked for one by one, the least important first:
    /// the key in the result and the word that asks for it.
    pub optional: &'static [(&'static str, &'static str)],
    /// Lists in the order of time: their end says most.
    pub chronological: &'static [&'static str],
}

impl Sections {
    /// Nothing in particular: pages, and answers that are short anyway.
    pub(crate) const NONE: Self = Self { optional: &[], chronological: &[] };
}

/// Whether a result is within bounds.
pub(crate) fn fits(text: &str, limit: usize) -> bool {
    text.len() <= limit || text.chars().count() <= limit
}

/// Shrinks an answer until its JSON fits. `tool` is the one that gives the
/// optional sections by `include`.
pub(crate) fn shrink(mut answer: Value, tool: Option<&str>, sections: Sections, limit: usize) -> Value {
    let room = limit.saturating_sub(MARK_CHARS);
    let too_long = |answer: &Value| !fits(&answer.to_string(), room);
    let mut omitted: Vec<String> = Vec::new();
    let mut hint = Vec::new();
    for (key, word) in sections.optional {
        let is_shown = |(key, _): &&(&str, &str)| answer.get(key).is_some();
        let words: BTreeSet<&str> =
            sections.optional.iter().filter(is_shown).map(|(_, word)| *word).collect();
        // The last of them was asked for by itself: leaving it out would only ask for the same again.
        if words.len() < 2 || !too_long(&answer) {
            break;
        }
        if answer.as_object_mut().and_then(|fields| fields.remove(*key)).is_some() {
            omitted.push((*key).to_owned());
            if !hint.contains(word) {
                hint.push(*word);
            }
        }
    }
    while too_long(&answer) {
        let Some((name, pointer)) = longest_list(&answer) else { break };
        let Some(Value::Array(list)) = answer.pointer_mut(&pointer) else { break };
        let whole = std::mem::take(list);
        let is_chronological = sections.chronological.contains(&name.as_str());
        let mut fits_with = |count: usize| {
            if let Some(list) = answer.pointer_mut(&pointer) {
                *list = Value::Array(part(&whole, count, is_chronological));
            }
            !too_long(&answer)
        };
        if fits_with(1) {
            let (mut fitting, mut beyond) = (1, whole.len());
            while beyond - fitting > 1 {
                let middle = fitting.midpoint(beyond);
                if fits_with(middle) { fitting = middle } else { beyond = middle }
            }
            fits_with(fitting);
        } else {
            // Others have to become shorter too.
            fits_with(whole.len() / 2);
        }
        note(&mut omitted, format!("part of {name}"));
    }
    for max_chars in STRING_CHARS {
        if !too_long(&answer) {
            break;
        }
        cut_strings(&mut answer, max_chars);
        note(&mut omitted, "part of long texts".to_owned());
    }
    let hint = match tool.filter(|_| !hint.is_empty()) {
        Some(tool) => format!("call {tool} with include={}", json!(hint)),
        None => "ask for one part of it, or for less: a smaller pageSize, fewer sections in include, one execution".to_owned(),
    };
    mark(answer, limit, &omitted, &hint)
}

/// Says in an answer that it is not whole.
pub(crate) fn mark(mut answer: Value, limit: usize, omitted: &[String], hint: &str) -> Value {
    let truncated = json!({
        "reason": format!("The result would be longer than {limit} characters."),
        "omitted": omitted,
        "hint": hint,
    });
    answer["truncated"] = truncated;
    answer
}

/// So many elements of a list: the first, or of what is in the order of time
/// the last ones, and what failed before others.
fn part(list: &[Value], count: usize, is_chronological: bool) -> Vec<Value> {
    if is_chronological { last(list, count) } else { list.iter().take(count).cloned().collect() }
}

/// So many elements of a list in the order of time: the last ones, and what
/// failed before others.
pub(crate) fn last(list: &[Value], count: usize) -> Vec<Value> {
    let kept = last_telling(list.len(), count, |at| has_failed(&list[at]));
    kept.into_iter().map(|at| list[at].clone()).collect()
}

/// Places of the last `most` of `count` entries in the order of time, in which
/// those that failed stay before others.
pub(crate) fn last_telling(count: usize, most: usize, has_failed: impl Fn(usize) -> bool) -> Vec<usize> {
    let (failed, others): (Vec<usize>, Vec<usize>) = (0..count).rev().partition(|at| has_failed(*at));
    let mut kept: Vec<usize> = failed.into_iter().chain(others).take(most).collect();
    kept.sort_unstable();
    kept
}

/// Whether an element of captured evidence tells of a failure: a step, a request
/// or an entry of the console.
fn has_failed(element: &Value) -> bool {
    let is_told = element.get("error").is_some_and(|error| !error.is_null()) || element["failed"] == true;
    let status = element["status"].as_i64();
    is_told
        || status.is_some_and(|status| status == 0 || status >= 400)
        || matches!(element["type"].as_str(), Some("error" | "pageerror"))
}

fn note(omitted: &mut Vec<String>, what: String) {
    if !omitted.contains(&what) {
        omitted.push(what);
    }
}

/// The list that takes the most room, of those that can still be shorter: its
/// name and where it is.
fn longest_list(answer: &Value) -> Option<(String, String)> {
    let mut longest: Option<(usize, String, String)> = None;
    let mut open = vec![("list".to_owned(), String::new(), answer)];
    while let Some((name, pointer, value)) = open.pop() {
        match value {
            Value::Object(fields) => {
                for (key, value) in fields {
                    let step = key.replace('~', "~0").replace('/', "~1");
                    open.push((key.clone(), format!("{pointer}/{step}"), value));
                }
            }
            Value::Array(list) => {
                if list.len() > 1 {
                    let size = value.to_string().len();
                    if longest.as_ref().is_none_or(|(known, ..)| size > *known) {
                        longest = Some((size, name.clone(), pointer.clone()));
                    }
                }
                for (index, value) in list.iter().enumerate() {
                    open.push((name.clone(), format!("{pointer}/{index}"), value));
                }
            }
            _ => {}
        }
    }
    longest.map(|(_, name, pointer)| (name, pointer))
}

fn cut_strings(value: &mut Value, max_chars: usize) {
    match value {
        Value::String(text) => {
            if let std::borrow::Cow::Owned(short) = shortened(text, max_chars) {
                *text = short;
            }
        }
        Value::Array(list) => list.iter_mut().for_each(|element| cut_strings(element, max_chars)),
        Value::Object(fields) => fields.values_mut().for_each(|field| cut_strings(field, max_chars)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECTIONS: Sections = Sections {
        optional: &[("console", "console"), ("stdout", "console"), ("steps", "steps")],
        chronological: &["steps"],
    };

    #[test]
    fn sections_go_before_lists_and_lists_before_text() {
        let steps: Vec<String> = (0..300).map(|step| format!("step {step}")).collect();
        let answer = json!({"error": "x".repeat(500), "console": ["y".repeat(2000)], "steps": steps});
        let shrunk = shrink(answer, Some("get_test_run_case"), SECTIONS, 3000);
        assert!(shrunk.get("console").is_none());
        assert_eq!(shrunk["error"].as_str().unwrap().len(), 500);
        let kept = shrunk["steps"].as_array().unwrap();
        assert_eq!(kept.last().unwrap(), "step 299");
        assert_eq!(
            shrunk["truncated"],
            json!({
                "reason": "The result would be longer than 3000 characters.",
                "omitted": ["console", "part of steps"],
                "hint": "call get_test_run_case with include=[\"console\"]",
            })
        );
    }

    #[test]
    fn the_only_section_asked_for_is_kept_in_part() {
        let shrunk = shrink(json!({"console": vec!["y".repeat(100); 200]}), Some("t"), SECTIONS, 3000);
        assert!(!shrunk["console"].as_array().unwrap().is_empty());
        assert_eq!(shrunk["truncated"]["omitted"], json!(["part of console"]));
        let both = json!({"console": vec!["y".repeat(100); 200], "stdout": "one line"});
        let shrunk = shrink(both, Some("t"), SECTIONS, 3000);
        assert_eq!(shrunk["console"].as_array().unwrap().len(), 24, "as many as fit");
        assert_eq!(shrunk["stdout"], "one line");
        let hint = shrunk["truncated"]["hint"].as_str().unwrap();
        assert!(hint.starts_with("ask for one part"), "{hint}");
    }

    #[test]
    fn what_failed_stays_before_what_came_last() {
        let step = |number: usize| match number {
            7 => json!({"title": "step 7", "error": "gone"}),
            _ => json!({"title": format!("step {number}"), "error": null}),
        };
        let steps: Vec<Value> = (0..300).map(step).collect();
        let shrunk = shrink(json!({"steps": steps}), Some("t"), SECTIONS, 2000);
        let kept = shrunk["steps"].as_array().unwrap();
        assert_eq!(
            (&kept[0]["title"], &kept[kept.len() - 1]["title"]),
            (&json!("step 7"), &json!("step 299"))
        );
        assert!(kept.len() > 20, "{} steps", kept.len());
        for failed in [
            json!({"title": "step", "failed": true}),
            json!({"url": "/pay", "status": 503}),
            json!({"url": "/pay", "status": 0}),
            json!({"type": "pageerror", "text": "boom"}),
        ] {
            let fine = json!({"type": "log", "status": 200});
            assert_eq!(last(&[failed.clone(), fine.clone(), fine.clone()], 2), [failed, fine]);
        }
    }

    fn tree() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<i64>().prop_map(Value::from), "\\PC{0,400}".prop_map(Value::from)];
        leaf.prop_recursive(3, 200, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..12).prop_map(Value::from),
                prop::collection::btree_map("[a-z/~]{1,8}", inner, 0..3).prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn whatever_the_answer_the_result_fits(items in prop::collection::vec(tree(), 0..16), text in "\\PC{0,3000}") {
            let shrunk = shrink(json!({"items": items, "text": text}), Some("t"), Sections::NONE, 4000);
            prop_assert!(fits(&shrunk.to_string(), 4000), "{} characters", shrunk.to_string().chars().count());
        }
    }
}
