//! A function cannot answer a large file: whoever asks is sent to the bucket,
//! with an address that opens this one file for a short time.

use bytes::Bytes;
use callboard_test_functions::both::{Both, get, request, run, test_cases};
use callboard_test_support::{Client, Form};
use http::header::{ACCEPT, CONTENT_TYPE, HOST, RANGE};
use http::{Method, Request};
use serde_json::Value;

const VIDEO_BYTES: usize = 5_000_000;

/// Stores a run with a large video and a large page; their ids.
async fn stored(both: &Both) -> [Value; 2] {
    let mut video = b"\x1a\x45\xdf\xa3\x9f\x42\x86\x81\x01\x42\xf7\x81\x01\x42\xf2\x81\x04\x42\xf3\x81\x08\x42\x82\x84webm".to_vec();
    video.extend((0..VIDEO_BYTES - video.len()).map(|at| u8::try_from(at % 251).expect("stored")));
    let page = format!("<!doctype html><title>Page</title>{}", "<p>much</p>".repeat(500_000));
    let form = Form::new()
        .field("projectName", "shop")
        .field("testRun", run("shop").to_string())
        .field("testCases", test_cases().to_string())
        .field("attach_meta_1", r#"[{"name":"video","contentType":"video/webm","originalName":"Übersicht 1.webm"},{"name":"page","contentType":"text/html","originalName":"page.html"}]"#)
        .file("attach_file_1", "video.webm", "video/webm", &video)
        .file("attach_file_1", "page.html", "text/html", page.as_bytes());
    let request = request(Method::POST, "/api/test-runs/upload").header(CONTENT_TYPE, Form::content_type());
    let uploaded = both
        .ask_runner(&request.body(form.into_body()).expect("stored"))
        .await
        .expect("stored")
        .success()
        .expect("stored");
    let detail = format!("/api/test-runs/{}", uploaded["runId"]);
    let detail =
        both.ask_runner(&get(&detail).expect("stored")).await.expect("stored").success().expect("stored");
    let files = format!("/api/test-run-cases/{}/files", detail["testCases"][0]["id"]);
    let files =
        both.ask_runner(&get(&files).expect("stored")).await.expect("stored").success().expect("stored");
    ["video", "page"].map(|name| {
        let found = files["items"].as_array().expect("stored").iter().find(|file| file["name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {files}"))["id"].clone()
    })
}

#[tokio::test]
async fn a_large_file_is_read_from_the_bucket_by_an_address_for_it_alone() {
    let both = Both::start().await.unwrap();
    let [video, page] = stored(&both).await;
    let path = format!("/api/files/{video}");
    let sent = both.functions.send(&get(&path).unwrap()).await.unwrap();
    assert_eq!((sent.status.as_u16(), sent.header("cache-control")), (302, "no-store"), "{}", sent.text());
    let address = sent.header("location").to_owned();
    let signed = address.strip_prefix(both.bucket.endpoint()).expect("an address of the bucket");
    assert!(signed.contains("X-Amz-Expires=300"), "{signed}");

    let bucket = Client::new(both.bucket.endpoint().to_owned()).unwrap();
    let read = bucket.get(signed).await.unwrap();
    assert_eq!((read.status.as_u16(), read.body.len()), (200, VIDEO_BYTES));
    assert_eq!(read.header("content-type"), "video/webm");
    assert!(read.header("content-disposition").starts_with("inline; filename="), "{:?}", read.headers);
    let by_runner = both.ask_runner(&get(&path).unwrap()).await.unwrap();
    assert_eq!((by_runner.status.as_u16(), by_runner.body == read.body), (200, true));

    // It opens nothing else, and in no other way.
    for (one, other) in [
        ("video%2Fwebm", "text%2Fhtml"),
        ("inline", "attachment"),
        ("X-Amz-Expires=300", "X-Amz-Expires=900"),
    ] {
        assert!(signed.contains(one), "{one} in {signed}");
        let altered = bucket.get(&signed.replacen(one, other, 1)).await.unwrap();
        assert_eq!(altered.status.as_u16(), 403, "{other}: {}", altered.text());
    }

    // What fits is answered by the function itself.
    let part = request(Method::GET, &path).header(RANGE, "bytes=10-19").body(Bytes::new()).unwrap();
    let part = both.functions.send(&part).await.unwrap();
    assert_eq!((part.status.as_u16(), &part.body[..]), (206, &read.body[10..20]));
    let head = request(Method::HEAD, &path).body(Bytes::new()).unwrap();
    assert_eq!(both.functions.send(&head).await.unwrap().status.as_u16(), 200);
    let never = both.functions.send(&get(&format!("{path}?redirect=never")).unwrap()).await.unwrap();
    assert_eq!(
        (never.status.as_u16(), &never.json().unwrap()["code"]),
        (413, &Value::from("answer_too_large"))
    );

    // What could run script is opened apart from everything, or saved.
    let opened = both.functions.send(&get(&format!("/api/files/{page}")).unwrap()).await.unwrap();
    assert!(opened.header("location").starts_with("https://files.example.org/f/"), "{:?}", opened.headers);
    // There a browser gets a page that loads it in ranges, whoever else asks is sent to them.
    let opened =
        opened.header("location").strip_prefix("https://files.example.org").expect("the other origin");
    let apart = || Request::get(opened).header(HOST, "files.example.org");
    let loader =
        both.functions.send(&apart().header(ACCEPT, "text/html").body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!((loader.status.as_u16(), loader.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(loader.text().contains("Number('4404019')"), "{}", loader.text());
    let part = apart().header(RANGE, "bytes=0-4404018").body(Bytes::new()).unwrap();
    let part = both.functions.send(&part).await.unwrap();
    assert_eq!((part.status.as_u16(), part.body.len()), (206, 4_404_019));
    let other = both.functions.send(&apart().body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(other.status.as_u16(), 413, "{}", other.text());
    let saved = both.functions.send(&get(&format!("/api/files/{page}?download=1")).unwrap()).await.unwrap();
    let signed = saved
        .header("location")
        .strip_prefix(both.bucket.endpoint())
        .expect("an address of the bucket")
        .to_owned();
    let saved = bucket.get(&signed).await.unwrap();
    assert_eq!(saved.header("content-type"), "application/octet-stream");
    assert!(saved.header("content-disposition").starts_with("attachment; "), "{:?}", saved.headers);
}
