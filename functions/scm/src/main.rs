//! The function `scm` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("scm", callboard_fn_scm::router).await
}
