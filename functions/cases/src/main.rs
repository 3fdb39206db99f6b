//! The function `cases` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("cases", callboard_fn_cases::router).await
}
