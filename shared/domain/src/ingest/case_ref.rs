//! How the files of a running test name their test.

use serde_json::{Map, Value};

use super::caps::Caps;
use super::field_error::FieldError;
use super::identity::IdentityHash;
use super::test_case::TestCaseEntry;
use super::test_case_input::TestCaseInput;
use super::warnings::{Warnings, shown};

/// One attempt of one test of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRef {
    /// Names the test case within its project.
    pub identity: IdentityHash,
    /// Its own title.
    pub title: String,
    /// `file:line:column`, as it was sent.
    pub location: String,
    /// Index of the attempt.
    pub retry: u32,
    /// Which repetition of `--repeat-each`, when the client said so.
    pub repeat_each_index: Option<u32>,
    /// Browser project, when the client said so.
    pub browser_project: Option<String>,
}

impl CaseRef {
    /// Reads it leniently: title and location are required. What is left out
    /// is noted in `warnings`.
    ///
    /// # Errors
    /// [`FieldError`] naming what is missing, or no text.
    pub fn parse(mut fields: Map<String, Value>, warnings: &mut Warnings) -> Result<Self, FieldError> {
        for field in ["title", "location"] {
            match fields.get(field) {
                None | Some(Value::Null | Value::String(_)) => {}
                Some(other) => {
                    return Err(FieldError::Invalid { field, expected: "text", got: shown(other) });
                }
            }
        }
        let text = |name: &str| {
            fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty()).map(str::to_owned)
        };
        let (title, location) = (text("title"), text("location"));
        let missing: Vec<&'static str> = [("title", title.is_none()), ("location", location.is_none())]
            .into_iter()
            .filter_map(|(name, is_missing)| is_missing.then_some(name))
            .collect();
        let (Some(title), Some(location)) = (title, location) else {
            return Err(FieldError::Missing { fields: missing });
        };
        let browser_project = text("browserProject");
        // Read as a result would be, so that both name the same test.
        fields.insert("status".to_owned(), Value::from("passed"));
        let entry = TestCaseInput::from_value(Value::Object(fields))
            .and_then(|input| TestCaseEntry::parse(input, 0, &Caps::default(), warnings).ok());
        let entry = entry.ok_or(FieldError::Missing { fields: vec!["title"] })?;
        Ok(Self {
            identity: entry.identity,
            title,
            location,
            retry: entry.retry,
            repeat_each_index: entry.repeat_each_index,
            browser_project,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(value: Value) -> Result<CaseRef, FieldError> {
        CaseRef::parse(value.as_object().cloned().unwrap_or_default(), &mut Warnings::default())
    }

    #[test]
    fn files_and_results_name_the_same_test() {
        let fields = json!({ "title": "pays", "location": "./tests/pay.spec.ts:9:5", "suitePath": ["Shop", " "], "retries": "2" });
        let case = read(fields.clone()).unwrap();
        let mut result = fields;
        result["status"] = json!("failed");
        let input = TestCaseInput::from_value(result).unwrap();
        let entry = TestCaseEntry::parse(input, 3, &Caps::default(), &mut Warnings::default()).unwrap();
        assert_eq!((case.identity, case.retry, case.browser_project), (entry.identity, 2, None));
        let error = read(json!({ "title": "pays" })).unwrap_err();
        assert_eq!(error, FieldError::Missing { fields: vec!["location"] });
        let error = read(json!({ "title": 5, "location": "a.spec.ts:1:1" })).unwrap_err();
        assert_eq!(error.to_string(), "title must be text, got 5.");
    }
}
