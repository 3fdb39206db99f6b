//! The settings of the registry in `infra/template.yaml`: a parameter for each that
//! functions need, so that none can be forgotten.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::{Context, Result, ensure};
use callboard_platform::config::registry::{self, Kind, Value, Variable};
use callboard_store::newest_step;

/// What the template sets out of parameters of its own.
pub const SET_BY_TEMPLATE: [&str; 7] = [
    "SERVICE_DATABASE_URL",
    "SERVICE_DATABASE_CONNECTIONS",
    "SERVICE_SECRETS",
    "SERVICE_STORAGE_URL",
    "SERVICE_SITE_URL",
    "SERVICE_SANDBOX_ORIGIN",
    "SERVICE_SSE_MAX_SECONDS",
];

/// What makes no sense there, and why.
pub const NOT_IN_FUNCTIONS: [(&str, &str); 10] = [
    ("SERVICE_HOST", "a function listens nowhere"),
    ("SERVICE_PORT", "a function listens nowhere"),
    ("SERVICE_DATA_DIR", "the disk of an instance vanishes"),
    ("SERVICE_S3_ENDPOINT", "the bucket is the platform's own"),
    ("SERVICE_S3_PUBLIC_ENDPOINT", "the bucket is the platform's own"),
    ("SERVICE_GATEWAY_MAX_BYTES", "the HTTP API of the template lets 6 MiB through, which is the default"),
    ("SERVICE_COOKIE_SECURE", "the gateway is reached over https only"),
    ("SERVICE_RATE_LIMITS", "limits can be switched off on one machine only"),
    ("SERVICE_SSE_MAX_PER_IDENTITY", "an instance serves one stream at a time"),
    ("SERVICE_SSE_MAX_STREAMS", "an instance serves one stream at a time"),
];

/// The template with everything in place that settings and migrations decide.
///
/// # Errors
/// When one of the places is missing, or a list above names a setting that does not exist.
pub fn template(current: &str) -> Result<String> {
    let variables = parameters()?;
    let mut template = current.to_owned();
    let conditions = variables.iter().fold(String::new(), |mut text, variable| {
        let name = parameter_name(variable);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  Has{name}: !Not [!Equals [!Ref {name}, \"\"]]");
        text
    });
    let environment = variables.iter().fold(String::new(), |mut text, variable| {
        let (name, variable) = (parameter_name(variable), variable.name);
        let _ = writeln!(text, "        {variable}: !If [Has{name}, !Ref {name}, !Ref AWS::NoValue]");
        text
    });
    let described = variables.iter().map(parameter).collect::<Result<String>>()?;
    replace(
        &mut template,
        "  # Parameters of settings, written by `make routes`.\n",
        "  # End of",
        &described,
    )?;
    replace(
        &mut template,
        "  # Conditions of settings, written by `make routes`.\n",
        "  # End of",
        &conditions,
    )?;
    replace(
        &mut template,
        "        # Variables of settings, written by `make routes`.\n",
        "        # End of",
        &environment,
    )?;
    let step = format!("      Step: {}\n", newest_step());
    replace(&mut template, "      # The newest migration, written by `make routes`.\n", "\n", &step)?;
    Ok(template)
}

/// The settings that become parameters.
fn parameters() -> Result<Vec<Variable>> {
    let all = registry::variables();
    let known: BTreeSet<&str> = all.iter().map(|variable| variable.name).collect();
    let left_out: BTreeSet<&str> =
        SET_BY_TEMPLATE.into_iter().chain(NOT_IN_FUNCTIONS.map(|(name, _)| name)).collect();
    ensure!(left_out.len() == SET_BY_TEMPLATE.len() + NOT_IN_FUNCTIONS.len(), "a setting is listed twice");
    for name in &left_out {
        ensure!(known.contains(name), "{name} is no setting any more");
    }
    Ok(all.into_iter().filter(|variable| !left_out.contains(variable.name)).collect())
}

/// `SERVICE_AUTH_SECRET` is the parameter `AuthSecret`.
fn parameter_name(variable: &Variable) -> String {
    let words = variable.name.trim_start_matches("SERVICE_").split('_');
    words.fold(String::new(), |mut name, word| {
        let (first, rest) = word.split_at(word.len().min(1));
        name.push_str(first);
        name.push_str(&rest.to_ascii_lowercase());
        name
    })
}

fn parameter(variable: &Variable) -> Result<String> {
    let name = parameter_name(variable);
    let mut meaning = variable.meaning.replace('…', "...").replace('`', "'");
    match variable.default {
        Value::Unset => {}
        Value::Text(text) => drop(write!(meaning, " Empty - {text}.")),
        Value::Number(number) => drop(write!(meaning, " Empty - {number}.")),
    }
    ensure!(meaning.is_ascii(), "the platform shows ASCII only: {meaning}");
    let words: Vec<&str> = match variable.kind {
        Kind::Switch => vec!["", "true", "false"],
        Kind::OneOf(words) => std::iter::once("").chain(words.iter().copied()).collect(),
        _ => Vec::new(),
    };
    let mut text = format!("  {name}:\n    Type: String\n    Default: \"\"\n");
    if variable.kind.is_secret() {
        text.push_str("    NoEcho: true\n");
    }
    if !words.is_empty() {
        let _ = writeln!(text, "    AllowedValues: {}", serde_json::to_string(&words)?);
    }
    if let Kind::Number { .. } = variable.kind {
        text.push_str("    AllowedPattern: ^[0-9]*$\n");
    }
    let _ = writeln!(text, "    Description: {}", serde_json::to_string(&meaning)?);
    Ok(text)
}

/// Puts `text` between the line `begin` and the next `end`.
fn replace(template: &mut String, begin: &str, end: &str, text: &str) -> Result<()> {
    let at = template.find(begin).with_context(|| format!("no line {begin:?}"))? + begin.len();
    let length = match end {
        // One line.
        "\n" => template[at..].find('\n').map(|length| length + 1),
        end => template[at..].find(end),
    };
    let length = length.with_context(|| format!("{begin:?} has no end"))?;
    template.replace_range(at..at + length, text);
    Ok(())
}
