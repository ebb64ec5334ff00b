//! Programs, ports and supported settings.

use std::path::PathBuf;

use indexmap::IndexMap;

use super::fields::{entries, identifier};
use super::{Fields, any_text, choice, text, text_list, truth, word_list};
use crate::description::{
    BaseEnv, ExecutionModel, HostedFunction, KeepsState, Port, Ports, Program, ProgramKind,
    SupportedSetting,
};
use crate::document::FormatVersion;
use crate::names::{Name, is_dotted, is_identifier};
use crate::operator::{Operator, Timeline};
use crate::problem::{Code, Problems, TextPosition, listing};
use crate::settings::SettingType;
use crate::titin_section::UserFunction;
use crate::yaml::{Node, NodeKind, shorten};

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
        for (entry, words) in ["timeline ", "+"]
            .into_iter()
            .flat_map(|prefix| fields.take_prefixed(prefix))
        {
            let parts: Vec<_> = words
                .trim()
                .split(':')
                .filter_map(|part| identifier(part, "a timeline", entry.at, problems))
                .collect();
            let Some(mut inner) = Fields::new(
                &entry.value,
                format!("\"{}\" of {what}", entry.key),
                problems,
            ) else {
                continue;
            };
            for operator in [Operator::OI, Operator::S] {
                if let Some(names) = inner.take(operator.key()) {
                    add_ports(
                        &mut ports,
                        names,
                        operator,
                        &parts.clone().into(),
                        what,
                        problems,
                    );
                }
            }
            inner.finish(problems);
        }
    }
    fields.finish(problems);
    ports
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
        let port = Port {
            name: name.clone(),
            operator,
            timeline: timeline.clone(),
            guessed: false,
            at,
        };
        if let Some(first) = ports.get(&name) {
            let why = format!(
                "{what} has it under {} already; a port has one operator",
                first.operator
            );
            problems.error(
                at,
                Code::Duplicate,
                format!("port \"{name}\" is listed twice"),
                why,
            );
        } else {
            ports.insert(name, port);
        }
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
    let of = fields.take("type").map(|n| setting_type(name, n, problems));
    let described = fields.take("description");
    let result = match (of, described) {
        (Some(of), description) => {
            let description = description
                .and_then(|n| text(n, "the description", problems))
                .unwrap_or_default();
            of.map(|of| (of, description))
        }
        // Without a type the description begins with the type.
        (None, Some(description)) => typed_text(name, description, problems),
        (None, None) => {
            let why = format!(
                "write one of {}",
                listing(SettingType::ALL.map(SettingType::key))
            );
            let what = format!("supported setting \"{name}\" has no \"type\"");
            problems.error(node.at, Code::MissingKey, what, why);
            None
        }
    };
    fields.finish(problems);
    result
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
        let hint = crate::problem::did_you_mean(word, keys);
        let why = format!(
            "the types are {}; found \"{}\"",
            listing(keys),
            shorten(word)
        );
        problems.error_hint(
            at,
            Code::BadValue,
            format!("setting \"{name}\" has an unknown type"),
            why,
            hint,
        );
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
        let described = fields
            .take("description")
            .and_then(|n| text(n, "the description", problems));
        program.description = described.unwrap_or_default();
        if let Some(node) = fields.take("ports") {
            program.ports = ports(node, version, &what, problems);
        }
        if let Some(node) = fields.take("supported_settings") {
            program.supported_settings = supported_settings(node, &what, problems);
        }
    }
    let script = fields.take("script");
    let beside_script = [
        "base_env",
        "modules",
        "virtual_env",
        "env",
        "executable",
        "args",
    ]
    .map(|key| (key, fields.take(key)));
    let [base_env, modules, virtual_env, env, executable, args] =
        beside_script.map(|(_, node)| node);
    if let Some(node) = base_env {
        program.base_env = choice(node, "\"base_env\"", &BASE_ENVS, problems).unwrap_or_default();
    }
    if let Some(node) = modules {
        program.modules = word_list(node, "\"modules\"", problems)
            .into_iter()
            .map(|(word, _)| word)
            .collect();
    }
    if let Some(node) = virtual_env {
        program.virtual_env = text(node, "\"virtual_env\"", problems).map(PathBuf::from);
    }
    if let Some(node) = env {
        program.env = environment(node, &what, problems);
    }
    if let Some(node) = args {
        let given = text_list(node, "\"args\"", problems);
        // MUSCLE3 passes a text to a shell, which splits it into words; each item of a list is one
        // argument.
        program.args = match node.kind() {
            NodeKind::List(_) => given,
            _ => given.iter().flat_map(|text| shell_words(text)).collect(),
        };
    }
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
    let hosted = fields.take("titin");
    fields.finish(problems);
    if let Some(node) = hosted {
        let asked = [
            ("script", script),
            ("executable", executable),
            ("args", args),
            ("modules", modules),
        ];
        let beside: Vec<_> = asked
            .iter()
            .filter(|(_, node)| node.is_some())
            .map(|(key, _)| *key)
            .collect();
        if !beside.is_empty() || program.execution_model != ExecutionModel::Direct {
            let why = format!(
                "a host calls it, and starts nothing: leave out {}",
                if beside.is_empty() {
                    "\"execution_model\"".to_owned()
                } else {
                    listing(beside)
                }
            );
            problems.error(
                node.at,
                Code::BadValue,
                format!("{what} is run by a host"),
                why,
            );
        }
        // A faulty program stays in the description, so that components that name it are not
        // reported too.
        if let Some(guest) = guest(node, &what, problems) {
            program.kind = ProgramKind::Hosted(guest);
        }
        return Some(program);
    }
    match (script, executable) {
        (Some(script), _) => {
            let beside: Vec<_> = beside_script
                .iter()
                .filter(|(_, node)| node.is_some())
                .map(|(key, _)| *key)
                .collect();
            if !beside.is_empty() {
                let why = format!(
                    "a script sets these itself: {}; give either a script or the rest",
                    listing(beside)
                );
                problems.error(
                    at,
                    Code::BadValue,
                    format!("{what} has more beside its script"),
                    why,
                );
            }
            program.kind = ProgramKind::Script(script_text(script, problems));
        }
        (None, Some(node)) => {
            let path = text(node, "\"executable\"", problems).unwrap_or_default();
            program.kind = ProgramKind::Executable(PathBuf::from(path));
        }
        (None, None) if program.execution_model == ExecutionModel::Manual => {
            program.kind = ProgramKind::Manual
        }
        (None, None) => {
            let why = "it needs an \"executable\" or a \"script\", or \"execution_model: manual\" if you start it";
            problems.error(
                at,
                Code::MissingKey,
                format!("{what} cannot be started"),
                why,
            );
        }
    }
    Some(program)
}

