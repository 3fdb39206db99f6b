//! Every request of the clients is one that its provider describes (GitHub, Gitea, Forgejo), or that a published client
//! makes for the same question (GitLab, Bitbucket). `scripts/code-host-apis.mjs` writes what is compared with.

use std::collections::{BTreeMap, BTreeSet};

use callboard_domain::time::Timestamp;
use callboard_integrations::scm::{
    CommitQuery, CommitStatus, Provider, Repository, RequestQuery, SourceControl, TicketKind, connect,
};
use callboard_platform::egress::{AdminUrl, Allowed};
use callboard_test_support::code_host::{Issue, PullRequest, Recorded, RequestState, TOKEN};
use callboard_test_support::{CodeHost, Dialect};
use serde::Deserialize;
use serde_json::Value;

const BASE: &str = "1111111111111111111111111111111111111111";
const HEAD: &str = "2222222222222222222222222222222222222222";
const BRANCH: &str = "feature/ü";
const FILE: &str = "src/ä b#1.ts";
const TEXT: &str = "A *comment*";

/// What a parameter or a property takes.
#[derive(Deserialize)]
struct Shape {
    types: Vec<String>,
    words: Option<Vec<Value>>,
    maximum: Option<i64>,
}

#[derive(Deserialize)]
struct Body {
    required: Vec<String>,
    properties: BTreeMap<String, Shape>,
}

#[derive(Deserialize)]
struct Operation {
    method: String,
    path: String,
    query: BTreeMap<String, Shape>,
    required: Vec<String>,
    body: Option<Body>,
}

#[derive(Deserialize)]
struct Description {
    operations: Vec<Operation>,
}

/// A request of a published client.
#[derive(Debug, Deserialize)]
struct Made {
    question: String,
    method: String,
    path: String,
    query: Vec<(String, String)>,
    #[serde(default)]
    body: Value,
}

#[derive(Deserialize)]
struct Recording {
    requests: Vec<Made>,
}

/// A request of ours, below the repository, with the hashes of the description.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Ours {
    method: String,
    path: String,
    query: Vec<(String, String)>,
    body: Value,
}

/// Every request that the client of a provider makes.
async fn asked(dialect: Dialect) -> Vec<Ours> {
    callboard_http::install_tls();
    let host = CodeHost::start().await.expect("a code host");
    let base = host.commit("Begin", &[(FILE, Some(b"old\n"))]).expect("a commit");
    host.git(&["checkout", "--quiet", "-b", BRANCH]).expect("a branch");
    let head = host.commit("Go on", &[(FILE, Some(b"new\n"))]).expect("a commit");
    let (title, branch) = ("Add a cart".to_owned(), BRANCH.to_owned());
    let state = RequestState::Open;
    host.set_pull_request(PullRequest { number: 7, title: title.clone(), branch, state, is_fork: false });
    host.set_issue(Issue { number: 3, title, is_open: true });

    let provider = Provider::parse(dialect.word()).expect("a provider");
    let repository = Repository::from_address(&host.address(dialect), provider).expect("a repository");
    let allowed = Allowed::read(&["127.0.0.0/8".to_owned()]).expect("a network");
    let client = connect(AdminUrl::new(allowed), repository, TOKEN, Timestamp(1_800_000_000_000));
    ask_everything(client.as_ref(), &base, &head).await;

    let named = |text: &str| text.replace(&base, BASE).replace(&head, HEAD);
    let ours = |asked: Recorded| {
        let mut query: Vec<(String, String)> =
            asked.query.into_iter().map(|(name, value)| (name, named(&value))).collect();
        query.sort();
        Ours { method: asked.method.to_string(), path: named(&asked.path), query, body: asked.body }
    };
    host.take_requests().into_iter().map(ours).collect()
}

