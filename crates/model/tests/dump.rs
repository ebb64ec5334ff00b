//! A description that is written and read again is the same description.

use titin_model::{AgentStart, Description, LoadOptions, Operator, StartPolicy, load_texts};

const EVERYTHING: &str = r#"
ymmsl_version: v0.2
description: |
  All of it.

  In one file.
models:
  inner:
    description: used by outer
    ports: {f_init: a_in, o_f: b_out}
    supported_settings: {k: float how fast, tab: [[float]]}
    components:
      core:
        description: "the core: of it"
        ports:
          f_init: a_in
          o_f: b_out
          timeline fast:
            o_i: probe_out
            s: probe_in
        implementation: core_prog
        multiplicity: [2, 3]
      probe:
        description: looks
        ports: {f_init: a, o_f: b}
        optional: true
    conduits:
      a_in: core.a_in
      core.b_out: b_out
  outer:
    components:
      macro:
        description: slow
        ports: {o_i: out out2 out3, s: in in2, o_f: final}
        implementation: macro_prog
      micro:
        description: nested
        ports: {f_init: a_in, o_f: b_out}
        implementation: inner
      rec:
        description: records
        ports: {f_init: in extra more}
        implementation: titin.sink
      twin:
        description: beside macro
        ports: {o_i: out, s: in}
        implementation: macro_prog
    matching_timelines: {macro: twin}
    conduits:
      macro.out: zstd micro.a_in
      macro.out2: twin.in
      twin.out: macro.in2
      macro.out3: [last scale(2.0 0.5)@sender rec.extra, 'last scale(1.0, -0.5) rec.more']
      micro.b_out: macro.in
      macro.final: mine rec.in
programs:
  macro_prog:
    description: in C
    supported_settings: {dt: float, "mode": "str how"}
    executable: ./macro
    args: [-v, "a b", "on"]
    modules: gcc/13 openmpi/4.1
    virtual_env: /opt/venv
    env: {OMP: 4, +PATH: ":/opt"}
    base_env: clean
    keeps_state_for_next_use: no
    can_share_resources: false
  core_prog:
    execution_model: openmpi
    script: |
      #!/bin/bash
      mpirun core
custom_implementations: {outer.micro.probe: null}
settings:
  dt: 10 ms
  macro.dt: 1e-3
  "micro.core[1].k": 3
  mode: "yes"
  list: [1, 2]
  floats: [1.0, 2.5e-9]
  table: [[1.0, 2.0], [3.0, 4.0]]
  on: true
resources:
  outer.macro: {threads: 4}
  outer.micro.core: {mpi_processes: 8, threads_per_mpi_process: 2}
checkpoints:
  at_end: true
  simulation_time: [{every: 10.0, start: 0.0, stop: 100.0}, {at: [5.0, 7.5]}]
titin:
  scales: {macro: {dt: 1 h, total: 3 days, dx: 2.5 km, extent: [10 km, 20 km]}}
  stage: {macro: {in: [a.nc], out: ["*.npy", b]}}
  time_unit: h
  progress: {macro: t_max, micro.core: 10 s, rec: 2}
  filters: {mine: {python: "filters.own:f", side: sender}, native: {library: ./f.so, symbol: f}}
  buffer: {default: {messages: 64, bytes: 1 GiB}, macro.out: {messages: 8}}
  medium: {rec.in: tcp}
  grace: 5 s
  required: {macro_prog: [out]}
  links: {default: {streams: 4, pacing: 10 MB/s}, macro: {send_buffer: 4 MiB, receive_buffer: 1 MB, compress: never}}
  hosts:
    localhost: {cores: 0, network: 10.70.0.0/24}
    node-1.example.org: {address: me@node1, start: mpirun, titin: /opt/titin, folder: /scratch, cores: 8, network: eth1, components: [macro]}
    box: {start: [docker, exec, -i, box]}
    hand: {start: by hand}
    plain: {}
    far: {site: south}
    queued: {start: {batch: slurm, time: 2 h, nodes: 2, cores_per_node: 16, queue: long, account: x, options: {constraint: gpu, nice: -5}, via: [ssh, login.south]}}
    soon: {start: {batch: local, time: 90 s}}
  sites: {south: {relay: "login1:4710"}}
  patience: 30 min
  encrypt: false
