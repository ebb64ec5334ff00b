//! The check before a run: whether the programs of a model can be started on this host.

mod hosted_functions;
mod models;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use titin_model::{
    Bundle, Filter, FilterSide, InstanceName, Network, NetworkComponent, PYTHON_BETWEEN,
};

use crate::compile::{Choices, compile};
use crate::host::HostId;
use crate::launch::{LaunchContext, LaunchError, PreparedCommand, prepare};
use crate::plan::{
    ComponentId, InstanceId, Plan, PlannedCommand, PlannedFunction, PlannedProgram, StartMode,
};
use hosted_functions::{FunctionError, environment_of, missing_functions};
pub use models::{ProbedPlace, probe_models};

/// The most errors that the check returns.
const MOST: usize = 20;

/// Why a program cannot be started, or would fail at once. Each printed error says how to go on.
#[derive(Debug, thiserror::Error)]
pub enum PreflightError {
    /// The program cannot be started.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// A function for a host process to run is missing.
    #[error(transparent)]
    Function(#[from] FunctionError),
    /// A filter in Python would run in a program without Python.
    #[error(
        "filter \"{filter}\" is in Python and would run in it, and {} is an executable without Python; {hint}",
        .program.display()
    )]
    FilterNeedsPython {
        /// The filter.
        filter: String,
        /// The executable.
        program: PathBuf,
        /// The advice.
        hint: String,
    },
}

/// The programs that cannot be started, each with the reason. `env` is the environment of the
/// programs, `titin` the path of this command, and `folders` are the folders of the description's
/// files.
pub fn programs_that_cannot_start(
    network: &Network,
    folders: &[PathBuf],
    env: &BTreeMap<String, String>,
    titin: &Path,
) -> Vec<(String, PreflightError)> {
    // The run reports errors of the plan.
    let Ok(plan) = compile(network, folders, &Choices::default()) else {
        return Vec::new();
    };
    let check = ProgramCheck {
        network,
        plan: &plan,
        context: context_without_run(env, titin),
    };
    let mut known = HashSet::new();
    let mut errors = Vec::new();
    for id in plan.instances.ids() {
        let planned = &plan.instances[id];
        let StartMode::Program(program) = &planned.start else {
            continue;
        };
        // Nobody knows here which programs another host has.
        if planned
            .pinned_host
            .is_some_and(|host| host != HostId::MANAGER)
        {
            continue;
        }
        if known.insert(key(program)) && errors.len() < MOST {
            errors.extend(check.errors(id, program));
        }
    }
    errors.truncate(MOST);
    errors
}

/// The key of a program. The programs in a host process start together, so they share a key.
fn key(program: &PlannedProgram) -> (&str, Option<&str>) {
    match &program.command {
        PlannedCommand::Host(hosting) => ("", Some(hosting.name.as_str())),
        _ => (&program.name, None),
    }
}

/// The check of a model's programs.
struct ProgramCheck<'a> {
    network: &'a Network,
    plan: &'a Plan,
    context: LaunchContext<'a>,
}

