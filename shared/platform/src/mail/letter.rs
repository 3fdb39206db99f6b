//! What mails say: the only place where values become text and HTML. Every
//! value loses its control characters, shows what would reorder it, and is
//! escaped here.

use std::borrow::Cow;
use std::fmt::Write as _;

use callboard_auth::Origin;
use callboard_domain::bidi::visible;
use callboard_domain::notifications::Message;

use super::About;

/// Longest value that is shown, characters.
const MAX_VALUE_CHARS: usize = 120;
/// Longest line of a notification, characters.
const MAX_LINE_CHARS: usize = 300;

/// A mail before it is text or HTML.
#[derive(Debug)]
pub(super) struct Letter {
    subject: Cow<'static, str>,
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    /// A paragraph.
    Says(String),
    /// Something to open, by its label and address.
    Link(&'static str, String),
    /// A list.
    Lists(Vec<String>),
    /// A list of things to open: label, address where there is one, and what stands behind the label.
    Links(Vec<(String, Option<String>, String)>),
}

impl Letter {
    /// The letter about something; `None` when it needs a link and the public
    /// address is not known.
    pub(super) fn about(about: &About, site: Option<&Origin>) -> Option<Self> {
        let link = |path: &str, token: &str| {
            let is_token = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
            // The fragment stays in the browser; logs on the way never see the token.
            site.filter(|_| token.chars().all(is_token)).map(|site| format!("{site}{path}#token={token}"))
        };
        let ignore = "If you didn't request this, you can ignore this email.".to_owned();
        let unexpected =
            "If this wasn't you, reset your password now and contact an administrator.".to_owned();
        Some(match about {
            About::VerifyEmail { username, token } => Self {
                subject: "Confirm your email address".into(),
                parts: vec![
                    Part::Says(format!("This email address was added to the account {}.", shown(username))),
                    Part::Link("Confirm email address", link("/verify", token)?),
                    Part::Says("This link expires in 24 hours and works once.".to_owned()),
                    Part::Says(ignore),
                ],
            },
            About::ResetPassword { username, token } => Self {
                subject: "Reset your password".into(),
                parts: vec![
                    Part::Says(format!(
                        "We received a request to reset the password of the account {}.",
                        shown(username)
                    )),
                    Part::Link("Reset password", link("/reset", token)?),
                    Part::Says("This link expires in 1 hour and works once.".to_owned()),
                    Part::Says(ignore),
                ],
            },
            About::Invite { username, invited_by, token } => Self {
                subject: "You're invited to Callboard".into(),
                parts: vec![
                    Part::Says(match invited_by {
                        Some(name) => format!(
                            "{} invited you to Callboard, where your team's test results are.",
                            shown(name)
                        ),
                        None => "You're invited to Callboard, where your team's test results are.".to_owned(),
                    }),
                    Part::Says(format!(
                        "Your username is {}. Choose a password to sign in:",
                        shown(username)
                    )),
                    Part::Link("Choose password", link("/reset", token)?),
                    Part::Says("This link expires in 72 hours and works once.".to_owned()),
                ],
            },
            About::PasswordChanged { username, api_keys } => {
                let mut parts =
                    vec![Part::Says(format!("The password of the account {} was changed.", shown(username)))];
                if !api_keys.is_empty() {
                    parts.push(Part::Says("These API keys still work:".to_owned()));
                    parts.push(Part::Lists(api_keys.iter().map(|key| shown(key)).collect()));
                }
                parts.push(Part::Says(unexpected));
                Self { subject: "Your password was changed".into(), parts }
            }
            About::EmailChanged { username } => Self {
                subject: "Your email address was changed".into(),
                parts: vec![
                    Part::Says(format!("The email address of the account {} was changed.", shown(username))),
                    Part::Says("You will no longer receive emails about it at this address.".to_owned()),
                    Part::Says(unexpected),
                ],
            },
            About::OauthLinked { username, provider } => Self {
                subject: "Sign-in provider linked".into(),
                parts: vec![
                    Part::Says(format!(
                        "You can now sign in to the account {} with {}.",
                        shown(username),
                        shown(provider)
                    )),
                    Part::Says(unexpected),
                ],
            },
            About::OauthUnlinked { username } => Self {
                subject: "Sign-in provider unlinked".into(),
                parts: vec![
                    Part::Says(format!(
                        "The account {} is no longer linked to a sign-in provider.",
                        shown(username)
                    )),
                    Part::Says(unexpected),
                ],
            },
        })
    }

