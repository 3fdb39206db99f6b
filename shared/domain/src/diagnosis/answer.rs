//! A model's answer: the schema it is asked for, and how it is read.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::words::{Category, Confidence, Severity};
use crate::text::{cut, strip_ansi};

const MAX_SUMMARY_CHARS: usize = 500;
const MAX_TEXT_CHARS: usize = 6_000;
const MAX_ITEM_CHARS: usize = 1_000;
const MAX_PATCH_CHARS: usize = 40_000;
const MAX_ITEMS: usize = 10;
const MAX_HYPOTHESES: usize = 5;
/// What an evidence id that was not given costs.
const UNKNOWN_EVIDENCE_COST: u8 = 20;

/// Why an answer cannot be used. The text goes back to the model once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// There is no JSON object in it.
    #[error("the answer holds no JSON object")]
    NoObject,
    /// The JSON is cut off or broken.
    #[error("the answer is not valid JSON")]
    Broken,
    /// A field is missing or has another type.
    #[error("the field {0} is missing or has the wrong type")]
    Field(&'static str),
}

/// What a statement rests on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EvidenceRef {
    /// Id of a section of the prompt.
    pub section: String,
    /// What stands there, in the model's words.
    pub quote: String,
}

/// Another possible cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hypothesis {
    /// Category.
    pub category: Category,
    /// The cause.
    pub root_cause: String,
    /// 0 to 100.
    pub likelihood: u8,
    /// Ids of sections.
    pub evidence: Vec<String>,
}

/// A change that may repair the cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedFix {
    /// What to do.
    pub description: String,
    /// The file it concerns.
    pub file: Option<String>,
    /// The code afterwards.
    pub code: Option<String>,
    /// The change as a unified diff.
    pub patch: Option<String>,
}

/// An answer that was read, cleaned and bounded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelAnswer {
    /// Category of the cause.
    pub category: Category,
    /// 0 to 100, lowered for evidence that was never given.
    pub confidence_score: u8,
    /// Severity.
    pub severity: Severity,
    /// The part of the application.
    pub affected_area: Option<String>,
    /// One sentence.
    pub summary: String,
    /// The cause.
    pub root_cause: String,
    /// What the cause rests on.
    pub evidence: Vec<EvidenceRef>,
    /// Other possible causes.
    pub hypotheses: Vec<Hypothesis>,
    /// A change that may repair it.
    pub suggested_fix: Option<SuggestedFix>,
    /// How to find out more.
    pub investigation_steps: Vec<String>,
    /// How to keep it from coming back.
    pub prevention_tips: Vec<String>,
    /// Sections the model named that were not in the prompt.
    #[serde(default)]
    pub unknown_evidence: Vec<String>,
}

impl ModelAnswer {
    /// The word for the score.
    #[must_use]
    pub const fn confidence(&self) -> Confidence {
        Confidence::from_score(self.confidence_score)
    }
}

/// The JSON schema of an answer, in the subset that strict modes of endpoints
/// accept: every property is required, optional ones may be null.
#[must_use]
pub fn answer_schema() -> Value {
    let object = |properties: Value| {
        let required: Vec<&String> =
            properties.as_object().map(|all| all.keys().collect()).unwrap_or_default();
        json!({ "type": "object", "required": required, "properties": properties, "additionalProperties": false })
    };
    let list = |items: Value| json!({ "type": "array", "items": items });
    let text = || json!({ "type": "string" });
    let optional = || json!({ "type": ["string", "null"] });
    let category = || json!({ "type": "string", "enum": Category::WORDS });
    let mut fix = object(json!({
        "description": text(), "file": optional(), "code": optional(), "patch": optional(),
    }));
    fix["type"] = json!(["object", "null"]);
    object(json!({
        "category": category(),
        "confidenceScore": { "type": "integer" },
        "severity": { "type": "string", "enum": Severity::WORDS },
        "affectedArea": optional(),
        "summary": text(),
        "rootCause": text(),
        "evidence": list(object(json!({ "section": text(), "quote": text() }))),
        "hypotheses": list(object(json!({
            "category": category(), "rootCause": text(), "likelihood": { "type": "integer" }, "evidence": list(text()),
        }))),
        "suggestedFix": fix,
        "investigationSteps": list(text()),
        "preventionTips": list(text()),
    }))
}

