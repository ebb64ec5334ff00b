//! `titin run --submit` and `titin agent --submit`: the command as a job of a batch system, by PSI/J.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Args;
use titin_manager::allocation::nodes_without_waiting;
use titin_manager::compile::Choices;
use titin_model::StartPolicy;
use titin_model::quantity;

use super::planned::plan;
use super::refusal;
use crate::python::{become_process, module};
use crate::sources::Sources;
use crate::terminal::complain;

/// The heading of the options of batch jobs in help texts.
const JOB_HEADING: &str = "A batch job";

/// The batch job of a run.
#[derive(Args, Clone, Debug)]
pub(crate) struct SubmitOptions {
    #[command(flatten)]
    job: JobOptions,
    /// Follow the output of the job, and end with its exit code; Ctrl-C cancels the job
    #[arg(long, requires = "submit", help_heading = JOB_HEADING)]
    wait: bool,
}

/// A batch job.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = JOB_HEADING)]
pub(crate) struct JobOptions {
    /// Submit this command to a batch system, as PSI/J calls it: slurm, pbs, lsf, flux, ..., or local.
    /// Needs the Python package titin[batch]
    #[arg(long, value_name = "SYSTEM", requires = "time")]
    submit: Option<String>,
    /// The time limit, such as "2 h"
    #[arg(long, value_name = "TIME", requires = "submit", value_parser = seconds)]
    time: Option<f64>,
    /// The number of nodes; by default 1, but for a run with --cores-per-node as many as let no program
    /// wait for a core
    #[arg(long, value_name = "COUNT", requires = "submit", value_parser = clap::value_parser!(u32).range(1..))]
    nodes: Option<u32>,
    /// The number of cores of each node
    #[arg(long, value_name = "COUNT", requires = "submit", value_parser = clap::value_parser!(u32).range(1..))]
    cores_per_node: Option<u32>,
    /// The queue or partition
    #[arg(long, value_name = "NAME", requires = "submit")]
    queue: Option<String>,
    /// The account to charge
    #[arg(long, value_name = "NAME", requires = "submit")]
    account: Option<String>,
    /// An option of the batch system without the dashes, such as constraint=gpu; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "submit")]
    batch_option: Vec<String>,
}

/// Reads a time with a unit as seconds. A plain number would mean seconds here, and minutes to some batch
/// systems.
fn seconds(text: &str) -> Result<f64, String> {
    if quantity::is_plain(text) {
        return Err(format!(
            "a time with a unit is expected: \"{text} min\" or \"{text} s\""
        ));
    }
    match quantity::parse_in(text, "s") {
        Ok(seconds) if seconds > 0.0 && seconds.is_finite() => Ok(seconds),
        Ok(_) => Err("a time above 0 is expected, such as \"2 h\"".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

impl JobOptions {
    /// The batch system, if the command is to be submitted.
    pub(crate) fn system(&self) -> Option<&str> {
        self.submit.as_deref()
    }

    /// Submits the agent of a host, which finds its token on standard input as this process does.
    /// Returns only if the job is not submitted: the process becomes the process of PSI/J.
    pub(crate) fn run_agent(&self, system: &str, host: &str) -> ExitCode {
        let name = format!("titin-{host}");
        let begun = self.begin(system, &name, self.nodes.unwrap_or(1), &["--token"]);
        become_job(
            begun,
            &["agent", "--host", host, "--token"].map(str::to_owned),
        )
    }

    /// The command that submits a job, without the words of the job itself, and the path of the command
    /// `titin`. `more` has further options.
    fn begin(
        &self,
        system: &str,
        name: &str,
        nodes: u32,
        more: &[&str],
    ) -> io::Result<(Command, PathBuf)> {
        let titin = std::env::current_exe()?;
        let mut command = module("titin.batch");
        command.args([system, "--name", name, "--nodes", &nodes.to_string()]);
        let cores = self.cores_per_node.map(|cores| cores.to_string());
        let time = self.time.map(|time| time.to_string());
        let options = [
            ("--cores", &cores),
            ("--seconds", &time),
            ("--queue", &self.queue),
            ("--account", &self.account),
        ];
        for (name, value) in options {
            command.args(value.iter().flat_map(|value| [name, value]));
        }
        for option in &self.batch_option {
            command.args(["--option", option]);
        }
        command.args(more);
        Ok((command, titin))
    }
}

/// Becomes the process of PSI/J that submits a job of `titin` with these words.
fn become_job(begun: io::Result<(Command, PathBuf)>, words: &[String]) -> ExitCode {
    let (mut command, titin) = match begun {
        Ok(begun) => begun,
        Err(error) => return complain(format!("cannot find this command's own file: {error}")),
    };
    command.arg("--").arg(titin).args(words);
    become_process(&mut command)
}

impl SubmitOptions {
    /// The batch system, if the run is to be submitted.
    pub(crate) fn system(&self) -> Option<&str> {
        self.job.system()
    }

    /// Checks the description, and submits `titin run` with the given arguments. Returns only if the
    /// job is not submitted: the process becomes the process of PSI/J.
    pub(crate) fn run(
        &self,
        system: &str,
        sources: &Sources,
        arguments: &[String],
        as_json: bool,
    ) -> ExitCode {
        let plan = match plan(sources, StartPolicy::Programs, &Choices::default()) {
            Ok(plan) => plan,
            Err(error) => return error.tell(as_json),
        };
        let nodes = match (self.job.nodes, self.job.cores_per_node) {
            (Some(nodes), _) => nodes,
            (None, None) => 1,
            (None, Some(node)) => match nodes_without_waiting(&plan, node) {
                Ok(nodes) => nodes,
                Err(error) => return refusal::of(error, as_json),
            },
        };
        let output = output_file(Path::new(""), &plan.model);
        let output = output.to_string_lossy();
        let mut more = vec!["--output", &*output];
        more.extend(self.wait.then_some("--wait"));
        let begun = self.job.begin(system, &plan.model, nodes, &more);
        become_job(begun, &[&["run".to_owned()], arguments].concat())
    }
}

/// The file for the output of a new job of a model, in a folder. The files of earlier jobs are kept.
fn output_file(folder: &Path, model: &str) -> PathBuf {
    let mut file = folder.join(format!("{model}-job.txt"));
    let mut number = 1;
    while file.exists() {
        number += 1;
        file = folder.join(format!("{model}-job-{number}.txt"));
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["chain-job.txt", "chain-job-2.txt", "chain-job-3.txt"] {
            let file = output_file(folder.path(), "chain");
            assert_eq!(file, folder.path().join(name));
            std::fs::write(file, "").unwrap();
        }
    }

    #[test]
    fn a_time_limit_is_read_with_its_unit() {
        assert_eq!(seconds("2 h"), Ok(7200.0));
        assert_eq!(seconds("90 s"), Ok(90.0));
        for bad in ["90", "0 s", "-1 h", "2 m", "soon"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}
