//! The answers of the four APIs, as their documentation describes them.

use http::StatusCode;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};

use super::git::{Changed, GitRepository, Logged};
use super::pulls::{Issue, PullRequest};
use super::{Dialect, Recorded, Reply};

/// Files that GitHub puts on one page of a commit.
const GITHUB_FILES: usize = 300;
/// Most commits of a page of Gitea.
const GITEA_MAX: usize = 50;
const DEFAULT_BRANCH: &str = "main";

/// The answer to a request; `None` is a 404.
pub(super) fn reply(
    git: &GitRepository,
    (pulls, issues): (&[PullRequest], &[Issue]),
    asked: &Recorded,
) -> Option<Reply> {
    let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
    let parts: Vec<String> = asked.path.trim_start_matches('/').split('/').map(decoded).collect();
    let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
    if let Some(found) = ticket((pulls, issues), asked.dialect, &parts) {
        return Some(Reply::json(&found));
    }
    if let Some(reply) = requests(git, pulls, asked, &parts) {
        return Some(reply);
    }
    match asked.dialect {
        Dialect::GitHub => github(git, asked, &parts),
        Dialect::GitLab => gitlab(git, asked, &parts),
        Dialect::Gitea => gitea(git, asked, &parts),
        Dialect::Bitbucket => bitbucket(git, asked, &parts),
    }
}

/// One issue or request by its number.
fn ticket((pulls, issues): (&[PullRequest], &[Issue]), dialect: Dialect, parts: &[&str]) -> Option<Value> {
    let [list, number] = *parts else { return None };
    let number: u64 = number.parse().ok()?;
    let request = pulls.iter().find(|pull| pull.number == number);
    let issue = issues.iter().find(|issue| issue.number == number);
    match (dialect, list) {
        (Dialect::GitHub | Dialect::Gitea, "issues") => {
            issue.map(Issue::github).or_else(|| request.map(PullRequest::as_issue))
        }
        (Dialect::GitLab, "issues") => issue.map(Issue::gitlab),
        (Dialect::GitLab, "merge_requests") => request.map(PullRequest::gitlab),
        (Dialect::Bitbucket, "issues") => issue.map(Issue::bitbucket),
        (Dialect::Bitbucket, "pullrequests") => request.map(PullRequest::bitbucket),
        _ => None,
    }
}

/// Pull requests of a commit or of a branch, or open ones; `None` when they are not
/// asked for.
fn requests(git: &GitRepository, pulls: &[PullRequest], asked: &Recorded, parts: &[&str]) -> Option<Reply> {
    let of_commit = |sha: &str| -> Vec<&PullRequest> {
        let sha = git.resolve(sha);
        pulls.iter().filter(|pull| sha.as_ref().is_some_and(|sha| pull.has(git, sha))).collect()
    };
    let from = |branch: &str| -> Vec<&PullRequest> {
        pulls.iter().filter(|pull| pull.branch == branch && !pull.is_fork).collect()
    };
    let open = || -> Vec<&PullRequest> { pulls.iter().filter(|pull| pull.is_open()).collect() };
    let list = |found: Vec<&PullRequest>, shown: fn(&PullRequest) -> Value| {
        json!(found.into_iter().map(shown).collect::<Vec<_>>())
    };
    let body = match (asked.dialect, parts) {
        (Dialect::GitHub, ["commits", sha, "pulls"]) => match git.resolve(sha) {
            Some(sha) => list(of_commit(&sha), PullRequest::github),
            None => return Some(Reply::error(StatusCode::UNPROCESSABLE_ENTITY)),
        },
        (Dialect::GitHub, ["pulls"]) => {
            let branch = asked.parameter("head").and_then(|head| head.strip_prefix("acme:"));
            list(branch.map_or_else(open, from), PullRequest::github)
        }
        (Dialect::Gitea, ["commits", sha, "pull"]) => of_commit(sha).first()?.github(),
        (Dialect::Gitea, ["pulls"]) if asked.parameter("state") == Some("open") => {
            list(open(), PullRequest::github)
        }
        (Dialect::Gitea, ["pulls"]) => list(pulls.iter().collect(), PullRequest::github),
        (Dialect::GitLab, ["repository", "commits", sha, "merge_requests"]) => {
            list(of_commit(&git.resolve(sha)?), PullRequest::gitlab)
        }
        (Dialect::GitHub | Dialect::Gitea, ["pulls", number]) => {
            let number: u64 = number.parse().ok()?;
            pulls.iter().find(|pull| pull.number == number)?.github()
        }
        (Dialect::GitLab, ["merge_requests"]) => {
            list(asked.parameter("source_branch").map_or_else(open, from), PullRequest::gitlab)
        }
        (Dialect::Bitbucket, ["commit", sha, "pullrequests"]) => {
            json!({ "values": list(of_commit(&git.resolve(sha)?), PullRequest::bitbucket) })
        }
        (Dialect::Bitbucket, ["pullrequests"]) => {
            let named = asked.parameter("q").and_then(|q| q.strip_prefix("source.branch.name = \""));
            let branch = named.and_then(|named| named.strip_suffix('"'));
            json!({ "values": list(branch.map_or_else(open, from), PullRequest::bitbucket) })
        }
        _ => return None,
    };
    let reply = Reply::json(&body);
    Some(if asked.dialect == Dialect::Gitea { reply } else { reply.with_etag() })
}

