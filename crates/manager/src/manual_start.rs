//! Programs that the user starts: instructions, as lines to paste into a shell.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use titin_wire::connection::{INSTANCE, MANAGER, SECRET};

use crate::guard::Launch;
use crate::launch::{LaunchError, PreparedCommand};
use crate::shell::quote;

/// An instance with a program for the user to start, and with everything else prepared.
#[derive(Debug)]
pub(crate) struct ManualStart {
    pub(crate) name: String,
    pub(crate) component: String,
    pub(crate) workdir: PathBuf,
    pub(crate) connection: PathBuf,
    /// The command of the description.
    pub(crate) command: Result<PreparedCommand, NoCommand>,
}

/// Why the command of an instance is not known.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoCommand {
    #[error("the description does not say which")]
    NotDescribed,
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// The instructions for the user. Instances of a component differ only in their names, so the lines
/// appear once for each component.
pub(crate) fn instructions(instances: &[ManualStart]) -> String {
    let mut text = String::from("Start each of these programs in a shell of its own:\n");
    let mut written = BTreeSet::new();
    for first in instances {
        if !written.insert(&first.component) {
            continue;
        }
        let is_alike = |other: &&ManualStart| other.component == first.component;
        let others = instances.iter().filter(is_alike).skip(1);
        let others: Vec<&str> = others.map(|other| other.name.as_str()).collect();
        let _ = write!(text, "\n# {}", first.name);
        if !others.is_empty() {
            let others = titin_model::listing(others);
            let _ = write!(text, "; the same for {others} under their names");
        }
        text.push('\n');
        first.write_lines(&mut text);
    }
    text
}

impl ManualStart {
    fn write_lines(&self, text: &mut String) {
        let _ = writeln!(text, "cd {}", quote_path(&self.workdir));
        let connection = quote_path(&self.connection);
        let _ = writeln!(text, "export {}={connection}", MANAGER[0]);
        let _ = writeln!(text, "export {}={}", INSTANCE[0], quote(&self.name));
        match &self.command {
            Ok(prepared) => write_command(text, prepared),
            Err(why) => {
                let _ = writeln!(text, "# and your program: {why}");
            }
        }
    }
}

/// Writes the lines for the environment and the command.
fn write_command(text: &mut String, prepared: &PreparedCommand) {
    let launch = &prepared.launch;
    write_variables(text, launch);
    let mut words = vec![quote_path(&launch.program)];
    words.extend(launch.args.iter().map(|word| quote(word)));
    let command = words.join(" ");
    let _ = writeln!(text, "{command}");
    if prepared.bare && is_machine_code(&launch.program) {
        let _ = writeln!(text, "# in a debugger: gdb --args {command}");
    }
}

/// Writes the lines for the variables, without the variables that every start has.
fn write_variables(text: &mut String, launch: &Launch) {
    let is_written = |name: &str| [MANAGER, INSTANCE].concat().contains(&name);
    let set = launch.set.iter().filter(|(name, _)| !is_written(name));
    let set: Vec<String> = set
        .map(|(name, value)| format!("{name}={}", quote(value)))
        .collect();
    let _ = writeln!(text, "export {}", set.join(" "));
    let unset = launch.unset.iter().map(String::as_str);
    let unset: Vec<&str> = unset.filter(|name| *name != SECRET).collect();
    if !unset.is_empty() {
        let _ = writeln!(text, "unset {}", unset.join(" "));
    }
}

fn quote_path(path: &Path) -> String {
    quote(&path.to_string_lossy())
}

/// Whether a file is machine code, and no script.
fn is_machine_code(file: &Path) -> bool {
    let mut magic = [0; 4];
    let file = File::open(file);
    let read = file.and_then(|mut file| file.read_exact(&mut magic));
    read.is_ok() && &magic == b"\x7fELF"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by_hand(name: &str, command: Result<PreparedCommand, NoCommand>) -> ManualStart {
        let component = name.split('[').next().unwrap().to_owned();
        let workdir = Path::new("/r/instances").join(name).join("workdir");
        ManualStart {
            name: name.into(),
            component,
            workdir,
            connection: "/r/connection.json".into(),
            command,
        }
    }

    fn prepared(program: &str, bare: bool) -> PreparedCommand {
        let launch = Launch {
            program: program.into(),
            args: vec!["-c".into(), "exit 0".into()],
            clear: false,
            set: [
                ("TITIN_MANAGER", "x"),
                ("OMP_NUM_THREADS", "2"),
                ("A", "b c"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
            unset: vec!["TITIN_SECRET".into(), "VIRTUAL_ENV".into()],
            directory: "/".into(),
            stdout: "/".into(),
            stderr: "/".into(),
            input: None,
        };
        PreparedCommand {
            launch,
            script: None,
            bare,
        }
    }

    #[test]
    fn each_component_is_told_once_in_lines_for_a_shell() {
        let micro = ["micro[0]", "micro[1]", "micro[2]"]
            .map(|name| by_hand(name, Err(NoCommand::NotDescribed)));
        let mut all = vec![by_hand("macro", Ok(prepared("/bin/sh", true)))];
        all.extend(micro);
        assert_eq!(
            instructions(&all),
            "Start each of these programs in a shell of its own:\n\n# macro\ncd /r/instances/macro/workdir\n\
             export TITIN_MANAGER=/r/connection.json\nexport TITIN_INSTANCE=macro\n\
             export OMP_NUM_THREADS=2 A='b c'\nunset VIRTUAL_ENV\n/bin/sh -c 'exit 0'\n\
             # in a debugger: gdb --args /bin/sh -c 'exit 0'\n\n\
             # micro[0]; the same for \"micro[1]\" and \"micro[2]\" under their names\n\
             cd '/r/instances/micro[0]/workdir'\nexport TITIN_MANAGER=/r/connection.json\n\
             export TITIN_INSTANCE='micro[0]'\n# and your program: the description does not say which\n"
        );
    }

    #[test]
    fn a_debugger_is_for_binaries_that_nothing_stands_around() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/bin/sh\n").unwrap();
        for command in [
            prepared("/bin/sh", false),
            prepared(&script.to_string_lossy(), true),
        ] {
            assert!(!instructions(&[by_hand("a", Ok(command))]).contains("gdb"));
        }
    }
}
