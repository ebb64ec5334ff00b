//! The `titin:` section: paths must lead to components and ports, and scales must fit together.

use std::collections::HashMap;

use crate::description::Description;
use crate::names::{InstanceName, Name};
use crate::network::{Bundle, Network, NetworkComponent};
use crate::operator::Operator;
use crate::pattern::Pattern;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, listing};
use crate::titin_section::{AgentStart, EndTime, Extras, Medium, OWN_HOST};

pub(super) fn check(description: &Description, network: &Network, problems: &mut Problems) {
    let extras = &description.extras;
    for (path, scales) in &extras.scales {
        component(network, path, scales.at, "scales", problems);
    }
    for (path, stage) in &extras.stage {
        component(network, path, stage.at, "stage", problems);
    }
    for (path, goal) in &extras.progress {
        component(network, path, goal.at, "progress", problems);
        if let EndTime::Setting(name) = &goal.end {
            end_setting(network, path, name, goal.at, problems);
        }
    }
    for (path, ensemble) in &extras.ensemble {
        component(network, path, ensemble.at, "ensemble", problems);
        if let Some(one) = network
            .component(path)
            .filter(|c| c.multiplicity.is_empty())
        {
            no_ensemble(one, ensemble.at, problems);
        }
    }
    for (path, (_, at)) in &extras.buffer.ports {
        port(network, path, *at, "buffer", problems);
    }
    for (path, pinned) in &extras.medium {
        port(network, path, pinned.at, "medium", problems);
        if pinned.medium == Medium::Relay && extras.sites.is_empty() {
            let what = format!("\"{path}\" is pinned to relay, and there are no sites");
            let why = "relays are between sites, which \"titin: sites\" lists";
            problems.error(pinned.at, Code::BadValue, what, why);
        }
    }
    for (path, (_, at)) in &extras.fields {
        port(network, path, *at, "fields", problems);
        replaced(network, path, *at, problems);
    }
    for (path, (_, at)) in &extras.links.components {
        end(network, path, *at, problems);
    }
    hosts(network, problems);
    sites(network, problems);
    media(network, problems);
    steps(network, problems);
}

/// Reports an entry of `ensemble` for a component that is a single instance.
fn no_ensemble(component: &NetworkComponent, at: TextPosition, problems: &mut Problems) {
    let what = format!("\"{}\" is no ensemble", component.path);
    let why = "it is one instance, and \"titin: ensemble\" is for the members of a component with a multiplicity";
    let hint = "write multiplicity: 100 in the component, for instance, or leave the entry out";
    problems.error_hint(at, Code::BadValue, what, why, hint.to_owned());
}

/// Checks that a medium to which a conduit is pinned joins the hosts of the two ends, where the description
/// says which hosts these are.
fn media(network: &Network, problems: &mut Problems) {
    if network.extras.medium.is_empty() {
        return;
    }
    let host_of = |component: &NetworkComponent| {
        let mut hosts = network.extras.hosts.iter();
        hosts.find(|(_, host)| host.components.contains(&component.path))
    };
    let entry = |component: &NetworkComponent, port: &Name| {
        let path = format!("{}.{port}", component.path);
        let pinned = network.extras.medium.get(path.as_str())?;
        Some((path, pinned))
    };
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let pinned = entry(sender, &bundle.sender_port);
        let Some((path, pinned)) = pinned.or_else(|| entry(receiver, &bundle.receiver_port)) else {
            continue;
        };
        let (Some((from, from_host)), Some((to, to_host))) = (host_of(sender), host_of(receiver))
        else {
            continue;
        };
        let are_at_one_site = from_host.site == to_host.site;
        let reason = match pinned.medium {
            Medium::Inproc | Medium::Shm if from != to => "it joins processes of one host",
            Medium::Tcp if !are_at_one_site => {
                "only relays join sites; the relays use TCP between them"
            }
            Medium::Relay if are_at_one_site => "relays join processes of different sites",
            _ => continue,
        };
        let medium = pinned.medium.key();
        let what = format!("\"{path}\" is pinned to {medium}, which does not join its two ends");
        let why = format!(
            "{} is on {from}, and {} is on {to}: {reason}",
            sender.path, receiver.path
        );
        let hint = "leave the entry out, and titin takes the best medium that joins them";
        problems.error_hint(pinned.at, Code::BadValue, what, why, hint.to_owned());
    }
}

