//! Whether the programs of a model can be started on this host: for those who ask before it is run.

mod guests;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use titin_model::{Call, FilterKind, InstanceName, Network, Side};

use crate::compile::{Choices, compile};
use crate::launch::{Surroundings, prepare};
use crate::plan::{Program, Start, What};

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
    let Ok(plan) = compile(network, folders, &Choices::default()) else { return Vec::new() };
    let nowhere = Path::new("/");
    let around = Surroundings {
        env,
        connection: nowhere,
        titin: titin.as_os_str(),
        directory: nowhere,
        cores: &[],
        crowded: false,
        passing: None,
    };
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for id in plan.instances.ids() {
        let Start::Program(program) = &plan.instances[id].start else { continue };
        if !known.insert(key(program)) {
            continue;
        }
        match (prepare(&plan, id, program, &around), &program.what) {
            (Err(why), _) => found.push((program.name.clone(), why)),
            (Ok(prepared), What::Host(hosting)) => {
                // Programs of one host are started together, but each has a function of its own.
                let named =
                    guests::lost(hosting, &prepared, &around).into_iter().filter_map(|(guest, why)| {
                        let component =
                            network.component_of(&guest.instance.parse::<InstanceName>().ok()?)?;
                        Some((component.program.as_ref()?.name.to_string(), why))
                    });
                found.extend(named);
            }
            (Ok(prepared), What::Executable { .. }) if prepared.bare => {
                let path = &prepared.launch.program;
                if let Some(filter) = python_filter(network, &program.name)
                    && guests::is_without_python(path)
                {
                    let why = format!(
                        "filter \"{filter}\" is in Python and has to run in it, and {} is an executable without Python; pin it to \
                         the other end (\"{filter}@sender\", \"{filter}@receiver\"), or write it as a function of a shared library",
                        path.display()
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

/// A filter in Python that has to run in a program, if there is one.
fn python_filter(network: &Network, program: &str) -> Option<String> {
    network.bundles.iter().find_map(|bundle| {
        let (sender, receiver) = network.ends(bundle);
        bundle.filters.iter().zip(network.filter_sides(bundle)).find_map(|(filter, side)| {
            let FilterKind::User(name) = &filter.kind else { return None };
            let own = network.extras.filters.get(name)?;
            let runs = if side == Side::Sender { sender } else { receiver }.program.as_ref()?;
            (runs.name == program && matches!(own.call, Call::Python { .. })).then(|| name.to_string())
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
        write("in_c", b"\x7fELF\0libtitin.so\0");
        write("embeds", b"\x7fELF\0libtitin.so\0libpython3.11.so\0");
        write("script", b"#!/usr/bin/env python3\nimport titin\n");
        let named = |conduit: &str, program: &str| {
            let text = format!(
                "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {{description: x, ports: {{o_i: out}}, \
                 implementation: script}}\n      b: {{description: x, ports: {{s: in}}, implementation: own}}\n    conduits: \
                 {{a.out: {conduit}}}\nprograms:\n  script: {{executable: ./script}}\n  own: {{executable: ./{program}}}\n\
                 titin: {{filters: {{mine: {{python: 'm:f'}}, native: {{library: ./f.so, symbol: f}}}}}}\n"
            );
            let description = titin_model::load_texts(&[("m", &text)], &Default::default()).unwrap();
            let network = description.network(None).unwrap();
            let folders = [folder.path().to_owned()];
            not_here(&network, &folders, &BTreeMap::new(), Path::new("/bin/titin"))
        };
        let found = named("mine b.in", "in_c");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].0 == "own" && found[0].1.contains("filter \"mine\" is in Python"), "{found:?}");
        for (conduit, program) in [
            ("mine b.in", "embeds"),
            ("mine b.in", "script"),
            ("mine@sender b.in", "in_c"),
            ("native b.in", "in_c"),
            ("b.in", "in_c"),
        ] {
            assert_eq!(named(conduit, program), [], "{conduit} {program}");
        }
    }

    #[test]
    fn libraries_and_functions_that_are_not_there_are_named_by_their_programs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("libthere.so"), b"\x7fELF\0resolve\0main_loop\0").unwrap();
        std::fs::write(folder.path().join("libtext.so"), "not built yet").unwrap();
        let programs = [
            ("good", "library: ./libthere.so, function: solve"),
            ("absent", "library: ./libthere.so, step: main"),
            ("gone", "library: ./libgone.so, function: solve"),
            ("text", "library: libtext.so, function: solve"),
            ("loader", "library: libc.so.6, function: solve"),
            ("nowhere", "library: libnowhere-at-all.so, function: solve"),
        ];
        let text: String = programs
            .iter()
            .fold("ymmsl_version: v0.2\nmodels: {m: {components: {".to_owned(), |text, (name, _)| {
                text + &format!("{name}: {{description: x, implementation: {name}}}, ")
            })
            + "}}}\nprograms:\n";
        let text = programs
            .iter()
            .fold(text, |text, (name, call)| text + &format!("  {name}: {{titin: {{host: h, {call}}}}}\n"));
        let description = titin_model::load_texts(&[("m", &text)], &Default::default()).unwrap();
        let network = description.network(None).unwrap();
        let folders = [folder.path().to_owned()];
        let mut found = not_here(&network, &folders, &BTreeMap::new(), Path::new("/bin/titin"));
        found.sort();
        let place = folder.path().display();
        let why = |name: &str| &found.iter().find(|(program, _)| program == name).expect(name).1;
        assert_eq!(found.len(), 4, "{found:?}");
        assert!(why("absent").contains("libthere.so has no function main with C linkage"), "{found:?}");
        assert_eq!(*why("gone"), format!("there is no ./libgone.so in {place}"));
        assert!(why("text").ends_with("libtext.so is no shared library"), "{found:?}");
        assert!(why("nowhere").ends_with("nor where the system looks for libraries"), "{found:?}");
    }
}
