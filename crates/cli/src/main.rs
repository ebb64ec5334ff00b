//! The `titin` command: flags and output, nothing else. The subcommands are in `commands`.

#![forbid(unsafe_code)]

mod commands;
mod listen;
mod python;
mod sources;
mod speed;
mod table;
mod terminal;
mod view;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};
use commands::guard::GuardCommand;

/// Couples simulation codes.
#[derive(Parser)]
#[command(
    name = "titin",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Titin {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(commands::run::RunCommand),
    Check(commands::check::Check),
    Plot(commands::plot::Plot),
    Logs(commands::logs::Logs),
    Profile(commands::profile::ProfileOf),
    View(commands::view::View),
    Resources(commands::resources::Resources),
    Bench(commands::bench::Bench),
    Config(commands::config::Config),
    Bmi(commands::bmi::BmiCommand),
    Convert(commands::convert::Convert),
    Schema(commands::schema::Schema),
    Completions(commands::completions::Completions),
    Man(commands::man::Man),
    Manager(commands::run::ManagerCommand),
    Agent(commands::agent::AgentCommand),
    Relay(commands::relay::RelayCommand),
    Path(commands::path::PathCommand),
    Forward(commands::forward::Forward),
    Copy(commands::copy::Copy),
    Sync(commands::sync::Sync),
    #[command(hide = true)]
    CopyEnd(commands::copy::CopyEnd),
    #[command(hide = true)]
    Echo(commands::bench::EchoCommand),
    #[command(hide = true)]
    Component(commands::component::ComponentCommand),
    #[command(hide = true)]
    Host(commands::host::Host),
}

fn main() -> ExitCode {
    // The guard lives as long as its run, and starts each program by one more such process. The options
    // of all other commands would cost each of them 0.1 MB.
    if std::env::args_os()
        .nth(1)
        .is_some_and(|word| word == "guard")
    {
        return GuardCommand::parse_from(std::env::args_os().skip(1)).run();
    }
    match Titin::parse().command {
        Command::Run(run) => run.run(),
        Command::Check(check) => check.run(),
        Command::Plot(plot) => plot.run(),
        Command::Logs(logs) => logs.run(),
        Command::Profile(profile) => profile.run(),
        Command::View(view) => view.run(),
        Command::Resources(resources) => resources.run(),
        Command::Bench(bench) => bench.run(),
        Command::Echo(echo) => echo.run(),
        Command::Config(config) => config.run(),
        Command::Bmi(bmi) => bmi.run(),
        Command::Convert(convert) => convert.run(),
        Command::Schema(schema) => schema.run(),
        Command::Completions(completions) => completions.run(Titin::command()),
        Command::Man(man) => man.run(Titin::command()),
        Command::Manager(manager) => manager.run(),
        Command::Agent(agent) => agent.run(),
        Command::Relay(relay) => relay.run(),
        Command::Path(path) => path.run(),
        Command::Forward(command) => command.run(),
        Command::Copy(copy) => copy.run(),
        Command::Sync(sync) => sync.run(),
        Command::CopyEnd(end) => end.run(),
        Command::Component(component) => component.run(),
        Command::Host(host) => host.run(),
    }
}
