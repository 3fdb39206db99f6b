//! `make bench`: measures an optimised build of the service from outside.
//!
//! Lives here: the generator of runs, the parts that measure, the yardstick
//! they are compared with, the report. Must not live here: a test. Nothing
//! fails because something was slow; a figure only ever stands in a table.

mod generator;
mod load;
mod machine;
mod parts;
mod report;
mod subject;
mod yardstick;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use callboard_domain::time::Timestamp;
use callboard_store::Backend;
use clap::{Parser, ValueEnum};

use parts::Setting;
use parts::history::History;
use report::{Report, Table, say};

/// Measures Callboard on this machine.
#[derive(Debug, Parser)]
#[command(name = "callboard-load")]
struct Arguments {
    /// What to measure; everything when nothing is named.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// On which databases.
    #[arg(long, value_enum, default_value = "both")]
    database: Databases,
    /// Determines the runs that are sent.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Executions of the long history that `history` and `read` work on.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10_000..=10_000_000))]
    executions: u32,
    /// A tenth of the requests: to see that it works, not to compare.
    #[arg(long)]
    quick: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Latency and executions per second of submits, beside the raw limit.
    Submit,
    /// Live runs in small batches, beside their targets.
    Stream,
    /// Cost of a submit as history grows.
    History,
    /// Latency of lists, details, pages and tools on a long history.
    Read,
    /// Latency of what looks at many projects at once.
    Projects,
    /// Latency of pages with stored commits of a repository.
    Commits,
    /// Speed and memory of a 50 MB trace upload.
    Upload,
    /// Resident memory, idle and under load.
    Memory,
    /// Sizes of the binaries.
    Size,
    /// Start of the runner, cold start of a function.
    Start,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Databases {
    Both,
    Sqlite,
    Postgres,
}

impl Databases {
    fn backends(self) -> Vec<Backend> {
        match self {
            Self::Both => vec![Backend::Sqlite, Backend::Postgres],
            Self::Sqlite => vec![Backend::Sqlite],
            Self::Postgres => vec![Backend::Postgres],
        }
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let now = Timestamp(i64::try_from(now).unwrap_or_default());
    let mut report = Report::new(now, arguments.seed);
    report.print_head();
    // Days are whole, so that all runs of a day send the same.
    let setting = Setting { seed: arguments.seed, until: now.day().start(), quick: arguments.quick };
    measure(&arguments, setting, &mut report).await;
    match folder().and_then(|folder| report.write(&folder)) {
        Ok(path) => {
            say(&format!("\nwritten to {}", path.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("\nthe figures could not be written: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// Measures part by part; one that cannot be measured does not stop the rest.
async fn measure(arguments: &Arguments, setting: Setting, report: &mut Report) {
    let wanted = |part| arguments.parts.is_empty() || arguments.parts.contains(&part);
    let backends = arguments.database.backends();
    if wanted(Part::Size) {
        add(report, "size", parts::size::measure());
    }
    if wanted(Part::Start) {
        add(report, "start", parts::start::measure(setting, &backends).await);
    }
    for backend in backends {
        if wanted(Part::Submit) {
            add(report, "submit", parts::submit::measure(setting, backend).await);
        }
        if wanted(Part::Stream) {
            add(report, "stream", parts::stream::measure(setting, backend).await);
        }
        if wanted(Part::History) || wanted(Part::Read) {
            match History::fill(setting, backend, arguments.executions).await {
                Ok(history) => {
                    if wanted(Part::History) {
                        add(report, "history", Ok(history.table(backend)));
                    }
                    if wanted(Part::Read) {
                        add(report, "read", parts::read::measure(setting, backend, &history).await);
                    }
                }
                Err(error) => add(report, "history", Err(error)),
            }
        }
        if wanted(Part::Projects) {
            add(report, "projects", parts::projects::measure(setting, backend).await);
        }
        if wanted(Part::Commits) {
            add(report, "commits", parts::commits::measure(setting, backend).await);
        }
        if wanted(Part::Upload) {
            add(report, "upload", parts::upload::measure(setting, backend).await);
        }
        if wanted(Part::Memory) {
            add(report, "memory", parts::memory::measure(setting, backend).await);
        }
    }
}

fn add(report: &mut Report, part: &str, measured: Result<Table>) {
    match measured {
        Ok(table) => report.add(&table),
        Err(error) => {
            let mut table = Table::new(format!("{part}: not measured"), &[]);
            table.note(format!("{error:#}"));
            report.add(&table);
        }
    }
}

/// `bench` in the folder into which everything is built.
fn folder() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let target = own.ancestors().nth(2).context("this program lies in no target folder")?;
    Ok(target.join("bench"))
}
