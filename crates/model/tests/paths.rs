//! Paths that begin with a model's name, and those of older files that lack it.

use titin_model::{
    Code, Description, LoadOptions, ProblemReport, ResourceRequest, Severity, load_texts,
};

const MODELS: &str = "
ymmsl_version: v0.2
models:
  demo:
    components:
      macro: {description: a, ports: {}, implementation: p}
      nest: {description: b, ports: {}, implementation: inner}
  inner:
    components:
      core: {description: c, ports: {}, implementation: p}
programs: {p: {executable: p}}
";

fn read(sections: &[&str]) -> Result<Description, ProblemReport> {
    let texts: Vec<_> = sections
        .iter()
        .map(|text| format!("ymmsl_version: v0.2\n{text}"))
        .collect();
    let files: Vec<_> = [("models", MODELS)]
        .into_iter()
        .chain(texts.iter().map(|text| ("more", text.as_str())))
        .collect();
    load_texts(&files, &LoadOptions::default())
}

fn need(description: &Description, component: &str) -> ResourceRequest {
    description
        .network(None)
        .unwrap()
        .component(component)
        .unwrap()
        .need
}

#[test]
fn the_name_of_the_model_may_be_missing() {
    for (path, component) in [("macro", "macro"), ("nest.core", "nest.core")] {
        let description = read(&[&format!("resources: {{{path}: {{threads: 3}}}}")]).unwrap();
        assert_eq!(need(&description, component), ResourceRequest::Threads(3));
        let [warning] = description.warnings.problems.as_slice() else {
            panic!("{}", description.warnings)
        };
        assert_eq!(
            (warning.code, warning.severity),
            (Code::Incomplete, Severity::Warning)
        );
        assert!(
            warning
                .hint
                .as_deref()
                .is_some_and(|hint| hint.contains(&format!("\"demo.{path}\""))),
            "{warning}"
        );
    }
}

#[test]
fn of_both_ways_to_write_a_path_the_later_file_counts() {
    let (short, full) = (
        "resources: {macro: {threads: 3}}",
        "resources: {demo.macro: {threads: 2}}",
    );
    assert_eq!(
        need(&read(&[full, short]).unwrap(), "macro"),
        ResourceRequest::Threads(3)
    );
    assert_eq!(
        need(&read(&[short, full]).unwrap(), "macro"),
        ResourceRequest::Threads(2)
    );
    let twice = read(&["resources: {demo.macro: {threads: 2}, macro: {threads: 3}}"]).unwrap_err();
    assert!(
        twice
            .problems
            .iter()
            .any(|problem| problem.code == Code::Duplicate),
        "{twice}"
    );
}

#[test]
fn what_leads_to_no_component_or_to_several_is_an_error() {
    for path in ["core", "inner", "marco", "demo.core", "macro.core"] {
        let report = read(&[&format!("resources: {{{path}: {{threads: 3}}}}")]).unwrap_err();
        assert_eq!(report.problems[0].code, Code::UnknownPath, "{report}");
    }
    let other =
        "models: {other: {components: {macro: {description: a, ports: {}, implementation: p}}}}";
    let both = read(&[other, "resources: {macro: {threads: 3}}"]).unwrap_err();
    let told = both
        .problems
        .iter()
        .find(|problem| problem.code == Code::UnknownPath)
        .unwrap();
    assert!(
        told.why.contains("\"demo.macro\" and \"other.macro\""),
        "{told}"
    );
}

#[test]
fn resources_of_a_model_inside_the_one_that_runs_have_no_effect() {
    let description = read(&["resources: {inner.core: {threads: 3}}"]).unwrap();
    assert_eq!(need(&description, "nest.core"), ResourceRequest::Threads(1));
    let told = description.warnings.to_string();
    assert!(
        told.contains("no effect") && told.contains("demo.COMPONENT.core"),
        "{told}"
    );
}

#[test]
fn instances_to_resume_may_lack_the_name_of_the_model() {
    // MUSCLE3 writes such paths.
    let report = read(&["resume: {macro: macro_1.pack}"]).unwrap_err();
    let codes: Vec<_> = report.problems.iter().map(|problem| problem.code).collect();
    assert_eq!(codes, [Code::Incomplete, Code::NotYet], "{report}");
    assert!(report.to_string().contains("begin anew"), "{report}");
    let lost = read(&["resume: {marco: macro_1.pack}"]).unwrap_err();
    assert_eq!(lost.problems[0].code, Code::UnknownPath, "{lost}");
}
