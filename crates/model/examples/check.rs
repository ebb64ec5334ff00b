//! Reads description files, checks them, and prints the report as JSON: `check [--by-hand] [--strict] [--model M] FILES...`.
//! Directories to import from are those of `YMMSL_PATH`; those of Python packages, of `TITIN_SITE_PACKAGES`.

use std::path::PathBuf;
use std::process::ExitCode;

use titin_model::{LoadOptions, Start, load};

fn main() -> ExitCode {
    let directories = |variable: &str| {
        std::env::var_os(variable).map(|v| std::env::split_paths(&v).collect()).unwrap_or_default()
    };
    let mut options = LoadOptions {
        search: directories("YMMSL_PATH"),
        site_packages: directories("TITIN_SITE_PACKAGES"),
        ..LoadOptions::default()
    };
    let mut files: Vec<PathBuf> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--by-hand" => options.start = Start::ByHand,
            "--strict" => options.strict_timelines = true,
            "--model" => options.model = arguments.next(),
            _ => files.push(argument.into()),
        }
    }
    let (report, ok) = match load(&files, &options) {
        Ok(description) => (description.warnings, true),
        Err(report) => (report, false),
    };
    match serde_json::to_string_pretty(&report) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    if ok { ExitCode::SUCCESS } else { ExitCode::from(2) }
}
