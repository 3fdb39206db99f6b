//! The function `runs` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("runs", callboard_fn_runs::router).await
}
