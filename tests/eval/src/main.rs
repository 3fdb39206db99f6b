//! `make eval`: how good the methods are that judge and group results,
//! measured on labelled data beside a trivial way of doing the same.
//!
//! Lives here: one module per method, which reads its data below `tests/data`
//! and fills a table. Must not live here: the methods themselves, which are
//! those of the service. A figure beyond its target makes the program fail.

mod failures;
mod flakiness;
mod locators;
mod suspects;
mod table;
mod traces;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use table::Table;

/// Measures the methods on labelled data.
#[derive(Debug, Parser)]
#[command(name = "callboard-eval")]
struct Arguments {
    /// What to measure; everything when nothing is named.
    #[arg(value_enum)]
    methods: Vec<Method>,
    /// Lists what was judged wrongly, too.
    #[arg(long)]
    details: bool,
    /// Folder with data of the same kinds instead of the labelled ones that
    /// come along: others that were generated, or held back.
    #[arg(long, value_name = "FOLDER")]
    data: Option<PathBuf>,
}

/// What can be measured. A new method adds its name here and a line in `measure`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    /// Failures by cause: fingerprints and templates.
    Failures,
    /// Flaky tests.
    Flakiness,
    /// Locator healing.
    Locators,
    /// Commits that turned a flaky test red.
    Culprits,
    /// Commits and files that broke a test.
    Suspects,
    /// The trace reader.
    Traces,
}

impl Method {
    fn measure(self, data: &Path, details: bool) -> Result<Table> {
        match self {
            Self::Failures => failures::measure(data, details),
            Self::Flakiness => flakiness::measure(data, details),
            Self::Locators => locators::measure(data, details),
            Self::Culprits => suspects::streaks::measure(details),
            Self::Suspects => suspects::measure(details),
            Self::Traces => traces::measure(data, details),
        }
    }
}

fn main() -> Result<ExitCode> {
    let arguments = Arguments::parse();
    let own = || {
        Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, |tests| tests.join("data"))
    };
    let data = arguments.data.unwrap_or_else(own);
    let methods =
        if arguments.methods.is_empty() { Method::value_variants().to_vec() } else { arguments.methods };
    let mut is_good = true;
    for method in methods {
        let table = method.measure(&data, arguments.details)?;
        table.print();
        is_good &= table.is_good();
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
