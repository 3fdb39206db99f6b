//! The function `files` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("files", callboard_fn_files::router).await
}
