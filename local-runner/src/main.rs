//! `callboard`: the service on one machine.

use std::process::ExitCode;
use std::time::Duration;

use callboard_auth::keys::Secrets;
use callboard_auth::sealed::StoredSecrets;
use callboard_fn_jobs::{Budget, run_due};
use callboard_http::{AppState, Clock, install_tls, serve};
use callboard_local_runner::run;
use callboard_platform::config::{Config, EXIT_CONFIG, Platform, registry};
use callboard_platform::telemetry;
use callboard_query::accounts::enabling;
use callboard_query::project_editing::{Rotated, rotate_secrets as rotate_secrets_of};
use clap::{Parser, Subcommand};
use tokio_util::sync::CancellationToken;

/// How long `work` begins jobs: about as long as until it is called again.
const WORK_TIME: Duration = Duration::from_secs(50);

/// Work moves between many threads here, and the system's allocator keeps what each
/// of them had at most.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// Keeps the results of Playwright runs, and shows them.
#[derive(Parser)]
#[command(name = "callboard", version)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    /// Run the service (the default).
    Serve,
    /// Bring the database up to date and exit.
    Migrate,
    /// Do the background work that is due, and exit: for platforms that stop the service between requests.
    Work,
    /// Make an account an administrator's, and print a link to set its password.
    GrantAdministrator {
        /// Name the account signs in with.
        username: String,
    },
    /// Seal all stored secrets anew under the first key of SERVICE_SECRET_KEY.
    RotateSecrets,
    /// Print the OpenAPI document.
    Openapi,
    /// Print the table of configuration variables.
    Config,
}

#[tokio::main]
async fn main() -> ExitCode {
    let result = match Arguments::parse().command.unwrap_or(Command::Serve) {
        Command::Openapi => {
            callboard_local_runner::openapi().to_pretty_json().map(|json| say(&json)).map_err(Into::into)
        }
        Command::Config => {
            say(registry::markdown_table().trim_end());
            Ok(())
        }
        Command::Serve => match configuration() {
            Ok(config) => serve(config).await,
            Err(refused) => return refused,
        },
        Command::GrantAdministrator { username } => match configuration() {
            Ok(config) => grant_administrator(config, &username).await,
            Err(refused) => return refused,
        },
        Command::RotateSecrets => match configuration() {
            Ok(config) => rotate_secrets(config).await,
            Err(refused) => return refused,
        },
        Command::Work => match configuration() {
            Ok(config) => work(config).await,
            Err(refused) => return refused,
        },
        Command::Migrate => match configuration() {
            Ok(config) => migrate(config).await,
            Err(refused) => return refused,
        },
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain(&format!("{error:#}"));
            ExitCode::FAILURE
        }
    }
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let ready = run::prepare(config).await?;
    say(&ready.banner()?);
    let store = ready.state().store().clone();
    ready.serve(serve::stop_requested()).await;
    // The last connection to a file that is closed leaves nothing beside it.
    store.db().close().await;
    say("Callboard has stopped");
    Ok(())
}

async fn migrate(config: Config) -> anyhow::Result<()> {
    let store = run::open_store(&config).await?;
    store.migrate().await?;
    enabling::deploy(&store, config.auth_enabled, Clock::system().now()).await?;
    say("The database is up to date");
    Ok(())
}

async fn work(config: Config) -> anyhow::Result<()> {
    let store = run::open_store(&config).await?;
    anyhow::ensure!(
        store.schema_is_current().await?,
        "the database waits for a migration (`callboard migrate`)"
    );
    let state = AppState::new(config, store);
    let stopping = CancellationToken::new();
    let budget = Budget::new(WORK_TIME).stopped_by(stopping.clone());
    let stopped = async {
        serve::stop_requested().await;
        stopping.cancel();
        // What has begun is waited for below.
        std::future::pending::<()>().await;
    };
    let summary = tokio::select! {
        summary = run_due(&state, budget) => summary?,
        () = stopped => return Ok(()),
    };
    say(&format!("{} jobs done, {} failed", summary.done, summary.failed));
    Ok(())
}

async fn grant_administrator(config: Config, username: &str) -> anyhow::Result<()> {
    let store = run::open_store(&config).await?;
    anyhow::ensure!(
        store.schema_is_current().await?,
        "the database waits for a migration (`callboard migrate`)"
    );
    let token = enabling::grant_administrator(&store, username, Clock::system().now()).await?.text;
    let site = config.site_url.map_or_else(|| "<address of the service>".to_owned(), |site| site.to_string());
    say(&format!(
        "{username} is an administrator and can sign in. Set a password within an hour:\n  {site}/reset#token={token}"
    ));
    Ok(())
}

async fn rotate_secrets(config: Config) -> anyhow::Result<()> {
    let store = run::open_store(&config).await?;
    anyhow::ensure!(
        store.schema_is_current().await?,
        "the database waits for a migration (`callboard migrate`)"
    );
    let secrets = StoredSecrets::new(&Secrets::new(&config.secret_keys));
    let Rotated { secrets, resealed, unopened } = rotate_secrets_of(&store, &secrets).await?;
    say(&format!("{secrets} stored secrets: {resealed} sealed anew, {unopened} that no key opens"));
    anyhow::ensure!(unopened == 0, "keep the old keys: some secrets would be lost without them");
    Ok(())
}

/// Reads the environment and starts logging.
fn configuration() -> Result<Config, ExitCode> {
    install_tls();
    match Config::from_process_env() {
        Ok(config) => {
            telemetry::start(&config.log, Platform::Server);
            for warning in &config.warnings {
                tracing::warn!("{warning}");
            }
            Ok(config)
        }
        Err(errors) => {
            complain(&errors.to_string());
            Err(ExitCode::from(u8::try_from(EXIT_CONFIG).unwrap_or(1)))
        }
    }
}

#[expect(clippy::print_stdout, reason = "this is a command; its answer goes to the terminal")]
fn say(text: &str) {
    println!("{text}");
}

#[expect(clippy::print_stderr, reason = "logging may not have started when a start is refused")]
fn complain(text: &str) {
    eprintln!("callboard: {text}");
}