fn number(asked: &Recorded, name: &str, default: usize) -> usize {
    asked.parameter(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// The part of a list that a page shows, and the number of the next page.
fn page<T>(list: Vec<T>, asked: &Recorded, size: usize) -> (Vec<T>, Option<u32>) {
    let at = number(asked, "page", 1).max(1);
    let goes_on = list.len() > at * size;
    let shown = list.into_iter().skip((at - 1) * size).take(size).collect();
    (shown, goes_on.then(|| u32::try_from(at + 1).unwrap_or(u32::MAX)))
}

fn github_commit(commit: &Logged) -> Value {
    let person = json!({ "name": commit.author, "email": commit.email, "date": commit.date });
    json!({
        "sha": commit.sha, "node_id": "C_1",
        "commit": { "message": commit.message, "author": person, "committer": person, "comment_count": 0 },
        "parents": commit.parents.iter().map(|sha| json!({ "sha": sha })).collect::<Vec<_>>(),
    })
}

fn github_file(file: &Changed) -> Value {
    let (additions, deletions) = file.lines.unwrap_or_default();
    let status = match file.status {
        'A' => "added",
        'D' => "removed",
        'R' => "renamed",
        _ => "modified",
    };
    let mut shown = json!({
        "filename": file.path, "status": status, "additions": additions, "deletions": deletions,
        "changes": additions + deletions,
    });
    if file.status == 'R' {
        shown["previous_filename"] = json!(file.old_path);
    }
    if !file.hunks.is_empty() {
        shown["patch"] = json!(file.hunks.trim_end_matches('\n'));
    }
    shown
}

fn github(git: &GitRepository, asked: &Recorded, parts: &[&str]) -> Option<Reply> {
    let size = number(asked, "per_page", 30);
    match parts {
        [""] => {
            Some(Reply::json(&json!({ "full_name": "acme/shop", "default_branch": DEFAULT_BRANCH, "id": 1 })))
        }
        ["commits"] => {
            if git.resolve("HEAD").is_none() {
                return Some(Reply::error(StatusCode::CONFLICT));
            }
            let start = git.resolve(asked.parameter("sha").unwrap_or(DEFAULT_BRANCH))?;
            let (shown, next) = page(git.log(&[&start]), asked, size);
            let list: Vec<Value> = shown.iter().map(github_commit).collect();
            Some(Reply::json(&json!(list)).with_next_page(next).with_etag())
        }
        ["commits", sha] => {
            let Some(sha) = git.resolve(sha) else {
                return Some(Reply::error(StatusCode::UNPROCESSABLE_ENTITY));
            };
            let mut commit = github_commit(git.log(&["-1", &sha]).first()?);
            let (shown, next) = page(git.changes(&git.parent_of(&sha), &sha), asked, GITHUB_FILES);
            commit["files"] = shown.iter().map(github_file).collect();
            Some(Reply::json(&commit).with_next_page(next))
        }
        ["compare", range] => {
            let (base, head) = range.split_once("...")?;
            let (base, head) = (git.resolve(base)?, git.resolve(head)?);
            let mut commits = git.log(&[&format!("{base}..{head}")]);
            commits.reverse();
            let total = commits.len();
            let (shown, next) = page(commits, asked, size);
            let files: Vec<Value> = match number(asked, "page", 1) {
                1 => git.changes(&merge_base(git, &base, &head)?, &head).iter().map(github_file).collect(),
                _ => Vec::new(),
            };
            let commits: Vec<Value> = shown.iter().map(github_commit).collect();
            let compared = json!({
                "status": "ahead", "ahead_by": total, "behind_by": 0, "total_commits": total, "commits": commits,
                "files": files,
            });
            Some(Reply::json(&compared).with_next_page(next))
        }
        ["contents", path @ ..] => Some(Reply::bytes(git.file_at(asked.parameter("ref")?, &path.join("/"))?)),
        _ => None,
    }
}

fn merge_base(git: &GitRepository, base: &str, head: &str) -> Option<String> {
    git.git(&["merge-base", base, head]).ok().map(|sha| sha.trim().to_owned())
}

fn gitlab_commit(commit: &Logged) -> Value {
    json!({
        "id": commit.sha, "short_id": &commit.sha[..8], "title": commit.message.lines().next(),
        "message": commit.message, "author_name": commit.author, "author_email": commit.email,
        "authored_date": commit.date, "committed_date": commit.date, "parent_ids": commit.parents,
    })
}

fn gitlab_diff(file: &Changed) -> Value {
    let binary = format!("Binary files a/{} and b/{} differ\n", file.old_path, file.path);
    json!({
        "old_path": file.old_path, "new_path": file.path, "a_mode": "100644", "b_mode": "100644",
        "new_file": file.status == 'A', "deleted_file": file.status == 'D', "renamed_file": file.status == 'R',
        "diff": if file.lines.is_none() { &binary } else { &file.hunks },
    })
}

fn gitlab(git: &GitRepository, asked: &Recorded, parts: &[&str]) -> Option<Reply> {
    let size = number(asked, "per_page", 20);
    match parts {
        [""] => {
            let branch = git.resolve("HEAD").map(|_| DEFAULT_BRANCH);
            Some(Reply::json(
                &json!({ "path_with_namespace": "acme/web/shop", "default_branch": branch, "id": 1 }),
            ))
        }
        ["repository", "commits"] => {
            let reference = asked.parameter("ref_name").unwrap_or(DEFAULT_BRANCH);
            for end in reference.split("..") {
                git.resolve(end)?;
            }
            let (shown, next) = page(git.log(&[reference]), asked, size);
            let list: Vec<Value> = shown.iter().map(gitlab_commit).collect();
            Some(Reply::json(&json!(list)).with_next_page(next).with_etag())
        }
        ["repository", "commits", sha] => {
            let sha = git.resolve(sha)?;
            Some(Reply::json(&gitlab_commit(git.log(&["-1", &sha]).first()?)))
        }
        ["repository", "commits", sha, "diff"] => {
            let sha = git.resolve(sha)?;
            let (shown, next) = page(git.changes(&git.parent_of(&sha), &sha), asked, size);
            let list: Vec<Value> = shown.iter().map(gitlab_diff).collect();
            Some(Reply::json(&json!(list)).with_next_page(next))
        }
        ["repository", "compare"] => {
            let (base, head) = (git.resolve(asked.parameter("from")?)?, git.resolve(asked.parameter("to")?)?);
            let diffs = git.changes(&merge_base(git, &base, &head)?, &head);
            let diffs: Vec<Value> = diffs.iter().map(gitlab_diff).collect();
            Some(Reply::json(&json!({ "commits": [], "diffs": diffs, "compare_timeout": false })))
        }
        ["repository", "files", path, "raw"] => {
            Some(Reply::bytes(git.file_at(asked.parameter("ref")?, path)?))
        }
        _ => None,
    }
}

fn gitea_commit(git: &GitRepository, asked: &Recorded, commit: &Logged) -> Value {
    let mut shown = github_commit(commit);
    shown["created"] = json!(commit.date);
    if asked.parameter("files") != Some("false") {
        let status = |file: &Changed| match file.status {
            'A' => "added",
            'D' => "removed",
            _ => "modified",
        };
        let changes = git.changes(&git.parent_of(&commit.sha), &commit.sha);
        shown["files"] =
            changes.iter().map(|file| json!({ "filename": file.path, "status": status(file) })).collect();
    }
    shown
}

fn gitea(git: &GitRepository, asked: &Recorded, parts: &[&str]) -> Option<Reply> {
    match parts {
        [""] => {
            let is_empty = git.resolve("HEAD").is_none();
            Some(Reply::json(
                &json!({ "full_name": "acme/shop", "default_branch": DEFAULT_BRANCH, "empty": is_empty }),
            ))
        }
        ["commits"] => {
            if git.resolve("HEAD").is_none() {
                return Some(Reply::error(StatusCode::CONFLICT));
            }
            let start = git.resolve(asked.parameter("sha").unwrap_or(DEFAULT_BRANCH))?;
            let mut range = vec![start];
            if let Some(base) = asked.parameter("not") {
                range.push(format!("^{}", git.resolve(base)?));
            }
            let range: Vec<&str> = range.iter().map(String::as_str).collect();
            let (shown, next) = page(git.log(&range), asked, number(asked, "limit", 30).min(GITEA_MAX));
            let list: Vec<Value> = shown.iter().map(|commit| gitea_commit(git, asked, commit)).collect();
            Some(Reply::json(&json!(list)).with_next_page(next))
        }
        ["git", "commits", name] => {
            if let Some(sha) = name.strip_suffix(".diff") {
                let sha = git.resolve(sha)?;
                return Some(Reply::bytes(git.diff(&git.parent_of(&sha), &sha).into_bytes()));
            }
            let sha = git.resolve(name)?;
            Some(Reply::json(&gitea_commit(git, asked, git.log(&["-1", &sha]).first()?)))
        }
        ["raw", path @ ..] => Some(Reply::bytes(git.file_at(asked.parameter("ref")?, &path.join("/"))?)),
        _ => None,
    }
}

fn bitbucket_commit(commit: &Logged) -> Value {
    json!({
        "hash": commit.sha, "type": "commit", "message": commit.message, "date": commit.date,
        "author": { "raw": format!("{} <{}>", commit.author, commit.email), "type": "author" },
        "parents": commit.parents.iter().map(|sha| json!({ "hash": sha })).collect::<Vec<_>>(),
    })
}

fn bitbucket_change(file: &Changed) -> Value {
    let (added, removed) = file.lines.unwrap_or_default();
    let status = match file.status {
        'A' => "added",
        'D' => "removed",
        'R' => "renamed",
        _ => "modified",
    };
    let old = (file.status != 'A').then(|| json!({ "path": file.old_path, "type": "commit_file" }));
    let new = (file.status != 'D').then(|| json!({ "path": file.path, "type": "commit_file" }));
    json!({
        "type": "diffstat", "status": status, "lines_added": added, "lines_removed": removed, "old": old, "new": new,
    })
}

/// A page in Bitbucket's envelope, with the address of the next one.
fn bitbucket_page(values: &[Value], next: Option<u32>, asked: &Recorded) -> Reply {
    let mut body = json!({ "values": values, "pagelen": values.len() });
    if let Some(next) = next {
        body["next"] = json!(format!("https://api.test{}?ctx=opaque&page={next}", asked.path));
    }
    Reply::json(&body)
}

/// What a spec compares: the first commit has the changes.
fn spec(git: &GitRepository, text: &str) -> Option<(String, String)> {
    match text.split_once("..") {
        Some((head, base)) => {
            let (head, base) = (git.resolve(head)?, git.resolve(base)?);
            Some((merge_base(git, &base, &head)?, head))
        }
        None => {
            let sha = git.resolve(text)?;
            Some((git.parent_of(&sha), sha))
        }
    }
}

fn bitbucket(git: &GitRepository, asked: &Recorded, parts: &[&str]) -> Option<Reply> {
    let size = number(asked, "pagelen", 30);
    match parts {
        [""] => {
            let branch = git.resolve("HEAD").map(|_| json!({ "name": DEFAULT_BRANCH, "type": "branch" }));
            Some(Reply::json(
                &json!({ "full_name": "acme/shop", "mainbranch": branch, "type": "repository" }),
            ))
        }
        ["commits"] => {
            let is_first = number(asked, "page", 1) == 1;
            if !is_first && asked.parameter("ctx") != Some("opaque") {
                return Some(Reply::error(StatusCode::BAD_REQUEST));
            }
            let mut range = vec![git.resolve(asked.parameter("include")?)?];
            if let Some(base) = asked.parameter("exclude") {
                range.push(format!("^{}", git.resolve(base)?));
            }
            let range: Vec<&str> = range.iter().map(String::as_str).collect();
            let (shown, next) = page(git.log(&range), asked, size);
            let values: Vec<Value> = shown.iter().map(bitbucket_commit).collect();
            Some(bitbucket_page(&values, next, asked).with_etag())
        }
        ["commit", sha] => {
            Some(Reply::json(&bitbucket_commit(git.log(&["-1", &git.resolve(sha)?]).first()?)))
        }
        ["diffstat", text] => {
            let (from, to) = spec(git, text)?;
            let (shown, next) = page(git.changes(&from, &to), asked, size);
            let values: Vec<Value> = shown.iter().map(bitbucket_change).collect();
            Some(bitbucket_page(&values, next, asked))
        }
        ["diff", text] => {
            let (from, to) = spec(git, text)?;
            Some(Reply::bytes(git.diff(&from, &to).into_bytes()))
        }
        ["src", sha, path @ ..] => Some(Reply::bytes(git.file_at(sha, &path.join("/"))?)),
        _ => None,
    }
}
