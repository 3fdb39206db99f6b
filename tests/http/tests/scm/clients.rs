//! What the clients of code hosts read besides commits and their diffs.

use callboard_integrations::scm::{Provider, Repository, SourceControl, connect};
use callboard_platform::egress::{AdminUrl, Allowed};
use callboard_test_support::code_host::TOKEN;
use callboard_test_support::{CodeHost, Dialect, Service};

fn client(host: &CodeHost, dialect: Dialect, service: &Service) -> Box<dyn SourceControl> {
    let allowed = Allowed::read(&["127.0.0.0/8".to_owned()]).expect("a network");
    let provider = Provider::parse(dialect.word()).expect("a provider");
    let repository = Repository::from_address(&host.address(dialect), provider).expect("a repository");
    connect(AdminUrl::new(allowed), repository, TOKEN, service.state().now())
}

#[tokio::test]
async fn files_are_read_at_a_commit_and_ranges_by_their_ends() {
    let service = Service::start(callboard_store::Backend::Sqlite).await.expect("a service");
    for dialect in Dialect::ALL {
        let host = CodeHost::start().await.expect("a code host");
        let name = "src/ä <b> %2f #1.ts";
        let base =
            host.commit("Begin", &[(name, Some(b"old\n")), ("gone.ts", Some(b"x\n"))]).expect("a commit");
        host.commit("Go on", &[("new.ts", Some(b"a\nb\n"))]).expect("a commit");
        let head = host.commit("End", &[(name, Some(b"new\n")), ("gone.ts", None)]).expect("a commit");
        let client = client(&host, dialect, &service);

        for (sha, contents) in [(&base, "old\n"), (&head, "new\n")] {
            let file = client.file_at(sha, name).await.expect("an answer");
            assert_eq!(file.as_deref(), Some(contents.as_bytes()), "{dialect:?}");
        }
        assert_eq!(client.file_at(&head, "gone.ts").await.expect("an answer"), None, "{dialect:?}");
        let _ = host.take_requests();
        assert_eq!(client.file_at(&head, "../../../user").await.expect("an answer"), None, "{dialect:?}");
        let asked = host.take_requests();
        assert!(asked.iter().all(|asked| asked.path.starts_with("/repository/files/")), "{asked:?}");

        let changes = client.range_diff(&base, &head).await.expect("changes");
        let mut paths: Vec<&str> = changes.files.iter().map(|file| file.path.as_str()).collect();
        paths.sort_unstable();
        assert_eq!((paths, changes.is_cut), (vec!["gone.ts", "new.ts", name], false), "{dialect:?}");
        let lines = changes.files.iter().find(|file| file.path == "new.ts").expect("a file");
        let expected = if dialect == Dialect::Gitea { None } else { Some(2) };
        assert_eq!(lines.additions, expected, "{dialect:?}");
    }
}
