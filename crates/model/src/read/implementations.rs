//! Programs, ports and supported settings.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::fields::{entries, has_any, identifier};
use super::{Fields, any_text, choice, text, text_list, truth, word_list};
use crate::built_in::BMI_WORDS;
use crate::description::{
    BaseEnv, ExecutionModel, HostedFunction, KeepsState, Port, Ports, Program, ProgramKind,
    SupportedSetting,
};
use crate::document::FormatVersion;
use crate::names::{Name, is_dotted, is_identifier};
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::settings::SettingType;
use crate::titin_section::UserFunction;
use crate::yaml::{MapEntry, Node, NodeKind, shorten};

/// The ports under `ports:`.
pub(super) fn ports(
    node: &Node,
    version: FormatVersion,
    what: &str,
    problems: &mut Problems,
) -> Ports {
    let mut ports = Ports::new();
    let Some(mut fields) = Fields::new(node, format!("\"ports\" of {what}"), problems) else {
        return ports;
    };
    for operator in Operator::ALL {
        if let Some(names) = fields.take(operator.key()) {
            add_ports(
                &mut ports,
                names,
                operator,
                &Timeline::default(),
                what,
                problems,
            );
        }
    }
    if version == FormatVersion::V02 {
        // ymmsl 0.15 to 0.17 wrote `+fast` for `timeline fast`.
        for prefix in ["timeline ", "+"] {
            for (entry, words) in fields.take_prefixed(prefix) {
                add_timeline(&mut ports, entry, words, what, problems);
            }
        }
    }
    fields.finish(problems);
    ports
}

/// The ports on a further timeline of the component.
fn add_timeline(
    ports: &mut Ports,
    entry: &MapEntry,
    words: &str,
    what: &str,
    problems: &mut Problems,
) {
    let parts = words.trim().split(':');
    let parts: Vec<_> = parts
        .filter_map(|part| identifier(part, "a timeline", entry.at, problems))
        .collect();
    let timeline = Timeline::from(parts);
    let described = format!("\"{}\" of {what}", entry.key);
    let Some(mut fields) = Fields::new(&entry.value, described, problems) else {
        return;
    };
    for operator in [Operator::OI, Operator::S] {
        if let Some(names) = fields.take(operator.key()) {
            add_ports(ports, names, operator, &timeline, what, problems);
        }
    }
    fields.finish(problems);
}

fn add_ports(
    ports: &mut Ports,
    names: &Node,
    operator: Operator,
    timeline: &Timeline,
    what: &str,
    problems: &mut Problems,
) {
    for (written, at) in word_list(names, &format!("the {operator} ports of {what}"), problems) {
        let Some(name) = identifier(&written, "a port", at, problems) else {
            continue;
        };
        if let Some(first) = ports.get(&name) {
            let before = first.operator;
            let why = format!("{what} has it under {before} already; a port has one operator");
            let what = format!("port \"{name}\" is listed twice");
            problems.error(at, Code::Duplicate, what, why);
            continue;
        }
        let port = Port {
            name: name.clone(),
            operator,
            timeline: timeline.clone(),
            guessed: false,
            at,
        };
        ports.insert(name, port);
    }
}

/// The settings under `supported_settings:`.
pub(super) fn supported_settings(
    node: &Node,
    what: &str,
    problems: &mut Problems,
) -> IndexMap<Name, SupportedSetting> {
    let mut settings = IndexMap::new();
    let all =
        entries(node, &format!("\"supported_settings\" of {what}"), problems).unwrap_or_default();
    for entry in all {
        let Some(name) = identifier(&entry.key, "a setting", entry.at, problems) else {
            continue;
        };
        if let Some((of, description)) = supported_setting(&name, &entry.value, problems) {
            settings.insert(name, SupportedSetting { of, description });
        }
    }
    settings
}

fn supported_setting(
    name: &str,
    node: &Node,
    problems: &mut Problems,
) -> Option<(SettingType, String)> {
    if !matches!(node.kind(), NodeKind::Map(_)) {
        return typed_text(name, node, problems);
    }
    let mut fields = Fields::new(node, format!("supported setting \"{name}\""), problems)?;
    let setting = match fields.take("type") {
        Some(node) => {
            let of = setting_type(name, node, problems);
            let description = fields.description(problems);
            of.map(|of| (of, description.unwrap_or_default()))
        }
        // Without a type the description begins with the type.
        None => match fields.take("description") {
            Some(description) => typed_text(name, description, problems),
            None => {
                report_no_type(name, node.at, problems);
                None
            }
        },
    };
    fields.finish(problems);
    setting
}

