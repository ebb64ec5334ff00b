//! The start mode of components decides which programs must exist.

use std::path::Path;

use titin_model::{BuiltIn, Code, LoadOptions, ProgramKind, StartPolicy, load_texts};

const MODEL: &str = "
ymmsl_version: v0.2
models:
  m:
    components:
      macro: {description: a, ports: {o_i: out, s: in}}
      micro: {description: b, ports: {f_init: in, o_f: out}, implementation: fast, multiplicity: 2}
      extra: {description: c, ports: {f_init: in}, optional: true}
      sink: {description: d, ports: {f_init: in}, implementation: titin.sink}
    conduits:
      macro.out: [micro.in]
      micro.out: macro.in
";

fn load(start: StartPolicy) -> Result<titin_model::Description, Vec<Code>> {
    let options = LoadOptions {
        start,
        ..LoadOptions::default()
    };
    load_texts(&[("t", MODEL)], &options)
        .map_err(|report| report.problems.iter().map(|p| p.code).collect())
}

#[test]
fn programs_must_be_described_to_be_started() {
    assert_eq!(
        load(StartPolicy::Programs).unwrap_err(),
        [Code::NoImplementation, Code::UnknownImplementation]
    );
}

#[test]
fn what_is_missing_is_left_out_where_that_is_allowed() {
    let described = MODEL.replace("implementation: fast, ", "");
    let options = LoadOptions {
        allow_missing: true,
        ..LoadOptions::default()
    };
    let description = load_texts(&[("t", described.as_str())], &options).unwrap();
    let warnings = &description.warnings.problems;
    let told: Vec<&str> = warnings
        .iter()
        .map(|problem| problem.what.as_str())
        .collect();
    assert_eq!(
        told,
        [
            "component \"macro\" is left out, with its conduits",
            "component \"micro\" is left out, with its conduits",
        ]
    );
    let network = description.network(None).unwrap();
    let paths: Vec<_> = network.components.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["sink"]);

    let described = described.replace(", implementation: titin.sink", "");
    let description = load_texts(&[("t", described.as_str())], &options);
    let report = description
        .and_then(|description| description.network(None))
        .unwrap_err();
    let told = report.to_string();
    assert!(told.contains("nothing of the model m can run"), "{told}");
    assert!(network.bundles.is_empty());
}

/// A setting of a component that is missing is no mistake, also where its name is near another's.
#[test]
fn a_setting_of_what_is_left_out_is_no_error() {
    let told = |settings: &str, options: LoadOptions| -> Vec<String> {
        let described = MODEL.replace("implementation: fast, ", "") + settings;
        let problems = match load_texts(&[("t", &described)], &options) {
            Ok(description) => description.warnings.problems,
            Err(report) => report.problems,
        };
        let told = problems
            .iter()
            .filter(|problem| problem.what.contains("setting"));
        told.map(|problem| format!("{:?} {}: {}", problem.severity, problem.what, problem.why))
            .collect()
    };
    let allowing = LoadOptions {
        allow_missing: true,
        ..LoadOptions::default()
    };
    let by_hand = LoadOptions {
        start: StartPolicy::ByHand,
        ..LoadOptions::default()
    };
    assert_eq!(
        told("settings: {macro.dt: 1, sinks.dt: 1}\n", allowing),
        [
            "Warning nothing reads setting \"macro.dt\": component \"macro\" is left out",
            "Warning setting \"sinks.dt\" belongs to no component: model \"m\" has no component \"sinks\"",
        ]
    );
    assert_eq!(
        told("settings: {extra.dt: 1, sinks.dt: 1}\n", by_hand),
        [
            "Warning nothing reads setting \"extra.dt\": component \"extra\" is left out",
            "Error setting \"sinks.dt\" belongs to no component: model \"m\" has no component \"sinks\"",
        ]
    );
}

