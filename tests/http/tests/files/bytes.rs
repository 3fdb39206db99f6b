//! Ranges of every kind of file, what is said of them, and names that find
//! nothing.

use std::path::{Path, PathBuf};

use callboard_test_support::{Answer, Client, for_each_service};
use reqwest::StatusCode;
use reqwest::header::{IF_NONE_MATCH, IF_RANGE, RANGE};
use sha2::{Digest as _, Sha256};

use super::{ask, head, path_of, raw, sent_to, store};

#[tokio::test]
async fn one_range_of_every_kind_of_file_is_answered() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let report =
            path_of(&sent_to(service, &format!("/api/files/{}index.html", stored.report)).await).to_owned();
        let below = report.strip_suffix("index.html").expect("an entry page");
        for (path, bytes) in [
            (format!("/api/files/{}", stored.id("shot")), &stored.shot),
            (format!("/api/files/{}", stored.id("trace")), &stored.trace),
            (format!("/api/files/{}data/table.bin", stored.report), &stored.table),
            (format!("{below}data/table.bin"), &stored.table),
        ] {
            ranges_are_answered(service.client(), &path, bytes).await;
        }
    })
    .await;
}

async fn ranges_are_answered(client: &Client, path: &str, bytes: &[u8]) {
    let size = bytes.len();
    let whole = ask(client, path, &[]).await;
    assert_eq!(whole.status, StatusCode::OK, "{path}");
    assert!(whole.body == bytes, "{path} differs");
    assert_eq!(whole.header("accept-ranges"), "bytes");
    let tag = whole.header("etag");
    assert!(tag.starts_with('"') && tag.len() > 60, "{path} has a strong tag: {tag}");

    for (range, from, to) in [
        ("bytes=0-0".to_owned(), 0, 1),
        (format!("bytes={}-", size - 1), size - 1, size),
        ("bytes=-7".to_owned(), size - 7, size),
        (format!("bytes=-{}", size + 1), 0, size),
        ("bytes=100-299".to_owned(), 100, 300),
        (format!("bytes=500-{}", size * 2), 500, size),
    ] {
        let part = ask(client, path, &[(RANGE, &range), (IF_RANGE, tag)]).await;
        assert_eq!(part.status, StatusCode::PARTIAL_CONTENT, "{path} {range}");
        assert_eq!(part.header("content-range"), format!("bytes {from}-{}/{size}", to - 1), "{range}");
        assert!(part.body == bytes[from..to], "{path} {range} differs");
        assert_eq!((part.header("etag"), part.header("content-type")), (tag, whole.header("content-type")));
    }
    for range in [format!("bytes={size}-"), "bytes=-0".to_owned()] {
        let outside = ask(client, path, &[(RANGE, &range)]).await;
        assert_eq!(outside.status, StatusCode::RANGE_NOT_SATISFIABLE, "{path} {range}");
        assert_eq!(outside.header("content-range"), format!("bytes */{size}"));
        assert_eq!(outside.json().expect("an error")["code"], "range_not_satisfiable");
    }
    let stale = format!("W/{tag}");
    for headers in [
        &[(RANGE, "bytes=0-1,5-6")][..],
        &[(RANGE, "bytes=9-1")],
        &[(RANGE, "bytes=0-1"), (IF_RANGE, "\"another\"")],
        &[(RANGE, "bytes=0-1"), (IF_RANGE, &stale)],
        &[(RANGE, "bytes=0-1"), (IF_RANGE, "Wed, 21 Oct 2015 07:28:00 GMT")],
    ] {
        let answer = ask(client, path, headers).await;
        assert_eq!((answer.status, answer.body.len()), (StatusCode::OK, size), "{path} {headers:?}");
    }

    let known = ask(client, path, &[(IF_NONE_MATCH, tag), (RANGE, "bytes=0-1")]).await;
    assert_eq!((known.status, known.body.len()), (StatusCode::NOT_MODIFIED, 0), "{path}");
    assert_eq!(known.header("etag"), tag);
    let head = head(client, path).await;
    assert_eq!((head.status, head.body.len()), (StatusCode::OK, 0));
    for name in
        ["content-length", "content-type", "content-disposition", "etag", "accept-ranges", "cache-control"]
    {
        assert!(!head.header(name).is_empty(), "{path}: HEAD says {name}");
        assert_eq!(head.header(name), whole.header(name), "{path}: {name}");
    }
}

