//! Messages for a mistyped description: the cause, the position and the remedy, and no problems
//! that follow from the first.

use titin_model::{LoadOptions, Severity, load_texts};

const BASE: &str = "ymmsl_version: v0.2
models:
  m:
    components:
      macro: {description: a, ports: {o_i: state_out, s: state_in}, implementation: macro}
      micro: {description: b, ports: {f_init: init, o_f: final}, implementation: micro}
    conduits:
      macro.state_out: micro.init
      micro.final: macro.state_in
programs:
  macro: {executable: /bin/true}
  micro: {executable: /bin/true}
";

/// The errors of the description with `what` in place of `from`, as printed.
fn errors(from: &str, what: &str) -> Vec<String> {
    assert!(BASE.contains(from));
    let text = BASE.replace(from, what);
    let report = match load_texts(&[("t", &text)], &LoadOptions::default()) {
        Ok(description) => description.warnings,
        Err(report) => report,
    };
    let errors = report
        .problems
        .iter()
        .filter(|problem| problem.severity == Severity::Error);
    errors.map(ToString::to_string).collect()
}

/// Checks the beginning and further texts of the only error.
fn one(from: &str, what: &str, begins: &str, says: &[&str]) {
    let errors = errors(from, what);
    assert!(
        errors.len() == 1 && errors[0].starts_with(begins),
        "{what}: {errors:#?}"
    );
    says.iter()
        .for_each(|says| assert!(errors[0].contains(says), "{what}: {says} in {errors:#?}"));
}

/// A model within another model, with settings and scales for both.
const NESTED: &str = "ymmsl_version: v0.2
models:
  outer:
    supported_settings: {span: float}
    components:
      macro: {description: a, ports: {o_i: state_out, s: state_in}, implementation: macro}
      micro: {description: b, ports: {f_init: init, o_f: final}, implementation: inner}
    conduits:
      macro.state_out: micro.init
      micro.final: macro.state_in
  inner:
    ports: {f_init: init, o_f: final}
    components:
      mirco: {description: b, ports: {f_init: init, o_f: final}, implementation: micro}
    conduits:
      init: mirco.init
      mirco.final: final
programs:
  macro: {executable: /bin/true, supported_settings: {dt: float}}
  micro: {executable: /bin/true, supported_settings: {k: float}}
settings: {span: 3.0, macro.dt: 1.0, micro.mirco.k: 2.0}
titin:
  scales: {macro: {dt: 1 s}, micro.mirco: {dt: 1 s}}
  progress: {macro: 9 s}
";

#[test]
fn paths_from_the_whole_are_no_mistake_where_a_model_inside_it_is_looked_at() {
    let check = |text: &str, model: &str| {
        let options = LoadOptions {
            model: Some(model.into()),
            ..LoadOptions::default()
        };
        match load_texts(&[("t", text)], &options) {
            Ok(description) => description.warnings.to_string(),
            Err(report) => report.to_string(),
        }
    };
    for model in ["outer", "inner"] {
        let said = check(NESTED, model);
        assert!(
            !said.contains("setting") && !said.contains("component"),
            "{model}: {said}"
        );
    }
    // A path that leads nowhere in both models is an error.
    for (from, what) in [
        ("macro.dt", "macor.dt"),
        ("span: 3.0", "spam: 3.0"),
        ("macro: 9 s", "macor: 9 s"),
    ] {
        let said = check(&NESTED.replace(from, what), "inner");
        assert!(
            said.contains(&format!("\"{}", &what[..4])),
            "{what}: {said}"
        );
    }
}

#[test]
fn a_reversed_conduit_is_one_error() {
    let hint = "write \"macro.state_out: micro.init\"";
    one(
        "macro.state_out: micro.init",
        "micro.init: macro.state_out",
        "t:8:7: error: the conduit",
        &[hint],
    );
    // If only one end is wrong, the report names that end.
    one(
        "micro.final: macro",
        "micro.init: macro",
        "t:9:7: error: \"micro.init\" faces the wrong way",
        &[],
    );
}