async fn ask_everything(client: &dyn SourceControl, base: &str, head: &str) {
    let start = |start: &str, base: Option<&str>| CommitQuery {
        start: Some(start.to_owned()),
        base: base.map(str::to_owned),
        limit: 20,
        page: None,
    };
    client.check().await.expect("a repository");
    client.commits(&start(BRANCH, None), None).await.expect("commits");
    client.commits(&start(head, Some(base)), None).await.expect("commits");
    client.commit_diff(head).await.expect("a diff");
    client.range_diff(base, head).await.expect("a diff");
    client.file_at(head, FILE).await.expect("an answer").expect("a file");
    for query in [
        RequestQuery::Commit(head.to_owned()),
        RequestQuery::Branch(BRANCH.to_owned()),
        RequestQuery::Open,
        RequestQuery::Number(7),
    ] {
        client.change_requests(&query, None).await.expect("requests");
    }
    assert!(client.find_comment(7, "marker").await.expect("an answer").is_none());
    let comment = client.create_comment(7, TEXT).await.expect("a comment");
    assert_eq!(comment.id, "901");
    assert!(client.has_comment(7, &comment.id).await.expect("an answer"));
    client.update_comment(7, &comment.id, TEXT).await.expect("an answer").expect("a comment");
    let url = "https://callboard.example/1";
    let status = CommitStatus { context: "e2e", is_success: true, description: "All passed", url };
    client.set_status(head, &status).await.expect("a status");
    client.ticket(TicketKind::Issue, 3).await.expect("an answer").expect("an issue");
    client.ticket(TicketKind::Request, 7).await.expect("an answer").expect("a request");
}

impl Shape {
    fn takes(&self, value: &Value) -> bool {
        let fits = |kind: &String| match kind.as_str() {
            "string" => value.is_string(),
            "integer" | "number" => value.is_i64(),
            "boolean" => value.is_boolean(),
            "null" => value.is_null(),
            _ => false,
        };
        self.types.iter().any(fits)
            && self.words.as_ref().is_none_or(|words| words.contains(value))
            && self.maximum.is_none_or(|most| value.as_i64().is_none_or(|number| number <= most))
    }

    /// The value of a query, as what it is meant to be.
    fn takes_text(&self, text: &str) -> bool {
        let read = serde_json::from_str(text).unwrap_or_default();
        self.takes(&Value::from(text)) || self.takes(&read)
    }
}

impl Operation {
    /// How many segments of the path are words of the operation; `None` where it is of another one.
    fn matches(&self, asked: &Ours) -> Option<usize> {
        let own = self.path.strip_prefix("/repos/{owner}/{repo}")?;
        let (wanted, given): (Vec<&str>, Vec<&str>) =
            (own.split('/').collect(), asked.path.split('/').collect());
        // The path of a file is the end of an address.
        let is_open = own.ends_with("{path}") || own.ends_with("{filepath}");
        let has_length = if is_open { given.len() >= wanted.len() } else { given.len() == wanted.len() };
        let fits = |(wanted, given): (&&str, &&str)| match *wanted {
            "{sha}.{diffType}" => given.ends_with(".diff"),
            _ if wanted.starts_with('{') => !given.is_empty(),
            _ => wanted == given,
        };
        if self.method != asked.method || !has_length || !wanted.iter().zip(&given).all(fits) {
            return None;
        }
        Some(wanted.iter().filter(|part| !part.starts_with('{') || part.contains('.')).count())
    }

    /// What of a request is not described.
    fn complaint(&self, asked: &Ours) -> Option<String> {
        for (name, value) in &asked.query {
            if !self.query.get(name).is_some_and(|shape| shape.takes_text(value)) {
                return Some(format!("{name}={value}"));
            }
        }
        let has = |name: &&String| asked.query.iter().any(|(given, _)| given == *name);
        if let Some(missing) = self.required.iter().find(|name| !has(name)) {
            return Some(format!("{missing} is missing"));
        }
        let sent = asked.body.as_object();
        let Some(body) = &self.body else { return sent.map(|_| "a body".to_owned()) };
        let Some(sent) = sent else { return Some("no body".to_owned()) };
        if let Some(missing) = body.required.iter().find(|name| !sent.contains_key(*name)) {
            return Some(format!("{missing} is missing in the body"));
        }
        let odd = sent
            .iter()
            .find(|(name, value)| !body.properties.get(*name).is_some_and(|shape| shape.takes(value)));
        odd.map(|(name, value)| format!("{name}: {value} in the body"))
    }
}

