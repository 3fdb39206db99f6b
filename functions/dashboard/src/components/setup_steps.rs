//! How to send the first run, with this service's address and the name of the
//! project filled in.

use askama::Template;
use askama::filters::HtmlSafe;

use crate::filters;
use crate::visit::Visit;

/// What a project is called where none is there yet.
const SOME_PROJECT: &str = "my-project";

/// Inputs of `components/setup_steps.html`.
#[derive(Template)]
#[template(path = "components/setup_steps.html")]
pub(crate) struct SetupSteps {
    origin: String,
    /// The name as TypeScript writes it.
    in_script: String,
    /// The name as JSON inside a word in single quotes of a shell.
    in_shell: String,
    /// Whether callers have to say who they are.
    needs_key: bool,
    now_iso: String,
}

impl HtmlSafe for SetupSteps {}

impl SetupSteps {
    /// The steps for a project, or for one that is still to be named.
    pub(crate) fn new(visit: &Visit, needs_key: bool, project: Option<&str>) -> Self {
        let (in_script, in_shell) = quoted(project.unwrap_or(SOME_PROJECT));
        let origin = visit.site.origin().to_string();
        Self { origin, in_script, in_shell, needs_key, now_iso: visit.now.to_iso() }
    }
}

fn quoted(name: &str) -> (String, String) {
    let json = serde_json::Value::from(name).to_string();
    let is_plain = !name.contains(['\'', '\\', '"']) && !name.chars().any(char::is_control);
    let in_script = if is_plain { format!("'{name}'") } else { json.clone() };
    (in_script, json.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_name_can_be_copied_whatever_it_holds() {
        assert_eq!(quoted("web shop"), ("'web shop'".to_owned(), "\"web shop\"".to_owned()));
        assert_eq!(quoted("Ada's"), ("\"Ada's\"".to_owned(), r#""Ada'\''s""#.to_owned()));
    }
}