#[test]
fn a_conduit_without_colon_or_blank_is_told_where_it_stands() {
    let right = "write \"macro.state_out: micro.init\"";
    for (what, missing) in [
        ("macro.state_out:micro.init", "a blank"),
        ("macro.state_out micro.init", "a colon"),
    ] {
        one(
            "macro.state_out: micro.init",
            what,
            "t:8:7: error: this line is no entry",
            &[missing, right],
        );
    }
    for (what, missing) in [(":", "a blank"), (" ", "a colon")] {
        let both =
            format!("macro.state_out{what}micro.init\n      micro.final{what}macro.state_in");
        let from = "macro.state_out: micro.init\n      micro.final: macro.state_in";
        one(
            from,
            &both,
            "t:8:7: error: these are no conduits",
            &[missing, right],
        );
    }
}

#[test]
fn a_conduit_with_an_arrow_is_told_without() {
    let right = "write \"macro.state_out: micro.init\"";
    let from = "macro.state_out: micro.init";
    one(
        from,
        "macro.state_out: -> micro.init",
        "t:8:24: error: \"->\" is no",
        &[right],
    );
    let both = "macro.state_out -> micro.init\n      micro.final -> macro.state_in";
    let all = "macro.state_out: micro.init\n      micro.final: macro.state_in";
    one(all, both, "t:8:7: error: these are no conduits", &[right]);
    one(
        from,
        "macro.state_out -> micro.init",
        "t:8:7: error: this line is no entry",
        &[right],
    );
}

#[test]
fn a_section_under_another_name_or_indentation_is_the_one_error() {
    one(
        "programs:",
        "program:",
        "t:10:1: error: unknown key \"program\"",
        &["did you mean \"programs\"?"],
    );
    let hint = "begin the line with \"programs\"";
    one(
        "programs:",
        "  programs:",
        "t:10:3: error: \"programs\" stands in the wrong place",
        &[hint],
    );
    let inside = "    programs:\n      macro: {executable: a}\n      micro: {executable: b}\n#";
    one(
        "programs:\n  macro: {executable: /bin/true}\n  micro",
        inside,
        "t:10:5: error: \"programs\" stands",
        &[hint],
    );
    one(
        "programs:",
        " programs:",
        "t:10:2: error: this is not YAML",
        &["by 0 as line 2, or by 2 as line 3"],
    );
    let hint = "indent \"conduits\" as \"components\" is";
    one(
        "    conduits:",
        "      conduits:",
        "t:7:7: error: \"conduits\" stands in the wrong place",
        &[hint],
    );
    one(
        "    components:",
        "    component:",
        "t:4:5: error: unknown key \"component\"",
        &["did you mean \"components\"?"],
    );
    // A program may have the name of a section.
    assert_eq!(
        errors("implementation: macro}", "implementation: settings}").len(),
        1
    );
}

#[test]
fn names_that_are_nearly_right_are_recognized() {
    let with = |text: &str| format!("{text}\nprograms:");
    one(
        "programs:",
        &with("resources: {m: {threads: 1}}"),
        "t:10:13: error: \"m\"",
        &["\"m.macro\" or \"m.micro\""],
    );
    for (path, hint) in [
        ("marco", "m.macro"),
        ("m.marco", "macro"),
        ("marco.x", "m.macro.x"),
    ] {
        let hint = format!("did you mean \"{hint}\"?");
        let report = errors(
            "programs:",
            &with(&format!("resources: {{{path}: {{threads: 1}}}}")),
        );
        assert!(report[0].contains(&hint), "{path}: {report:#?}");
    }
    let near = &["did you mean \"state_out\"?"];
    one(
        "macro.state_out:",
        "macro.macro_state_out:",
        "t:8:7: error: component \"macro\" has no port",
        near,
    );
}

#[test]
fn a_number_that_does_not_fit_is_not_taken_for_infinity() {
    for value in ["1e400", "-1e400", "[1.0, 1e400]", "[[1.0, 1e400]]"] {
        let settings = format!("settings: {{k: {value}}}\nprograms:");
        one(
            "programs:",
            &settings,
            "t:10:",
            &["setting \"k\" is not clear", "1e400\" reads"],
        );
    }
    assert_eq!(
        errors("programs:", "settings: {k: .inf, l: 1e300}\nprograms:"),
        [""; 0]
    );
}