#[test]
fn by_hand_nothing_needs_a_program() {
    let network = load(StartPolicy::ByHand).unwrap().network(None).unwrap();
    let paths: Vec<_> = network.components.iter().map(|c| c.path.as_str()).collect();
    assert_eq!(paths, ["macro", "micro", "sink"]);
    assert!(network.components[1].program.is_none());
    let sink = network.components[2].program.as_ref().unwrap();
    assert_eq!(sink.kind, ProgramKind::BuiltIn(BuiltIn::Sink));
    assert_eq!(sink.name.as_str(), "titin.sink");
    assert!(sink.can_share_resources);
}

#[test]
fn hosted_components_are_named_by_path_or_implementation() {
    let names = |names: &[&str]| {
        let hosted = names.iter().map(ToString::to_string).collect();
        StartPolicy::Except {
            hosted,
            by_hand: Vec::new(),
        }
    };
    assert!(load(names(&["macro", "micro"])).is_ok());
    assert!(load(names(&["macro", "fast"])).is_ok());
    assert_eq!(
        load(names(&["macro"])).unwrap_err(),
        [Code::UnknownImplementation]
    );
    assert_eq!(
        load(names(&["macro", "fast", "micor"])).unwrap_err(),
        [Code::UnknownComponent]
    );
    // An optional component is present if a program runs it.
    let network = load(names(&["macro", "fast", "extra"]))
        .unwrap()
        .network(None)
        .unwrap();
    assert!(network.component("extra").is_some());
}

#[test]
fn what_is_started_by_hand_may_be_single_instances() {
    let names = |hosted: &[&str], by_hand: &[&str]| {
        let [hosted, by_hand] =
            [hosted, by_hand].map(|n| n.iter().map(ToString::to_string).collect());
        StartPolicy::Except { hosted, by_hand }
    };
    assert!(load(names(&["macro"], &["micro[0]", "micro[1]"])).is_ok());
    // One instance of a component without a program does not stand for all instances.
    assert_eq!(
        load(names(&["macro"], &["micro[1]"])).unwrap_err(),
        [Code::UnknownImplementation]
    );
    assert_eq!(
        load(names(&["macro"], &["fast", "micro[2]"])).unwrap_err(),
        [Code::UnknownComponent]
    );

    let options = LoadOptions {
        start: names(&["macro"], &["fast", "micro[2]"]),
        ..LoadOptions::default()
    };
    let report = load_texts(&[("t", MODEL)], &options).unwrap_err();
    let problem = &report.problems[0];
    assert_eq!(problem.what, "there is no instance \"micro[2]\"");
    assert!(
        problem.why.contains("by hand") && problem.hint.as_ref().unwrap().contains("[2]"),
        "{report}"
    );
}

#[test]
fn a_model_is_chosen_by_name_where_several_could_be_meant() {
    let two = "
ymmsl_version: v0.2
models:
  one: {components: {a: {description: a, ports: {}, implementation: p}}}
  two: {components: {b: {description: b, ports: {}, implementation: p}}}
programs: {p: {executable: ./p}}
";
    let load = |model: Option<&str>| {
        let options = LoadOptions {
            model: model.map(str::to_string),
            ..LoadOptions::default()
        };
        load_texts(&[("t", two)], &options)
    };
    assert_eq!(load(None).unwrap_err().problems[0].code, Code::NoModel);
    let description = load(Some("two")).unwrap();
    assert!(description.network(None).is_err());
    assert_eq!(
        description.network(Some("two")).unwrap().components[0].path,
        "b"
    );
    let report = load(Some("tow")).unwrap_err();
    assert_eq!(
        report.problems[0].hint.as_deref(),
        Some("did you mean \"two\"?")
    );
}

#[test]
fn models_that_contain_themselves_are_told_as_such() {
    let model = |name: &str, inner: &str| {
        format!(
            "  {name}: {{components: {{a: {{description: a, ports: {{}}, implementation: {inner}}}}}}}\n"
        )
    };
    let cases = [
        (model("m", "m"), "\"m\" contains \"m\""),
        (
            model("x", "y") + &model("y", "z") + &model("z", "x"),
            "\"y\" contains \"z\", which contains \"x\", which contains \"y\"",
        ),
    ];
    for (models, why) in cases {
        let text = format!("ymmsl_version: v0.2\nmodels:\n{models}");
        let report = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap_err();
        assert_eq!(report.problems[0].code, Code::ModelLoop, "{report}");
        assert_eq!(report.problems[0].why, why);
    }
}