/// Checks that the components of each host exist, and that each is on one host alone.
fn hosts(network: &Network, problems: &mut Problems) {
    let mut places: HashMap<&Name, &Name> = HashMap::new();
    let sites = &network.extras.sites;
    for (name, host) in &network.extras.hosts {
        for path in &host.components {
            component(network, path, host.at, "hosts", problems);
            let Some(other) = places.insert(path, name) else {
                continue;
            };
            if other == name {
                continue;
            }
            let what = format!("\"{path}\" is on two hosts");
            let why = format!("\"titin: hosts\" has it for {other} and for {name}");
            problems.error(host.at, Code::Duplicate, what, why);
        }
        if let Some(site) = host.site.as_ref().filter(|site| !sites.contains_key(*site)) {
            let what = format!("host \"{name}\" is at no site");
            let names = || sites.keys().map(Name::as_str);
            let why = match sites.is_empty() {
                true => format!("\"titin: sites\" does not have \"{site}\""),
                false => format!(
                    "\"titin: sites\" does not have \"{site}\", but {}",
                    listing(names())
                ),
            };
            let hint = did_you_mean(site, names())
                .unwrap_or_else(|| format!("write sites: {{{site}: {{relay: \"host:port\"}}}}"));
            problems.error_hint(host.at, Code::UnknownPath, what, why, hint);
        }
        let is_started = host.address.is_some() || host.start != AgentStart::default();
        let is_elsewhere =
            is_started || host.titin.is_some() || host.folder.is_some() || host.site.is_some();
        if name == OWN_HOST && is_elsewhere {
            let what = format!("{OWN_HOST} has no agent to start");
            let why = "it is the host on which the run is started, so only \"cores\", \"components\" and \"network\" apply";
            problems.error(host.at, Code::BadValue, what, why);
        }
    }
}

/// Warns of sites where no host is. One of several may be the site of the manager.
fn sites(network: &Network, problems: &mut Problems) {
    let Extras { sites, hosts, .. } = &network.extras;
    let Some((name, first)) = sites.first() else {
        return;
    };
    if hosts.values().any(|host| host.site.is_some()) {
        return;
    }
    let what = format!("no host is at {}", listing(sites.keys().map(Name::as_str)));
    let why = "without \"site\" in an entry of \"titin: hosts\", all hosts are at the site of the manager, and relays take no part";
    let hint = format!("write site: {name} in the entry of each host there");
    problems.warn(first.at, Code::Incomplete, what, why, hint);
}

fn component(
    network: &Network,
    path: &Name,
    at: TextPosition,
    section: &str,
    problems: &mut Problems,
) {
    if problems.is_full() || network.by_path.contains_key(path) {
        return;
    }
    let hint = meant_component(network, path);
    let why = format!(
        "paths under \"titin: {section}\" are those of components, without the model's name"
    );
    let what = format!("\"{path}\" leads to no component");
    problems.error_hint(at, Code::UnknownPath, what, why, hint);
}

/// Checks the setting that holds the end time of a component.
fn end_setting(
    network: &Network,
    path: &Name,
    name: &Name,
    at: TextPosition,
    problems: &mut Problems,
) {
    let settings = &network.settings;
    let instance = InstanceName::new(path.clone(), Vec::new());
    if let Some(value) = settings.find(&instance, name) {
        if let Err(error) = value.in_unit(network.extras.time_unit()) {
            let what = format!("the end time of \"{path}\" is no time");
            let why = format!("setting \"{name}\" has value {value}: {error}");
            problems.error(at, Code::Unit, what, why);
        }
        return;
    }
    let end = format!("].{name}");
    let of_instance = |given: &Name| {
        let rest = given.strip_prefix(path.as_str());
        rest.is_some_and(|rest| rest.starts_with('[') && rest.ends_with(&end))
    };
    if !settings.iter().any(|(given, _)| of_instance(given)) {
        warn_of_unknown_end(network, path, name, at, problems);
    }
}