/// The problems of this model with strict timelines.
fn problems(model: &str) -> Vec<String> {
    let text = format!("ymmsl_version: v0.2\nmodels:\n  m:\n    description: d\n{model}");
    let options = LoadOptions {
        strict_timelines: true,
        ..LoadOptions::default()
    };
    let report = match load_texts(&[("t", &text)], &options) {
        Ok(description) => description.warnings,
        Err(report) => report,
    };
    let timelines = report
        .problems
        .iter()
        .filter(|problem| problem.to_string().contains("rates"));
    timelines.map(ToString::to_string).collect()
}

#[test]
fn rates_that_differ_come_with_the_line_that_makes_them_match() {
    let mutual = "    components:
      a: {ports: {o_i: x, s: y}}
      b: {ports: {o_i: y, s: x}}
    conduits: {a.x: b.x, b.y: a.y}
";
    let fast = mutual.replace("o_i: x", "timeline fast: {o_i: x}");
    let torn = "    components:
      a: {ports: {o_i: x}}
      b: {ports: {o_i: x}}
      c: {ports: {f_init: [p, q]}}
    conduits: {a.x: c.p, b.x: c.q}
";
    for (model, line) in [
        (mutual, "matching_timelines: {a: b}"),
        (&fast, "matching_timelines: {a.fast: b}"),
        (torn, "matching_timelines: {a: b}"),
    ] {
        let told = problems(model);
        assert!(
            told.iter()
                .any(|text| text.contains(&format!("write {line}"))),
            "{told:#?}"
        );
        let left = problems(&format!("{model}    {line}\n"));
        assert!(left.iter().all(|text| !text.contains(line)), "{left:#?}");
    }
}

#[test]
fn a_field_of_a_sender_whose_receivers_have_entries_of_their_own_is_warned_of() {
    let warned = |fields: &str| {
        let text = BASE.to_owned() + "titin: {fields: {" + fields + "}}\n";
        let description =
            load_texts(&[("t", &text)], &LoadOptions::default()).expect("nothing is wrong");
        let problems = description
            .warnings
            .problems
            .iter()
            .map(ToString::to_string);
        problems
            .filter(|text| text.contains("has no effect"))
            .collect::<Vec<_>>()
    };
    let both = warned("micro.final: {every: 2}, macro.state_in: {until: 3}");
    assert_eq!(both.len(), 1, "{both:#?}");
    assert!(
        both[0].contains("of \"micro.final\"")
            && both[0].contains("there is one for \"macro.state_in\""),
        "{both:#?}"
    );
    assert_eq!(warned("micro.final: {until: 3}"), [""; 0]);
    assert_eq!(warned("macro.state_in: {until: 3}"), [""; 0]);
}

#[test]
fn what_a_host_calls_is_a_module_and_a_function() {
    for function in ["step", "a b:step", "a:do it", ":step", "a:"] {
        let titin = format!("macro: {{titin: {{host: h, function: \"{function}\"}}}}");
        one(
            "macro: {executable: /bin/true}",
            &titin,
            "",
            &[&format!("write \"module:function\"; found \"{function}\"")],
        );
    }
}

#[test]
fn a_folder_without_a_path_is_told_at_its_line() {
    for folder in ["\"\"", "' '"] {
        let text = format!("{BASE}titin:\n  folder: {folder}\n");
        let error = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap_err();
        let line = text.lines().count();
        let begins = format!("t:{line}:11: error: \"folder\" is empty");
        assert!(error.to_string().starts_with(&begins), "{error}");
    }
}