"#;

#[test]
fn what_is_written_reads_the_same() {
    let options = LoadOptions {
        model: Some("outer".into()),
        ..LoadOptions::default()
    };
    let first = load_texts(&[("a", EVERYTHING)], &options).unwrap_or_else(|e| panic!("{e}"));
    let written = first.to_ymmsl();
    let second =
        load_texts(&[("b", &written)], &options).unwrap_or_else(|e| panic!("{e}\n{written}"));
    assert_eq!(second.to_ymmsl(), written);
    assert_eq!(second.settings.value("mode"), first.settings.value("mode"));
    assert_eq!(second.settings.len(), first.settings.len());
    assert_eq!(
        second.extras.scales["macro"].dt,
        first.extras.scales["macro"].dt
    );
    assert_eq!(second.programs["macro_prog"].env["OMP"], "4");
    let beyond = |description: &Description| {
        let extras = &description.extras;
        let patience = extras.patience.map(|time| time.in_unit("min").unwrap());
        let (host, site) = (&extras.hosts["far"], &extras.sites["south"]);
        let networks = extras.hosts.values().map(|host| host.network.clone());
        (
            networks.collect::<Vec<_>>(),
            patience,
            extras.encrypt,
            host.site.clone(),
            site.relay.clone(),
        )
    };
    let (networks, patience, encrypt, _, relay) = beyond(&first);
    let named: Vec<String> = networks.iter().flatten().map(ToString::to_string).collect();
    assert_eq!(named, ["10.70.0.0/24", "eth1"]);
    assert_eq!((patience, encrypt), (Some(30.0), Some(false)));
    assert_eq!(relay, "login1:4710");
    assert_eq!(beyond(&second), beyond(&first));
    for name in ["queued", "soon"] {
        let start = |description: &Description| description.extras.hosts[name].start.clone();
        assert!(matches!(start(&first), AgentStart::Batch(_)));
        assert_eq!(start(&second), start(&first));
    }
}

#[test]
fn v01_is_written_as_v02() {
    let old = "
ymmsl_version: v0.1
model:
  name: old
  components:
    macro: {implementation: a, ports: {o_i: out, s: in}}
    micro: {implementation: b, multiplicity: 3, ports: {f_init: in, o_f: out}}
  conduits:
    macro.out: micro.in
    micro.out: macro.in
implementations:
  a: {executable: ./a}
  b: 'echo b'
resources: {macro: {threads: 2}, micro: {threads: 1}}
settings: {micro.x: 1}
";
    let description =
        load_texts(&[("old", old)], &LoadOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let written = description.to_ymmsl();
    assert!(written.starts_with("ymmsl_version: v0.2\n"), "{written}");
    assert!(written.contains("old.macro"), "{written}");
    let options = LoadOptions {
        start: StartPolicy::ByHand,
        ..LoadOptions::default()
    };
    load_texts(&[("new", &written)], &options).unwrap_or_else(|e| panic!("{e}\n{written}"));
}

#[test]
fn what_was_guessed_gives_way_to_what_the_program_says() {
    let old = "
ymmsl_version: v0.1
model:
  name: old
  components: {macro: a, micro: b}
  conduits:
    macro.out: micro.in
    micro.out: macro.in
";
    let programs = "
ymmsl_version: v0.2
programs:
  a: {executable: ./a, ports: {o_i: out, s: in}}
  b: {executable: ./b}
";
    let description = load_texts(
        &[("old", old), ("programs", programs)],
        &LoadOptions::default(),
    );
    let description = description.unwrap_or_else(|e| panic!("{e}"));
    let ports = |name: &str| &description.models["old"].components[name].ports;
    assert_eq!(
        (
            ports("macro")["out"].operator,
            ports("macro")["out"].guessed
        ),
        (Operator::OI, false)
    );
    assert!(ports("micro")["out"].guessed);
    let written = description.to_ymmsl();
    assert!(
        written.contains("o_i: out") && !written.contains("f_init"),
        "{written}"
    );
}