fn report_no_type(name: &str, at: TextPosition, problems: &mut Problems) {
    let types = listing(SettingType::ALL.map(SettingType::key));
    let what = format!("supported setting \"{name}\" has no \"type\"");
    problems.error(at, Code::MissingKey, what, format!("write one of {types}"));
}

/// `float how fast it goes`, or `[[float]]`.
fn typed_text(name: &str, node: &Node, problems: &mut Problems) -> Option<(SettingType, String)> {
    if let NodeKind::List(_) = node.kind() {
        return Some((setting_type(name, node, problems)?, String::new()));
    }
    let written = text(node, &format!("supported setting \"{name}\""), problems)?;
    let written = written.trim();
    let (word, rest) = written
        .split_once(char::is_whitespace)
        .unwrap_or((written, ""));
    Some((
        known_type(name, word, node.at, problems)?,
        rest.trim_start().to_string(),
    ))
}

/// To YAML `[float]` is a list with one text.
fn setting_type(name: &str, node: &Node, problems: &mut Problems) -> Option<SettingType> {
    let mut inner = node;
    let mut depth = 0;
    while let NodeKind::List(items) = inner.kind() {
        match items.as_slice() {
            [item] => inner = item,
            _ => return known_type(name, "[]", node.at, problems),
        }
        depth += 1;
    }
    let word = text(inner, &format!("the type of \"{name}\""), problems)?;
    known_type(
        name,
        &format!("{}{word}{}", "[".repeat(depth), "]".repeat(depth)),
        node.at,
        problems,
    )
}

fn known_type(
    name: &str,
    word: &str,
    at: TextPosition,
    problems: &mut Problems,
) -> Option<SettingType> {
    let found = SettingType::from_key(word);
    if found.is_none() {
        let keys = SettingType::ALL.map(SettingType::key);
        let (known, written) = (listing(keys), shorten(word));
        let what = format!("setting \"{name}\" has an unknown type");
        let why = format!("the types are {known}; found \"{written}\"");
        problems.error_hint(at, Code::BadValue, what, why, did_you_mean(word, keys));
    }
    found
}

const BASE_ENVS: [(&str, BaseEnv); 3] = [
    ("login", BaseEnv::Login),
    ("clean", BaseEnv::Clean),
    ("manager", BaseEnv::Manager),
];
const MODELS: [(&str, ExecutionModel); 6] = [
    ("direct", ExecutionModel::Direct),
    ("openmpi", ExecutionModel::OpenMpi),
    ("mpich", ExecutionModel::Mpich),
    ("intelmpi", ExecutionModel::IntelMpi),
    ("srunmpi", ExecutionModel::SrunMpi),
    ("manual", ExecutionModel::Manual),
];
const KEEPS: [(&str, KeepsState); 3] = [
    ("necessary", KeepsState::Necessary),
    ("no", KeepsState::No),
    ("helpful", KeepsState::Helpful),
];

/// A program of v0.2, or an implementation of v0.1.
pub(super) fn program(
    name: Name,
    at: TextPosition,
    node: &Node,
    version: FormatVersion,
    problems: &mut Problems,
) -> Option<Program> {
    let what = format!("program \"{name}\"");
    let mut fields = Fields::new(node, what.as_str(), problems)?;
    let mut program = Program {
        name,
        at,
        can_share_resources: true,
        ..Program::default()
    };
    if version == FormatVersion::V02 {
        interface(&mut program, &mut fields, problems);
    }
    let start = StartFields::take(&mut fields);
    environment_of(&mut program, &start, &what, problems);
    run_options(&mut program, &mut fields, version, problems);
    let hosted = fields.take("titin");
    fields.finish(problems);
    match hosted {
        Some(node) if has_any(node, &["bmi", "config", "variables", "every"]) => {
            bmi_kind(&mut program, &start, node, &what, problems);
        }
        Some(node) => hosted_kind(&mut program, &start, node, &what, problems),
        None => started_kind(&mut program, &start, &what, problems),
    }
    Some(program)
}

/// The description, ports and settings of a program.
fn interface(program: &mut Program, fields: &mut Fields<'_>, problems: &mut Problems) {
    program.description = fields.description(problems).unwrap_or_default();
    if let Some(node) = fields.take("ports") {
        program.ports = ports(node, FormatVersion::V02, fields.what(), problems);
    }
    if let Some(node) = fields.take("supported_settings") {
        program.supported_settings = supported_settings(node, fields.what(), problems);
    }
}