#[test]
fn mistakes_about_hosts_are_told_at_their_place() {
    for (hosts, says) in [
        ("n1: {adress: x}", "did you mean \"address\"?"),
        ("n1: {start: shh}", "did you mean \"ssh\"?"),
        ("n1: {start: []}", "\"start\" is empty"),
        (
            "n1: {start: {batch: slurm}}",
            "the batch job under \"start\" has no \"time\"",
        ),
        (
            "n1: {start: {time: 2 h}}",
            "write start: {batch: slurm, time: 2 h}",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, acount: x}}",
            "did you mean \"account\"?",
        ),
        (
            "n1: {start: {batch: slurm, time: 0 s}}",
            "a time limit above 0 is expected",
        ),
        ("n1: {start: {batch: slurm, time: 2 km}}", "\"time\""),
        (
            "n1: {start: {batch: slurm, time: 10}}",
            "write \"10 min\" or \"10 s\"",
        ),
        (
            "n1: {start: {batch: slurm, time: \"90\"}}",
            "\"time\" has no unit",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, nodes: 0}}",
            "from 1 to",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, via: ssh login}}",
            "such as [ssh, login.south]",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, via: []}}",
            "\"via\" is empty",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, options: {--gres: gpu}}}",
            "without dashes before it",
        ),
        (
            "n1: {start: {batch: slurm, time: 2 h, options: {a: \"b\\nc\"}}}",
            "must have no line breaks",
        ),
        ("n1: {cores: -1}", "from 0 to"),
        ("n1: {address: -oProxyCommand=x}", "begin with a dash"),
        ("\"-n1\": {}", "is no name of a host"),
        ("\"a b\": {}", "is no name of a host"),
        ("n1: {components: [mirco]}", "did you mean \"micro\"?"),
        (
            "n1: {components: [micro]}, n2: {components: [micro]}",
            "\"micro\" is on two hosts",
        ),
        (
            "localhost: {start: srun}",
            "localhost has no agent to start",
        ),
        (
            "n1: {network: 10.70.0.0/40}",
            "10.70.0.0/40 is no IPv4 address with a number of bits from 0 to 32 behind the slash",
        ),
        (
            "n1: {network: \"fe80::1\"}",
            "fe80::1 is of IPv6, and titin listens by IPv4",
        ),
        (
            "localhost: {network: a b}",
            "write an interface of the host, such as eth1, or a prefix of its addresses, such as 10.70.0.0/24",
        ),
        ("n1: {network: [eth1]}", "\"network\""),
        ("n1: 3", "host \"n1\""),
    ] {
        let text = format!("{BASE}titin:\n  hosts: {{{hosts}}}\n");
        let error = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap_err();
        assert_eq!(error.problems.len(), 1, "{hosts}: {error}");
        let line = text.lines().count();
        let text = error.to_string();
        assert!(text.starts_with(&format!("t:{line}:")), "{text}");
        assert!(text.contains(says), "{hosts}: {says} in {text}");
    }
}

#[test]
fn a_site_whose_relay_is_wrong_is_told_once() {
    for (site, says) in [
        ("{relay: login1}", "\"relay\" is no address"),
        ("{}", "site \"south\" has no relay"),
    ] {
        let text =
            format!("{BASE}titin:\n  sites: {{south: {site}}}\n  hosts: {{n1: {{site: south}}}}\n");
        let error = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap_err();
        assert_eq!(error.problems.len(), 1, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
    let text = format!(
        "{BASE}titin:\n  sites: {{south: {{relay: \"a:1\"}}}}\n  hosts: {{n1: {{site: east}}}}\n"
    );
    let error = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap_err();
    let says = "\"titin: sites\" does not have \"east\", but \"south\"";
    assert!(error.to_string().contains(says), "{error}");
}

#[test]
fn sites_without_a_host_are_a_warning() {
    let warnings = |host: &str| {
        let extras = format!(
            "titin: {{sites: {{north: {{relay: \"n:1\"}}, south: {{relay: \"s:1\"}}}}, hosts: {{n1: {{{host}}}}}}}\n"
        );
        let text = format!("{BASE}{extras}");
        let description = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap();
        description.warnings.to_string()
    };
    let told = warnings("cores: 1");
    assert!(
        told.contains("no host is at \"north\" and \"south\""),
        "{told}"
    );
    assert!(!warnings("site: north").contains("no host is at"));
}

#[test]
fn a_batch_system_of_another_executor_is_a_warning() {
    let warnings = |system: &str| {
        let start = format!("{{batch: {system}, time: 2 h}}");
        let text = format!("{BASE}titin:\n  hosts: {{n1: {{start: {start}}}}}\n");
        let description = load_texts(&[("t", &text)], &LoadOptions::default()).unwrap();
        description.warnings.to_string()
    };
    let told = warnings("slrum");
    assert!(told.contains("knows no batch system \"slrum\""), "{told}");
    assert!(told.contains("did you mean \"slurm\"?"), "{told}");
    assert!(!warnings("lsf").contains("batch"));
}
