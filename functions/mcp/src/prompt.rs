//! The prompt `setup_service`: how to send a project's results here, written
//! for this installation. The project name is the caller's word and goes into
//! the text quoted.

use callboard_query::project_names::{self, Names};
use serde_json::{Map, Value, json};

use crate::clean::{plain, quoted};
use crate::context::Context;
use crate::methods::fault;
use crate::rpc::RpcError;

/// Its name.
pub(crate) const NAME: &str = "setup_service";
/// Its only argument.
pub(crate) const ARGUMENT: &str = "projectName";
const MAX_NAME_CHARS: usize = 100;
/// Projects the text lists.
const LISTED_PROJECTS: usize = 20;

/// The answer of `prompts/list`.
pub(crate) fn list() -> Value {
    json!({"prompts": [{
        "name": NAME,
        "title": "Set up the Playwright reporter",
        "description": "Steps to send a Playwright project's results to this installation.",
        "arguments": [{
            "name": ARGUMENT,
            "description": "Name the project shall have here; an existing one continues it.",
            "required": false,
        }],
    }]})
}

/// The answer of `prompts/get`.
///
/// # Errors
/// For an unknown prompt, or a project name nobody can have.
pub(crate) async fn get(context: &Context, params: &Map<String, Value>) -> Result<Value, RpcError> {
    let name = params.get("name").and_then(Value::as_str);
    let name = name.ok_or_else(|| RpcError::invalid_params("`name` is required: the name of a prompt."))?;
    if name != NAME {
        return Err(RpcError::invalid_params(format!("Unknown prompt: {}", quoted(name))));
    }
    let project = project_name(params.get("arguments"))?;
    let known = project_names::recent(&context.query, context.scope(), LISTED_PROJECTS);
    let known = known.await.map_err(|error| fault(NAME, &error))?;
    let setup = Setup {
        base_url: context.query.links.origin(),
        key_required: context.state.auth_enabled(),
        project: project.as_deref(),
        known: &known,
    };
    Ok(json!({
        "description": format!("Send Playwright results to Callboard at {}", setup.base_url),
        "messages": [{"role": "user", "content": {"type": "text", "text": setup.text()}}],
    }))
}

fn project_name(arguments: Option<&Value>) -> Result<Option<String>, RpcError> {
    let given = match arguments.and_then(|arguments| arguments.get(ARGUMENT)) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(name)) => name.trim(),
        Some(_) => return Err(RpcError::invalid_params(format!("`{ARGUMENT}` must be a string."))),
    };
    if given.chars().any(char::is_control) || given.chars().count() > MAX_NAME_CHARS {
        return Err(RpcError::invalid_params(format!(
            "`{ARGUMENT}` must be one line of at most {MAX_NAME_CHARS} characters."
        )));
    }
    Ok((!given.is_empty()).then(|| given.to_owned()))
}

struct Setup<'a> {
    base_url: &'a str,
    key_required: bool,
    project: Option<&'a str>,
    known: &'a Names,
}

