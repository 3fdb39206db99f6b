//! The function `users` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("users", callboard_fn_users::router).await
}
