//! Listening, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::routing::any;
use callboard_http::extract::limited_bytes;
use callboard_http::serve::{ListenError, listen, serve};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

struct Running {
    port: u16,
    stop: oneshot::Sender<()>,
    done: tokio::task::JoinHandle<()>,
}

async fn start(router: Router) -> Running {
    let listener = listen("127.0.0.1", 0).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let done = tokio::spawn(serve(vec![(listener, router)], async move {
        let _ = stopped.await;
    }));
    Running { port, stop, done }
}

async fn limited(request: Request) -> String {
    match limited_bytes(request.into_body(), 1000).await {
        Ok(bytes) => format!("read {}", bytes.len()),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn a_client_that_sends_too_much_reads_the_answer_and_not_a_reset() {
    let running = start(Router::new().fallback(any(limited))).await;
    let mut client = TcpStream::connect(("127.0.0.1", running.port)).await.unwrap();
    let size = 8 * 1024 * 1024;
    let head = format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {size}\r\n\r\n");
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(&vec![b'x'; size]).await.unwrap();
    let mut answer = vec![0; 4096];
    let read = client.read(&mut answer).await.unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]).into_owned();
    assert!(answer.ends_with("the body is larger than 1000 bytes"), "{answer}");
}

#[tokio::test]
async fn a_stop_lets_open_requests_finish() {
    let (begun_tx, begun) = oneshot::channel::<()>();
    let begun_tx = Arc::new(Mutex::new(Some(begun_tx)));
    let router = Router::new().fallback(any(move |_: Request<Body>| {
        let signal = begun_tx.lock().unwrap().take();
        async move {
            signal.into_iter().for_each(|signal| signal.send(()).unwrap());
            tokio::time::sleep(Duration::from_millis(50)).await;
            "finished"
        }
    }));
    let running = start(router).await;
    let mut client = TcpStream::connect(("127.0.0.1", running.port)).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    begun.await.unwrap();
    running.stop.send(()).unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("finished"), "{answer}");
    running.done.await.unwrap();
    assert!(TcpStream::connect(("127.0.0.1", running.port)).await.is_err());
}

#[tokio::test]
async fn a_taken_port_is_named_with_the_way_out() {
    let first = listen("127.0.0.1", 0).await.unwrap();
    let port = first.local_addr().unwrap().port();
    let error = listen("127.0.0.1", port).await.unwrap_err();
    assert!(matches!(error, ListenError::Taken { .. }));
    assert!(error.to_string().contains(&format!("port {port} on 127.0.0.1 is taken")));
    assert!(error.to_string().contains("SERVICE_PORT"));
}
