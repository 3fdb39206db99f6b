use proptest::prelude::*;

use super::*;

const ALL: [Provider; 4] = [Provider::GitHub, Provider::GitLab, Provider::Gitea, Provider::Bitbucket];

#[track_caller]
fn owners(provider: Provider, text: &str, expected: &[(&str, Option<&str>)]) {
    let read = CodeOwners::parse(text, provider);
    for (path, owner) in expected {
        assert_eq!(read.owner_of(path), *owner, "{provider:?} {path}");
    }
}

/// The example of GitHub's own documentation.
#[test]
fn the_last_rule_wins_at_github_and_bitbucket() {
    let text = "# comment\n*  @global-owner1 @global-owner2\n*.js  @js-owner #inline\n*.go docs@example.com\n\
        *.txt @octo-org/octocats\n/build/logs/ @doctocat\ndocs/*  docs@example.org\napps/ @octocat\n\
        /docs/ @doctocat\n/scripts/ @doctocat @octocat\n**/logs @logger\n/apps/ @octocat\n/apps/github \n\
        with\\ blank/ @blank\n!*.ts @never\n";
    for provider in [Provider::GitHub, Provider::Bitbucket] {
        owners(
            provider,
            text,
            &[
                ("README.md", Some("@global-owner1")),
                ("deep/below/x.js", Some("@js-owner")),
                ("x.go", Some("docs@example.com")),
                ("a/x.txt", Some("@octo-org/octocats")),
                ("build/logs/x", Some("@logger")),
                ("deep/build/logs", Some("@logger")),
                ("docs/a.md", Some("@doctocat")),
                ("lib/apps/x.rb", Some("@octocat")),
                ("apps/web/x.rb", Some("@octocat")),
                ("apps/github/x.rb", None),
                ("apps/github", None),
                ("with blank/x", Some("@blank")),
                ("x.ts", Some("@global-owner1")),
            ],
        );
    }
    owners(
        Provider::GitHub,
        "docs/* @direct\n/a/**/z @deep\n[ab].md @range",
        &[
            ("docs/x.md", Some("@direct")),
            ("docs/deep/x.md", None),
            ("other/docs/x.md", None),
            ("a/z", Some("@deep")),
            ("a/b/c/z", Some("@deep")),
            ("a.md", None),
        ],
    );
}

/// After the examples of GitLab's reference.
#[test]
fn sections_exclusions_and_defaults_count_at_gitlab() {
    let text = "* @default\n!*.lock\n\n[Documentation] @docs-team\ndocs/\nREADME.md\n\n^[Database][2] @dba\n\
        model/db/\n/config/db/database-setup.md @docs\n!model/db/generated/\n";
    owners(
        Provider::GitLab,
        text,
        &[
            ("x.rb", Some("@default")),
            ("yarn.lock", None),
            // All sections count; the first one that has an owner names it.
            ("docs/x.md", Some("@default")),
        ],
    );
    let later = text.split_once("\n\n").expect("sections").1;
    owners(
        Provider::GitLab,
        later,
        &[
            ("docs/x.md", Some("@docs-team")),
            ("deep/docs/x.md", Some("@docs-team")),
            ("deep/README.md", Some("@docs-team")),
            ("model/db/x.rb", Some("@dba")),
            ("model/db/generated/x.rb", None),
            ("config/db/database-setup.md", Some("@docs")),
            ("x.rb", None),
        ],
    );
}

/// After the example of Gitea's documentation.
#[test]
fn expressions_match_whole_paths_at_gitea() {
    let text = "# comment\n.*\\\\.go @user1 @user2\n.*\\.go @go\n!.*\\.md @rest\ndocs/(en|de)/.* @org/team\n(((( @broken\n";
    owners(
        Provider::Gitea,
        text,
        &[
            ("a/x.go", Some("@rest")),
            ("x.md", None),
            ("docs/en/x.md", Some("@org/team")),
            ("docs/fr/x.md", None),
        ],
    );
}

#[test]
fn a_large_file_is_read_up_to_its_bound() {
    let lines: String = (0..30_000).map(|line| format!("/dir{line}/ @owner{line}\n")).collect();
    for provider in [Provider::GitHub, Provider::GitLab, Provider::Bitbucket] {
        let read = CodeOwners::parse(&lines, provider);
        assert_eq!(read.owner_of("dir19999/x"), Some("@owner19999"));
        assert_eq!(read.owner_of("dir20000/x"), None);
    }
    let deep = "a/".repeat(500);
    assert_eq!(CodeOwners::parse("* @all", Provider::GitHub).owner_of(&deep), None);
}

proptest! {
    #[test]
    fn any_file_and_any_path_have_an_answer(
        text in "([-*?/!\\[\\]^@#\\\\a-c .\n]|\\PC){0,200}", path in "[a-c./*]{0,40}",
    ) {
        for provider in ALL {
            let read = CodeOwners::parse(&text, provider);
            if let Some(owner) = read.owner_of(&path) {
                prop_assert!(text.contains(owner) && owner.contains('@'));
            }
        }
    }

    #[test]
    fn a_later_rule_wins(path in "[a-c]{1,3}(/[a-c]{1,3}){0,3}") {
        let text = format!("* @first\n/{path} @second\n");
        for provider in [Provider::GitHub, Provider::GitLab, Provider::Bitbucket] {
            let read = CodeOwners::parse(&text, provider);
            prop_assert_eq!(read.owner_of(&path), Some("@second"));
        }
    }
}