const BMI: &str = "
ymmsl_version: v0.2
models: {m: {components: {soil: {description: a, ports: {o_i: q}, implementation: soil}}}}
programs:
  soil: {titin: {bmi: 'heat.py:Heat', config: soil.yaml, variables: {q: runoff__rate}, every: {q: 1 h}}}
  other: {titin: {bmi: 'package.module:Class', every: 1 h}, virtual_env: ./venv}
";

#[test]
fn settings_alone_name_a_model_with_the_basic_model_interface() {
    let described = MODEL.replace("implementation: fast", "implementation: titin.bmi");
    let options = LoadOptions {
        allow_missing: true,
        ..LoadOptions::default()
    };
    let load = |text: &str| load_texts(&[("t", text)], &options);
    let network = load(&described).unwrap().network(None).unwrap();
    let program = network.components[0].program.as_ref().unwrap();
    assert_eq!(program.kind, ProgramKind::Executable("python3".into()));
    assert_eq!(program.args, ["-m", "titin.bmi", "run"]);
    let report = load(&described.replace("titin.bmi", "titin.bmy")).unwrap_err();
    let mut hints = report.problems.iter().filter_map(|p| p.hint.as_deref());
    assert!(hints.any(|hint| hint == "did you mean \"titin.bmi\"?"));
}

#[test]
fn a_program_with_keys_of_the_basic_model_interface_names_a_model() {
    let described = BMI.replace("bmi: 'heat.py:Heat', ", "");
    let report = load_texts(&[("t", described.as_str())], &LoadOptions::default()).unwrap_err();
    let told = report.to_string();
    assert!(
        told.contains("names no model with the Basic Model Interface"),
        "{told}"
    );
    assert!(told.contains("write {bmi: "), "{told}");
}

#[test]
fn a_model_with_the_basic_model_interface_is_run_by_titins_package() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("bmi");
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join("model.ymmsl");
    std::fs::write(&path, BMI).unwrap();
    std::fs::write(folder.join("soil.yaml"), "").unwrap();
    let description = titin_model::load(&[path], &LoadOptions::default()).unwrap();
    let args = |name: &str| {
        let program = &description.programs[name];
        assert_eq!(program.kind, ProgramKind::Executable("python3".into()));
        program.args.join(" ")
    };
    let config = folder.join("soil.yaml");
    let expected = format!(
        "-m titin.bmi run heat.py:Heat {} --variable=q=runoff__rate --every=q=1 h",
        config.display()
    );
    assert_eq!(
        args("soil"),
        expected,
        "only files that are there are found"
    );
    assert_eq!(
        args("other"),
        "-m titin.bmi run package.module:Class --every=1 h"
    );
    std::fs::write(folder.join("heat.py"), "").unwrap();
    let path = folder.join("model.ymmsl");
    let description = titin_model::load(&[path], &LoadOptions::default()).unwrap();
    let model = format!("{}:Heat", folder.join("heat.py").display());
    assert_eq!(description.programs["soil"].args[3], model);

    for (wrong, code) in [
        ("{bmi: 'a:B', model: c}", Code::UnknownKey),
        ("{bmi: [a]}", Code::WrongType),
        ("{bmi: 'a:B', every: [1 h]}", Code::WrongType),
    ] {
        let text = format!("{BMI}  wrong: {{titin: {wrong}}}\n");
        let report = load_texts(&[("t", text.as_str())], &LoadOptions::default()).unwrap_err();
        assert_eq!(report.problems[0].code, code, "{wrong}: {report}");
    }
    let text = format!("{BMI}  wrong: {{titin: {{bmi: 'a:B'}}, executable: x}}\n");
    let report = load_texts(&[("t", text.as_str())], &LoadOptions::default()).unwrap_err();
    assert!(report.to_string().contains("leave out"), "{report}");
}
