//! Listening: HTTP/1.1 on sockets, with a graceful stop.

mod unreadable;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use callboard_auth::client_address::Peer;
use http::header::{HOST, HeaderValue};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutWriter;
use tower::ServiceExt;

pub(crate) use unreadable::Unreadable;
use unreadable::{Answering, Exchange};

/// How long a client may take to send its headers.
const HEADER_TIME: Duration = Duration::from_secs(30);
/// How long a client may take none of an answer that waits for it. A download
/// that a person pauses is gone on with by a range afterwards.
const STALL_TIME: Duration = Duration::from_secs(120);
/// How long open requests may take after a stop was asked for.
const STOP_TIME: Duration = Duration::from_secs(20);

/// A port that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    /// Somebody else listens there.
    #[error(
        "port {port} on {host} is taken by another process; stop that one, or set SERVICE_PORT to a free port"
    )]
    Taken {
        /// The address.
        host: String,
        /// The port.
        port: u16,
    },
    /// Any other reason.
    #[error("cannot listen on {host}:{port} (SERVICE_HOST, SERVICE_PORT): {source}")]
    Refused {
        /// The address.
        host: String,
        /// The port.
        port: u16,
        /// What the system said.
        source: std::io::Error,
    },
}

/// Opens a listening socket.
///
/// # Errors
/// [`ListenError`].
pub async fn listen(host: &str, port: u16) -> Result<TcpListener, ListenError> {
    let name = host.trim_matches(['[', ']']);
    TcpListener::bind((name, port)).await.map_err(|source| match source.kind() {
        std::io::ErrorKind::AddrInUse => ListenError::Taken { host: host.to_owned(), port },
        _ => ListenError::Refused { host: host.to_owned(), port, source },
    })
}

/// Serves routers on their listeners until `stop` completes, then lets open
/// requests finish.
pub async fn serve(doors: Vec<(TcpListener, Router)>, stop: impl Future<Output = ()>) {
    serve_within(doors, stop, STALL_TIME).await;
}

async fn serve_within(doors: Vec<(TcpListener, Router)>, stop: impl Future<Output = ()>, stall: Duration) {
    let graceful = GracefulShutdown::new();
    let (doors, routers): (Vec<_>, Vec<_>) = doors.into_iter().unzip();
    let mut stop = std::pin::pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            (index, accepted) = accept_any(&doors) => match accepted {
                Ok((stream, address)) => {
                    connect(stream, Peer(address.ip()), routers[index].clone(), &graceful, stall);
                }
                Err(error) => pause_after(&error).await,
            },
        }
    }
    drop(doors);
    if tokio::time::timeout(STOP_TIME, graceful.shutdown()).await.is_err() {
        tracing::warn!("stopped with requests still open");
    }
}

async fn accept_any(doors: &[TcpListener]) -> (usize, std::io::Result<(TcpStream, SocketAddr)>) {
    std::future::poll_fn(|cx| {
        for (index, door) in doors.iter().enumerate() {
            if let std::task::Poll::Ready(accepted) = door.poll_accept(cx) {
                return std::task::Poll::Ready((index, accepted));
            }
        }
        std::task::Poll::Pending
    })
    .await
}

/// Out of file descriptors is the usual reason; trying immediately would spin.
async fn pause_after(error: &std::io::Error) {
    tracing::warn!(%error, "a connection could not be accepted");
    tokio::time::sleep(Duration::from_millis(100)).await;
}

fn connect(stream: TcpStream, peer: Peer, router: Router, graceful: &GracefulShutdown, stall: Duration) {
    // Answers are small and complete; waiting to fill packets only delays them.
    let _ = stream.set_nodelay(true);
    // Or a reader that went to sleep would keep its stream, and what that holds,
    // for as long as its system answers: a body nobody asks for cannot end itself.
    let mut stream = TimeoutWriter::new(stream);
    stream.set_timeout(Some(stall));
    let exchange = Exchange::default();
    let stream = Answering::new(Box::pin(stream), router.clone(), peer, exchange.clone());
    let service = service_fn(move |mut request: Request<Incoming>| {
        let (router, exchange) = (router.clone(), exchange.clone());
        exchange.begin();
        request.extensions_mut().insert(peer);
        believe_target(&mut request);
        async move {
            match router.oneshot(request.map(Body::new)).await {
                Ok(response) => Ok::<_, Infallible>(exchange.ending_with(response)),
                Err(never) => match never {},
            }
        }
    });
    let connection = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), service);
    let connection = graceful.watch(connection);
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "connection ended");
        }
    });
}

/// A request line that names a server is sent to that one: what `Host` says
/// besides does not count (RFC 9112, section 3.2.2). Everything behind this asks
/// `Host`, so it is made to say the same. Two of that header stay two, which is
/// none for whoever asks.
fn believe_target<B>(request: &mut Request<B>) {
    let named = request.uri().authority().and_then(|named| HeaderValue::from_str(named.as_str()).ok());
    if let Some(named) = named
        && request.headers().get_all(HOST).iter().nth(1).is_none()
    {
        request.headers_mut().insert(HOST, named);
    }
}

/// Completes when the process is asked to stop (Ctrl-C, or TERM).
pub async fn stop_requested() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => {
                signal.recv().await;
            }
            Err(_) => std::future::pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = std::future::pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use axum::response::Response;
    use axum::routing::get;
    use bytes::Bytes;
    use futures::stream;
    use tokio::io::AsyncWriteExt as _;
    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn an_answer_whose_reader_takes_nothing_is_let_go_of() {
        struct Told(Option<oneshot::Sender<()>>);
        impl Drop for Told {
            fn drop(&mut self) {
                let _ = self.0.take().map(|sender| sender.send(()));
            }
        }
        let (sender, let_go) = oneshot::channel();
        let body = Arc::new(std::sync::Mutex::new(Some(Told(Some(sender)))));
        let endless = move || {
            let told = body.lock().unwrap().take();
            let chunks = stream::repeat_with(move || {
                let _held = &told;
                Ok::<_, Infallible>(Bytes::from_static(&[0; 1 << 16]))
            });
            async move { Response::new(Body::from_stream(chunks)) }
        };
        let door = listen("127.0.0.1", 0).await.unwrap();
        let address = door.local_addr().unwrap();
        let doors = vec![(door, Router::new().route("/", get(endless)))];
        let served = tokio::spawn(serve_within(doors, std::future::pending(), Duration::from_millis(20)));
        let mut reader = TcpStream::connect(address).await.unwrap();
        reader.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
        let_go.await.unwrap();
        served.abort();
    }
}
