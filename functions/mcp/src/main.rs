//! The function `mcp` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("mcp", callboard_fn_mcp::router).await
}
