//! The function `clusters` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("clusters", callboard_fn_clusters::router).await
}
