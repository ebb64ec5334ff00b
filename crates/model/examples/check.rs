//! Reads description files, checks them, and prints the report as JSON: `check [--by-hand]
//! [--strict] [--model M] FILES...`. With `--write` the example prints the description as yMMSL
//! v0.2 instead, and with `--timelines` the timeline of each component. `YMMSL_PATH` lists the
//! directories to import from, `PYTHONPATH` the directories of Python packages.

use std::path::PathBuf;
use std::process::ExitCode;

use titin_model::{LoadOptions, StartPolicy, load};

fn main() -> ExitCode {
    let directories = |variable: &str| {
        std::env::var_os(variable)
            .map(|v| std::env::split_paths(&v).collect())
            .unwrap_or_default()
    };
    let mut options = LoadOptions {
        search: directories("YMMSL_PATH"),
        site_packages: directories("PYTHONPATH"),
        ..LoadOptions::default()
    };
    let (mut write, mut timelines) = (false, false);
    let mut files: Vec<PathBuf> = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--by-hand" => options.start = StartPolicy::ByHand,
            "--strict" => options.strict_timelines = true,
            "--write" => write = true,
            "--timelines" => timelines = true,
            "--model" => options.model = arguments.next(),
            _ => files.push(argument.into()),
        }
    }
    let (report, ok) = match load(&files, &options) {
        Ok(description) if write => {
            print!("{}", description.to_ymmsl());
            return ExitCode::SUCCESS;
        }
        Ok(description) if timelines => match description.network(options.model.as_deref()) {
            Ok(network) => {
                let all = network
                    .components
                    .iter()
                    .map(|c| (c.path.to_string(), c.timeline.to_string()));
                println!(
                    "{}",
                    serde_json::json!(all.collect::<std::collections::BTreeMap<_, _>>())
                );
                return ExitCode::SUCCESS;
            }
            Err(report) => (report, false),
        },
        Ok(description) => (description.warnings, true),
        Err(report) => (report, false),
    };
    match serde_json::to_string_pretty(&report) {
        Ok(text) => println!("{text}"),
        Err(error) => eprintln!("{error}"),
    }
    if ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(2)
    }
}
