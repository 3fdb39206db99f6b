//! Logging: readable lines in a terminal, one JSON object per line in a
//! function, where a collector reads them.

use std::io::IsTerminal;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{LevelFilter, Targets, filter_fn};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::config::Platform;

/// Starts logging for this process. A second call does nothing, so tests can
/// share a process.
pub fn start(filter: &str, platform: Platform) {
    let filter: Targets = filter.parse().unwrap_or_else(|_| Targets::new().with_default(LevelFilter::INFO));
    // The filter alone decides.
    let builder = fmt()
        .with_max_level(LevelFilter::TRACE)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr);
    // The only error is that logging has been started already.
    let _ = match platform {
        Platform::Server => builder.with_target(false).finish().with(filter).try_init(),
        Platform::Lambda => {
            let lines = builder.json().flatten_event(true).finish();
            lines.with(filter).with(filter_fn(holds_no_event)).try_init()
        }
    };
}

/// The runtime of functions writes whole events down where everything is to be
/// told, and with them the passwords, keys and cookies of their requests.
fn holds_no_event(metadata: &Metadata<'_>) -> bool {
    *metadata.level() != Level::TRACE || !metadata.target().starts_with("lambda_runtime")
}
