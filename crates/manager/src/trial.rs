//! Whether the programs of a model can be started on this host: for those who ask before it is run.

mod guests;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use titin_model::{Filter, FilterSide, InstanceName, Network, PYTHON_BETWEEN};

use crate::compile::{Choices, compile};
use crate::launch::{Prepared, Surroundings, prepare};
use crate::plan::{ComponentId, InstanceId, Program, Start, What};

/// The most programs that are named.
const MOST: usize = 20;

/// The programs that cannot be, each with why. `env` is the environment that they would come to run in, `titin` this command,
/// and `folders` are those of the description's files.
pub fn not_here(
    network: &Network,
    folders: &[PathBuf],
    env: &BTreeMap<String, String>,
    titin: &Path,
) -> Vec<(String, String)> {
    // Whoever runs it is told of what is wrong with a plan.
    let Ok(plan) = compile(network, folders, &Choices::default()) else {
        return Vec::new();
    };
    let around = nowhere(env, titin);
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for id in plan.instances.ids() {
        let Start::Program(program) = &plan.instances[id].start else {
            continue;
        };
        if !known.insert(key(program)) {
            continue;
        }
        match (prepare(&plan, id, program, &around), &program.what) {
            (Err(why), _) => found.push((program.name.clone(), why)),
            (Ok(prepared), What::Host(hosting)) => {
                // Programs of one host are started together, but each has a function of its own.
                let named = guests::lost(hosting, &prepared, &around)
                    .into_iter()
                    .filter_map(|(guest, why)| {
                        let component =
                            network.component_of(&guest.instance.parse::<InstanceName>().ok()?)?;
                        Some((component.program.as_ref()?.name.to_string(), why))
                    });
                found.extend(named);
            }
            (Ok(prepared), What::Executable { .. }) => {
                let path = prepared.launch.program.display();
                if let Some(stuck) = python_filter(network, &program.name)
                    && lacks_python(&prepared)
                {
                    let why = format!(
                        "filter \"{}\" is in Python and would run in it, and {path} is an executable without Python; {}",
                        stuck.filter, stuck.hint
                    );
                    found.push((program.name.clone(), why));
                }
            }
            (Ok(_), _) => {}
        }
        if found.len() >= MOST {
            found.truncate(MOST);
            break;
        }
    }
    found
}

/// Finds out in which executables there is no Python, where a filter in Python might have to run: it runs at the other end of its
/// conduit then, if that can call it ([`Network::filters`]). `choices` are those of the run; the rest is as for [`not_here`].
pub fn look_for_python(
    network: &mut Network,
    folders: &[PathBuf],
    choices: &Choices,
    env: &BTreeMap<String, String>,
    titin: &Path,
) {
    let python = |filter: &Filter| network.in_python(filter).is_some();
    let bundles = network
        .bundles
        .iter()
        .filter(|bundle| bundle.filters.iter().any(python));
    let mut ends: HashSet<ComponentId> = bundles
        .flat_map(|bundle| [bundle.sender, bundle.receiver])
        .collect();
    // Whoever runs it is told of what is wrong with a plan.
    let Some(plan) = (!ends.is_empty())
        .then(|| compile(network, folders, choices).ok())
        .flatten()
    else {
        return;
    };
    let around = nowhere(env, titin);
    // Many components may be of one executable, which is read as a whole.
    let mut executables: HashMap<PathBuf, bool> = HashMap::new();
    let without = |id: InstanceId| {
        let planned = &plan.instances[id];
        let (Start::Program(program) | Start::ByHand(Some(program))) = &planned.start else {
            return None;
        };
        let first = ends.remove(&planned.component_id);
        let prepared = first
            .then(|| prepare(&plan, id, program, &around).ok())
            .flatten()?;
        let lacks = || lacks_python(&prepared);
        executables
            .entry(prepared.launch.program.clone())
            .or_insert_with(lacks)
            .then_some(planned.component_id)
    };
    let without: Vec<ComponentId> = plan.instances.ids().filter_map(without).collect();
    network.lacks_python(&without);
}

/// What programs are prepared for that nobody starts.
fn nowhere<'a>(env: &'a BTreeMap<String, String>, titin: &'a Path) -> Surroundings<'a> {
    let nowhere = Path::new("/");
    Surroundings {
        env,
        connection: nowhere,
        titin: titin.as_os_str(),
        directory: nowhere,
        cores: &[],
        crowded: false,
        passing: None,
    }
}

/// Whether a program is an executable in which there is no Python.
fn lacks_python(prepared: &Prepared) -> bool {
    prepared.bare && guests::is_without_python(&prepared.launch.program)
}