    /// The letter that shows whether mail arrives.
    pub(super) fn test() -> Self {
        Self {
            subject: "Test message from Callboard".into(),
            parts: vec![Part::Says("Mail from Callboard arrives at this address.".to_owned())],
        }
    }

    /// The letter of a notification. Links lead to the public address only.
    pub(super) fn notification(message: &Message, site: &Origin, unsubscribe: Option<&str>) -> Self {
        let headline = line(&message.headline, MAX_LINE_CHARS);
        let mut parts = vec![Part::Says(headline.clone())];
        if !message.facts.is_empty() {
            parts.push(Part::Lists(message.facts.iter().map(|fact| line(fact, MAX_LINE_CHARS)).collect()));
        }
        let site = site.to_string();
        let is_ours = |url: &str| url.strip_prefix(&site).is_some_and(|path| path.starts_with('/'));
        if !message.failures.is_empty() {
            let failures = message.failures.iter().map(|failure| {
                let url = Some(failure.url.clone()).filter(|url| is_ours(url));
                (line(&failure.title, MAX_LINE_CHARS), url, details(&failure.details()))
            });
            parts.push(Part::Says("New failures:".to_owned()));
            parts.push(Part::Links(failures.collect()));
            parts.extend(message.failures_left_out().map(Part::Says));
        }
        if is_ours(&message.url) {
            parts.push(Part::Link("Open in Callboard", message.url.clone()));
        }
        parts.push(Part::Link("Change what is sent here", format!("{site}/settings/notifications")));
        if let Some(token) = unsubscribe {
            parts.push(Part::Link("Unsubscribe", format!("{site}/unsubscribe#token={token}")));
        }
        Self { subject: headline.into(), parts }
    }

    /// The subject, one line.
    pub(super) fn subject(&self) -> &str {
        &self.subject
    }

    /// The plain text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            // Writing to a String cannot fail.
            let _ = match part {
                Part::Says(sentence) => writeln!(text, "{sentence}\n"),
                Part::Link(label, address) => writeln!(text, "{label}:\n{address}\n"),
                Part::Lists(items) => writeln!(text, "- {}\n", items.join("\n- ")),
                Part::Links(items) => {
                    let item = |(label, url, details): &(String, Option<String>, String)| {
                        let url = url.as_ref().map(|url| format!("\n  {url}")).unwrap_or_default();
                        format!("- {label}{details}{url}\n")
                    };
                    writeln!(text, "{}", items.iter().map(item).collect::<String>())
                }
            };
        }
        text.push_str("Callboard\n");
        text
    }

    /// The same as HTML that mail programs understand.
    pub(super) fn html(&self) -> String {
        let mut body = String::new();
        for part in &self.parts {
            // Writing to a String cannot fail.
            let _ = match part {
                Part::Says(sentence) => writeln!(body, "<p>{}</p>", escaped(sentence)),
                Part::Link(label, address) => {
                    let address = escaped(address);
                    writeln!(
                        body,
                        "<p><a href=\"{address}\">{}</a><br><small>{address}</small></p>",
                        escaped(label)
                    )
                }
                Part::Links(items) => {
                    let item = |(label, url, details): &(String, Option<String>, String)| {
                        let (label, details) = (escaped(label), escaped(details));
                        match url {
                            Some(url) => {
                                format!("<li><a href=\"{}\">{label}</a>{details}</li>", escaped(url))
                            }
                            None => format!("<li>{label}{details}</li>"),
                        }
                    };
                    writeln!(body, "<ul>{}</ul>", items.iter().map(item).collect::<String>())
                }
                Part::Lists(items) => {
                    let items: String =
                        items.iter().map(|item| format!("<li>{}</li>", escaped(item))).collect();
                    writeln!(body, "<ul>{items}</ul>")
                }
            };
        }
        let title = escaped(&self.subject);
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\"><title>{title}</title></head>\n\
             <body style=\"margin:0 auto;max-width:600px;padding:16px;font:15px/1.5 -apple-system,'Segoe UI',Roboto,Arial,sans-serif;\
             overflow-wrap:anywhere\">\n{body}<p>Callboard</p>\n</body></html>\n"
        )
    }
}

/// A value as it may stand in a sentence: one line, not too long.
fn shown(value: &str) -> String {
    format!("\u{201c}{}\u{201d}", line(value, MAX_VALUE_CHARS))
}

/// A text as one line.
fn line(text: &str, max_chars: usize) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(max_chars).collect();
    visible(&text).trim().to_owned()
}

