//! Comments on requests and statuses of commits, as the four APIs take and list them.

use http::{Method, StatusCode};
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::{Dialect, Known, Recorded, Reply};

/// Characters of the longest comment of GitHub, and of Bitbucket.
const MAX_COMMENT_CHARS: usize = 65_536;
const MAX_BITBUCKET_CHARS: usize = 32_768;
/// Characters of the longest text of a status of GitHub.
const MAX_DESCRIPTION_CHARS: usize = 140;
/// Characters of the longest key of a status of Bitbucket.
const MAX_KEY_CHARS: usize = 40;

/// A comment on a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostComment {
    /// Id.
    pub id: u64,
    /// Number of the request.
    pub request: u64,
    /// Its Markdown.
    pub body: String,
    /// How often it was edited.
    pub edits: u64,
    /// The account that wrote it, and alone may edit it.
    pub account: u64,
}

/// A status of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostStatus {
    /// Commit.
    pub sha: String,
    /// Name.
    pub context: String,
    /// State in the words of the provider.
    pub state: String,
    /// Text.
    pub description: String,
    /// Page.
    pub url: String,
}

impl Known {
    pub(super) fn add_comment(&mut self, request: u64, body: &str) -> HostComment {
        self.last_comment += 1;
        let id = 900 + self.last_comment;
        let comment = HostComment { id, request, body: body.to_owned(), edits: 0, account: self.account };
        self.comments.push(comment.clone());
        comment
    }
}

fn created(reply: Reply) -> Reply {
    Reply { status: StatusCode::CREATED, ..reply }
}

/// A comment as a provider shows it.
fn shown(dialect: Dialect, comment: &HostComment) -> Value {
    let HostComment { id, request, body, .. } = comment;
    match dialect {
        Dialect::GitHub | Dialect::Gitea => json!({
            "id": id, "body": body, "user": { "login": "callboard", "id": 2 },
            "html_url": format!("https://host.test/acme/shop/pull/{request}#issuecomment-{id}"),
        }),
        Dialect::GitLab => {
            json!({ "id": id, "body": body, "system": false, "author": { "id": 2, "username": "callboard" } })
        }
        Dialect::Bitbucket => json!({
            "id": id, "deleted": false, "type": "pullrequest_comment",
            "content": { "raw": body, "markup": "markdown", "html": "" },
            "links": { "html": { "href": format!("https://host.test/acme/shop/pull-requests/{request}#comment-{id}") } },
        }),
    }
}

/// The Markdown of a comment that was sent.
fn text(asked: &Recorded) -> Option<String> {
    let body = match asked.dialect {
        Dialect::Bitbucket => &asked.body["content"]["raw"],
        _ => &asked.body["body"],
    };
    body.as_str().map(str::to_owned)
}

/// One comment by its id.
fn comment(known: &mut Known, asked: &Recorded, request: Option<&str>, id: &str) -> Reply {
    if asked.method != Method::GET {
        return edit(known, asked, request, id);
    }
    let found = known.comments.iter().find(|comment| comment.id.to_string() == id);
    found.map_or_else(missing, |comment| Reply::json(&shown(asked.dialect, comment)))
}

/// The answer to a request about comments or statuses; `None` for any other.
pub(super) fn reply(known: &mut Known, asked: &Recorded) -> Option<Reply> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = asked.path.trim_start_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    match (asked.dialect, parts.as_slice()) {
        (Dialect::GitHub | Dialect::Gitea, ["issues", "comments", id]) => {
            Some(comment(known, asked, None, id))
        }
        (Dialect::GitHub | Dialect::Gitea, ["issues", number, "comments"])
        | (Dialect::GitLab, ["merge_requests", number, "notes"])
        | (Dialect::Bitbucket, ["pullrequests", number, "comments"]) => Some(comments(known, asked, number)),
        (Dialect::GitLab, ["merge_requests", number, "notes", id])
        | (Dialect::Bitbucket, ["pullrequests", number, "comments", id]) => {
            Some(comment(known, asked, Some(number), id))
        }
        (Dialect::Bitbucket, ["commit", sha, "statuses", "build"])
        | (Dialect::GitHub | Dialect::Gitea | Dialect::GitLab, ["statuses", sha]) => {
            Some(status(known, asked, sha))
        }
        _ => None,
    }
}

fn missing() -> Reply {
    Reply::error(StatusCode::NOT_FOUND)
}