fn warn_of_unknown_end(
    network: &Network,
    path: &Name,
    name: &Name,
    at: TextPosition,
    problems: &mut Problems,
) {
    let what = format!("the end of \"{path}\" is not known, so no progress will be shown");
    let why = format!("\"titin: progress\" takes it from setting \"{name}\", which is not given");
    let given = network.settings.iter();
    let names = given.map(|(path, _)| path.rsplit('.').next().unwrap_or(path));
    let hint = did_you_mean(name, names)
        .unwrap_or_else(|| format!("give the setting a value, or write {path}: 1 h, for instance"));
    problems.warn(at, Code::UnknownSetting, what, why, hint);
}

fn end(network: &Network, path: &Name, at: TextPosition, problems: &mut Problems) {
    if problems.is_full() || network.component(path).is_some() {
        return;
    }
    let what = format!("\"{path}\" is no component");
    let why = "\"titin: links\" goes by components, or is for all as \"default\"";
    let hint = did_you_mean(path, ["default"]).unwrap_or_else(|| meant_component(network, path));
    problems.error_hint(at, Code::UnknownPath, what, why, hint);
}

/// The hint for a path that leads to no component.
fn meant_component(network: &Network, path: &str) -> String {
    let is_one = |path: &&str| network.component(path).is_some();
    // The path may begin with the model's name, or end with a port.
    let bare = path
        .strip_prefix(network.model.as_str())
        .and_then(|rest| rest.strip_prefix('.'));
    if let Some(found) = bare
        .filter(is_one)
        .or(path.rsplit_once('.').map(|(path, _)| path).filter(is_one))
    {
        return format!("did you mean \"{found}\"?");
    }
    let names = || network.components.iter().map(|c| c.path.as_str());
    did_you_mean(path, names())
        .unwrap_or_else(|| format!("the components are {}", listing(names())))
}

fn port(network: &Network, path: &Name, at: TextPosition, section: &str, problems: &mut Problems) {
    let end = path.rsplit_once('.');
    let found = end.and_then(|(component, port)| network.component(component)?.ports.get(port));
    if problems.is_full() || found.is_some() {
        return;
    }
    let what = format!("\"{path}\" leads to no port");
    let why = format!("\"titin: {section}\" goes by ports, written \"component.port\"");
    problems.error_hint(at, Code::UnknownPath, what, why, meant_port(network, path));
}

/// Warns of an entry for a sender's field that has no effect, because every receiver has an entry
/// too.
fn replaced(network: &Network, sender: &Name, at: TextPosition, problems: &mut Problems) {
    let paths = network.bundles.iter().map(|bundle| {
        let (from, to) = network.ends(bundle);
        (
            format!("{}.{}", from.path, bundle.sender_port),
            format!("{}.{}", to.path, bundle.receiver_port),
        )
    });
    let receivers: Vec<String> = paths
        .filter(|(from, _)| *from == **sender)
        .map(|(_, to)| to)
        .collect();
    let has_own = |path: &String| network.extras.fields.contains_key(path.as_str());
    if receivers.is_empty() || !receivers.iter().all(has_own) {
        return;
    }
    let what = format!("what \"titin: fields\" says of \"{sender}\" has no effect");
    let why = format!(
        "the entry of a receiver holds alone, and there is one for {}",
        listing(receivers.iter().map(String::as_str))
    );
    let hint = "write all of it in the entry of the receiver";
    problems.warn(at, Code::BadValue, what, why, hint.to_string());
}

/// The hint for a path that leads to no port.
fn meant_port(network: &Network, path: &str) -> String {
    if let Some(component) = network.component(path) {
        return format!("its ports are {}", listed(&port_paths(component)));
    }
    let all: Vec<String> = network.components.iter().flat_map(port_paths).collect();
    let (owner, name) = path.rsplit_once('.').unwrap_or(("", path));
    let own = network.component(owner).map(port_paths).unwrap_or_default();
    let bare = path
        .strip_prefix(network.model.as_str())
        .and_then(|rest| rest.strip_prefix('.'));
    let with_model = all.iter().find(|known| bare == Some(known));
    // Another component may have a port of this name.
    let elsewhere = || {
        all.iter()
            .find(|known| known.rsplit_once('.').is_some_and(|(_, port)| port == name))
    };
    let near = |among: &[String]| did_you_mean(path, among.iter().map(String::as_str));
    let named = |found: &String| format!("did you mean \"{found}\"?");
    with_model
        .map(named)
        .or_else(|| near(&own))
        .or_else(|| elsewhere().map(named))
        .or_else(|| near(&all))
        .unwrap_or_else(|| match own.as_slice() {
            [] => format!("the ports are {}", listed(&all)),
            own => format!("its ports are {}", listed(own)),
        })
}