/// Reads an answer. `sections` are the ids that the prompt held: evidence with
/// another id is dropped, and the confidence lowered for each.
///
/// # Errors
/// [`AnswerError`].
pub fn parse_answer(text: &str, sections: &[&str]) -> Result<ModelAnswer, AnswerError> {
    let value = json_object(text)?;
    let mut unknown = Vec::new();
    let mut known = |id: &str| {
        let is_known = sections.contains(&id);
        if !is_known && !unknown.iter().any(|other| other == id) && unknown.len() < MAX_ITEMS {
            unknown.push(cut(plain(id), 60));
        }
        is_known
    };
    let summary = required(&value, "summary", MAX_SUMMARY_CHARS)?;
    let root_cause = required(&value, "rootCause", MAX_TEXT_CHARS)?;
    let category = value["category"].as_str().and_then(Category::parse);
    let category = category.ok_or(AnswerError::Field("category"))?;
    let mut score = score(&value["confidenceScore"]).ok_or(AnswerError::Field("confidenceScore"))?;
    let evidence = items(&value["evidence"], MAX_ITEMS).filter_map(|item| {
        // Some models give ids alone, whatever the schema says.
        let section = item["section"].as_str().or_else(|| item.as_str())?;
        let quote = item["quote"].as_str().unwrap_or_default();
        known(section)
            .then(|| EvidenceRef { section: section.to_owned(), quote: cut(prose(quote), MAX_ITEM_CHARS) })
    });
    let evidence: Vec<EvidenceRef> = evidence.collect();
    let hypotheses = items(&value["hypotheses"], MAX_HYPOTHESES).filter_map(|item| {
        let root_cause = optional(item, "rootCause", MAX_TEXT_CHARS)?;
        let ids = items(&item["evidence"], MAX_ITEMS).filter_map(Value::as_str);
        Some(Hypothesis {
            category: item["category"].as_str().and_then(Category::parse).unwrap_or(Category::Unknown),
            root_cause,
            likelihood: self::score(&item["likelihood"]).unwrap_or(0),
            evidence: ids.filter(|id| known(id)).map(str::to_owned).collect(),
        })
    });
    let hypotheses: Vec<Hypothesis> = hypotheses.collect();
    let cost = u8::try_from(unknown.len()).unwrap_or(u8::MAX).saturating_mul(UNKNOWN_EVIDENCE_COST);
    score = score.saturating_sub(cost);
    Ok(ModelAnswer {
        category,
        confidence_score: score,
        severity: value["severity"].as_str().and_then(Severity::parse).unwrap_or(Severity::Medium),
        affected_area: optional(&value, "affectedArea", MAX_ITEM_CHARS),
        summary,
        root_cause,
        evidence,
        hypotheses,
        suggested_fix: fix(&value["suggestedFix"]),
        investigation_steps: texts(&value["investigationSteps"]),
        prevention_tips: texts(&value["preventionTips"]),
        unknown_evidence: unknown,
    })
}

/// The JSON object of an answer: all of it, or the one between the first `{`
/// and the last `}`, as models put it into a fenced block.
fn json_object(text: &str) -> Result<Value, AnswerError> {
    let text = text.trim();
    let begin = text.find('{').ok_or(AnswerError::NoObject)?;
    let end = text.rfind('}').ok_or(AnswerError::Broken)?;
    let object = text.get(begin..=end).ok_or(AnswerError::Broken)?;
    let value: Value = serde_json::from_str(object).map_err(|_| AnswerError::Broken)?;
    if value.is_object() { Ok(value) } else { Err(AnswerError::NoObject) }
}

fn fix(value: &Value) -> Option<SuggestedFix> {
    let description = optional(value, "description", MAX_TEXT_CHARS)?;
    let code = |key: &str| {
        let code = value[key].as_str().map(plain).filter(|code| !code.trim().is_empty())?;
        // A patch that is cut off would be another patch.
        (code.chars().count() <= MAX_PATCH_CHARS).then_some(code)
    };
    Some(SuggestedFix {
        description,
        file: optional(value, "file", 500),
        code: code("code"),
        patch: code("patch").map(unfenced),
    })
}

/// A patch without the code fence that models like to put around it.
fn unfenced(patch: String) -> String {
    let trimmed = patch.trim();
    let Some(inner) = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return patch;
    };
    inner.split_once('\n').map_or_else(String::new, |(_, body)| body.to_owned())
}

fn items(value: &Value, most: usize) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten().take(most)
}

