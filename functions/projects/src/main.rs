//! The function `projects` on its own.

#[tokio::main]
async fn main() -> std::process::ExitCode {
    callboard_http::serve_function("projects", callboard_fn_projects::router).await
}
