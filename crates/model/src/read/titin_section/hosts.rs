//! Reads the hosts and the sites of a run.

use indexmap::IndexMap;

use super::super::fields::entries;
use super::super::{Fields, any_text, choice, count, text, text_list, wrong_type};
use super::{by_path, duration, folder, read};
use crate::host_network::{HostNetwork, NetworkError};
use crate::names::Name;
use crate::problem::{Code, Problems, TextPosition, did_you_mean};
use crate::quantity::{self, Quantity};
use crate::titin_section::{AgentStart, BatchJob, Host, Site};
use crate::yaml::{MapEntry, Node, NodeKind, ScalarType, shorten};

/// The batch systems that PSI/J knows by itself (psij-python 0.9).
const BATCH_SYSTEMS: [&str; 8] = [
    "slurm",
    "pbs",
    "pbs_classic",
    "lsf",
    "flux",
    "cobalt",
    "rp",
    "local",
];

/// Reads the sites. A site whose relay is missing or wrong is one all the same, so that the site's hosts
/// are not reported as well.
pub(super) fn sites(fields: &mut Fields<'_>, problems: &mut Problems) -> IndexMap<Name, Site> {
    by_path(fields, "sites", problems, |name, at, node, problems| {
        let mut fields = Fields::new(node, format!("site \"{name}\""), problems)?;
        let given = fields.take("relay");
        fields.finish(problems);
        let Some(given) = given else {
            let what = format!("site \"{name}\" has no relay");
            let why = "hosts of another site are reached by its relay: write {relay: \"host:port\"}, as \"local\" in the \
                       relay.toml there";
            problems.error(at, Code::MissingKey, what, why);
            let relay = String::new();
            return Some(Site { relay, at });
        };
        let relay = host_and_port(given, "\"relay\"", problems).unwrap_or_default();
        Some(Site { relay, at })
    })
}

/// `host:port`.
fn host_and_port(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let word = word(node, what, problems)?;
    let parts = word.rsplit_once(':');
    if parts.is_some_and(|(host, port)| !host.is_empty() && port.parse::<u16>().is_ok()) {
        return Some(word);
    }
    let why = "the host and the port of the relay are expected, such as \"login1:4710\"";
    problems.error(
        node.at,
        Code::BadValue,
        format!("{what} is no address"),
        why,
    );
    None
}

/// Reads the hosts. The name of a host may have dashes and dots.
pub(super) fn hosts(fields: &mut Fields<'_>, problems: &mut Problems) -> IndexMap<Name, Host> {
    let given = fields.take("hosts");
    let given = given.and_then(|node| entries(node, "\"hosts\"", problems));
    let mut hosts = IndexMap::new();
    for entry in given.unwrap_or_default() {
        if let Some(host) = host(entry, problems) {
            hosts.insert(entry.key.as_str().into(), host);
        }
    }
    hosts
}

fn host(entry: &MapEntry, problems: &mut Problems) -> Option<Host> {
    let what = format!("host \"{}\"", shorten(&entry.key));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if entry.key.is_empty() || entry.key.starts_with(['-', '.']) || !entry.key.chars().all(is_plain)
    {
        let why = "the name of a host has letters, digits, dashes, dots and underscores";
        let hint = "write what ssh is to be given as \"address\"".to_owned();
        let what = format!("{what} is no name of a host");
        problems.error_hint(entry.at, Code::BadName, what, why, hint);
        return None;
    }
    if matches!(entry.value.kind(), NodeKind::Scalar(scalar) if scalar.of == ScalarType::Null) {
        return Some(Host {
            at: entry.at,
            ..Host::default()
        });
    }
    let mut fields = Fields::new(&entry.value, what, problems)?;
    let host = Host {
        address: read(&mut fields, "address", problems, word),
        start: read(&mut fields, "start", problems, agent_start).unwrap_or_default(),
        titin: read(&mut fields, "titin", problems, word),
        folder: read(&mut fields, "folder", problems, folder),
        cores: read(&mut fields, "cores", problems, cores),
        components: read(&mut fields, "components", problems, components).unwrap_or_default(),
        site: read(&mut fields, "site", problems, word).map(|site| site.as_str().into()),
        network: read(&mut fields, "network", problems, network),
        at: entry.at,
    };
    fields.finish(problems);
    Some(host)
}

