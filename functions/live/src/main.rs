//! The function `live` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("live", callboard_fn_live::router).await
}