impl Description {
    fn complaint(&self, asked: &Ours) -> Option<String> {
        let found =
            self.operations.iter().filter_map(|operation| Some((operation.matches(asked)?, operation)));
        match found.max_by_key(|(words, _)| *words) {
            Some((_, operation)) => operation.complaint(asked),
            None => Some("no operation".to_owned()),
        }
    }
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let path = format!("{}/../data/code-hosts/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("a description")
}

#[tokio::test]
async fn requests_are_those_that_github_gitea_and_forgejo_describe() {
    for (dialect, name) in
        [(Dialect::GitHub, "github"), (Dialect::Gitea, "gitea"), (Dialect::Gitea, "forgejo")]
    {
        let description: Description = read(name);
        let asked = asked(dialect).await;
        let complaints: Vec<(&Ours, String)> =
            asked.iter().filter_map(|asked| Some((asked, description.complaint(asked)?))).collect();
        assert!(complaints.is_empty(), "{name}: {complaints:#?}");
        for operation in &description.operations {
            let is_used = asked.iter().any(|asked| operation.matches(asked).is_some());
            assert!(is_used, "{name}: {} {} is not asked for", operation.method, operation.path);
        }
        // What is not described is noticed.
        let query = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
        let like = asked.iter().find(|asked| asked.path == "/commits").expect("commits").clone();
        for odd in [
            Ours { query: query("per-page", "20"), ..like.clone() },
            Ours { query: query("page", "first"), ..like.clone() },
            Ours { path: "/commit".to_owned(), ..like.clone() },
            Ours { body: serde_json::json!({ "body": "x" }), ..like },
        ] {
            assert!(description.complaint(&odd).is_some(), "{name}: {odd:?}");
        }
    }
}

/// A request as the two clients can be compared.
fn comparable(method: &str, path: &str, query: &[(String, String)], body: &Value) -> Ours {
    // One of them writes slashes of a file's path as they are, and a parameter may be repeated.
    let path = percent_encoding::percent_decode_str(path).decode_utf8_lossy().into_owned();
    let mut names = BTreeSet::new();
    let mut query = query.to_vec();
    query.sort_by_key(|(name, value)| (name.clone(), value != "OPEN"));
    query.retain(|(name, _)| names.insert(name.clone()));
    Ours { method: method.to_owned(), path, query, body: body.clone() }
}

#[tokio::test]
async fn requests_are_those_of_published_clients_of_gitlab_and_bitbucket() {
    for (dialect, name, root) in [
        (Dialect::GitLab, "gitlab", "/api/v4/projects/acme%2Fweb%2Fshop"),
        (Dialect::Bitbucket, "bitbucket", "/2.0/repositories/acme/shop"),
    ] {
        let recording: Recording = read(name);
        let theirs: Vec<(&str, Ours)> = recording
            .requests
            .iter()
            .map(|made| {
                let path = made.path.strip_prefix(root).expect("a path below the repository");
                (made.question.as_str(), comparable(&made.method, path, &made.query, &made.body))
            })
            .collect();
        let ours: Vec<Ours> = asked(dialect)
            .await
            .iter()
            .map(|asked| comparable(&asked.method, &asked.path, &asked.query, &asked.body))
            .collect();
        for asked in &ours {
            assert!(theirs.iter().any(|(_, made)| made == asked), "{name}: {asked:#?}");
        }
        for (question, made) in &theirs {
            assert!(ours.contains(made), "{name}, {question}: {made:#?}");
        }
    }
}
