//! The function `analytics` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("analytics", callboard_fn_analytics::router).await
}