/// A text that a command may be given as a word: not empty, and no option.
fn word(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let word = text(node, what, problems)?;
    if !word.is_empty() && !word.starts_with('-') && !word.contains(char::is_control) {
        return Some(word);
    }
    let why = "it is given to a command, so it must not be empty or begin with a dash";
    problems.error(node.at, Code::BadValue, format!("{what} does not fit"), why);
    None
}

/// The name of an interface, a prefix of addresses, or an address.
fn network(node: &Node, what: &str, problems: &mut Problems) -> Option<HostNetwork> {
    let written = text(node, what, problems)?;
    let why: NetworkError = match written.parse() {
        Ok(network) => return Some(network),
        Err(why) => why,
    };
    problems.error_hint(
        node.at,
        Code::BadValue,
        format!("{what} names no network"),
        why.to_string(),
        "write an interface of the host, such as eth1, or a prefix of its addresses, such as 10.70.0.0/24".to_owned(),
    );
    None
}

fn cores(node: &Node, what: &str, problems: &mut Problems) -> Option<u32> {
    let cores = count(node, what, 0, 1 << 20, problems)?;
    u32::try_from(cores).ok()
}

fn components(node: &Node, what: &str, problems: &mut Problems) -> Option<Vec<Name>> {
    let paths = text_list(node, what, problems).into_iter();
    Some(paths.map(Name::from).collect())
}

/// A key of [`AgentStart::KEYS`], a list with the words of a command, or a mapping about a batch job.
fn agent_start(node: &Node, what: &str, problems: &mut Problems) -> Option<AgentStart> {
    match node.kind() {
        NodeKind::List(_) => {
            let words = command(node, what, "[docker, exec, -i, box]", problems)?;
            Some(AgentStart::Command(words))
        }
        NodeKind::Map(_) => {
            let job = batch_job(node, what, problems)?;
            Some(AgentStart::Batch(Box::new(job)))
        }
        _ => choice(node, "the start of the agent", &AgentStart::KEYS, problems),
    }
}

/// The words of a command to which titin appends the words to run.
fn command(node: &Node, what: &str, example: &str, problems: &mut Problems) -> Option<Vec<String>> {
    let NodeKind::List(items) = node.kind() else {
        let wanted = format!("a list with the words of a command, such as {example},");
        return wrong_type(node, what, &wanted, problems);
    };
    if items.is_empty() {
        let why = format!("the words of a command are expected, such as {example}");
        problems.error(node.at, Code::BadValue, format!("{what} is empty"), why);
        return None;
    }
    let words = items.iter().map(|word| any_text(word, what, problems));
    // All words are read, so that all mistakes are reported.
    let words: Vec<Option<String>> = words.collect();
    words.into_iter().collect()
}

/// A batch job of an agent. The keys are named as the options of `titin run --submit`.
fn batch_job(node: &Node, what: &str, problems: &mut Problems) -> Option<BatchJob> {
    let mut fields = Fields::new(node, format!("the batch job under {what}"), problems)?;
    let system = needed(&mut fields, "batch", node.at, problems, batch_system);
    let time = needed(&mut fields, "time", node.at, problems, time_limit);
    let nodes = read(&mut fields, "nodes", problems, at_least_one);
    let cores_per_node = read(&mut fields, "cores_per_node", problems, at_least_one);
    let queue = read(&mut fields, "queue", problems, word);
    let account = read(&mut fields, "account", problems, word);
    let options = read(&mut fields, "options", problems, job_options);
    let via = read(&mut fields, "via", problems, |node, what, problems| {
        command(node, what, "[ssh, login.south]", problems)
    });
    fields.finish(problems);
    Some(BatchJob {
        system: system?,
        time: time?,
        nodes,
        cores_per_node,
        queue,
        account,
        options: options.unwrap_or_default(),
        via: via.unwrap_or_default(),
    })
}