impl ProgramCheck<'_> {
    /// The errors of a program, or of the programs in a host process, by name.
    fn errors(&self, id: InstanceId, program: &PlannedProgram) -> Vec<(String, PreflightError)> {
        let prepared = match prepare(&self.plan.instances[id].name, program, &self.context) {
            Ok(prepared) => prepared,
            Err(error) => return vec![(program.name.clone(), error.into())],
        };
        match &program.command {
            PlannedCommand::Host(hosting) => {
                let missing = missing_functions(hosting, &prepared, &self.context).into_iter();
                let named = missing.filter_map(|(function, error)| {
                    Some((self.program_of(function)?, error.into()))
                });
                named.collect()
            }
            PlannedCommand::Executable { .. } => {
                let error = self.filter_without_python(program, &prepared);
                let named = error.map(|error| (program.name.clone(), error));
                named.into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The name of the program with a function.
    fn program_of(&self, function: &PlannedFunction) -> Option<String> {
        let instance: InstanceName = function.instance.parse().ok()?;
        let component = self.network.component_of(&instance)?;
        Some(component.program.as_ref()?.name.to_string())
    }

    /// A filter in Python that would run in an executable without Python, if any.
    fn filter_without_python(
        &self,
        program: &PlannedProgram,
        prepared: &PreparedCommand,
    ) -> Option<PreflightError> {
        let mut bundles = self.network.bundles.iter();
        let misplaced = bundles
            .find_map(|bundle| python_filter_in(self.network, bundle, &program.name))
            .filter(|_| lacks_python(prepared))?;
        Some(PreflightError::FilterNeedsPython {
            filter: misplaced.filter,
            program: prepared.launch.program.clone(),
            hint: misplaced.hint,
        })
    }
}

/// A filter in Python that would run in a program without Python.
struct MisplacedFilter {
    filter: String,
    /// The advice.
    hint: String,
}

/// The first filter in Python of a bundle that would run in the program, if any.
fn python_filter_in(network: &Network, bundle: &Bundle, program: &str) -> Option<MisplacedFilter> {
    let filters = network.filters(bundle);
    let sides = network.filter_sides(bundle);
    let (sender, receiver) = network.ends(bundle);
    filters.iter().zip(&sides).find_map(|(filter, side)| {
        let name = network.in_python(filter)?;
        let (here, there, other_side) = match side {
            FilterSide::Sender => (sender, receiver, "receiver"),
            FilterSide::Receiver => (receiver, sender, "sender"),
        };
        if here.program.as_ref()?.name != program {
            return None;
        }
        Some(MisplacedFilter {
            filter: name.to_string(),
            hint: hint_for_filter(network, there, filter, &format!("{name}@{other_side}")),
        })
    })
}

/// A hint for a filter in Python: the other end, if the other end can call Python.
fn hint_for_filter(
    network: &Network,
    there: &NetworkComponent,
    filter: &Filter,
    moved: &str,
) -> String {
    match network.can_call(there.id, filter) {
        true => format!("let it run at the other end: \"{moved}\""),
        false => format!(
            "nor can \"{}\", at the other end, call it: {PYTHON_BETWEEN}",
            there.path
        ),
    }
}

/// Notes the executables without Python at the ends of conduits with a filter in Python. Such a
/// filter then runs at the other end of the conduit, if the other end can call the filter
/// ([`Network::filters`]). `choices` are the choices of the run. The other arguments are as for
/// [`programs_that_cannot_start`].
pub fn find_executables_without_python(
    network: &mut Network,
    folders: &[PathBuf],
    choices: &Choices,
    env: &BTreeMap<String, String>,
    titin: &Path,
) {
    let mut unknown = ends_of_python_filters(network);
    if unknown.is_empty() {
        return;
    }
    // The run reports errors of the plan.
    let Ok(plan) = compile(network, folders, choices) else {
        return;
    };
    let context = context_without_run(env, titin);
    // Many components may have the same executable. The map saves reading the file again.
    let mut executables: HashMap<PathBuf, bool> = HashMap::new();
    let mut without = Vec::new();
    for id in plan.instances.ids() {
        let planned = &plan.instances[id];
        let (StartMode::Program(program) | StartMode::Manual(Some(program))) = &planned.start
        else {
            continue;
        };
        if !unknown.remove(&planned.component_id) {
            continue;
        }
        let Ok(prepared) = prepare(&plan.instances[id].name, program, &context) else {
            continue;
        };
        let executable = executables.entry(prepared.launch.program.clone());
        if *executable.or_insert_with(|| lacks_python(&prepared)) {
            without.push(planned.component_id);
        }
    }
    network.lacks_python(&without);
}

/// The components at the ends of conduits with a filter in Python.
fn ends_of_python_filters(network: &Network) -> HashSet<ComponentId> {
    let is_python = |filter: &Filter| network.in_python(filter).is_some();
    let has_python = |bundle: &&Bundle| bundle.filters.iter().any(is_python);
    let bundles = network.bundles.iter().filter(has_python);
    bundles
        .flat_map(|bundle| [bundle.sender, bundle.receiver])
        .collect()
}

/// The context of programs outside of a run.
fn context_without_run<'a>(
    env: &'a BTreeMap<String, String>,
    titin: &'a Path,
) -> LaunchContext<'a> {
    let nowhere = Path::new("/");
    LaunchContext {
        env,
        connection: nowhere,
        titin: titin.as_os_str(),
        directory: nowhere,
        cores: &[],
        crowded: false,
        temporary: None,
        job_parts: &[],
    }
}