fn comments(known: &mut Known, asked: &Recorded, number: &str) -> Reply {
    let Ok(request) = number.parse::<u64>() else { return missing() };
    if !known.pulls.iter().any(|pull| pull.number == request) {
        return missing();
    }
    if asked.method == Method::POST {
        let most = if asked.dialect == Dialect::Bitbucket { MAX_BITBUCKET_CHARS } else { MAX_COMMENT_CHARS };
        let Some(text) = text(asked).filter(|text| !text.is_empty() && text.chars().count() <= most) else {
            return Reply::error(StatusCode::UNPROCESSABLE_ENTITY);
        };
        let comment = known.add_comment(request, &text);
        return created(Reply::json(&shown(asked.dialect, &comment)));
    }
    let mut all: Vec<Value> = known
        .comments
        .iter()
        .filter(|comment| comment.request == request)
        .map(|comment| shown(asked.dialect, comment))
        .collect();
    if asked.parameter("sort").is_some_and(|sort| matches!(sort, "desc" | "-created_on")) {
        all.reverse();
    }
    let number = |name: &str, default: usize| {
        asked.parameter(name).and_then(|text| text.parse::<usize>().ok()).unwrap_or(default)
    };
    let size = match asked.dialect {
        // It gives all of them.
        Dialect::Gitea => return Reply::json(&json!(all)),
        Dialect::Bitbucket => number("pagelen", 10),
        Dialect::GitHub | Dialect::GitLab => number("per_page", 20),
    };
    let page = number("page", 1).max(1);
    let goes_on = all.len() > page * size;
    let last = u32::try_from(all.len().div_ceil(size)).ok();
    let listed: Vec<Value> = all.into_iter().skip((page - 1) * size).take(size).collect();
    let next = u32::try_from(page + 1).ok().filter(|_| goes_on);
    if asked.dialect == Dialect::Bitbucket {
        let next = next.map(|page| format!("https://host.test/comments?page={page}"));
        return Reply::json(&json!({ "values": listed, "next": next }));
    }
    Reply { last_page: last.filter(|_| goes_on), ..Reply::json(&json!(listed)).with_next_page(next) }
}

fn edit(known: &mut Known, asked: &Recorded, request: Option<&str>, id: &str) -> Reply {
    let dialect = asked.dialect;
    let expected = match dialect {
        Dialect::GitHub | Dialect::Gitea => Method::PATCH,
        Dialect::GitLab | Dialect::Bitbucket => Method::PUT,
    };
    if asked.method != expected {
        return Reply::error(StatusCode::METHOD_NOT_ALLOWED);
    }
    let request = request.and_then(|number| number.parse::<u64>().ok());
    let is_it = |comment: &&mut HostComment| {
        comment.id.to_string() == id && request.is_none_or(|request| request == comment.request)
    };
    let (Some(comment), Some(text)) = (known.comments.iter_mut().find(is_it), text(asked)) else {
        return missing();
    };
    if comment.account != known.account {
        return Reply::error(StatusCode::FORBIDDEN);
    }
    comment.body = text;
    comment.edits += 1;
    Reply::json(&shown(dialect, comment))
}

fn status(known: &mut Known, asked: &Recorded, sha: &str) -> Reply {
    let dialect = asked.dialect;
    let Some(sha) = known.repository.resolve(sha) else {
        return match dialect {
            Dialect::GitHub => Reply::error(StatusCode::UNPROCESSABLE_ENTITY),
            _ => missing(),
        };
    };
    let text = |name: &str| asked.body[name].as_str().unwrap_or_default().to_owned();
    let (name, url, states): (&str, &str, &[&str]) = match dialect {
        Dialect::GitHub | Dialect::Gitea => ("context", "target_url", &["success", "failure"]),
        Dialect::GitLab => ("name", "target_url", &["success", "failed"]),
        Dialect::Bitbucket => ("name", "url", &["SUCCESSFUL", "FAILED"]),
    };
    let status = HostStatus {
        sha,
        context: text(name),
        state: text("state"),
        description: text("description"),
        url: text(url),
    };
    let key = text("key");
    let has_key = dialect != Dialect::Bitbucket || (!key.is_empty() && key.chars().count() < MAX_KEY_CHARS);
    let is_short = status.description.chars().count() <= MAX_DESCRIPTION_CHARS;
    if !states.contains(&status.state.as_str()) || status.context.is_empty() || !is_short || !has_key {
        return Reply::error(StatusCode::UNPROCESSABLE_ENTITY);
    }
    known.statuses.push(status);
    created(Reply::json(&json!({ "id": 1, "url": "https://host.test/status" })))
}
