use crate::{folder, root, titin};

const WRONG: &str = "\
ymmsl_version: v0.2
models:
  m:
    components:
      macro:
        description: slow
        ports: {o_i: state_out, s: state_in}
        implementation: p
      micro:
        description: fast
        ports: {f_init: initial, o_f: final}
        implementation: p
    cunduits: {}
    conduits:
      macro.state_ot: micro.initial
      micro.final: macro.state_in
programs:
  p: {executable: ./p}
";

#[test]
fn every_problem_is_told_with_its_place_its_line_and_a_caret() {
    let folder = folder(WRONG);
    let done = titin(folder.path(), &["check", "model.ymmsl"]);
    assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
    done.assert_out("model.ymmsl:13:5: error: ");
    done.assert_out("  13 |     cunduits: {}\n     |     ^^^^^^^^\n");
    done.assert_out("did you mean \"conduits\"?");
    done.assert_out("model.ymmsl:15:7: error: component \"macro\" has no port");
    done.assert_out("did you mean \"state_out\"?");
    assert!(
        done.out.lines().last().unwrap().ends_with("errors"),
        "{}",
        done.out
    );
    assert!(
        !done.out.contains('\x1b'),
        "no colours in a pipe: {:?}",
        done.out
    );
}

#[test]
fn problems_are_told_to_machines_too() {
    let folder = folder(WRONG);
    let done = titin(folder.path(), &["check", "--json", "model.ymmsl"]);
    assert_eq!(done.code, Some(2));
    let report: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
    let problems = report["problems"].as_array().unwrap();
    let typo = problems
        .iter()
        .find(|p| p["code"] == "unknown-key")
        .unwrap();
    assert_eq!(
        (&typo["file"], &typo["line"], &typo["column"]),
        (&"model.ymmsl".into(), &13.into(), &5.into())
    );
    assert_eq!(report["left_out"], 0);
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let full = || {
        std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    for words in [
        &["check", "model.ymmsl"][..],
        &["check", "--json", "model.ymmsl"],
        &["plot", "model.ymmsl"],
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_titin"));
        command
            .args(words)
            .current_dir(root().join("examples/reaction-diffusion"));
        let done = command.stdout(full()).output().expect("the command starts");
        let told = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{words:?}: {told}");
        assert!(
            told.contains("cannot write to standard output: No space left"),
            "{words:?}: {told}"
        );
    }
}

#[test]
fn what_is_too_much_to_be_told_is_counted_in_the_sum() {
    let wrong: String = (0..210).map(|n| format!("wrong{n}: 1\n")).collect();
    let folder = folder(&(WRONG.to_owned() + &wrong));
    let done = titin(folder.path(), &["check", "model.ymmsl"]);
    let last = done.out.lines().last().unwrap();
    assert!(
        last.starts_with("200 errors, ") && last.ends_with("problems more that are left out here"),
        "{last}"
    );
}

#[test]
fn a_good_description_is_summed_up() {
    let example = root().join("examples/reaction-diffusion");
    let files = [
        "check",
        "model.ymmsl",
        "python/macro.ymmsl",
        "python/micro.ymmsl",
        "scales.ymmsl",
    ];
    let done = titin(&example, &files);
    assert_eq!(done.code, Some(0), "{}{}", done.out, done.err);
    assert_eq!(
        done.out,
        "reaction_diffusion: 3 components, 3 instances, 3 conduits; nothing wrong\n"
    );
}

#[test]
fn a_program_that_is_not_on_this_host_is_a_warning_with_where_it_was_looked_for() {
    let text = "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      a: {description: d, implementation: p}\n\
                programs:\n  p: {executable: ./solver}\n";
    let folder = folder(text);
    let done = titin(folder.path(), &["check", "model.ymmsl"]);
    assert_eq!(done.code, Some(0), "{}", done.out);
    done.assert_out("model.ymmsl:7:3: warning: program \"p\" cannot be started on this host");
    let place = folder.path().canonicalize().unwrap();
    done.assert_out(&format!("{}/solver does not exist", place.display()));
    let done = titin(folder.path(), &["check", "--by-hand", "model.ymmsl"]);
    done.assert_out("nothing wrong");
}

#[test]
fn a_missing_program_is_no_problem_for_programs_started_by_hand() {
    let example = root().join("examples/reaction-diffusion");
    assert_eq!(titin(&example, &["check", "model.ymmsl"]).code, Some(2));
    let done = titin(&example, &["check", "--by-hand", "model.ymmsl"]);
    assert_eq!(done.code, Some(0), "{}", done.out);
    done.assert_out("nothing wrong");
}

#[test]
fn a_peer_of_each_step_needs_matching_timelines_when_strict() {
    let exchange = "\
ymmsl_version: v0.2
models:
  m:
    components:
      a: {description: d, ports: {o_i: out, s: in}, implementation: p}
      b: {description: d, ports: {o_i: out, s: in}, implementation: p}
    conduits: {a.out: b.in, b.out: a.in}
programs:
  p: {executable: ./p}
";
    let folder = folder(exchange);
    assert_eq!(
        titin(folder.path(), &["check", "model.ymmsl"]).code,
        Some(0)
    );
    let done = titin(folder.path(), &["check", "--strict", "model.ymmsl"]);
    assert_eq!(done.code, Some(2), "{}", done.out);
    done.assert_out("matching_timelines");
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let folder = folder("");
    let done = titin(folder.path(), &["check", "nowhere.ymmsl"]);
    assert_eq!(done.code, Some(2));
    done.assert_out("nowhere.ymmsl: error: the file cannot be read");
}

#[test]
fn flags_are_explained() {
    let folder = folder("");
    let done = titin(folder.path(), &["check", "--help"]);
    assert_eq!(done.code, Some(0));
    for flag in ["--json", "--strict", "--model", "--by-hand"] {
        assert!(done.out.contains(flag), "{}", done.out);
    }
    assert_eq!(titin(folder.path(), &["check"]).code, Some(2));
}

#[test]
fn a_run_that_cannot_be_resumed_is_not_begun_anew() {
    let folder = folder(
        "ymmsl_version: v0.2
models: {m: {components: {a: {description: a, ports: {}, implementation: p}}}}
programs: {p: {script: 'touch ran'}}
checkpoints: {at_end: true}
resume: {a: no-such-file.pack}
",
    );
    for words in [
        &["check", "model.ymmsl"][..],
        &["run", "model.ymmsl", "--run-dir", "run"],
    ] {
        let done = titin(folder.path(), words);
        assert_eq!(done.code, Some(2), "{}{}", done.out, done.err);
        let told = done.out + &done.err;
        assert!(
            told.contains("cannot be resumed") && told.contains("begin anew"),
            "{told}"
        );
        assert!(
            told.contains("\"checkpoints\" has no effect") && told.contains("\"m.a\""),
            "{told}"
        );
    }
    assert!(!folder.path().join("run").exists());
}

const SETTINGS: &str = "\
ymmsl_version: v0.2
models:
  m:
    components:
      a: {description: x, ports: {}, implementation: p}
programs:
  p:
    executable: /bin/true
    supported_settings: {dt: float, name: str, sizes: '[int]'}
settings: {a.dt: 1.0}
";

#[test]
fn settings_of_the_command_line_are_typed_as_in_yaml() {
    let folder = folder(SETTINGS);
    let check = |settings: &[&str]| {
        let mut words = vec!["check", "model.ymmsl"];
        settings
            .iter()
            .for_each(|given| words.extend(["--set", given]));
        titin(folder.path(), &words)
    };
    let good = check(&["a.dt=0.5", "name=abc", "a.name=\"3\"", "sizes=[1, 2]"]);
    assert_eq!(good.code, Some(0), "{}{}", good.out, good.err);
    for (given, text) in [
        ("a.dt=fast", "--set a.dt=fast:1:1: error: "),
        ("name=3", "--set name=3:1:1: error: "),
        ("a.dd=0.5", "did you mean \"dt\"?"),
        ("a.dt", "this sets no setting"),
        ("a.dt=", "this sets no setting"),
        ("a.dt=1\nb: 2", "NAME=VALUE on one line is expected"),
        ("=3", "error: "),
        ("a dt=3", "error: "),
        ("a.dt={b: 3}", "error: "),
        ("a.dt=[", "error: "),
    ] {
        let refused = check(&[given]);
        assert_eq!(refused.code, Some(2), "{given}: {}", refused.out);
        refused.assert_out(text);
    }
    let unread = check(&["b.dt=0.5"]);
    assert_eq!(unread.code, Some(0), "{}", unread.out);
    unread.assert_out("--set b.dt=0.5:1:1: warning: setting \"b.dt\" belongs to no component");
    // The last one counts, as with the files.
    assert_eq!(check(&["a.dt=fast", "a.dt=2"]).code, Some(0));
}