/// Whether a program is an executable without Python.
fn lacks_python(prepared: &PreparedCommand) -> bool {
    prepared.bare && hosted_functions::is_without_python(&prepared.launch.program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The programs that cannot be started, each with the reason in words.
    fn refused(
        network: &Network,
        folders: &[PathBuf],
        env: &BTreeMap<String, String>,
    ) -> Vec<(String, String)> {
        let errors = programs_that_cannot_start(network, folders, env, Path::new("/bin/titin"));
        errors
            .into_iter()
            .map(|(program, error)| (program, error.to_string()))
            .collect()
    }

    fn network_of(text: &str) -> Network {
        let description = titin_model::load_texts(&[("m", text)], &Default::default());
        description.unwrap().network(None).unwrap()
    }

    #[test]
    fn programs_that_are_not_there_are_named_once() {
        let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {description: x, implementation: gone, \
                    multiplicity: 3}\n      b: {description: x, implementation: there}\n      c: {description: x, \
                    implementation: lost}\n      d: {description: x, implementation: by_hand}\nprograms:\n  gone: \
                    {executable: ./gone}\n  there: {executable: sh}\n  lost: {executable: no-such-program}\n  by_hand: \
                    {execution_model: manual}\n";
        let network = network_of(text);
        let env = BTreeMap::from([("PATH".to_owned(), "/bin:/usr/bin".to_owned())]);
        let found = refused(&network, &[], &env);
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["gone", "lost"]);
        assert!(found[0].1.contains("gone does not exist"), "{found:?}");
        assert!(found[1].1.contains("PATH is /bin:/usr/bin"), "{found:?}");
    }

    /// A folder with programs in C and in Python.
    fn folder_of_programs() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        // A program that `titin config --libs` has linked, with titin in an environment of Python.
        write(
            "in_c",
            b"\x7fELF\0libtitin.so\0/venv/lib/python3.11/site-packages/titin/lib\0",
        );
        write("embeds", b"\x7fELF\0libtitin.so\0libpython3.11.so\0");
        write("script", b"#!/usr/bin/env python3\nimport titin\n");
        write("in_c_too", b"\x7fELF\0libtitin.so\0");
        folder
    }

    /// A model whose conduit has filters, from the program `sender` to `program`.
    fn text_with_filters(conduit: &str, program: &str, sender: &str) -> String {
        format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {{description: x, ports: {{o_i: out}}, \
             implementation: script}}\n      b: {{description: x, ports: {{s: in}}, implementation: own}}\n    conduits: \
             {{a.out: {conduit}}}\nprograms:\n  script: {{executable: ./{sender}}}\n  own: {{executable: ./{program}}}\n\
             titin: {{filters: {{mine: {{python: 'm:f'}}, native: {{library: ./f.so, symbol: f}}}}}}\n"
        )
    }

    /// The programs that cannot be started, after a look for executables without Python.
    fn refused_with_filters(mut network: Network, folder: &Path) -> Vec<(String, String)> {
        let (folders, env) = ([folder.to_owned()], BTreeMap::new());
        let (choices, titin) = (Choices::default(), Path::new("/bin/titin"));
        find_executables_without_python(&mut network, &folders, &choices, &env, titin);
        refused(&network, &folders, &env)
    }

    #[test]
    fn a_filter_in_python_is_missed_by_executables_without_python() {
        let folder = folder_of_programs();
        let named = |conduit: &str, program: &str, sender: &str| {
            let network = network_of(&text_with_filters(conduit, program, sender));
            refused_with_filters(network, folder.path())
        };
        // The sender is in Python, so the filter could run there. But the conduit ties the filter
        // to the receiver.
        for (conduit, told) in [
            (
                "mine@receiver b.in",
                "let it run at the other end: \"mine@sender\"",
            ),
            (
                "native@receiver mine b.in",
                "let it run at the other end: \"mine@sender\"",
            ),
        ] {
            let found = named(conduit, "in_c", "script");
            assert_eq!(found.len(), 1, "{conduit}: {found:?}");
            assert!(
                found[0].0 == "own" && found[0].1.contains("filter \"mine\" is in Python"),
                "{found:?}"
            );
            assert!(found[0].1.ends_with(told), "{found:?}");
        }
        let found = named("mine b.in", "in_c", "in_c_too");
        assert!(
            found[0].0 == "own"
                && found[0]
                    .1
                    .contains("nor can \"a\", at the other end, call it: put a component"),
            "{found:?}"
        );
        for (conduit, program, sender) in [
            ("mine b.in", "in_c", "script"),
            ("mine native scale(2) b.in", "in_c", "script"),
            ("mine b.in", "embeds", "in_c"),
            ("mine b.in", "script", "in_c"),
            ("mine astype(int32) b.in", "script", "in_c"),
            ("zstd mine b.in", "script", "in_c"),
            ("mine@sender b.in", "in_c", "script"),
            ("native b.in", "in_c", "in_c_too"),
            ("b.in", "in_c", "in_c_too"),
        ] {
            assert_eq!(
                named(conduit, program, sender),
                [],
                "{conduit} {program} {sender}"
            );
        }
    }

    #[test]
    fn libraries_and_functions_that_are_not_there_are_named_by_their_programs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("libthere.so"),
            b"\x7fELF\0resolve\0main_loop\0",
        )
        .unwrap();
        std::fs::write(folder.path().join("libtext.so"), "not built yet").unwrap();
        let programs = [
            ("good", "library: ./libthere.so, function: solve"),
            ("absent", "library: ./libthere.so, step: main"),
            ("gone", "library: ./libgone.so, function: solve"),
            ("text", "library: libtext.so, function: solve"),
            ("loader", "library: libc.so.6, function: solve"),
            ("nowhere", "library: libnowhere-at-all.so, function: solve"),
        ];
        let text: String = programs.iter().fold(
            "ymmsl_version: v0.2\nmodels: {m: {components: {".to_owned(),
            |text, (name, _)| {
                text + &format!("{name}: {{description: x, implementation: {name}}}, ")
            },
        ) + "}}}\nprograms:\n";
        let text = programs.iter().fold(text, |text, (name, call)| {
            text + &format!("  {name}: {{titin: {{host: h, {call}}}}}\n")
        });
        let network = network_of(&text);
        let folders = [folder.path().to_owned()];
        let mut found = refused(&network, &folders, &BTreeMap::new());
        found.sort();
        let place = folder.path().display();
        let why = |name: &str| {
            &found
                .iter()
                .find(|(program, _)| program == name)
                .expect(name)
                .1
        };
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(
            why("absent").contains("libthere.so has no function main with C linkage"),
            "{found:?}"
        );
        assert_eq!(*why("gone"), format!("there is no ./libgone.so in {place}"));
        assert!(
            why("text").ends_with("libtext.so is no shared library"),
            "{found:?}"
        );
        assert!(
            why("nowhere").ends_with("nor where the system looks for libraries"),
            "{found:?}"
        );
    }
}
