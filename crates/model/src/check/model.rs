//! One model: its conduits join existing ports, in the right direction.

use std::collections::HashMap;

use crate::description::{Conduit, Description, Model, PortReference, Ports, SETTINGS_IN};
use crate::filter::{FILTER_NAMES, FilterKind};
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
        // Inside the model, a port on which the model receives is a sending port.
        let same_port = model
            .components
            .values()
            .find(|c| c.ports.contains_key(&end.port));
        let hint = same_port.map(|c| format!("did you mean \"{}.{}\"?", c.name, end.port));
        let owner = format!("model \"{}\"", model.name);
        check_port(
            ExpectedPort {
                end,
                sending,
                operators: operators(!sending),
                owner,
                at,
                hint,
            },
            &model.ports,
            problems,
        );
        return;
    };
    let Some(component) = model.components.get(name) else {
        let names = || model.components.keys().map(|n| n.as_str());
        let hint =
            did_you_mean(name, names()).or_else(|| Some(format!("there are {}", listing(names()))));
        let why = format!(
            "\"{end}\" is an end of a conduit of model \"{}\"",
            model.name
        );
        problems.error_hint(
            at,
            Code::UnknownComponent,
            format!("there is no component \"{name}\""),
            why,
            hint,
        );
        return;
    };
    if sending || end.port != SETTINGS_IN {
        let owner = format!("component \"{name}\"");
        let wanted = ExpectedPort {
            end,
            sending,
            operators: operators(sending),
            owner,
            at,
            hint: None,
        };
        check_port(wanted, &component.ports, problems);
    }
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

fn check_port(wanted: ExpectedPort<'_>, ports: &Ports, problems: &mut Problems) {
    let ExpectedPort {
        end,
        sending,
        operators,
        owner,
        at,
        hint,
    } = wanted;
    let name = &end.port;
    let Some(port) = ports.get(name) else {
        let fitting = || {
            let fits = ports
                .values()
                .filter(|port| operators.contains(&port.operator));
            fits.map(|port| port.name.as_str())
        };
        let hint = hint
            .or_else(|| did_you_mean(name, fitting()))
            .unwrap_or_else(|| {
                let ways = if sending { "begin" } else { "end" };
                match fitting().next() {
                    Some(_) => format!("a conduit may {ways} at {}", either(fitting())),
                    None => format!("it has no port at which a conduit may {ways}"),
                }
            });
        let why =
            format!("\"{end}\" is an end of a conduit, and {owner} does not list such a port");
        problems.error_hint(
            at,
            Code::UnknownPort,
            format!("{owner} has no port \"{name}\""),
            why,
            hint,
        );
        return;
    };
    if !operators.contains(&port.operator) {
        let side = if sending { "begins" } else { "ends" };
        let way = if port.operator.sends() {
            "sends"
        } else {
            "receives"
        };
        let why = format!(
            "a conduit {side} here, and port \"{name}\" of {owner} is {}, which {way}",
            port.operator
        );
        let hint = hint.unwrap_or_else(|| {
            "a conduit is written \"sender: receiver\"; is it the wrong way round?".into()
        });
        problems.error_hint(
            at,
            Code::WrongWay,
            format!("\"{end}\" faces the wrong way"),
            why,
            hint,
        );
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