fn texts(value: &Value) -> Vec<String> {
    let texts = items(value, MAX_ITEMS).filter_map(Value::as_str).map(prose);
    texts.filter(|text| !text.is_empty()).map(|text| cut(text, MAX_ITEM_CHARS)).collect()
}

fn required(value: &Value, key: &'static str, most: usize) -> Result<String, AnswerError> {
    optional(value, key, most).ok_or(AnswerError::Field(key))
}

fn optional(value: &Value, key: &str, most: usize) -> Option<String> {
    let text = prose(value[key].as_str()?);
    (!text.is_empty()).then(|| cut(text, most))
}

/// A number from 0 to 100; a fraction of 1 counts as percent.
fn score(value: &Value) -> Option<u8> {
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok())?;
    let percent = if value.is_f64() && number > 0.0 && number < 1.0 { number * 100.0 } else { number };
    // Within 0 to 100 by the clamp.
    Some(percent.clamp(0.0, 100.0).round() as u8)
}

/// Text without terminal sequences and control characters.
fn plain(text: &str) -> String {
    let text = strip_ansi(text);
    text.chars().filter(|char| !char.is_control() || matches!(char, '\n' | '\t')).collect()
}

/// The same for sentences, in which addresses are left out: nothing of an answer
/// may lead anywhere.
pub(super) fn prose(text: &str) -> String {
    let text = plain(text);
    let text = text.trim();
    if !text.contains("://") {
        return text.to_owned();
    }
    let words = text.split_inclusive(char::is_whitespace).map(|word| {
        let bare = word.trim_end();
        let space = &word[bare.len()..];
        if bare.contains("://") { format!("[address]{space}") } else { word.to_owned() }
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer() -> Value {
        json!({
            "category": "test-bug", "confidenceScore": 90, "severity": "high", "affectedArea": null,
            "summary": "The button was renamed.", "rootCause": "See https://evil.example/x now",
            "evidence": [{"section": "error", "quote": "waiting for"}, {"section": "nowhere", "quote": ""}],
            "hypotheses": [{"category": "app-bug", "rootCause": "The page is slow.", "likelihood": 0.2,
                "evidence": ["steps", "elsewhere"]}],
            "suggestedFix": {"description": "Rename it.", "file": null, "code": null,
                "patch": "```diff\n--- a/x\n+++ b/x\n```"},
            "investigationSteps": ["Look.", ""], "preventionTips": [],
        })
    }

    #[test]
    fn evidence_that_was_never_given_lowers_the_confidence() {
        let read = parse_answer(&answer().to_string(), &["error", "steps"]).unwrap();
        assert_eq!(read.confidence_score, 50);
        assert_eq!(read.confidence(), Confidence::Medium);
        assert_eq!(read.unknown_evidence, ["nowhere", "elsewhere"]);
        assert_eq!(read.evidence.len(), 1);
        assert_eq!((read.hypotheses[0].likelihood, &*read.hypotheses[0].evidence[0]), (20, "steps"));
        assert_eq!(read.root_cause, "See [address] now");
        assert_eq!(read.suggested_fix.unwrap().patch.as_deref(), Some("--- a/x\n+++ b/x\n"));
        assert_eq!(read.investigation_steps, ["Look."]);
    }

    #[test]
    fn an_answer_in_a_block_is_read_and_half_of_one_is_not() {
        let fenced = format!("Sure!\n```json\n{}\n```\nDone.", answer());
        assert!(parse_answer(&fenced, &["error", "steps"]).is_ok());
        let whole = answer().to_string();
        assert_eq!(parse_answer(&whole[..whole.len() / 2], &[]), Err(AnswerError::Broken));
        assert_eq!(parse_answer("Ich weiß es nicht.", &[]), Err(AnswerError::NoObject));
        let mut wrong = answer();
        wrong["category"] = json!("evil");
        assert_eq!(parse_answer(&wrong.to_string(), &[]), Err(AnswerError::Field("category")));
    }

    #[test]
    fn every_object_of_the_schema_is_closed() {
        fn check(schema: &Value) {
            if let Some(properties) = schema["properties"].as_object() {
                assert_eq!(schema["additionalProperties"], false);
                assert_eq!(schema["required"].as_array().map(Vec::len), Some(properties.len()));
                properties.values().for_each(check);
            }
            if schema["items"].is_object() {
                check(&schema["items"]);
            }
        }
        check(&answer_schema());
    }
}
