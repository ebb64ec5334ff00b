//! The script that prepares the environment of a program and becomes the program.

use std::fmt::Write as _;

use super::command::Invocation;
use crate::plan::BaseEnv;
use crate::shell::quote;

const HEAD: &str =
    "#!/bin/bash\n# Written by titin: prepares the environment, then runs its arguments.\n";

/// Reads the files of a login shell.
const LOG_IN: &str = "for file in /etc/environment /etc/profile; do [ -f \"$file\" ] && . \"$file\"; done\n\
     for file in ~/.bash_profile ~/.bash_login ~/.profile; do\n    \
     [ -f \"$file\" ] && . \"$file\" && break\ndone\n";

/// Looks for the command `module`.
const FIND_MODULES: &str = "type module >/dev/null 2>&1 || { [ -f /etc/profile ] && . /etc/profile; }\n\
     if ! type module >/dev/null 2>&1; then\n    \
     echo \"titin: the description asks for environment modules, but this host has no 'module' command\" >&2\n    \
     exit 1\nfi\n";

/// Leaves the active Python virtual environment.
const DEACTIVATE: &str =
    "PATH=$(printf %s \"$PATH\" | sed \"s|$VIRTUAL_ENV/bin:||g\")\nunset VIRTUAL_ENV\n";

impl Invocation<'_> {
    /// A script that prepares the environment and becomes the command in its arguments.
    pub(super) fn script(&self) -> String {
        let mut text = String::from(HEAD);
        if self.program.base == BaseEnv::Login {
            text.push_str(LOG_IN);
        }
        self.write_modules(&mut text);
        self.write_virtual_env(&mut text);
        for (name, value) in &self.program.env {
            let _ = match name.strip_prefix('+') {
                Some(name) => writeln!(text, "export {name}=\"${{{name}}}\"{}", quote(value)),
                None => writeln!(text, "export {name}={}", quote(value)),
            };
        }
        let workdir = self.context.directory.join("workdir");
        let workdir = quote(&workdir.to_string_lossy());
        let _ = writeln!(text, "cd {workdir} || exit 1\nexec \"$@\"");
        text
    }

    fn write_modules(&self, text: &mut String) {
        let is_clean = self.program.base == BaseEnv::Clean;
        if is_clean || !self.program.modules.is_empty() {
            text.push_str(FIND_MODULES);
        }
        if is_clean {
            text.push_str("module purge\n");
        }
        for module in &self.program.modules {
            let module = quote(module);
            let _ = writeln!(
                text,
                "module load {module} || {{ echo titin: cannot load module {module} >&2; exit 1; }}"
            );
        }
    }

    fn write_virtual_env(&self, text: &mut String) {
        match &self.env.virtual_env {
            Some(folder) => {
                let file = folder.join("bin/activate");
                let _ = writeln!(text, ". {}", quote(&file.to_string_lossy()));
            }
            None if self.env.unset.iter().any(|name| name == "VIRTUAL_ENV") => {
                text.push_str(DEACTIVATE);
            }
            None => {}
        }
    }
}