/// The keys that say what is started, and in which environment.
struct StartFields<'n> {
    script: Option<&'n Node>,
    base_env: Option<&'n Node>,
    modules: Option<&'n Node>,
    virtual_env: Option<&'n Node>,
    env: Option<&'n Node>,
    executable: Option<&'n Node>,
    args: Option<&'n Node>,
}

impl<'n> StartFields<'n> {
    fn take(fields: &mut Fields<'n>) -> Self {
        StartFields {
            script: fields.take("script"),
            base_env: fields.take("base_env"),
            modules: fields.take("modules"),
            virtual_env: fields.take("virtual_env"),
            env: fields.take("env"),
            executable: fields.take("executable"),
            args: fields.take("args"),
        }
    }

    /// The keys that a script leaves no use for.
    fn beside_script(&self) -> Vec<&'static str> {
        given(&[
            ("base_env", self.base_env),
            ("modules", self.modules),
            ("virtual_env", self.virtual_env),
            ("env", self.env),
            ("executable", self.executable),
            ("args", self.args),
        ])
    }

    /// The keys that a host leaves no use for.
    fn beside_host(&self) -> Vec<&'static str> {
        given(&[
            ("script", self.script),
            ("executable", self.executable),
            ("args", self.args),
            ("modules", self.modules),
        ])
    }
}