fn port_paths(component: &NetworkComponent) -> Vec<String> {
    let path = &component.path;
    component
        .ports
        .keys()
        .map(|port| format!("{path}.{port}"))
        .collect()
}

fn listed(ports: &[String]) -> String {
    listing(ports.iter().map(String::as_str))
}

/// Components that exchange messages in each step should have timesteps of the same length.
fn steps(network: &Network, problems: &mut Problems) {
    let dt = |path: &Name| network.extras.scales.get(path).and_then(|scales| scales.dt);
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let (Some(from), Some(to)) = (dt(&sender.path), dt(&receiver.path)) else {
            continue;
        };
        let (from, to) = (from.value_si, to.value_si);
        if (from - to).abs() > 1e-9 * from.max(to) && joins_steps(network, bundle) {
            let (one, other) = (&sender.path, &receiver.path);
            let what = format!("\"{one}\" and \"{other}\" have steps of different lengths");
            let why = format!(
                "they exchange messages in each step, and \"titin: scales\" says that dt is {from} s and {to} s"
            );
            let hint = "if one of them sends every few steps only, this is as it should be";
            problems.warn(bundle.at, Code::Rate, what, why, hint.to_string());
        }
    }
}

/// Whether a message goes from each step of the sender to a step of the receiver.
fn joins_steps(network: &Network, bundle: &Bundle) -> bool {
    let (sender, receiver) = network.ends(bundle);
    let operator = |c: &NetworkComponent, port: &Name| c.ports.get(port).map(|p| p.operator);
    let keeps_step = |pattern: &Pattern| pattern.keeps_step();
    operator(sender, &bundle.sender_port) == Some(Operator::OI)
        && operator(receiver, &bundle.receiver_port) == Some(Operator::S)
        && !bundle.filters.iter().any(|filter| filter.kind.chooses())
        && bundle.pattern.as_deref().is_none_or(keeps_step)
}

#[cfg(test)]
mod tests {
    use crate::{Description, ProblemReport, load_texts};

    /// A model with macro (out, back) and micro (in, final), and this `titin:` section.
    fn load_section(section: &str) -> Result<Description, ProblemReport> {
        let text = format!(
            "ymmsl_version: v0.2\nmodels:\n  m:\n    components:\n      macro: {{description: x, ports: {{o_i: out, s: back}}, \
             implementation: p}}\n      micro: {{description: x, ports: {{f_init: in, o_f: final}}, implementation: p}}\n    \
             conduits: {{macro.out: micro.in, micro.final: macro.back}}\nprograms: {{p: {{executable: p}}}}\ntitin:\n  \
             {section}\n"
        );
        load_texts(&[("m", &text)], &Default::default())
    }

    #[test]
    fn an_entry_that_fits_no_ensemble_is_refused_at_its_place() {
        for (entry, place, text) in [
            (
                "{macro: {allow_failures: 1}}",
                (10, 14),
                "\"macro\" is no ensemble",
            ),
            ("{mirco: {retry: 1}}", (10, 14), "did you mean \"micro\"?"),
            (
                "{micro: {allow_failure: 1}}",
                (10, 22),
                "did you mean \"allow_failures\"?",
            ),
            (
                "{micro: {retry: -1}}",
                (10, 29),
                "\"retry\" is out of range",
            ),
            ("{micro: {allow_failures: 1.5}}", (10, 38), "a whole number"),
            (
                "{micro: {at_once: 0}}",
                (10, 31),
                "\"at_once\" is out of range",
            ),
            ("{micro: 3}", (10, 21), "the ensemble \"micro\""),
        ] {
            let report = load_section(&format!("ensemble: {entry}")).unwrap_err();
            let problem = report
                .problems
                .iter()
                .find(|problem| problem.to_string().contains(text));
            let problem = problem.unwrap_or_else(|| panic!("{entry}: {report}"));
            let (line, column) = place;
            assert_eq!(
                (problem.line, problem.column),
                (Some(line), Some(column)),
                "{entry}: {report}"
            );
        }
    }

