//! The function `settings` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("settings", callboard_fn_settings::router).await
}
