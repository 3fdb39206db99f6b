//! Logging: readable lines in a terminal, one JSON object per line in a
//! function, where a collector reads them.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;

use crate::config::Platform;

/// Starts logging for this process. A second call does nothing, so tests can
/// share a process.
pub fn start(filter: &str, platform: Platform) {
    let filter = EnvFilter::try_new(filter).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder =
        fmt().with_env_filter(filter).with_ansi(std::io::stderr().is_terminal()).with_writer(std::io::stderr);
    // The only error is that logging has been started already.
    let _ = match platform {
        Platform::Server => builder.with_target(false).try_init(),
        Platform::Lambda => builder.json().flatten_event(true).try_init(),
    };
}
