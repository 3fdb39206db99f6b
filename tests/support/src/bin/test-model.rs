//! A model endpoint for clients in other languages: prints its address, and runs until it is stopped.

use std::io::Write as _;

use anyhow::Result;
use callboard_test_support::ModelServer;

#[tokio::main]
async fn main() -> Result<()> {
    let server = ModelServer::start().await?;
    let mut out = std::io::stdout();
    writeln!(out, "http://{}", server.host())?;
    out.flush()?;
    std::future::pending().await
}
