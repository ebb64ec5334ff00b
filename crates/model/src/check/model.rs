//! One model: its conduits join existing ports, in the right direction.

use std::collections::HashMap;

use crate::description::{Conduit, Description, Model, Port, PortReference, Ports, SETTINGS_IN};
use crate::filter::{FILTER_NAMES, FilterKind};
use crate::names::Name;
use crate::operator::Operator;
use crate::problem::{Code, Problems, TextPosition, did_you_mean, either, listing};

pub(super) fn check(model: &Model, problems: &mut Problems) {
    let mut senders: HashMap<&PortReference, &Conduit> =
        HashMap::with_capacity(model.conduits.len());
    for conduit in &model.conduits {
        if problems.is_full() {
            return;
        }
        if !is_reversed(model, conduit, problems) {
            check_end(model, &conduit.sender, conduit.at, true, problems);
            check_end(
                model,
                &conduit.receiver,
                conduit.receiver_at,
                false,
                problems,
            );
        }
        if let Some(first) = senders.insert(&conduit.receiver, conduit) {
            let receiver = &conduit.receiver;
            let why = format!(
                "\"{}\" (line {}) and \"{}\" both send to it; a port has one sender",
                first.sender, first.receiver_at.line, conduit.sender
            );
            let hint =
                "join them with a component such as titin.merger, or give the receiver two ports"
                    .to_string();
            let what = format!("two conduits lead to \"{receiver}\"");
            problems.error_hint(conduit.receiver_at, Code::TwoSenders, what, why, hint);
        }
    }
}

/// Reports a conduit from a receiving port to a sending port, for both ends at once; true if it is
/// one.
fn is_reversed(model: &Model, conduit: &Conduit, problems: &mut Problems) -> bool {
    let (Some(from), Some(to)) = (
        operator(model, &conduit.sender),
        operator(model, &conduit.receiver),
    ) else {
        return false;
    };
    if from.sends() || !to.sends() {
        return false;
    }
    let (from_end, to_end) = (&conduit.sender, &conduit.receiver);
    let what = format!("the conduit from \"{from_end}\" to \"{to_end}\" is the wrong way round");
    let why =
        format!("\"{from_end}\" is {from}, which receives, and \"{to_end}\" is {to}, which sends");
    let hint = format!("write \"{to_end}: {from_end}\": the sender, then the receiver");
    problems.error_hint(conduit.at, Code::WrongWay, what, why, hint);
    true
}

/// The operator of a component's port.
fn operator(model: &Model, end: &PortReference) -> Option<Operator> {
    let component = model.components.get(end.component.as_ref()?)?;
    Some(component.ports.get(&end.port)?.operator)
}

fn check_end(
    model: &Model,
    end: &PortReference,
    at: TextPosition,
    sending: bool,
    problems: &mut Problems,
) {
    let Some(name) = &end.component else {
        return check_end_at_model(model, end, at, sending, problems);
    };
    let Some(component) = model.components.get(name) else {
        return report_no_component(model, end, name, at, problems);
    };
    if sending || end.port != SETTINGS_IN {
        let wanted = ExpectedPort {
            end,
            sending,
            operators: operators(sending),
            owner: format!("component \"{name}\""),
            at,
            hint: None,
        };
        wanted.check(&component.ports, problems);
    }
}

/// Checks an end at a port of the model itself. Inside the model, a port on which the model
/// receives is a sending port.
fn check_end_at_model(
    model: &Model,
    end: &PortReference,
    at: TextPosition,
    sending: bool,
    problems: &mut Problems,
) {
    let mut components = model.components.values();
    let same_port = components.find(|component| component.ports.contains_key(&end.port));
    let wanted = ExpectedPort {
        end,
        sending,
        operators: operators(!sending),
        owner: format!("model \"{}\"", model.name),
        at,
        hint: same_port.map(|c| format!("did you mean \"{}.{}\"?", c.name, end.port)),
    };
    wanted.check(&model.ports, problems);
}