/// What stands behind a label, with the space before it.
fn details(text: &str) -> String {
    let text = line(text, MAX_LINE_CHARS);
    if text.is_empty() { text } else { format!(" {text}") }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use callboard_domain::notifications::FailureLine;

    use super::*;

    const NASTY: &str = "<script>alert('x')</script>\r\nBcc: all@example.org\n\n\"&";

    fn site() -> Origin {
        Origin::parse("https://tests.example.org").unwrap()
    }

    fn every_kind(value: &str) -> Vec<About> {
        let (username, token) = (value.to_owned(), "srp_abc".to_owned());
        vec![
            About::VerifyEmail { username: username.clone(), token: token.clone() },
            About::ResetPassword { username: username.clone(), token: token.clone() },
            About::Invite { username: username.clone(), invited_by: Some(username.clone()), token },
            About::PasswordChanged { username: username.clone(), api_keys: vec![username.clone()] },
            About::EmailChanged { username: username.clone() },
            About::OauthUnlinked { username: username.clone() },
            About::OauthLinked { username: username.clone(), provider: username },
        ]
    }

    #[test]
    fn no_value_becomes_markup_or_a_line_of_its_own() {
        for about in every_kind(NASTY) {
            let letter = Letter::about(&about, Some(&site())).unwrap();
            let (text, html) = (letter.text(), letter.html());
            assert!(!html.contains("<script") && html.contains("&lt;script&gt;"), "{html}");
            assert!(text.lines().all(|line| !line.starts_with("Bcc:")), "{text}");
            assert!(!text.contains('\r') && !letter.subject().contains(['\r', '\n']));
        }
    }

    #[test]
    fn a_value_that_would_reorder_the_text_is_shown_as_it_is() {
        for about in every_kind("ada\u{202e}nimda") {
            let letter = Letter::about(&about, Some(&site())).unwrap();
            for written in [letter.text(), letter.html()] {
                assert!(written.contains("ada⟦U+202E⟧nimda") && !written.contains('\u{202e}'), "{written}");
            }
        }
    }

    #[test]
    fn a_notification_is_text_and_its_subject_one_line() {
        let message = Message {
            headline: NASTY.to_owned(),
            facts: vec![NASTY.to_owned()],
            failures: ["https://tests.example.org/test-run-cases/7", "https://elsewhere.example.org/x"]
                .map(|url| FailureLine {
                    title: NASTY.to_owned(),
                    cause: Some(NASTY.to_owned()),
                    url: url.to_owned(),
                    ..FailureLine::default()
                })
                .into(),
            more_failures: 3,
            url: "https://elsewhere.example.org/test-runs/7".to_owned(),
            ..Message::default()
        };
        let letter = Letter::notification(&message, &site(), Some("sun1.token"));
        assert!(!letter.subject().contains(['\r', '\n']), "{}", letter.subject());
        assert!(!letter.html().contains("<script"));
        let text = letter.text();
        assert!(text.lines().all(|line| !line.starts_with("Bcc:")), "{text}");
        assert!(!text.contains("elsewhere.example.org"), "{text}");
        assert!(!letter.html().contains("elsewhere.example.org"), "{}", letter.html());
        assert!(letter.html().contains("<a href=\"https://tests.example.org/test-run-cases/7\">&lt;script"));
        assert!(text.contains("\n  https://tests.example.org/test-run-cases/7\n"), "{text}");
        assert!(text.contains("and 3 more new failures"), "{text}");
    }

    #[test]
    fn links_lead_to_the_public_address_and_nowhere_else() {
        let addresses: Vec<Option<String>> = every_kind("ada")
            .iter()
            .map(|about| {
                let text = Letter::about(about, Some(&site())).unwrap().text();
                text.lines().find(|line| line.starts_with("http")).map(str::to_owned)
            })
            .collect();
        let verify = Some("https://tests.example.org/verify#token=srp_abc".to_owned());
        let reset = Some("https://tests.example.org/reset#token=srp_abc".to_owned());
        assert_eq!(addresses, [verify, reset.clone(), reset, None, None, None, None]);
        let sent_without =
            every_kind("ada").iter().filter(|about| Letter::about(about, None).is_some()).count();
        assert_eq!(sent_without, 4);
        let odd = About::ResetPassword { username: "ada".to_owned(), token: "x\" onclick=\"".to_owned() };
        assert!(Letter::about(&odd, Some(&site())).is_none());
    }
}
