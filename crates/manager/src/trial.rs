//! Whether the programs of a model can be started on this host: for those who ask before it is run.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use titin_model::Network;

use crate::compile::{Choices, compile};
use crate::launch::{Surroundings, prepare};
use crate::plan::Start;

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
    let around =
        Surroundings { env, connection: nowhere, titin: titin.as_os_str(), directory: nowhere, cores: &[] };
    let mut known = HashSet::new();
    let mut found = Vec::new();
    for id in plan.instances.ids() {
        if let Start::Program(program) = &plan.instances[id].start
            && known.insert(&program.name)
            && let Err(why) = prepare(&plan, id, program, &around)
        {
            found.push((program.name.clone(), why));
            if found.len() == MOST {
                break;
            }
        }
    }
    found
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
}
