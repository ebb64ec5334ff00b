//! The description files of a command, and the folders to search for their imports.

use std::path::{Path, PathBuf};

use clap::Args;
use titin_model::{Description, LoadOptions, ProblemReport, StartPolicy, TableFile, load};

/// The files of a description, and the model in the files.
#[derive(Args, Clone, Debug)]
pub(crate) struct Sources {
    /// yMMSL files, merged from left to right; - is standard input
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// The model, where the files have several
    #[arg(short, long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Leave components without an implementation out, with their conduits
    #[arg(long)]
    pub(crate) allow_missing: bool,
    /// A setting in place of that of the files, with a value as in YAML; may be given several times
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(crate) settings: Vec<String>,
}

impl Sources {
    /// The description of a run, from the run directory.
    pub(crate) fn of_run(directory: &Path) -> Self {
        Sources {
            files: vec![directory.join("configuration.ymmsl")],
            model: None,
            allow_missing: false,
            settings: Vec::new(),
        }
    }

    /// Reads and checks the files.
    pub(crate) fn load(
        &self,
        start: StartPolicy,
        strict_timelines: bool,
    ) -> Result<Description, ProblemReport> {
        let options = LoadOptions {
            search: variable_paths("YMMSL_PATH"),
            site_packages: site_packages(),
            model: self.model.clone(),
            start,
            strict_timelines,
            allow_missing: self.allow_missing,
            settings: self.settings.clone(),
            table_columns: Some(table_columns),
        };
        load(&self.files, &options)
    }
}

/// The columns of a sampler's table, as the sampler reads them.
fn table_columns(table: &TableFile<'_>) -> Result<Vec<String>, String> {
    let TableFile {
        path,
        format,
        delimiter,
        columns,
    } = *table;
    titin_components::table_columns(path, format, delimiter, columns).map_err(|why| why.to_string())
}

fn variable_paths(variable: &str) -> Vec<PathBuf> {
    let value = std::env::var_os(variable).unwrap_or_default();
    std::env::split_paths(&value)
        .filter(|path| !path.as_os_str().is_empty())
        .collect()
}

/// The active Python environments, and the environment that has this command.
fn python_prefixes() -> Vec<PathBuf> {
    let variables = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter();
    let active = variables.filter_map(std::env::var_os).map(PathBuf::from);
    let command = std::env::current_exe().and_then(std::fs::canonicalize);
    let own = command.iter().filter_map(|path| path.parent()?.parent());
    active.chain(own.map(Path::to_path_buf)).collect()
}

/// The folders of Python packages, found without starting Python: the folders of `PYTHONPATH`, of
/// the active environment, and of the environment that has this command.
fn site_packages() -> Vec<PathBuf> {
    let mut found = variable_paths("PYTHONPATH");
    for prefix in python_prefixes() {
        let Ok(entries) = std::fs::read_dir(prefix.join("lib")) else {
            continue;
        };
        let mut sites: Vec<PathBuf> = entries
            .flatten()
            .filter(|entry| entry.file_name().to_string_lossy().starts_with("python3"))
            .map(|entry| entry.path().join("site-packages"))
            .filter(|site| site.is_dir() && !found.contains(site))
            .collect();
        sites.sort();
        found.extend(sites);
    }
    found
}
