//! Everybody who may call, everything they may name, and what the route table
//! says about each pair: the authorization matrix, for the service in one
//! process and for its functions alike.
//!
//! Here: the questions and how their answers are judged. Beside it: what can
//! be named (`holding`), who asks (`cast`), what should come of it
//! (`expectation`), and how a request is written (`request`).

mod cast;
mod expectation;
mod holding;
mod request;

use anyhow::Result;
use bytes::Bytes;
use callboard_auth::routes::{BodyLimit, Method};
use callboard_auth::{ROUTES, Route, RouteId};
use http::Request;
use http::header::CONTENT_TYPE;
use serde_json::Value;

pub use cast::{AUTH_SECRET, Cast, Credential};
pub use expectation::Expected;
pub use holding::{Holding, diagnosis, suggestion};
pub use request::address;

use crate::Form;
use cast::Standing;
use expectation::{expected, names_something, says_something};
use request::fields;

/// What a request names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// Something of the first project, or the caller's own account.
    First,
    /// Something of the second project, or somebody else's account.
    Second,
    /// Something that does not exist.
    Missing,
    /// Something of the first project, in a body that says nothing: what is
    /// let through changes nothing.
    Nonsense,
}

impl Cast {
    /// Every question the table answers: who asks for what at which route,
    /// and what should come of it. Changes that would be let through are asked
    /// for with nonsense, because they would change what the next question is
    /// about.
    pub fn questions(&self) -> impl Iterator<Item = Question<'_>> {
        ROUTES.iter().flat_map(move |route| {
            self.callers.iter().flat_map(move |caller| {
                let subjects = [Subject::First, Subject::Second, Subject::Missing, Subject::Nonsense];
                subjects.into_iter().filter_map(move |subject| {
                    let expected = expected(route, caller, subject);
                    let reads = route.method == Method::Get;
                    let is_safe = expected != Expected::LetThrough || reads;
                    let is_asked = match subject {
                        Subject::First => is_safe,
                        Subject::Second | Subject::Missing => is_safe && names_something(route),
                        Subject::Nonsense => !is_safe && says_something(route),
                    };
                    // Ends the very session that asks.
                    let is_a_way_out = matches!(route.id, RouteId::Logout | RouteId::SignOutUser);
                    let is_a_way_out = is_a_way_out && expected == Expected::LetThrough;
                    (is_asked && !is_a_way_out).then_some(Question { route, caller, subject, expected })
                })
            })
        })
    }

    /// The request of a question. `host` is the name the service answers to.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn request(&self, question: &Question<'_>, host: &str) -> Result<Request<Bytes>> {
        let Question { route, caller, subject, .. } = question;
        let holding = match subject {
            Subject::First | Subject::Nonsense => self.first.clone(),
            Subject::Second => self.second.clone(),
            Subject::Missing => Holding::missing(),
        };
        let account = match (subject, caller.standing) {
            (Subject::First | Subject::Nonsense, Standing::Account { user, .. }) => user.get(),
            (Subject::Missing, _) => Holding::MISSING,
            _ => self.bystander.get(),
        };
        let path = address(route, &holding, account);
        let mut request = Request::builder().method(route.method.as_str()).uri(path).header("host", host);
        if let Some((name, value)) = &caller.header {
            request = request.header(name, value);
        }
        if route.method == Method::Get {
            return Ok(request.body(Bytes::new())?);
        }
        if *subject == Subject::Nonsense {
            return Ok(request.header(CONTENT_TYPE, "application/json").body(Bytes::from_static(b"[]"))?);
        }
        let fields = fields(route, &holding);
        if route.body_limit == BodyLimit::Upload {
            let form = Form::new().field("projectName", &holding.name).field("testRun", fields.to_string());
            return Ok(request.header(CONTENT_TYPE, Form::content_type()).body(form.into_body())?);
        }
        Ok(request.header(CONTENT_TYPE, "application/json").body(Bytes::from(fields.to_string()))?)
    }
}

/// One cell of the matrix.
#[derive(Debug)]
pub struct Question<'c> {
    /// The route.
    pub route: &'static Route,
    /// Who asks.
    pub caller: &'c Credential,
    /// For what.
    pub subject: Subject,
    /// What should come of it.
    pub expected: Expected,
}

impl Question<'_> {
    /// Compares an answer with the table.
    ///
    /// # Errors
    /// A sentence that says who got what where.
    pub fn judge(&self, status: u16, body: &[u8]) -> Result<(), String> {
        let code = serde_json::from_slice::<Value>(body)
            .ok()
            .and_then(|body| body["code"].as_str().map(str::to_owned));
        let is_right = match self.expected {
            // The handler of a route may need something that nobody configured.
            Expected::LetThrough if code.as_deref() == Some("not_configured") => true,
            Expected::LetThrough => status < 500 && status != 401 && status != 403,
            // Pages say it in words.
            Expected::Refused(wanted, wanted_code) => {
                status == wanted && code.as_deref().is_none_or(|code| code == wanted_code)
            }
            Expected::Unopened => (400..500).contains(&status),
        };
        if is_right {
            return Ok(());
        }
        Err(format!(
            "{} {} as {} for {:?}: expected {:?}, got {status} {}",
            self.route.method.as_str(),
            self.route.pattern,
            self.caller.name,
            self.subject,
            self.expected,
            code.unwrap_or_default(),
        ))
    }
}