/// Reads the value of a key that a batch job must have. `at` is the place of the job.
fn needed<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    at: TextPosition,
    problems: &mut Problems,
    value: impl Fn(&Node, &str, &mut Problems) -> Option<T>,
) -> Option<T> {
    let given = read(fields, key, problems, |node, what, problems| {
        Some(value(node, what, problems))
    });
    if given.is_none() {
        let what = format!("{} has no \"{key}\"", fields.what());
        let why = "a job has the name of the batch system, as PSI/J calls it, and a time limit";
        let hint = "write start: {batch: slurm, time: 2 h}".to_owned();
        problems.error_hint(at, Code::MissingKey, what, why, hint);
    }
    given.flatten()
}

/// The name of a batch system. The host on which the job is submitted may have more executors of PSI/J.
fn batch_system(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let system = word(node, what, problems)?;
    if !BATCH_SYSTEMS.contains(&system.as_str()) {
        let why = format!(
            "PSI/J has executors for {}; another must be installed where the job is submitted",
            BATCH_SYSTEMS.join(", ")
        );
        let hint = did_you_mean(&system, BATCH_SYSTEMS)
            .unwrap_or_else(|| "write start: {batch: slurm, time: 2 h}, for instance".to_owned());
        let what = format!(
            "PSI/J itself knows no batch system \"{}\"",
            shorten(&system)
        );
        problems.warn(node.at, Code::BadValue, what, why, hint);
    }
    Some(system)
}

/// The time limit of a job. A plain number would mean seconds here, and minutes to some batch systems.
fn time_limit(node: &Node, what: &str, problems: &mut Problems) -> Option<Quantity> {
    let limit = duration(node, what, problems)?;
    if let NodeKind::Scalar(scalar) = node.kind()
        && quantity::is_plain(&scalar.text)
    {
        let number = &scalar.text;
        problems.error_hint(
            node.at,
            Code::Unit,
            format!("{what} has no unit"),
            "a plain number could be of seconds or of minutes",
            format!("write \"{number} min\" or \"{number} s\""),
        );
        return None;
    }
    if limit.value_si > 0.0 {
        return Some(limit);
    }
    let why = "a time limit above 0 is expected, such as \"2 h\"";
    problems.error(node.at, Code::BadValue, format!("{what} is 0"), why);
    None
}

fn at_least_one(node: &Node, what: &str, problems: &mut Problems) -> Option<u32> {
    let count = count(node, what, 1, 1 << 20, problems)?;
    u32::try_from(count).ok()
}

/// Options of a batch system. Each becomes a line in the script of the job.
fn job_options(
    node: &Node,
    what: &str,
    problems: &mut Problems,
) -> Option<IndexMap<String, String>> {
    let mut options = IndexMap::new();
    for entry in entries(node, what, problems)? {
        let name = shorten(&entry.key);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        if name.is_empty() || name.starts_with('-') || !entry.key.chars().all(is_plain) {
            let what = format!("\"{name}\" is no option of a batch system");
            let why =
                "the name of an option is expected, without dashes before it: {constraint: gpu}";
            problems.error(entry.at, Code::BadName, what, why);
            continue;
        }
        let what = format!("the option \"{name}\"");
        let Some(value) = any_text(&entry.value, &what, problems) else {
            continue;
        };
        if value.contains(char::is_control) {
            let why = "it becomes a line in the script of the job, so it must have no line breaks";
            problems.error(
                entry.value.at,
                Code::BadValue,
                format!("{what} does not fit"),
                why,
            );
            continue;
        }
        options.insert(entry.key.clone(), value);
    }
    Some(options)
}