impl Setup<'_> {
    fn text(&self) -> String {
        let mut steps = vec![self.install()];
        if self.key_required {
            steps.push(
                "Create a key in Settings, Users of the dashboard (it begins with `pd_`) and put it in the variable \
                 `SERVICE_API_KEY`: locally in an env file that version control ignores, in CI as a secret. Never \
                 write it into the configuration."
                    .to_owned(),
            );
        }
        steps.push(
            "Import `callboardTest as test` from `callboard-reporter` in the specs instead of `test` from \
             `@playwright/test`; where the suite has fixtures of its own, wrap them once with \
             `extendCallboard(base)`."
                .to_owned(),
        );
        steps.push(
            "Run one spec: `npx playwright test <one spec file>`. The reporter prints the address of the run in one \
             line; open it."
                .to_owned(),
        );
        steps.push("Report what you changed, and that address.".to_owned());
        let steps: Vec<String> =
            steps.iter().enumerate().map(|(number, step)| format!("{}. {step}", number + 1)).collect();
        format!("{}\n\n{}\n", self.facts(), steps.join("\n\n"))
    }

    fn facts(&self) -> String {
        let needed = if self.key_required { "required" } else { "not required" };
        format!(
            "Set up this repository's Playwright tests to send their results to Callboard.\n\n\
             Base URL: {}\nAuthentication: {needed}\nProjects that already exist: {}",
            self.base_url,
            self.projects()
        )
    }

    fn projects(&self) -> String {
        if self.known.names.is_empty() {
            return "none yet, this will be the first project".to_owned();
        }
        let names: Vec<String> = self.known.names.iter().map(|name| one_line(name)).collect();
        match self.known.total {
            Some(total) if total > names.len() => format!("{} ... ({total} total)", names.join(", ")),
            _ => names.join(", "),
        }
    }

    fn install(&self) -> String {
        let name = self.project.map_or_else(|| "<name>".to_owned(), shell_quoted);
        let choice = match self.project {
            Some(_) => "",
            None => {
                "\n\n   Choose the name: the one above that is this repository's, else the name of its \
                 package.json, else of its folder."
            }
        };
        format!(
            "Install the reporter with `npm install --save-dev callboard-reporter` and let it add itself to the \
             Playwright configuration, in the folder of that file:\n\n   ```sh\n   npx callboard-reporter init \
             --server-url {} --project {name}\n   ```{choice}\n\n   Where it says that it changed nothing, add the \
             line it prints by hand. `trace: 'retain-on-failure'` and `screenshot: 'only-on-failure'` under `use` \
             keep what explains a failure.",
            self.base_url
        )
    }
}

/// The name as one word of a shell, whatever is in it.
fn shell_quoted(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/@-".contains(c);
    if !name.starts_with('-') && name.chars().all(is_plain) {
        return name.to_owned();
    }
    format!("'{}'", name.replace('\'', "'\\''"))
}

fn one_line(name: &str) -> String {
    plain(name).split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(key_required: bool, project: Option<&str>, names: &[&str], total: Option<usize>) -> String {
        let known = Names { names: names.iter().map(|name| (*name).to_owned()).collect(), total };
        Setup { base_url: "https://tests.example.org", key_required, project, known: &known }.text()
    }

    #[test]
    fn the_plan_says_what_this_installation_needs() {
        let open = text(false, Some("shop"), &[], Some(0));
        assert!(open.contains("Base URL: https://tests.example.org\nAuthentication: not required\n"));
        assert!(open.contains("none yet, this will be the first project"));
        assert!(
            open.contains(
                "npx callboard-reporter init --server-url https://tests.example.org --project shop\n"
            )
        );
        assert!(!open.contains("<name>"));
        assert!(!open.contains("SERVICE_API_KEY"));
        let closed = text(true, None, &["a", "b\nc\u{1b}[1m"], Some(25));
        assert!(closed.contains("Authentication: required"));
        assert!(closed.contains("Projects that already exist: a, b c ... (25 total)"));
        assert!(closed.contains("SERVICE_API_KEY") && closed.contains("Choose the name"));
    }

    #[test]
    fn a_hostile_name_stays_inside_its_quotes() {
        let name = |value: &str| project_name(Some(&json!({"projectName": value})));
        assert_eq!(name("  shop "), Ok(Some("shop".to_owned())));
        assert_eq!(name("   "), Ok(None));
        for refused in ["a\nb", "a\u{0}", "a\u{1b}[1m", &"x".repeat(101)] {
            assert!(name(refused).is_err(), "{refused:?}");
        }
        for (name, word) in [
            ("my-org/shop@2", "my-org/shop@2"),
            ("--help", "'--help'"),
            ("my shop", "'my shop'"),
            ("a'; rm -rf ~ #", "'a'\\''; rm -rf ~ #'"),
            ("$(id)`id`", "'$(id)`id`'"),
        ] {
            let text = text(false, Some(name), &[], None);
            assert!(text.contains(&format!("--project {word}\n")), "{name}: {text}");
        }
    }
}
