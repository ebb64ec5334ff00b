//! The `titin:` section: paths that lead to components and ports, and scales that go together.

use crate::description::Description;
use crate::extras::EndTime;
use crate::names::{InstanceName, Name};
use crate::network::Network;
use crate::operator::Operator;
use crate::problem::{Code, Place, Problems, did_you_mean, listing};

pub(super) fn check(description: &Description, network: &Network, problems: &mut Problems) {
    let extras = &description.extras;
    let component = |path: &Name, at: Place, section: &str, problems: &mut Problems| {
        if problems.is_full() || network.by_path.contains_key(path) {
            return;
        }
        let names = || network.components.iter().map(|c| c.path.as_str());
        let hint = did_you_mean(path, names()).or_else(|| Some(format!("there are {}", listing(names()))));
        let why =
            format!("paths under \"titin: {section}\" are those of components, without the model's name");
        problems.error_hint(at, Code::UnknownPath, format!("\"{path}\" leads to no component"), why, hint);
    };
    for (path, scales) in &extras.scales {
        component(path, scales.at, "scales", problems);
    }
    for (path, stage) in &extras.stage {
        component(path, stage.at, "stage", problems);
    }
    for (path, progress) in &extras.progress {
        component(path, progress.at, "progress", problems);
        let EndTime::Setting(name) = &progress.end else { continue };
        let instance = InstanceName::new(path.clone(), Vec::new());
        if let Some(value) = network.settings.find(&instance, name)
            && let Err(error) = value.in_unit("s")
        {
            let what = format!("the end time of \"{path}\" is no time");
            problems.error(
                progress.at,
                Code::Unit,
                what,
                format!("setting \"{name}\" has value {value}: {error}"),
            );
        }
        let end = format!("].{name}");
        let mut of_instances = network.settings.iter().filter(|(given, _)| {
            given
                .strip_prefix(path.as_str())
                .is_some_and(|rest| rest.starts_with('[') && rest.ends_with(&end))
        });
        if network.settings.find(&instance, name).is_none() && of_instances.next().is_none() {
            let what = format!("the end of \"{path}\" is not known, so no progress will be shown");
            let why = format!("\"titin: progress\" takes it from setting \"{name}\", which is not given");
            let names = || network.settings.iter().map(|(path, _)| path.rsplit('.').next().unwrap_or(path));
            let hint = did_you_mean(name, names())
                .unwrap_or_else(|| format!("give the setting a value, or write {path}: 1 h, for instance"));
            problems.warn(progress.at, Code::UnknownSetting, what, why, hint);
        }
    }
    for (path, (_, placed)) in &extras.buffer.ports {
        port(network, path, placed.0, "buffer", problems);
    }
    for (path, pinned) in &extras.medium {
        port(network, path, pinned.at, "medium", problems);
    }
    for (path, (_, placed)) in &extras.links.components {
        end(network, path, placed.0, problems);
    }
    steps(network, problems);
}

fn end(network: &Network, path: &Name, at: Place, problems: &mut Problems) {
    if problems.is_full() || network.component(path).is_some() {
        return;
    }
    let what = format!("\"{path}\" is no component");
    let why = "\"titin: links\" goes by components, or is for all as \"default\"";
    let names = || network.components.iter().map(|c| c.path.as_str());
    let hint =
        did_you_mean(path, names()).or_else(|| Some(format!("the components are {}", listing(names()))));
    problems.error_hint(at, Code::UnknownPath, what, why, hint);
}

fn port(network: &Network, path: &Name, at: Place, section: &str, problems: &mut Problems) {
    if problems.is_full() {
        return;
    }
    let (component, name) = path.rsplit_once('.').unwrap_or(("", path));
    let what = format!("\"{path}\" leads to no port");
    let why = format!("\"titin: {section}\" goes by ports, written \"component.port\"");
    let Some(component) = network.component(component) else {
        let names = || network.components.iter().map(|c| c.path.as_str());
        let hint = did_you_mean(component, names())
            .or_else(|| Some(format!("the components are {}", listing(names()))));
        problems.error_hint(at, Code::UnknownPath, what, why, hint);
        return;
    };
    if !component.ports.contains_key(name) {
        let names = || component.ports.keys().map(Name::as_str);
        let hint =
            did_you_mean(name, names()).or_else(|| Some(format!("its ports are {}", listing(names()))));
        problems.error_hint(at, Code::UnknownPath, what, why, hint);
    }
}

/// Components that exchange messages in each step should have steps of the same length.
fn steps(network: &Network, problems: &mut Problems) {
    let dt = |path: &Name| network.extras.scales.get(path).and_then(|scales| scales.dt);
    for bundle in &network.bundles {
        let (sender, receiver) = network.ends(bundle);
        let operator = |c: &crate::NetworkComponent, port: &Name| c.ports.get(port).map(|p| p.operator);
        let each_step = operator(sender, &bundle.sender_port) == Some(Operator::OI)
            && operator(receiver, &bundle.receiver_port) == Some(Operator::S);
        let reduced = bundle.filters.iter().any(|f| f.kind.reduces() || f.kind.repeats());
        let (Some(from), Some(to)) = (dt(&sender.path), dt(&receiver.path)) else { continue };
        if each_step
            && !reduced
            && (from.value_si - to.value_si).abs() > 1e-9 * from.value_si.max(to.value_si)
        {
            let what =
                format!("\"{}\" and \"{}\" have steps of different lengths", sender.path, receiver.path);
            let why = format!(
                "they exchange messages in each step, and \"titin: scales\" says that dt is {} s and {} s",
                from.value_si, to.value_si
            );
            let hint = "if one of them sends every few steps only, this is as it should be".to_string();
            problems.warn(bundle.at, Code::Rate, what, why, hint);
        }
    }
}
