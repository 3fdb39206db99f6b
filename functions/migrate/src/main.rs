//! The function `migrate` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_invoked_function("migrate", callboard_fn_migrate::invoked).await
}