#[tokio::test]
async fn a_file_says_what_it_is_and_how_long_it_stays() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let client = service.client();
        let shot = ask(client, &format!("/api/files/{}", stored.id("shot")), &[]).await;
        assert_eq!(shot.header("etag"), format!("\"{}\"", hex::encode(Sha256::digest(&stored.shot))));
        assert_eq!(shot.header("cache-control"), "private, max-age=31536000, immutable");
        assert_eq!(shot.header("content-type"), "image/png");
        assert_eq!(shot.header("content-disposition"), "inline; filename=\"shot.png\"");
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("referrer-policy", "no-referrer"),
            ("cross-origin-resource-policy", "same-origin"),
        ] {
            assert_eq!(shot.header(name), value, "{name}");
        }
        assert!(shot.header("content-security-policy").starts_with("default-src 'none'"));
        let entry = ask(client, &format!("/api/files/{}data/shot.png", stored.report), &[]).await;
        assert_eq!(
            (entry.header("cache-control"), entry.header("content-type")),
            ("private, no-cache", "image/png")
        );
        let odd = ask(client, &format!("/api/files/{}odd%20%231%3B%20100%25.txt", stored.report), &[]).await;
        assert_eq!((odd.status, odd.text().as_str()), (StatusCode::OK, "odd"));
        let empty = ask(client, &format!("/api/files/{}empty.txt", stored.report), &[]).await;
        assert_eq!((empty.status, empty.header("content-length")), (StatusCode::OK, "0"));
        let page = ask(client, &format!("/api/files/{}?download=1", stored.id("page")), &[]).await;
        assert_eq!(
            page.header("content-disposition"),
            "attachment; filename=\"_bersicht.html\"; filename*=UTF-8''%C3%9Cbersicht.html"
        );
    })
    .await;
}

#[tokio::test]
async fn a_path_trick_finds_nothing() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let other = store(service, "another shop").await;
        let (report, entry) = (&stored.report, format!("{}app.js", stored.report));
        assert!(raw(service, &format!("/api/files/{entry}")).await.starts_with("HTTP/1.1 200"));
        let other_project = other.report.split('/').next().expect("a project");
        let swapped = report.replacen(report.split('/').next().expect("a project"), other_project, 1);
        for trick in [
            "../../../etc/passwd".to_owned(),
            "%2e%2e/%2e%2e/%2e%2e/etc/passwd".to_owned(),
            "..%2f..%2f..%2fetc/passwd".to_owned(),
            format!("./{entry}"),
            format!("/{entry}"),
            format!("{report}/app.js"),
            format!("{report}data/../app.js"),
            format!("{report}data/%2e%2e/app.js"),
            format!("{report}data/%2E./app.js"),
            format!("{report}data%2ftable.bin"),
            format!("{report}data\\table.bin"),
            format!("{report}data%5ctable.bin"),
            format!("{entry}%00"),
            format!("{entry}%00.png"),
            format!("{entry}/"),
            format!("{entry}/x"),
            format!("{entry};x=1"),
            format!("{report}data"),
            report.trim_end_matches('/').to_owned(),
            format!("{report}%ff"),
            format!("{report}{}", "x".repeat(300)),
            format!("{report}a%231"),
            format!("{swapped}app.js"),
            entry.replacen("project-", "project-0", 1),
            entry.replacen("project-", "PROJECT-", 1),
            entry.replacen("reports", "blobs", 1),
            "0".to_owned(),
            "-1".to_owned(),
            format!("0{}", stored.id("shot")),
            format!("{}%20", stored.id("shot")),
            "9223372036854775808".to_owned(),
        ] {
            let answer = raw(service, &format!("/api/files/{trick}")).await;
            assert!(answer.starts_with("HTTP/1.1 404"), "{trick}: {answer}");
            assert!(answer.contains("_not_found\""), "{trick}: {answer}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_symbolic_link_in_a_report_leads_nowhere() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let outside = service.database().folder().join("outside");
        std::fs::create_dir(&outside).expect("a folder");
        std::fs::write(outside.join("secret.txt"), "not of this report").expect("a file");
        let report = service.database().folder().join("objects").join(stored.report.trim_end_matches('/'));
        let link = |name: &str, to: &std::path::Path| {
            std::os::unix::fs::symlink(to, report.join(name)).expect("a link");
        };
        link("file.txt", &outside.join("secret.txt"));
        link("folder", &outside);
        link("passwd.txt", std::path::Path::new("/etc/passwd"));
        for entry in ["file.txt", "folder/secret.txt", "passwd.txt", "folder", "data"] {
            for query in ["", "?download=1"] {
                let path = format!("/api/files/{}{entry}{query}", stored.report);
                let answer = ask(service.client(), &path, &[]).await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{path}: {}", answer.text());
            }
        }
        let entry = ask(service.client(), &format!("/api/files/{}app.js", stored.report), &[]).await;
        assert_eq!(entry.status, StatusCode::OK);
    })
    .await;
}

