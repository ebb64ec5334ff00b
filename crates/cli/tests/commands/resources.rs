use crate::{folder, titin};

const MODEL: &str = "\
ymmsl_version: v0.2
models:
  m:
    components:
      macro: {description: slow, ports: {o_i: state, s: answer}, implementation: p}
      micro: {description: fast, ports: {f_init: state, o_f: answer}, implementation: q, multiplicity: 3}
    conduits: {macro.state: micro.state, micro.answer: macro.answer}
programs:
  p: {executable: p}
  q: {executable: q, execution_model: openmpi}
resources:
  m.macro: {threads: 4}
  m.micro: {mpi_processes: 5}
";

#[test]
fn cores_and_nodes_are_counted() {
    let folder = folder(MODEL);
    let done = titin(folder.path(), &["resources", "model.ymmsl"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    done.assert_out("component  instances  processes  threads  takes turns with");
    done.assert_out("macro              1          1        4  micro\n");
    done.assert_out("micro              3          5        1  macro\n");
    done.assert_out("15 cores: the fewest on which no program waits for a core\n");
    done.assert_out("4 cores: the most of which every core computes all the time\n");
    let done = titin(
        folder.path(),
        &["resources", "--cores-per-node", "4", "model.ymmsl"],
    );
    done.assert_out("15 cores, 4 nodes of 4: the fewest");
    done.assert_out("4 cores, 1 node of 4: the most");
}

#[test]
fn the_numbers_are_told_to_machines_too() {
    let folder = folder(MODEL);
    let arguments = [
        "resources",
        "--json",
        "--cores-per-node",
        "8",
        "model.ymmsl",
    ];
    let done = titin(folder.path(), &arguments);
    let told: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(
        told,
        serde_json::json!({
            "model": "m",
            "components": [
                {"name": "macro", "instances": 1, "processes": 1, "threads": 4, "takes_turns_with": ["micro"]},
                {"name": "micro", "instances": 3, "processes": 5, "threads": 1, "takes_turns_with": ["macro"]},
            ],
            "without_waiting": {"cores": 15, "nodes": 2},
            "always_busy": {"cores": 4, "nodes": 1},
        })
    );
}

/// The placement depends on the cores of this host; its rules are tested in the manager.
#[test]
fn a_run_says_where_its_instances_would_go() {
    let folder = folder(MODEL);
    let done = titin(folder.path(), &["run", "--plan", "--json", "model.ymmsl"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    let placed: Vec<serde_json::Value> = serde_json::from_str(&done.out).expect("JSON");
    let names: Vec<_> = placed.iter().map(|placed| &placed["instance"]).collect();
    assert_eq!(names, ["macro", "micro[0]", "micro[1]", "micro[2]"]);
    // The first core goes to the macro model, and the micro model takes turns on it.
    assert_eq!(placed[0]["cores"][0], placed[1]["cores"][0]);
    assert!(
        placed[0]["takes_turns_with"]
            .as_array()
            .unwrap()
            .contains(&"micro[0]".into())
    );
    assert_eq!(placed[0]["competes_with"], serde_json::json!([]));
    assert_eq!(
        (&placed[1]["processes"], &placed[1]["threads"]),
        (&5.into(), &1.into())
    );
    let done = titin(folder.path(), &["run", "--plan", "model.ymmsl"]);
    done.assert_out("instance  host       processes  threads");
    let entries = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(entries, 1, "nothing was started, and no run directory made");
}

#[test]
fn instances_with_too_few_cores_are_named() {
    let hosts = "titin: {hosts: {localhost: {cores: 1}}}\n";
    let folder = folder(&format!("{MODEL}{hosts}"));
    let done = titin(folder.path(), &["run", "--plan", "model.ymmsl"]);
    done.assert_out("slower for it: macro (wants 4 cores), micro[0] (wants 5 cores), micro[1]");
    let done = titin(folder.path(), &["run", "--plan", "--json", "model.ymmsl"]);
    let placed: Vec<serde_json::Value> = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(placed[0]["has_too_few_cores"], true);
}

#[test]
fn a_process_that_no_node_holds_is_named() {
    let folder = folder(MODEL);
    let done = titin(
        folder.path(),
        &["resources", "--cores-per-node", "3", "model.ymmsl"],
    );
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(
        done.err
            .contains("macro has processes of 4 threads, and a node has 3 cores"),
        "{}",
        done.err
    );
}

#[test]
fn a_bad_description_is_told_as_by_check() {
    let folder = folder("ymmsl_version: v0.2\nmodels: {m: {components: {a: {cunduits: 1}}}}\n");
    let done = titin(folder.path(), &["resources", "model.ymmsl"]);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    assert!(done.err.contains("error: "), "{}", done.err);
    let done = titin(folder.path(), &["resources", "--json", "model.ymmsl"]);
    let told: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let problems = told["problems"].as_array().unwrap();
    let names_key = |problem: &serde_json::Value| problem["code"] == "unknown-key";
    assert_eq!(done.code, Some(2));
    assert!(problems.iter().any(names_key), "{}", done.out);
}

#[test]
fn a_plan_names_the_sites_of_hosts() {
    let sites = "titin:
  sites: {south: {relay: \"login:4710\"}}
  hosts: {localhost: {components: [macro]}, far: {site: south, cores: 8, components: [micro]}}
";
    let folder = folder(&format!("{MODEL}{sites}"));
    let done = titin(folder.path(), &["run", "--plan", "model.ymmsl"]);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    done.assert_out("micro[0]  far at south");
    let done = titin(folder.path(), &["run", "--plan", "--json", "model.ymmsl"]);
    let placed: Vec<serde_json::Value> = serde_json::from_str(&done.out).expect("JSON");
    let sites: Vec<_> = placed
        .iter()
        .map(|placed| placed["site"].as_str())
        .collect();
    assert_eq!(sites, [None, Some("south"), Some("south"), Some("south")]);
}
