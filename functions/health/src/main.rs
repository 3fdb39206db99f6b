//! The function `health` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("health", callboard_fn_health::router).await
}