/// The stored object with these bytes.
fn object_with(folder: &Path, bytes: &[u8]) -> Option<PathBuf> {
    std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).find_map(
        |path| {
            if path.is_dir() {
                return object_with(&path, bytes);
            }
            std::fs::read(&path).is_ok_and(|read| read == bytes).then_some(path)
        },
    )
}

#[tokio::test]
async fn a_symbolic_link_in_the_place_of_a_file_leads_nowhere() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        let objects = service.database().folder().join("objects");
        let object = object_with(&objects, &stored.shot).expect("the object");
        let outside = service.database().folder().join("outside");
        std::fs::create_dir(&outside).expect("a folder");
        let secret = outside.join(object.file_name().expect("a name"));
        std::fs::write(&secret, vec![b'x'; stored.shot.len()]).expect("a file");
        let path = format!("/api/files/{}", stored.id("shot"));
        assert_eq!(ask(service.client(), &path, &[]).await.body, stored.shot);

        std::fs::remove_file(&object).expect("removed");
        std::os::unix::fs::symlink(&secret, &object).expect("a link");
        let folder = object.parent().expect("a folder").to_owned();
        for is_folder in [false, true] {
            if is_folder {
                std::fs::remove_dir_all(&folder).expect("removed");
                std::os::unix::fs::symlink(&outside, &folder).expect("a link");
            }
            for query in ["", "?download=1"] {
                let answer = ask(service.client(), &format!("{path}{query}"), &[]).await;
                assert_eq!(answer.status, StatusCode::NOT_FOUND, "{}", answer.text());
                assert_eq!(answer.json().expect("an error")["code"], "file_not_found");
            }
        }
        assert!(secret.exists(), "what lies outside stays");
    })
    .await;
}

#[tokio::test]
async fn a_type_in_the_query_is_ignored() {
    for_each_service(async |service| {
        let stored = store(service, "shop").await;
        for query in [
            "contentType=text/html",
            "contentType=text/html%0d%0aset-cookie:%20a=b&type=text/html",
            "response-content-type=text/html&filename=x.html%0d%0ax-evil:1",
        ] {
            for (name, kind) in [("shot", "image/png"), ("unknown", "application/octet-stream")] {
                let path = format!("/api/files/{}", stored.id(name));
                let answer = ask(service.client(), &format!("{path}?{query}"), &[]).await;
                assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, kind), "{query}");
                let plain = ask(service.client(), &path, &[]).await;
                let names =
                    |answer: &Answer| answer.headers.keys().map(ToString::to_string).collect::<Vec<_>>();
                assert_eq!(names(&answer), names(&plain), "{query}");
            }
        }
        let nonsense =
            ask(service.client(), &format!("/api/files/{}?download=yes", stored.id("shot")), &[]).await;
        assert_eq!(nonsense.json().expect("an error")["data"]["param"], "download");
    })
    .await;
}
