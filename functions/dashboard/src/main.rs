//! The function `dashboard` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("dashboard", callboard_fn_dashboard::router).await
}
