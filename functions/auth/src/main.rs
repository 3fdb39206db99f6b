//! The function `auth` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("auth", callboard_fn_auth::router).await
}
