//! Finds the PostgreSQL server that tests use, and makes and drops databases
//! on it, for scripts:
//!
//! * `callboard-test-database server` prints the address of the server;
//! * `callboard-test-database create` makes an empty database, prints its address;
//! * `callboard-test-database drop <address>` drops such a database.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use callboard_store::Backend;
use callboard_test_support::databases::{TestDatabase, drop_database, server_url};

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match run(&words).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(words: &[&str]) -> Result<()> {
    let address = match words {
        ["server"] => server_url().await?,
        ["create"] => TestDatabase::empty(Backend::Postgres).await?.keep(),
        ["drop", address] => return drop_database(address).await,
        _ => bail!("usage: callboard-test-database server | create | drop <address>"),
    };
    writeln!(std::io::stdout(), "{address}")?;
    Ok(())
}