/// A filter in Python that would run in a program without Python.
struct Stuck {
    filter: String,
    /// What helps.
    hint: String,
}

/// A filter in Python that would run in a program, if there is one.
fn python_filter(network: &Network, program: &str) -> Option<Stuck> {
    network.bundles.iter().find_map(|bundle| {
        let (sender, receiver) = network.ends(bundle);
        let sides = network.filter_sides(bundle);
        network
            .filters(bundle)
            .iter()
            .zip(&sides)
            .find_map(|(filter, side)| {
                let name = network.in_python(filter)?;
                let (here, there, word) = match side {
                    FilterSide::Sender => (sender, receiver, "receiver"),
                    FilterSide::Receiver => (receiver, sender, "sender"),
                };
                if here.program.as_ref()?.name != program {
                    return None;
                }
                let hint = match network.can_call(there.id, filter) {
                    true => format!("let it run at the other end: \"{name}@{word}\""),
                    false => format!(
                        "nor can \"{}\", at the other end, call it: {PYTHON_BETWEEN}",
                        there.path
                    ),
                };
                Some(Stuck {
                    filter: name.to_string(),
                    hint,
                })
            })
    })
}

/// What tells programs apart: by the first of a host's all of them are started.
fn key(program: &Program) -> (&str, Option<&str>) {
    let host = match &program.what {
        What::Host(hosting) => Some(hosting.name.as_str()),
        _ => None,
    };
    (if host.is_some() { "" } else { &program.name }, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_are_not_there_are_named_once() {
        let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {description: x, implementation: gone, \
                    multiplicity: 3}\n      b: {description: x, implementation: there}\n      c: {description: x, \
                    implementation: lost}\n      d: {description: x, implementation: by_hand}\nprograms:\n  gone: \
                    {executable: ./gone}\n  there: {executable: sh}\n  lost: {executable: no-such-program}\n  by_hand: \
                    {execution_model: manual}\n";
        let description = titin_model::load_texts(&[("m", text)], &Default::default()).unwrap();
        let network = description.network(None).unwrap();
        let env = BTreeMap::from([("PATH".to_owned(), "/bin:/usr/bin".to_owned())]);
        let found = not_here(&network, &[], &env, Path::new("/bin/titin"));
        let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["gone", "lost"]);
        assert!(found[0].1.contains("gone does not exist"), "{found:?}");
        assert!(found[1].1.contains("PATH is /bin:/usr/bin"), "{found:?}");
    }

    #[test]
    fn a_filter_in_python_is_missed_by_executables_without_python() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: &[u8]| {
            use std::os::unix::fs::PermissionsExt;
            let path = folder.path().join(name);
            std::fs::write(&path, bytes).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        // As `titin config --libs` has it linked, from an environment of Python's.
        write(
            "in_c",
            b"\x7fELF\0libtitin.so\0/venv/lib/python3.11/site-packages/titin/lib\0",
        );
        write("embeds", b"\x7fELF\0libtitin.so\0libpython3.11.so\0");
        write("script", b"#!/usr/bin/env python3\nimport titin\n");
        write("in_c_too", b"\x7fELF\0libtitin.so\0");
        let named = |conduit: &str, program: &str, sender: &str| {
            let text = format!(
                "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {{description: x, ports: {{o_i: out}}, \
                 implementation: script}}\n      b: {{description: x, ports: {{s: in}}, implementation: own}}\n    conduits: \
                 {{a.out: {conduit}}}\nprograms:\n  script: {{executable: ./{sender}}}\n  own: {{executable: ./{program}}}\n\
                 titin: {{filters: {{mine: {{python: 'm:f'}}, native: {{library: ./f.so, symbol: f}}}}}}\n"
            );
            let description =
                titin_model::load_texts(&[("m", &text)], &Default::default()).unwrap();
            let mut network = description.network(None).unwrap();
            let (folders, env, titin) = (
                [folder.path().to_owned()],
                BTreeMap::new(),
                Path::new("/bin/titin"),
            );
            look_for_python(&mut network, &folders, &Choices::default(), &env, titin);
            not_here(&network, &folders, &env, titin)
        };
        // The sender is Python, so it can run there; if it may.
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
        let description = titin_model::load_texts(&[("m", &text)], &Default::default()).unwrap();
        let network = description.network(None).unwrap();
        let folders = [folder.path().to_owned()];
        let mut found = not_here(
            &network,
            &folders,
            &BTreeMap::new(),
            Path::new("/bin/titin"),
        );
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