/// The keys that have a value.
fn given(nodes: &[(&'static str, Option<&Node>)]) -> Vec<&'static str> {
    nodes
        .iter()
        .filter(|(_, node)| node.is_some())
        .map(|(key, _)| *key)
        .collect()
}

fn environment_of(
    program: &mut Program,
    start: &StartFields<'_>,
    what: &str,
    problems: &mut Problems,
) {
    if let Some(node) = start.base_env {
        program.base_env = choice(node, "\"base_env\"", &BASE_ENVS, problems).unwrap_or_default();
    }
    if let Some(node) = start.modules {
        let words = word_list(node, "\"modules\"", problems);
        program.modules = words.into_iter().map(|(word, _)| word).collect();
    }
    if let Some(node) = start.virtual_env {
        program.virtual_env = text(node, "\"virtual_env\"", problems).map(PathBuf::from);
    }
    if let Some(node) = start.env {
        program.env = environment(node, what, problems);
    }
    if let Some(node) = start.args {
        program.args = arguments(node, problems);
    }
}

/// The arguments of an executable. MUSCLE3 passes a text to a shell, which splits it into words;
/// each item of a list is one argument.
fn arguments(node: &Node, problems: &mut Problems) -> Vec<String> {
    let given = text_list(node, "\"args\"", problems);
    match node.kind() {
        NodeKind::List(_) => given,
        _ => given.iter().flat_map(|text| shell_words(text)).collect(),
    }
}

fn run_options(
    program: &mut Program,
    fields: &mut Fields<'_>,
    version: FormatVersion,
    problems: &mut Problems,
) {
    if let Some(node) = fields.take("execution_model") {
        let models = if version == FormatVersion::V01 {
            &MODELS[..4]
        } else {
            &MODELS[..]
        };
        program.execution_model =
            choice(node, "\"execution_model\"", models, problems).unwrap_or_default();
    }
    if let Some(node) = fields.take("can_share_resources") {
        program.can_share_resources =
            truth(node, "\"can_share_resources\"", problems).unwrap_or(true);
    }
    if let Some(node) = fields.take("keeps_state_for_next_use") {
        let state = choice(node, "\"keeps_state_for_next_use\"", &KEEPS, problems);
        program.keeps_state_for_next_use = state.unwrap_or_default();
    }
}

/// The kind of a program that a host runs. A faulty program stays in the description, so that
/// components that name it are not reported too.
fn hosted_kind(
    program: &mut Program,
    start: &StartFields<'_>,
    node: &Node,
    what: &str,
    problems: &mut Problems,
) {
    let mut beside = start.beside_host();
    if beside.is_empty() && program.execution_model != ExecutionModel::Direct {
        beside.push("execution_model");
    }
    if !beside.is_empty() {
        let keys = listing(beside);
        let why = format!("a host calls it, and starts nothing: leave out {keys}");
        let what = format!("{what} is run by a host");
        problems.error(node.at, Code::BadValue, what, why);
    }
    if let Some(function) = hosted_function(node, what, problems) {
        program.kind = ProgramKind::Hosted(function);
    }
}

/// The program of a model with the Basic Model Interface: `{bmi: "package.module:Class", config:
/// heat.yaml, variables: {PORT: VARIABLE}, every: TIME or {PORT: TIME}}`. The Python package `titin.bmi`
/// runs the model.
fn bmi_kind(
    program: &mut Program,
    start: &StartFields<'_>,
    node: &Node,
    what: &str,
    problems: &mut Problems,
) {
    let beside = given(&[
        ("script", start.script),
        ("executable", start.executable),
        ("args", start.args),
    ]);
    if !beside.is_empty() {
        let keys = listing(beside);
        let why = format!("titin.bmi runs the model: leave out {keys}");
        let what = format!("{what} is a model with the Basic Model Interface");
        problems.error(node.at, Code::BadValue, what, why);
    }
    let Some(mut fields) = Fields::new(node, format!("\"titin\" of {what}"), problems) else {
        return;
    };
    let mut args: Vec<String> = BMI_WORDS.map(str::to_owned).into();
    for key in ["bmi", "config"] {
        if let Some(node) = fields.take(key) {
            program.files_in_args.push(args.len());
            let written = text(node, &format!("\"{key}\" of {what}"), problems);
            args.push(written.unwrap_or_default());
        } else if key == "bmi" {
            let why = "write {bmi: \"package.module:Class\", config: file} for Python, or {bmi: ./library.so, config: file}";
            let what = format!("{what} names no model with the Basic Model Interface");
            problems.error(node.at, Code::MissingKey, what, why);
        }
    }
    for (key, option) in [("variables", "--variable"), ("every", "--every")] {
        let Some(node) = fields.take(key) else {
            continue;
        };
        if let ("every", NodeKind::Scalar(_)) = (key, node.kind()) {
            let written = text(node, &format!("\"every\" of {what}"), problems);
            args.push(format!("{option}={}", written.unwrap_or_default()));
            continue;
        }
        let told = format!("\"{key}\" of {what}");
        let all = entries(node, &told, problems).unwrap_or_default();
        for entry in all {
            let of_port = format!("\"{}\" of {told}", entry.key);
            let value = text(&entry.value, &of_port, problems).unwrap_or_default();
            args.push(format!("{option}={}={value}", entry.key));
        }
    }
    fields.finish(problems);
    program.kind = ProgramKind::Executable(PathBuf::from("python3"));
    program.args = args;
}

/// The kind of a program that is started: a script, an executable, or by hand.
fn started_kind(
    program: &mut Program,
    start: &StartFields<'_>,
    what: &str,
    problems: &mut Problems,
) {
    if let Some(script) = start.script {
        report_beside_script(program.at, start, what, problems);
        program.kind = ProgramKind::Script(script_text(script, problems));
    } else if let Some(node) = start.executable {
        let path = text(node, "\"executable\"", problems).unwrap_or_default();
        program.kind = ProgramKind::Executable(PathBuf::from(path));
    } else if program.execution_model == ExecutionModel::Manual {
        program.kind = ProgramKind::Manual;
    } else {
        let why = "it needs an \"executable\" or a \"script\", or \"execution_model: manual\" if you start it";
        let what = format!("{what} cannot be started");
        problems.error(program.at, Code::MissingKey, what, why);
    }
}

/// Reports keys that a script leaves no use for.
fn report_beside_script(
    at: TextPosition,
    start: &StartFields<'_>,
    what: &str,
    problems: &mut Problems,
) {
    let beside = start.beside_script();
    if !beside.is_empty() {
        let keys = listing(beside);
        let why = format!("a script sets these itself: {keys}; give either a script or the rest");
        let what = format!("{what} has more beside its script");
        problems.error(at, Code::BadValue, what, why);
    }
}

/// The function that a host calls: `{host: NAME, function: "module:function"}`, or `{host: NAME,
/// library: ./lib.so, function: name}`, or with `step` in place of `function`.
fn hosted_function(node: &Node, what: &str, problems: &mut Problems) -> Option<HostedFunction> {
    let mut fields = Fields::new(node, format!("\"titin\" of {what}"), problems)?;
    let [host, function, library, step] =
        ["host", "function", "library", "step"].map(|key| fields.take(key));
    fields.finish(problems);
    let call = match (library, function, step) {
        (None, Some(node), None) => {
            let written = text(node, "what the host calls", problems)?;
            python_function(&written, node.at, what, problems)?
        }
        (Some(path), Some(node), None) | (Some(path), None, Some(node)) => {
            let path = text(path, "\"library\"", problems)?;
            let written = text(node, "what the host calls", problems)?;
            let symbol = symbol(written, node.at, what, problems)?;
            UserFunction::Library { path, symbol }
        }
        _ => {
            report_no_function(node, what, problems);
            return None;
        }
    };
    let host = host.and_then(|node| host_name(node, problems));
    if host.is_none() {
        report_no_host(node, what, problems);
    }
    Some(HostedFunction {
        host: host?,
        call,
        steps: step.is_some(),
    })
}

fn host_name(node: &Node, problems: &mut Problems) -> Option<Name> {
    let written = text(node, "\"host\"", problems)?;
    identifier(&written, "a host", node.at, problems)
}

fn report_no_function(node: &Node, what: &str, problems: &mut Problems) {
    let what = format!("{what} does not say what to call");
    let why = "write {host: NAME, function: \"module:function\"} for Python, or {host: NAME, library: \"path.so\", \
               function: \"name\"} for C, with \"step\" in the place of \"function\" if it is called whenever the \
               instance can go on";
    problems.error(node.at, Code::MissingKey, what, why);
}

fn report_no_host(node: &Node, what: &str, problems: &mut Problems) {
    let why =
        "programs that name the same host share a process, each instance on a thread of its own";
    let hint = "write {host: main, ...}".to_string();
    let what = format!("{what} names no host");
    problems.error_hint(node.at, Code::MissingKey, what, why, hint);
}

/// `module:function`.
pub(super) fn python_function(
    written: &str,
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<UserFunction> {
    if let Some((module, function)) = written.split_once(':')
        && is_dotted(module)
        && is_dotted(function)
    {
        return Some(UserFunction::Python {
            module: module.into(),
            function: function.into(),
        });
    }
    let what = format!("{what} does not name a function");
    let why = format!("write \"module:function\"; found \"{}\"", shorten(written));
    problems.error(at, Code::BadValue, what, why);
    None
}

/// The name of a function with C linkage.
pub(super) fn symbol(
    written: String,
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<String> {
    if is_identifier(&written) {
        return Some(written);
    }
    let what = format!("{what} does not name a function");
    let found = shorten(&written);
    let why = format!("an entry point is a C name; found \"{found}\"");
    problems.error(at, Code::BadName, what, why);
    None
}

/// A text, or a list of lines.
pub(super) fn script_text(node: &Node, problems: &mut Problems) -> String {
    if let NodeKind::List(_) = node.kind() {
        let lines = text_list(node, "a line of \"script\"", problems);
        return lines.join("\n") + "\n";
    }
    text(node, "\"script\"", problems).unwrap_or_default()
}

fn environment(node: &Node, what: &str, problems: &mut Problems) -> IndexMap<String, String> {
    let mut variables = IndexMap::new();
    for entry in entries(node, &format!("\"env\" of {what}"), problems).unwrap_or_default() {
        let name = entry.key.strip_prefix('+').unwrap_or(&entry.key);
        if name.is_empty() || name.contains(['=', '\0']) {
            let what = format!("\"{}\" cannot be a variable", shorten(&entry.key));
            let why = "a variable's name has at least one character, and no \"=\"";
            problems.error(entry.at, Code::BadName, what, why);
            continue;
        }
        let value = any_text(&entry.value, &format!("variable \"{name}\""), problems);
        variables.extend(value.map(|value| (entry.key.clone(), value)));
    }
    variables
}

/// Splits a text into words as a shell does: blanks separate, quotes and backslashes join. A quoted
/// or escaped dollar sign becomes `$$`, the notation in a list of arguments.
fn shell_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let word = word.get_or_insert_default();
                add_escaped(word, letters.next(), quote.is_some());
            }
            (Some('\''), '$') => word.get_or_insert_default().push_str("$$"),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}

/// Adds the letter behind a backslash. Inside double quotes a backslash is an ordinary letter,
/// except before a letter with a meaning there.
fn add_escaped(word: &mut String, letter: Option<char>, quoted: bool) {
    match letter {
        Some('$') => word.push_str("$$"),
        Some(letter) if quoted && !matches!(letter, '"' | '\\' | '`' | '\n') => {
            word.extend(['\\', letter]);
        }
        Some('\n') => {}
        letter => word.extend(letter),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_as_a_shell_does() {
        assert_eq!(
            shell_words("-v  run.py --name 'a b' \"c 'd\" e\\ f ''"),
            ["-v", "run.py", "--name", "a b", "c 'd", "e f", ""]
        );
        assert_eq!(
            shell_words(r#"-c 'for i in 1; do echo x$i; done' "$HOME" \$1 "a\$b\d+\"\\" \d"#),
            [
                "-c",
                "for i in 1; do echo x$$i; done",
                "$HOME",
                "$$1",
                "a$$b\\d+\"\\",
                "d"
            ]
        );
        assert!(shell_words("  ").is_empty());
        assert_eq!(shell_words("'open"), ["open"]);
    }
}
