//! Starting: open the store, bring the schema up to date, listen, serve until
//! asked to stop.

use std::fs::DirBuilder;
use std::future::Future;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use callboard_auth::Origin;
use callboard_http::auth_mode::REFRESH_EVERY_MS;
use callboard_http::serve::{self, ListenError};
use callboard_http::{AppState, Sandbox, Site};
use callboard_platform::config::Config;
use callboard_query::accounts::enabling;
use callboard_query::retention;
use callboard_store::Store;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{app, sandbox_app};

/// A service that listens and has not begun to answer.
#[derive(Debug)]
pub struct Ready {
    state: AppState,
    main: TcpListener,
    sandbox: Option<TcpListener>,
}

/// Opens the store a configuration names.
///
/// # Errors
/// When the database or the object store cannot be opened.
pub async fn open_store(config: &Config) -> anyhow::Result<Store> {
    create_data_folder(&config.data_dir).with_context(|| {
        format!("cannot create the data folder {} (SERVICE_DATA_DIR)", config.data_dir.display())
    })?;
    Store::connect(&config.store())
        .await
        .context("cannot open the store (SERVICE_DATABASE_URL, SERVICE_STORAGE_URL)")
}

/// Creates the folder, readable by its owner only: it holds sessions and what the tests of a company say.
fn create_data_folder(folder: &Path) -> std::io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Opens the store, migrates, and listens.
///
/// # Errors
/// When the store cannot be opened or migrated, or the port is taken.
pub async fn prepare(config: Config) -> anyhow::Result<Ready> {
    let main = serve::listen(&config.host, config.port).await?;
    let store = open_store(&config).await?;
    store.migrate().await.context("cannot bring the database up to date")?;
    let main_port = main.local_addr()?.port();
    let (sandbox, listener) = open_sandbox(&config, main_port).await;
    // Port 0 asked for a free one; links of notifications need the one that was given.
    let config = Config { port: main_port, ..config };
    let state = AppState::new(config, store).with_sandbox(sandbox);
    // Done at their first use otherwise, which would let a read write rows.
    state.grants().await?;
    enabling::deploy(state.store(), state.auth_enabled(), state.now()).await?;
    state.begin_authentication().await?;
    state.refresh_auth_mode().await?;
    if !state.config().demo {
        retention::start(&state.background(), state.now()).await?;
    }
    Ok(Ready { state, main, sandbox: listener })
}

impl Ready {
    /// The state behind both listeners.
    #[must_use]
    pub const fn state(&self) -> &AppState {
        &self.state
    }

    /// Port of the main listener.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn port(&self) -> std::io::Result<u16> {
        Ok(self.main.local_addr()?.port())
    }

    /// Answers, and does the work that is due, until `stop` completes.
    pub async fn serve(self, stop: impl Future<Output = ()>) {
        let mut doors = vec![(self.main, app(self.state.clone()))];
        if let Some(listener) = self.sandbox {
            doors.push((listener, sandbox_app(self.state.clone())));
        }
        let stopping = CancellationToken::new();
        let timer = callboard_fn_jobs::run_until(self.state.clone(), stopping.clone());
        let stop = async {
            stop.await;
            stopping.cancel();
            self.state.stop();
        };
        let auth_mode = keep_auth_mode(&self.state, &stopping);
        tokio::join!(serve::serve(doors, stop), timer, auth_mode);
        self.state.leave().await;
    }

    /// Where everything is, as lines for the terminal.
    ///
    /// # Errors
    /// When the system does not say which port it gave.
    pub fn banner(&self) -> std::io::Result<String> {
        let config = self.state.config();
        let site = address(config, self.port()?);
        let sandbox = match self.state.sandbox() {
            Sandbox::Opaque => "on the same address, isolated by the browser".to_owned(),
            other => format!("on {}", other.origin_for(&site)),
        };
        let database =
            if config.database_url.starts_with("sqlite:") { &config.database_url } else { "PostgreSQL" };
        let storage = if config.storage_url.starts_with("file:") { &config.storage_url } else { "a bucket" };
        Ok(format!(
            "Callboard {version} is ready\n\
             \x20 Dashboard  {dashboard}\n\
             \x20 API docs   {docs}\n\
             \x20 MCP        {mcp}\n\
             \x20 Reports    {sandbox}\n\
             \x20 Data       {database}, {storage}",
            version = env!("CARGO_PKG_VERSION"),
            dashboard = site.url("/"),
            docs = site.url("/docs"),
            mcp = site.url("/mcp"),
        ))
    }
}

/// Keeps what this process and others on its database know of each other up
/// to date, so that no request has to.
async fn keep_auth_mode(state: &AppState, stopping: &CancellationToken) {
    let mut due = tokio::time::interval(Duration::from_millis(REFRESH_EVERY_MS));
    while stopping.run_until_cancelled(due.tick()).await.is_some() {
        if let Err(error) = state.refresh_auth_mode().await {
            tracing::warn!(%error, "the authentication mode of other processes was not compared");
        }
    }
}

/// The address to open in a browser.
fn address(config: &Config, port: u16) -> Site {
    let local = Origin::localhost(port);
    Site(config.site_url.clone().unwrap_or_else(|| match config.host.as_str() {
        "127.0.0.1" | "::1" | "[::1]" | "0.0.0.0" | "::" | "[::]" => local,
        host => local.at_host(host),
    }))
}

/// Decides how untrusted content is kept apart, and opens the second listener
/// where that takes one.
async fn open_sandbox(config: &Config, main_port: u16) -> (Sandbox, Option<TcpListener>) {
    if let Some(origin) = &config.sandbox_origin {
        let same_host = config
            .site_url
            .as_ref()
            .map_or_else(|| origin.is_loopback(), |site| site.host() == origin.host());
        let listener = if same_host && origin.port() != main_port {
            listen_or_warn(&config.host, origin.port()).await
        } else {
            None
        };
        return (Sandbox::Origin(origin.clone()), listener);
    }
    let is_local =
        config.is_bound_to_loopback() && config.site_url.as_ref().is_none_or(|site| site.is_loopback());
    if !is_local {
        return (Sandbox::Opaque, None);
    }
    let port = if config.port == 0 { 0 } else { main_port.saturating_add(1) };
    match listen_or_warn(&config.host, port).await {
        Some(listener) => match listener.local_addr() {
            Ok(address) => (Sandbox::Loopback { port: address.port(), main_port }, Some(listener)),
            Err(_) => (Sandbox::Opaque, None),
        },
        None => (Sandbox::Opaque, None),
    }
}

async fn listen_or_warn(host: &str, port: u16) -> Option<TcpListener> {
    match serve::listen(host, port).await {
        Ok(listener) => Some(listener),
        Err(ListenError::Taken { port, .. }) => {
            tracing::warn!("port {port} is taken: reports open on the main address, isolated by the browser");
            None
        }
        Err(error) => {
            tracing::warn!("no second listener for reports: {error}");
            None
        }
    }
}
