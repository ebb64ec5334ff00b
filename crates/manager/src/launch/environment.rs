//! The environment of a program.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::context::{LaunchContext, beside_description};
use super::error::LaunchError;
use crate::plan::{BaseEnv, PlannedProgram};

/// The environment of a program, as a difference to the manager's.
pub(super) struct ProgramEnvironment {
    /// Variables to set.
    pub(super) set: BTreeMap<String, String>,
    /// Variables to remove.
    pub(super) unset: Vec<String>,
    /// The active Python virtual environment.
    pub(super) virtual_env: Option<PathBuf>,
}

impl ProgramEnvironment {
    pub(super) fn new(
        program: &PlannedProgram,
        context: &LaunchContext<'_>,
    ) -> Result<Self, LaunchError> {
        let mut env = ProgramEnvironment {
            set: BTreeMap::new(),
            unset: Vec::new(),
            virtual_env: None,
        };
        if program.base == BaseEnv::Clean || program.virtual_env.is_some() {
            env.deactivate(context);
        }
        env.activate(program, context)?;
        for (name, value) in &program.env {
            env.add(name, value, context);
        }
        Ok(env)
    }

    /// Adds a variable of the description. A name that begins with a plus appends to the variable.
    fn add(&mut self, name: &str, value: &str, context: &LaunchContext<'_>) {
        let (name, before) = match name.strip_prefix('+') {
            Some(name) => (name, self.get(name, context).unwrap_or_default()),
            None => (name, ""),
        };
        let value = format!("{before}{value}");
        self.set.insert(name.to_owned(), value);
    }

    /// A variable in the program's environment.
    pub(super) fn get<'a>(&'a self, name: &str, context: &'a LaunchContext<'_>) -> Option<&'a str> {
        let own = self.set.get(name);
        own.or_else(|| context.env.get(name)).map(String::as_str)
    }

    /// Leaves the manager's active Python virtual environment, if there is such an environment.
    fn deactivate(&mut self, context: &LaunchContext<'_>) {
        let Some(active) = context.env.get("VIRTUAL_ENV") else {
            return;
        };
        let bin = format!("{active}/bin");
        let path = self.get("PATH", context).unwrap_or_default();
        let rest: Vec<&str> = path.split(':').filter(|folder| *folder != bin).collect();
        let path = rest.join(":");
        self.set.insert("PATH".into(), path);
        self.unset.push("VIRTUAL_ENV".into());
    }

    /// Activates the Python virtual environment of the program, if the program has an environment.
    fn activate(
        &mut self,
        program: &PlannedProgram,
        context: &LaunchContext<'_>,
    ) -> Result<(), LaunchError> {
        let Some(folder) = &program.virtual_env else {
            return Ok(());
        };
        let folder = expand(&folder.to_string_lossy(), context.env)?;
        let folder = beside_description(&folder, program);
        if !folder.join("bin").is_dir() {
            return Err(LaunchError::NoVirtualEnv {
                folder,
                description: program.folder.clone(),
            });
        }
        let rest = self.get("PATH", context).unwrap_or_default();
        let path = format!("{}/bin:{rest}", folder.display());
        self.set.insert("PATH".into(), path);
        let name = folder.to_string_lossy().into_owned();
        self.set.insert("VIRTUAL_ENV".into(), name);
        self.unset.retain(|name| name != "VIRTUAL_ENV");
        self.unset.push("PYTHONHOME".into());
        self.virtual_env = Some(folder);
        Ok(())
    }
}

/// Replaces environment variables (`$NAME`, `${NAME}`; `$$` is a dollar sign) and a home directory
/// (`~/`) by their values.
pub(super) fn expand(text: &str, env: &BTreeMap<String, String>) -> Result<String, LaunchError> {
    let below_home = text.strip_prefix("~/");
    let home = below_home.and_then(|rest| Some(format!("{}/{rest}", env.get("HOME")?)));
    let text = home.as_deref().unwrap_or(text);
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('$') {
        out.push_str(before);
        if let Some(after) = behind.strip_prefix('$') {
            out.push('$');
            rest = after;
            continue;
        }
        let (name, after) = split_name(behind);
        if name.is_empty() {
            out.push('$');
            rest = behind;
            continue;
        }
        let value = env.get(name).ok_or_else(|| LaunchError::UnsetVariable {
            text: text.to_owned(),
            name: name.to_owned(),
        })?;
        out.push_str(value);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// The name of a variable behind a dollar sign, perhaps in braces, and the rest of the text.
fn split_name(behind: &str) -> (&str, &str) {
    let in_braces = behind
        .strip_prefix('{')
        .and_then(|inner| inner.split_once('}'));
    in_braces.unwrap_or_else(|| {
        let is_behind_name = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        let end = behind.find(is_behind_name).unwrap_or(behind.len());
        behind.split_at(end)
    })
}