fn report_no_component(
    model: &Model,
    end: &PortReference,
    name: &Name,
    at: TextPosition,
    problems: &mut Problems,
) {
    let names = || model.components.keys().map(Name::as_str);
    let near = did_you_mean(name, names());
    let hint = near.unwrap_or_else(|| format!("there are {}", listing(names())));
    let what = format!("there is no component \"{name}\"");
    let model = &model.name;
    let why = format!("\"{end}\" is an end of a conduit of model \"{model}\"");
    problems.error_hint(at, Code::UnknownComponent, what, why, hint);
}

fn operators(sending: bool) -> [Operator; 2] {
    if sending {
        [Operator::OI, Operator::OF]
    } else {
        [Operator::FInit, Operator::S]
    }
}

/// The port that a conduit needs at one end.
struct ExpectedPort<'a> {
    end: &'a PortReference,
    /// Whether the conduit begins at the port.
    sending: bool,
    operators: [Operator; 2],
    owner: String,
    at: TextPosition,
    hint: Option<String>,
}

impl ExpectedPort<'_> {
    fn check(&self, ports: &Ports, problems: &mut Problems) {
        match ports.get(&self.end.port) {
            None => self.report_no_port(ports, problems),
            Some(port) if !self.operators.contains(&port.operator) => {
                self.report_wrong_way(port, problems);
            }
            Some(_) => {}
        }
    }

    fn report_no_port(&self, ports: &Ports, problems: &mut Problems) {
        let (end, owner, name) = (self.end, &self.owner, &self.end.port);
        let fits = |port: &&Port| self.operators.contains(&port.operator);
        let fitting = || ports.values().filter(fits).map(|port| port.name.as_str());
        let near = || did_you_mean(name, fitting());
        let hint = self.hint.clone().or_else(near).unwrap_or_else(|| {
            let ways = if self.sending { "begin" } else { "end" };
            match fitting().next() {
                Some(_) => format!("a conduit may {ways} at {}", either(fitting())),
                None => format!("it has no port at which a conduit may {ways}"),
            }
        });
        let what = format!("{owner} has no port \"{name}\"");
        let why =
            format!("\"{end}\" is an end of a conduit, and {owner} does not list such a port");
        problems.error_hint(self.at, Code::UnknownPort, what, why, hint);
    }

    fn report_wrong_way(&self, port: &Port, problems: &mut Problems) {
        let side = if self.sending { "begins" } else { "ends" };
        let way = match port.operator.sends() {
            true => "sends",
            false => "receives",
        };
        let what = format!("\"{}\" faces the wrong way", self.end);
        let (name, owner, operator) = (&port.name, &self.owner, port.operator);
        let why = format!(
            "a conduit {side} here, and port \"{name}\" of {owner} is {operator}, which {way}"
        );
        let hint = self.hint.clone().unwrap_or_else(|| {
            "a conduit is written \"sender: receiver\"; is it the wrong way round?".into()
        });
        problems.error_hint(self.at, Code::WrongWay, what, why, hint);
    }
}

/// Each user filter on a conduit must be described under `titin: filters`.
pub(super) fn filters_exist(description: &Description, problems: &mut Problems) {
    let own = &description.extras.filters;
    for conduit in description
        .models
        .values()
        .flat_map(|model| &model.conduits)
    {
        if problems.is_full() {
            return;
        }
        for filter in &conduit.filters {
            let FilterKind::User(name) = &filter.kind else {
                continue;
            };
            if own.contains_key(name) {
                continue;
            }
            let known = || {
                FILTER_NAMES
                    .into_iter()
                    .chain(own.keys().map(|n| n.as_str()))
            };
            let hint = did_you_mean(name, known())
                .or_else(|| Some(format!("there are {}", listing(known()))));
            let why = format!(
                "it is neither one of titin's nor described under \"titin: filters\", on the way to \"{}\"",
                conduit.receiver
            );
            problems.error_hint(
                conduit.receiver_at,
                Code::Filter,
                format!("there is no filter \"{name}\""),
                why,
                hint,
            );
        }
    }
}
