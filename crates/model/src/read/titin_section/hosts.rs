//! Reads the hosts and the sites of a run.

use indexmap::IndexMap;

use super::super::fields::entries;
use super::super::{Fields, any_text, choice, count, text, text_list};
use super::{by_path, folder, read};
use crate::host_network::{HostNetwork, NetworkError};
use crate::names::Name;
use crate::problem::{Code, Problems};
use crate::titin_section::{AgentStart, Host, Site};
use crate::yaml::{MapEntry, Node, NodeKind, ScalarType, shorten};

/// Reads the sites.
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
            return None;
        };
        let relay = host_and_port(given, "\"relay\"", problems)?;
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

/// A key of [`AgentStart::KEYS`], or a list with the words of a command.
fn agent_start(node: &Node, what: &str, problems: &mut Problems) -> Option<AgentStart> {
    if let NodeKind::List(items) = node.kind() {
        let words = items.iter();
        let words: Vec<String> = words
            .filter_map(|word| any_text(word, what, problems))
            .collect();
        if words.is_empty() {
            let why = "the words of a command are expected, such as [docker, exec, -i, box]";
            problems.error(node.at, Code::BadValue, format!("{what} is empty"), why);
            return None;
        }
        return Some(AgentStart::Command(words));
    }
    choice(node, "the start of the agent", &AgentStart::KEYS, problems)
}
