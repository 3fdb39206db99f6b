//! The function `submit` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("submit", callboard_fn_submit::router).await
}