    /// The hint for a section with one mistake.
    fn hint(section: &str) -> String {
        let report = load_section(section).unwrap_err();
        assert_eq!(report.problems.len(), 1, "{report}");
        report.problems[0].hint.clone().unwrap_or_default()
    }

    #[test]
    fn a_pinned_medium_must_join_the_hosts_of_its_ends() {
        let sites = "  sites: {south: {relay: \"far:4710\"}}\n";
        let hosts = |macro_at: &str, micro_at: &str| {
            format!(
                "{sites}  hosts:\n    localhost: {{components: [{macro_at}]}}\n    near: {{components: [{}]}}\n    far: {{site: \
                 south, components: [{micro_at}]}}\n",
                if micro_at.is_empty() { "micro" } else { "" },
            )
        };
        let (far, near) = (hosts("macro", "micro"), hosts("macro", ""));
        for (places, port, medium, is_wrong) in [
            (&far, "macro.out", "tcp", true),
            (&far, "micro.in", "shm", true),
            (&far, "macro.out", "inproc", true),
            (&far, "macro.out", "relay", false),
            (&far, "macro.out", "file", false),
            (&near, "micro.in", "shm", true),
            (&near, "macro.out", "tcp", false),
            (&near, "macro.out", "relay", true),
        ] {
            let report = load_section(&format!("medium: {{{port}: {medium}}}\n{places}"));
            let found = report.err().map(|report| report.to_string());
            assert_eq!(found.is_some(), is_wrong, "{medium}: {found:?}");
            if let Some(text) = found {
                let expected =
                    format!("\"{port}\" is pinned to {medium}, which does not join its two ends");
                assert!(text.contains(&expected), "{text}");
            }
        }
    }

    #[test]
    fn what_was_meant_by_a_path_to_nothing_is_said() {
        for (section, expected) in [
            ("medium: {macro.uot: tcp}", "did you mean \"macro.out\"?"),
            ("medium: {mikro.in: tcp}", "did you mean \"micro.in\"?"),
            ("medium: {m.macro.out: tcp}", "did you mean \"macro.out\"?"),
            (
                "medium: {macro.final: tcp}",
                "did you mean \"micro.final\"?",
            ),
            ("medium: {final: tcp}", "did you mean \"micro.final\"?"),
            (
                "medium: {macro: tcp}",
                "its ports are \"macro.out\" and \"macro.back\"",
            ),
            (
                "medium: {macro.something: tcp}",
                "its ports are \"macro.out\" and \"macro.back\"",
            ),
            ("medium: {micro.in: tpc}", "did you mean \"tcp\"?"),
            (
                "buffer: {macro.bakc: {messages: 1}}",
                "did you mean \"macro.back\"?",
            ),
            (
                "buffer: {defualt: {messages: 1}}",
                "did you mean \"default\"?",
            ),
            (
                "links: {defualt: {streams: 2}}",
                "did you mean \"default\"?",
            ),
            (
                "links: {default: {compress: allways}}",
                "did you mean \"always\"?",
            ),
            ("links: {mcro: {streams: 2}}", "did you mean \"macro\"?"),
            (
                "links: {macro.out: {streams: 2}}",
                "did you mean \"macro\"?",
            ),
            ("links: {m.macro: {streams: 2}}", "did you mean \"macro\"?"),
            ("stage: {m.micro: {in: x}}", "did you mean \"micro\"?"),
            (
                "stage: {elephant: {in: x}}",
                "the components are \"macro\" and \"micro\"",
            ),
        ] {
            assert_eq!(hint(section), expected, "{section}");
        }
        let other = hint("medium: {elephant: tcp}");
        assert_eq!(
            other,
            "the ports are \"macro.out\", \"macro.back\", \"micro.in\" and \"micro.final\""
        );
    }
}