/// The function that a host calls: `{host: NAME, function: "module:function"}`, or `{host: NAME,
/// library: ./lib.so, function: name}`, or with `step` in place of `function`.
fn guest(node: &Node, what: &str, problems: &mut Problems) -> Option<HostedFunction> {
    let mut fields = Fields::new(node, format!("\"titin\" of {what}"), problems)?;
    let [host, function, library, step] =
        ["host", "function", "library", "step"].map(|key| fields.take(key));
    fields.finish(problems);
    let named = |node: &Node, problems: &mut Problems| text(node, "what the host calls", problems);
    let call = match (library, function, step) {
        (None, Some(node), None) => {
            python_function(&named(node, problems)?, node.at, what, problems)
        }
        (Some(path), Some(node), None) | (Some(path), None, Some(node)) => {
            let path = text(path, "\"library\"", problems)?;
            symbol(named(node, problems)?, node.at, what, problems)
                .map(|symbol| UserFunction::Library { path, symbol })
        }
        _ => {
            let why = "write {host: NAME, function: \"module:function\"} for Python, or {host: NAME, library: \"path.so\", \
                       function: \"name\"} for C, with \"step\" in the place of \"function\" if it is called whenever the \
                       instance can go on";
            problems.error(
                node.at,
                Code::MissingKey,
                format!("{what} does not say what to call"),
                why,
            );
            None
        }
    }?;
    let Some(host) = host.and_then(|node| {
        identifier(
            &text(node, "\"host\"", problems)?,
            "a host",
            node.at,
            problems,
        )
    }) else {
        let why = "programs that name the same host share a process, each instance on a thread of its own";
        let hint = "write {host: main, ...}".to_string();
        problems.error_hint(
            node.at,
            Code::MissingKey,
            format!("{what} names no host"),
            why,
            Some(hint),
        );
        return None;
    };
    Some(HostedFunction {
        host,
        call,
        steps: step.is_some(),
    })
}

/// `module:function`.
pub(super) fn python_function(
    written: &str,
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<UserFunction> {
    match written.split_once(':') {
        Some((module, function)) if is_dotted(module) && is_dotted(function) => {
            Some(UserFunction::Python {
                module: module.into(),
                function: function.into(),
            })
        }
        _ => {
            let why = format!("write \"module:function\"; found \"{}\"", shorten(written));
            problems.error(
                at,
                Code::BadValue,
                format!("{what} does not name a function"),
                why,
            );
            None
        }
    }
}

/// The name of a function with C linkage.
pub(super) fn symbol(
    written: String,
    at: TextPosition,
    what: &str,
    problems: &mut Problems,
) -> Option<String> {
    if !is_identifier(&written) {
        let why = format!(
            "an entry point is a C name; found \"{}\"",
            shorten(&written)
        );
        problems.error(
            at,
            Code::BadName,
            format!("{what} does not name a function"),
            why,
        );
        return None;
    }
    Some(written)
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
            let why = "a variable's name has at least one character, and no \"=\"";
            let shown = shorten(&entry.key);
            problems.error(
                entry.at,
                Code::BadName,
                format!("\"{shown}\" cannot be a variable"),
                why,
            );
        } else if let Some(value) =
            any_text(&entry.value, &format!("variable \"{name}\""), problems)
        {
            variables.insert(entry.key.clone(), value);
        }
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
                match letters.next() {
                    Some('$') => word.push_str("$$"),
                    // Inside double quotes a backslash is an ordinary letter, except before a
                    // letter with a meaning there.
                    Some(letter)
                        if quote.is_some() && !matches!(letter, '"' | '\\' | '`' | '\n') =>
                    {
                        word.extend(['\\', letter]);
                    }
                    Some('\n') => {}
                    letter => word.extend(letter),
                }
            }
            (Some('\''), '$') => word.get_or_insert_default().push_str("$$"),
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
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
